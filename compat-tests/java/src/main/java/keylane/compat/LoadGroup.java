package keylane.compat;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of a group with the client's defaults, until its input ends: {@code LoadGroup BOOTSTRAP
 * TOPIC GROUP MEMBERS}. A line of its output is "begin KEY VALUE" or "end KEY VALUE" of a record, or
 * "join" of a member.
 */
public final class LoadGroup {
    private static final Duration POLL = Duration.ofMillis(500);
    private static final int HANDLER_MS_MAX = 6;

    private static volatile boolean isEnding;
    private static PrintStream out;

    private LoadGroup() {
    }

    public static void main(String[] args) throws Exception {
        out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        List<Thread> members = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[3]); i++) {
            var member = new Thread(() -> consume(args[0], args[1], args[2]));
            member.start();
            members.add(member);
        }
        System.in.read();
        isEnding = true;
        for (Thread member : members) {
            member.join();
        }
    }

    private static void consume(String bootstrap, String topic, String group) {
        Map<String, Object> config = Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            ConsumerConfig.GROUP_ID_CONFIG, group,
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        var listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                // What was polled is handled to the end before.
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                out.println("join");
            }
        };
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic), listener);
            while (!isEnding) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    handle(record);
                }
            }
        }
    }

    private static void handle(ConsumerRecord<String, String> record) {
        out.println("begin " + record.key() + " " + record.value());
        try {
            Thread.sleep(ThreadLocalRandom.current().nextInt(HANDLER_MS_MAX));
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        out.println("end " + record.key() + " " + record.value());
    }
}
