#!/usr/bin/env bash
# Checks a broker with kafka-python.
#
#   run.sh BOOTSTRAP [PYTEST-ARGUMENT...]
#
# The last line is "N passed, N failed".
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
bootstrap="${1:?usage: run.sh BOOTSTRAP}"
shift
exec "$here/../python-common/run-suite.sh" "$here" "$bootstrap" "$@"
