package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

// T shortens the signatures of the checks.
type T = harness.T

// newestVersion makes sarama use the highest version that it knows of each request.
var newestVersion = sarama.V4_3_1_0

// newConfig returns settings with short waits, so that nothing takes longer than the broker does.
func newConfig(version sarama.KafkaVersion) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = version
	config.Metadata.Retry.Backoff = 50 * time.Millisecond
	config.Metadata.Retry.Max = 20
	config.Metadata.AllowAutoTopicCreation = false
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Retry.Backoff = 50 * time.Millisecond
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	config.Consumer.Group.Rebalance.Timeout = 15 * time.Second
	config.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	config.Admin.Timeout = 10 * time.Second
	config.Admin.Retry.Max = 100
	return config
}

// newClient opens a client that is closed when the check ends. It waits for the connections to all
// brokers: when sarama opens one while it is used for the first time, the use may fail with "broker
// not connected", and a batch that was already on its way is sent again.
func newClient(t *T, config *sarama.Config) sarama.Client {
	client, err := sarama.NewClient([]string{t.Bootstrap}, config)
	t.NoError(err, "new client")
	t.Cleanup(func() { _ = client.Close() })
	for _, broker := range client.Brokers() {
		_ = broker.Open(config)
		_, err := broker.Connected()
		t.NoError(err, "connect to "+broker.Addr())
	}
	return client
}

func newAdmin(t *T, config *sarama.Config) sarama.ClusterAdmin {
	admin, err := sarama.NewClusterAdminFromClient(newClient(t, config))
	t.NoError(err, "new admin")
	return admin
}

// awaitCoordinators waits until the coordinators of all groups answer: the admin client hands "load in
// progress" to its user, and a fresh broker answers that for a moment. Groups are spread over the
// partitions of an internal topic; many names find all of these.
func awaitCoordinators(t *T) {
	admin := newAdmin(t, newConfig(newestVersion))
	for i := range 300 {
		t.Eventually("a group's coordinator answers", func() bool {
			response, err := admin.ListConsumerGroupOffsets(t.Unique(fmt.Sprint(i)), nil)
			return err == nil && response.GroupError() == sarama.ErrNoError
		})
	}
}

// newTopic creates a topic with pairs of configs and returns its name once it can be used.
func newTopic(t *T, part string, partitions int32, configs ...string) string {
	name := t.Unique(part)
	detail := &sarama.TopicDetail{
		NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{},
	}
	for i := 0; i+1 < len(configs); i += 2 {
		detail.ConfigEntries[configs[i]] = &configs[i+1]
	}
	admin := newAdmin(t, newConfig(newestVersion))
	t.NoError(admin.CreateTopic(name, detail, false), "create topic")
	awaitTopic(t, admin, name, partitions)
	return name
}

// awaitTopic waits until Metadata shows a topic with all its leaders and these answer for their
// partitions: Apache Kafka answers CreateTopics some milliseconds before that, and a record with
// acks=0 is lost in between.
func awaitTopic(t *T, admin sarama.ClusterAdmin, name string, partitions int32) {
	ends := map[int32]int64{}
	for partition := range partitions {
		ends[partition] = sarama.OffsetNewest
	}
	t.Eventually("topic "+name+" shows up", func() bool {
		topics, err := admin.DescribeTopics([]string{name})
		if err != nil || topics[0].Err != sarama.ErrNoError {
			return false
		}
		if len(topics[0].Partitions) != int(partitions) {
			return false
		}
		offsets, err := admin.ListOffsets(map[string]map[int32]int64{name: ends}, nil)
		if err != nil {
			return false
		}
		for _, offset := range offsets[name] {
			if offset.Err != nil && !errors.Is(offset.Err, sarama.ErrNoError) {
				return false
			}
		}
		return true
	})
}

// newMessages makes count messages with unique keys.
func newMessages(topic string, count int, prefix string) []*sarama.ProducerMessage {
	messages := make([]*sarama.ProducerMessage, count)
	for i := range messages {
		messages[i] = &sarama.ProducerMessage{
			Topic: topic,
			Key:   sarama.StringEncoder(fmt.Sprintf("%s-%d", prefix, i)),
			Value: sarama.StringEncoder(fmt.Sprintf("value of %s-%d", prefix, i)),
		}
	}
	return messages
}

func newProducer(t *T, config *sarama.Config) sarama.SyncProducer {
	producer, err := sarama.NewSyncProducerFromClient(newClient(t, config))
	t.NoError(err, "new producer")
	t.Cleanup(func() { _ = producer.Close() })
	return producer
}

// produce writes count messages with keys of their own.
func produce(t *T, config *sarama.Config, topic string, count int, prefix string) {
	t.NoError(newProducer(t, config).SendMessages(newMessages(topic, count, prefix)), "produce")
}

func newConsumer(t *T, config *sarama.Config) sarama.Consumer {
	consumer, err := sarama.NewConsumerFromClient(newClient(t, config))
	t.NoError(err, "new consumer")
	t.Cleanup(func() { _ = consumer.Close() })
	return consumer
}

// readPartition starts reading a partition; it is closed when the check ends.
func readPartition(
	t *T, consumer sarama.Consumer, topic string, partition int32, offset int64,
) sarama.PartitionConsumer {
	reader, err := consumer.ConsumePartition(topic, partition, offset)
	t.NoError(err, fmt.Sprintf("consume %s[%d] from %d", topic, partition, offset))
	t.Cleanup(func() { _ = reader.Close() })
	return reader
}

// take receives count messages of one partition.
func take(t *T, reader sarama.PartitionConsumer, count int) []*sarama.ConsumerMessage {
	var messages []*sarama.ConsumerMessage
	for len(messages) < count {
		select {
		case message := <-reader.Messages():
			messages = append(messages, message)
		case failure := <-reader.Errors():
			t.Fatalf("consume with %d of %d messages: %v", len(messages), count, failure)
		case <-t.Done():
			t.Fatalf("timed out with %d of %d messages", len(messages), count)
		}
	}
	return messages
}

// takeAll reads all partitions of a topic from the start, count messages in total.
func takeAll(t *T, config *sarama.Config, topic string, count int) []*sarama.ConsumerMessage {
	consumer := newConsumer(t, config)
	partitions, err := consumer.Partitions(topic)
	t.NoError(err, "partitions")
	received := make(chan *sarama.ConsumerMessage)
	ended := make(chan struct{})
	defer close(ended)
	for _, partition := range partitions {
		reader := readPartition(t, consumer, topic, partition, sarama.OffsetOldest)
		go forward(t, reader, received, ended)
	}
	var messages []*sarama.ConsumerMessage
	for len(messages) < count {
		select {
		case message := <-received:
			messages = append(messages, message)
		case <-t.Done():
			t.Fatalf("timed out with %d of %d messages", len(messages), count)
		}
	}
	return messages
}

// wantDistinctKeys checks that no key comes twice.
func wantDistinctKeys(t *T, messages []*sarama.ConsumerMessage) {
	seen := map[string]*sarama.ConsumerMessage{}
	for _, message := range messages {
		if first := seen[string(message.Key)]; first != nil {
			t.Fatalf("key %s is at %d@%d and at %d@%d", message.Key,
				first.Partition, first.Offset, message.Partition, message.Offset)
		}
		seen[string(message.Key)] = message
	}
}

func forward(
	t *T, reader sarama.PartitionConsumer, to chan<- *sarama.ConsumerMessage, ended <-chan struct{},
) {
	for {
		select {
		case message, open := <-reader.Messages():
			if !open {
				return
			}
			select {
			case to <- message:
			case <-ended:
				return
			}
		case failure, open := <-reader.Errors():
			if open {
				t.Errorf("consume: %v", failure)
			}
			return
		case <-ended:
			return
		}
	}
}

// nothingWithin checks that a partition delivers nothing for a while: that something does not happen
// cannot be awaited otherwise.
func nothingWithin(t *T, reader sarama.PartitionConsumer, wait time.Duration) {
	select {
	case message := <-reader.Messages():
		t.Fatalf("unexpected message at offset %d", message.Offset)
	case failure := <-reader.Errors():
		t.Fatalf("consume: %v", failure)
	case <-time.After(wait):
	}
}

func wantError(t *T, got error, want sarama.KError, what string) {
	t.True(errors.Is(got, want), "%s: got %v, want %v", what, got, want)
}
