#!/usr/bin/env bash
# Copies Apache Kafka's jars into lib/ (ignored by git). Does nothing when lib/ belongs to this
# pom.xml already; two runs at once wait for each other.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
lib="$here/lib"
stamp="$lib/.complete"

complete() {
  [[ -f "$stamp" ]] && cmp -s "$stamp" "$here/pom.xml"
}

complete && exit 0
mkdir -p "$lib"
exec 9>"$lib/.lock"
flock 9
complete && exit 0
rm -f "$lib"/*.jar "$stamp"
mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
  -DoutputDirectory="$lib" -DincludeScope=runtime >&2
# The stamp is written last: an interrupted copy is done again by the next run.
cp "$here/pom.xml" "$stamp"
