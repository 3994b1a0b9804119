package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

// T shortens the signatures of the checks.
type T = harness.T

// newTransport opens a pool of connections that ends with the check. A pool keeps the metadata of all
// topics for seconds, therefore what has to be up to date takes a new one. A shorter time to live is
// no way out: kafka-go also takes it as the timeout of its metadata requests.
func newTransport(t *T) *kafka.Transport {
	transport := &kafka.Transport{ClientID: "compat"}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// newClient opens the client of the request API.
func newClient(t *T) *kafka.Client {
	return &kafka.Client{
		Addr: kafka.TCP(t.Bootstrap), Timeout: 20 * time.Second, Transport: newTransport(t),
	}
}

// awaitCoordinators waits until the coordinators of all groups and producers answer. kafka-go hands
// "not coordinator" and "load in progress" to its user, and a fresh broker answers them for a moment.
// Groups are spread over the partitions of an internal topic; many names find all of these.
func awaitCoordinators(t *T) {
	client := newClient(t)
	for i := range 300 {
		t.Eventually("a group's coordinator answers", func() bool {
			response, err := client.OffsetFetch(t, &kafka.OffsetFetchRequest{
				GroupID: t.Unique(fmt.Sprint(i)),
			})
			return err == nil && response.Error == nil
		})
	}
	t.Eventually("producer ids are given out", func() bool {
		response, err := client.InitProducerID(t, &kafka.InitProducerIDRequest{
			TransactionTimeoutMs: 60_000, ProducerID: -1, ProducerEpoch: -1,
		})
		return err == nil && response.Error == nil
	})
}

// newTopic creates a topic with pairs of configs and returns its name once it can be used.
func newTopic(t *T, part string, partitions int, configs ...string) string {
	config := kafka.TopicConfig{
		Topic: t.Unique(part), NumPartitions: partitions, ReplicationFactor: 1,
	}
	for i := 0; i+1 < len(configs); i += 2 {
		config.ConfigEntries = append(config.ConfigEntries,
			kafka.ConfigEntry{ConfigName: configs[i], ConfigValue: configs[i+1]})
	}
	response, err := newClient(t).CreateTopics(t, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{config},
	})
	t.NoError(err, "create topic")
	t.NoError(response.Errors[config.Topic], "create topic")
	awaitTopic(t, config.Topic, partitions)
	return config.Topic
}

// awaitTopic waits until Metadata shows a topic with all its leaders and these answer for their
// partitions: Apache Kafka answers CreateTopics some milliseconds before that, and a message with
// acks=0 is lost in between.
func awaitTopic(t *T, topic string, partitions int) {
	t.Eventually("topic "+topic+" shows up", func() bool {
		conn, err := kafka.DialContext(t, "tcp", t.Bootstrap)
		t.NoError(err, "dial")
		defer conn.Close()
		found, err := conn.ReadPartitions(topic)
		if err != nil || len(found) != partitions {
			return false
		}
		for _, partition := range found {
			if partition.Error != nil || partition.Leader.Host == "" {
				return false
			}
			if _, err := endOffset(t, topic, partition.ID); err != nil {
				return false
			}
		}
		return true
	})
}

// endOffset asks the leader of a partition for its end.
func endOffset(t *T, topic string, partition int) (int64, error) {
	conn, err := kafka.DialLeader(t, "tcp", t.Bootstrap, topic, partition)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.ReadLastOffset()
}

// newWriter opens a writer that hands batches over quickly and is closed when the check ends.
func newWriter(t *T, topic string) *kafka.Writer {
	writer := &kafka.Writer{
		Addr: kafka.TCP(t.Bootstrap), Topic: topic, Balancer: &kafka.RoundRobin{},
		RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond,
		WriteBackoffMin: 20 * time.Millisecond, Transport: newTransport(t),
	}
	t.Cleanup(func() { _ = writer.Close() })
	return writer
}

// newMessages makes count messages with unique keys.
func newMessages(count int, prefix string) []kafka.Message {
	messages := make([]kafka.Message, count)
	for i := range messages {
		messages[i] = kafka.Message{
			Key:   fmt.Appendf(nil, "%s-%d", prefix, i),
			Value: fmt.Appendf(nil, "value of %s-%d", prefix, i),
		}
	}
	return messages
}

func write(t *T, topic string, count int, prefix string) {
	t.NoError(newWriter(t, topic).WriteMessages(t, newMessages(count, prefix)...), "write")
}

// readerConfig has short waits, so that nothing takes longer than the broker does.
func readerConfig(t *T, topic string) kafka.ReaderConfig {
	return kafka.ReaderConfig{
		Brokers: []string{t.Bootstrap}, Topic: topic, MinBytes: 1, MaxBytes: 10 << 20,
		MaxWait: 200 * time.Millisecond, ReadBackoffMin: 5 * time.Millisecond,
		ReadBackoffMax: 50 * time.Millisecond, ReadLagInterval: -1,
	}
}

// newReader opens a reader that is closed when the check ends.
func newReader(t *T, config kafka.ReaderConfig) *kafka.Reader {
	reader := kafka.NewReader(config)
	t.Cleanup(func() { _ = reader.Close() })
	return reader
}

// readPartition opens a reader of one partition at an offset.
func readPartition(t *T, topic string, partition int, offset int64) *kafka.Reader {
	config := readerConfig(t, topic)
	config.Partition = partition
	reader := newReader(t, config)
	t.NoError(reader.SetOffset(offset), "set offset")
	return reader
}

// take reads count messages, which commits them for a reader of a group.
func take(t *T, reader *kafka.Reader, count int) []kafka.Message {
	messages := make([]kafka.Message, count)
	for i := range messages {
		message, err := reader.ReadMessage(t)
		t.NoError(err, fmt.Sprintf("read with %d of %d messages", i, count))
		messages[i] = message
	}
	return messages
}

// takeAll reads every partition of a topic up to the ends it has now.
func takeAll(t *T, topic string, partitions int) []kafka.Message {
	var messages []kafka.Message
	for partition := range partitions {
		end, err := endOffset(t, topic, partition)
		t.NoError(err, "end offset")
		if end > 0 {
			reader := readPartition(t, topic, partition, kafka.FirstOffset)
			messages = append(messages, take(t, reader, int(end))...)
		}
	}
	return messages
}

// awaitEnds waits until the ends of all partitions add up to total.
func awaitEnds(t *T, topic string, partitions, total int) {
	t.Eventually(fmt.Sprintf("%d messages are there", total), func() bool {
		sum := 0
		for partition := range partitions {
			end, err := endOffset(t, topic, partition)
			t.NoError(err, "end offset")
			sum += int(end)
		}
		return sum == total
	})
}

// nothingWithin checks that a reader gets nothing for a while: that something does not happen cannot
// be awaited otherwise.
func nothingWithin(t *T, reader *kafka.Reader, wait time.Duration) {
	ctx, cancel := context.WithTimeout(t, wait)
	defer cancel()
	message, err := reader.FetchMessage(ctx)
	t.True(errors.Is(err, context.DeadlineExceeded),
		"wanted nothing, got offset %d, error %v", message.Offset, err)
}

func wantError(t *T, got error, want kafka.Error, what string) {
	t.True(errors.Is(got, want), "%s: got %v, want %v", what, got, want)
}
