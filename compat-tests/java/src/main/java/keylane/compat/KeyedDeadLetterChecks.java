package keylane.compat;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;

/** Records that fail too often in keyed delivery end in the dead letter topic. */
final class KeyedDeadLetterChecks {
    private static final String POISON_KEY = "key-7";

    private final Clients clients;

    KeyedDeadLetterChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("keyed failures");
        checks.add("a record that always fails ends in the dead letter topic", this::deadLetter);
    }

    private void deadLetter() throws Exception {
        int attempts = 3;
        var failed = new AtomicInteger();
        KeyedMember.Handler handler = (member, record) -> {
            if (KeyedGroup.is(record, POISON_KEY, 2)) {
                failed.incrementAndGet();
                throw new KeyedMember.Failure();
            }
        };
        String[] configs = {"retry.backoff.ms", "50", "delivery.attempts.max", "" + attempts};
        try (var group = new KeyedGroup(clients, 6, configs)) {
            group.send(KeyedGroup.keys(100), 0, 5);
            group.sentinel.skip(POISON_KEY, 2);
            group.joinSeveral(3, handler);
            group.expectDone(499, 15);
            Expect.that(failed.get() >= attempts, "it was tried " + failed.get() + " times");
            expectDeadLetter(group, attempts);
        }
    }

    private void expectDeadLetter(KeyedGroup group, int attempts) throws Exception {
        String topic = group.topic + ".dlq";
        Expect.soon(() -> Expect.that(Expect.get(clients.admin.listTopics().names())
            .contains(topic), "the dead letter topic is there"));
        int partitions = Expect.get(clients.admin.describeTopics(List.of(topic)).allTopicNames())
            .get(topic).partitions().size();
        List<ConsumerRecord<String, String>> letters = clients.readAll(topic, partitions, 1);
        Expect.equal(1, letters.size(), "dead letters");
        ConsumerRecord<String, String> letter = letters.get(0);
        Expect.equal(POISON_KEY, letter.key(), "key");
        Expect.equal("2", letter.value(), "value");
        List<String> values = new ArrayList<>();
        for (Header header : letter.headers()) {
            values.add(new String(header.value(), StandardCharsets.UTF_8));
        }
        for (String value : List.of(group.topic, group.id, Integer.toString(attempts))) {
            Expect.that(values.contains(value), "a header says " + value + ": " + letter.headers());
        }
    }
}
