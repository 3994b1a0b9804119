#!/usr/bin/env bash
# Installs kafkajs. Does nothing when that was done for this package-lock.json already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# The stamp is written last: an interrupted installation is done again by the next run.
stamp=node_modules/.complete
if ! cmp -s package-lock.json "$stamp"; then
  npm ci --no-audit --no-fund >&2
  cp package-lock.json "$stamp"
fi
