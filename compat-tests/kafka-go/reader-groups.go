package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

func readerGroupChecks() []harness.Check {
	return []harness.Check{
		{Name: "reader-group/read-commits", Run: checkReadCommits},
		{Name: "reader-group/explicit-commits", Run: checkExplicitCommits},
		{Name: "reader-group/commit-interval", Run: checkCommitInterval},
		{Name: "reader-group/uncommitted-is-read-again", Run: checkUncommitted},
		{Name: "reader-group/start-offset", Run: checkStartOffset},
		{Name: "reader-group/several-topics", Run: checkGroupTopics},
		{Name: "reader-group/three-readers-lose-nothing", Run: checkReaders},
		{Name: "reader-group/partitions-are-added", Run: checkAddedPartitions},
	}
}

// groupReaderConfig has short intervals; kafka-go's own are seconds.
func groupReaderConfig(t *T, group, topic string) kafka.ReaderConfig {
	config := readerConfig(t, topic)
	config.GroupID, config.StartOffset = group, kafka.FirstOffset
	config.HeartbeatInterval, config.JoinGroupBackoff = 200*time.Millisecond, 50*time.Millisecond
	config.SessionTimeout, config.RebalanceTimeout = 10*time.Second, 10*time.Second
	return config
}

// committedSum adds up the committed offsets of a topic.
func committedSum(t *T, group, topic string) int {
	offsets, err := newClient(t).ConsumerOffsets(t, kafka.TopicAndGroup{Topic: topic, GroupId: group})
	t.NoError(err, "consumer offsets")
	sum := 0
	for _, offset := range offsets {
		sum += int(max(offset, 0))
	}
	return sum
}

func checkReadCommits(t *T) {
	topic, group := newTopic(t, "topic", 3), t.Unique("group")
	write(t, topic, 90, "message")
	reader := newReader(t, groupReaderConfig(t, group, topic))
	take(t, reader, 60)
	// Each message is committed before it is returned.
	harness.Equal(t, committedSum(t, group, topic), 60, "sum of committed offsets")
	t.NoError(reader.Close(), "close")
	take(t, newReader(t, groupReaderConfig(t, group, topic)), 30)
	harness.Equal(t, committedSum(t, group, topic), 90, "sum of committed offsets")
}

func checkExplicitCommits(t *T) {
	topic, group := newTopic(t, "topic", 1), t.Unique("group")
	write(t, topic, 50, "message")
	reader := newReader(t, groupReaderConfig(t, group, topic))
	var fetched []kafka.Message
	for range 50 {
		message, err := reader.FetchMessage(t)
		t.NoError(err, "fetch")
		fetched = append(fetched, message)
	}
	harness.Equal(t, committedSum(t, group, topic), 0, "committed before the commit")
	t.NoError(reader.CommitMessages(t, fetched[:20]...), "commit")
	harness.Equal(t, committedSum(t, group, topic), 20, "committed offset")
	t.NoError(reader.Close(), "close")
	second := newReader(t, groupReaderConfig(t, group, topic))
	message, err := second.FetchMessage(t)
	t.NoError(err, "fetch")
	harness.Equal(t, message.Offset, 20, "first offset after resuming")
	harness.Equal(t, string(message.Key), "message-20", "first key after resuming")
}

func checkCommitInterval(t *T) {
	topic, group := newTopic(t, "topic", 2), t.Unique("group")
	write(t, topic, 60, "message")
	config := groupReaderConfig(t, group, topic)
	config.CommitInterval = 100 * time.Millisecond
	reader := newReader(t, config)
	take(t, reader, 60)
	t.Eventually("the offsets are committed", func() bool {
		return committedSum(t, group, topic) == 60
	})
	write(t, topic, 10, "later")
	take(t, reader, 10)
	// What is not committed yet is by Close.
	t.NoError(reader.Close(), "close")
	harness.Equal(t, committedSum(t, group, topic), 70, "sum of committed offsets")
}

func checkUncommitted(t *T) {
	topic, group := newTopic(t, "topic", 1), t.Unique("group")
	write(t, topic, 20, "message")
	for range 2 {
		reader := newReader(t, groupReaderConfig(t, group, topic))
		for i := range 20 {
			message, err := reader.FetchMessage(t)
			t.NoError(err, "fetch")
			harness.Equal(t, message.Offset, int64(i), "offset")
		}
		t.NoError(reader.Close(), "close")
	}
}

func checkStartOffset(t *T) {
	topic := newTopic(t, "topic", 1)
	write(t, topic, 20, "old")
	config := groupReaderConfig(t, t.Unique("last"), topic)
	config.StartOffset = kafka.LastOffset
	wantOnlyNew(t, newReader(t, config), topic, 20)
	first := newReader(t, groupReaderConfig(t, t.Unique("first"), topic))
	harness.Equal(t, take(t, first, 20)[0].Offset, 0, "offset from the first")
}

// wantOnlyNew checks that a reader starts at the end of a topic of one partition, which is at the
// given offset. When the position is taken cannot be seen, so messages go on coming.
func wantOnlyNew(t *T, reader *kafka.Reader, topic string, end int64) {
	stop := feed(t, topic)
	messages := take(t, reader, 10)
	stop()
	t.True(messages[0].Offset >= end, "the first message is at offset %d", messages[0].Offset)
	for i, got := range messages {
		harness.Equal(t, got.Offset, messages[0].Offset+int64(i), "offset")
	}
}

func checkGroupTopics(t *T) {
	var topics []string
	for i := range 3 {
		topic := newTopic(t, fmt.Sprintf("topic-%d", i), 2)
		topics = append(topics, topic)
		write(t, topic, 20, topic)
	}
	config := groupReaderConfig(t, t.Unique("group"), "")
	config.GroupTopics = topics
	counts := map[string]int{}
	for _, got := range take(t, newReader(t, config), 60) {
		counts[got.Topic]++
	}
	for _, topic := range topics {
		harness.Equal(t, counts[topic], 20, "messages of "+topic)
	}
}

// checkReaders joins and closes readers while messages arrive. A Reader hands out what it fetched
// before it knows of a rebalance, hence some may come twice; none may be missing.
func checkReaders(t *T) {
	const partitions = 6
	topic, group := newTopic(t, "topic", partitions), t.Unique("group")
	ledger := harness.NewLedger()
	var running sync.WaitGroup
	join := func(name string) (leave func()) {
		config := groupReaderConfig(t, group, topic)
		config.GroupBalancers = []kafka.GroupBalancer{kafka.RoundRobinGroupBalancer{}}
		reader := newReader(t, config)
		ctx, cancel := context.WithCancel(t)
		running.Go(func() {
			for ctx.Err() == nil {
				message, err := reader.FetchMessage(ctx)
				if errors.Is(err, io.EOF) {
					return
				}
				if err == nil {
					ledger.Note(name, fmt.Sprintf("%d@%d", message.Partition, message.Offset))
					err = reader.CommitMessages(ctx, message)
				}
				if err != nil {
					t.Notef("%s: %v", name, err)
				}
			}
		})
		// A commit that comes after Close would wait for ever without the end of its context.
		return func() {
			defer cancel()
			t.NoError(reader.Close(), "close")
		}
	}
	stop := feed(t, topic)
	var leaves []func()
	for _, name := range []string{"a", "b", "c"} {
		leaves = append(leaves, join(name))
		t.Eventually(name+" reads", func() bool { return ledger.By(name) > 0 })
	}
	leaves[1]()
	ledger.Await(t, ledger.Distinct()+100)
	ledger.Await(t, stop())
	t.Eventually("all is committed", func() bool {
		return committedSum(t, group, topic) == ledger.Distinct()
	})
	leaves[0]()
	leaves[2]()
	running.Wait()
}

// feed writes messages, a few at a time, until it is stopped; then it tells how many.
func feed(t *T, topic string) (stop func() int) {
	ctx, cancel := context.WithCancel(t)
	writer := newWriter(t, topic)
	count, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			messages := newMessages(6, fmt.Sprintf("feed-%d", count))
			if err := writer.WriteMessages(t, messages...); err != nil {
				t.Errorf("feed: %v", err)
				return
			}
			count += len(messages)
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(cancel)
	return func() int {
		cancel()
		<-ended
		return count
	}
}

func checkAddedPartitions(t *T) {
	topic, group := newTopic(t, "topic", 1), t.Unique("group")
	config := groupReaderConfig(t, group, topic)
	config.WatchPartitionChanges, config.PartitionWatchInterval = true, 200*time.Millisecond
	reader := newReader(t, config)
	write(t, topic, 5, "before")
	take(t, reader, 5)
	response, err := newClient(t).CreatePartitions(t, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 4}},
	})
	t.NoError(err, "create partitions")
	t.NoError(response.Errors[topic], "create partitions")
	awaitTopic(t, topic, 4)
	write(t, topic, 20, "after")
	partitions := map[int]bool{}
	for _, got := range take(t, reader, 20) {
		partitions[got.Partition] = true
	}
	harness.Equal(t, len(partitions), 4, "partitions read from")
}
