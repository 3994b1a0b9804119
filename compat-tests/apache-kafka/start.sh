#!/usr/bin/env bash
# Runs one Apache Kafka node (KRaft, broker and controller in one process) in the foreground.
#
#   start.sh PORT [DATADIR]
#
# DATADIR is kept; without it a fresh directory below TMPDIR is used, for the caller to remove.
# It does not wait until the broker is up: the process becomes the JVM itself (exec),
# so SIGTERM stops Kafka. It listens about two seconds after the start.
#
# KAFKA_HEAP_OPTS    default -Xms256m -Xmx1g; for comparisons of speed use -Xms1g -Xmx1g
# KAFKA_LOG_LEVEL    default warn
# KAFKA_PROPERTIES   further lines for server.properties; the last line of a name counts
# KAFKA_CLUSTER_ID   the same for all nodes of a cluster; default a random one
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
port="${1:?usage: start.sh PORT [DATADIR]}"
data="${2:-$(mktemp -d "${TMPDIR:-/tmp}/apache-kafka-$port.XXXXXX")}"

"$here/install.sh"

port_is_free() {
  ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Below the ports that systems give to outgoing connections, which might take one meanwhile.
controller=$((port + 10000))
if ((controller > 32000)); then controller=$((port - 10000)); fi
until port_is_free "$controller"; do controller=$((controller + 1)); done

mkdir -p "$data"
data="$(cd "$data" && pwd)"
config="$data/server.properties"
cat >"$config" <<PROPERTIES
process.roles=broker,controller
node.id=0
controller.quorum.voters=0@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$data/logs
num.partitions=1
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
${KAFKA_PROPERTIES:-}
PROPERTIES

java_options=(
  -Dlog4j2.configurationFile="$here/log4j2.properties"
  -Dkafka.log.level="${KAFKA_LOG_LEVEL:-warn}"
  -cp "$here/lib/*"
)

if [[ ! -f "$data/logs/meta.properties" ]]; then
  # 16 random bytes in Kafka's base64; an id may not begin with a dash, which reads as an option.
  random="$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=' | sed 's/^[-_]/k/')"
  id="${KAFKA_CLUSTER_ID:-$random}"
  java -Xmx256m -XX:TieredStopAtLevel=1 "${java_options[@]}" \
    kafka.tools.StorageTool format -t "$id" -c "$config" >&2
fi

# The flags of Kafka's own kafka-run-class.sh.
# shellcheck disable=SC2086
exec java -server ${KAFKA_HEAP_OPTS:--Xms256m -Xmx1g} \
  -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 \
  -Djava.awt.headless=true "${java_options[@]}" kafka.Kafka "$config"
