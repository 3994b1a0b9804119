package main

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"keylane.test/harness"
)

// keyedClient is franz-go as an application uses it that commits what it has handled. It lets
// rebalances go on while it handles what it polled, which is the client's default.
var keyedClient = harness.Keyed{
	NewTopic: func(t *T, part string, partitions int, configs ...string) string {
		return newTopic(t, part, int32(partitions), configs...)
	},
	Send:          sendKeyed,
	Join:          joinKeyed,
	Lag:           keyedLag,
	CommitsInWork: false,
	FetchesBehind: false,
	RejoinsInWork: true,
	InHandMax:     256,
}

func sendKeyed(t *T, topic string, records []harness.KeyedRecord) {
	client := openClient(t, kgo.ProducerLinger(0))
	defer client.Close()
	batch := make([]*kgo.Record, len(records))
	for i, each := range records {
		value := []byte(strconv.Itoa(each.Number))
		batch[i] = &kgo.Record{Topic: topic, Key: []byte(each.Key), Value: value}
	}
	if err := client.ProduceSync(t, batch...).FirstErr(); err != nil && t.Err() == nil {
		t.Errorf("produce: %v", err)
	}
}

func joinKeyed(t *T, member harness.KeyedMember) (leave func()) {
	options := []kgo.Opt{
		kgo.SeedBrokers(member.Bootstrap), kgo.ClientID(member.Name),
		kgo.ConsumerGroup(member.Group), kgo.ConsumeTopics(member.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(300 * time.Millisecond), kgo.SessionTimeout(member.SessionTimeout),
		kgo.FetchMaxWait(200 * time.Millisecond),
	}
	if member.OwnCommits {
		options = append(options, kgo.AutoCommitInterval(300*time.Millisecond))
	} else {
		options = append(options, kgo.DisableAutoCommit())
	}
	client := openClient(t, options...)
	ctx, cancel := context.WithCancel(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			if fetches.IsClientClosed() {
				return
			}
			fetches.EachError(func(_ string, partition int32, err error) {
				switch {
				case errors.Is(err, context.Canceled):
				case isSessionLost(err):
					t.Notef("%s: %v", member.Name, err)
				default:
					t.Errorf("%s: fetch of partition %d: %v", member.Name, partition, err)
				}
			})
			handleKeyed(ctx, t, client, member, fetches.Records())
		}
	}()
	return func() {
		cancel()
		<-ended
		client.Close()
	}
}

// commitBackoff is how long an application waits before it commits again to a node that is gone.
const commitBackoff = 20 * time.Millisecond

// isUnreached tells that the node that was killed is still asked. Where none is killed, a broker that
// cannot be reached is a failure.
func isUnreached(err error) bool {
	return harness.LeaderPID() > 0 && errors.Is(err, syscall.ECONNREFUSED)
}

// isSessionLost tells that a poll says no more than that. The client goes on trying.
func isSessionLost(err error) bool {
	var session *kgo.ErrGroupSession
	return errors.As(err, &session) && isUnreached(err)
}

// handleKeyed hands over what was polled; when the member is to leave, the rest is given back.
func handleKeyed(
	ctx context.Context, t *T, client *kgo.Client, member harness.KeyedMember, polled []*kgo.Record,
) {
	commit := func(records ...*kgo.Record) {
		if member.OwnCommits || len(records) == 0 {
			return
		}
		err := client.CommitRecords(t, records...)
		// The client tries other errors again by itself.
		for ; isUnreached(err); err = client.CommitRecords(t, records...) {
			t.Notef("%s: commit: %v", member.Name, err)
			time.Sleep(commitBackoff)
		}
		if err != nil && t.Err() == nil {
			t.Errorf("%s: commit: %v", member.Name, err)
		}
	}
	var handled []*kgo.Record
	for _, record := range polled {
		if ctx.Err() != nil {
			break
		}
		number, err := strconv.Atoi(string(record.Value))
		if err != nil {
			t.Errorf("value of %s: %v", record.Key, err)
		}
		member.Handle(harness.KeyedDelivery{
			KeyedRecord: harness.KeyedRecord{Key: string(record.Key), Number: number},
			Partition:   record.Partition, Offset: record.Offset,
		})
		if member.CommitEach {
			commit(record)
		} else {
			handled = append(handled, record)
		}
	}
	commit(handled...)
}

func keyedLag(t *T, group, topic string, _ int) int {
	client := openClient(t)
	defer client.Close()
	lags, err := kadm.NewClient(client).Lag(t, group)
	t.NoError(err, "lag")
	if errors.Is(lags.Error(), kerr.GroupIDNotFound) {
		return -1
	}
	t.NoError(lags.Error(), "lag")
	total := 0
	for _, partition := range lags[group].Lag[topic] {
		t.NoError(partition.Err, "lag of a partition")
		total += int(partition.Lag)
	}
	return total
}
