#!/usr/bin/env bash
# Runs the pytest suite of one folder against a broker. Called by the run.sh of each Python client.
#
#   run-suite.sh FOLDER BOOTSTRAP [PYTEST-ARGUMENT...]
#
# The folder's requirements.txt lists every package with its version; they go into FOLDER/.venv, which
# is made again whenever that list has changed.
# JOBS   how many test processes run at once (default 4: the tests wait for the broker most of the time)
set -euo pipefail
common="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(cd "${1:?usage: run-suite.sh FOLDER BOOTSTRAP}" && pwd)"
bootstrap="${2:?usage: run-suite.sh FOLDER BOOTSTRAP}"
shift 2

venv="$folder/.venv"
stamp="$venv/requirements.txt"
if ! cmp -s "$folder/requirements.txt" "$stamp"; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    --requirement "$folder/requirements.txt" >&2
  # The stamp is written last: an interrupted installation is done again by the next run.
  cp "$folder/requirements.txt" "$stamp"
fi

cd "$folder"
export PYTHONPATH="$common" PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/pytest" -p broker_suite -p no:cacheprovider --rootdir "$folder" \
  --numprocesses "${JOBS:-4}" --dist worksteal --timeout 60 --quiet --tb short --no-header \
  --bootstrap "$bootstrap" "$@"
