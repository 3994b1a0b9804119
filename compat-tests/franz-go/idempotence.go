package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"keylane.test/harness"
)

func idempotenceChecks() []harness.Check {
	return []harness.Check{
		{Name: "idempotence/order-with-requests-in-flight", Run: checkIdempotentOrder},
		{Name: "idempotence/producer-id-in-batches", Run: checkProducerID},
		{Name: "idempotence/duplicate-and-gap", Run: checkDuplicateAndGap},
		{Name: "idempotence/corrupt-batch", Run: checkCorruptBatch},
	}
}

func checkIdempotentOrder(t *T) {
	const count = 2000
	topic := newTopic(t, "topic", 2)
	client := newClient(t, kgo.ProducerBatchMaxBytes(4096),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	records := newRecords(topic, count, "record")
	for i, record := range records {
		record.Partition = int32(i % 2)
	}
	t.NoError(client.ProduceSync(t, records...).FirstErr(), "produce")
	for _, got := range consumeAll(t, topic, count) {
		want := fmt.Sprintf("record-%d", got.Offset*2+int64(got.Partition))
		harness.Equal(t, string(got.Key), want, "key at its offset")
	}
}

func checkProducerID(t *T) {
	topic := newTopic(t, "topic", 1)
	ids := map[int64]bool{}
	for range 2 {
		client := newClient(t)
		t.NoError(client.ProduceSync(t, newRecords(topic, 3, "record")...).FirstErr(), "produce")
		id, epoch, err := client.ProducerID(t)
		t.NoError(err, "producer id")
		t.True(id >= 0 && epoch >= 0, "producer id %d, epoch %d", id, epoch)
		ids[id] = true
	}
	harness.Equal(t, len(ids), 2, "different producer ids of two producers")
	for _, got := range consumeAll(t, topic, 6) {
		t.True(ids[got.ProducerID], "record with producer id %d", got.ProducerID)
	}
}

// checkDuplicateAndGap sends batches by hand: a repeated sequence is acknowledged with its first
// offset, a gap is refused (KIP-98).
func checkDuplicateAndGap(t *T) {
	topic := newTopic(t, "topic", 1)
	client := newClient(t)
	initialized, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(t, client)
	t.NoError(err, "init producer id")
	t.NoError(kerr.ErrorForCode(initialized.ErrorCode), "init producer id")
	id := initialized.ProducerID

	first := produceRaw(t, client, topic, rawBatch(id, 0, 0, 2))
	harness.Equal(t, first.ErrorCode, 0, "first batch")
	second := produceRaw(t, client, topic, rawBatch(id, 0, 2, 2))
	harness.Equal(t, second.ErrorCode, 0, "second batch")
	harness.Equal(t, second.BaseOffset, 2, "offset of the second batch")
	for _, sequence := range []int32{0, 2} {
		repeated := produceRaw(t, client, topic, rawBatch(id, 0, sequence, 2))
		harness.Equal(t, repeated.ErrorCode, 0, "repeated batch")
		harness.Equal(t, repeated.BaseOffset, int64(sequence), "offset of the repeated batch")
	}
	gap := produceRaw(t, client, topic, rawBatch(id, 0, 8, 2))
	harness.Equal(t, gap.ErrorCode, kerr.OutOfOrderSequenceNumber.Code, "batch after a gap")
	newer := produceRaw(t, client, topic, rawBatch(id, 1, 0, 1))
	harness.Equal(t, newer.ErrorCode, 0, "batch of a newer epoch")
	older := produceRaw(t, client, topic, rawBatch(id, 0, 4, 1))
	harness.Equal(t, older.ErrorCode, kerr.InvalidProducerEpoch.Code, "batch of an older epoch")
	ends, err := newAdmin(t).ListEndOffsets(t, topic)
	t.NoError(err, "list end offsets")
	end, _ := ends.Lookup(topic, 0)
	harness.Equal(t, end.Offset, 5, "end offset")
}

func checkCorruptBatch(t *T) {
	topic := newTopic(t, "topic", 1)
	client := newClient(t)
	batch := rawBatch(-1, -1, -1, 2)
	batch[len(batch)-1] ^= 0xff
	answer := produceRaw(t, client, topic, batch)
	harness.Equal(t, answer.ErrorCode, kerr.CorruptMessage.Code, "batch with a wrong checksum")
	answer = produceRaw(t, client, topic, rawBatch(-1, -1, -1, 2))
	harness.Equal(t, answer.ErrorCode, 0, "sound batch")
	harness.Equal(t, answer.BaseOffset, 0, "offset of the sound batch")
}

// rawBatch encodes a record batch of count small records.
func rawBatch(producerID int64, epoch int16, sequence int32, count int) []byte {
	var records []byte
	for i := range count {
		// attributes, timestamp delta, offset delta, null key, value of one byte, no headers
		record := []byte{0}
		record = kbin.AppendVarlong(record, 0)
		record = kbin.AppendVarint(record, int32(i))
		record = kbin.AppendVarint(record, -1)
		record = kbin.AppendVarint(record, 1)
		record = append(record, 'v')
		record = kbin.AppendVarint(record, 0)
		records = append(kbin.AppendVarint(records, int32(len(record))), record...)
	}
	now := time.Now().UnixMilli()
	batch := kmsg.NewRecordBatch()
	batch.PartitionLeaderEpoch = -1
	batch.Magic = 2
	batch.LastOffsetDelta = int32(count - 1)
	batch.FirstTimestamp, batch.MaxTimestamp = now, now
	batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = producerID, epoch, sequence
	batch.NumRecords = int32(count)
	batch.Records = records
	encoded := batch.AppendTo(nil)
	// Length counts from after itself, the checksum covers everything from the attributes on.
	binary.BigEndian.PutUint32(encoded[8:], uint32(len(encoded)-12))
	checksum := crc32.Checksum(encoded[21:], crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(encoded[17:], checksum)
	return encoded
}

func produceRaw(
	t *T, client *kgo.Client, topic string, batch []byte,
) kmsg.ProduceResponseTopicPartition {
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis = -1, 10_000
	part := kmsg.NewProduceRequestTopic()
	part.Topic = topic
	described := describe(t, client, topic)
	part.TopicID = described.TopicID
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Records = slices.Clone(batch)
	part.Partitions = append(part.Partitions, partition)
	request.Topics = append(request.Topics, part)
	leader := client.Broker(int(described.Partitions[0].Leader))
	response, err := request.RequestWith(t, leader)
	t.NoError(err, "produce a raw batch")
	harness.Equal(t, len(response.Topics), 1, "topics in the answer")
	harness.Equal(t, len(response.Topics[0].Partitions), 1, "partitions in the answer")
	return response.Topics[0].Partitions[0]
}

func topicID(t *T, client *kgo.Client, topic string) [16]byte {
	return describe(t, client, topic).TopicID
}

func describe(t *T, client *kgo.Client, topic string) kmsg.MetadataResponseTopic {
	request := kmsg.NewPtrMetadataRequest()
	part := kmsg.NewMetadataRequestTopic()
	part.Topic = kmsg.StringPtr(topic)
	request.Topics = append(request.Topics, part)
	response, err := request.RequestWith(t, client)
	t.NoError(err, "metadata")
	t.NoError(kerr.ErrorForCode(response.Topics[0].ErrorCode), "metadata of "+topic)
	return response.Topics[0]
}
