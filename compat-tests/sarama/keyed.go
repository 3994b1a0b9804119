package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

// keyedClient is sarama as most applications use it: what they have handled is marked, and marks are
// committed by the client. A commit by hand waits behind the fetch that is parked on the same
// connection.
var keyedClient = harness.Keyed{
	NewTopic: func(t *T, part string, partitions int, configs ...string) string {
		return newTopic(t, part, int32(partitions), configs...)
	},
	Send:          sendKeyed,
	Join:          joinKeyed,
	Lag:           keyedLag,
	CommitsInWork: false,
	FetchesBehind: true,

	ForgetsAtFailover: true,

	InHandMax: 256,
}

// keyedProducers has the producer of each check: it goes on for as long as the check does.
var keyedProducers sync.Map

func keyedProducer(t *T) sarama.SyncProducer {
	open := func() sarama.SyncProducer {
		config := newConfig(newestVersion)
		// What sarama sends twice when it opens a connection (FINDINGS.md) is to be stored once.
		config.Producer.Idempotent, config.Net.MaxOpenRequests = true, 1
		// Another node may have to be elected meanwhile.
		config.Producer.Retry.Max = 50
		producer, err := sarama.NewSyncProducerFromClient(newClient(t, config))
		t.NoError(err, "new producer")
		return producer
	}
	once, _ := keyedProducers.LoadOrStore(t, sync.OnceValue(open))
	return once.(func() sarama.SyncProducer)()
}

func sendKeyed(t *T, topic string, records []harness.KeyedRecord) {
	messages := make([]*sarama.ProducerMessage, len(records))
	for i, each := range records {
		messages[i] = &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(each.Key),
			Value: sarama.StringEncoder(strconv.Itoa(each.Number)),
		}
	}
	if err := keyedProducer(t).SendMessages(messages); err != nil {
		t.Errorf("produce: %v", err)
	}
}

// keyedMember is the handler of a consumer's sessions.
type keyedMember struct {
	harness.KeyedMember
	t    *T
	left context.Context
}

func joinKeyed(t *T, member harness.KeyedMember) (leave func()) {
	config := newConfig(newestVersion)
	config.ClientID = member.Name
	config.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	config.Consumer.Group.Session.Timeout = member.SessionTimeout
	client, err := sarama.NewClient([]string{member.Bootstrap}, config)
	t.NoError(err, "new client")
	consumer, err := sarama.NewConsumerGroupFromClient(member.Group, client)
	t.NoError(err, "new consumer group")
	ctx, cancel := context.WithCancel(t)
	joined := &keyedMember{KeyedMember: member, t: t, left: ctx}
	var running sync.WaitGroup
	running.Go(func() {
		for failure := range consumer.Errors() {
			t.Notef("%s: %v", member.Name, failure)
		}
	})
	running.Go(func() {
		for ctx.Err() == nil {
			err := consumer.Consume(ctx, []string{member.Topic}, joined)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
			if err != nil && ctx.Err() == nil {
				t.Notef("%s: consume: %v", member.Name, err)
			}
		}
	})
	return func() {
		cancel()
		if err := consumer.Close(); err != nil {
			t.Notef("%s: close: %v", member.Name, err)
		}
		running.Wait()
		_ = client.Close()
	}
}

func (m *keyedMember) Setup(sarama.ConsumerGroupSession) error { return nil }

func (m *keyedMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *keyedMember) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open || m.left.Err() != nil {
				return nil
			}
			m.handle(session, message)
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *keyedMember) handle(
	session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage,
) {
	number, err := strconv.Atoi(string(message.Value))
	if err != nil {
		m.t.Errorf("value of %s: %v", message.Key, err)
	}
	m.Handle(harness.KeyedDelivery{
		KeyedRecord: harness.KeyedRecord{Key: string(message.Key), Number: number},
		Partition:   message.Partition, Offset: message.Offset,
	})
	session.MarkMessage(message, "")
}

func keyedLag(t *T, group, topic string, partitions int) int {
	client := newClient(t, newConfig(newestVersion))
	defer client.Close()
	admin, err := sarama.NewClusterAdminFromClient(client)
	t.NoError(err, "new admin")
	lag := 0
	for partition := range int32(partitions) {
		end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
		t.NoError(err, "end of a partition")
		// As kafka-consumer-groups: a partition without an offset has no lag of its own to show.
		if offset := committed(t, admin, group, topic, partition); offset >= 0 {
			lag += int(end - offset)
		}
	}
	return lag
}
