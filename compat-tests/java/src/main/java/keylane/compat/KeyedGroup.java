package keylane.compat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** A topic in keyed delivery, a group that reads it, and the sentinel that watches its members. */
final class KeyedGroup implements AutoCloseable {
    /** Lane offsets begin here; those of the log are below. */
    static final long LANE_OFFSETS = 1L << 44;

    private static final KeyedMember.Handler NOTHING = (member, record) -> { };

    final Clients clients;
    final String topic;
    final int partitions;
    final String id;
    final Sentinel sentinel = new Sentinel();
    final List<KeyedMember> members = new ArrayList<>();
    private final Producer<String, String> producer;

    /** The broker was started with {@code --keyed 'keyed-*'}. */
    KeyedGroup(Clients clients, int partitions, String... topicConfigs) throws Exception {
        this(clients, "keyed-" + Clients.unique("topic"), partitions, newId());
        clients.createTopic(topic, partitions, topicConfigs);
    }

    /** Some group on a topic that is there. */
    KeyedGroup(Clients clients, String topic, int partitions, String id) {
        this.id = id;
        this.clients = clients;
        this.topic = topic;
        this.partitions = partitions;
        this.producer = clients.producer("linger.ms", "5");
    }

    static String newId() {
        return Clients.unique("keyed-group");
    }

    /** Apache Kafka has no keyed delivery, so its checks are left out there. */
    static boolean isKeylane() {
        return "keylane".equals(System.getenv("COMPAT_BROKER"));
    }

    /** Key names "key-0", "key-1", ... */
    static List<String> keys(int count) {
        return IntStream.range(0, count).mapToObj(number -> "key-" + number).toList();
    }

    /** Records without a key are independent: each is a key of its own to the sentinel. */
    static String keyOf(ConsumerRecord<String, String> record) {
        return record.key() == null ? "none-" + record.value() : record.key();
    }

    static int numberOf(ConsumerRecord<String, String> record) {
        return record.key() == null ? 0 : Integer.parseInt(record.value());
    }

    static boolean is(ConsumerRecord<String, String> record, String key, int number) {
        return key.equals(record.key()) && numberOf(record) == number;
    }

    /** Sends the records `from` to `to` (exclusive) of every key, round by round. */
    void send(List<String> keys, int from, int to) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = from; number < to; number++) {
            for (String key : keys) {
                String value = Integer.toString(number);
                sent.add(producer.send(new ProducerRecord<>(topic, key, value)));
            }
        }
        for (var future : sent) {
            Expect.get(future);
        }
    }

    /** Sends one record of each key again and again until it is closed. */
    final class Flow implements AutoCloseable {
        private final Thread thread;
        private volatile boolean stopped = false;
        private volatile Exception failure;
        private int rounds = 0;
        private final int keyCount;

        private Flow(List<String> keys, long everyMs) {
            keyCount = keys.size();
            thread = new Thread(() -> {
                try {
                    while (!stopped) {
                        send(keys, rounds, rounds + 1);
                        rounds++;
                        Thread.sleep(everyMs);
                    }
                } catch (Exception error) {
                    failure = error;
                }
            }, "flow into " + topic);
            thread.setDaemon(true);
            thread.start();
        }

        /** Stops and tells how many records were sent. */
        int stop() throws Exception {
            close();
            if (failure != null) {
                throw failure;
            }
            return rounds * keyCount;
        }

        @Override
        public void close() throws InterruptedException {
            stopped = true;
            thread.join();
        }
    }

    Flow flow(int keyCount, long everyMs) {
        return new Flow(keys(keyCount), everyMs);
    }

    KeyedMember join(String... settings) throws InterruptedException {
        return join(NOTHING, settings);
    }

    /** A new member; returns when it has lanes. */
    KeyedMember join(KeyedMember.Handler handler, String... settings) throws InterruptedException {
        KeyedMember member = start(handler, settings);
        Expect.eventually(() -> "lanes for " + members, 25,
            () -> member.lanes > 0 || member.failure != null);
        return member;
    }

    KeyedMember start(KeyedMember.Handler handler, String... settings) {
        boolean commits = !Arrays.asList(settings).contains("enable.auto.commit");
        String name = "member " + (members.size() + 1);
        var consumer = clients.consumer(id, settings);
        var member = new KeyedMember(name, consumer, commits, this, handler);
        members.add(member);
        return member;
    }

    void joinSeveral(int count, KeyedMember.Handler handler, String... settings)
        throws InterruptedException {
        List<KeyedMember> joining = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            joining.add(start(handler, settings));
        }
        Expect.eventually(() -> "lanes for each of " + members, 25,
            () -> joining.stream().allMatch(member -> member.lanes > 0));
    }

    /** What Kafka's tools compute: the end of each partition minus what is committed. */
    long lag() throws Exception {
        return lag(clients, id, topic, partitions);
    }

    static long lag(Clients clients, String group, String topic, int partitions) throws Exception {
        Map<TopicPartition, OffsetSpec> all = new HashMap<>();
        Clients.partitions(topic, partitions).forEach(one -> all.put(one, OffsetSpec.latest()));
        Map<TopicPartition, OffsetAndMetadata> committed = Expect.get(
            clients.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
        Map<TopicPartition, ListOffsetsResultInfo> ends =
            Expect.get(clients.admin.listOffsets(all).all());
        long lag = 0;
        for (TopicPartition partition : all.keySet()) {
            OffsetAndMetadata offset = committed.get(partition);
            // As kafka-consumer-groups: a partition without an offset has no lag of its own.
            if (offset != null) {
                lag += ends.get(partition).offset() - offset.offset();
            }
        }
        return lag;
    }

    void expectLag(long wanted, long seconds) throws Exception {
        long deadline = System.nanoTime() + seconds * 1_000_000_000L;
        long lag = lag();
        while (lag != wanted && System.nanoTime() < deadline) {
            Thread.sleep(20);
            lag = lag();
        }
        Expect.that(lag == wanted, "a lag of " + wanted + " within " + seconds + " s, it is " + lag
            + "; " + sentinel + "; " + members);
    }

    /** All is handled, in order and once, and the broker knows. */
    void expectDone(int count, long seconds) throws Exception {
        sentinel.expectHandled(count, seconds);
        for (KeyedMember member : members) {
            Expect.equal(null, member.failure, "failure of " + member.name);
        }
        expectLag(0, 10);
        sentinel.expectOnce(count);
    }

    @Override
    public void close() throws InterruptedException {
        producer.close();
        members.forEach(KeyedMember::stopSoon);
        for (KeyedMember member : members) {
            member.close();
        }
    }
}
