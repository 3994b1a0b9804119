package keylane.compat;

import java.util.concurrent.atomic.AtomicInteger;

/** Keyed delivery when handlers fail and seek back: the key waits, all others go on. */
final class KeyedFailureChecks {
    private static final String POISON_KEY = "key-7";

    private final Clients clients;

    KeyedFailureChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("keyed failures");
        checks.add("a handler that fails twice and seeks back", this::twice);
        checks.add("a handler that fails twice and seeks back, auto-commit",
            () -> twice("enable.auto.commit", "true", "auto.commit.interval.ms", "100"));
        checks.add("a handler that always fails for one key in a hundred", this::always);
    }

    private void twice(String... settings) throws Exception {
        var failed = new AtomicInteger();
        KeyedMember.Handler handler = (member, record) -> {
            if (KeyedGroup.is(record, POISON_KEY, 2) && failed.get() < 2) {
                failed.incrementAndGet();
                throw new KeyedMember.Failure();
            }
        };
        try (var group = new KeyedGroup(clients, 6, "retry.backoff.ms", "100")) {
            group.send(KeyedGroup.keys(100), 0, 5);
            group.joinSeveral(3, handler, settings);
            group.expectDone(500, 15);
            Expect.equal(2, failed.get(), "failures");
        }
    }

    /** Without a limit of attempts the record stays, and with it those behind it. */
    private void always() throws Exception {
        var failed = new AtomicInteger();
        KeyedMember.Handler handler = (member, record) -> {
            if (record.key().equals(POISON_KEY)) {
                failed.incrementAndGet();
                throw new KeyedMember.Failure();
            }
        };
        String[] configs = {"retry.backoff.ms", "100", "delivery.attempts.max", "0"};
        try (var group = new KeyedGroup(clients, 6, configs)) {
            group.send(KeyedGroup.keys(100), 0, 5);
            group.joinSeveral(3, handler);
            group.sentinel.expectHandled(495, 15);
            group.send(KeyedGroup.keys(100), 5, 10);
            group.sentinel.expectHandled(990, 15);
            group.expectLag(10, 5);
            group.sentinel.expectOnce(990);
            Expect.that(failed.get() > 0, "the record failed");
        }
    }
}
