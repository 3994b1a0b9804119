#!/usr/bin/env bash
# An idempotent producer of Kafka's Java client: load.sh BOOTSTRAP TOPIC PARTITIONS. It sends until a
# line comes in, and prints what was acknowledged.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/build.sh"
build
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m \
  -Dorg.slf4j.simpleLogger.defaultLogLevel="${CLIENT_LOG:-off}" \
  -cp "$here/target/classes:$here/lib/*" keylane.compat.Load "$@"
