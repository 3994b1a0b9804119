package keylane.compat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Keyed delivery while consumers come, go, die or take long. */
final class KeyedGroupChecks {
    private static final String RANGE = "range";
    private static final String COOPERATIVE = "cooperative-sticky";
    private static final long PAUSE_MS_MAX = 3_000;

    private final Clients clients;

    KeyedGroupChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("keyed groups");
        for (String assignor : List.of(RANGE, "roundrobin", "sticky", COOPERATIVE)) {
            checks.add("members join and leave, " + assignor, () -> joinAndLeave(assignor));
        }
        checks.add("rolling restart, " + RANGE, () -> rollingRestart(RANGE));
        checks.addSlow("rolling restart, " + COOPERATIVE, () -> rollingRestart(COOPERATIVE));
        checks.add("commit and resume over a restart of the consumer", this::resume);
        checks.add("kill -9 of a consumer", this::kill);
        for (String assignor : List.of(RANGE, COOPERATIVE)) {
            checks.add("a handler of 12 s while others join and leave, " + assignor,
                () -> longHandler(assignor, 12_000));
            checks.addSlow("a handler of 40 s while others join and leave, " + assignor,
                () -> longHandler(assignor, 40_000));
            checks.add("work finished during a rebalance is not repeated, " + assignor,
                () -> acrossGenerations(assignor));
        }
    }

    private void joinAndLeave(String assignor) throws Exception {
        String[] settings = GroupChecks.with(assignor);
        KeyedMember.Handler handler = (member, record) -> Thread.sleep(1);
        try (var group = new KeyedGroup(clients, 6); var flow = group.flow(50, 20)) {
            group.joinSeveral(2, handler, settings);
            group.sentinel.expectHandled(500, 10);
            List<KeyedMember> stay = List.copyOf(group.members);
            KeyedMember guest = group.join(handler, settings);
            guest.expectHandled(20);
            guest.close();
            group.sentinel.expectHandled(group.sentinel.handled() + 1_000, 10);
            group.expectDone(flow.stop(), 10);
            stay.forEach(member -> member.expectPauseBelow(PAUSE_MS_MAX));
        }
    }

    private void rollingRestart(String assignor) throws Exception {
        String[] settings = GroupChecks.with(assignor);
        KeyedMember.Handler handler = (member, record) -> Thread.sleep(1);
        try (var group = new KeyedGroup(clients, 6); var flow = group.flow(50, 20)) {
            group.joinSeveral(3, handler, settings);
            group.sentinel.expectHandled(500, 10);
            for (KeyedMember member : List.copyOf(group.members)) {
                member.close();
                group.join(handler, settings);
                group.sentinel.expectHandled(group.sentinel.handled() + 200, 10);
            }
            group.expectDone(flow.stop(), 10);
        }
    }

    private void resume() throws Exception {
        try (var group = new KeyedGroup(clients, 6)) {
            group.send(KeyedGroup.keys(30), 0, 10);
            KeyedMember first = group.join((member, record) -> Thread.sleep(5));
            group.sentinel.expectHandled(50, 10);
            first.close();
            int handled = group.sentinel.handled();
            Expect.that(handled < 300, "it left in the middle");
            group.expectLag(300 - handled, 2);
            group.send(KeyedGroup.keys(30), 10, 12);
            group.join();
            group.expectDone(360, 10);
        }
    }

    private void kill() throws Exception {
        KeyedMember.Handler handler = (member, record) -> Thread.sleep(1);
        try (var group = new KeyedGroup(clients, 6);
            var victim = new KeyedProcess(group, 20);
            var flow = group.flow(50, 50)) {
            group.joinSeveral(2, handler);
            Expect.eventually("the process has handled some", 20, () -> victim.handled.get() > 30);
            int inWork = victim.kill(group.sentinel);
            Expect.that(inWork <= 1, "one record at a time, in work " + inWork);
            // Its session is six seconds long, until then its keys wait.
            group.sentinel.expectHandled(group.sentinel.handled() + 2_000, 15);
            int sent = flow.stop();
            group.sentinel.expectHandled(sent, 20);
            group.expectLag(0, 10);
            group.sentinel.expectOrder();
            // What it had handled and not committed comes again, at most what it has in hand.
            int repeated = group.sentinel.repeated();
            Expect.that(repeated <= 50, repeated + " records came again");
        }
    }

    /**
     * One member is in a long handler while another joins and a third leaves. Heartbeats at their
     * default interval: the busy one cannot answer any of the rebalances in time.
     */
    private void longHandler(String assignor, long handlerMs) throws Exception {
        String[] settings = GroupChecks.with(assignor, "heartbeat.interval.ms", "3000");
        var slow = new AtomicReference<KeyedMember>();
        var times = new AtomicInteger();
        KeyedMember.Handler handler = (member, record) -> {
            // Who takes no time is handed all keys at once: they would wait in the same hand.
            Thread.sleep(1);
            if (KeyedGroup.is(record, "slow", 0)) {
                times.incrementAndGet();
                slow.set(member);
                Thread.sleep(handlerMs);
            }
        };
        try (var group = new KeyedGroup(clients, 6)) {
            group.joinSeveral(3, handler, settings);
            // The longer the handler the slower the flow: what waits for it has to be handled too.
            try (var flow = group.flow(50, handlerMs / 240)) {
                group.sentinel.expectHandled(200, 15);
                group.send(List.of("slow"), 0, 2);
                Expect.eventually("the slow record is in work", 10, () -> slow.get() != null);
                KeyedMember guest = group.join(handler, settings);
                guest.expectHandled(50);
                List<KeyedMember> others = new ArrayList<>(group.members);
                others.removeIf(member -> member == slow.get() || member == guest);
                others.get(0).close();
                group.sentinel.expectHandled(group.sentinel.handled() + 1_000, 10);
                Expect.that(group.sentinel.isInWork("slow"), "the slow record is still in work");
                Expect.eventually("the slow record is done", 60,
                    () -> group.sentinel.nextOf("slow") > 0);
                group.expectDone(flow.stop() + 2, 15);
                Expect.equal(1, times.get(), "times that the slow record was handled");
                others.add(guest);
                others.forEach(member -> member.expectPauseBelow(PAUSE_MS_MAX));
            }
        }
    }

    /** A member works through what it polled while the group goes on to other generations. */
    private void acrossGenerations(String assignor) throws Exception {
        String[] settings = GroupChecks.with(assignor);
        var gate = new CountDownLatch(1);
        var begun = new CountDownLatch(1);
        KeyedMember.Handler handler = (member, record) -> {
            if (member.name.equals("member 1")) {
                begun.countDown();
                gate.await();
                Thread.sleep(5);
            }
        };
        try (var group = new KeyedGroup(clients, 6)) {
            group.send(KeyedGroup.keys(100), 0, 3);
            KeyedMember first = group.start(handler, settings);
            Expect.that(begun.await(10, TimeUnit.SECONDS), "it has work");
            KeyedMember second = group.join(handler, settings);
            second.expectHandled(50);
            group.join(handler, settings);
            second.close();
            Expect.equal(0, first.handled.get(), "records of the first so far");
            gate.countDown();
            group.expectDone(300, 15);
            Expect.that(first.handled.get() > 1, "the first handled what it had polled");
        } finally {
            gate.countDown();
        }
    }
}
