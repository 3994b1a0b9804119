#!/usr/bin/env bash
# Load of Kafka's Java client: load.sh Load BOOTSTRAP TOPIC PARTITIONS, or load.sh LoadGroup BOOTSTRAP
# TOPIC GROUP MEMBERS. It goes on until a line comes in, and prints what happens (see the classes).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/build.sh"
build
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m \
  -Dorg.slf4j.simpleLogger.defaultLogLevel="${CLIENT_LOG:-off}" \
  -cp "$here/target/classes:$here/lib/*" "keylane.compat.$1" "${@:2}"
