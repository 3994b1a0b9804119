package keylane.compat;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.OffsetMetadataTooLarge;

/** Committed offsets of classic consumer groups, from within the group and without membership. */
final class CommitChecks {
    private final Clients clients;

    CommitChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("commit");
        checks.add("resume after a restart of the consumer", this::resume);
        checks.add("commitSync and committed with metadata", this::commitSync);
        checks.add("commitAsync with a callback", this::commitAsync);
        checks.add("assign with a group id commits without membership", this::assignCommit);
        checks.add("by a member that was removed fails", this::commitAfterRemoval);
        checks.add("too much metadata is refused", this::tooMuchMetadata);
        checks.add("many partitions at once", this::manyPartitions);
        checks.add("auto commit", this::autoCommit);
    }

    private void resume() throws Exception {
        String topic = clients.topic(1);
        clients.send(topic, 0, 0, 10);
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group, "max.poll.records", "4")) {
            consumer.subscribe(List.of(topic));
            Expect.equal(4, Clients.take(consumer, 4, 20).size(), "records");
            consumer.commitSync();
        }
        try (var consumer = clients.consumer(group)) {
            consumer.subscribe(List.of(topic));
            var records = Clients.take(consumer, 6, 20);
            Expect.equal("4", records.get(0).value(), "first record after the restart");
            Expect.equal(6, records.size(), "records");
        }
    }

    private void commitSync() throws Exception {
        String topic = clients.topic(2);
        String group = Clients.unique("group");
        var all = Clients.partitions(topic, 2);
        var offset = new OffsetAndMetadata(42, Optional.of(0), "a note, ünïcode");
        try (var consumer = clients.consumer(group)) {
            consumer.subscribe(List.of(topic));
            waitForAssignment(consumer, 2);
            consumer.commitSync(Map.of(all.get(0), offset));
            var committed = consumer.committed(Set.copyOf(all));
            Expect.equal(offset, committed.get(all.get(0)), "committed");
            Expect.equal(null, committed.get(all.get(1)), "not committed");
        }
        try (var consumer = clients.consumer(group)) {
            var committed = consumer.committed(Set.of(all.get(0)));
            Expect.equal(offset, committed.get(all.get(0)), "committed, for another consumer");
        }
    }

    private static void waitForAssignment(Consumer<String, String> consumer, int count) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (consumer.assignment().size() != count) {
            Expect.that(System.nanoTime() < deadline, "an assignment of " + count);
            consumer.poll(Duration.ofMillis(100));
        }
    }

    private void commitAsync() throws Exception {
        String topic = clients.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (var consumer = clients.consumer(Clients.unique("group"))) {
            consumer.subscribe(List.of(topic));
            waitForAssignment(consumer, 1);
            AtomicReference<Object> answer = new AtomicReference<>();
            var offsets = Map.of(partition, new OffsetAndMetadata(7));
            consumer.commitAsync(offsets,
                (committed, error) -> answer.set(error == null ? committed : error));
            for (int attempt = 0; attempt < 100 && answer.get() == null; attempt++) {
                consumer.poll(Duration.ofMillis(100));
            }
            Expect.equal(offsets, answer.get(), "answer");
            Expect.equal(7L, consumer.committed(Set.of(partition)).get(partition).offset(),
                "committed");
        }
    }

    private void assignCommit() throws Exception {
        String topic = clients.topic(1);
        clients.send(topic, 0, 0, 5);
        TopicPartition partition = new TopicPartition(topic, 0);
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group)) {
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(3)));
        }
        try (var consumer = clients.consumer(group)) {
            consumer.assign(List.of(partition));
            Expect.equal(3L, Clients.take(consumer, 2, 20).get(0).offset(), "first offset");
        }
    }

    private void commitAfterRemoval() throws Exception {
        String topic = clients.topic(1);
        String group = Clients.unique("group");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (var consumer = clients.consumer(group, "heartbeat.interval.ms", "8000")) {
            consumer.subscribe(List.of(topic));
            waitForAssignment(consumer, 1);
            var all = new RemoveMembersFromConsumerGroupOptions();
            Expect.get(clients.admin.removeMembersFromConsumerGroup(group, all).all());
            Expect.thrown(CommitFailedException.class,
                () -> consumer.commitSync(Map.of(partition, new OffsetAndMetadata(1))));
            // It comes back by itself.
            waitForAssignment(consumer, 1);
        }
    }

    private void tooMuchMetadata() throws Exception {
        String topic = clients.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (var consumer = clients.consumer(Clients.unique("group"))) {
            consumer.assign(List.of(partition));
            var offset = new OffsetAndMetadata(1, "x".repeat(5_000));
            Expect.thrown(OffsetMetadataTooLarge.class,
                () -> consumer.commitSync(Map.of(partition, offset)));
        }
    }

    private void manyPartitions() throws Exception {
        String topic = clients.topic(100);
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group)) {
            consumer.subscribe(List.of(topic));
            waitForAssignment(consumer, 100);
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (TopicPartition partition : Clients.partitions(topic, 100)) {
                offsets.put(partition, new OffsetAndMetadata(partition.partition()));
            }
            consumer.commitSync(offsets);
            Expect.equal(offsets, consumer.committed(offsets.keySet()), "committed");
        }
    }

    private void autoCommit() throws Exception {
        String topic = clients.topic(1);
        clients.send(topic, 0, 0, 5);
        TopicPartition partition = new TopicPartition(topic, 0);
        String[] settings = {"enable.auto.commit", "true", "auto.commit.interval.ms", "100"};
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group, settings)) {
            consumer.subscribe(List.of(topic));
            Clients.take(consumer, 5, 20);
        }
        try (var consumer = clients.consumer(group)) {
            var committed = consumer.committed(Set.of(partition));
            Expect.equal(5L, committed.get(partition).offset(), "committed by close");
        }
    }
}
