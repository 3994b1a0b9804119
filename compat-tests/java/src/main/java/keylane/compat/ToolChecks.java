package keylane.compat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Kafka's own command line tools, as their users call them. */
public final class ToolChecks {
    private final Clients clients;

    private ToolChecks(Clients clients) {
        this.clients = clients;
    }

    public static void main(String[] arguments) throws Exception {
        Checks checks = new Checks();
        int failed;
        try (Clients clients = new Clients(arguments[0])) {
            clients.requireBroker();
            new ToolChecks(clients).register(checks);
            if (KeyedGroup.isKeylane()) {
                new KeyedToolChecks(clients).register(checks);
                new KeyedSwitchChecks(clients).register(checks);
            }
            boolean fast = "1".equals(System.getenv("FAST"));
            failed = checks.run(fast, System.getenv("ONLY"), 1);
        }
        System.exit(failed == 0 ? 0 : 1);
    }

    private void register(Checks checks) {
        checks.area("tools");
        checks.add("kafka-topics: create, list, describe, alter, delete", this::topics);
        checks.add("kafka-topics: errors", this::topicErrors);
        checks.add("kafka-configs: topic", this::topicConfigs);
        checks.add("kafka-configs: broker", this::brokerConfigs);
        checks.add("console producer and consumer", this::console);
        checks.add("kafka-get-offsets", this::getOffsets);
        checks.add("kafka-delete-records", this::deleteRecords);
        checks.add("kafka-consumer-groups: list and describe", this::describeGroups);
        checks.add("kafka-consumer-groups: members of an active group", this::groupMembers);
        checks.add("kafka-consumer-groups: reset offsets", this::resetOffsets);
        checks.add("kafka-consumer-groups: delete offsets and group", this::deleteGroup);
        checks.add("kafka-groups", this::groups);
        checks.add("producer and consumer perf test", this::perfTests);
        checks.addSlow("kafka-e2e-latency", this::latency);
        checks.add("kafka-broker-api-versions", this::apiVersions);
        checks.add("kafka-cluster", this::cluster);
    }

    /** Runs a tool with the usual option for the broker in front. */
    private KafkaTool.Result run(String tool, String... arguments) throws Exception {
        return runWithInput("", tool, arguments);
    }

    private KafkaTool.Result runWithInput(String input, String tool, String... arguments)
        throws Exception {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", clients.bootstrap));
        all.addAll(List.of(arguments));
        return KafkaTool.runWithInput(input, tool, all.toArray(String[]::new));
    }

    private void topics() throws Exception {
        String name = Clients.unique("tool");
        run("kafka-topics", "--create", "--topic", name, "--partitions", "3",
            "--replication-factor", "1", "--config", "retention.ms=7200000")
            .expect(0, "Created topic " + name);
        run("kafka-topics", "--create", "--topic", name, "--if-not-exists").expect(0);
        Expect.soon(() -> run("kafka-topics", "--list").expect(0, name));
        Expect.soon(() -> run("kafka-topics", "--describe", "--topic", name)
            .expect(0, "PartitionCount: 3", "ReplicationFactor: ", "retention.ms=7200000",
                "Partition: 2"));
        run("kafka-topics", "--alter", "--topic", name, "--partitions", "5").expect(0);
        Expect.soon(() -> run("kafka-topics", "--describe", "--topic", name)
            .expect(0, "PartitionCount: 5"));
        run("kafka-topics", "--describe", "--topic", name, "--unavailable-partitions").expect(0);
        run("kafka-topics", "--delete", "--topic", name).expect(0);
        Expect.soon(() -> {
            var listed = run("kafka-topics", "--list").expect(0);
            Expect.that(listed.out().lines().noneMatch(name::equals), "the topic is gone");
        });
        run("kafka-topics", "--delete", "--topic", name, "--if-exists").expect(0);
    }

    private void topicErrors() throws Exception {
        String name = clients.topic(3);
        run("kafka-topics", "--create", "--topic", name).expect(1, "already exists");
        run("kafka-topics", "--alter", "--topic", name, "--partitions", "2").expect(1);
        run("kafka-topics", "--create", "--topic", Clients.unique("tool"),
            "--replication-factor", String.valueOf(Clients.nodes() + 1)).expect(1);
        run("kafka-topics", "--describe", "--topic", Clients.unique("missing"))
            .expect(1, "does not exist");
    }

    private void topicConfigs() throws Exception {
        String name = clients.topic(1);
        String[] entity = {"--entity-type", "topics", "--entity-name", name};
        run("kafka-configs", with(entity, "--describe", "--all"))
            .expect(0, "retention.ms=", "cleanup.policy=delete");
        run("kafka-configs", with(entity, "--alter", "--add-config",
            "retention.ms=3600000,max.message.bytes=54321")).expect(0, "Completed updating");
        Expect.soon(() -> run("kafka-configs", with(entity, "--describe"))
            .expect(0, "retention.ms=3600000", "DYNAMIC_TOPIC_CONFIG:max.message.bytes=54321"));
        run("kafka-configs", with(entity, "--alter", "--delete-config", "retention.ms")).expect(0);
        Expect.soon(() -> {
            var left = run("kafka-configs", with(entity, "--describe"));
            left.expect(0, "max.message.bytes");
            Expect.that(!left.out().contains("retention.ms=3600000"), "deleted");
        });
        run("kafka-configs", with(entity, "--alter", "--add-config", "no.such.key=1"))
            .expect(1, "InvalidConfigurationException");
    }

    private void brokerConfigs() throws Exception {
        var node = Expect.get(clients.admin.describeCluster().nodes()).iterator().next();
        run("kafka-configs", "--entity-type", "brokers", "--entity-name", node.idString(),
            "--describe", "--all").expect(0, "num.partitions=1");
    }

    static String[] with(String[] first, String... more) {
        List<String> all = new ArrayList<>(List.of(first));
        all.addAll(List.of(more));
        return all.toArray(String[]::new);
    }

    private void console() throws Exception {
        String name = clients.topic(1);
        runWithInput("k1:v1\nk2:v2\nk3:ünïcode\n", "kafka-console-producer", "--topic", name,
            "--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
            .expect(0);
        var read = run("kafka-console-consumer", "--topic", name, "--from-beginning",
            "--formatter-property", "print.key=true", "--formatter-property",
            "print.offset=true", "--max-messages", "3", "--timeout-ms", "20000").expect(0);
        Expect.equal(List.of("Offset:0\tk1\tv1", "Offset:1\tk2\tv2", "Offset:2\tk3\tünïcode"),
            read.out().lines().toList(), "output");
    }

    private void getOffsets() throws Exception {
        String name = clients.topic(2);
        clients.send(name, 0, 0, 5);
        long now = System.currentTimeMillis();
        try (var producer = clients.producer()) {
            Expect.get(producer.send(new ProducerRecord<>(name, 1, now - 1_000, "k", "v")));
            Expect.get(producer.send(new ProducerRecord<>(name, 1, now, "k", "v")));
        }
        run("kafka-get-offsets", "--topic", name).expect(0, name + ":0:5", name + ":1:2");
        run("kafka-get-offsets", "--topic", name, "--time", "earliest")
            .expect(0, name + ":0:0", name + ":1:0");
        run("kafka-get-offsets", "--topic-partitions", name + ":1", "--time", "max-timestamp")
            .expect(0, name + ":1:1");
        run("kafka-get-offsets", "--topic", name, "--time", "0").expect(0, name + ":0:0");
    }

    private void deleteRecords() throws Exception {
        String name = clients.topic(1);
        clients.send(name, 0, 0, 10);
        Path file = temporary("""
            {"partitions": [{"topic": "%s", "partition": 0, "offset": 6}], "version": 1}
            """.formatted(name));
        run("kafka-delete-records", "--offset-json-file", file.toString())
            .expect(0, "low_watermark: 6");
        run("kafka-get-offsets", "--topic", name, "--time", "earliest").expect(0, name + ":0:6");
    }

    private static Path temporary(String text) throws IOException {
        Path file = Files.createTempFile("keylane-compat", ".json");
        file.toFile().deleteOnExit();
        return Files.writeString(file, text);
    }

    private void commit(String group, String topic, long offset) {
        try (var consumer = clients.consumer(group)) {
            consumer.commitSync(
                Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(offset)));
        }
    }

    // This tool prints what went wrong and exits with 0 all the same.

    private void describeGroups() throws Exception {
        String name = clients.topic(1);
        clients.send(name, 0, 0, 10);
        String group = Clients.unique("tool-group");
        commit(group, name, 4);
        run("kafka-consumer-groups", "--list").expect(0, group);
        var described = run("kafka-consumer-groups", "--describe", "--group", group)
            .expect(0, "has no active members");
        String[] row = described.row(name);
        Expect.equal(List.of(group, name, "0", "4", "10", "6"), List.of(row).subList(0, 6), "row");
        run("kafka-consumer-groups", "--describe", "--group", group, "--state").expect(0, "Empty");
        run("kafka-consumer-groups", "--list", "--state", "Empty").expect(0, group, "Empty");
        run("kafka-consumer-groups", "--describe", "--group", Clients.unique("missing"))
            .expect(0, "GroupIdNotFoundException");
    }

    private void groupMembers() throws Exception {
        String name = clients.topic(2);
        clients.send(name, 0, 0, 3);
        String group = Clients.unique("tool-group");
        try (var member = new Member(clients, group, List.of(name), "client.id", "tool-client")) {
            member.expectPartitions(2);
            Expect.eventually("the records are committed", 20, () -> committed(group, name) == 3);
            run("kafka-consumer-groups", "--describe", "--group", group, "--members", "--verbose")
                .expect(0, "tool-client", name + ":0,1");
            run("kafka-consumer-groups", "--describe", "--group", group, "--state")
                .expect(0, "Stable", "range");
            String[] row = run("kafka-consumer-groups", "--describe", "--group", group)
                .expect(0, "tool-client").row(" 0 ");
            Expect.equal(List.of("0", "3", "3", "0"), List.of(row).subList(2, 6), "row");
            run("kafka-consumer-groups", "--group", group, "--topic", name, "--reset-offsets",
                "--to-earliest", "--execute").expect(0, "Assignments can only be reset");
            run("kafka-consumer-groups", "--delete", "--group", group)
                .expect(0, "GroupNotEmptyException");
        }
    }

    private long committed(String group, String topic) {
        try {
            var offsets = Expect.get(
                clients.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
            var offset = offsets.get(new TopicPartition(topic, 0));
            return offset == null ? -1 : offset.offset();
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    private void resetOffsets() throws Exception {
        String name = clients.topic(1);
        long start = System.currentTimeMillis() - 3_600_000;
        try (var producer = clients.producer()) {
            for (int number = 0; number < 10; number++) {
                long time = start + number * 60_000L;
                Expect.get(producer.send(new ProducerRecord<>(name, 0, time, "k", "v")));
            }
        }
        String group = Clients.unique("tool-group");
        commit(group, name, 7);
        reset(group, name, "--to-earliest", 0);
        reset(group, name, "--to-latest", 10);
        reset(group, name, "--to-offset", 5, "5");
        reset(group, name, "--shift-by", 3, "-2");
        reset(group, name, "--to-offset", 10, "99");
        String time = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS").withZone(
            ZoneOffset.UTC).format(Instant.ofEpochMilli(start + 4 * 60_000L));
        reset(group, name, "--to-datetime", 4, time + "Z");
        // The same without --execute only tells what would happen.
        run("kafka-consumer-groups", "--group", group, "--topic", name, "--reset-offsets",
            "--to-latest", "--dry-run").expect(0, "10");
        Expect.equal(4L, committed(group, name), "offset after a dry run");
    }

    private void reset(String group, String topic, String how, long expected, String... value)
        throws Exception {
        String[] target = {"--group", group, "--topic", topic, "--reset-offsets", "--execute", how};
        run("kafka-consumer-groups", with(target, value)).expect(0);
        Expect.equal(expected, committed(group, topic), "offset after " + how);
    }

    private void deleteGroup() throws Exception {
        String name = clients.topic(1);
        String other = clients.topic(1);
        String group = Clients.unique("tool-group");
        commit(group, name, 1);
        commit(group, other, 2);
        run("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", name)
            .expect(0, "Successful");
        Expect.equal(-1L, committed(group, name), "deleted offset");
        Expect.equal(2L, committed(group, other), "kept offset");
        run("kafka-consumer-groups", "--delete", "--group", group)
            .expect(0, "Deletion of requested consumer groups");
        var listed = run("kafka-consumer-groups", "--list").expect(0);
        Expect.that(!listed.out().contains(group), "the group is gone");
        run("kafka-consumer-groups", "--delete", "--group", group)
            .expect(0, "GroupIdNotFoundException");
    }

    private void groups() throws Exception {
        String group = Clients.unique("tool-group");
        commit(group, clients.topic(1), 1);
        run("kafka-groups", "--list").expect(0, group, "Classic");
    }

    private void perfTests() throws Exception {
        String name = clients.topic(3);
        run("kafka-producer-perf-test", "--topic", name, "--num-records", "20000",
            "--record-size", "200", "--throughput", "-1", "--command-property", "acks=all")
            .expect(0, "20000 records sent");
        String[] row = run("kafka-consumer-perf-test", "--topic", name, "--num-records", "20000",
            "--timeout", "20000", "--group", Clients.unique("tool-group"), "--hide-header")
            .expect(0).row(",");
        String numbers = String.join(" ", row);
        Expect.that(numbers.contains(" 20000,"), "20000 records were read: " + numbers);
    }

    private void latency() throws Exception {
        String name = clients.topic(1);
        run("kafka-e2e-latency", "--topic", name, "--num-records", "50", "--producer-acks", "all",
            "--record-size", "100").expect(0, "Avg latency", "Percentiles");
    }

    private void apiVersions() throws Exception {
        run("kafka-broker-api-versions").expect(0, "Produce(0): 0 to", "Fetch(1): ",
            "Metadata(3): 0 to", "JoinGroup(11): 0 to", "ApiVersions(18): 0 to");
    }

    private void cluster() throws Exception {
        String id = Expect.get(clients.admin.describeCluster().clusterId());
        KafkaTool.run("kafka-cluster", "cluster-id", "--bootstrap-server", clients.bootstrap)
            .expect(0, id);
    }
}
