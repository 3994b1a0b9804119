#!/usr/bin/env bash
# Builds the suite and runs it against a broker: run.sh BOOTSTRAP [REGEX]
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
: "${1:?usage: run.sh BOOTSTRAP [REGEX]}"
(cd "$here" && go build -o bin/suite .)
exec "$here/bin/suite" "$@"
