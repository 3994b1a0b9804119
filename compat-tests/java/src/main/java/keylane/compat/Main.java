package keylane.compat;

/** {@code Main BOOTSTRAP}: every check of the client library against one broker. */
public final class Main {
    private static final int PARALLEL = 6;

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        Checks checks = new Checks();
        int failed;
        try (Clients clients = new Clients(arguments[0])) {
            clients.requireBroker();
            new ProduceChecks(clients).register(checks);
            new ConsumeChecks(clients).register(checks);
            new GroupChecks(clients).register(checks);
            new CommitChecks(clients).register(checks);
            new AdminTopicChecks(clients).register(checks);
            new AdminConfigChecks(clients).register(checks);
            new AdminGroupChecks(clients).register(checks);
            new WireChecks(clients).register(checks);
            if (KeyedGroup.isKeylane()) {
                new KeyedChecks(clients).register(checks);
                new KeyedGroupChecks(clients).register(checks);
                new KeyedFailureChecks(clients).register(checks);
                new KeyedDeadLetterChecks(clients).register(checks);
                new KeyedWireChecks(clients).register(checks);
            } else {
                System.out.println(
                    "the checks of keyed delivery are left out: COMPAT_BROKER is not keylane");
            }
            boolean fast = "1".equals(System.getenv("FAST"));
            failed = checks.run(fast, System.getenv("ONLY"), PARALLEL);
        }
        // Members of failed checks may still be polling.
        System.exit(failed == 0 ? 0 : 1);
    }
}
