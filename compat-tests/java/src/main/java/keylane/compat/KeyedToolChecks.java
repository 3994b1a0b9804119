package keylane.compat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Kafka's own command line tools on groups and topics in keyed delivery. */
final class KeyedToolChecks {
    private static final int KEYS = 20;
    private static final int SENT = KEYS * 10;

    private final Clients clients;

    KeyedToolChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("keyed tools");
        checks.add("kafka-consumer-groups: the lag while records are in work", this::lag);
        checks.add("kafka-consumer-groups: members, state, refusals", this::activeGroup);
        checks.add("kafka-consumer-groups: reset offsets of an empty group", this::reset);
        checks.add("kafka-consumer-groups: delete a group", this::deleteGroup);
        checks.add("kafka-configs: delivery.ack=poll of a group", this::groupAck);
    }

    private KafkaTool.Result run(String tool, String... arguments) throws Exception {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", clients.bootstrap));
        all.addAll(List.of(arguments));
        return KafkaTool.run(tool, all.toArray(String[]::new));
    }

    private KafkaTool.Result describe(KeyedGroup group, String... more) throws Exception {
        List<String> all = new ArrayList<>(List.of("--describe", "--group", group.id));
        all.addAll(List.of(more));
        return run("kafka-consumer-groups", all.toArray(String[]::new)).expect(0);
    }

    /** The sum of the column LAG. */
    private long lagOf(KeyedGroup group) throws Exception {
        List<String[]> rows = describe(group).out().lines()
            .filter(line -> line.contains(group.topic)).map(line -> line.trim().split("\\s+"))
            .toList();
        Expect.equal(group.partitions, rows.size(), "rows of the topic");
        long lag = 0;
        for (String[] row : rows) {
            long offset = Long.parseLong(row[3]);
            long end = Long.parseLong(row[4]);
            Expect.that(offset >= 0 && offset < KeyedGroup.LANE_OFFSETS, "a log offset: " + offset);
            Expect.equal(end - offset, Long.parseLong(row[5]), "lag in " + String.join(" ", row));
            lag += end - offset;
        }
        return lag;
    }

    private void lag() throws Exception {
        var gate = new CountDownLatch(1);
        KeyedMember.Handler handler = (member, record) -> {
            if (record.key().equals("key-3") && KeyedGroup.numberOf(record) == 4) {
                gate.await();
            }
        };
        try (var group = new KeyedGroup(clients, 4)) {
            group.joinSeveral(2, handler, "max.poll.records", "1");
            // The held record comes alone, so that nothing else waits in the same hand.
            group.send(List.of("key-3"), 0, 4);
            group.sentinel.expectHandled(4, 10);
            group.send(List.of("key-3"), 4, 10);
            List<String> others = new ArrayList<>(KeyedGroup.keys(KEYS));
            others.remove("key-3");
            group.send(others, 0, 10);
            group.sentinel.expectHandled(SENT - 6, 10);
            Expect.soon(() -> Expect.equal(6L, lagOf(group), "unfinished records"));
            gate.countDown();
            group.expectDone(SENT, 10);
            Expect.equal(0L, lagOf(group), "unfinished records");
        } finally {
            gate.countDown();
        }
    }

    private void activeGroup() throws Exception {
        try (var group = new KeyedGroup(clients, 4)) {
            group.send(KeyedGroup.keys(KEYS), 0, 10);
            group.join("client.id", "keyed-tool-client");
            group.expectDone(SENT, 10);
            describe(group, "--members", "--verbose")
                .expect(0, "keyed-tool-client", group.topic + ":0,1,2,3");
            describe(group, "--state").expect(0, "Stable", "range");
            describe(group).expect(0, "keyed-tool-client");
            run("kafka-consumer-groups", "--group", group.id, "--topic", group.topic,
                "--reset-offsets", "--to-earliest", "--execute")
                .expect(0, "Assignments can only be reset");
            run("kafka-consumer-groups", "--delete", "--group", group.id)
                .expect(0, "GroupNotEmptyException");
            Expect.equal(0L, lagOf(group), "unfinished records");
        }
    }

    /** Groups of the same topic one after the other: what a reset does shows in what comes. */
    private void reset() throws Exception {
        try (var first = new KeyedGroup(clients, 4)) {
            first.send(KeyedGroup.keys(KEYS), 0, 10);
            KeyedMember early = first.join((member, record) -> Thread.sleep(2));
            first.sentinel.expectHandled(20, 10);
            early.close();
            int unfinished = SENT - first.sentinel.handled();
            Expect.that(unfinished > 0, "it left in the middle");
            first.expectLag(unfinished, 2);
            describe(first).expect(0, "has no active members");

            reset(first, "--to-current");
            Expect.equal((long) unfinished, lagOf(first), "after a reset to what is shown");
            first.join();
            first.expectDone(SENT, 10);
            first.members.get(1).close();

            reset(first, "--to-earliest");
            Expect.equal((long) SENT, lagOf(first), "after --to-earliest");
            expectAll(first);
            reset(first, "--to-latest");
            Expect.equal(0L, lagOf(first), "after --to-latest");
            reset(first, "--shift-by", "-1");
            Expect.equal((long) first.partitions, lagOf(first), "after --shift-by -1");
            reset(first, "--to-offset", "0", "--topic", first.topic + ":1,2");
            Expect.that(lagOf(first) > first.partitions, "after --to-offset 0 of two partitions");
        }
    }

    private void reset(KeyedGroup group, String... how) throws Exception {
        List<String> all = new ArrayList<>(List.of("--group", group.id, "--reset-offsets",
            "--execute"));
        all.addAll(List.of(how));
        if (!all.contains("--topic")) {
            all.addAll(List.of("--topic", group.topic));
        }
        var result = run("kafka-consumer-groups", all.toArray(String[]::new)).expect(0);
        Expect.that(!result.out().contains("Error"), "no error: " + result.out());
    }

    /** Reads everything once more, in the same group. */
    private void expectAll(KeyedGroup group) throws Exception {
        try (var again = new KeyedGroup(clients, group.topic, group.partitions, group.id)) {
            again.join();
            again.expectDone(SENT, 10);
        }
    }

    private void deleteGroup() throws Exception {
        try (var group = new KeyedGroup(clients, 4)) {
            group.send(KeyedGroup.keys(KEYS), 0, 10);
            KeyedMember member = group.join();
            group.expectDone(SENT, 10);
            member.close();
            run("kafka-consumer-groups", "--list").expect(0, group.id);
            run("kafka-consumer-groups", "--delete", "--group", group.id)
                .expect(0, "Deletion of requested consumer groups");
            var listed = run("kafka-consumer-groups", "--list").expect(0);
            Expect.that(!listed.out().contains(group.id), "the group is gone");
            // A group of the same name begins anew.
            expectAll(group);
        }
    }

    private void groupAck() throws Exception {
        String[] never = {"enable.auto.commit", "true", "auto.commit.interval.ms", "600000"};
        try (var group = new KeyedGroup(clients, 4)) {
            String[] entity = {"--entity-type", "groups", "--entity-name", group.id};
            run("kafka-configs", ToolChecks.with(entity, "--alter", "--add-config",
                "delivery.ack=poll")).expect(0, "Completed updating");
            run("kafka-configs", ToolChecks.with(entity, "--describe"))
                .expect(0, "delivery.ack=poll");
            group.send(KeyedGroup.keys(KEYS), 0, 10);
            group.join(never);
            group.expectDone(SENT, 10);
            run("kafka-configs", ToolChecks.with(entity, "--alter", "--delete-config",
                "delivery.ack")).expect(0);
        }
    }
}
