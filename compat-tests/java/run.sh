#!/usr/bin/env bash
# Kafka's Java client and command line tools against one broker:
#
#   run.sh BOOTSTRAP
#
# FAST=1         leaves out the slow checks
# ONLY=text      runs only the checks whose name contains the text
# CLIENT_LOG     what the client logs: off (default), error, warn, info
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
bootstrap="${1:?usage: run.sh BOOTSTRAP}"
kafka="$here/../apache-kafka"
level="${CLIENT_LOG:-off}"

source "$here/build.sh"

output="$here/target/output.$$"
trap 'rm -f "$output"' EXIT
passed=0
failed=0
summary_line='^[0-9]+ passed, [0-9]+ failed$'

# Runs a command, shows what it prints and adds up the counts of its last line.
count() {
  local status=0 summary
  # The sums of the parts would be taken for the sum of all.
  { "$@" || status=$?; } > >(tee "$output" | grep --line-buffered -vE "$summary_line")
  wait $! || true
  summary="$(grep -E "$summary_line" "$output" | tail -1)" || true
  if [[ "$summary" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
  fi
  # A program that dies without a summary, or fails after it, is a failure too.
  if [[ -z "$summary" || ($status -ne 0 && "${BASH_REMATCH[2]}" == 0) ]]; then
    echo "FAIL           $1 ended with status $status"
    failed=$((failed + 1))
  fi
}

run_java() {
  java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx512m \
    -Dorg.slf4j.simpleLogger.defaultLogLevel="$level" \
    -Dlog4j2.configurationFile="$kafka/log4j2.properties" -Dkafka.log.level="$level" "$@"
}

# The tools run inside one JVM; this is the one call through the script that users have.
tool_script() {
  if "$kafka/tool.sh" kafka-topics --bootstrap-server "$bootstrap" --list >/dev/null; then
    printf 'ok             tools: tool.sh kafka-topics --list\n1 passed, 0 failed\n'
  else
    printf 'FAIL           tools: tool.sh kafka-topics --list\n0 passed, 1 failed\n'
  fi
}

"$kafka/install.sh"
build
count run_java -cp "$here/target/classes:$here/lib/*" keylane.compat.Main "$bootstrap"
count run_java -cp "$here/target/classes:$kafka/lib/*" keylane.compat.ToolChecks "$bootstrap"
if [[ -z "${ONLY:-}" ]]; then count tool_script; fi

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
