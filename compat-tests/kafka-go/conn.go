package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

// The legacy Conn speaks old versions of few requests on one connection.
func connChecks() []harness.Check {
	checks := []harness.Check{
		{Name: "conn/create-read-delete-topics", Run: checkConnTopics},
		{Name: "conn/create-topic-errors", Run: checkConnTopicErrors},
		{Name: "conn/brokers-and-controller", Run: checkConnBrokers},
		{Name: "conn/api-versions", Run: checkConnVersions},
		{Name: "conn/offsets", Run: checkConnOffsets},
		{Name: "conn/offset-by-time", Run: checkConnOffsetByTime},
		{Name: "conn/seek", Run: checkConnSeek},
		{Name: "conn/read-batch", Run: checkConnBatch},
		{Name: "conn/read-deadline", Run: checkConnDeadline},
		{Name: "conn/short-buffer", Run: checkConnShortBuffer},
		{Name: "conn/required-acks", Run: checkConnAcks},
		{Name: "conn/too-large-message", Run: checkConnTooLarge},
	}
	for _, codec := range codecs {
		checks = append(checks, harness.Check{
			Name: "conn/write-and-read/" + codec.name,
			Run:  func(t *T) { checkConnCodec(t, codec.codec) },
		})
	}
	return checks
}

// dial opens a plain connection that is closed when the check ends.
func dial(t *T) *kafka.Conn {
	conn, err := kafka.DialContext(t, "tcp", t.Bootstrap)
	t.NoError(err, "dial")
	t.Cleanup(func() { _ = conn.Close() })
	deadline, _ := t.Deadline()
	t.NoError(conn.SetDeadline(deadline), "set deadline")
	return conn
}

// dialLeader opens a connection to the leader of partition 0.
func dialLeader(t *T, topic string) *kafka.Conn {
	conn, err := kafka.DialLeader(t, "tcp", t.Bootstrap, topic, 0)
	t.NoError(err, "dial leader")
	t.Cleanup(func() { _ = conn.Close() })
	deadline, _ := t.Deadline()
	t.NoError(conn.SetDeadline(deadline), "set deadline")
	return conn
}

// dialController opens a connection to the controller, where topics are created.
func dialController(t *T) *kafka.Conn {
	controller, err := dial(t).Controller()
	t.NoError(err, "controller")
	address := fmt.Sprintf("%s:%d", controller.Host, controller.Port)
	conn, err := kafka.DialContext(t, "tcp", address)
	t.NoError(err, "dial controller")
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func checkConnTopics(t *T) {
	conn, topic := dialController(t), t.Unique("topic")
	config := kafka.TopicConfig{
		Topic: topic, NumPartitions: 3, ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "7200000"}},
	}
	t.NoError(conn.CreateTopics(config), "create")
	awaitTopic(t, topic, 3)
	// CreateTopics of a topic that exists is no error to this API.
	t.NoError(conn.CreateTopics(config), "create again")
	partitions, err := conn.ReadPartitions(topic)
	t.NoError(err, "read partitions")
	harness.Equal(t, len(partitions), 3, "partitions")
	for _, partition := range partitions {
		harness.Equal(t, partition.Topic, topic, "topic")
		harness.Equal(t, len(partition.Replicas), harness.Nodes(), "replicas")
		harness.Equal(t, len(partition.Isr), harness.Nodes(), "in-sync replicas")
		harness.Equal(t, partition.Leader.ID, partition.Replicas[0].ID, "leader")
	}
	all, err := conn.ReadPartitions()
	t.NoError(err, "read all partitions")
	count := 0
	for _, partition := range all {
		if partition.Topic == topic {
			count++
		}
	}
	harness.Equal(t, count, 3, "partitions among all")
	t.NoError(conn.DeleteTopics(topic), "delete")
	// ReadPartitions is no way to see that: the Metadata version it sends creates missing topics.
	t.Eventually("the topic is gone", func() bool {
		return errors.Is(describeTopic(t, topic).Error, kafka.UnknownTopicOrPartition)
	})
	wantError(t, conn.DeleteTopics(topic), kafka.UnknownTopicOrPartition, "delete again")
}

func checkConnTopicErrors(t *T) {
	for _, each := range []struct {
		config kafka.TopicConfig
		want   kafka.Error
	}{
		{kafka.TopicConfig{Topic: "a b", NumPartitions: 1, ReplicationFactor: 1}, kafka.InvalidTopic},
		{kafka.TopicConfig{Topic: t.Unique("zero"), ReplicationFactor: 1}, kafka.InvalidPartitionNumber},
		{kafka.TopicConfig{Topic: t.Unique("replicas"), NumPartitions: 1, ReplicationFactor: 99},
			kafka.InvalidReplicationFactor},
	} {
		wantError(t, dialController(t).CreateTopics(each.config), each.want, each.config.Topic)
	}
}

func checkConnBrokers(t *T) {
	conn := dial(t)
	brokers, err := conn.Brokers()
	t.NoError(err, "brokers")
	controller, err := conn.Controller()
	t.NoError(err, "controller")
	found := false
	for _, broker := range brokers {
		t.True(broker.Host != "" && broker.Port > 0, "broker %v", broker)
		found = found || broker == controller
	}
	t.True(found, "controller %v is not among %v", controller, brokers)
}

func checkConnVersions(t *T) {
	versions, err := dial(t).ApiVersions()
	t.NoError(err, "api versions")
	known := map[int16]kafka.ApiVersion{}
	for _, version := range versions {
		known[version.ApiKey] = version
	}
	for _, key := range []int16{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 19, 20} {
		version, exists := known[key]
		t.True(exists, "api key %d is missing", key)
		t.True(version.MinVersion <= version.MaxVersion, "versions of key %d: %v", key, version)
	}
}

func checkConnOffsets(t *T) {
	topic := newTopic(t, "topic", 1)
	conn := dialLeader(t, topic)
	first, last, err := conn.ReadOffsets()
	t.NoError(err, "read offsets")
	t.True(first == 0 && last == 0, "offsets of an empty partition: %d, %d", first, last)
	_, err = conn.WriteMessages(newMessages(12, "message")...)
	t.NoError(err, "write")
	first, last, err = conn.ReadOffsets()
	t.NoError(err, "read offsets")
	t.True(first == 0 && last == 12, "offsets after writing: %d, %d", first, last)
	last, err = conn.ReadLastOffset()
	t.NoError(err, "read last offset")
	harness.Equal(t, last, 12, "last offset")
}

func checkConnOffsetByTime(t *T) {
	const base = 1_600_000_000_000
	topic := newTopic(t, "topic", 1, "retention.ms", "-1")
	conn := dialLeader(t, topic)
	messages := newMessages(10, "message")
	for i := range messages {
		messages[i].Time = time.UnixMilli(base + int64(i)*1000)
		_, err := conn.WriteMessages(messages[i])
		t.NoError(err, "write")
	}
	for milli, want := range map[int64]int64{base - 1: 0, base + 1: 1, base + 9000: 9} {
		offset, err := conn.ReadOffset(time.UnixMilli(milli))
		t.NoError(err, "read offset")
		harness.Equal(t, offset, want, fmt.Sprintf("offset at %d", milli))
	}
}

func checkConnSeek(t *T) {
	topic := newTopic(t, "topic", 1)
	conn := dialLeader(t, topic)
	_, err := conn.WriteMessages(newMessages(10, "message")...)
	t.NoError(err, "write")
	for _, each := range []struct {
		offset int64
		whence int
		want   int64
	}{
		{0, kafka.SeekStart, 0}, {4, kafka.SeekStart, 4}, {2, kafka.SeekCurrent, 6},
		{3, kafka.SeekEnd, 7}, {5, kafka.SeekAbsolute, 5},
	} {
		offset, err := conn.Seek(each.offset, each.whence)
		t.NoError(err, "seek")
		harness.Equal(t, offset, each.want, "offset")
		if each.whence != kafka.SeekCurrent {
			continue
		}
		message, err := conn.ReadMessage(10_000)
		t.NoError(err, "read")
		harness.Equal(t, string(message.Key), fmt.Sprintf("message-%d", each.want), "key")
	}
	_, err = conn.Seek(11, kafka.SeekAbsolute)
	wantError(t, err, kafka.OffsetOutOfRange, "seek beyond the end")
}

func checkConnCodec(t *T, codec kafka.Compression) {
	topic := newTopic(t, "topic", 1)
	conn := dialLeader(t, topic)
	messages := newMessages(30, "message")
	for i := range messages {
		messages[i].Headers = []kafka.Header{{Key: "h", Value: []byte("v")}}
		messages[i].Value = bytes.Repeat([]byte("compressible "), 20)
	}
	for round := range int64(2) {
		_, partition, offset, _, err := conn.WriteCompressedMessagesAt(codec.Codec(), messages...)
		t.NoError(err, "write")
		harness.Equal(t, partition, 0, "partition")
		harness.Equal(t, offset, round*30, "offset")
	}
	_, err := conn.Seek(0, kafka.SeekStart)
	t.NoError(err, "seek")
	batch := conn.ReadBatch(1, 10<<20)
	for i := range 60 {
		message, err := batch.ReadMessage()
		if errors.Is(err, io.EOF) {
			// A batch of the broker may end before all was read: the next one goes on.
			t.NoError(batch.Close(), "close batch")
			batch = conn.ReadBatch(1, 10<<20)
			message, err = batch.ReadMessage()
		}
		t.NoError(err, "read")
		harness.Equal(t, message.Offset, int64(i), "offset")
		harness.Equal(t, string(message.Key), fmt.Sprintf("message-%d", i%30), "key")
		harness.Equal(t, len(message.Headers), 1, "headers")
		t.True(bytes.Equal(message.Value, messages[0].Value), "value differs")
	}
	t.NoError(batch.Close(), "close batch")
	for _, got := range codecsOf(t, topic, 0) {
		harness.Equal(t, got, codec, "codec of a batch")
	}
}

func checkConnBatch(t *T) {
	topic := newTopic(t, "topic", 1)
	conn := dialLeader(t, topic)
	_, err := conn.WriteMessages(newMessages(10, "message")...)
	t.NoError(err, "write")
	batch := conn.ReadBatchWith(kafka.ReadBatchConfig{
		MinBytes: 1, MaxBytes: 1 << 20, IsolationLevel: kafka.ReadCommitted,
		MaxWait: time.Second,
	})
	harness.Equal(t, batch.HighWaterMark(), 10, "high watermark")
	harness.Equal(t, batch.Partition(), 0, "partition")
	buffer := make([]byte, 100)
	for i := range 10 {
		count, err := batch.Read(buffer)
		t.NoError(err, "read")
		harness.Equal(t, string(buffer[:count]), fmt.Sprintf("value of message-%d", i), "value")
	}
	t.NoError(batch.Close(), "close batch")
	offset, _ := conn.Offset()
	harness.Equal(t, offset, 10, "offset after the batch")
}

func checkConnDeadline(t *T) {
	topic := newTopic(t, "topic", 1)
	conn := dialLeader(t, topic)
	t.NoError(conn.SetReadDeadline(time.Now().Add(400*time.Millisecond)), "set read deadline")
	_, err := conn.ReadMessage(1000)
	t.True(errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, kafka.RequestTimedOut) ||
		errors.Is(err, context.DeadlineExceeded), "read of an empty partition: %v", err)
}

func checkConnShortBuffer(t *T) {
	topic := newTopic(t, "topic", 1)
	conn := dialLeader(t, topic)
	_, err := conn.Write([]byte("0123456789"))
	t.NoError(err, "write")
	_, err = conn.Read(make([]byte, 4))
	t.True(errors.Is(err, io.ErrShortBuffer), "got %v, want %v", err, io.ErrShortBuffer)
	// The connection goes on and the value can be read again.
	_, err = conn.Seek(0, kafka.SeekStart)
	t.NoError(err, "seek")
	buffer := make([]byte, 20)
	count, err := conn.Read(buffer)
	t.NoError(err, "read")
	harness.Equal(t, string(buffer[:count]), "0123456789", "value")
}

func checkConnAcks(t *T) {
	topic := newTopic(t, "topic", 1)
	conn := dialLeader(t, topic)
	for _, acks := range []int{1, -1} {
		t.NoError(conn.SetRequiredAcks(acks), "set required acks")
		_, err := conn.WriteMessages(newMessages(3, "message")...)
		t.NoError(err, fmt.Sprintf("write with acks %d", acks))
	}
	awaitEnds(t, topic, 1, 6)
}

func checkConnTooLarge(t *T) {
	topic := newTopic(t, "topic", 1, "max.message.bytes", "10000")
	conn := dialLeader(t, topic)
	_, err := conn.WriteMessages(kafka.Message{Value: make([]byte, 50_000)})
	wantError(t, err, kafka.MessageSizeTooLarge, "write 50 kB")
	// A Conn is of no use after that, as kafka-go leaves the rest of the answer unread.
	_, err = dialLeader(t, topic).WriteMessages(newMessages(1, "small")...)
	t.NoError(err, "write after the refusal")
	awaitEnds(t, topic, 1, 1)
}
