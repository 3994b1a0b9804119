package keylane.compat;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;

/** Producing, each time checked by reading back what was sent. */
final class ProduceChecks {
    private static final int BATCH_RECORDS = 200;

    private final Clients clients;

    ProduceChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("produce");
        for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            for (String acks : List.of("0", "1", "all")) {
                checks.add(compression + ", acks=" + acks,
                    () -> roundTrip(compression, acks, false));
            }
            checks.add(compression + ", idempotent", () -> roundTrip(compression, "all", true));
        }
        checks.add("record of 900 kB", () -> bigRecord("none"));
        checks.add("record of 900 kB, zstd", () -> bigRecord("zstd"));
        checks.add("too large record is refused", this::tooLargeRecord);
        checks.add("too large batch is split by the client, idempotent", () -> splitBatch(true));
        checks.add("too large batch is split by the client", () -> splitBatch(false));
        checks.add("headers, repeated and null", this::headers);
        checks.add("null and empty keys and values", this::nulls);
        checks.add("explicit timestamps", this::timestamps);
        checks.add("LogAppendTime", this::logAppendTime);
        checks.add("timestamp too far in the future is refused", this::futureTimestamp);
        checks.add("50 partitions, by key", this::manyPartitions);
        checks.add("order with five requests in flight", this::order);
        checks.add("offsets count up by one", this::offsets);
        checks.add("topic is created by the first send", this::autoCreate);
        checks.add("invalid topic name", this::invalidTopic);
        checks.add("one producer, many topics", this::manyTopics);
    }

    private void roundTrip(String compression, String acks, boolean idempotent) throws Exception {
        String topic = clients.topic(1);
        String[] settings = {"compression.type", compression, "acks", acks, "linger.ms", "20",
            "enable.idempotence", Boolean.toString(idempotent)};
        try (var producer = clients.producer(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < BATCH_RECORDS; number++) {
                sent.add(producer.send(new ProducerRecord<>(topic, "key" + number, text(number))));
            }
            producer.flush();
            for (int number = 0; number < BATCH_RECORDS; number++) {
                RecordMetadata metadata = Expect.get(sent.get(number));
                // Without an answer from the broker the client cannot know the offset.
                long offset = acks.equals("0") ? -1 : number;
                Expect.equal(offset, metadata.offset(), "offset");
            }
        }
        var records = clients.readAll(topic, 1, BATCH_RECORDS);
        Expect.equal(BATCH_RECORDS, records.size(), "records");
        for (int number = 0; number < BATCH_RECORDS; number++) {
            var record = records.get(number);
            Expect.equal((long) number, record.offset(), "offset");
            Expect.equal("key" + number, record.key(), "key");
            Expect.equal(text(number), record.value(), "value");
        }
    }

    private static String text(int number) {
        return "value " + number + " " + "abc".repeat(number % 50);
    }

    /** Letters that do not compress to a fraction of their size. */
    private static String noise(int length, int seed) {
        Random random = new Random(seed);
        StringBuilder builder = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            builder.append((char) ('!' + random.nextInt(90)));
        }
        return builder.toString();
    }

    private void bigRecord(String compression) throws Exception {
        String topic = clients.topic(1);
        String value = noise(900_000, 1);
        try (var producer = clients.producer("compression.type", compression)) {
            Expect.get(producer.send(new ProducerRecord<>(topic, "big", value)));
        }
        Expect.that(value.equals(clients.readAll(topic, 1, 1).get(0).value()), "the same value");
    }

    private void tooLargeRecord() throws Exception {
        String topic = clients.topic(1);
        try (var producer = clients.producer("max.request.size", "10000000")) {
            var record = new ProducerRecord<>(topic, "big", noise(1_100_000, 2));
            Expect.failure(RecordTooLargeException.class, producer.send(record));
            // The producer and the connection stay usable.
            Expect.get(producer.send(new ProducerRecord<>(topic, "small", "small")));
        }
        Expect.equal("small", clients.readAll(topic, 1, 1).get(0).value(), "value");
    }

    /** MESSAGE_TOO_LARGE for a batch of several records makes the client send it in halves. */
    private void splitBatch(boolean idempotent) throws Exception {
        String topic = clients.topic(1);
        String[] settings = {"batch.size", "4000000", "linger.ms", "1000",
            "max.request.size", "10000000", "enable.idempotence", Boolean.toString(idempotent)};
        try (var producer = clients.producer(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < 24; number++) {
                String key = Integer.toString(number);
                sent.add(producer.send(new ProducerRecord<>(topic, key, noise(100_000, number))));
            }
            producer.flush();
            for (var future : sent) {
                Expect.get(future);
            }
            double splits = producer.metrics().values().stream()
                .filter(metric -> metric.metricName().name().equals("batch-split-total"))
                .mapToDouble(metric -> (Double) metric.metricValue()).sum();
            Expect.that(splits > 0, "the client had to split");
        }
        List<String> expected = new ArrayList<>();
        List<String> found = new ArrayList<>();
        for (var record : clients.readAll(topic, 1, 24)) {
            expected.add(Integer.toString(expected.size()));
            found.add(record.key());
        }
        if (!idempotent) {
            // With several requests in flight only sequence numbers keep the order.
            expected.sort(null);
            found.sort(null);
        }
        Expect.equal(expected, found, "keys");
    }

    private void headers() throws Exception {
        String topic = clients.topic(1);
        try (var producer = clients.producer()) {
            var record = new ProducerRecord<>(topic, "key", "value");
            record.headers().add("a", "first".getBytes(StandardCharsets.UTF_8));
            record.headers().add("a", "second".getBytes(StandardCharsets.UTF_8));
            record.headers().add("ü", new byte[0]);
            record.headers().add(new RecordHeader("none", (byte[]) null));
            Expect.get(producer.send(record));
        }
        List<String> found = new ArrayList<>();
        for (var header : clients.readAll(topic, 1, 1).get(0).headers()) {
            byte[] value = header.value();
            String text = value == null ? "null" : new String(value, StandardCharsets.UTF_8);
            found.add(header.key() + "=" + text);
        }
        Expect.equal(List.of("a=first", "a=second", "ü=", "none=null"), found, "headers");
    }

    private void nulls() throws Exception {
        String topic = clients.topic(1);
        try (var producer = clients.producer()) {
            Expect.get(producer.send(new ProducerRecord<>(topic, null, "value")));
            Expect.get(producer.send(new ProducerRecord<>(topic, "key", null)));
            Expect.get(producer.send(new ProducerRecord<>(topic, null, null)));
            Expect.get(producer.send(new ProducerRecord<>(topic, "", "")));
        }
        List<String> found = new ArrayList<>();
        for (var record : clients.readAll(topic, 1, 4)) {
            found.add(record.key() + "/" + record.value());
        }
        Expect.equal(List.of("null/value", "key/null", "null/null", "/"), found, "records");
    }

    private void timestamps() throws Exception {
        String topic = clients.topic(1);
        long now = System.currentTimeMillis();
        List<Long> times = List.of(now - 3_600_000, now, now - 86_400_000, now + 60_000);
        try (var producer = clients.producer()) {
            for (long time : times) {
                var sent = producer.send(new ProducerRecord<>(topic, 0, time, "key", "value"));
                Expect.equal(time, Expect.get(sent).timestamp(), "timestamp of the answer");
            }
        }
        List<Long> found = new ArrayList<>();
        for (var record : clients.readAll(topic, 1, times.size())) {
            Expect.equal(TimestampType.CREATE_TIME, record.timestampType(), "type");
            found.add(record.timestamp());
        }
        Expect.equal(times, found, "timestamps");
    }

    private void logAppendTime() throws Exception {
        String topic = clients.topic(1, "message.timestamp.type", "LogAppendTime");
        long before = System.currentTimeMillis();
        try (var producer = clients.producer("compression.type", "lz4")) {
            var sent = producer.send(new ProducerRecord<>(topic, 0, 1_000L, "key", "value"));
            Expect.that(Expect.get(sent).timestamp() >= before, "the answer has the broker's time");
        }
        var record = clients.readAll(topic, 1, 1).get(0);
        Expect.equal(TimestampType.LOG_APPEND_TIME, record.timestampType(), "type");
        Expect.that(record.timestamp() >= before, "the record has the broker's time");
    }

    private void futureTimestamp() throws Exception {
        // message.timestamp.after.max.ms is one hour by default.
        String topic = clients.topic(1);
        long time = System.currentTimeMillis() + 7_200_000;
        try (var producer = clients.producer()) {
            var sent = producer.send(new ProducerRecord<>(topic, 0, time, "key", "value"));
            Expect.failure(InvalidTimestampException.class, sent);
        }
    }

    private void manyPartitions() throws Exception {
        String topic = clients.topic(50);
        Map<String, Integer> partitionOfKey = new HashMap<>();
        try (var producer = clients.producer("linger.ms", "5")) {
            Expect.equal(50, producer.partitionsFor(topic).size(), "partitions");
            Map<String, Future<RecordMetadata>> sent = new HashMap<>();
            for (int number = 0; number < 500; number++) {
                String key = "key" + number;
                sent.put(key, producer.send(new ProducerRecord<>(topic, key, key)));
            }
            for (var entry : sent.entrySet()) {
                partitionOfKey.put(entry.getKey(), Expect.get(entry.getValue()).partition());
            }
        }
        Set<Integer> used = new HashSet<>();
        var records = clients.readAll(topic, 50, 500);
        Expect.equal(500, records.size(), "records");
        for (var record : records) {
            used.add(record.partition());
            Expect.equal(partitionOfKey.get(record.key()), record.partition(), record.key());
        }
        Expect.that(used.size() > 40, "the keys are spread over partitions, used " + used.size());
    }

    private void order() throws Exception {
        String topic = clients.topic(1);
        String[] settings = {"linger.ms", "0", "batch.size", "200",
            "max.in.flight.requests.per.connection", "5"};
        try (var producer = clients.producer(settings)) {
            for (int number = 0; number < 2_000; number++) {
                producer.send(new ProducerRecord<>(topic, null, Integer.toString(number)));
            }
        }
        int number = 0;
        for (var record : clients.readAll(topic, 1, 2_000)) {
            Expect.equal(Integer.toString(number++), record.value(), "order");
        }
    }

    private void offsets() throws Exception {
        String topic = clients.topic(2);
        try (var producer = clients.producer()) {
            for (int number = 0; number < 5; number++) {
                for (int partition = 0; partition < 2; partition++) {
                    var sent = producer.send(new ProducerRecord<>(topic, partition, "k", "v"));
                    RecordMetadata metadata = Expect.get(sent);
                    Expect.equal((long) number, metadata.offset(), "offset");
                    Expect.equal(partition, metadata.partition(), "partition");
                }
            }
        }
    }

    private void autoCreate() throws Exception {
        String topic = Clients.unique("auto");
        try (var producer = clients.producer()) {
            var sent = producer.send(new ProducerRecord<>(topic, "k", "v"));
            Expect.equal(0L, Expect.get(sent).offset(), "offset");
            Expect.equal(1, producer.partitionsFor(topic).size(), "num.partitions");
        }
        Expect.equal(1, clients.readAll(topic, 1, 1).size(), "records");
    }

    private void invalidTopic() {
        try (var producer = clients.producer("max.block.ms", "5000")) {
            var record = new ProducerRecord<>("bad name!", "k", "v");
            // The client passes some errors through the future and some through send itself.
            Expect.thrown(InvalidTopicException.class, () -> Expect.get(producer.send(record)));
        }
    }

    private void manyTopics() throws Exception {
        List<String> topics = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            topics.add(clients.topic(3));
        }
        try (var producer = clients.producer("linger.ms", "10")) {
            for (int number = 0; number < 300; number++) {
                String key = Integer.toString(number);
                producer.send(new ProducerRecord<>(topics.get(number % 5), key, key));
            }
        }
        List<TopicPartition> all = new ArrayList<>();
        topics.forEach(topic -> all.addAll(Clients.partitions(topic, 3)));
        try (var consumer = clients.consumer(null)) {
            consumer.assign(all);
            List<ConsumerRecord<String, String>> records = Clients.take(consumer, 300, 20);
            Expect.equal(300, records.size(), "records");
            Expect.that(consumer.poll(Duration.ofMillis(100)).isEmpty(), "no further record");
        }
    }
}
