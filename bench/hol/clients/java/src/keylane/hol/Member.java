package keylane.hol;

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** One consumer: it polls, handles what it got record by record, and polls again. */
final class Member extends Thread {
    private static final Duration POLL = Duration.ofMillis(500);

    private final int number;
    private final Consumers.Settings settings;
    private final Consumers.Events events;
    private volatile int assigned;
    private volatile boolean isStopped;

    Member(int number, Consumers.Settings settings, Consumers.Events events) {
        super("member " + number);
        this.number = number;
        this.settings = settings;
        this.events = events;
    }

    int assigned() {
        return assigned;
    }

    void stopSoon() {
        isStopped = true;
    }

    @Override
    public void run() {
        try (var consumer = new KafkaConsumer<String, String>(properties())) {
            consumer.subscribe(List.of(settings.topic()));
            while (!isStopped) {
                var records = consumer.poll(POLL);
                assigned = consumer.assignment().size();
                for (ConsumerRecord<String, String> record : records) {
                    handle(record);
                }
                if (settings.manualCommit() && !records.isEmpty()) {
                    commit(consumer);
                }
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The defaults, but for what an application has to say. */
    private Properties properties() {
        var properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, settings.bootstrap());
        properties.put(ConsumerConfig.GROUP_ID_CONFIG, settings.group());
        properties.put(ConsumerConfig.CLIENT_ID_CONFIG, "hol");
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        properties.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        properties.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        if (settings.manualCommit()) {
            properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        }
        return properties;
    }

    private void handle(ConsumerRecord<String, String> record) throws InterruptedException {
        if (record.value().charAt(0) == '-') {
            events.count(number);
            return;
        }
        long startUs = System.nanoTime() / 1000;
        String[] fields = record.value().split(" ");
        long serviceUs = Long.parseLong(fields[1]);
        Thread.sleep(serviceUs / 1000, (int) (serviceUs % 1000) * 1000);
        events.add(fields[0] + ' ' + startUs + ' ' + System.nanoTime() / 1000 + ' ' + number + ' '
            + record.partition() + ' ' + record.offset());
    }

    private static void commit(KafkaConsumer<String, String> consumer) {
        try {
            consumer.commitSync();
        } catch (RebalanceInProgressException | CommitFailedException error) {
            // The next poll rejoins; what could not be committed comes again.
        }
    }
}
