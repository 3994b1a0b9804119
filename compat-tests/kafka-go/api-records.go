package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

func recordAPIChecks() []harness.Check {
	checks := []harness.Check{
		{Name: "client/fetch-errors", Run: checkFetchErrors},
		{Name: "client/fetch-waits", Run: checkFetchWaits},
		{Name: "client/list-offsets", Run: checkListOffsets},
		{Name: "client/init-producer-id", Run: checkInitProducerID},
	}
	for _, codec := range codecs {
		checks = append(checks, harness.Check{
			Name: "client/produce-and-fetch/" + codec.name,
			Run:  func(t *T) { checkProduceFetch(t, codec.codec) },
		})
	}
	return checks
}

func newRecords(count int, at time.Time) []kafka.Record {
	records := make([]kafka.Record, count)
	for i := range records {
		records[i] = kafka.Record{
			Time:    at.Add(time.Duration(i) * time.Second),
			Key:     kafka.NewBytes(fmt.Appendf(nil, "key-%d", i)),
			Value:   kafka.NewBytes(fmt.Appendf(nil, "value-%d", i)),
			Headers: []kafka.Header{{Key: "h", Value: []byte("v")}},
		}
	}
	return records
}

func produce(
	t *T, topic string, partition int, codec kafka.Compression, records []kafka.Record,
) *kafka.ProduceResponse {
	response, err := newClient(t).Produce(t, &kafka.ProduceRequest{
		Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll, Compression: codec,
		Records: kafka.NewRecordReader(records...),
	})
	t.NoError(err, "produce")
	return response
}

func fetch(t *T, topic string, offset int64) *kafka.FetchResponse {
	response, err := newClient(t).Fetch(t, &kafka.FetchRequest{
		Topic: topic, Offset: offset, MinBytes: 1, MaxBytes: 10 << 20, MaxWait: 500 * time.Millisecond,
	})
	t.NoError(err, "fetch")
	return response
}

func checkProduceFetch(t *T, codec kafka.Compression) {
	topic := newTopic(t, "topic", 1)
	at := time.UnixMilli(time.Now().UnixMilli())
	for round := range int64(2) {
		response := produce(t, topic, 0, codec, newRecords(20, at))
		t.NoError(response.Error, "produce")
		harness.Equal(t, response.BaseOffset, round*20, "base offset")
		harness.Equal(t, len(response.RecordErrors), 0, "record errors")
	}
	response := fetch(t, topic, 0)
	t.NoError(response.Error, "fetch")
	harness.Equal(t, response.HighWatermark, 40, "high watermark")
	harness.Equal(t, response.LastStableOffset, 40, "last stable offset")
	harness.Equal(t, response.LogStartOffset, 0, "log start offset")
	for offset := range int64(40) {
		record, err := response.Records.ReadRecord()
		t.NoError(err, "read record")
		number := int(offset % 20)
		harness.Equal(t, record.Offset, offset, "offset")
		harness.Equal(t, record.Time.UnixMilli(), at.UnixMilli()+int64(number)*1000, "time")
		key, err := kafka.ReadAll(record.Key)
		t.NoError(err, "read key")
		harness.Equal(t, string(key), fmt.Sprintf("key-%d", number), "key")
		value, err := kafka.ReadAll(record.Value)
		t.NoError(err, "read value")
		harness.Equal(t, string(value), fmt.Sprintf("value-%d", number), "value")
		harness.Equal(t, len(record.Headers), 1, "headers")
	}
	_, err := response.Records.ReadRecord()
	t.True(errors.Is(err, io.EOF), "after the last record: %v", err)
}

func checkFetchErrors(t *T) {
	topic := newTopic(t, "topic", 1)
	t.NoError(produce(t, topic, 0, 0, newRecords(5, time.Now())).Error, "produce")
	wantError(t, fetch(t, topic, 6).Error, kafka.OffsetOutOfRange, "offset 6 of 5")
	end := fetch(t, topic, 5)
	t.NoError(end.Error, "fetch at the end")
	_, err := end.Records.ReadRecord()
	t.True(errors.Is(err, io.EOF), "at the end: %v", err)
}

// checkFetchWaits wants an empty fetch to wait as long as it asked for, and a fetch to be answered by
// an append.
func checkFetchWaits(t *T) {
	topic := newTopic(t, "topic", 1)
	start := time.Now()
	response := fetch(t, topic, 0)
	t.NoError(response.Error, "fetch")
	waited := time.Since(start)
	t.True(waited >= 450*time.Millisecond, "an empty fetch of 500 ms was answered after %s", waited)

	type result struct {
		response *kafka.FetchResponse
		err      error
	}
	answers := make(chan result, 1)
	client := newClient(t)
	start = time.Now()
	go func() {
		response, err := client.Fetch(t, &kafka.FetchRequest{
			Topic: topic, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 15 * time.Second,
		})
		answers <- result{response, err}
	}()
	t.NoError(produce(t, topic, 0, 0, newRecords(1, time.Now())).Error, "produce")
	answer := <-answers
	t.NoError(answer.err, "fetch")
	t.NoError(answer.response.Error, "fetch")
	t.True(time.Since(start) < 8*time.Second, "the fetch was answered after %s", time.Since(start))
}

func checkListOffsets(t *T) {
	topic := newTopic(t, "topic", 2, "retention.ms", "-1")
	base := time.UnixMilli(1_600_000_000_000)
	t.NoError(produce(t, topic, 0, 0, newRecords(10, base)).Error, "produce")
	response, err := newClient(t).ListOffsets(t, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: {
			kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0),
			kafka.TimeOffsetOf(0, base.Add(4500*time.Millisecond)),
			kafka.FirstOffsetOf(1), kafka.LastOffsetOf(1),
		}},
	})
	t.NoError(err, "list offsets")
	for _, partition := range response.Topics[topic] {
		t.NoError(partition.Error, "list offsets")
		harness.Equal(t, partition.FirstOffset, 0, "first offset")
		want := int64(0)
		if partition.Partition == 0 {
			want = 10
			_, exists := partition.Offsets[5]
			t.True(exists, "no offset 5 among %v", partition.Offsets)
		}
		harness.Equal(t, partition.LastOffset, want, "last offset")
	}
}

func checkInitProducerID(t *T) {
	ids := map[int]bool{}
	for range 3 {
		// Without transactional id the timeout is checked all the same.
		response, err := newClient(t).InitProducerID(t, &kafka.InitProducerIDRequest{
			TransactionTimeoutMs: 60_000, ProducerID: -1, ProducerEpoch: -1,
		})
		t.NoError(err, "init producer id")
		t.NoError(response.Error, "init producer id")
		ids[response.Producer.ProducerID] = true
	}
	harness.Equal(t, len(ids), 3, "different producer ids")
}
