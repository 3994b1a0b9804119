package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

func readerChecks() []harness.Check {
	checks := []harness.Check{
		{Name: "reader/first-last-and-exact-offsets", Run: checkPositions},
		{Name: "reader/by-time", Run: checkByTime},
		{Name: "reader/lag", Run: checkReaderLag},
		{Name: "reader/out-of-range", Run: checkOutOfRange},
		{Name: "reader/long-poll-answers-on-data", Run: checkLongPoll},
		{Name: "reader/while-writing", Run: checkTail},
	}
	for _, setting := range []struct {
		name  string
		apply func(config *kafka.ReaderConfig)
	}{
		{"defaults", func(*kafka.ReaderConfig) {}},
		{"max-bytes-2k", func(c *kafka.ReaderConfig) { c.MaxBytes = 2048 }},
		{"min-bytes-4k", func(c *kafka.ReaderConfig) { c.MinBytes = 4096 }},
		{"queue-of-one", func(c *kafka.ReaderConfig) { c.QueueCapacity = 1 }},
		{"read-committed", func(c *kafka.ReaderConfig) { c.IsolationLevel = kafka.ReadCommitted }},
	} {
		checks = append(checks, harness.Check{
			Name: "reader/settings/" + setting.name,
			Run:  func(t *T) { checkSettings(t, setting.apply) },
		})
	}
	return checks
}

// checkSettings reads mixed batches of every codec under the given fetch settings.
func checkSettings(t *T, apply func(config *kafka.ReaderConfig)) {
	const perCodec = 100
	topic := newTopic(t, "topic", 1)
	for _, codec := range codecs {
		writer := newWriter(t, topic)
		writer.Compression, writer.BatchSize = codec.codec, 10
		messages := newMessages(perCodec, codec.name)
		for i := range messages {
			messages[i].Value = bytes.Repeat([]byte("v"), 150)
		}
		t.NoError(writer.WriteMessages(t, messages...), "write")
	}
	config := readerConfig(t, topic)
	apply(&config)
	for i, got := range take(t, newReader(t, config), perCodec*len(codecs)) {
		harness.Equal(t, got.Offset, int64(i), "offset")
		want := fmt.Sprintf("%s-%d", codecs[i/perCodec].name, i%perCodec)
		harness.Equal(t, string(got.Key), want, "key")
	}
}

func checkPositions(t *T) {
	topic := newTopic(t, "topic", 1)
	write(t, topic, 50, "message")
	for offset, first := range map[int64]int64{kafka.FirstOffset: 0, 0: 0, 17: 17, 49: 49} {
		reader := readPartition(t, topic, 0, offset)
		for i, got := range take(t, reader, int(50-first)) {
			harness.Equal(t, got.Offset, first+int64(i), "offset")
			harness.Equal(t, string(got.Key), fmt.Sprintf("message-%d", got.Offset), "key")
			harness.Equal(t, got.HighWaterMark, 50, "high watermark")
		}
		// The position can be moved while reading.
		t.NoError(reader.SetOffset(3), "set offset")
		harness.Equal(t, take(t, reader, 1)[0].Offset, 3, "offset after moving")
	}
	wantOnlyNew(t, readPartition(t, topic, 0, kafka.LastOffset), topic, 50)
}

func checkByTime(t *T) {
	const base = 1_600_000_000_000
	topic := newTopic(t, "topic", 1, "retention.ms", "-1")
	writer := newWriter(t, topic)
	writer.BatchSize = 7
	messages := newMessages(100, "message")
	for i := range messages {
		messages[i].Time = time.UnixMilli(base + int64(i)*1000)
	}
	t.NoError(writer.WriteMessages(t, messages...), "write")
	for milli, want := range map[int64]int64{
		base - 1000: 0, base: 0, base + 1: 1, base + 41_999: 42, base + 42_000: 42, base + 99_000: 99,
	} {
		reader := readPartition(t, topic, 0, kafka.FirstOffset)
		t.NoError(reader.SetOffsetAt(t, time.UnixMilli(milli)), "set offset")
		got := take(t, reader, 1)[0].Offset
		harness.Equal(t, got, want, fmt.Sprintf("offset at %d", milli))
	}
}

func checkReaderLag(t *T) {
	topic := newTopic(t, "topic", 1)
	write(t, topic, 30, "message")
	reader := readPartition(t, topic, 0, kafka.FirstOffset)
	take(t, reader, 12)
	lag, err := reader.ReadLag(t)
	t.NoError(err, "read lag")
	harness.Equal(t, lag, 18, "lag")
	harness.Equal(t, reader.Lag(), 18, "lag of the last message")
	harness.Equal(t, reader.Offset(), 12, "offset")
}

func checkOutOfRange(t *T) {
	topic := newTopic(t, "topic", 1)
	write(t, topic, 10, "message")
	config := readerConfig(t, topic)
	config.OffsetOutOfRangeError, config.MaxAttempts = true, 1
	reader := newReader(t, config)
	t.NoError(reader.SetOffset(500), "set offset")
	_, err := reader.ReadMessage(t)
	wantError(t, err, kafka.OffsetOutOfRange, "offset 500 of 10")
}

// checkLongPoll wants a parked fetch to be answered by the append and not by its timeout.
func checkLongPoll(t *T) {
	topic := newTopic(t, "topic", 1)
	config := readerConfig(t, topic)
	config.MaxWait = 9 * time.Second
	reader := newReader(t, config)
	nothingWithin(t, reader, 500*time.Millisecond)
	start := time.Now()
	write(t, topic, 1, "message")
	take(t, reader, 1)
	elapsed := time.Since(start)
	t.True(elapsed < 5*time.Second, "the message took %s with a max wait of 9 s", elapsed)
}

// checkTail reads at the end of the log while messages arrive one by one.
func checkTail(t *T) {
	const count = 200
	topic := newTopic(t, "topic", 1)
	writer := newWriter(t, topic)
	ended := make(chan error, 1)
	go func() {
		var failures []error
		for _, message := range newMessages(count, "message") {
			failures = append(failures, writer.WriteMessages(t, message))
		}
		ended <- errors.Join(failures...)
	}()
	for i, got := range take(t, readPartition(t, topic, 0, kafka.FirstOffset), count) {
		harness.Equal(t, got.Offset, int64(i), "offset")
		harness.Equal(t, string(got.Key), fmt.Sprintf("message-%d", i), "key")
	}
	t.NoError(<-ended, "write")
}
