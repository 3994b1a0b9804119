package keylane.compat;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/**
 * A member of a keyed group as applications write it: it polls, handles one record after the other
 * and then commits, unless the client does that by itself. When its handler throws, it seeks back
 * to what is not handled yet.
 */
final class KeyedMember implements AutoCloseable {
    interface Handler {
        void handle(KeyedMember member, ConsumerRecord<String, String> record) throws Exception;
    }

    /** A handler's way to say that a record failed. */
    static final class Failure extends Exception {
        private static final long serialVersionUID = 1L;

        Failure() {
            super("as the check wants");
        }
    }

    private static final Duration POLL = Duration.ofMillis(50);
    private static final long CLOSE_MS_MAX = 10_000;

    final String name;
    private final Consumer<String, String> consumer;
    private final Sentinel sentinel;
    private final Handler handler;
    private final boolean commits;
    private final Thread thread;
    private boolean owesCommit = false;
    private long lastBeginNanos = 0;
    private volatile boolean stopped = false;

    volatile Throwable failure;
    volatile int lanes = 0;
    final AtomicInteger handled = new AtomicInteger();
    private final AtomicLong longestPauseNanos = new AtomicLong();

    KeyedMember(String name, Consumer<String, String> consumer, boolean commits, KeyedGroup group,
        Handler handler) {
        this.name = name;
        this.consumer = consumer;
        this.commits = commits;
        this.sentinel = group.sentinel;
        this.handler = handler;
        this.thread = new Thread(() -> work(group.topic), name + " of " + group.id);
        this.thread.setDaemon(true);
        this.thread.start();
    }

    private void work(String topic) {
        try {
            consumer.subscribe(List.of(topic), new Listener());
            // A cooperative member cannot commit while it rejoins; what it did would come again.
            while (!stopped || (commits && owesCommit)) {
                ConsumerRecords<String, String> polled = consumer.poll(POLL);
                lanes = consumer.assignment().size();
                handleAll(polled);
                owesCommit |= !polled.isEmpty();
                commit();
            }
        } catch (Throwable error) {
            failure = error;
        } finally {
            consumer.close();
        }
    }

    private void handleAll(ConsumerRecords<String, String> polled) throws Exception {
        for (TopicPartition lane : polled.partitions()) {
            for (ConsumerRecord<String, String> record : polled.records(lane)) {
                // A member that is told to stop leaves the rest to the others, as Spring does.
                if (stopped || !handle(record)) {
                    seekBack(polled, record);
                    return;
                }
            }
        }
    }

    /** Everything from this record on, and of the lanes behind it, is to be polled again. */
    private void seekBack(ConsumerRecords<String, String> polled,
        ConsumerRecord<String, String> failed) {
        TopicPartition failedLane = new TopicPartition(failed.topic(), failed.partition());
        boolean isBehind = false;
        for (TopicPartition lane : polled.partitions()) {
            if (lane.equals(failedLane)) {
                isBehind = true;
                consumer.seek(lane, failed.offset());
            } else if (isBehind) {
                consumer.seek(lane, polled.records(lane).get(0).offset());
            }
        }
    }

    private boolean handle(ConsumerRecord<String, String> record) throws Exception {
        String key = KeyedGroup.keyOf(record);
        int number = KeyedGroup.numberOf(record);
        notePause();
        sentinel.begin(name, key, number);
        try {
            handler.handle(this, record);
        } catch (Failure error) {
            sentinel.fail(key);
            return false;
        }
        sentinel.end(name, key, number);
        handled.incrementAndGet();
        return true;
    }

    private void notePause() {
        long now = System.nanoTime();
        long before = lastBeginNanos == 0 ? now : lastBeginNanos;
        lastBeginNanos = now;
        longestPauseNanos.accumulateAndGet(now - before, Math::max);
    }

    private void commit() {
        if (!commits || !owesCommit) {
            return;
        }
        try {
            consumer.commitSync();
            owesCommit = false;
        } catch (RebalanceInProgressException error) {
            // A cooperative member polls and handles while it rejoins. What is then taken away is
            // committed when it is revoked, the rest after the next poll.
        }
    }

    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> given) {
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> taken) {
            commit();
        }
    }

    void expectLanes(int count) throws InterruptedException {
        Expect.eventually(() -> count + " lanes for " + this, 25, () -> lanes == count);
    }

    void expectHandled(int count) throws InterruptedException {
        Expect.eventually(() -> count + " records at " + this, 25, () -> handled.get() >= count);
    }

    /** The longest time between two records that this member began must be below a limit. */
    void expectPauseBelow(long milliseconds) {
        long longest = TimeUnit.NANOSECONDS.toMillis(longestPauseNanos.get());
        Expect.that(longest < milliseconds, name + " had nothing for " + longest + " ms");
    }

    void stopSoon() {
        stopped = true;
    }

    @Override
    public void close() throws InterruptedException {
        stopSoon();
        thread.join(CLOSE_MS_MAX);
    }

    @Override
    public String toString() {
        return String.format(Locale.ROOT, "%s (%d lanes, %d handled%s)", name, lanes, handled.get(),
            failure == null ? "" : ", failed with " + failure);
    }
}
