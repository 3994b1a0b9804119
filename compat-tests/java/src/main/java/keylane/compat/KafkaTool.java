package keylane.compat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools inside this process: a JVM per call would cost a second each.
 * They are found by name, because only their jars at run time, not our manifest, bring them.
 */
final class KafkaTool {
    private static final String TOOLS = "org.apache.kafka.tools.";

    /** The same names as in apache-kafka/tool.sh. */
    private static final Map<String, String> MAIN_CLASSES = Map.ofEntries(
        Map.entry("kafka-topics", TOOLS + "TopicCommand"),
        Map.entry("kafka-configs", "kafka.admin.ConfigCommand"),
        Map.entry("kafka-consumer-groups", TOOLS + "consumer.group.ConsumerGroupCommand"),
        Map.entry("kafka-groups", TOOLS + "GroupsCommand"),
        Map.entry("kafka-console-producer", TOOLS + "ConsoleProducer"),
        Map.entry("kafka-console-consumer", TOOLS + "consumer.ConsoleConsumer"),
        Map.entry("kafka-producer-perf-test", TOOLS + "ProducerPerformance"),
        Map.entry("kafka-consumer-perf-test", TOOLS + "ConsumerPerformance"),
        Map.entry("kafka-e2e-latency", TOOLS + "EndToEndLatency"),
        Map.entry("kafka-get-offsets", TOOLS + "GetOffsetShell"),
        Map.entry("kafka-delete-records", TOOLS + "DeleteRecordsCommand"),
        Map.entry("kafka-broker-api-versions", TOOLS + "BrokerApiVersionsCommand"),
        Map.entry("kafka-cluster", TOOLS + "ClusterTool"));

    /** Unwinds a tool that wants to end the process. */
    private static final class ExitCalled extends Error {
        private static final long serialVersionUID = 1L;

        ExitCalled() {
            super("exit", null, false, false);
        }
    }

    record Result(int status, String out, String err) {
        /** Checks the exit status and that the output has all these parts. */
        Result expect(int wanted, String... parts) {
            Expect.that(status == wanted, "exit status " + wanted + ", got " + status + brief());
            for (String part : parts) {
                Expect.that((out + err).contains(part), "\"" + part + "\" in the output" + brief());
            }
            return this;
        }

        /** The first line of the output that contains a text, split at blanks. */
        String[] row(String text) {
            return out.lines().filter(line -> line.contains(text)).findFirst()
                .orElseThrow(() -> new AssertionError("a line with " + text + brief())).trim()
                .split("\\s+");
        }

        private String brief() {
            String all = out + err;
            return ":\n" + all.substring(0, Math.min(all.length(), 1_500));
        }
    }

    private KafkaTool() {
    }

    static Result run(String tool, String... arguments) throws Exception {
        return runWithInput("", tool, arguments);
    }

    /** One at a time: the standard streams and the exit procedure belong to the whole process. */
    static synchronized Result runWithInput(String input, String tool, String... arguments)
        throws Exception {
        var out = new ByteArrayOutputStream();
        var err = new ByteArrayOutputStream();
        PrintStream outBefore = System.out;
        PrintStream errBefore = System.err;
        InputStream inBefore = System.in;
        // The first call counts: some tools catch what the call throws and exit once more.
        var exitStatus = new AtomicReference<Integer>();
        Exit.Procedure procedure = (status, message) -> {
            exitStatus.compareAndSet(null, status);
            throw new ExitCalled();
        };
        Exit.setExitProcedure(procedure);
        Exit.setHaltProcedure(procedure);
        Exit.setShutdownHookAdder((name, hook) -> { });
        try (var outPrinter = new PrintStream(out, true, StandardCharsets.UTF_8);
            var errPrinter = new PrintStream(err, true, StandardCharsets.UTF_8)) {
            System.setOut(outPrinter);
            System.setErr(errPrinter);
            System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
            call(MAIN_CLASSES.get(tool), arguments);
        } finally {
            System.setOut(outBefore);
            System.setErr(errBefore);
            System.setIn(inBefore);
            Exit.resetExitProcedure();
            Exit.resetHaltProcedure();
            Exit.resetShutdownHookAdder();
        }
        int status = exitStatus.get() == null ? 0 : exitStatus.get();
        return new Result(status, out.toString(StandardCharsets.UTF_8),
            err.toString(StandardCharsets.UTF_8));
    }

    private static void call(String mainClass, String[] arguments) throws Exception {
        var main = Class.forName(mainClass).getMethod("main", String[].class);
        try {
            main.invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof ExitCalled) {
                return;
            }
            if (error.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw error;
        }
    }
}
