package keylane.compat;

import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigType;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.ConfigResource.Type;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The admin client on the settings of topics and brokers. */
final class AdminConfigChecks {
    private final Clients clients;
    private final Admin admin;

    AdminConfigChecks(Clients clients) {
        this.clients = clients;
        this.admin = clients.admin;
    }

    void register(Checks checks) {
        checks.area("admin configs");
        checks.add("describe a topic", this::describeTopic);
        checks.add("describe with synonyms and documentation", this::synonyms);
        checks.add("describe an unknown topic", this::describeUnknown);
        checks.add("describe a broker", this::describeBroker);
        checks.add("describe several resources", this::describeSeveral);
        checks.add("set and delete", this::setAndDelete);
        checks.add("a changed limit is enforced", this::enforced);
        checks.add("bad values and unknown keys are refused", this::refused);
        checks.add("append and subtract need a list", this::listsOnly);
        checks.add("validate only", this::validateOnly);
        checks.add("alter an unknown topic", this::alterUnknown);
    }

    private static ConfigResource topicResource(String name) {
        return new ConfigResource(Type.TOPIC, name);
    }

    private Config config(ConfigResource resource) throws Exception {
        return Expect.get(admin.describeConfigs(List.of(resource)).all()).get(resource);
    }

    private void alter(ConfigResource resource, AlterConfigOp... operations) throws Exception {
        Expect.get(admin.incrementalAlterConfigs(Map.of(resource, List.of(operations))).all());
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), OpType.SET);
    }

    private static AlterConfigOp delete(String name) {
        return new AlterConfigOp(new ConfigEntry(name, null), OpType.DELETE);
    }

    private void describeTopic() throws Exception {
        var config = config(topicResource(clients.topic(1, "retention.ms", "7200000")));
        ConfigEntry changed = config.get("retention.ms");
        Expect.equal("7200000", changed.value(), "value");
        Expect.equal(ConfigSource.DYNAMIC_TOPIC_CONFIG, changed.source(), "source");
        Expect.that(!changed.isReadOnly() && !changed.isSensitive(), "flags");
        Expect.equal(ConfigType.LONG, changed.type(), "type");
        ConfigEntry standard = config.get("cleanup.policy");
        Expect.equal("delete", standard.value(), "default value");
        Expect.equal(ConfigSource.DEFAULT_CONFIG, standard.source(), "default source");
        Expect.equal(ConfigType.LIST, standard.type(), "type of a list");
        for (String name : List.of("retention.bytes", "max.message.bytes", "segment.bytes",
            "message.timestamp.type", "compression.type", "min.insync.replicas")) {
            Expect.that(config.get(name) != null, name + " is described");
        }
    }

    private void synonyms() throws Exception {
        var resource = topicResource(clients.topic(1, "retention.ms", "7200000"));
        var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        var config = Expect.get(admin.describeConfigs(List.of(resource), options).all());
        ConfigEntry entry = config.get(resource).get("retention.ms");
        var first = entry.synonyms().get(0);
        Expect.equal("retention.ms", first.name(), "first synonym");
        Expect.equal("7200000", first.value(), "its value");
        Expect.equal(ConfigSource.DYNAMIC_TOPIC_CONFIG, first.source(), "its source");
        String documentation = entry.documentation();
        Expect.that(documentation != null && !documentation.isEmpty(), "documented");
        var brief = config(resource).get("retention.ms");
        Expect.that(brief.synonyms().isEmpty(), "no synonyms unless asked for");
        Expect.equal(null, brief.documentation(), "no documentation unless asked for");
    }

    private void describeUnknown() throws Exception {
        var resource = topicResource(Clients.unique("missing"));
        Expect.failure(UnknownTopicOrPartitionException.class,
            admin.describeConfigs(List.of(resource)).all());
    }

    private ConfigResource broker() throws Exception {
        var node = Expect.get(admin.describeCluster().nodes()).iterator().next();
        return new ConfigResource(Type.BROKER, node.idString());
    }

    private void describeBroker() throws Exception {
        var config = config(broker());
        for (String name : List.of("num.partitions", "auto.create.topics.enable",
            "message.max.bytes", "default.replication.factor")) {
            Expect.that(config.get(name) != null, name + " is described");
            Expect.that(config.get(name).value() != null, name + " has a value");
        }
        Expect.equal("1", config.get("num.partitions").value(), "num.partitions");
        Expect.equal("true", config.get("auto.create.topics.enable").value(), "auto creation");
    }

    private void describeSeveral() throws Exception {
        var first = topicResource(clients.topic(1, "retention.ms", "1000000"));
        var second = topicResource(clients.topic(1, "retention.ms", "2000000"));
        var broker = broker();
        var found = Expect.get(admin.describeConfigs(List.of(first, second, broker)).all());
        Expect.equal("1000000", found.get(first).get("retention.ms").value(), "first");
        Expect.equal("2000000", found.get(second).get("retention.ms").value(), "second");
        Expect.that(found.get(broker).get("num.partitions") != null, "broker");
    }

    private void setAndDelete() throws Exception {
        var resource = topicResource(clients.topic(1));
        String before = config(resource).get("retention.ms").value();
        alter(resource, set("retention.ms", "3600000"), set("max.message.bytes", "50000"));
        Expect.soon(() -> {
            Expect.equal("3600000", config(resource).get("retention.ms").value(), "set");
            Expect.equal("50000", config(resource).get("max.message.bytes").value(), "set too");
        });
        alter(resource, delete("retention.ms"));
        Expect.soon(() -> {
            ConfigEntry entry = config(resource).get("retention.ms");
            Expect.equal(before, entry.value(), "deleted");
            Expect.equal(ConfigSource.DEFAULT_CONFIG, entry.source(), "source");
        });
        Expect.equal("50000", config(resource).get("max.message.bytes").value(), "untouched");
    }

    private void enforced() throws Exception {
        String name = clients.topic(1);
        alter(topicResource(name), set("max.message.bytes", "2000"));
        try (var producer = clients.producer()) {
            var record = new ProducerRecord<>(name, "key", "x".repeat(5_000));
            Expect.soon(() -> Expect.failure(RecordTooLargeException.class, producer.send(record)));
            alter(topicResource(name), delete("max.message.bytes"));
            Expect.soon(() -> sent(producer.send(record)));
        }
    }

    private static void sent(Future<RecordMetadata> future) throws Exception {
        try {
            Expect.get(future);
        } catch (RecordTooLargeException error) {
            throw new AssertionError(error);
        }
    }

    private void refused() throws Exception {
        var resource = topicResource(clients.topic(1));
        for (AlterConfigOp wrong : List.of(set("retention.ms", "soon"), set("no.such.key", "1"),
            set("message.timestamp.type", "Never"), set("max.message.bytes", "-5"))) {
            // All or nothing: the good setting beside the bad one is not taken either.
            var operations = List.of(set("retention.bytes", "123456789"), wrong);
            Expect.failure(InvalidConfigurationException.class,
                admin.incrementalAlterConfigs(Map.of(resource, operations)).all());
        }
        Expect.equal("-1", config(resource).get("retention.bytes").value(), "retention.bytes");
    }

    private void listsOnly() throws Exception {
        var resource = topicResource(clients.topic(1));
        var append = new AlterConfigOp(new ConfigEntry("retention.ms", "1"), OpType.APPEND);
        Expect.failure(InvalidConfigurationException.class,
            admin.incrementalAlterConfigs(Map.of(resource, List.of(append))).all());
        var subtract = new AlterConfigOp(new ConfigEntry("retention.ms", "1"), OpType.SUBTRACT);
        Expect.failure(InvalidConfigurationException.class,
            admin.incrementalAlterConfigs(Map.of(resource, List.of(subtract))).all());
    }

    private void validateOnly() throws Exception {
        var resource = topicResource(clients.topic(1));
        var options = new AlterConfigsOptions().validateOnly(true);
        var good = List.of(set("retention.ms", "3600000"));
        Expect.get(admin.incrementalAlterConfigs(Map.of(resource, good), options).all());
        ConfigEntry entry = config(resource).get("retention.ms");
        Expect.equal(ConfigSource.DEFAULT_CONFIG, entry.source(), "not set");
        var bad = List.of(set("retention.ms", "soon"));
        Expect.failure(InvalidConfigurationException.class,
            admin.incrementalAlterConfigs(Map.of(resource, bad), options).all());
    }

    private void alterUnknown() throws Exception {
        var resource = topicResource(Clients.unique("missing"));
        var operations = List.of(set("retention.ms", "3600000"));
        Expect.failure(UnknownTopicOrPartitionException.class,
            admin.incrementalAlterConfigs(Map.of(resource, operations)).all());
    }
}
