package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

var codecs = []sarama.CompressionCodec{
	sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy,
	sarama.CompressionLZ4, sarama.CompressionZSTD,
}

var ackLevels = []struct {
	name       string
	acks       sarama.RequiredAcks
	idempotent bool
}{
	{"acks-0", sarama.NoResponse, false},
	{"acks-1", sarama.WaitForLocal, false},
	{"acks-all", sarama.WaitForAll, false},
	{"acks-all-idempotent", sarama.WaitForAll, true},
}

func produceChecks() []harness.Check {
	var checks []harness.Check
	for _, codec := range codecs {
		for _, level := range ackLevels {
			config := newConfig(newestVersion)
			config.Producer.Compression = codec
			config.Producer.RequiredAcks = level.acks
			config.Producer.Idempotent = level.idempotent
			if level.idempotent {
				config.Net.MaxOpenRequests = 1
			}
			checks = append(checks, harness.Check{
				Name: fmt.Sprintf("produce/%s/%s", codec, level.name),
				Run:  func(t *T) { checkRoundTrip(t, config) },
			})
		}
	}
	return append(checks,
		harness.Check{Name: "produce/headers", Run: checkHeaders},
		harness.Check{Name: "produce/null-keys-and-values", Run: checkNulls},
		harness.Check{Name: "produce/create-time", Run: checkCreateTime},
		harness.Check{Name: "produce/log-append-time", Run: checkLogAppendTime},
		harness.Check{Name: "produce/large-message", Run: checkLargeMessage},
		harness.Check{Name: "produce/too-large-message", Run: checkTooLarge},
		harness.Check{Name: "produce/many-partitions", Run: checkManyPartitions},
		harness.Check{Name: "produce/partitioners", Run: checkPartitioners},
		harness.Check{Name: "produce/async", Run: checkAsync},
		harness.Check{Name: "produce/idempotent-order", Run: checkIdempotentOrder},
		harness.Check{Name: "produce/unknown-topic", Run: checkUnknownTopic},
		harness.Check{Name: "produce/auto-create-topic", Run: checkAutoCreate},
	)
}

// batchesOf fetches a partition with one plain request and returns the batches as they are stored.
func batchesOf(t *T, topic string, partition int32) []*sarama.RecordBatch {
	client := newClient(t, newConfig(newestVersion))
	leader, err := client.Leader(topic, partition)
	t.NoError(err, "leader")
	request := &sarama.FetchRequest{
		Version: 11, MaxWaitTime: 500, MinBytes: 1, MaxBytes: 10 << 20, SessionEpoch: -1,
	}
	request.AddBlock(topic, partition, 0, 10<<20, -1)
	response, err := leader.Fetch(request)
	t.NoError(err, "fetch")
	block := response.GetBlock(topic, partition)
	t.True(block != nil, "no answer for partition %d", partition)
	harness.Equal(t, block.Err, sarama.ErrNoError, "fetch")
	var batches []*sarama.RecordBatch
	for _, records := range block.RecordsSet {
		batches = append(batches, records.RecordBatch)
	}
	return batches
}

func checkRoundTrip(t *T, config *sarama.Config) {
	const count = 60
	topic := newTopic(t, "topic", 3)
	padding := strings.Repeat("compressible ", 40)
	messages := newMessages(topic, count, "message")
	for i, message := range messages {
		message.Value = sarama.StringEncoder(fmt.Sprintf("%d %s", i, padding))
		message.Headers = []sarama.RecordHeader{
			{Key: []byte("number"), Value: []byte(fmt.Sprint(i))},
		}
	}
	t.NoError(newProducer(t, config).SendMessages(messages), "produce")
	seen := map[string]bool{}
	for _, got := range takeAll(t, newConfig(newestVersion), topic, count) {
		seen[string(got.Key)] = true
		harness.Equal(t, len(got.Headers), 1, "headers")
		number := string(got.Headers[0].Value)
		harness.Equal(t, string(got.Key), "message-"+number, "key")
		harness.Equal(t, string(got.Value), number+" "+padding, "value")
	}
	harness.Equal(t, len(seen), count, "different keys")
	for partition := range int32(3) {
		for _, batch := range batchesOf(t, topic, partition) {
			harness.Equal(t, batch.Codec, config.Producer.Compression, "codec of a batch")
			harness.Equal(t, batch.ProducerID >= 0, config.Producer.Idempotent, "producer id is set")
		}
	}
}

func checkHeaders(t *T) {
	topic := newTopic(t, "topic", 1)
	headers := []sarama.RecordHeader{
		{Key: []byte("twice"), Value: []byte("one")},
		{Key: []byte("twice"), Value: []byte("two")},
		{Key: []byte("empty"), Value: []byte{}},
		{Key: []byte("bytes"), Value: []byte{0, 255, 128, 10}},
		{Key: []byte("naïve – 鍵"), Value: bytes.Repeat([]byte("x"), 5000)},
	}
	message := &sarama.ProducerMessage{
		Topic: topic, Value: sarama.StringEncoder("v"), Headers: headers,
	}
	_, _, err := newProducer(t, newConfig(newestVersion)).SendMessage(message)
	t.NoError(err, "produce")
	got := takeAll(t, newConfig(newestVersion), topic, 1)[0].Headers
	harness.Equal(t, len(got), len(headers), "headers")
	for i, want := range headers {
		harness.Equal(t, string(got[i].Key), string(want.Key), "header key")
		t.True(bytes.Equal(got[i].Value, want.Value), "header %q: value differs", want.Key)
	}
}

func checkNulls(t *T) {
	topic := newTopic(t, "topic", 1)
	messages := []*sarama.ProducerMessage{
		{Topic: topic},
		{Topic: topic, Key: sarama.StringEncoder("k")},
		{Topic: topic, Value: sarama.StringEncoder("v")},
		{Topic: topic, Key: sarama.StringEncoder("k"), Value: sarama.StringEncoder("v")},
	}
	t.NoError(newProducer(t, newConfig(newestVersion)).SendMessages(messages), "produce")
	for i, got := range takeAll(t, newConfig(newestVersion), topic, len(messages)) {
		harness.Equal(t, got.Key == nil, messages[i].Key == nil, fmt.Sprintf("null key %d", i))
		harness.Equal(t, got.Value == nil, messages[i].Value == nil, fmt.Sprintf("null value %d", i))
	}
}

func checkCreateTime(t *T) {
	topic := newTopic(t, "topic", 1, "retention.ms", "-1")
	times := []int64{1, 1_000_000_000_123, 999_999_999_999, time.Now().UnixMilli()}
	messages := newMessages(topic, len(times), "message")
	for i, message := range messages {
		message.Timestamp = time.UnixMilli(times[i])
	}
	t.NoError(newProducer(t, newConfig(newestVersion)).SendMessages(messages), "produce")
	for i, got := range takeAll(t, newConfig(newestVersion), topic, len(times)) {
		harness.Equal(t, got.Timestamp.UnixMilli(), times[i], "timestamp")
	}
}

func checkLogAppendTime(t *T) {
	topic := newTopic(t, "topic", 1, "message.timestamp.type", "LogAppendTime")
	message := newMessages(topic, 1, "message")[0]
	message.Timestamp = time.UnixMilli(12345)
	_, _, err := newProducer(t, newConfig(newestVersion)).SendMessage(message)
	t.NoError(err, "produce")
	got := takeAll(t, newConfig(newestVersion), topic, 1)[0]
	distance := time.Since(got.Timestamp).Abs()
	t.True(distance < time.Hour, "append time is %s away from this clock", distance)
	t.True(batchesOf(t, topic, 0)[0].LogAppendTime, "the batch is not marked with its append time")
}

func checkLargeMessage(t *T) {
	topic := newTopic(t, "topic", 1, "max.message.bytes", "8388608")
	config := newConfig(newestVersion)
	config.Producer.MaxMessageBytes = 6 << 20
	value := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	producer := newProducer(t, config)
	for range 3 {
		_, _, err := producer.SendMessage(
			&sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(value)})
		t.NoError(err, "produce 4 MiB")
	}
	for _, got := range takeAll(t, config, topic, 3) {
		t.True(bytes.Equal(got.Value, value), "large value differs")
	}
}

func checkTooLarge(t *T) {
	topic := newTopic(t, "topic", 1, "max.message.bytes", "10000")
	producer := newProducer(t, newConfig(newestVersion))
	large := &sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(make([]byte, 50_000))}
	_, _, err := producer.SendMessage(large)
	wantError(t, err, sarama.ErrMessageSizeTooLarge, "produce 50 kB")
	_, offset, err := producer.SendMessage(newMessages(topic, 1, "small")[0])
	t.NoError(err, "produce after the refusal")
	harness.Equal(t, offset, 0, "offset")
}

func checkManyPartitions(t *T) {
	const partitions, count = 60, 1800
	topic := newTopic(t, "topic", partitions)
	config := newConfig(newestVersion)
	config.Producer.Partitioner = sarama.NewManualPartitioner
	messages := newMessages(topic, count, "message")
	for i, message := range messages {
		message.Partition = int32(i % partitions)
	}
	t.NoError(newProducer(t, config).SendMessages(messages), "produce")
	next := map[int32]int64{}
	for _, got := range takeAll(t, config, topic, count) {
		harness.Equal(t, got.Offset, next[got.Partition], "offset")
		want := fmt.Sprintf("message-%d", int64(got.Partition)+got.Offset*partitions)
		harness.Equal(t, string(got.Key), want, "key at its offset")
		next[got.Partition]++
	}
	harness.Equal(t, len(next), partitions, "partitions")
}

func checkPartitioners(t *T) {
	topic := newTopic(t, "topic", 5)
	send := func(partitioner sarama.PartitionerConstructor, key string, manual int32) int32 {
		config := newConfig(newestVersion)
		config.Producer.Partitioner = partitioner
		message := &sarama.ProducerMessage{Topic: topic, Partition: manual}
		if key != "" {
			message.Key = sarama.StringEncoder(key)
		}
		partition, _, err := newProducer(t, config).SendMessage(message)
		t.NoError(err, "produce")
		return partition
	}
	for manual := range int32(5) {
		harness.Equal(t, send(sarama.NewManualPartitioner, "", manual), manual, "manual partition")
	}
	// murmur2("foobar") as in Kafka's own UtilsTest.testMurmur2.
	want := int32((-790332482 & 0x7fffffff) % 5)
	harness.Equal(t, send(sarama.NewMurmur2Partitioner, "foobar", 0), want, "murmur2 of foobar")
	for _, hash := range []sarama.PartitionerConstructor{
		sarama.NewHashPartitioner, sarama.NewReferenceHashPartitioner,
		sarama.NewConsistentCRCHashPartitioner,
	} {
		first := send(hash, "some key", 0)
		harness.Equal(t, send(hash, "some key", 0), first, "partition of the same key")
	}

	config := newConfig(newestVersion)
	config.Producer.Partitioner = sarama.NewRoundRobinPartitioner
	producer := newProducer(t, config)
	counts := map[int32]int{}
	for range 20 {
		partition, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic})
		t.NoError(err, "produce")
		counts[partition]++
	}
	for partition := range int32(5) {
		harness.Equal(t, counts[partition], 4, "messages of a partition by round robin")
	}
}

func checkAsync(t *T) {
	const count = 5000
	topic := newTopic(t, "topic", 3)
	config := newConfig(newestVersion)
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	config.Producer.Compression = sarama.CompressionSnappy
	producer, err := sarama.NewAsyncProducerFromClient(newClient(t, config))
	t.NoError(err, "new producer")
	go func() {
		for _, message := range newMessages(topic, count, "message") {
			producer.Input() <- message
		}
		producer.AsyncClose()
	}()
	acknowledged := map[string]bool{}
	successes, failures := producer.Successes(), producer.Errors()
	for successes != nil || failures != nil {
		select {
		case message, open := <-successes:
			if !open {
				successes = nil
				continue
			}
			acknowledged[fmt.Sprintf("%d@%d", message.Partition, message.Offset)] = true
		case failure, open := <-failures:
			if !open {
				failures = nil
				continue
			}
			t.Errorf("produce: %v", failure)
		case <-t.Done():
			t.Fatalf("timed out with %d acknowledgements", len(acknowledged))
		}
	}
	harness.Equal(t, len(acknowledged), count, "acknowledged offsets")
	for _, got := range takeAll(t, config, topic, count) {
		delete(acknowledged, fmt.Sprintf("%d@%d", got.Partition, got.Offset))
	}
	harness.Equal(t, len(acknowledged), 0, "acknowledged messages that are not there")
}

func checkIdempotentOrder(t *T) {
	const count = 1000
	topic := newTopic(t, "topic", 1)
	config := newConfig(newestVersion)
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.Flush.MaxMessages = 20
	t.NoError(newProducer(t, config).SendMessages(newMessages(topic, count, "message")), "produce")
	for i, got := range takeAll(t, config, topic, count) {
		harness.Equal(t, got.Offset, int64(i), "offset")
		harness.Equal(t, string(got.Key), fmt.Sprintf("message-%d", i), "key")
	}
	next := int32(0)
	for _, batch := range batchesOf(t, topic, 0) {
		harness.Equal(t, batch.FirstSequence, next, "first sequence of a batch")
		next += batch.LastOffsetDelta + 1
	}
}

func checkUnknownTopic(t *T) {
	config := newConfig(newestVersion)
	config.Metadata.Retry.Max = 1
	producer := newProducer(t, config)
	_, _, err := producer.SendMessage(newMessages(t.Unique("never-created"), 1, "message")[0])
	wantError(t, err, sarama.ErrUnknownTopicOrPartition, "produce")
}

func checkAutoCreate(t *T) {
	topic := t.Unique("topic")
	config := newConfig(newestVersion)
	config.Metadata.AllowAutoTopicCreation = true
	producer := newProducer(t, config)
	t.Eventually("a message is taken", func() bool {
		_, _, err := producer.SendMessage(newMessages(topic, 1, "message")[0])
		t.True(err == nil || errors.Is(err, sarama.ErrUnknownTopicOrPartition) ||
			errors.Is(err, sarama.ErrLeaderNotAvailable), "produce: %v", err)
		return err == nil
	})
	takeAll(t, config, topic, 1)
}
