package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"keylane.test/harness"
)

func adminChecks() []harness.Check {
	return []harness.Check{
		{Name: "admin/create-list-describe-delete-topic", Run: checkTopicLife},
		{Name: "admin/create-topic-errors", Run: checkCreateErrors},
		{Name: "admin/validate-only", Run: checkValidateOnly},
		{Name: "admin/recreated-topic-is-new", Run: checkRecreate},
		{Name: "admin/delete-topic-by-id", Run: checkDeleteByID},
		{Name: "admin/create-partitions", Run: checkCreatePartitions},
		{Name: "admin/topic-configs", Run: checkTopicConfigs},
		{Name: "admin/topic-configs-replaced-as-a-whole", Run: checkAlterState},
		{Name: "admin/config-errors", Run: checkConfigErrors},
		{Name: "admin/broker-configs", Run: checkBrokerConfigs},
		{Name: "admin/broker-configs-by-level", Run: checkBrokerLevels},
		{Name: "admin/group-configs", Run: checkGroupConfigs},
		{Name: "admin/delete-records", Run: checkDeleteRecords},
		{Name: "admin/list-offsets", Run: checkListOffsets},
		{Name: "admin/offset-for-leader-epoch", Run: checkLeaderEpoch},
		{Name: "admin/describe-cluster", Run: checkCluster},
		{Name: "admin/api-versions", Run: checkAPIVersions},
		{Name: "admin/describe-producers", Run: checkDescribeProducers},
	}
}

func wantError(t *T, got error, want *kerr.Error, what string) {
	t.True(errors.Is(got, want), "%s: got %v, want %s", what, got, want.Message)
}

func deleteRecordsBefore(t *T, topic string, offset int64) {
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, offset, -1)
	responses, err := newAdmin(t).DeleteRecords(t, offsets)
	t.NoError(err, "delete records")
	t.NoError(responses[topic][0].Err, "delete records")
	harness.Equal(t, responses[topic][0].LowWatermark, offset, "low watermark")
}

func checkTopicLife(t *T) {
	admin, topic := newAdmin(t), t.Unique("topic")
	retention := "7200000"
	created, err := admin.CreateTopic(t, 3, 1, map[string]*string{"retention.ms": &retention}, topic)
	t.NoError(err, "create")
	harness.Equal(t, created.NumPartitions, 3, "partitions in the answer")
	harness.Equal(t, int(created.ReplicationFactor), harness.Nodes(), "replication factor in the answer")
	t.True(created.ID != kadm.TopicID{}, "the topic has no id")
	answered := created.Configs["retention.ms"]
	t.True(answered.Value != nil && *answered.Value == retention, "retention.ms in the answer")

	awaitTopic(t, admin, topic, 3)
	topics, err := admin.ListTopics(t, topic)
	t.NoError(err, "describe")
	detail := topics[topic]
	t.NoError(detail.Err, "describe")
	harness.Equal(t, detail.ID, created.ID, "topic id")
	harness.Equal(t, len(detail.Partitions), 3, "partitions")
	for number, partition := range detail.Partitions {
		t.NoError(partition.Err, fmt.Sprintf("partition %d", number))
		harness.Equal(t, len(partition.Replicas), harness.Nodes(), "replicas")
		harness.Equal(t, len(partition.ISR), harness.Nodes(), "in-sync replicas")
		harness.Equal(t, partition.Leader, partition.Replicas[0], "leader")
		t.True(partition.LeaderEpoch >= 0, "leader epoch %d", partition.LeaderEpoch)
	}
	all, err := admin.ListTopics(t)
	t.NoError(err, "list")
	t.True(all.Has(topic), "the topic is not listed")

	deleted, err := admin.DeleteTopics(t, topic)
	t.NoError(err, "delete")
	t.NoError(deleted[topic].Err, "delete")
	t.Eventually("the topic is gone", func() bool {
		topics, err := admin.ListTopics(t, topic)
		t.NoError(err, "describe")
		return errors.Is(topics[topic].Err, kerr.UnknownTopicOrPartition)
	})
	_, err = admin.DeleteTopic(t, topic)
	wantError(t, err, kerr.UnknownTopicOrPartition, "delete again")
}

func checkCreateErrors(t *T) {
	admin, existing := newAdmin(t), newTopic(t, "existing", 1)
	value := func(text string) *string { return &text }
	cases := []struct {
		name        string
		partitions  int32
		replication int16
		configs     map[string]*string
		want        *kerr.Error
	}{
		{existing, 1, 1, nil, kerr.TopicAlreadyExists},
		{"", 1, 1, nil, kerr.InvalidTopicException},
		{".", 1, 1, nil, kerr.InvalidTopicException},
		{"..", 1, 1, nil, kerr.InvalidTopicException},
		{"with space", 1, 1, nil, kerr.InvalidTopicException},
		{"with/slash", 1, 1, nil, kerr.InvalidTopicException},
		{strings.Repeat("x", 250), 1, 1, nil, kerr.InvalidTopicException},
		{t.Unique("zero"), 0, 1, nil, kerr.InvalidPartitions},
		{t.Unique("negative"), -3, 1, nil, kerr.InvalidPartitions},
		{t.Unique("replicas"), 1, 99, nil, kerr.InvalidReplicationFactor},
		{t.Unique("config"), 1, 1, map[string]*string{"no.such.config": value("1")}, kerr.InvalidConfig},
		{t.Unique("value"), 1, 1, map[string]*string{"retention.ms": value("soon")}, kerr.InvalidConfig},
	}
	for _, each := range cases {
		responses, err := admin.CreateTopics(
			t, each.partitions, each.replication, each.configs, each.name)
		t.NoError(err, "create")
		wantError(t, responses[each.name].Err, each.want, fmt.Sprintf("create %q", each.name))
	}
	fresh := t.Unique("fresh")
	responses, err := admin.CreateTopics(t, 1, 1, nil, existing, fresh)
	t.NoError(err, "create")
	wantError(t, responses[existing].Err, kerr.TopicAlreadyExists, "create next to another")
	t.NoError(responses[fresh].Err, "create next to a refused one")
	// Dots and underscores collide in metric names, therefore Kafka refuses the second of such a pair.
	dotted := strings.ReplaceAll(t.Unique("dotted"), "-", ".")
	_, err = admin.CreateTopic(t, 1, 1, nil, dotted)
	t.NoError(err, "create dotted")
	_, err = admin.CreateTopic(t, 1, 1, nil, strings.ReplaceAll(dotted, ".", "_"))
	wantError(t, err, kerr.InvalidTopicException, "create a colliding name")
}

func checkValidateOnly(t *T) {
	admin, topic := newAdmin(t), t.Unique("topic")
	responses, err := admin.ValidateCreateTopics(t, 2, 1, nil, topic)
	t.NoError(err, "validate")
	t.NoError(responses[topic].Err, "validate")
	topics, err := admin.ListTopics(t, topic)
	t.NoError(err, "describe")
	wantError(t, topics[topic].Err, kerr.UnknownTopicOrPartition, "describe")

	existing := newTopic(t, "existing", 1)
	grown, err := admin.ValidateUpdatePartitions(t, 4, existing)
	t.NoError(err, "validate partitions")
	t.NoError(grown[existing].Err, "validate partitions")
	topics, err = admin.ListTopics(t, existing)
	t.NoError(err, "describe")
	harness.Equal(t, len(topics[existing].Partitions), 1, "partitions after validating only")
}

func checkRecreate(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 1)
	produce(t, topic, 10, "old")
	before := topicID(t, newClient(t), topic)
	_, err := admin.DeleteTopic(t, topic)
	t.NoError(err, "delete")
	t.Eventually("the topic can be created again", func() bool {
		_, err := admin.CreateTopic(t, 1, 1, nil, topic)
		t.True(err == nil || errors.Is(err, kerr.TopicAlreadyExists), "create: %v", err)
		return err == nil
	})
	awaitTopic(t, admin, topic, 1)
	t.True(topicID(t, newClient(t), topic) != before, "the new topic has the id of the old one")
	produce(t, topic, 3, "new")
	for i, got := range consumeAll(t, topic, 3) {
		harness.Equal(t, got.Offset, int64(i), "offset")
		harness.Equal(t, string(got.Key), fmt.Sprintf("new-%d", i), "key")
	}
}

func checkDeleteByID(t *T) {
	topic, client := newTopic(t, "topic", 1), newClient(t)
	id := topicID(t, client, topic)
	remove := func() int16 {
		request := kmsg.NewPtrDeleteTopicsRequest()
		request.TimeoutMillis = 10_000
		part := kmsg.NewDeleteTopicsRequestTopic()
		part.TopicID = id
		request.Topics = append(request.Topics, part)
		response, err := request.RequestWith(t, client)
		t.NoError(err, "delete by id")
		return response.Topics[0].ErrorCode
	}
	harness.Equal(t, remove(), 0, "delete by id")
	t.Eventually("the id is unknown", func() bool { return remove() == kerr.UnknownTopicID.Code })
}

func checkCreatePartitions(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 2)
	produce(t, topic, 20, "record")
	grown, err := admin.UpdatePartitions(t, 5, topic)
	t.NoError(err, "create partitions")
	t.NoError(grown[topic].Err, "create partitions")
	t.Eventually("the topic has five partitions", func() bool {
		topics, err := admin.ListTopics(t, topic)
		t.NoError(err, "describe")
		return len(topics[topic].Partitions) == 5
	})
	producer := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	record := &kgo.Record{Topic: topic, Partition: 4, Value: []byte("v")}
	t.NoError(producer.ProduceSync(t, record).FirstErr(), "produce to the new partition")
	consumeAll(t, topic, 21)
	for count, want := range map[int]*kerr.Error{
		5: kerr.InvalidPartitions, 3: kerr.InvalidPartitions, 0: kerr.InvalidPartitions,
	} {
		responses, err := admin.UpdatePartitions(t, count, topic)
		t.NoError(err, "create partitions")
		wantError(t, responses[topic].Err, want, fmt.Sprintf("%d partitions of 5", count))
	}
	unknown := t.Unique("unknown")
	responses, err := admin.UpdatePartitions(t, 3, unknown)
	t.NoError(err, "create partitions")
	wantError(t, responses[unknown].Err, kerr.UnknownTopicOrPartition, "unknown topic")
}

// topicConfig returns the value of one config and whether it was set on the topic itself.
func topicConfig(t *T, admin *kadm.Client, topic, key string) (value string, own bool) {
	configs, err := admin.DescribeTopicConfigs(t, topic)
	t.NoError(err, "describe configs")
	t.NoError(configs[0].Err, "describe configs")
	for _, config := range configs[0].Configs {
		if config.Key == key {
			t.True(config.Value != nil, "%s is null", key)
			return *config.Value, config.Source == kmsg.ConfigSourceDynamicTopicConfig
		}
	}
	t.Fatalf("no config %s among %d", key, len(configs[0].Configs))
	return "", false
}

func alterTopic(
	t *T, admin *kadm.Client, topic string, op kadm.IncrementalOp, key, value string,
) error {
	change := kadm.AlterConfig{Op: op, Name: key}
	if op != kadm.DeleteConfig {
		change.Value = &value
	}
	responses, err := admin.AlterTopicConfigs(t, []kadm.AlterConfig{change}, topic)
	t.NoError(err, "alter configs")
	return responses[0].Err
}

func checkTopicConfigs(t *T) {
	admin := newAdmin(t)
	topic := newTopic(t, "topic", 1, "retention.ms", "7200000")
	expect := func(key, want string, wantOwn bool) {
		t.Eventually(fmt.Sprintf("%s is %s", key, want), func() bool {
			value, own := topicConfig(t, admin, topic, key)
			return value == want && own == wantOwn
		})
	}
	expect("retention.ms", "7200000", true)
	expect("cleanup.policy", "delete", false)
	t.NoError(alterTopic(t, admin, topic, kadm.SetConfig, "retention.ms", "3600000"), "set")
	expect("retention.ms", "3600000", true)
	if harness.Compacts() {
		t.NoError(alterTopic(t, admin, topic, kadm.AppendConfig, "cleanup.policy", "compact"), "append")
		expect("cleanup.policy", "delete,compact", true)
		t.NoError(alterTopic(t, admin, topic, kadm.SubtractConfig, "cleanup.policy", "delete"), "subtract")
		expect("cleanup.policy", "compact", true)
		t.NoError(alterTopic(t, admin, topic, kadm.DeleteConfig, "cleanup.policy", ""), "delete")
		expect("cleanup.policy", "delete", false)
	}
	t.NoError(alterTopic(t, admin, topic, kadm.DeleteConfig, "retention.ms", ""), "delete")
	expect("retention.ms", "604800000", false)

	t.NoError(alterTopic(t, admin, topic, kadm.SetConfig, "max.message.bytes", "5000"), "set")
	client := newClient(t, kgo.ProducerBatchCompression(kgo.NoCompression()))
	t.Eventually("the new limit is in force", func() bool {
		record := &kgo.Record{Topic: topic, Value: make([]byte, 20_000)}
		err := client.ProduceSync(t, record).FirstErr()
		t.True(err == nil || errors.Is(err, kerr.MessageTooLarge), "produce: %v", err)
		return err != nil
	})
}

func checkAlterState(t *T) {
	admin := newAdmin(t)
	topic := newTopic(t, "topic", 1, "retention.ms", "7200000", "max.message.bytes", "5000")
	value := "1800000"
	change := []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}
	responses, err := admin.AlterTopicConfigsState(t, change, topic)
	t.NoError(err, "alter configs")
	t.NoError(responses[0].Err, "alter configs")
	t.Eventually("what is not named is back to its default", func() bool {
		retention, own := topicConfig(t, admin, topic, "retention.ms")
		_, ownMax := topicConfig(t, admin, topic, "max.message.bytes")
		return retention == value && own && !ownMax
	})
}

func checkConfigErrors(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 1)
	err := alterTopic(t, admin, topic, kadm.SetConfig, "retention.ms", "soon")
	wantError(t, err, kerr.InvalidConfig, "a wrong value")
	err = alterTopic(t, admin, topic, kadm.SetConfig, "no.such.config", "1")
	wantError(t, err, kerr.InvalidConfig, "an unknown config")
	err = alterTopic(t, admin, topic, kadm.AppendConfig, "retention.ms", "1")
	wantError(t, err, kerr.InvalidConfig, "append to a number")
	unknown := t.Unique("unknown")
	err = alterTopic(t, admin, unknown, kadm.SetConfig, "retention.ms", "1000")
	wantError(t, err, kerr.UnknownTopicOrPartition, "an unknown topic")
	configs, err := admin.DescribeTopicConfigs(t, unknown)
	t.NoError(err, "describe configs")
	wantError(t, configs[0].Err, kerr.UnknownTopicOrPartition, "describe an unknown topic")

	value := "1000"
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
	responses, err := admin.ValidateAlterTopicConfigs(t, change, topic)
	t.NoError(err, "validate")
	t.NoError(responses[0].Err, "validate")
	_, own := topicConfig(t, admin, topic, "retention.ms")
	t.True(!own, "validating only has set the config")
}

func checkBrokerConfigs(t *T) {
	admin := newAdmin(t)
	brokers, err := admin.ListBrokers(t)
	t.NoError(err, "list brokers")
	configs, err := admin.DescribeBrokerConfigs(t, brokers[0].NodeID)
	t.NoError(err, "describe configs")
	t.NoError(configs[0].Err, "describe configs")
	harness.Equal(t, configs[0].Name, fmt.Sprint(brokers[0].NodeID), "resource name")
	keys := map[string]bool{}
	for _, config := range configs[0].Configs {
		keys[config.Key] = true
	}
	for _, key := range []string{"num.partitions", "message.max.bytes", "log.retention.ms"} {
		t.True(keys[key], "no broker config %s", key)
	}
}

func checkDeleteRecords(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 1)
	produce(t, topic, 50, "record")
	deleteRecordsBefore(t, topic, 20)
	starts, err := admin.ListStartOffsets(t, topic)
	t.NoError(err, "list start offsets")
	harness.Equal(t, starts[topic][0].Offset, 20, "start offset")
	harness.Equal(t, consumeAll(t, topic, 30)[0].Offset, 20, "first offset")

	everything := kadm.Offsets{}
	everything.AddOffset(topic, 0, -1, -1)
	responses, err := admin.DeleteRecords(t, everything)
	t.NoError(err, "delete all")
	t.NoError(responses[topic][0].Err, "delete all")
	harness.Equal(t, responses[topic][0].LowWatermark, 50, "low watermark")

	beyond := kadm.Offsets{}
	beyond.AddOffset(topic, 0, 51, -1)
	responses, err = admin.DeleteRecords(t, beyond)
	t.NoError(err, "delete beyond the end")
	wantError(t, responses[topic][0].Err, kerr.OffsetOutOfRange, "delete beyond the end")
	produce(t, topic, 1, "next")
	harness.Equal(t, consumeAll(t, topic, 1)[0].Offset, 50, "offset after deleting all")
}

func checkListOffsets(t *T) {
	const base = 1_600_000_000_000
	admin, topic := newAdmin(t), newTopic(t, "topic", 2, "retention.ms", "-1")
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for _, seconds := range []int64{0, 30, 10, 20} {
		record := &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(base + seconds*1000)}
		t.NoError(client.ProduceSync(t, record).FirstErr(), "produce")
	}
	list := func(what string, got kadm.ListedOffsets, err error, zero, one int64) {
		t.NoError(err, what)
		t.NoError(got.Error(), what)
		harness.Equal(t, got[topic][0].Offset, zero, what+" of partition 0")
		harness.Equal(t, got[topic][1].Offset, one, what+" of partition 1")
	}
	starts, err := admin.ListStartOffsets(t, topic)
	list("start", starts, err, 0, 0)
	ends, err := admin.ListEndOffsets(t, topic)
	list("end", ends, err, 4, 0)
	committed, err := admin.ListCommittedOffsets(t, topic)
	list("stable end", committed, err, 4, 0)
	newest, err := admin.ListMaxTimestampOffsets(t, topic)
	list("offset of the newest", newest, err, 1, -1)
	harness.Equal(t, newest[topic][0].Timestamp, base+30_000, "newest timestamp")
	// kadm answers the end where no record is late enough.
	for milli, want := range map[int64]int64{
		base - 5: 0, base + 1: 1, base + 30_000: 1, base + 30_001: 4,
	} {
		after, err := admin.ListOffsetsAfterMilli(t, milli, topic)
		list(fmt.Sprintf("offset after %d", milli), after, err, want, 0)
	}
	unknown := t.Unique("unknown")
	missing, err := admin.ListEndOffsets(t, unknown)
	t.NoError(err, "list offsets of an unknown topic")
	wantError(t, missing.Error(), kerr.UnknownTopicOrPartition, "unknown topic")
}

func checkLeaderEpoch(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 1)
	produce(t, topic, 7, "record")
	metadata, err := admin.Metadata(t, topic)
	t.NoError(err, "metadata")
	epoch := metadata.Topics[topic].Partitions[0].LeaderEpoch
	request := kadm.OffsetForLeaderEpochRequest{}
	request.Add(topic, 0, epoch)
	answers, err := admin.OffsetForLeaderEpoch(t, request)
	t.NoError(err, "offset for leader epoch")
	t.NoError(answers[topic][0].Err, "offset for leader epoch")
	harness.Equal(t, answers[topic][0].LeaderEpoch, epoch, "epoch")
	harness.Equal(t, answers[topic][0].EndOffset, 7, "end offset of the epoch")
}

func checkCluster(t *T) {
	admin := newAdmin(t)
	metadata, err := admin.BrokerMetadata(t)
	t.NoError(err, "metadata")
	t.True(metadata.Cluster != "", "no cluster id")
	t.True(len(metadata.Brokers) > 0, "no brokers")
	response, err := kmsg.NewPtrDescribeClusterRequest().RequestWith(t, newClient(t))
	t.NoError(err, "describe cluster")
	harness.Equal(t, response.ErrorCode, 0, "describe cluster")
	harness.Equal(t, response.ClusterID, metadata.Cluster, "cluster id")
	harness.Equal(t, len(response.Brokers), len(metadata.Brokers), "brokers")
	known := map[int32]string{}
	for _, broker := range metadata.Brokers {
		known[broker.NodeID] = fmt.Sprintf("%s:%d", broker.Host, broker.Port)
	}
	for _, broker := range response.Brokers {
		address := fmt.Sprintf("%s:%d", broker.Host, broker.Port)
		harness.Equal(t, address, known[broker.NodeID], "address of a broker")
	}
	_, controller := known[response.ControllerID]
	t.True(controller, "controller %d is not among the brokers", response.ControllerID)
}

func checkAPIVersions(t *T) {
	versions, err := newAdmin(t).ApiVersions(t)
	t.NoError(err, "api versions")
	for _, broker := range versions.Sorted() {
		t.NoError(broker.Err, "api versions of a broker")
		for _, key := range []int16{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 22} {
			_, highest, exists := broker.KeyVersions(key)
			t.True(exists && highest > 0, "api key %d is missing", key)
		}
	}
}

func checkDescribeProducers(t *T) {
	topic, client := newTopic(t, "topic", 1), newClient(t)
	t.NoError(client.ProduceSync(t, newRecords(topic, 5, "record")...).FirstErr(), "produce")
	id, epoch, err := client.ProducerID(t)
	t.NoError(err, "producer id")
	set := kadm.TopicsSet{}
	set.Add(topic, 0)
	described, err := newAdmin(t).DescribeProducers(t, set)
	t.NoError(err, "describe producers")
	partition := described[topic].Partitions[0]
	t.NoError(partition.Err, "describe producers")
	producer, exists := partition.ActiveProducers[id]
	t.True(exists, "producer %d is not listed", id)
	harness.Equal(t, producer.ProducerEpoch, epoch, "epoch")
	harness.Equal(t, producer.LastSequence, 4, "last sequence")
}
