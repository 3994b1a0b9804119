package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

func consumeChecks() []harness.Check {
	checks := []harness.Check{
		{Name: "consume/oldest-newest-and-exact-offsets", Run: checkPositions},
		{Name: "consume/out-of-range", Run: checkOutOfRange},
		{Name: "consume/by-timestamp", Run: checkByTimestamp},
		{Name: "consume/high-watermark", Run: checkHighWatermark},
		{Name: "consume/pause-and-resume", Run: checkPause},
		{Name: "consume/long-poll-answers-on-data", Run: checkLongPoll},
		{Name: "consume/after-delete-records", Run: checkAfterDeleteRecords},
		{Name: "consume/unknown-topic-and-partition", Run: checkUnknownPartition},
		{Name: "consume/while-producing", Run: checkTail},
	}
	for _, setting := range []struct {
		name  string
		apply func(config *sarama.Config)
	}{
		{"defaults", func(*sarama.Config) {}},
		{"tiny-fetch-that-grows", func(c *sarama.Config) { c.Consumer.Fetch.Default = 10 }},
		{"total-limit-1k", func(c *sarama.Config) { c.Consumer.Fetch.MaxBytes = 1024 }},
		{"min-bytes-2k", func(c *sarama.Config) { c.Consumer.Fetch.Min = 2048 }},
		{"long-wait", func(c *sarama.Config) { c.Consumer.MaxWaitTime = 2 * time.Second }},
		{"read-committed", func(c *sarama.Config) { c.Consumer.IsolationLevel = sarama.ReadCommitted }},
		{"small-channel", func(c *sarama.Config) { c.ChannelBufferSize = 0 }},
	} {
		checks = append(checks, harness.Check{
			Name: "consume/settings/" + setting.name,
			Run: func(t *T) {
				config := newConfig(newestVersion)
				setting.apply(config)
				checkSettings(t, config)
			},
		})
	}
	return checks
}

// checkSettings reads mixed batches of every codec under the given fetch settings.
func checkSettings(t *T, config *sarama.Config) {
	const perCodec = 100
	topic := newTopic(t, "topic", 4)
	value := sarama.ByteEncoder(bytes.Repeat([]byte("v"), 200))
	for _, codec := range codecs {
		producing := newConfig(newestVersion)
		producing.Producer.Compression = codec
		producing.Producer.Flush.MaxMessages = 10
		messages := newMessages(topic, perCodec, codec.String())
		for _, message := range messages {
			message.Value = value
		}
		t.NoError(newProducer(t, producing).SendMessages(messages), "produce")
	}
	next := map[int32]int64{}
	received := takeAll(t, config, topic, perCodec*len(codecs))
	for _, got := range received {
		harness.Equal(t, got.Offset, next[got.Partition], "offset")
		next[got.Partition]++
	}
	wantDistinctKeys(t, received)
}

func checkPositions(t *T) {
	topic, config := newTopic(t, "topic", 1), newConfig(newestVersion)
	produce(t, config, topic, 50, "message")
	for offset, first := range map[int64]int64{sarama.OffsetOldest: 0, 0: 0, 17: 17, 49: 49} {
		reader := readPartition(t, newConsumer(t, config), topic, 0, offset)
		for i, got := range take(t, reader, int(50-first)) {
			harness.Equal(t, got.Offset, first+int64(i), "offset")
			harness.Equal(t, string(got.Key), fmt.Sprintf("message-%d", got.Offset), "key")
		}
	}
	// The position of the newest offset is taken before ConsumePartition returns.
	reader := readPartition(t, newConsumer(t, config), topic, 0, sarama.OffsetNewest)
	produce(t, config, topic, 5, "new")
	for i, got := range take(t, reader, 5) {
		harness.Equal(t, got.Offset, int64(50+i), "offset after the newest")
	}
}

func checkOutOfRange(t *T) {
	topic, config := newTopic(t, "topic", 1), newConfig(newestVersion)
	produce(t, config, topic, 10, "message")
	consumer := newConsumer(t, config)
	_, err := consumer.ConsumePartition(topic, 0, 11)
	wantError(t, err, sarama.ErrOffsetOutOfRange, "offset 11 of 10")
	reader := readPartition(t, consumer, topic, 0, 10)
	produce(t, config, topic, 1, "next")
	harness.Equal(t, take(t, reader, 1)[0].Offset, 10, "offset at the end")
}

func checkByTimestamp(t *T) {
	const base = 1_600_000_000_000
	topic, config := newTopic(t, "topic", 1, "retention.ms", "-1"), newConfig(newestVersion)
	config.Producer.Flush.MaxMessages = 7
	messages := newMessages(topic, 100, "message")
	for i, message := range messages {
		message.Timestamp = time.UnixMilli(base + int64(i)*1000)
	}
	t.NoError(newProducer(t, config).SendMessages(messages), "produce")
	client := newClient(t, config)
	for milli, want := range map[int64]int64{
		0: 0, base: 0, base + 1: 1, base + 41_999: 42, base + 42_000: 42, base + 99_000: 99,
		base + 99_001:       -1,
		sarama.OffsetNewest: 100, sarama.OffsetOldest: 0,
	} {
		offset, err := client.GetOffset(topic, 0, milli)
		t.NoError(err, "get offset")
		harness.Equal(t, offset, want, fmt.Sprintf("offset at %d", milli))
	}
}

func checkHighWatermark(t *T) {
	topic, config := newTopic(t, "topic", 1), newConfig(newestVersion)
	produce(t, config, topic, 25, "message")
	consumer := newConsumer(t, config)
	reader := readPartition(t, consumer, topic, 0, 3)
	take(t, reader, 1)
	harness.Equal(t, reader.HighWaterMarkOffset(), 25, "high watermark")
	harness.Equal(t, consumer.HighWaterMarks()[topic][0], 25, "high watermark of the consumer")
}

func checkPause(t *T) {
	topic, config := newTopic(t, "topic", 1), newConfig(newestVersion)
	produce(t, config, topic, 5, "message")
	reader := readPartition(t, newConsumer(t, config), topic, 0, sarama.OffsetOldest)
	take(t, reader, 5)
	reader.Pause()
	// One fetch may have been sent before the pause.
	nothingWithin(t, reader, 3*config.Consumer.MaxWaitTime)
	produce(t, config, topic, 5, "paused")
	nothingWithin(t, reader, 500*time.Millisecond)
	reader.Resume()
	harness.Equal(t, take(t, reader, 5)[0].Offset, 5, "first offset after resuming")
}

// checkLongPoll wants a parked fetch to be answered by the append and not by its timeout.
func checkLongPoll(t *T) {
	topic, config := newTopic(t, "topic", 1), newConfig(newestVersion)
	config.Consumer.MaxWaitTime = 8 * time.Second
	reader := readPartition(t, newConsumer(t, config), topic, 0, sarama.OffsetOldest)
	nothingWithin(t, reader, 500*time.Millisecond)
	start := time.Now()
	produce(t, config, topic, 1, "message")
	take(t, reader, 1)
	elapsed := time.Since(start)
	t.True(elapsed < 4*time.Second, "the message took %s with a max wait of 8 s", elapsed)
}

func checkAfterDeleteRecords(t *T) {
	topic, config := newTopic(t, "topic", 1), newConfig(newestVersion)
	produce(t, config, topic, 40, "message")
	t.NoError(newAdmin(t, config).DeleteRecords(topic, map[int32]int64{0: 15}), "delete records")
	consumer := newConsumer(t, config)
	_, err := consumer.ConsumePartition(topic, 0, 10)
	wantError(t, err, sarama.ErrOffsetOutOfRange, "a deleted offset")
	reader := readPartition(t, consumer, topic, 0, sarama.OffsetOldest)
	harness.Equal(t, take(t, reader, 25)[0].Offset, 15, "oldest offset")
}

func checkUnknownPartition(t *T) {
	config := newConfig(newestVersion)
	config.Metadata.Retry.Max = 1
	topic := newTopic(t, "topic", 1)
	consumer := newConsumer(t, config)
	_, err := consumer.ConsumePartition(topic, 7, 0)
	wantError(t, err, sarama.ErrUnknownTopicOrPartition, "partition 7 of 1")
	_, err = consumer.ConsumePartition(t.Unique("never-created"), 0, 0)
	t.True(errors.Is(err, sarama.ErrUnknownTopicOrPartition), "unknown topic: %v", err)
}

// checkTail reads at the end of the log while messages arrive one by one.
func checkTail(t *T) {
	const count = 200
	topic, config := newTopic(t, "topic", 1), newConfig(newestVersion)
	producer := newProducer(t, config)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, message := range newMessages(topic, count, "message") {
			if _, _, err := producer.SendMessage(message); err != nil {
				t.Errorf("produce: %v", err)
				return
			}
		}
	}()
	reader := readPartition(t, newConsumer(t, config), topic, 0, sarama.OffsetOldest)
	for i, got := range take(t, reader, count) {
		harness.Equal(t, got.Offset, int64(i), "offset")
		harness.Equal(t, string(got.Key), fmt.Sprintf("message-%d", i), "key")
	}
	<-ended
}
