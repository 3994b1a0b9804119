#!/usr/bin/env bash
# Builds bin/consumers and prints its path. librdkafka comes from the distribution.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
packages=(gcc make librdkafka-dev)
if ! dpkg --status "${packages[@]}" >/dev/null 2>&1; then
  apt-get install -y -qq "${packages[@]}" >&2 ||
    { apt-get update -qq >&2 && apt-get install -y -qq "${packages[@]}" >&2; }
fi
make --silent -C "$here" >&2
echo "$here/bin/consumers"
