package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

func topicAPIChecks() []harness.Check {
	return []harness.Check{
		{Name: "client/create-describe-delete-topics", Run: checkTopicLife},
		{Name: "client/create-topic-errors", Run: checkCreateErrors},
		{Name: "client/validate-only", Run: checkValidateOnly},
		{Name: "client/create-partitions", Run: checkCreatePartitions},
		{Name: "client/describe-configs", Run: checkDescribeConfigs},
		{Name: "client/alter-configs", Run: checkAlterConfigs},
		{Name: "client/incremental-alter-configs", Run: checkIncrementalConfigs},
		{Name: "client/config-errors", Run: checkConfigErrors},
		{Name: "client/metadata-and-cluster", Run: checkMetadata},
		{Name: "client/api-versions", Run: checkAPIVersions},
	}
}

func plainTopic(name string, partitions int) kafka.TopicConfig {
	return kafka.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: 1}
}

func createTopics(
	t *T, validateOnly bool, topics ...kafka.TopicConfig,
) map[string]error {
	client := newClient(t)
	if validateOnly {
		// kafka-go waits for the topic in vain and returns the answer after its timeout.
		client.Timeout = time.Second
	}
	response, err := client.CreateTopics(t, &kafka.CreateTopicsRequest{
		Topics: topics, ValidateOnly: validateOnly,
	})
	t.NoError(err, "create topics")
	return response.Errors
}

func deleteTopics(t *T, topics ...string) map[string]error {
	response, err := newClient(t).DeleteTopics(t, &kafka.DeleteTopicsRequest{Topics: topics})
	t.NoError(err, "delete topics")
	return response.Errors
}

// describeTopic asks with a new pool each time, because a pool answers from what it knows.
func describeTopic(t *T, name string) kafka.Topic {
	response, err := newClient(t).Metadata(t, &kafka.MetadataRequest{Topics: []string{name}})
	t.NoError(err, "metadata")
	harness.Equal(t, len(response.Topics), 1, "topics in the answer")
	return response.Topics[0]
}

func checkTopicLife(t *T) {
	first, second := t.Unique("first"), t.Unique("second")
	results := createTopics(t, false, plainTopic(first, 2), plainTopic(second, 5))
	t.NoError(results[first], "create first")
	t.NoError(results[second], "create second")
	awaitTopic(t, first, 2)
	awaitTopic(t, second, 5)
	topic := describeTopic(t, second)
	t.NoError(topic.Error, "metadata")
	harness.Equal(t, len(topic.Partitions), 5, "partitions")
	harness.Equal(t, topic.Internal, false, "internal")
	for _, partition := range topic.Partitions {
		t.NoError(partition.Error, "partition")
		harness.Equal(t, partition.Leader.ID, partition.Replicas[0].ID, "leader")
		harness.Equal(t, len(partition.OfflineReplicas), 0, "offline replicas")
	}
	results = deleteTopics(t, first, second)
	t.NoError(results[first], "delete first")
	t.NoError(results[second], "delete second")
	t.Eventually("the topic is gone", func() bool {
		return describeTopic(t, first).Error != nil
	})
	wantError(t, describeTopic(t, first).Error, kafka.UnknownTopicOrPartition, "metadata")
	wantError(t, deleteTopics(t, first)[first], kafka.UnknownTopicOrPartition, "delete again")
}

func checkCreateErrors(t *T) {
	existing := newTopic(t, "existing", 1)
	replicated, configured := plainTopic(t.Unique("replicas"), 1), plainTopic(t.Unique("config"), 1)
	replicated.ReplicationFactor = 99
	configured.ConfigEntries = []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "soon"}}
	for _, each := range []struct {
		topic kafka.TopicConfig
		want  kafka.Error
	}{
		{plainTopic(existing, 1), kafka.TopicAlreadyExists},
		{plainTopic(".", 1), kafka.InvalidTopic},
		{plainTopic("with space", 1), kafka.InvalidTopic},
		{plainTopic(strings.Repeat("x", 250), 1), kafka.InvalidTopic},
		{plainTopic(t.Unique("zero"), 0), kafka.InvalidPartitionNumber},
		{replicated, kafka.InvalidReplicationFactor},
		{configured, kafka.InvalidConfiguration},
	} {
		name := each.topic.Topic
		wantError(t, createTopics(t, false, each.topic)[name], each.want, fmt.Sprintf("%.40q", name))
	}
}

func checkValidateOnly(t *T) {
	topic, existing := t.Unique("topic"), newTopic(t, "existing", 1)
	t.NoError(createTopics(t, true, plainTopic(topic, 2))[topic], "validate")
	wantError(t, describeTopic(t, topic).Error, kafka.UnknownTopicOrPartition, "metadata")
	wantError(t, createTopics(t, true, plainTopic(existing, 1))[existing],
		kafka.TopicAlreadyExists, "validate an existing topic")
}

func checkCreatePartitions(t *T) {
	topic := newTopic(t, "topic", 2)
	grow := func(name string, count int32) error {
		response, err := newClient(t).CreatePartitions(t, &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: count}},
		})
		t.NoError(err, "create partitions")
		return response.Errors[name]
	}
	t.NoError(grow(topic, 4), "create partitions")
	awaitTopic(t, topic, 4)
	write(t, topic, 40, "message")
	harness.Equal(t, len(takeAll(t, topic, 4)), 40, "messages")
	wantError(t, grow(topic, 4), kafka.InvalidPartitionNumber, "4 partitions of 4")
	wantError(t, grow(topic, 3), kafka.InvalidPartitionNumber, "3 partitions of 4")
	wantError(t, grow(t.Unique("unknown"), 3), kafka.UnknownTopicOrPartition, "unknown topic")
}

// topicConfig returns one config of a topic. Synonyms are not asked for: kafka-go drops the wish for
// them when it splits the request by broker.
func topicConfig(t *T, topic, key string) kafka.DescribeConfigResponseConfigEntry {
	response, err := newClient(t).DescribeConfigs(t, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{key},
		}},
	})
	t.NoError(err, "describe configs")
	t.NoError(response.Resources[0].Error, "describe configs")
	entries := response.Resources[0].ConfigEntries
	t.True(len(entries) == 1 && entries[0].ConfigName == key, "described %v", entries)
	return entries[0]
}

func checkDescribeConfigs(t *T) {
	topic := newTopic(t, "topic", 1, "retention.ms", "7200000")
	retention := topicConfig(t, topic, "retention.ms")
	harness.Equal(t, retention.ConfigValue, "7200000", "retention.ms")
	harness.Equal(t, retention.ConfigSource, 1, "source of retention.ms")
	policy := topicConfig(t, topic, "cleanup.policy")
	harness.Equal(t, policy.ConfigValue, "delete", "cleanup.policy")
	harness.Equal(t, policy.ConfigSource, 5, "source of cleanup.policy")

	metadata, err := newClient(t).Metadata(t, &kafka.MetadataRequest{})
	t.NoError(err, "metadata")
	node := fmt.Sprint(metadata.Brokers[0].ID)
	response, err := newClient(t).DescribeConfigs(t, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeBroker, ResourceName: node},
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic},
		},
	})
	t.NoError(err, "describe configs")
	harness.Equal(t, len(response.Resources), 2, "resources")
	for _, resource := range response.Resources {
		t.NoError(resource.Error, "describe "+resource.ResourceName)
		t.True(len(resource.ConfigEntries) > 5, "%d configs", len(resource.ConfigEntries))
	}
}

func checkAlterConfigs(t *T) {
	topic := newTopic(t, "topic", 1, "retention.ms", "7200000", "max.message.bytes", "5000")
	response, err := newClient(t).AlterConfigs(t, &kafka.AlterConfigsRequest{
		Resources: []kafka.AlterConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.AlterConfigRequestConfig{{Name: "retention.ms", Value: "1800000"}},
		}},
	})
	t.NoError(err, "alter configs")
	for _, failure := range response.Errors {
		t.NoError(failure, "alter configs")
	}
	t.Eventually("what is not named is back to its default", func() bool {
		return topicConfig(t, topic, "retention.ms").ConfigValue == "1800000" &&
			topicConfig(t, topic, "max.message.bytes").ConfigSource != 1
	})
}

func alterIncrementally(t *T, topic, key, value string, operation kafka.ConfigOperation) error {
	response, err := newClient(t).IncrementalAlterConfigs(t, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{
				{Name: key, Value: value, ConfigOperation: operation},
			},
		}},
	})
	t.NoError(err, "incremental alter configs")
	return response.Resources[0].Error
}

func checkIncrementalConfigs(t *T) {
	topic := newTopic(t, "topic", 1, "retention.ms", "7200000")
	alter := func(key, value string, operation kafka.ConfigOperation, want string) {
		t.NoError(alterIncrementally(t, topic, key, value, operation), "alter "+key)
		t.Eventually(fmt.Sprintf("%s is %s", key, want), func() bool {
			return topicConfig(t, topic, key).ConfigValue == want
		})
	}
	alter("max.message.bytes", "5000", kafka.ConfigOperationSet, "5000")
	harness.Equal(t, topicConfig(t, topic, "retention.ms").ConfigValue, "7200000", "retention.ms")
	if harness.Compacts() {
		alter("cleanup.policy", "compact", kafka.ConfigOperationAppend, "delete,compact")
		alter("cleanup.policy", "delete", kafka.ConfigOperationSubtract, "compact")
	}
	alter("retention.ms", "", kafka.ConfigOperationDelete, "604800000")
}

func checkConfigErrors(t *T) {
	topic := newTopic(t, "topic", 1)
	set := kafka.ConfigOperationSet
	wantError(t, alterIncrementally(t, topic, "retention.ms", "soon", set),
		kafka.InvalidConfiguration, "a wrong value")
	wantError(t, alterIncrementally(t, topic, "no.such.config", "1", set),
		kafka.InvalidConfiguration, "an unknown config")
	wantError(t, alterIncrementally(t, t.Unique("unknown"), "retention.ms", "1", set),
		kafka.UnknownTopicOrPartition, "an unknown topic")
}

func checkMetadata(t *T) {
	topic := newTopic(t, "topic", 1)
	response, err := newClient(t).Metadata(t, &kafka.MetadataRequest{})
	t.NoError(err, "metadata")
	t.True(response.ClusterID != "", "no cluster id")
	t.True(len(response.Brokers) > 0, "no brokers")
	found := false
	for _, broker := range response.Brokers {
		found = found || broker.ID == response.Controller.ID
	}
	t.True(found, "controller %d is not among the brokers", response.Controller.ID)
	names := map[string]bool{}
	for _, each := range response.Topics {
		names[each.Name] = true
	}
	t.True(names[topic], "the topic is not listed")
}

func checkAPIVersions(t *T) {
	response, err := newClient(t).ApiVersions(t, &kafka.ApiVersionsRequest{})
	t.NoError(err, "api versions")
	t.NoError(response.Error, "api versions")
	t.True(len(response.ApiKeys) > 20, "only %d keys", len(response.ApiKeys))
}
