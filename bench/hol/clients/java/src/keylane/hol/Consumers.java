package keylane.hol;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * Serial consumers of one group, each a client of its own:
 *
 * <pre>Consumers BOOTSTRAP TOPIC GROUP CONSUMERS PARTITIONS EVENTS_FILE manual|auto</pre>
 *
 * <p>A value is {@code SEQUENCE SERVICE_US}; handling it is to wait for so long. Standard output says
 * {@code ready} when every consumer has its share of the partitions, and {@code handled N} as that
 * goes up, after the file has the events: {@code SEQUENCE START_US END_US MEMBER PARTITION OFFSET}.
 * They leave the group when standard input ends. The mode says who commits: the consumer after each
 * poll, or the client as it does by default.
 *
 * <p>A value that begins with {@code -} is no work, and only counted, so that writing events is not
 * what is measured: {@code - START_US END_US MEMBER COUNT} for what a member had since the line before.
 */
public final class Consumers {
    private static final int FLUSH_MS = 100;

    private Consumers() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        var settings = new Settings(arguments[0], arguments[1], arguments[2],
            switch (arguments[6]) {
                case "manual" -> true;
                case "auto" -> false;
                default -> throw new IllegalArgumentException("unknown mode " + arguments[6]);
            });
        int count = Integer.parseInt(arguments[3]);
        int partitions = Integer.parseInt(arguments[4]);
        var events = new Events();
        List<Member> members = IntStream.range(0, count)
            .mapToObj(number -> new Member(number, settings, events))
            .toList();
        members.forEach(Thread::start);
        try (var file = new PrintWriter(Files.newBufferedWriter(Path.of(arguments[5])))) {
            var flusher = new Flusher(file, events, members, partitions);
            flusher.start();
            var input = new BufferedReader(new InputStreamReader(System.in));
            while (input.readLine() != null) {
                // Nothing is said to consumers: only the end counts.
            }
            members.forEach(Member::stopSoon);
            for (Member member : members) {
                member.join();
            }
            flusher.interrupt();
            flusher.join();
            flusher.flush();
        }
    }

    record Settings(String bootstrap, String topic, String group, boolean manualCommit) {}

    /** What the handlers saw, until it is written. */
    static final class Events {
        private List<String> lines = new ArrayList<>();
        private final Map<Integer, Run> runs = new HashMap<>();
        private long handled;

        synchronized void add(String line) {
            lines.add(line);
            handled++;
        }

        synchronized void count(int member) {
            Run run = runs.computeIfAbsent(member, number -> new Run());
            if (run.count++ == 0) {
                run.startUs = System.nanoTime() / 1000;
            }
            handled++;
        }

        synchronized List<String> take() {
            runs.forEach((member, run) -> {
                if (run.count > 0) {
                    long endUs = System.nanoTime() / 1000;
                    lines.add("- " + run.startUs + ' ' + endUs + ' ' + member + ' ' + run.count);
                    run.count = 0;
                }
            });
            List<String> taken = lines;
            lines = new ArrayList<>();
            return taken;
        }

        synchronized long handled() {
            return handled;
        }

        private static final class Run {
            private long startUs;
            private long count;
        }
    }

    private static final class Flusher extends Thread {
        private final PrintWriter file;
        private final Events events;
        private final List<Member> members;
        private final int partitions;
        private boolean isReady;

        Flusher(PrintWriter file, Events events, List<Member> members, int partitions) {
            this.file = file;
            this.events = events;
            this.members = members;
            this.partitions = partitions;
        }

        @Override
        public void run() {
            try {
                while (true) {
                    Thread.sleep(FLUSH_MS);
                    tellReady();
                    flush();
                }
            } catch (InterruptedException end) {
                // All members have stopped; the last events are written by the main thread.
            }
        }

        private void tellReady() {
            int[] shares = members.stream().mapToInt(Member::assigned).toArray();
            int least = partitions / members.size();
            if (!isReady && IntStream.of(shares).sum() == partitions
                && IntStream.of(shares).allMatch(share -> share >= least)) {
                isReady = true;
                System.out.println("ready");
            }
        }

        void flush() {
            long handled = events.handled();
            List<String> lines = events.take();
            if (lines.isEmpty()) {
                return;
            }
            lines.forEach(file::println);
            file.flush();
            System.out.println("handled " + handled);
        }
    }
}
