package keylane.compat;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;

/** A topic changes between log and keyed delivery under groups that read it. */
final class KeyedSwitchChecks {
    private static final int PARTITIONS = 4;
    private static final int KEYS = 20;

    private final Clients clients;

    KeyedSwitchChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("keyed switch");
        checks.add("an empty group, to keyed and back", this::emptyGroup);
        checks.add("a group at work, to keyed and back", this::groupAtWork);
    }

    private static void set(KeyedGroup group, String... change) throws Exception {
        String[] entity = {"--bootstrap-server", group.clients.bootstrap, "--entity-type", "topics",
            "--entity-name", group.topic, "--alter"};
        KafkaTool.run("kafka-configs", ToolChecks.with(entity, change))
            .expect(0, "Completed updating");
    }

    private KeyedGroup logGroup() throws Exception {
        return new KeyedGroup(clients, clients.topic(PARTITIONS), PARTITIONS, KeyedGroup.newId());
    }

    private static void expectKind(Queue<Long> offsets, boolean isLane) {
        Expect.that(!offsets.isEmpty(), "records came");
        Expect.that(
            offsets.stream().allMatch(offset -> offset >= KeyedGroup.LANE_OFFSETS == isLane),
            (isLane ? "lane" : "log") + " offsets: " + offsets);
    }

    /** Each step goes on where the one before it ended. */
    private void emptyGroup() throws Exception {
        var offsets = new AtomicReference<Queue<Long>>(new ConcurrentLinkedQueue<>());
        KeyedMember.Handler handler = (member, record) -> {
            offsets.get().add(record.offset());
            Thread.sleep(2);
        };
        try (var group = logGroup()) {
            group.send(KeyedGroup.keys(KEYS), 0, 10);
            KeyedMember first = group.join(handler);
            group.sentinel.expectHandled(50, 10);
            first.close();
            int handled = group.sentinel.handled();
            Expect.that(handled < 200, "it left in the middle");
            expectKind(offsets.getAndSet(new ConcurrentLinkedQueue<>()), false);

            set(group, "--add-config", "delivery.mode=keyed");
            group.joinSeveral(2, handler);
            group.expectDone(200, 10);
            group.send(KeyedGroup.keys(KEYS), 10, 15);
            group.expectDone(300, 10);
            expectKind(offsets.getAndSet(new ConcurrentLinkedQueue<>()), true);
            for (KeyedMember member : group.members) {
                member.close();
            }

            set(group, "--delete-config", "delivery.mode");
            group.send(KeyedGroup.keys(KEYS), 15, 20);
            group.join(handler);
            group.expectDone(400, 10);
            expectKind(offsets.get(), false);
        }
    }

    /** Back to the log, what is finished above the first unfinished record comes again. */
    private void groupAtWork() throws Exception {
        var lane = new AtomicReference<>(false);
        KeyedMember.Handler handler = (member, record) -> {
            lane.set(record.offset() >= KeyedGroup.LANE_OFFSETS);
        };
        try (var group = logGroup(); var flow = group.flow(KEYS, 20)) {
            group.joinSeveral(2, handler);
            group.sentinel.expectHandled(200, 10);
            Expect.equal(false, lane.get(), "lane offsets at first");
            set(group, "--add-config", "delivery.mode=keyed");
            Expect.eventually("lane offsets", 15, lane::get);
            group.sentinel.expectHandled(group.sentinel.handled() + 500, 10);
            Expect.that(group.sentinel.repeated() == 0, "nothing twice: " + group.sentinel);
            set(group, "--delete-config", "delivery.mode");
            Expect.eventually("log offsets", 15, () -> !lane.get());
            group.sentinel.expectHandled(group.sentinel.handled() + 500, 10);
            group.sentinel.expectHandled(flow.stop(), 10);
            group.expectLag(0, 10);
            group.sentinel.expectOrder();
        }
    }
}
