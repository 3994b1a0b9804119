#!/usr/bin/env bash
# Runs one of Apache Kafka's command line tools by its usual name, without the ".sh":
#
#   tool.sh kafka-topics --bootstrap-server 127.0.0.1:9092 --list
#
# KAFKA_TOOL_HEAP_OPTS   default -Xmx256m
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
name="${1:?usage: tool.sh NAME ARGUMENTS...}"
shift

case "${name%.sh}" in
  kafka-topics) main=org.apache.kafka.tools.TopicCommand ;;
  kafka-configs) main=kafka.admin.ConfigCommand ;;
  kafka-consumer-groups) main=org.apache.kafka.tools.consumer.group.ConsumerGroupCommand ;;
  kafka-share-groups) main=org.apache.kafka.tools.consumer.group.ShareGroupCommand ;;
  kafka-groups) main=org.apache.kafka.tools.GroupsCommand ;;
  kafka-console-producer) main=org.apache.kafka.tools.ConsoleProducer ;;
  kafka-console-consumer) main=org.apache.kafka.tools.consumer.ConsoleConsumer ;;
  kafka-producer-perf-test) main=org.apache.kafka.tools.ProducerPerformance ;;
  kafka-consumer-perf-test) main=org.apache.kafka.tools.ConsumerPerformance ;;
  kafka-e2e-latency) main=org.apache.kafka.tools.EndToEndLatency ;;
  kafka-get-offsets) main=org.apache.kafka.tools.GetOffsetShell ;;
  kafka-delete-records) main=org.apache.kafka.tools.DeleteRecordsCommand ;;
  kafka-broker-api-versions) main=org.apache.kafka.tools.BrokerApiVersionsCommand ;;
  kafka-cluster) main=org.apache.kafka.tools.ClusterTool ;;
  kafka-features) main=org.apache.kafka.tools.FeatureCommand ;;
  kafka-log-dirs) main=org.apache.kafka.tools.LogDirsCommand ;;
  kafka-dump-log) main=org.apache.kafka.tools.DumpLogSegments ;;
  kafka-verifiable-producer) main=org.apache.kafka.tools.VerifiableProducer ;;
  kafka-verifiable-consumer) main=org.apache.kafka.tools.VerifiableConsumer ;;
  kafka-transactions) main=org.apache.kafka.tools.TransactionsCommand ;;
  # Any other main class of lib/, by its full name.
  *.*) main="$name" ;;
  *)
    echo "tool.sh: unknown tool $name" >&2
    exit 2
    ;;
esac

"$here/install.sh"
# shellcheck disable=SC2086
exec java ${KAFKA_TOOL_HEAP_OPTS:--Xmx256m} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
  -Dlog4j2.configurationFile="$here/log4j2.properties" \
  -cp "$here/lib/*" "$main" "$@"
