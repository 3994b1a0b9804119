package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

func adminChecks() []harness.Check {
	return []harness.Check{
		{Name: "admin/create-list-describe-delete-topic", Run: checkTopicLife},
		{Name: "admin/create-topic-errors", Run: checkCreateErrors},
		{Name: "admin/validate-only", Run: checkValidateOnly},
		{Name: "admin/manual-assignment", Run: checkManualAssignment},
		{Name: "admin/create-partitions", Run: checkCreatePartitions},
		{Name: "admin/describe-configs", Run: checkDescribeConfigs},
		{Name: "admin/alter-config-replaces-all", Run: checkAlterConfig},
		{Name: "admin/incremental-alter-config", Run: checkIncrementalConfig},
		{Name: "admin/config-errors", Run: checkConfigErrors},
		{Name: "admin/delete-records", Run: checkDeleteRecords},
		{Name: "admin/list-offsets", Run: checkListOffsets},
		{Name: "admin/describe-cluster", Run: checkCluster},
		{Name: "admin/client-metadata", Run: checkClientMetadata},
		{Name: "admin/api-versions", Run: checkAPIVersions},
	}
}

func text(value string) *string { return &value }

func plainTopic(partitions int32) *sarama.TopicDetail {
	return &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}
}

func checkTopicLife(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), t.Unique("topic")
	detail := plainTopic(3)
	detail.ConfigEntries = map[string]*string{"retention.ms": text("7200000")}
	t.NoError(admin.CreateTopic(topic, detail, false), "create")
	awaitTopic(t, admin, topic, 3)

	topics, err := admin.ListTopics()
	t.NoError(err, "list")
	listed, exists := topics[topic]
	t.True(exists, "the topic is not listed")
	harness.Equal(t, listed.NumPartitions, 3, "listed partitions")
	harness.Equal(t, int(listed.ReplicationFactor), harness.Nodes(), "listed replication factor")
	retention := listed.ConfigEntries["retention.ms"]
	t.True(retention != nil && *retention == "7200000", "listed retention.ms")

	described, err := admin.DescribeTopics([]string{topic})
	t.NoError(err, "describe")
	harness.Equal(t, described[0].Name, topic, "name")
	t.True(described[0].Uuid != sarama.Uuid{}, "the topic has no id")
	t.True(!described[0].IsInternal, "the topic is internal")
	for _, partition := range described[0].Partitions {
		harness.Equal(t, partition.Err, sarama.ErrNoError, "partition")
		harness.Equal(t, len(partition.Replicas), harness.Nodes(), "replicas")
		t.True(slices.Contains(partition.Replicas, partition.Leader), "leader %d", partition.Leader)
		harness.Equal(t, len(partition.Isr), harness.Nodes(), "in-sync replicas")
	}

	t.NoError(admin.DeleteTopic(topic), "delete")
	t.Eventually("the topic is gone", func() bool {
		described, err := admin.DescribeTopics([]string{topic})
		t.NoError(err, "describe")
		return described[0].Err == sarama.ErrUnknownTopicOrPartition
	})
	wantError(t, admin.DeleteTopic(topic), sarama.ErrUnknownTopicOrPartition, "delete again")
}

func checkCreateErrors(t *T) {
	admin, existing := newAdmin(t, newConfig(newestVersion)), newTopic(t, "existing", 1)
	create := func(name string, detail *sarama.TopicDetail, want sarama.KError) {
		wantError(t, admin.CreateTopic(name, detail, false), want, fmt.Sprintf("create %q", name))
	}
	create(existing, plainTopic(1), sarama.ErrTopicAlreadyExists)
	for _, name := range []string{".", "..", "with space", "a/b", strings.Repeat("x", 250)} {
		create(name, plainTopic(1), sarama.ErrInvalidTopic)
	}
	create(t.Unique("zero"), plainTopic(0), sarama.ErrInvalidPartitions)
	replicated := plainTopic(1)
	replicated.ReplicationFactor = 99
	create(t.Unique("replicas"), replicated, sarama.ErrInvalidReplicationFactor)
	for key, value := range map[string]string{"no.such.config": "1", "retention.ms": "soon"} {
		configured := plainTopic(1)
		configured.ConfigEntries = map[string]*string{key: text(value)}
		create(t.Unique("config"), configured, sarama.ErrInvalidConfig)
	}
}

func checkValidateOnly(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), t.Unique("topic")
	t.NoError(admin.CreateTopic(topic, plainTopic(2), true), "validate")
	described, err := admin.DescribeTopics([]string{topic})
	t.NoError(err, "describe")
	harness.Equal(t, described[0].Err, sarama.ErrUnknownTopicOrPartition, "describe")
	existing := newTopic(t, "existing", 1)
	t.NoError(admin.CreatePartitions(existing, 3, nil, true), "validate partitions")
	described, err = admin.DescribeTopics([]string{existing})
	t.NoError(err, "describe")
	harness.Equal(t, len(described[0].Partitions), 1, "partitions after validating only")
}

func checkManualAssignment(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), t.Unique("topic")
	brokers, _, err := admin.DescribeCluster()
	t.NoError(err, "describe cluster")
	node := brokers[0].ID()
	detail := &sarama.TopicDetail{
		NumPartitions: -1, ReplicationFactor: -1,
		ReplicaAssignment: map[int32][]int32{0: {node}, 1: {node}},
	}
	t.NoError(admin.CreateTopic(topic, detail, false), "create")
	awaitTopic(t, admin, topic, 2)
	unknown := &sarama.TopicDetail{
		NumPartitions: -1, ReplicationFactor: -1,
		ReplicaAssignment: map[int32][]int32{0: {9999}},
	}
	err = admin.CreateTopic(t.Unique("unknown-node"), unknown, false)
	wantError(t, err, sarama.ErrInvalidReplicaAssignment, "create on an unknown node")
}

func checkCreatePartitions(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), newTopic(t, "topic", 2)
	t.NoError(admin.CreatePartitions(topic, 5, nil, false), "create partitions")
	awaitTopic(t, admin, topic, 5)
	config := newConfig(newestVersion)
	config.Producer.Partitioner = sarama.NewManualPartitioner
	message := newMessages(topic, 1, "message")[0]
	message.Partition = 4
	partition, _, err := newProducer(t, config).SendMessage(message)
	t.NoError(err, "produce to the new partition")
	harness.Equal(t, partition, 4, "partition")
	for _, count := range []int32{5, 3} {
		err := admin.CreatePartitions(topic, count, nil, false)
		wantError(t, err, sarama.ErrInvalidPartitions, fmt.Sprintf("%d partitions of 5", count))
	}
	err = admin.CreatePartitions(t.Unique("unknown"), 3, nil, false)
	wantError(t, err, sarama.ErrUnknownTopicOrPartition, "unknown topic")
}

func topicConfig(t *T, admin sarama.ClusterAdmin, topic, key string) sarama.ConfigEntry {
	entries, err := admin.DescribeConfig(sarama.ConfigResource{
		Type: sarama.TopicResource, Name: topic, ConfigNames: []string{key},
	})
	t.NoError(err, "describe config")
	harness.Equal(t, len(entries), 1, "configs in the answer")
	harness.Equal(t, entries[0].Name, key, "name of the config")
	return entries[0]
}

func checkDescribeConfigs(t *T) {
	admin := newAdmin(t, newConfig(newestVersion))
	topic := newTopic(t, "topic", 1, "retention.ms", "7200000")
	retention := topicConfig(t, admin, topic, "retention.ms")
	harness.Equal(t, retention.Value, "7200000", "retention.ms")
	harness.Equal(t, retention.Source, sarama.SourceTopic, "source")
	harness.Equal(t, retention.Default, false, "default")
	policy := topicConfig(t, admin, topic, "cleanup.policy")
	harness.Equal(t, policy.Value, "delete", "cleanup.policy")
	harness.Equal(t, policy.Default, true, "default")

	brokers, _, err := admin.DescribeCluster()
	t.NoError(err, "describe cluster")
	node := fmt.Sprint(brokers[0].ID())
	results, err := admin.DescribeConfigs([]*sarama.ConfigResource{
		{Type: sarama.TopicResource, Name: topic},
		{Type: sarama.BrokerResource, Name: node},
	}, sarama.DescribeConfigsOptions{IncludeSynonyms: true, IncludeDocumentation: true})
	t.NoError(err, "describe configs")
	harness.Equal(t, len(results), 2, "resources in the answer")
	for _, result := range results {
		harness.Equal(t, result.ErrorCode, sarama.ErrNoError, "describe "+result.Name)
		t.True(len(result.Configs) > 5, "%s has %d configs", result.Name, len(result.Configs))
		for _, entry := range result.Configs {
			if entry.Name != "retention.ms" {
				continue
			}
			t.True(len(entry.Synonyms) > 0, "retention.ms has no synonyms")
			harness.Equal(t, entry.Synonyms[0].ConfigValue, "7200000", "first synonym")
			harness.Equal(t, entry.Type, sarama.LongConfigType, "type of retention.ms")
		}
	}
}

func checkAlterConfig(t *T) {
	admin := newAdmin(t, newConfig(newestVersion))
	topic := newTopic(t, "topic", 1, "retention.ms", "7200000", "max.message.bytes", "5000")
	change := map[string]*string{"retention.ms": text("1800000")}
	t.NoError(admin.AlterConfig(sarama.TopicResource, topic, change, false), "alter")
	t.Eventually("what is not named is back to its default", func() bool {
		return topicConfig(t, admin, topic, "retention.ms").Value == "1800000" &&
			topicConfig(t, admin, topic, "max.message.bytes").Source != sarama.SourceTopic
	})
}

func checkIncrementalConfig(t *T) {
	admin := newAdmin(t, newConfig(newestVersion))
	topic := newTopic(t, "topic", 1, "retention.ms", "7200000")
	alter := func(op sarama.IncrementalAlterConfigsOperation, key string, value *string) {
		err := admin.IncrementalAlterConfig(sarama.TopicResource, topic,
			map[string]sarama.IncrementalAlterConfigsEntry{key: {Operation: op, Value: value}}, false)
		t.NoError(err, "alter "+key)
	}
	expect := func(key, want string) {
		t.Eventually(fmt.Sprintf("%s is %s", key, want), func() bool {
			return topicConfig(t, admin, topic, key).Value == want
		})
	}
	alter(sarama.IncrementalAlterConfigsOperationSet, "max.message.bytes", text("5000"))
	expect("max.message.bytes", "5000")
	expect("retention.ms", "7200000")
	if harness.Compacts() {
		alter(sarama.IncrementalAlterConfigsOperationAppend, "cleanup.policy", text("compact"))
		expect("cleanup.policy", "delete,compact")
		alter(sarama.IncrementalAlterConfigsOperationSubtract, "cleanup.policy", text("delete"))
		expect("cleanup.policy", "compact")
	}
	alter(sarama.IncrementalAlterConfigsOperationDelete, "retention.ms", nil)
	expect("retention.ms", "604800000")
}

func checkConfigErrors(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), newTopic(t, "topic", 1)
	set := func(name, key, value string, validateOnly bool) error {
		entry := sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: text(value),
		}
		return admin.IncrementalAlterConfig(sarama.TopicResource, name,
			map[string]sarama.IncrementalAlterConfigsEntry{key: entry}, validateOnly)
	}
	wantError(t, set(topic, "retention.ms", "soon", false), sarama.ErrInvalidConfig, "a wrong value")
	wantError(t, set(topic, "no.such.config", "1", false), sarama.ErrInvalidConfig, "unknown config")
	unknown := t.Unique("unknown")
	wantError(t, set(unknown, "retention.ms", "1000", false),
		sarama.ErrUnknownTopicOrPartition, "unknown topic")
	t.NoError(set(topic, "retention.ms", "1000", true), "validate only")
	t.True(topicConfig(t, admin, topic, "retention.ms").Value != "1000", "validating has set it")
	change := map[string]*string{"retention.ms": text("soon")}
	err := admin.AlterConfig(sarama.TopicResource, topic, change, false)
	wantError(t, err, sarama.ErrInvalidConfig, "a wrong value as a whole")
}

func checkDeleteRecords(t *T) {
	config := newConfig(newestVersion)
	admin, topic := newAdmin(t, config), newTopic(t, "topic", 1)
	client := newClient(t, config)
	oldest := func() int64 {
		offset, err := client.GetOffset(topic, 0, sarama.OffsetOldest)
		t.NoError(err, "oldest offset")
		return offset
	}
	produce(t, config, topic, 50, "message")
	t.NoError(admin.DeleteRecords(topic, map[int32]int64{0: 20}), "delete")
	harness.Equal(t, oldest(), 20, "oldest offset")
	t.NoError(admin.DeleteRecords(topic, map[int32]int64{0: -1}), "delete all")
	harness.Equal(t, oldest(), 50, "oldest offset")
	err := admin.DeleteRecords(topic, map[int32]int64{0: 51})
	t.True(err != nil && strings.Contains(err.Error(), sarama.ErrOffsetOutOfRange.Error()),
		"delete beyond the end: %v", err)
	produce(t, config, topic, 1, "next")
	harness.Equal(t, takeAll(t, config, topic, 1)[0].Offset, 50, "offset after deleting all")
}

func checkListOffsets(t *T) {
	config := newConfig(newestVersion)
	admin, topic := newAdmin(t, config), newTopic(t, "topic", 2)
	config.Producer.Partitioner = sarama.NewManualPartitioner
	t.NoError(newProducer(t, config).SendMessages(newMessages(topic, 9, "message")), "produce")
	for query, want := range map[int64][2]int64{
		sarama.OffsetNewest: {9, 0}, sarama.OffsetOldest: {0, 0}, 1: {0, -1},
	} {
		for _, isolation := range []sarama.IsolationLevel{sarama.ReadUncommitted, sarama.ReadCommitted} {
			results, err := admin.ListOffsets(
				map[string]map[int32]int64{topic: {0: query, 1: query}},
				&sarama.ListOffsetsOptions{IsolationLevel: isolation})
			t.NoError(err, "list offsets")
			for partition, result := range results[topic] {
				wantError(t, result.Err, sarama.ErrNoError, "list offsets")
				what := fmt.Sprintf("offset %d of partition %d", query, partition)
				harness.Equal(t, result.Offset, want[partition], what)
			}
		}
	}
}

func checkCluster(t *T) {
	admin := newAdmin(t, newConfig(newestVersion))
	brokers, controller, err := admin.DescribeCluster()
	t.NoError(err, "describe cluster")
	t.True(len(brokers) > 0, "no brokers")
	known := map[int32]bool{}
	for _, broker := range brokers {
		known[broker.ID()] = true
	}
	t.True(known[controller], "controller %d is not among the brokers", controller)
	found, err := admin.Controller()
	t.NoError(err, "controller")
	t.True(known[found.ID()], "controller %d is not among the brokers", found.ID())
	coordinator, err := admin.Coordinator(t.Unique("group"))
	t.NoError(err, "coordinator")
	t.True(known[coordinator.ID()], "coordinator %d is not among the brokers", coordinator.ID())
}

func checkClientMetadata(t *T) {
	topic, client := newTopic(t, "topic", 3), newClient(t, newConfig(newestVersion))
	t.NoError(client.RefreshMetadata(topic), "refresh")
	partitions, err := client.Partitions(topic)
	t.NoError(err, "partitions")
	harness.Equal(t, len(partitions), 3, "partitions")
	writable, err := client.WritablePartitions(topic)
	t.NoError(err, "writable partitions")
	harness.Equal(t, len(writable), 3, "writable partitions")
	for _, partition := range partitions {
		leader, epoch, err := client.LeaderAndEpoch(topic, partition)
		t.NoError(err, "leader")
		t.True(epoch >= 0, "leader epoch %d", epoch)
		replicas, err := client.InSyncReplicas(topic, partition)
		t.NoError(err, "in-sync replicas")
		isThere := slices.Contains(replicas, leader.ID())
		t.True(len(replicas) == harness.Nodes() && isThere, "in-sync replicas %v", replicas)
		offline, err := client.OfflineReplicas(topic, partition)
		t.NoError(err, "offline replicas")
		harness.Equal(t, len(offline), 0, "offline replicas")
	}
}

func checkAPIVersions(t *T) {
	client := newClient(t, newConfig(newestVersion))
	broker := client.Brokers()[0]
	_ = broker.Open(client.Config())
	for version := range int16(5) {
		request := &sarama.ApiVersionsRequest{
			Version: version, ClientSoftwareName: "sarama", ClientSoftwareVersion: "1.61.1",
		}
		response, err := broker.ApiVersions(request)
		t.NoError(err, fmt.Sprintf("ApiVersions v%d", version))
		harness.Equal(t, response.ErrorCode, 0, "error")
		t.True(len(response.ApiKeys) > 20, "only %d keys", len(response.ApiKeys))
	}
}
