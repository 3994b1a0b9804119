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

func consumeChecks() []harness.Check {
	checks := []harness.Check{
		{Name: "consume/earliest", Run: checkEarliest},
		{Name: "consume/latest", Run: checkLatest},
		{Name: "consume/exact-and-relative-offsets", Run: checkOffsets},
		{Name: "consume/by-timestamp", Run: checkByTimestamp},
		{Name: "consume/after-delete-records", Run: checkAfterDeleteRecords},
		{Name: "consume/out-of-range-without-reset", Run: checkOutOfRange},
		{Name: "consume/high-watermark", Run: checkHighWatermark},
		{Name: "consume/long-poll-answers-on-data", Run: checkLongPoll},
		{Name: "consume/min-bytes", Run: checkMinBytes},
		{Name: "consume/pause-and-resume", Run: checkPause},
		{Name: "consume/add-and-remove-partitions", Run: checkAddRemove},
		{Name: "consume/regex-finds-new-topic", Run: checkRegex},
		{Name: "consume/read-committed-of-plain-records", Run: checkReadCommitted},
		{Name: "consume/while-producing", Run: checkTail},
	}
	settings := []struct {
		name    string
		options []kgo.Opt
	}{
		{"one-byte-limits", []kgo.Opt{
			kgo.FetchMaxBytes(1), kgo.FetchMaxPartitionBytes(1), kgo.BrokerMaxReadBytes(100 << 20)}},
		{"partition-limit-4k", []kgo.Opt{kgo.FetchMaxPartitionBytes(4096)}},
		{"one-fetch-at-a-time", []kgo.Opt{kgo.MaxConcurrentFetches(1)}},
		{"short-wait", []kgo.Opt{kgo.FetchMaxWait(10 * time.Millisecond)}},
		{"no-sessions", []kgo.Opt{kgo.DisableFetchSessions()}},
	}
	for _, setting := range settings {
		checks = append(checks, harness.Check{
			Name: "consume/settings/" + setting.name,
			Run:  func(t *T) { checkSettings(t, setting.options) },
		})
	}
	return checks
}

// checkSettings reads mixed batches of every codec under the given fetch settings.
func checkSettings(t *T, options []kgo.Opt) {
	const perCodec = 100
	topic := newTopic(t, "topic", 6)
	value := bytes.Repeat([]byte("v"), 200)
	for _, codec := range codecs {
		client := openClient(t, kgo.ProducerBatchCompression(codec.codec),
			kgo.ProducerBatchMaxBytes(8192), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
		records := newRecords(topic, perCodec, codec.name)
		for _, record := range records {
			record.Value = value
		}
		t.NoError(client.ProduceSync(t, records...).FirstErr(), "produce")
		client.Close()
	}
	next := map[int32]int64{}
	keys := map[string]bool{}
	for _, got := range consumeAll(t, topic, perCodec*len(codecs), options...) {
		harness.Equal(t, got.Offset, next[got.Partition], "offset")
		next[got.Partition]++
		keys[string(got.Key)] = true
	}
	harness.Equal(t, len(keys), perCodec*len(codecs), "different keys")
}

func checkEarliest(t *T) {
	topic := newTopic(t, "topic", 3)
	produce(t, topic, 100, "record")
	consumeAll(t, topic, 100)
}

func checkLatest(t *T) {
	topic := newTopic(t, "topic", 1)
	produce(t, topic, 10, "old")
	client := consumePartition(t, topic, 0, kgo.NewOffset().AtEnd())
	// When the position is taken cannot be seen, so records go on coming.
	stop := feed(t, topic)
	records := consumeSome(t, client)
	first, end := records[0].Offset, int64(10+stop())
	t.True(first >= 10, "the first record is at offset %d", first)
	for int64(len(records)) < end-first {
		records = append(records, consumeSome(t, client)...)
	}
	for i, got := range records {
		harness.Equal(t, got.Offset, first+int64(i), "offset")
	}
}

func checkOffsets(t *T) {
	topic := newTopic(t, "topic", 1)
	produce(t, topic, 100, "record")
	cases := []struct {
		offset kgo.Offset
		first  int64
	}{
		{kgo.NewOffset().At(0), 0},
		{kgo.NewOffset().At(42), 42},
		{kgo.NewOffset().At(99), 99},
		{kgo.NewOffset().AtEnd().Relative(-5), 95},
		{kgo.NewOffset().AtStart().Relative(7), 7},
		{kgo.NewOffset().At(42).WithEpoch(0), 42},
	}
	for _, each := range cases {
		client := consumePartition(t, topic, 0, each.offset)
		records := consume(t, client, int(100-each.first))
		for i, got := range records {
			harness.Equal(t, got.Offset, each.first+int64(i), "offset from "+each.offset.String())
			harness.Equal(t, string(got.Key), fmt.Sprintf("record-%d", got.Offset), "key")
		}
	}
}

func checkByTimestamp(t *T) {
	const base = 1_600_000_000_000
	topic := newTopic(t, "topic", 1, "retention.ms", "-1")
	client := newClient(t, kgo.ProducerBatchMaxBytes(1024))
	records := newRecords(topic, 100, "record")
	for i, record := range records {
		record.Timestamp = time.UnixMilli(base + int64(i)*1000)
	}
	t.NoError(client.ProduceSync(t, records...).FirstErr(), "produce")
	for milli, first := range map[int64]int64{
		0: 0, base: 0, base + 1: 1, base + 41_999: 42, base + 42_000: 42, base + 99_000: 99,
	} {
		consumer := consumePartition(t, topic, 0, kgo.NewOffset().AfterMilli(milli))
		for i, got := range consume(t, consumer, int(100-first)) {
			harness.Equal(t, got.Offset, first+int64(i), fmt.Sprintf("offset after %d", milli))
		}
	}
	// Past the last record the position is the end.
	consumer := consumePartition(t, topic, 0, kgo.NewOffset().AfterMilli(base+1_000_000))
	nothingWithin(t, consumer, 1500*time.Millisecond)
	produce(t, topic, 1, "late")
	harness.Equal(t, consume(t, consumer, 1)[0].Offset, 100, "offset after the end")
}

func checkAfterDeleteRecords(t *T) {
	topic := newTopic(t, "topic", 1)
	produce(t, topic, 50, "record")
	deleteRecordsBefore(t, topic, 30)
	// At 10 is out of range now: the reset policy decides.
	client := consumePartition(t, topic, 0, kgo.NewOffset().At(10),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for i, got := range consume(t, client, 20) {
		harness.Equal(t, got.Offset, int64(30+i), "offset")
	}
}

func checkOutOfRange(t *T) {
	topic := newTopic(t, "topic", 1)
	produce(t, topic, 10, "record")
	for _, offset := range []int64{500, 11} {
		client := consumePartition(t, topic, 0, kgo.NewOffset().At(offset),
			kgo.ConsumeResetOffset(kgo.NoResetOffset()))
		var failure error
		for failure == nil && t.Err() == nil {
			client.PollFetches(t).EachError(func(_ string, _ int32, err error) { failure = err })
		}
		t.True(errors.Is(failure, kerr.OffsetOutOfRange),
			"offset %d: got %v, want OFFSET_OUT_OF_RANGE", offset, failure)
	}
	// The end itself is in range.
	client := consumePartition(t, topic, 0, kgo.NewOffset().At(10),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	nothingWithin(t, client, 700*time.Millisecond)
	produce(t, topic, 1, "next")
	harness.Equal(t, consume(t, client, 1)[0].Offset, 10, "offset")
}

func checkHighWatermark(t *T) {
	topic := newTopic(t, "topic", 1)
	produce(t, topic, 25, "record")
	client := consumePartition(t, topic, 0, kgo.NewOffset().At(5))
	var last kgo.FetchPartition
	client.PollFetches(t).EachPartition(func(part kgo.FetchTopicPartition) {
		last = part.FetchPartition
	})
	t.NoError(last.Err, "fetch")
	harness.Equal(t, last.HighWatermark, 25, "high watermark")
	harness.Equal(t, last.LastStableOffset, 25, "last stable offset")
	harness.Equal(t, last.LogStartOffset, 0, "log start offset")
}

// checkLongPoll wants a parked fetch to be answered by the append and not by its timeout.
func checkLongPoll(t *T) {
	topic := newTopic(t, "topic", 1)
	client := consumePartition(t, topic, 0, kgo.NewOffset().AtStart(),
		kgo.FetchMaxWait(30*time.Second))
	nothingWithin(t, client, time.Second)
	start := time.Now()
	produce(t, topic, 1, "record")
	consume(t, client, 1)
	elapsed := time.Since(start)
	t.True(elapsed < 10*time.Second, "the record took %s with a max wait of 30 s", elapsed)
}

func checkMinBytes(t *T) {
	topic := newTopic(t, "topic", 1)
	client := consumePartition(t, topic, 0, kgo.NewOffset().AtStart(),
		kgo.FetchMinBytes(100_000), kgo.FetchMaxWait(3*time.Second))
	produce(t, topic, 1, "small")
	start := time.Now()
	consume(t, client, 1)
	// The fetch may have been parked some time before the clock was started.
	elapsed := time.Since(start)
	t.True(elapsed > 500*time.Millisecond, "answered below min bytes after %s", elapsed)

	waiting := consumePartition(t, topic, 0, kgo.NewOffset().AtStart(),
		kgo.FetchMinBytes(100_000), kgo.FetchMaxWait(30*time.Second))
	record := &kgo.Record{Topic: topic, Value: make([]byte, 200_000)}
	producer := newClient(t, kgo.ProducerBatchCompression(kgo.NoCompression()))
	t.NoError(producer.ProduceSync(t, record).FirstErr(), "produce")
	start = time.Now()
	consume(t, waiting, 2)
	t.True(time.Since(start) < 10*time.Second, "min bytes were there, yet %s", time.Since(start))
}

func checkPause(t *T) {
	topic := newTopic(t, "topic", 2)
	producer := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	both := func() {
		for partition := range int32(2) {
			record := &kgo.Record{Topic: topic, Partition: partition}
			t.NoError(producer.ProduceSync(t, record).FirstErr(), "produce")
		}
	}
	client := newClient(t, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	both()
	consume(t, client, 2)
	client.PauseFetchPartitions(map[string][]int32{topic: {1}})
	both()
	harness.Equal(t, consume(t, client, 1)[0].Partition, 0, "partition while 1 is paused")
	nothingWithin(t, client, 500*time.Millisecond)
	client.ResumeFetchPartitions(map[string][]int32{topic: {1}})
	harness.Equal(t, consume(t, client, 1)[0].Partition, 1, "partition after resuming")
}

func checkAddRemove(t *T) {
	first, second := newTopic(t, "first", 1), newTopic(t, "second", 1)
	produce(t, first, 5, "first")
	produce(t, second, 5, "second")
	client := consumePartition(t, first, 0, kgo.NewOffset().AtStart())
	consume(t, client, 5)
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{
		second: {0: kgo.NewOffset().At(3)},
	})
	harness.Equal(t, consume(t, client, 2)[0].Topic, second, "added topic")
	client.RemoveConsumePartitions(map[string][]int32{first: {0}})
	produce(t, first, 1, "unseen")
	produce(t, second, 1, "seen")
	harness.Equal(t, consume(t, client, 1)[0].Topic, second, "topic after removing the first")
	nothingWithin(t, client, 700*time.Millisecond)
}

func checkRegex(t *T) {
	existing := newTopic(t, "match-existing", 1)
	produce(t, existing, 3, "existing")
	client := newClient(t, kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+t.Unique("match-.*")+"$"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMaxAge(300*time.Millisecond),
		kgo.ConsumeExcludeTopics(".*-excluded-.*"))
	consume(t, client, 3)
	other, excluded := newTopic(t, "match-new", 1), newTopic(t, "match-excluded", 1)
	produce(t, excluded, 3, "excluded")
	produce(t, other, 3, "new")
	for _, got := range consume(t, client, 3) {
		harness.Equal(t, got.Topic, other, "topic")
	}
}

func checkReadCommitted(t *T) {
	topic := newTopic(t, "topic", 2)
	produce(t, topic, 40, "record")
	consumeAll(t, topic, 40, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

// checkTail reads at the end of the log while records arrive one by one.
func checkTail(t *T) {
	const count = 200
	topic := newTopic(t, "topic", 1)
	ctx, cancel := context.WithCancel(t)
	defer cancel()
	producer := newClient(t)
	go func() {
		for _, record := range newRecords(topic, count, "record") {
			if err := producer.ProduceSync(ctx, record).FirstErr(); err != nil {
				t.Errorf("produce: %v", err)
				return
			}
		}
	}()
	for i, got := range consumeAll(t, topic, count) {
		harness.Equal(t, got.Offset, int64(i), "offset")
		harness.Equal(t, string(got.Key), fmt.Sprintf("record-%d", i), "key")
	}
}
