package keylane.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.WakeupException;

/** Consuming without the help of a group, apart from where offsets start. */
final class ConsumeChecks {
    private final Clients clients;

    ConsumeChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("consume");
        checks.add("from the beginning and from the end", this::beginningAndEnd);
        checks.add("seek, seekToBeginning, seekToEnd, position", this::seek);
        checks.add("beginningOffsets and endOffsets", this::edges);
        checks.add("offsetsForTimes", this::offsetsForTimes);
        checks.add("currentLag", this::currentLag);
        checks.add("pause and resume", this::pause);
        checks.add("max.poll.records", this::maxPollRecords);
        checks.add("a record larger than max.partition.fetch.bytes arrives", this::smallFetch);
        checks.add("small fetch.max.bytes over many partitions", this::smallFetchManyPartitions);
        checks.add("a waiting fetch is answered by a new record", this::longPoll);
        checks.add("fetch.min.bytes waits for more", this::fetchMinBytes);
        checks.add("read_committed", this::readCommitted);
        checks.add("partitionsFor and listTopics", this::metadata);
        checks.add("pattern subscription finds new topics", this::pattern);
        checks.add("subscription creates a missing topic", this::autoCreate);
        checks.add("no topic is created with allow.auto.create.topics=false", this::noAutoCreate);
        checks.add("invalid topic name", this::invalidTopic);
        checks.add("wakeup", this::wakeup);
        checks.area("offset reset");
        checks.add("earliest", () -> reset("earliest", List.of("0", "1", "2")));
        checks.add("latest", this::resetLatest);
        checks.add("none without a committed offset", this::resetNone);
        checks.add("by_duration", this::resetByDuration);
        checks.add("out of range, none", this::outOfRangeNone);
        checks.add("out of range, earliest", this::outOfRangeEarliest);
        checks.add("below the start after deleteRecords, earliest", this::belowStart);
    }

    private static TopicPartition first(String topic) {
        return new TopicPartition(topic, 0);
    }

    private static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).toList();
    }

    private String topicWith(int records) throws Exception {
        String topic = clients.topic(1);
        clients.send(topic, 0, 0, records);
        return topic;
    }

    private void beginningAndEnd() throws Exception {
        String topic = topicWith(3);
        TopicPartition partition = first(topic);
        try (var consumer = clients.consumer(null)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            Expect.equal(List.of("0", "1", "2"), values(Clients.take(consumer, 3, 20)), "all");
            consumer.seekToEnd(List.of(partition));
            Expect.equal(3L, consumer.position(partition), "end");
            clients.send(topic, 0, 3, 2);
            Expect.equal(List.of("3", "4"), values(Clients.take(consumer, 2, 20)), "new ones");
        }
    }

    private void seek() throws Exception {
        TopicPartition partition = first(topicWith(100));
        try (var consumer = clients.consumer(null, "max.poll.records", "10")) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 57);
            var records = Clients.take(consumer, 1, 20);
            Expect.equal(57L, records.get(0).offset(), "offset after seek");
            Expect.equal("57", records.get(0).value(), "value after seek");
            Expect.equal(57L + records.size(), consumer.position(partition), "position");
            consumer.seekToBeginning(List.of(partition));
            Expect.equal(0L, consumer.position(partition), "beginning");
            consumer.seekToEnd(List.of(partition));
            Expect.equal(100L, consumer.position(partition), "end");
            consumer.seek(partition, 99);
            Expect.equal(List.of("99"), values(Clients.take(consumer, 1, 20)), "last record");
        }
    }

    private void edges() throws Exception {
        String topic = clients.topic(3);
        clients.send(topic, 0, 0, 10);
        clients.send(topic, 2, 0, 4);
        var cut = Map.of(first(topic), RecordsToDelete.beforeOffset(6));
        Expect.get(clients.admin.deleteRecords(cut).all());
        var all = Clients.partitions(topic, 3);
        try (var consumer = clients.consumer(null)) {
            Expect.equal(Map.of(all.get(0), 6L, all.get(1), 0L, all.get(2), 0L),
                consumer.beginningOffsets(all), "beginning");
            Expect.equal(Map.of(all.get(0), 10L, all.get(1), 0L, all.get(2), 4L),
                consumer.endOffsets(all), "end");
        }
    }

    private void offsetsForTimes() throws Exception {
        String topic = clients.topic(2);
        long start = System.currentTimeMillis() - 100_000;
        try (var producer = clients.producer()) {
            for (int number = 0; number < 10; number++) {
                long time = start + number * 1_000L;
                Expect.get(producer.send(new ProducerRecord<>(topic, 0, time, "k", "v" + number)));
            }
        }
        TopicPartition filled = new TopicPartition(topic, 0);
        TopicPartition empty = new TopicPartition(topic, 1);
        try (var consumer = clients.consumer(null)) {
            var exact = consumer.offsetsForTimes(Map.of(filled, start + 3_000, empty, start));
            Expect.equal(3L, exact.get(filled).offset(), "offset of an exact time");
            Expect.equal(start + 3_000, exact.get(filled).timestamp(), "its timestamp");
            Expect.equal(null, exact.get(empty), "empty partition");
            var between = consumer.offsetsForTimes(Map.of(filled, start + 3_001));
            Expect.equal(4L, between.get(filled).offset(), "offset of a time between");
            var before = consumer.offsetsForTimes(Map.of(filled, 0L));
            Expect.equal(0L, before.get(filled).offset(), "offset of a time before all");
            var after = consumer.offsetsForTimes(Map.of(filled, start + 9_001));
            Expect.equal(null, after.get(filled), "time after all");
        }
    }

    private void currentLag() throws Exception {
        TopicPartition partition = first(topicWith(20));
        try (var consumer = clients.consumer(null, "max.poll.records", "5")) {
            consumer.assign(List.of(partition));
            int taken = Clients.take(consumer, 5, 20).size();
            Expect.equal(20L - taken, consumer.currentLag(partition).orElse(-1), "lag");
            Clients.take(consumer, 20 - taken, 20);
            Expect.equal(0L, consumer.currentLag(partition).orElse(-1), "lag at the end");
        }
    }

    private void pause() throws Exception {
        String topic = clients.topic(2);
        clients.send(topic, 0, 0, 10);
        clients.send(topic, 1, 100, 10);
        TopicPartition paused = new TopicPartition(topic, 0);
        try (var consumer = clients.consumer(null)) {
            consumer.assign(Clients.partitions(topic, 2));
            consumer.pause(List.of(paused));
            var records = Clients.take(consumer, 10, 20);
            consumer.poll(Duration.ofMillis(200)).forEach(records::add);
            Expect.that(records.stream().allMatch(record -> record.partition() == 1), "paused");
            Expect.equal(Set.of(paused), consumer.paused(), "paused partitions");
            consumer.resume(List.of(paused));
            records = Clients.take(consumer, 10, 20);
            Expect.that(records.stream().allMatch(record -> record.partition() == 0), "resumed");
        }
    }

    private void maxPollRecords() throws Exception {
        TopicPartition partition = first(topicWith(25));
        try (var consumer = clients.consumer(null, "max.poll.records", "7")) {
            consumer.assign(List.of(partition));
            int total = 0;
            while (total < 25) {
                int count = consumer.poll(Duration.ofSeconds(5)).count();
                Expect.that(count > 0 && count <= 7, "1 to 7 records, got " + count);
                total += count;
            }
        }
    }

    private void smallFetch() throws Exception {
        String topic = clients.topic(1);
        try (var producer = clients.producer()) {
            Expect.get(producer.send(new ProducerRecord<>(topic, "a", "x".repeat(200_000))));
            Expect.get(producer.send(new ProducerRecord<>(topic, "b", "y".repeat(200_000))));
        }
        String[] settings = {"max.partition.fetch.bytes", "1000", "fetch.max.bytes", "1000"};
        try (var consumer = clients.consumer(null, settings)) {
            consumer.assign(List.of(first(topic)));
            var records = Clients.take(consumer, 2, 20);
            Expect.equal(200_000, records.get(1).value().length(), "length");
        }
    }

    private void smallFetchManyPartitions() throws Exception {
        String topic = clients.topic(10);
        for (int partition = 0; partition < 10; partition++) {
            clients.send(topic, partition, 0, 300);
        }
        String[] settings = {"max.partition.fetch.bytes", "1500", "fetch.max.bytes", "4000"};
        try (var consumer = clients.consumer(null, settings)) {
            consumer.assign(Clients.partitions(topic, 10));
            var records = Clients.take(consumer, 3_000, 40);
            Set<String> seen = new HashSet<>();
            records.forEach(record -> seen.add(record.partition() + "/" + record.value()));
            Expect.equal(3_000, seen.size(), "every record once");
            Expect.equal(3_000, records.size(), "records");
        }
    }

    private void longPoll() throws Exception {
        String topic = topicWith(1);
        try (var consumer = clients.consumer(null, "fetch.max.wait.ms", "5000")) {
            consumer.assign(List.of(first(topic)));
            Clients.take(consumer, 1, 20);
            // The next fetch is on its way before the record is.
            consumer.poll(Duration.ofMillis(500));
            long startedNanos = System.nanoTime();
            clients.send(topic, 0, 1, 1);
            Expect.equal(List.of("1"), values(Clients.take(consumer, 1, 20)), "record");
            long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedNanos);
            Expect.that(tookMs < 3_000, "answered at once, took " + tookMs + " ms");
        }
    }

    private void fetchMinBytes() throws Exception {
        String topic = clients.topic(1);
        String[] settings = {"fetch.min.bytes", "50000", "fetch.max.wait.ms", "1500"};
        try (var consumer = clients.consumer(null, settings)) {
            consumer.assign(List.of(first(topic)));
            Expect.equal(0L, consumer.position(first(topic)), "position");
            consumer.poll(Duration.ofMillis(200));
            long startedNanos = System.nanoTime();
            clients.send(topic, 0, 0, 1);
            Clients.take(consumer, 1, 20);
            long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedNanos);
            Expect.that(tookMs > 300, "one small record has to wait, took " + tookMs + " ms");
        }
    }

    private void readCommitted() throws Exception {
        TopicPartition partition = first(topicWith(5));
        try (var consumer = clients.consumer(null, "isolation.level", "read_committed")) {
            consumer.assign(List.of(partition));
            Expect.equal(5, Clients.take(consumer, 5, 20).size(), "records");
            Expect.equal(Map.of(partition, 5L), consumer.endOffsets(List.of(partition)), "end");
        }
    }

    private void metadata() throws Exception {
        String topic = clients.topic(4);
        try (var consumer = clients.consumer(null)) {
            var partitions = consumer.partitionsFor(topic);
            Expect.equal(4, partitions.size(), "partitions");
            for (var partition : partitions) {
                Expect.that(partition.leader() != null, "has a leader");
                Expect.that(partition.replicas().length > 0, "has replicas");
                Expect.that(partition.inSyncReplicas().length > 0, "has in-sync replicas");
            }
            Expect.equal(4, consumer.listTopics().get(topic).size(), "partitions in the list");
        }
    }

    private void pattern() throws Exception {
        String prefix = Clients.unique("pattern");
        clients.createTopic(prefix + "-one", 1);
        clients.createTopic("not-" + prefix, 1);
        clients.send(prefix + "-one", 0, 1, 1);
        clients.send("not-" + prefix, 0, 99, 1);
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group, "metadata.max.age.ms", "500")) {
            consumer.subscribe(Pattern.compile(prefix + "-.*"));
            Expect.equal(List.of("1"), values(Clients.take(consumer, 1, 20)), "first topic");
            // The rebalance for the second topic starts again from what is committed.
            consumer.commitSync();
            clients.createTopic(prefix + "-two", 1);
            clients.send(prefix + "-two", 0, 2, 1);
            Expect.equal(List.of("2"), values(Clients.take(consumer, 1, 20)), "second topic");
        }
    }

    private void autoCreate() throws Exception {
        String topic = Clients.unique("auto");
        String[] settings = {"metadata.max.age.ms", "300"};
        try (var consumer = clients.consumer(Clients.unique("group"), settings)) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
            while (consumer.assignment().isEmpty()) {
                Expect.that(System.nanoTime() < deadline, "the topic is created and assigned");
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }

    private void noAutoCreate() throws Exception {
        String topic = Clients.unique("never");
        try (var consumer = clients.consumer(null, "allow.auto.create.topics", "false")) {
            consumer.assign(List.of(first(topic)));
            consumer.poll(Duration.ofMillis(500));
        }
        var names = Expect.get(clients.admin.listTopics().names());
        Expect.that(!names.contains(topic), "the topic does not exist");
    }

    private void invalidTopic() {
        try (var consumer = clients.consumer(Clients.unique("group"))) {
            consumer.subscribe(List.of("bad name!"));
            Expect.thrown(InvalidTopicException.class, () -> {
                for (int attempt = 0; attempt < 50; attempt++) {
                    consumer.poll(Duration.ofMillis(100));
                }
            });
        }
    }

    private void wakeup() throws Exception {
        String topic = clients.topic(1);
        try (var consumer = clients.consumer(null)) {
            consumer.assign(List.of(first(topic)));
            CompletableFuture<Void> waker = CompletableFuture.runAsync(consumer::wakeup,
                CompletableFuture.delayedExecutor(300, TimeUnit.MILLISECONDS));
            Expect.thrown(WakeupException.class, () -> consumer.poll(Duration.ofSeconds(20)));
            Expect.get(waker);
            clients.send(topic, 0, 0, 1);
            Expect.equal(1, Clients.take(consumer, 1, 20).size(), "usable afterwards");
        }
    }

    private void reset(String policy, List<String> expected) throws Exception {
        String topic = topicWith(3);
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group, "auto.offset.reset", policy)) {
            consumer.subscribe(List.of(topic));
            Expect.equal(expected, values(Clients.take(consumer, expected.size(), 20)), "records");
        }
    }

    private void resetLatest() throws Exception {
        String topic = topicWith(3);
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group, "auto.offset.reset", "latest")) {
            consumer.subscribe(List.of(topic));
            pollUntilPositioned(consumer, topic);
            clients.send(topic, 0, 3, 1);
            Expect.equal(List.of("3"), values(Clients.take(consumer, 1, 20)), "records");
        }
    }

    private static void pollUntilPositioned(Consumer<String, String> consumer, String topic) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (consumer.assignment().isEmpty()) {
            Expect.that(System.nanoTime() < deadline, "an assignment");
            Expect.that(consumer.poll(Duration.ofMillis(100)).isEmpty(), "no record before");
        }
        consumer.position(first(topic));
    }

    private void resetNone() throws Exception {
        String topic = topicWith(3);
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group, "auto.offset.reset", "none")) {
            consumer.subscribe(List.of(topic));
            Expect.thrown(NoOffsetForPartitionException.class, () -> {
                for (int attempt = 0; attempt < 50; attempt++) {
                    consumer.poll(Duration.ofMillis(200));
                }
            });
        }
    }

    private void resetByDuration() throws Exception {
        String topic = clients.topic(1);
        long now = System.currentTimeMillis();
        try (var producer = clients.producer()) {
            for (int minutes : List.of(180, 90, 30, 10)) {
                long time = now - minutes * 60_000L;
                String value = minutes + " minutes";
                Expect.get(producer.send(new ProducerRecord<>(topic, 0, time, "k", value)));
            }
        }
        String group = Clients.unique("group");
        try (var consumer = clients.consumer(group, "auto.offset.reset", "by_duration:PT1H")) {
            consumer.subscribe(List.of(topic));
            Expect.equal(List.of("30 minutes", "10 minutes"),
                values(Clients.take(consumer, 2, 20)), "records of the last hour");
        }
    }

    private void outOfRangeNone() throws Exception {
        TopicPartition partition = first(topicWith(3));
        try (var consumer = clients.consumer(null, "auto.offset.reset", "none")) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 50);
            Expect.thrown(OffsetOutOfRangeException.class, () -> {
                for (int attempt = 0; attempt < 50; attempt++) {
                    consumer.poll(Duration.ofMillis(200));
                }
            });
        }
    }

    private void outOfRangeEarliest() throws Exception {
        TopicPartition partition = first(topicWith(3));
        try (var consumer = clients.consumer(null)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 50);
            Expect.equal(List.of("0", "1", "2"), values(Clients.take(consumer, 3, 20)), "records");
        }
    }

    private void belowStart() throws Exception {
        String topic = topicWith(10);
        TopicPartition partition = first(topic);
        var cut = Map.of(partition, RecordsToDelete.beforeOffset(7));
        Expect.get(clients.admin.deleteRecords(cut).all());
        try (var consumer = clients.consumer(null)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 2);
            List<String> expected = new ArrayList<>(List.of("7", "8", "9"));
            Expect.equal(expected, values(Clients.take(consumer, 3, 20)), "records");
        }
    }
}
