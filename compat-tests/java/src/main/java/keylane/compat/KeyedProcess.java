package keylane.compat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A member of a keyed group in a process of its own, so that it can be killed. It says on its
 * standard output which record it begins and ends; the sentinel of the group listens.
 */
public final class KeyedProcess implements AutoCloseable {
    private static final String NAME = "the process";

    private final Process process;
    private final Thread listener;
    final AtomicInteger handled = new AtomicInteger();

    KeyedProcess(KeyedGroup group, long handleMs) throws IOException {
        process = new ProcessBuilder(ProcessHandle.current().info().command().orElse("java"),
            "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp",
            System.getProperty("java.class.path"), KeyedProcess.class.getName(),
            group.clients.bootstrap, group.topic, group.id, Long.toString(handleMs))
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        listener = new Thread(() -> listen(group.sentinel), NAME);
        listener.setDaemon(true);
        listener.start();
    }

    private void listen(Sentinel sentinel) {
        try (var lines = new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] parts = line.split(" ");
                int number = Integer.parseInt(parts[2]);
                if (parts[0].equals("begin")) {
                    sentinel.begin(NAME, parts[1], number);
                } else {
                    sentinel.end(NAME, parts[1], number);
                    handled.incrementAndGet();
                }
            }
        } catch (IOException error) {
            // The process is gone, and with it the rest of a line.
        }
    }

    /** Kills it and tells how many records were in work at that moment. */
    int kill(Sentinel sentinel) throws InterruptedException {
        process.destroyForcibly().waitFor();
        // What it had said before is still to be read.
        listener.join();
        return sentinel.drop(NAME);
    }

    @Override
    public void close() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** {@code KeyedProcess BOOTSTRAP TOPIC GROUP HANDLE_MS}. */
    public static void main(String[] arguments) throws Exception {
        long handleMs = Long.parseLong(arguments[3]);
        try (Clients clients = new Clients(arguments[0]);
            var consumer = clients.consumer(arguments[2], "session.timeout.ms", "6000")) {
            consumer.subscribe(List.of(arguments[1]));
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
                    System.out.println("begin " + record.key() + " " + record.value());
                    Thread.sleep(handleMs);
                    System.out.println("end " + record.key() + " " + record.value());
                }
                consumer.commitSync();
            }
        }
    }
}
