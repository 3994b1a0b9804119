package keylane.compat;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Keyed delivery when nothing fails: everything once, per-key order, no wait for other keys. */
final class KeyedChecks {
    private final Clients clients;

    KeyedChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("keyed");
        checks.add("10,000 records, 500 keys, 3 consumers: each once", this::each);
        checks.add("offsets are those of lanes", this::laneOffsets);
        checks.add("auto-commit, delivery.ack=commit", this::autoCommit);
        checks.add("auto-commit, delivery.ack=poll", this::ackPoll);
        checks.add("one record per poll, a commit after each", this::onePerPoll);
        checks.add("a slow record delays its own key only", this::slowRecord);
        checks.add("behind a slow record wait only those in the same hand", this::sameHand);
        checks.add("records without a key are handled in parallel", this::nullKeys);
        checks.add("two groups, one keyed topic", this::twoGroups);
        checks.add("the lag is the number of unfinished records", this::lag);
    }

    private void each() throws Exception {
        try (var group = new KeyedGroup(clients, 6)) {
            group.send(KeyedGroup.keys(500), 0, 10);
            group.joinSeveral(3, (member, record) -> { });
            group.send(KeyedGroup.keys(500), 10, 20);
            group.expectDone(10_000, 30);
            for (KeyedMember member : group.members) {
                Expect.that(member.handled.get() > 0, member + " had something");
            }
        }
    }

    private void laneOffsets() throws Exception {
        Queue<Long> offsets = new ConcurrentLinkedQueue<>();
        try (var group = new KeyedGroup(clients, 2)) {
            group.send(KeyedGroup.keys(4), 0, 5);
            group.join((member, record) -> offsets.add(record.offset()));
            group.expectDone(20, 10);
        }
        // Otherwise the group reads the log, and most of the other checks would pass as well.
        Expect.that(offsets.stream().allMatch(offset -> offset >= KeyedGroup.LANE_OFFSETS),
            "lane offsets: " + offsets);
    }

    /** The defaults of the client: commits every five seconds, and when it closes. */
    private void autoCommit() throws Exception {
        String[] defaults = {"enable.auto.commit", "true"};
        try (var group = new KeyedGroup(clients, 6)) {
            group.send(KeyedGroup.keys(50), 0, 10);
            group.joinSeveral(2, (member, record) -> Thread.sleep(1), defaults);
            group.sentinel.expectHandled(500, 10);
            // Whether a commit was due before depends on when the members were made.
            Expect.that(group.lag() >= 0, "the lag is not negative");
            for (KeyedMember member : group.members) {
                member.close();
            }
            group.expectLag(0, 5);
            group.join(defaults);
            group.send(KeyedGroup.keys(50), 10, 12);
            group.sentinel.expectHandled(600, 10);
            // This time the client's own interval has to do it.
            group.expectDone(600, 1);
        }
    }

    /** What the client came back for more after is finished, whatever it commits. */
    private void ackPoll() throws Exception {
        String[] never = {"enable.auto.commit", "true", "auto.commit.interval.ms", "600000"};
        try (var group = new KeyedGroup(clients, 6, "delivery.ack", "poll")) {
            group.send(KeyedGroup.keys(50), 0, 10);
            group.joinSeveral(2, (member, record) -> Thread.sleep(1), never);
            group.expectDone(500, 10);
        }
    }

    private void onePerPoll() throws Exception {
        try (var group = new KeyedGroup(clients, 6)) {
            group.send(KeyedGroup.keys(30), 0, 10);
            group.joinSeveral(2, (member, record) -> Thread.sleep(1), "max.poll.records", "1");
            group.expectDone(300, 20);
        }
    }

    private void slowRecord() throws Exception {
        var gate = new CountDownLatch(1);
        var slow = new AtomicReference<KeyedMember>();
        KeyedMember.Handler handler = (member, record) -> {
            if (KeyedGroup.is(record, "slow", 0)) {
                slow.set(member);
                gate.await();
            }
        };
        List<String> slowKey = List.of("slow");
        try (var group = new KeyedGroup(clients, 6)) {
            group.joinSeveral(3, handler);
            long startedNanos = System.nanoTime();
            group.send(slowKey, 0, 1);
            Expect.eventually("the slow record is in work", 10, () -> slow.get() != null);
            group.send(slowKey, 1, 101);
            group.send(KeyedGroup.keys(200), 0, 10);
            // The slow one was alone when it was handed out, so nothing at all may wait behind it.
            group.sentinel.expectHandled(2_000, 4);
            Expect.equal(0, group.sentinel.nextOf("slow"), "the first record of the slow key");
            group.expectLag(101, 2);
            long tookNanos = System.nanoTime() - startedNanos;
            Thread.sleep(Math.max(0, 5_000 - TimeUnit.NANOSECONDS.toMillis(tookNanos)));
            Expect.equal(0, slow.get().handled.get(), "records that the slow member handled");
            gate.countDown();
            group.expectDone(2_101, 10);
        } finally {
            gate.countDown();
        }
    }

    private void sameHand() throws Exception {
        var gate = new CountDownLatch(1);
        var slow = new AtomicReference<KeyedMember>();
        KeyedMember.Handler handler = (member, record) -> {
            Thread.sleep(1);
            if (KeyedGroup.is(record, "slow", 0)) {
                slow.set(member);
                gate.await();
            }
        };
        List<String> keys = KeyedGroup.keys(300);
        try (var group = new KeyedGroup(clients, 6)) {
            group.send(keys, 0, 1);
            group.send(List.of("slow"), 0, 2);
            group.send(keys, 1, 10);
            group.joinSeveral(3, handler);
            Expect.eventually("the slow record is in work", 10, () -> slow.get() != null);
            // What a member handles in 100 ms, and what it had been handed before that.
            int inHandMax = 128;
            Expect.eventually(() -> "the other keys are through: " + group.sentinel, 10,
                () -> keys.stream().filter(key -> group.sentinel.nextOf(key) < 10).count()
                    <= inHandMax);
            gate.countDown();
            group.expectDone(3_002, 10);
        } finally {
            gate.countDown();
        }
    }

    private void nullKeys() throws Exception {
        try (var group = new KeyedGroup(clients, 4); var producer = clients.producer()) {
            for (int number = 0; number < 40; number++) {
                String value = Integer.toString(number);
                Expect.get(producer.send(new ProducerRecord<>(group.topic, 0, null, value)));
            }
            group.joinSeveral(4, (member, record) -> Thread.sleep(100));
            group.expectDone(40, 10);
            int atATime = group.sentinel.inWorkMax();
            Expect.that(atATime >= 3, "three at a time at least, it was " + atATime);
        }
    }

    private void twoGroups() throws Exception {
        try (var first = new KeyedGroup(clients, 3);
            var second = new KeyedGroup(clients, first.topic, 3, KeyedGroup.newId())) {
            first.send(KeyedGroup.keys(20), 0, 5);
            first.joinSeveral(2, (member, record) -> { });
            second.join();
            first.expectDone(100, 10);
            second.expectDone(100, 10);
        }
    }

    /** Every other key stops at its fourth record, so that there are holes all over the topic. */
    private void lag() throws Exception {
        var gate = new CountDownLatch(1);
        KeyedMember.Handler handler = (member, record) -> {
            boolean isHeld = Integer.parseInt(record.key().substring(4)) % 2 == 0
                && KeyedGroup.numberOf(record) == 3;
            if (isHeld) {
                gate.await();
            }
        };
        try (var group = new KeyedGroup(clients, 6)) {
            group.send(KeyedGroup.keys(20), 0, 10);
            // Otherwise what was handled is committed only after the records around it.
            group.joinSeveral(3, handler, "max.poll.records", "1");
            Expect.soon(() -> {
                int handled = group.sentinel.handled();
                long lag = group.lag();
                Expect.that(handled > 0 && lag == 200 - handled, "lag " + lag + " of 200, handled "
                    + handled);
                Expect.equal(handled, group.sentinel.handled(), "handled meanwhile");
            });
            gate.countDown();
            group.expectDone(200, 10);
        } finally {
            gate.countDown();
        }
    }
}
