package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"keylane.test/harness"
)

// codecs are listed by the number that record batches carry in their attributes.
var codecs = []struct {
	name  string
	codec kgo.CompressionCodec
}{
	{"none", kgo.NoCompression()},
	{"gzip", kgo.GzipCompression()},
	{"snappy", kgo.SnappyCompression()},
	{"lz4", kgo.Lz4Compression()},
	{"zstd", kgo.ZstdCompression()},
}

var ackLevels = []struct {
	name    string
	options []kgo.Opt
}{
	{"acks-0", []kgo.Opt{kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()}},
	{"acks-1", []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}},
	{"acks-all", []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks()), kgo.DisableIdempotentWrite()}},
	{"acks-all-idempotent", nil},
}

func produceChecks() []harness.Check {
	var checks []harness.Check
	for number, codec := range codecs {
		for _, acks := range ackLevels {
			options := append([]kgo.Opt{kgo.ProducerBatchCompression(codec.codec)}, acks.options...)
			checks = append(checks, harness.Check{
				Name: fmt.Sprintf("produce/%s/%s", codec.name, acks.name),
				Run:  func(t *T) { checkRoundTrip(t, uint8(number), options) },
			})
		}
	}
	return append(checks,
		harness.Check{Name: "produce/headers", Run: checkHeaders},
		harness.Check{Name: "produce/null-keys-and-values", Run: checkNulls},
		harness.Check{Name: "produce/create-time", Run: checkCreateTime},
		harness.Check{Name: "produce/log-append-time", Run: checkLogAppendTime},
		harness.Check{Name: "produce/timestamp-too-far-ahead", Run: checkInvalidTimestamp},
		harness.Check{Name: "produce/large-record", Run: checkLargeRecord},
		harness.Check{Name: "produce/too-large-record", Run: checkTooLarge},
		harness.Check{Name: "produce/many-partitions", Run: checkManyPartitions},
		harness.Check{Name: "produce/manual-partitioner", Run: checkManualPartitioner},
		harness.Check{Name: "produce/round-robin-partitioner", Run: checkRoundRobinPartitioner},
		harness.Check{Name: "produce/java-key-hash", Run: checkKeyHash},
		harness.Check{Name: "produce/many-topics-in-one-request", Run: checkManyTopics},
		harness.Check{Name: "produce/unknown-topic", Run: checkUnknownTopic},
		harness.Check{Name: "produce/unknown-partition", Run: checkUnknownPartition},
		harness.Check{Name: "produce/auto-create-topic", Run: checkAutoCreate},
	)
}

func checkRoundTrip(t *T, codec uint8, options []kgo.Opt) {
	const count = 60
	topic := newTopic(t, "topic", 3)
	records := newRecords(topic, count, "record")
	sent := map[string]*kgo.Record{}
	padding := bytes.Repeat([]byte("compressible "), 40)
	for _, record := range records {
		record.Value = append(record.Value, padding...)
		record.Headers = []kgo.RecordHeader{{Key: "of", Value: record.Key}}
		sent[string(record.Key)] = record
	}
	client := newClient(t, options...)
	t.NoError(client.ProduceSync(t, records...).FirstErr(), "produce")
	for _, got := range consumeAll(t, topic, count) {
		want := sent[string(got.Key)]
		t.True(want != nil, "unknown or repeated key %q", got.Key)
		delete(sent, string(got.Key))
		t.True(bytes.Equal(got.Value, want.Value), "value of %q differs", got.Key)
		harness.Equal(t, len(got.Headers), 1, "headers")
		harness.Equal(t, string(got.Headers[0].Value), string(got.Key), "header")
		harness.Equal(t, got.Attrs.CompressionType(), codec, "codec of the batch")
	}
}

func checkHeaders(t *T) {
	topic := newTopic(t, "topic", 1)
	headers := []kgo.RecordHeader{
		{Key: "twice", Value: []byte("one")},
		{Key: "twice", Value: []byte("two")},
		{Key: "empty", Value: []byte{}},
		{Key: "null", Value: nil},
		{Key: "", Value: []byte("no key")},
		{Key: "bytes", Value: []byte{0, 255, 128, 10}},
		{Key: "naïve – 鍵", Value: bytes.Repeat([]byte("x"), 5000)},
	}
	record := &kgo.Record{Topic: topic, Value: []byte("v"), Headers: headers}
	t.NoError(newClient(t).ProduceSync(t, record).FirstErr(), "produce")
	got := consumeAll(t, topic, 1)[0].Headers
	harness.Equal(t, len(got), len(headers), "headers")
	for i, want := range headers {
		harness.Equal(t, got[i].Key, want.Key, "header key")
		t.True(bytes.Equal(got[i].Value, want.Value), "header %q: value differs", want.Key)
		harness.Equal(t, got[i].Value == nil, want.Value == nil, "header null-ness of "+want.Key)
	}
}

func checkNulls(t *T) {
	topic := newTopic(t, "topic", 1)
	records := []*kgo.Record{
		{Topic: topic, Key: nil, Value: nil},
		{Topic: topic, Key: []byte{}, Value: nil},
		{Topic: topic, Key: nil, Value: []byte{}},
		{Topic: topic, Key: []byte("k"), Value: nil},
		{Topic: topic, Key: nil, Value: []byte("v")},
	}
	t.NoError(newClient(t).ProduceSync(t, records...).FirstErr(), "produce")
	for i, got := range consumeAll(t, topic, len(records)) {
		want := records[i]
		t.True(bytes.Equal(got.Key, want.Key), "key of record %d", i)
		t.True(bytes.Equal(got.Value, want.Value), "value of record %d", i)
		harness.Equal(t, got.Key == nil, want.Key == nil, fmt.Sprintf("null key %d", i))
		harness.Equal(t, got.Value == nil, want.Value == nil, fmt.Sprintf("null value %d", i))
	}
}

func checkCreateTime(t *T) {
	topic := newTopic(t, "topic", 1, "retention.ms", "-1")
	times := []time.Time{
		time.UnixMilli(0), time.UnixMilli(1_000_000_000_123), time.UnixMilli(999_999_999_999),
		time.Now().Truncate(time.Millisecond),
	}
	var records []*kgo.Record
	for _, at := range times {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte("v"), Timestamp: at})
	}
	t.NoError(newClient(t).ProduceSync(t, records...).FirstErr(), "produce")
	for i, got := range consumeAll(t, topic, len(times)) {
		harness.Equal(t, got.Timestamp.UnixMilli(), times[i].UnixMilli(), "timestamp")
		harness.Equal(t, got.Attrs.TimestampType(), 0, "timestamp type")
	}
}

func checkLogAppendTime(t *T) {
	topic := newTopic(t, "topic", 1, "message.timestamp.type", "LogAppendTime")
	before := time.Now()
	record := &kgo.Record{Topic: topic, Value: []byte("v"), Timestamp: time.UnixMilli(12345)}
	t.NoError(newClient(t).ProduceSync(t, record).FirstErr(), "produce")
	got := consumeAll(t, topic, 1)[0]
	harness.Equal(t, got.Attrs.TimestampType(), 1, "timestamp type")
	distance := got.Timestamp.Sub(before).Abs()
	t.True(distance < time.Hour, "append time is %s away from this clock", distance)
}

func checkInvalidTimestamp(t *T) {
	topic := newTopic(t, "topic", 1, "message.timestamp.after.max.ms", "60000")
	record := &kgo.Record{Topic: topic, Value: []byte("v"), Timestamp: time.Now().Add(2 * time.Hour)}
	err := newClient(t).ProduceSync(t, record).FirstErr()
	t.True(errors.Is(err, kerr.InvalidTimestamp), "produce: got %v, want INVALID_TIMESTAMP", err)
}

func checkLargeRecord(t *T) {
	topic := newTopic(t, "topic", 1, "max.message.bytes", "8388608")
	value := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	client := newClient(t,
		kgo.ProducerBatchMaxBytes(6<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range 3 {
		record := &kgo.Record{Topic: topic, Value: value}
		t.NoError(client.ProduceSync(t, record).FirstErr(), "produce 4 MiB")
	}
	// A fetch limit below the size of a record must still return that record (KIP-74).
	for _, limit := range []int32{1 << 10, 16 << 20} {
		records := consumeAll(t, topic, 3, kgo.FetchMaxPartitionBytes(limit))
		for _, got := range records {
			t.True(bytes.Equal(got.Value, value), "large value differs")
		}
	}
}

func checkTooLarge(t *T) {
	topic := newTopic(t, "topic", 1, "max.message.bytes", "10000")
	client := newClient(t, kgo.ProducerBatchCompression(kgo.NoCompression()))
	large := &kgo.Record{Topic: topic, Value: make([]byte, 50_000)}
	err := client.ProduceSync(t, large).FirstErr()
	t.True(errors.Is(err, kerr.MessageTooLarge), "got %v, want MESSAGE_TOO_LARGE", err)
	small := &kgo.Record{Topic: topic, Value: []byte("small")}
	t.NoError(client.ProduceSync(t, small).FirstErr(), "produce after the refusal")
	harness.Equal(t, string(consumeAll(t, topic, 1)[0].Value), "small", "the only record")
}

func checkManyPartitions(t *T) {
	const partitions, count = 60, 3000
	topic := newTopic(t, "topic", partitions)
	records := newRecords(topic, count, "record")
	for i, record := range records {
		record.Partition = int32(i % partitions)
	}
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	t.NoError(client.ProduceSync(t, records...).FirstErr(), "produce")
	next := map[int32]int64{}
	for _, got := range consumeAll(t, topic, count) {
		harness.Equal(t, got.Offset, next[got.Partition], "offset")
		want := fmt.Sprintf("record-%d", int64(got.Partition)+got.Offset*partitions)
		harness.Equal(t, string(got.Key), want, "key at its offset")
		next[got.Partition]++
	}
	harness.Equal(t, len(next), partitions, "partitions")
}

func checkManualPartitioner(t *T) {
	topic := newTopic(t, "topic", 4)
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for partition := range int32(4) {
		record := &kgo.Record{Topic: topic, Partition: 3 - partition, Value: []byte("v")}
		got, err := client.ProduceSync(t, record).First()
		t.NoError(err, "produce")
		harness.Equal(t, got.Partition, 3-partition, "partition")
		harness.Equal(t, got.Offset, 0, "offset")
	}
}

func checkRoundRobinPartitioner(t *T) {
	topic := newTopic(t, "topic", 4)
	client := newClient(t, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	t.NoError(client.ProduceSync(t, newRecords(topic, 40, "record")...).FirstErr(), "produce")
	counts := map[int32]int{}
	for _, got := range consumeAll(t, topic, 40) {
		counts[got.Partition]++
	}
	for partition := range int32(4) {
		harness.Equal(t, counts[partition], 10, fmt.Sprintf("records in partition %d", partition))
	}
}

// checkKeyHash relies on the partition count that Metadata tells: murmur2("21") etc. as in
// org.apache.kafka.common.utils.UtilsTest.testMurmur2.
func checkKeyHash(t *T) {
	const partitions = 7
	hashes := map[string]int64{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
	}
	topic := newTopic(t, "topic", partitions)
	client := newClient(t)
	for key, hash := range hashes {
		got, err := client.ProduceSync(t, &kgo.Record{Topic: topic, Key: []byte(key)}).First()
		t.NoError(err, "produce")
		harness.Equal(t, int64(got.Partition), (hash&0x7fffffff)%partitions, "partition of "+key)
	}
}

func checkManyTopics(t *T) {
	const topics, perTopic = 10, 20
	client := newClient(t, kgo.ProducerLinger(20*time.Millisecond))
	var records []*kgo.Record
	var names []string
	for i := range topics {
		name := newTopic(t, fmt.Sprintf("topic-%d", i), 2)
		names = append(names, name)
		records = append(records, newRecords(name, perTopic, name)...)
	}
	t.NoError(client.ProduceSync(t, records...).FirstErr(), "produce")
	counts := map[string]int{}
	consumer := newClient(t, kgo.ConsumeTopics(names...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for _, got := range consume(t, consumer, topics*perTopic) {
		counts[got.Topic]++
	}
	for _, name := range names {
		harness.Equal(t, counts[name], perTopic, "records of "+name)
	}
}

func checkUnknownTopic(t *T) {
	client := newClient(t, kgo.UnknownTopicRetries(1))
	record := &kgo.Record{Topic: t.Unique("never-created"), Value: []byte("v")}
	err := client.ProduceSync(t, record).FirstErr()
	t.True(errors.Is(err, kerr.UnknownTopicOrPartition),
		"got %v, want UNKNOWN_TOPIC_OR_PARTITION", err)
}

func checkUnknownPartition(t *T) {
	topic := newTopic(t, "topic", 2)
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	ctx, cancel := context.WithTimeout(t, 10*time.Second)
	defer cancel()
	err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: 9}).FirstErr()
	t.True(err != nil && ctx.Err() == nil, "partition 9 of 2: got %v, want a prompt error", err)
}

func checkAutoCreate(t *T) {
	topic := t.Unique("topic")
	client := newClient(t, kgo.AllowAutoTopicCreation())
	t.NoError(client.ProduceSync(t, newRecords(topic, 5, "record")...).FirstErr(), "produce")
	consumeAll(t, topic, 5)
}
