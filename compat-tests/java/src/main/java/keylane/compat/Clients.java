package keylane.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Clients of the broker under test, and names that no other run has used. */
final class Clients implements AutoCloseable {
    private static final AtomicInteger COUNT = new AtomicInteger();
    private static final String RUN = Long.toString(System.currentTimeMillis(), 36)
        + Long.toString(ProcessHandle.current().pid(), 36);

    final String bootstrap;
    /** One for all checks, it may be used by many threads. */
    final Admin admin;

    /** Where the node is that leads, for checks that write requests themselves. */
    static String leader(String bootstrap) {
        String leader = System.getenv("COMPAT_LEADER");
        return leader == null || leader.isEmpty() ? bootstrap : leader;
    }

    /** Each node of a cluster has a replica of every partition. */
    static int nodes() {
        String nodes = System.getenv("COMPAT_NODES");
        return nodes == null || nodes.isEmpty() ? 1 : Integer.parseInt(nodes);
    }

    Clients(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    /** Without a broker every check would have to run out of time. */
    void requireBroker() throws Exception {
        Expect.get(admin.describeCluster(new DescribeClusterOptions().timeoutMs(15_000)).nodes());
    }

    static String unique(String what) {
        return "java-" + RUN + "-" + what + "-" + COUNT.incrementAndGet();
    }

    /** A new topic that is ready for use. */
    String topic(int partitions, String... configs) throws Exception {
        String name = unique("topic");
        createTopic(name, partitions, configs);
        return name;
    }

    void createTopic(String name, int partitions, String... configs) throws Exception {
        NewTopic topic = new NewTopic(name, partitions, (short) 1).configs(settings(configs));
        Expect.get(admin.createTopics(List.of(topic)).all());
        // Kafka answers before the partitions can be written to. A producer that is early may lose
        // the race for good, see FINDINGS.md; offsets can be listed once the partitions are there.
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        partitions(name, partitions).forEach(partition -> ends.put(partition, OffsetSpec.latest()));
        Expect.eventually("topic " + name + " is ready", 20, () -> canListOffsets(ends));
    }

    private boolean canListOffsets(Map<TopicPartition, OffsetSpec> ends) {
        try {
            Expect.get(admin.listOffsets(ends).all());
            return true;
        } catch (Exception error) {
            return false;
        }
    }

    Producer<String, String> producer(String... settings) {
        Map<String, Object> all = new HashMap<>(settings(settings));
        all.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
    }

    /** A consumer that commits only when told to and starts at the beginning. */
    Consumer<String, String> consumer(String group, String... settings) {
        Map<String, Object> all = new HashMap<>();
        all.put("enable.auto.commit", "false");
        all.put("auto.offset.reset", "earliest");
        all.put("heartbeat.interval.ms", "200");
        all.put("session.timeout.ms", "10000");
        all.put("group.protocol", "classic");
        if (group != null) {
            all.put("group.id", group);
        }
        all.putAll(settings(settings));
        all.put("bootstrap.servers", bootstrap);
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }

    /** Sends `count` records "from", "from+1", ... to one partition, the value also as the key. */
    void send(String topic, int partition, int from, int count) throws Exception {
        try (var producer = producer("linger.ms", "5")) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = from; number < from + count; number++) {
                String text = Integer.toString(number);
                sent.add(producer.send(new ProducerRecord<>(topic, partition, text, text)));
            }
            for (var future : sent) {
                Expect.get(future);
            }
        }
    }

    /** All records of a topic, of which there must be at least `count`, partition by partition. */
    List<ConsumerRecord<String, String>> readAll(String topic, int partitions, int count) {
        try (var consumer = consumer(null)) {
            consumer.assign(partitions(topic, partitions));
            return take(consumer, count, 20);
        }
    }

    /** Polls until there are at least `count` records. */
    static <K, V> List<ConsumerRecord<K, V>> take(Consumer<K, V> consumer, int count, int seconds) {
        List<ConsumerRecord<K, V>> records = new ArrayList<>();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (records.size() < count) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError(
                    "only " + records.size() + " of " + count + " records in " + seconds + " s");
            }
            consumer.poll(Duration.ofMillis(200)).forEach(records::add);
        }
        return records;
    }

    static List<TopicPartition> partitions(String topic, int count) {
        return IntStream.range(0, count).mapToObj(p -> new TopicPartition(topic, p)).toList();
    }

    static Map<String, String> settings(String... namesAndValues) {
        Map<String, String> all = new HashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            all.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        return all;
    }

    @Override
    public void close() {
        admin.close(Duration.ofSeconds(5));
    }
}
