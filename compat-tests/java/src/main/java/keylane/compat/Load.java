package keylane.compat;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An idempotent producer that sends numbers until its input ends, whatever happens to the brokers:
 * {@code Load BOOTSTRAP TOPIC PARTITIONS}. Each line of its output is a value that was acknowledged,
 * or begins with "error".
 */
public final class Load {
    private static final int IN_FLIGHT_MAX = 200;
    private static final int PAUSE_MS = 2;

    private Load() {
    }

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int partitions = Integer.parseInt(args[2]);
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Map<String, Object> config = Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0],
            ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, 300_000);
        var room = new Semaphore(IN_FLIGHT_MAX);
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; System.in.available() == 0; n++) {
                int partition = n % partitions;
                String value = partition + "-" + n;
                room.acquire();
                producer.send(new ProducerRecord<>(topic, partition, "k" + partition, value), (metadata, error) -> {
                    out.println(error == null ? value : "error " + value + ": " + error);
                    room.release();
                });
                Thread.sleep(PAUSE_MS);
            }
        }
    }
}
