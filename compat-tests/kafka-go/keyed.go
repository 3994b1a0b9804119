package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

// keyedClient is kafka-go as an application uses it that commits what it has handled. Where commits are
// left to the client, ReadMessage commits each message before it hands it over.
var keyedClient = harness.Keyed{
	NewTopic: newTopic, Send: sendKeyed, Join: joinKeyed, Lag: keyedLag,
	CommitsInWork: true,
	FetchesBehind: true,
	RejoinsInWork: true,
	InHandMax:     256,
}

func sendKeyed(t *T, topic string, records []harness.KeyedRecord) {
	transport := &kafka.Transport{ClientID: "compat"}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{
		Addr: kafka.TCP(t.Bootstrap), Topic: topic, Balancer: &kafka.Hash{}, MaxAttempts: 20,
		RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond, BatchSize: 1_000,
		WriteBackoffMin: 20 * time.Millisecond, Transport: transport,
	}
	defer writer.Close()
	messages := make([]kafka.Message, len(records))
	for i, each := range records {
		value := []byte(strconv.Itoa(each.Number))
		messages[i] = kafka.Message{Key: []byte(each.Key), Value: value}
	}
	if err := writer.WriteMessages(t, messages...); err != nil && t.Err() == nil {
		t.Errorf("write: %v", err)
	}
}

func joinKeyed(t *T, member harness.KeyedMember) (leave func()) {
	config := groupReaderConfig(t, member.Group, member.Topic)
	config.Brokers = []string{member.Bootstrap}
	config.SessionTimeout = member.SessionTimeout
	reader := kafka.NewReader(config)
	ctx, cancel := context.WithCancel(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			readKeyed(ctx, t, reader, member)
		}
	}()
	return func() {
		cancel()
		<-ended
		_ = reader.Close()
	}
}

func readKeyed(ctx context.Context, t *T, reader *kafka.Reader, member harness.KeyedMember) {
	read := reader.FetchMessage
	if member.OwnCommits {
		read = reader.ReadMessage
	}
	message, err := read(ctx)
	if err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", member.Name, err)
		}
		return
	}
	number, err := strconv.Atoi(string(message.Value))
	if err != nil {
		t.Errorf("value of %s: %v", message.Key, err)
	}
	member.Handle(harness.KeyedDelivery{
		KeyedRecord: harness.KeyedRecord{Key: string(message.Key), Number: number},
		Partition:   int32(message.Partition), Offset: message.Offset,
	})
	if member.OwnCommits {
		return
	}
	if err := reader.CommitMessages(t, message); err != nil && t.Err() == nil {
		t.Errorf("%s: commit: %v", member.Name, err)
	}
}

func keyedLag(t *T, group, topic string, partitions int) int {
	offsets, err := newClient(t).ConsumerOffsets(t, kafka.TopicAndGroup{Topic: topic, GroupId: group})
	t.NoError(err, "consumer offsets")
	lag := 0
	for partition := range partitions {
		end, err := endOffset(t, topic, partition)
		t.NoError(err, "end offset")
		// As kafka-consumer-groups: a partition without an offset has no lag of its own to show.
		if offset, known := offsets[partition]; known && offset >= 0 {
			lag += int(end - offset)
		}
	}
	return lag
}
