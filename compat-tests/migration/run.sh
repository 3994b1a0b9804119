#!/usr/bin/env bash
# Moves an application from Apache Kafka to the broker at BOOTSTRAP: run.sh BOOTSTRAP.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bootstrap="${1:?usage: run.sh HOST:PORT}"

# The stamp is written last: an interrupted installation is done again by the next run.
stamp=node_modules/.complete
if ! cmp -s package-lock.json "$stamp"; then
  npm ci --no-audit --no-fund >&2
  cp package-lock.json "$stamp"
fi

exec node main.mjs "$bootstrap"
