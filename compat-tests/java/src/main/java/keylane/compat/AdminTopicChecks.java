package keylane.compat;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicaAssignmentException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The admin client on topics, partitions, their offsets and the cluster. */
final class AdminTopicChecks {
    private final Clients clients;
    private final Admin admin;

    AdminTopicChecks(Clients clients) {
        this.clients = clients;
        this.admin = clients.admin;
    }

    void register(Checks checks) {
        checks.area("admin topics");
        checks.add("create, list, describe, delete", this::lifeCycle);
        checks.add("the answer to create describes the topic", this::createAnswer);
        checks.add("create with the broker's defaults", this::createDefaults);
        checks.add("create with replica assignments", this::createAssigned);
        checks.add("create, topic exists", this::createExisting);
        checks.add("create, invalid names", this::createInvalidNames);
        checks.add("create, name that collides by dots and underscores", this::createColliding);
        checks.add("create, invalid partitions", this::createInvalidPartitions);
        checks.add("create, invalid replication factor", this::createInvalidReplication);
        checks.add("create, invalid config", this::createInvalidConfig);
        checks.add("create, one of several fails", this::createPartly);
        checks.add("create, validate only", this::createValidateOnly);
        checks.add("delete, unknown topic", this::deleteUnknown);
        checks.add("delete by id", this::deleteById);
        checks.add("delete and create again is a new topic", this::createAgain);
        checks.add("describe, unknown topic", this::describeUnknown);
        checks.add("describe by id", this::describeById);
        checks.add("describe in pages", this::describePages);
        checks.add("internal topics are hidden by default", this::internalTopics);
        checks.add("create partitions", this::createPartitions);
        checks.add("create partitions, refused", this::createPartitionsRefused);
        checks.add("describe cluster", this::describeCluster);
        checks.add("describe features", this::describeFeatures);
        checks.area("admin records");
        checks.add("delete records", this::deleteRecords);
        checks.add("delete records, refused", this::deleteRecordsRefused);
        checks.add("list offsets", this::listOffsets);
        checks.add("list offsets of an empty partition", this::listOffsetsEmpty);
        checks.add("list offsets, unknown topic", this::listOffsetsUnknown);
    }

    private static NewTopic topic(String name, int partitions) {
        return new NewTopic(name, partitions, (short) 1);
    }

    private void lifeCycle() throws Exception {
        String name = clients.topic(3);
        Expect.that(Expect.get(admin.listTopics().names()).contains(name), "listed");
        var listing = Expect.get(admin.listTopics().namesToListings()).get(name);
        Expect.that(!listing.isInternal(), "not internal");
        var description = Expect.get(admin.describeTopics(List.of(name)).allTopicNames()).get(name);
        Expect.equal(listing.topicId(), description.topicId(), "id");
        Expect.equal(3, description.partitions().size(), "partitions");
        for (int index = 0; index < 3; index++) {
            var partition = description.partitions().get(index);
            Expect.equal(index, partition.partition(), "partition index");
            Expect.that(partition.replicas().contains(partition.leader()), "leader is a replica");
            Expect.that(partition.isr().contains(partition.leader()), "leader is in sync");
        }
        Expect.get(admin.deleteTopics(List.of(name)).all());
        Expect.eventually("the topic is gone", 20, () -> !isListed(name));
    }

    private boolean isListed(String name) {
        try {
            return Expect.get(admin.listTopics().names()).contains(name);
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    private void createAnswer() throws Exception {
        String name = Clients.unique("topic");
        var configs = Map.of("retention.ms", "1234567", "max.message.bytes", "200000");
        var result = admin.createTopics(List.of(topic(name, 4).configs(configs)));
        Expect.equal(4, Expect.get(result.numPartitions(name)), "partitions");
        Expect.equal(Clients.nodes(), Expect.get(result.replicationFactor(name)), "replication factor");
        Expect.that(!Expect.get(result.topicId(name)).equals(Uuid.ZERO_UUID), "has an id");
        var config = Expect.get(result.config(name));
        Expect.equal("1234567", config.get("retention.ms").value(), "retention.ms");
        Expect.equal("delete", config.get("cleanup.policy").value(), "cleanup.policy");
    }

    private void createDefaults() throws Exception {
        String name = Clients.unique("topic");
        var topic = new NewTopic(name, Optional.empty(), Optional.empty());
        var result = admin.createTopics(List.of(topic));
        Expect.equal(1, Expect.get(result.numPartitions(name)), "num.partitions");
        Expect.equal(Clients.nodes(), Expect.get(result.replicationFactor(name)), "default.replication.factor");
    }

    private void createAssigned() throws Exception {
        int node = Expect.get(admin.describeCluster().nodes()).iterator().next().id();
        String name = Clients.unique("topic");
        var assigned = new NewTopic(name, Map.of(0, List.of(node), 1, List.of(node)));
        Expect.equal(2, Expect.get(admin.createTopics(List.of(assigned)).numPartitions(name)),
            "partitions");
        var wrong = new NewTopic(Clients.unique("topic"), Map.of(0, List.of(4711)));
        Expect.failure(InvalidReplicaAssignmentException.class,
            admin.createTopics(List.of(wrong)).all());
        var gap = new NewTopic(Clients.unique("topic"), Map.of(1, List.of(node)));
        Expect.failure(InvalidReplicaAssignmentException.class,
            admin.createTopics(List.of(gap)).all());
    }

    private void createExisting() throws Exception {
        String name = clients.topic(1);
        Expect.failure(TopicExistsException.class,
            admin.createTopics(List.of(topic(name, 1))).all());
    }

    private void createInvalidNames() throws Exception {
        for (String name : List.of("bad name", "bad/name", "", ".", "..", "x".repeat(250), "ü")) {
            Expect.failure(InvalidTopicException.class,
                admin.createTopics(List.of(topic(name, 1))).all());
        }
        String longest = Clients.unique("longest");
        longest += "x".repeat(249 - longest.length());
        Expect.get(admin.createTopics(List.of(topic(longest, 1))).all());
    }

    private void createColliding() throws Exception {
        String name = Clients.unique("collision");
        clients.createTopic(name + ".a_b", 1);
        Expect.failure(InvalidTopicException.class,
            admin.createTopics(List.of(topic(name + "_a.b", 1))).all());
    }

    private void createInvalidPartitions() throws Exception {
        for (int count : List.of(0, -5)) {
            Expect.failure(InvalidPartitionsException.class,
                admin.createTopics(List.of(topic(Clients.unique("topic"), count))).all());
        }
    }

    private void createInvalidReplication() throws Exception {
        for (short factor : List.of((short) (Clients.nodes() + 1), (short) 0)) {
            var topic = new NewTopic(Clients.unique("topic"), 1, factor);
            Expect.failure(InvalidReplicationFactorException.class,
                admin.createTopics(List.of(topic)).all());
        }
    }

    private void createInvalidConfig() throws Exception {
        for (var config : List.of(Map.of("retention.ms", "soon"), Map.of("no.such.key", "1"),
            Map.of("cleanup.policy", "burn"))) {
            String name = Clients.unique("topic");
            Expect.failure(InvalidConfigurationException.class,
                admin.createTopics(List.of(topic(name, 1).configs(config))).all());
            Expect.that(!isListed(name), "not created");
        }
    }

    private void createPartly() throws Exception {
        String good = Clients.unique("topic");
        String bad = "bad name " + good;
        var result = admin.createTopics(List.of(topic(good, 1), topic(bad, 1)));
        Expect.get(result.values().get(good));
        Expect.failure(InvalidTopicException.class, result.values().get(bad));
    }

    private void createValidateOnly() throws Exception {
        var validateOnly = new CreateTopicsOptions().validateOnly(true);
        String name = Clients.unique("topic");
        var result = admin.createTopics(List.of(topic(name, 2)), validateOnly);
        Expect.equal(2, Expect.get(result.numPartitions(name)), "partitions");
        Expect.that(!isListed(name), "not created");
        String existing = clients.topic(1);
        Expect.failure(TopicExistsException.class,
            admin.createTopics(List.of(topic(existing, 2)), validateOnly).all());
    }

    private void deleteUnknown() throws Exception {
        Expect.failure(UnknownTopicOrPartitionException.class,
            admin.deleteTopics(List.of(Clients.unique("missing"))).all());
        var ids = TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()));
        Expect.failure(UnknownTopicIdException.class, admin.deleteTopics(ids).all());
    }

    private void deleteById() throws Exception {
        String name = clients.topic(1);
        Uuid id = Expect.get(admin.listTopics().namesToListings()).get(name).topicId();
        Expect.get(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all());
        Expect.eventually("the topic is gone", 20, () -> !isListed(name));
    }

    private void createAgain() throws Exception {
        String name = clients.topic(2);
        clients.send(name, 1, 0, 5);
        Uuid id = Expect.get(admin.listTopics().namesToListings()).get(name).topicId();
        Expect.get(admin.deleteTopics(List.of(name)).all());
        Expect.eventually("the topic is gone", 20, () -> !isListed(name));
        clients.createTopic(name, 2);
        var description = Expect.get(admin.describeTopics(List.of(name)).allTopicNames()).get(name);
        Expect.that(!id.equals(description.topicId()), "a new id");
        clients.send(name, 1, 100, 1);
        var record = clients.readAll(name, 2, 1).get(0);
        Expect.equal("100", record.value(), "only the new record");
        Expect.equal(0L, record.offset(), "offset");
    }

    private void describeUnknown() throws Exception {
        Expect.failure(UnknownTopicOrPartitionException.class,
            admin.describeTopics(List.of(Clients.unique("missing"))).allTopicNames());
        var ids = TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()));
        Expect.failure(UnknownTopicIdException.class, admin.describeTopics(ids).allTopicIds());
    }

    private void describeById() throws Exception {
        String name = clients.topic(2);
        Uuid id = Expect.get(admin.listTopics().namesToListings()).get(name).topicId();
        var result = admin.describeTopics(TopicCollection.ofTopicIds(List.of(id)));
        var description = Expect.get(result.allTopicIds()).get(id);
        Expect.equal(name, description.name(), "name");
        Expect.equal(2, description.partitions().size(), "partitions");
    }

    private void describePages() throws Exception {
        String first = clients.topic(7);
        String second = clients.topic(3);
        var pages = new DescribeTopicsOptions().partitionSizeLimitPerResponse(2);
        var found = Expect.get(admin.describeTopics(List.of(first, second), pages).allTopicNames());
        Expect.equal(7, found.get(first).partitions().size(), "partitions of the first");
        Expect.equal(3, found.get(second).partitions().size(), "partitions of the second");
        var indexes = new TreeSet<Integer>();
        found.get(first).partitions().forEach(partition -> indexes.add(partition.partition()));
        Expect.equal(Set.of(0, 1, 2, 3, 4, 5, 6), indexes, "partition indexes");
    }

    private void internalTopics() throws Exception {
        String name = clients.topic(1);
        var visible = Expect.get(admin.listTopics().listings());
        Expect.that(visible.stream().noneMatch(topic -> topic.isInternal()), "none is internal");
        Expect.that(visible.stream().anyMatch(topic -> topic.name().equals(name)), "listed");
        // Other checks create and delete topics meanwhile: the two listings cannot be compared whole.
        var options = new ListTopicsOptions().listInternal(true);
        Expect.that(Expect.get(admin.listTopics(options).names()).contains(name), "listed with them");
    }

    private void createPartitions() throws Exception {
        String name = clients.topic(2);
        clients.send(name, 1, 0, 3);
        var validateOnly = new CreatePartitionsOptions().validateOnly(true);
        var increase = Map.of(name, NewPartitions.increaseTo(5));
        Expect.get(admin.createPartitions(increase, validateOnly).all());
        Expect.equal(2, partitionCount(name), "partitions after validating only");
        Expect.get(admin.createPartitions(increase).all());
        Expect.eventually("five partitions", 20, () -> partitionCount(name) == 5);
        clients.send(name, 4, 3, 1);
        Expect.equal(4, clients.readAll(name, 5, 4).size(), "records");
    }

    private int partitionCount(String name) {
        try {
            var all = Expect.get(admin.describeTopics(List.of(name)).allTopicNames());
            return all.get(name).partitions().size();
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    private void createPartitionsRefused() throws Exception {
        String name = clients.topic(3);
        for (int count : List.of(2, 3, 0)) {
            Expect.failure(InvalidPartitionsException.class,
                admin.createPartitions(Map.of(name, NewPartitions.increaseTo(count))).all());
        }
        String missing = Clients.unique("missing");
        Expect.failure(UnknownTopicOrPartitionException.class,
            admin.createPartitions(Map.of(missing, NewPartitions.increaseTo(2))).all());
    }

    private void describeCluster() throws Exception {
        var result = admin.describeCluster();
        var nodes = Expect.get(result.nodes());
        Expect.that(!nodes.isEmpty(), "has nodes");
        Expect.that(nodes.contains(Expect.get(result.controller())), "the controller is a node");
        Expect.that(!Expect.get(result.clusterId()).isEmpty(), "has a cluster id");
        var detailed = new DescribeClusterOptions().includeAuthorizedOperations(true);
        var operations = Expect.get(admin.describeCluster(detailed).authorizedOperations());
        Expect.that(operations != null && !operations.isEmpty(), "authorized operations");
    }

    private void describeFeatures() throws Exception {
        var features = Expect.get(admin.describeFeatures().featureMetadata());
        for (var feature : features.finalizedFeatures().entrySet()) {
            var supported = features.supportedFeatures().get(feature.getKey());
            Expect.that(supported != null, feature.getKey() + " is supported");
            Expect.that(feature.getValue().maxVersionLevel() <= supported.maxVersion(),
                feature.getKey() + " is not above what is supported");
        }
    }

    private void deleteRecords() throws Exception {
        String name = clients.topic(2);
        TopicPartition partition = new TopicPartition(name, 0);
        TopicPartition other = new TopicPartition(name, 1);
        clients.send(name, 0, 0, 10);
        clients.send(name, 1, 0, 10);
        var result = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(4),
            other, RecordsToDelete.beforeOffset(-1)));
        Expect.equal(4L, Expect.get(result.lowWatermarks().get(partition)).lowWatermark(), "first");
        Expect.equal(10L, Expect.get(result.lowWatermarks().get(other)).lowWatermark(), "second");
        var records = clients.readAll(name, 2, 6);
        Expect.equal(6, records.size(), "records left");
        Expect.equal(4L, records.get(0).offset(), "first offset left");
        // A lower offset than the present start changes nothing.
        var again = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(2)));
        Expect.equal(4L, Expect.get(again.lowWatermarks().get(partition)).lowWatermark(), "again");
    }

    private void deleteRecordsRefused() throws Exception {
        String name = clients.topic(1);
        clients.send(name, 0, 0, 3);
        TopicPartition partition = new TopicPartition(name, 0);
        Expect.failure(OffsetOutOfRangeException.class,
            admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(4))).all());
        Expect.equal(3, clients.readAll(name, 1, 3).size(), "records");
    }

    private ListOffsetsResultInfo offset(TopicPartition partition, OffsetSpec spec)
        throws Exception {
        return Expect.get(admin.listOffsets(Map.of(partition, spec)).partitionResult(partition));
    }

    private void listOffsets() throws Exception {
        String name = clients.topic(1);
        TopicPartition partition = new TopicPartition(name, 0);
        long start = System.currentTimeMillis() - 50_000;
        long[] times = {start, start + 9_000, start + 3_000, start + 6_000};
        try (var producer = clients.producer()) {
            for (long time : times) {
                Expect.get(producer.send(new ProducerRecord<>(name, 0, time, "k", "v")));
            }
        }
        Expect.equal(0L, offset(partition, OffsetSpec.earliest()).offset(), "earliest");
        Expect.equal(4L, offset(partition, OffsetSpec.latest()).offset(), "latest");
        var greatest = offset(partition, OffsetSpec.maxTimestamp());
        Expect.equal(1L, greatest.offset(), "offset of the greatest timestamp");
        Expect.equal(start + 9_000, greatest.timestamp(), "greatest timestamp");
        var found = offset(partition, OffsetSpec.forTimestamp(start + 1));
        Expect.equal(1L, found.offset(), "first offset at or after a time");
        Expect.equal(start + 9_000, found.timestamp(), "its timestamp");
        Expect.equal(-1L, offset(partition, OffsetSpec.forTimestamp(start + 9_001)).offset(),
            "nothing at or after a time");
        Expect.get(admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(2))).all());
        Expect.equal(2L, offset(partition, OffsetSpec.earliest()).offset(), "earliest, later");
    }

    private void listOffsetsEmpty() throws Exception {
        TopicPartition partition = new TopicPartition(clients.topic(1), 0);
        Expect.equal(0L, offset(partition, OffsetSpec.earliest()).offset(), "earliest");
        Expect.equal(0L, offset(partition, OffsetSpec.latest()).offset(), "latest");
        Expect.equal(-1L, offset(partition, OffsetSpec.maxTimestamp()).offset(), "max timestamp");
        Expect.equal(-1L, offset(partition, OffsetSpec.forTimestamp(0)).offset(), "by time");
    }

    private void listOffsetsUnknown() throws Exception {
        TopicPartition partition = new TopicPartition(Clients.unique("missing"), 0);
        Expect.failure(UnknownTopicOrPartitionException.class,
            admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all());
    }
}
