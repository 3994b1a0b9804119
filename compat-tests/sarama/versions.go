package main

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

// sarama chooses its requests by the configured version of Kafka: each of these sends others.
func versionChecks() []harness.Check {
	var checks []harness.Check
	for _, version := range []sarama.KafkaVersion{
		sarama.V0_11_0_0, sarama.V1_0_0_0, sarama.V2_0_0_0, sarama.V2_3_0_0, sarama.V2_8_0_0,
		sarama.V3_6_0_0, sarama.V4_0_0_0, sarama.V4_3_1_0,
	} {
		checks = append(checks,
			harness.Check{
				Name: fmt.Sprintf("versions/%s/produce-and-consume", version),
				Run:  func(t *T) { checkVersionRecords(t, version) },
			},
			harness.Check{
				Name: fmt.Sprintf("versions/%s/group", version),
				Run:  func(t *T) { checkVersionGroup(t, version) },
			},
			harness.Check{
				Name: fmt.Sprintf("versions/%s/admin", version),
				Run:  func(t *T) { checkVersionAdmin(t, version) },
			},
		)
	}
	return checks
}

func checkVersionRecords(t *T, version sarama.KafkaVersion) {
	topic, count := newTopic(t, "topic", 2), 0
	for _, codec := range codecs {
		if codec == sarama.CompressionZSTD && !version.IsAtLeast(sarama.V2_1_0_0) {
			continue
		}
		config := newConfig(version)
		config.Producer.Compression = codec
		messages := newMessages(topic, 20, codec.String())
		for _, message := range messages {
			message.Headers = []sarama.RecordHeader{{Key: []byte("h"), Value: []byte("v")}}
			message.Timestamp = time.Now()
		}
		t.NoError(newProducer(t, config).SendMessages(messages), "produce "+codec.String())
		count += len(messages)
	}
	idempotent := newConfig(version)
	idempotent.Producer.Idempotent = true
	idempotent.Net.MaxOpenRequests = 1
	produce(t, idempotent, topic, 20, "idempotent")
	count += 20
	wantDistinctKeys(t, takeAll(t, newConfig(version), topic, count))
}

func checkVersionGroup(t *T, version sarama.KafkaVersion) {
	topic := newTopic(t, "topic", 4)
	produce(t, newConfig(version), topic, 100, "message")
	g := newTeam(t, unchanged, topic)
	g.version = version
	a := g.join(t, "a")
	b := g.join(t, "b")
	g.assignments.AwaitBalanced(t, 4, "a", "b")
	g.ledger.Await(t, 100)
	b.leave()
	g.assignments.AwaitBalanced(t, 4, "a")
	produce(t, newConfig(version), topic, 20, "later")
	g.ledger.Await(t, 120)
	a.leave()
	g.ledger.ExactlyOnce(t, 120)
	harness.Equal(t, committedSum(t, g.group, topic, 4), 120, "sum of committed offsets")

	config := newConfig(version)
	config.Consumer.Offsets.AutoCommit.Enable = false
	manager, managed, closing := manage(t, config, t.Unique("offsets"), topic, 0, 3)
	managed[1].MarkOffset(7, "seven")
	manager.Commit()
	closing()
	_, managed, closing = manage(t, config, t.Unique("offsets"), topic, 0, 3)
	wantNext(t, managed[0], sarama.OffsetOldest, "")
	wantNext(t, managed[1], 7, "seven")
	closing()
}

func checkVersionAdmin(t *T, version sarama.KafkaVersion) {
	admin, topic := newAdmin(t, newConfig(version)), t.Unique("topic")
	detail := plainTopic(2)
	detail.ConfigEntries = map[string]*string{"retention.ms": text("7200000")}
	t.NoError(admin.CreateTopic(topic, detail, false), "create")
	awaitTopic(t, newAdmin(t, newConfig(newestVersion)), topic, 2)
	// Below 1.1 sarama lists topics with DescribeConfigs v0, which Apache Kafka 4 does not speak.
	if version.IsAtLeast(sarama.V1_1_0_0) {
		topics, err := admin.ListTopics()
		t.NoError(err, "list")
		retention := topics[topic].ConfigEntries["retention.ms"]
		t.True(retention != nil && *retention == "7200000", "listed retention.ms")
	}
	produce(t, newConfig(version), topic, 30, "message")
	client := newClient(t, newConfig(version))
	sum := int64(0)
	for partition := range int32(2) {
		end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
		t.NoError(err, "newest offset")
		sum += end
	}
	harness.Equal(t, sum, 30, "sum of the newest offsets")
	if version.IsAtLeast(sarama.V1_0_0_0) {
		t.NoError(admin.CreatePartitions(topic, 3, nil, false), "create partitions")
		awaitTopic(t, newAdmin(t, newConfig(newestVersion)), topic, 3)
	}
	brokers, _, err := admin.DescribeCluster()
	t.NoError(err, "describe cluster")
	t.True(len(brokers) > 0, "no brokers")
	_, err = admin.ListConsumerGroups()
	t.NoError(err, "list groups")
	t.NoError(admin.DeleteTopic(topic), "delete")
}
