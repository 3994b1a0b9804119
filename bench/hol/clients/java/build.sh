#!/usr/bin/env bash
# Compiles the consumers against the client that Apache Kafka itself brings, and prints the class path.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
kafka="$(cd "$here/../../../../compat-tests/apache-kafka" && pwd)"
"$kafka/install.sh"
classes="$here/target/classes"
stamp="$here/target/.built"
sum="$(cat "$here"/src/keylane/hol/*.java "$kafka/pom.xml" | sha256sum)"
if [[ "$(cat "$stamp" 2>/dev/null)" != "$sum" ]]; then
  mkdir -p "$classes"
  javac --release 17 -Xlint:all,-classfile -d "$classes" -cp "$kafka/lib/*" "$here"/src/keylane/hol/*.java >&2
  echo "$sum" >"$stamp"
fi
echo "$classes:$kafka/lib/*"
