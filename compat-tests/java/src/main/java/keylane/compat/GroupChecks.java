package keylane.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InconsistentGroupProtocolException;
import org.apache.kafka.common.errors.InvalidSessionTimeoutException;

/** Classic consumer groups: membership, rebalances and committed offsets. */
final class GroupChecks {
    private static final String ASSIGNORS = "org.apache.kafka.clients.consumer.";
    private static final Map<String, String> ASSIGNOR_CLASSES = Map.of(
        "range", ASSIGNORS + "RangeAssignor",
        "roundrobin", ASSIGNORS + "RoundRobinAssignor",
        "sticky", ASSIGNORS + "StickyAssignor",
        "cooperative-sticky", ASSIGNORS + "CooperativeStickyAssignor");

    /** The common pool has a single thread on small machines. */
    private static final Executor OWN_THREAD = task -> new Thread(task, "sender").start();

    private final Clients clients;

    GroupChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("group");
        checks.add("range, two topics, join and leave", this::range);
        checks.add("roundrobin, two topics, join and leave", this::roundRobin);
        checks.add("sticky keeps what it can", this::sticky);
        checks.add("cooperative-sticky revokes only what moves", this::cooperative);
        checks.addSlow("range, every record once over rebalances", () -> once("range"));
        checks.addSlow("roundrobin, every record once over rebalances", () -> once("roundrobin"));
        checks.addSlow("sticky, every record once over rebalances", () -> once("sticky"));
        checks.add("cooperative-sticky, every record once over rebalances",
            () -> once("cooperative-sticky"));
        checks.add("more members than partitions", this::idleMember);
        checks.addSlow("a member that dies loses its partitions", this::deadMember);
        checks.add("members with different topics", this::differentTopics);
        checks.add("a new partition is assigned", this::newPartition);
        checks.add("no common assignor is refused", this::inconsistentProtocol);
        checks.add("session timeout out of range is refused", this::sessionTimeout);
        checks.add("static member restarts without a rebalance", this::staticRestart);
        checks.add("duplicate static member fences the first", this::staticFenced);
        checks.add("two groups get the same records", this::twoGroups);
    }

    static String[] with(String assignor, String... more) {
        List<String> settings = new ArrayList<>(List.of(more));
        settings.add("partition.assignment.strategy");
        settings.add(ASSIGNOR_CLASSES.get(assignor));
        return settings.toArray(String[]::new);
    }

    private void range() throws Exception {
        List<String> topics = List.of(clients.topic(3), clients.topic(3));
        String group = Clients.unique("group");
        try (var first = new Member(clients, group, topics, with("range"))) {
            first.expectPartitions(6);
            try (var second = new Member(clients, group, topics, with("range"))) {
                // Range gives the odd partition of every topic to the same member.
                Member.expectShares(List.of(first, second), 2, 4);
                try (var third = new Member(clients, group, topics, with("range"))) {
                    Member.expectShares(List.of(first, second, third), 2, 2, 2);
                }
                Member.expectShares(List.of(first, second), 2, 4);
            }
            first.expectPartitions(6);
        }
    }

    private void roundRobin() throws Exception {
        List<String> topics = List.of(clients.topic(3), clients.topic(3));
        String group = Clients.unique("group");
        try (var first = new Member(clients, group, topics, with("roundrobin"))) {
            first.expectPartitions(6);
            try (var second = new Member(clients, group, topics, with("roundrobin"))) {
                Member.expectShares(List.of(first, second), 3, 3);
            }
            first.expectPartitions(6);
        }
    }

    private void sticky() throws Exception {
        List<String> topics = List.of(clients.topic(6));
        String group = Clients.unique("group");
        try (var first = new Member(clients, group, topics, with("sticky"));
            var second = new Member(clients, group, topics, with("sticky"))) {
            Member.expectShares(List.of(first, second), 3, 3);
            try (var third = new Member(clients, group, topics, with("sticky"))) {
                Set<TopicPartition> before = first.assignment;
                Member.expectShares(List.of(first, second, third), 2, 2, 2);
                Expect.that(before.containsAll(first.assignment), "the first kept two of three");
            }
            Set<TopicPartition> before = first.assignment;
            Member.expectShares(List.of(first, second), 3, 3);
            Expect.that(first.assignment.containsAll(before), "the first kept its two");
        }
    }

    private void cooperative() throws Exception {
        List<String> topics = List.of(clients.topic(6));
        String group = Clients.unique("group");
        try (var first = new Member(clients, group, topics, with("cooperative-sticky"))) {
            first.expectPartitions(6);
            try (var second = new Member(clients, group, topics, with("cooperative-sticky"))) {
                Member.expectShares(List.of(first, second), 3, 3);
                Expect.equal(3, first.partitionsRevoked.get(), "partitions revoked of the first");
                Expect.equal(0, second.partitionsRevoked.get(), "partitions revoked of the second");
            }
            first.expectPartitions(6);
            Expect.equal(3, first.partitionsRevoked.get(), "partitions revoked of the first");
        }
    }

    /** Members come and go while records flow; commits on revocation keep every record single. */
    private void once(String assignor) throws Exception {
        List<String> topics = List.of(clients.topic(6));
        String group = Clients.unique("group");
        Queue<ConsumerRecord<String, String>> seen = new ConcurrentLinkedQueue<>();
        AtomicBoolean enough = new AtomicBoolean();
        var first = new Member(clients, seen, group, topics, with(assignor));
        first.expectPartitions(6);
        CompletableFuture<Integer> sent =
            CompletableFuture.supplyAsync(() -> sendUntil(topics.get(0), enough), OWN_THREAD);
        try (var second = new Member(clients, seen, group, topics, with(assignor))) {
            Member.expectShares(List.of(first, second), 3, 3);
            try (var third = new Member(clients, seen, group, topics, with(assignor))) {
                Member.expectShares(List.of(first, second, third), 2, 2, 2);
                first.close();
                Member.expectShares(List.of(second, third), 3, 3);
                enough.set(true);
                int count = Expect.get(sent);
                Expect.eventually(() -> count + " records, got " + seen.size(), 20,
                    () -> seen.size() >= count);
                Set<String> values = new HashSet<>();
                seen.forEach(record -> values.add(record.value()));
                Expect.equal(count, values.size(), "different records");
                Expect.equal(count, seen.size(), "records");
            }
        } finally {
            enough.set(true);
            first.close();
        }
    }

    private int sendUntil(String topic, AtomicBoolean enough) {
        int count = 0;
        try (var producer = clients.producer("linger.ms", "5")) {
            while (!enough.get()) {
                for (int i = 0; i < 12; i++) {
                    String value = Integer.toString(count++);
                    producer.send(new ProducerRecord<>(topic, value, value));
                }
                Thread.sleep(10);
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        return count;
    }

    private void idleMember() throws Exception {
        List<String> topics = List.of(clients.topic(1));
        String group = Clients.unique("group");
        try (var first = new Member(clients, group, topics)) {
            first.expectPartitions(1);
            try (var second = new Member(clients, group, topics)) {
                Member.expectShares(List.of(first, second), 0, 1);
                Expect.eventually("both joined", 20, () -> second.assignments.get() > 0);
                Member busy = first.assignment.isEmpty() ? second : first;
                Member idle = busy == first ? second : first;
                busy.close();
                idle.expectPartitions(1);
            }
        }
    }

    private void deadMember() throws Exception {
        List<String> topics = List.of(clients.topic(4));
        String group = Clients.unique("group");
        // group.min.session.timeout.ms is six seconds by default.
        String[] settings = {"session.timeout.ms", "6000"};
        try (var first = new Member(clients, group, topics, settings);
            var second = new Member(clients, group, topics, settings)) {
            Member.expectShares(List.of(first, second), 2, 2);
            second.stopWithoutLeaving();
            long startedNanos = System.nanoTime();
            first.expectPartitions(4);
            long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedNanos);
            Expect.that(tookMs > 3_000, "not before the session ends, took " + tookMs + " ms");
        }
    }

    private void differentTopics() throws Exception {
        String shared = clients.topic(2);
        String own = clients.topic(1);
        String group = Clients.unique("group");
        try (var first = new Member(clients, group, List.of(shared, own));
            var second = new Member(clients, group, List.of(shared))) {
            Member.expectShares(List.of(first, second), 1, 2);
            TopicPartition partition = new TopicPartition(own, 0);
            Expect.that(first.assignment.contains(partition), "only its subscriber gets a topic");
        }
    }

    private void newPartition() throws Exception {
        String topic = clients.topic(1);
        String group = Clients.unique("group");
        String[] settings = {"metadata.max.age.ms", "300"};
        try (var member = new Member(clients, group, List.of(topic), settings)) {
            member.expectPartitions(1);
            var increase = Map.of(topic,
                NewPartitions.increaseTo(3));
            Expect.get(clients.admin.createPartitions(increase).all());
            member.expectPartitions(3);
        }
    }

    private void inconsistentProtocol() throws Exception {
        List<String> topics = List.of(clients.topic(1));
        String group = Clients.unique("group");
        try (var first = new Member(clients, group, topics, with("range"));
            var other = clients.consumer(group, with("roundrobin"))) {
            first.expectPartitions(1);
            other.subscribe(topics);
            Expect.thrown(InconsistentGroupProtocolException.class, () -> pollFor(other, 10));
            first.expectPartitions(1);
        }
    }

    private void sessionTimeout() throws Exception {
        String topic = clients.topic(1);
        String[] settings = {"session.timeout.ms", "1000", "heartbeat.interval.ms", "100"};
        try (var consumer = clients.consumer(Clients.unique("group"), settings)) {
            consumer.subscribe(List.of(topic));
            Expect.thrown(InvalidSessionTimeoutException.class, () -> pollFor(consumer, 10));
        }
    }

    private static void pollFor(Consumer<String, String> consumer, int seconds) {
        for (int attempt = 0; attempt < seconds * 10; attempt++) {
            consumer.poll(Duration.ofMillis(100));
        }
    }

    private void staticRestart() throws Exception {
        List<String> topics = List.of(clients.topic(4));
        String group = Clients.unique("group");
        String[] first = {"group.instance.id", "one", "session.timeout.ms", "30000"};
        String[] second = {"group.instance.id", "two", "session.timeout.ms", "30000"};
        try (var stays = new Member(clients, group, topics, first)) {
            Set<TopicPartition> share;
            int assignments;
            try (var restarts = new Member(clients, group, topics, second)) {
                Member.expectShares(List.of(stays, restarts), 2, 2);
                share = restarts.assignment;
                assignments = stays.assignments.get();
            }
            // Closing a static member does not leave the group.
            try (var again = new Member(clients, group, topics, second)) {
                again.expectPartitions(2);
                Expect.equal(share, again.assignment, "assignment after the restart");
                Expect.equal(assignments, stays.assignments.get(), "rebalances of the other");
                again.leave();
                stays.expectPartitions(4);
            }
        }
    }

    private void staticFenced() throws Exception {
        List<String> topics = List.of(clients.topic(1));
        String group = Clients.unique("group");
        String[] settings = {"group.instance.id", "same", "session.timeout.ms", "30000"};
        try (var first = new Member(clients, group, topics, settings)) {
            first.expectPartitions(1);
            try (var second = new Member(clients, group, topics, settings)) {
                second.expectPartitions(1);
                Expect.eventually("the first fails", 20, () -> first.failure != null);
                Expect.equal(FencedInstanceIdException.class, first.failure.getClass(), "failure");
                Expect.equal(null, second.failure, "failure of the second");
            }
        }
    }

    private void twoGroups() throws Exception {
        String topic = clients.topic(2);
        clients.send(topic, 0, 0, 10);
        clients.send(topic, 1, 10, 10);
        for (int number = 0; number < 2; number++) {
            try (var consumer = clients.consumer(Clients.unique("group"))) {
                consumer.subscribe(List.of(topic));
                Expect.equal(20, Clients.take(consumer, 20, 20).size(), "records");
            }
        }
    }
}
