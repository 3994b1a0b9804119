package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"keylane.test/harness"
)

var codecs = []struct {
	name  string
	codec kafka.Compression
}{
	{"none", 0}, {"gzip", kafka.Gzip}, {"snappy", kafka.Snappy}, {"lz4", kafka.Lz4},
	{"zstd", kafka.Zstd},
}

func writerChecks() []harness.Check {
	var checks []harness.Check
	for _, codec := range codecs {
		for _, acks := range []kafka.RequiredAcks{
			kafka.RequireNone, kafka.RequireOne, kafka.RequireAll,
		} {
			checks = append(checks, harness.Check{
				Name: fmt.Sprintf("writer/%s/acks-%s", codec.name, acks),
				Run:  func(t *T) { checkRoundTrip(t, codec.codec, acks) },
			})
		}
	}
	return append(checks,
		harness.Check{Name: "writer/headers", Run: checkHeaders},
		harness.Check{Name: "writer/null-keys-and-values", Run: checkNulls},
		harness.Check{Name: "writer/timestamps", Run: checkTimes},
		harness.Check{Name: "writer/log-append-time", Run: checkLogAppendTime},
		harness.Check{Name: "writer/large-message", Run: checkLargeMessage},
		harness.Check{Name: "writer/too-large-message", Run: checkTooLarge},
		harness.Check{Name: "writer/many-partitions", Run: checkManyPartitions},
		harness.Check{Name: "writer/balancers", Run: checkBalancers},
		harness.Check{Name: "writer/many-topics", Run: checkManyTopics},
		harness.Check{Name: "writer/async-completion", Run: checkAsync},
		harness.Check{Name: "writer/unknown-topic", Run: checkUnknownTopic},
		harness.Check{Name: "writer/auto-create-topic", Run: checkAutoCreate},
	)
}

func checkRoundTrip(t *T, codec kafka.Compression, acks kafka.RequiredAcks) {
	const count, partitions = 60, 3
	topic := newTopic(t, "topic", partitions)
	writer := newWriter(t, topic)
	writer.Compression, writer.RequiredAcks = codec, acks
	padding := strings.Repeat("compressible ", 40)
	messages := newMessages(count, "message")
	for i := range messages {
		messages[i].Value = fmt.Appendf(nil, "%d %s", i, padding)
		messages[i].Headers = []kafka.Header{{Key: "number", Value: fmt.Append(nil, i)}}
	}
	t.NoError(writer.WriteMessages(t, messages...), "write")
	awaitEnds(t, topic, partitions, count)
	seen := map[string]bool{}
	for _, got := range takeAll(t, topic, partitions) {
		seen[string(got.Key)] = true
		harness.Equal(t, len(got.Headers), 1, "headers")
		number := string(got.Headers[0].Value)
		harness.Equal(t, string(got.Key), "message-"+number, "key")
		harness.Equal(t, string(got.Value), number+" "+padding, "value")
	}
	harness.Equal(t, len(seen), count, "different keys")
	for partition := range partitions {
		for _, got := range codecsOf(t, topic, partition) {
			harness.Equal(t, got, codec, "codec of a batch")
		}
	}
}

// codecsOf tells the codecs of the batches of a partition as they are stored.
func codecsOf(t *T, topic string, partition int) []kafka.Compression {
	response, err := newClient(t).Fetch(t, &kafka.FetchRequest{
		Topic: topic, Partition: partition, MinBytes: 1, MaxBytes: 10 << 20,
		MaxWait: 500 * time.Millisecond,
	})
	t.NoError(err, "fetch")
	t.NoError(response.Error, "fetch")
	var found []kafka.Compression
	collect := func(reader protocol.RecordReader) {
		batch, ok := reader.(*protocol.RecordBatch)
		t.True(ok, "a batch of type %T", reader)
		found = append(found, batch.Attributes.Compression())
	}
	switch records := response.Records.(type) {
	case *protocol.RecordStream:
		for _, each := range records.Records {
			collect(each)
		}
	default:
		collect(records)
	}
	return found
}

func checkHeaders(t *T) {
	topic := newTopic(t, "topic", 1)
	headers := []kafka.Header{
		{Key: "twice", Value: []byte("one")},
		{Key: "twice", Value: []byte("two")},
		{Key: "empty", Value: []byte{}},
		{Key: "bytes", Value: []byte{0, 255, 128, 10}},
		{Key: "naïve – 鍵", Value: bytes.Repeat([]byte("x"), 5000)},
	}
	message := kafka.Message{Value: []byte("v"), Headers: headers}
	t.NoError(newWriter(t, topic).WriteMessages(t, message), "write")
	got := takeAll(t, topic, 1)[0].Headers
	harness.Equal(t, len(got), len(headers), "headers")
	for i, want := range headers {
		harness.Equal(t, got[i].Key, want.Key, "header key")
		t.True(bytes.Equal(got[i].Value, want.Value), "header %q: value differs", want.Key)
	}
}

func checkNulls(t *T) {
	topic := newTopic(t, "topic", 1)
	messages := []kafka.Message{
		{}, {Key: []byte("k")}, {Value: []byte("v")}, {Key: []byte("k"), Value: []byte("v")},
	}
	t.NoError(newWriter(t, topic).WriteMessages(t, messages...), "write")
	for i, got := range takeAll(t, topic, 1) {
		harness.Equal(t, got.Key == nil, messages[i].Key == nil, fmt.Sprintf("null key %d", i))
		harness.Equal(t, got.Value == nil, messages[i].Value == nil, fmt.Sprintf("null value %d", i))
	}
}

func checkTimes(t *T) {
	topic := newTopic(t, "topic", 1, "retention.ms", "-1")
	times := []int64{1, 1_000_000_000_123, 999_999_999_999, time.Now().UnixMilli()}
	messages := newMessages(len(times), "message")
	for i := range messages {
		messages[i].Time = time.UnixMilli(times[i])
	}
	t.NoError(newWriter(t, topic).WriteMessages(t, messages...), "write")
	for i, got := range takeAll(t, topic, 1) {
		harness.Equal(t, got.Time.UnixMilli(), times[i], "time")
	}
}

func checkLogAppendTime(t *T) {
	topic := newTopic(t, "topic", 1, "message.timestamp.type", "LogAppendTime")
	writer := newWriter(t, topic)
	var completed []kafka.Message
	writer.Completion = func(messages []kafka.Message, err error) {
		if err != nil {
			t.Errorf("completion: %v", err)
		}
		completed = append(completed, messages...)
	}
	// The writer reports the append time only of messages without a time of their own.
	t.NoError(writer.WriteMessages(t, kafka.Message{Value: []byte("v")}), "write")
	harness.Equal(t, len(completed), 1, "completed messages")
	distance := time.Since(completed[0].Time).Abs()
	t.True(distance < time.Hour, "append time in the answer is %s away from this clock", distance)
	old := kafka.Message{Value: []byte("v"), Time: time.UnixMilli(12345)}
	_, _, _, appended, err := dialLeader(t, topic).WriteCompressedMessagesAt(nil, old)
	t.NoError(err, "write with a time")
	distance = time.Since(appended).Abs()
	t.True(distance < time.Hour, "append time in the answer is %s away from this clock", distance)
}

func checkLargeMessage(t *T) {
	topic := newTopic(t, "topic", 1, "max.message.bytes", "8388608")
	writer := newWriter(t, topic)
	writer.BatchBytes = 6 << 20
	value := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	for range 3 {
		t.NoError(writer.WriteMessages(t, kafka.Message{Value: value}), "write 4 MiB")
	}
	for _, got := range takeAll(t, topic, 1) {
		t.True(bytes.Equal(got.Value, value), "large value differs")
	}
}

func checkTooLarge(t *T) {
	topic := newTopic(t, "topic", 1, "max.message.bytes", "10000")
	writer := newWriter(t, topic)
	err := writer.WriteMessages(t, kafka.Message{Value: make([]byte, 50_000)})
	wantError(t, writeError(err), kafka.MessageSizeTooLarge, "write 50 kB")
	t.NoError(writer.WriteMessages(t, newMessages(1, "small")...), "write after the refusal")
	got := takeAll(t, topic, 1)
	t.True(len(got) == 1 && string(got[0].Key) == "small-0", "read %d messages", len(got))
}

// writeError unwraps the error of the first message.
func writeError(err error) error {
	if failures, ok := errors.AsType[kafka.WriteErrors](err); ok {
		return failures[0]
	}
	return err
}

func checkManyPartitions(t *T) {
	const partitions, count = 40, 1200
	topic := newTopic(t, "topic", partitions)
	writer := newWriter(t, topic)
	writer.Balancer = kafka.BalancerFunc(func(message kafka.Message, numbers ...int) int {
		return numbers[message.WriterData.(int)%len(numbers)]
	})
	messages := newMessages(count, "message")
	for i := range messages {
		messages[i].WriterData = i
	}
	t.NoError(writer.WriteMessages(t, messages...), "write")
	got := takeAll(t, topic, partitions)
	harness.Equal(t, len(got), count, "messages")
	for _, message := range got {
		want := fmt.Sprintf("message-%d", int64(message.Partition)+message.Offset*partitions)
		harness.Equal(t, string(message.Key), want, "key at its offset")
	}
}

func checkBalancers(t *T) {
	const partitions = 5
	topic := newTopic(t, "topic", partitions)
	for _, balancer := range []kafka.Balancer{
		&kafka.Hash{}, &kafka.ReferenceHash{}, kafka.CRC32Balancer{}, kafka.Murmur2Balancer{},
		&kafka.LeastBytes{}, &kafka.RoundRobin{},
	} {
		writer := newWriter(t, topic)
		writer.Balancer = balancer
		t.NoError(writer.WriteMessages(t, newMessages(20, fmt.Sprintf("%T", balancer))...), "write")
	}
	// murmur2("foobar") as in Kafka's own UtilsTest.testMurmur2.
	writer := newWriter(t, topic)
	writer.Balancer = kafka.Murmur2Balancer{}
	t.NoError(writer.WriteMessages(t, kafka.Message{Key: []byte("foobar")}), "write")
	counts, found := map[int]int{}, -1
	for _, got := range takeAll(t, topic, partitions) {
		if strings.HasPrefix(string(got.Key), "*kafka.RoundRobin-") {
			counts[got.Partition]++
		}
		if string(got.Key) == "foobar" {
			found = got.Partition
		}
	}
	harness.Equal(t, found, (-790332482&0x7fffffff)%partitions, "partition of foobar by murmur2")
	for partition := range partitions {
		harness.Equal(t, counts[partition], 4, "messages of a partition by round robin")
	}
}

func checkManyTopics(t *T) {
	writer := newWriter(t, "")
	var messages []kafka.Message
	var topics []string
	for i := range 6 {
		topic := newTopic(t, fmt.Sprintf("topic-%d", i), 2)
		topics = append(topics, topic)
		for _, message := range newMessages(20, topic) {
			message.Topic = topic
			messages = append(messages, message)
		}
	}
	t.NoError(writer.WriteMessages(t, messages...), "write")
	for _, topic := range topics {
		harness.Equal(t, len(takeAll(t, topic, 2)), 20, "messages of "+topic)
	}
}

func checkAsync(t *T) {
	const count = 2000
	topic := newTopic(t, "topic", 3)
	writer := newWriter(t, topic)
	writer.Async, writer.Compression, writer.BatchSize = true, kafka.Snappy, 50
	var mutex sync.Mutex
	acknowledged := map[string]bool{}
	writer.Completion = func(messages []kafka.Message, err error) {
		if err != nil {
			t.Errorf("completion: %v", err)
		}
		mutex.Lock()
		defer mutex.Unlock()
		for _, message := range messages {
			acknowledged[fmt.Sprintf("%d@%d", message.Partition, message.Offset)] = true
		}
	}
	for _, message := range newMessages(count, "message") {
		t.NoError(writer.WriteMessages(t, message), "write")
	}
	// Close flushes and waits for the completions.
	t.NoError(writer.Close(), "close")
	harness.Equal(t, len(acknowledged), count, "acknowledged offsets")
	harness.Equal(t, len(takeAll(t, topic, 3)), count, "messages")
}

func checkUnknownTopic(t *T) {
	writer := newWriter(t, t.Unique("never-created"))
	writer.MaxAttempts = 2
	err := writer.WriteMessages(t, newMessages(1, "message")...)
	wantError(t, writeError(err), kafka.UnknownTopicOrPartition, "write")
}

func checkAutoCreate(t *T) {
	topic := t.Unique("topic")
	writer := newWriter(t, topic)
	writer.AllowAutoTopicCreation = true
	t.Eventually("a message is taken", func() bool {
		err := writeError(writer.WriteMessages(t, newMessages(1, "message")...))
		t.True(err == nil || errors.Is(err, kafka.UnknownTopicOrPartition) ||
			errors.Is(err, kafka.LeaderNotAvailable), "write: %v", err)
		return err == nil
	})
	reader := readPartition(t, topic, 0, kafka.FirstOffset)
	take(t, reader, 1)
}
