#!/usr/bin/env bash
# Checks a broker with librdkafka, through confluent-kafka and kcat.
#
#   run.sh BOOTSTRAP [PYTEST-ARGUMENT...]
#
# FAST=1 leaves out the tests marked `thorough`. The last line is "N passed, N failed".
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
bootstrap="${1:?usage: run.sh BOOTSTRAP}"
shift

if ! command -v kcat >/dev/null; then
  apt-get install -y -qq kcat >&2 || { apt-get update -qq >&2 && apt-get install -y -qq kcat >&2; }
fi

selection=()
if [[ "${FAST:-0}" == 1 ]]; then selection=(-m "not thorough"); fi
exec "$here/../python-common/run-suite.sh" "$here" "$bootstrap" "${selection[@]}" "$@"
