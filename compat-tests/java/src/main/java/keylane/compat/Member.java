package keylane.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/** A member of a group on a thread of its own: it polls, keeps what it got and commits it. */
final class Member implements AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(50);

    /** Where all members of a test put their records. */
    private final Queue<ConsumerRecord<String, String>> records;
    private final Consumer<String, String> consumer;
    private final Thread thread;
    private final Set<TopicPartition> owned = new HashSet<>();
    /** By default dynamic members leave the group when they close, static ones stay in it. */
    private volatile GroupMembershipOperation onClose = GroupMembershipOperation.DEFAULT;
    private volatile boolean stopped = false;

    volatile Set<TopicPartition> assignment = Set.of();
    volatile Throwable failure;
    /** Partitions that were taken away so far, and calls in which any were given. */
    final AtomicInteger partitionsRevoked = new AtomicInteger();
    final AtomicInteger assignments = new AtomicInteger();

    Member(Clients clients, String group, List<String> topics, String... settings) {
        this(clients, new ConcurrentLinkedQueue<>(), group, topics, settings);
    }

    Member(Clients clients, Queue<ConsumerRecord<String, String>> records, String group,
        List<String> topics, String... settings) {
        this.records = records;
        this.consumer = clients.consumer(group, settings);
        this.thread = new Thread(() -> work(topics), "member of " + group);
        this.thread.setDaemon(true);
        this.thread.start();
    }

    private void work(List<String> topics) {
        try {
            consumer.subscribe(topics, new Listener());
            while (!stopped) {
                var polled = consumer.poll(POLL);
                polled.forEach(records::add);
                if (!polled.isEmpty()) {
                    commit();
                }
            }
        } catch (Throwable error) {
            failure = error;
        } finally {
            consumer.close(CloseOptions.groupMembershipOperation(onClose));
        }
    }

    private void commit() {
        try {
            consumer.commitSync();
        } catch (RebalanceInProgressException error) {
            // What was taken away is committed when it is revoked, the rest after the next poll.
        }
    }

    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            owned.addAll(partitions);
            // Whoever sees the new assignment also sees that it was counted.
            assignments.incrementAndGet();
            assignment = Set.copyOf(owned);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            commit();
            forget(partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            forget(partitions);
        }

        private void forget(Collection<TopicPartition> partitions) {
            partitions.forEach(owned::remove);
            assignment = Set.copyOf(owned);
            partitionsRevoked.addAndGet(partitions.size());
        }
    }

    void expectPartitions(int count) throws InterruptedException {
        Expect.eventually(() -> count + " partitions, has " + assignment + describeFailure(), 25,
            () -> assignment.size() == count);
    }

    private String describeFailure() {
        return failure == null ? "" : ", failed with " + failure;
    }

    /** Stops as after a crash or restart: the broker is not told. */
    void stopWithoutLeaving() throws InterruptedException {
        onClose = GroupMembershipOperation.REMAIN_IN_GROUP;
        close();
    }

    /** Leaves for good, even as a static member. */
    void leave() throws InterruptedException {
        onClose = GroupMembershipOperation.LEAVE_GROUP;
        close();
    }

    @Override
    public void close() throws InterruptedException {
        stopped = true;
        thread.join(20_000);
    }

    /** Waits until no partition has two owners and each member has its share, in any order. */
    static void expectShares(List<Member> members, Integer... shares) throws InterruptedException {
        List<Integer> wanted = List.of(shares);
        Expect.eventually(() -> "shares " + wanted + " of " + describe(members), 25, () -> {
            Set<TopicPartition> all = new HashSet<>();
            List<Integer> sizes = new ArrayList<>();
            for (Member member : members) {
                Set<TopicPartition> part = member.assignment;
                all.addAll(part);
                sizes.add(part.size());
            }
            sizes.sort(null);
            int total = sizes.stream().mapToInt(Integer::intValue).sum();
            return all.size() == total && sizes.equals(wanted);
        });
        for (Member member : members) {
            Expect.equal(null, member.failure, "failure of a member");
        }
    }

    private static String describe(List<Member> members) {
        StringBuilder text = new StringBuilder();
        for (Member member : members) {
            text.append(member.assignment).append(member.describeFailure()).append(' ');
        }
        return text.toString();
    }
}
