package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

var strategies = []struct {
	name     string
	strategy func() sarama.BalanceStrategy
}{
	{"range", sarama.NewBalanceStrategyRange},
	{"roundrobin", sarama.NewBalanceStrategyRoundRobin},
	{"sticky", sarama.NewBalanceStrategySticky},
	{"cooperative-sticky", sarama.NewBalanceStrategyCooperativeSticky},
}

func groupChecks() []harness.Check {
	var checks []harness.Check
	for _, each := range strategies {
		checks = append(checks, harness.Check{
			Name: "groups/rebalance-on-join-and-leave/" + each.name,
			Run:  func(t *T) { checkRebalance(t, each.name, each.strategy) },
		})
	}
	return append(checks,
		harness.Check{Name: "groups/static-member-comes-back", Run: checkStaticReturn},
		harness.Check{Name: "groups/static-member-is-removed-by-admin", Run: checkStaticRemoved},
		harness.Check{Name: "groups/commit-and-resume", Run: checkCommitAndResume},
		harness.Check{Name: "groups/autocommit-and-resume", Run: checkAutoCommit},
		harness.Check{Name: "groups/reset-offset-in-session", Run: checkSessionReset},
		harness.Check{Name: "groups/several-topics", Run: checkSeveralTopics},
		harness.Check{Name: "groups/partitions-are-added", Run: checkAddedPartitions},
		harness.Check{Name: "groups/no-common-protocol", Run: checkNoCommonProtocol},
		harness.Check{Name: "groups/pause-and-resume", Run: checkGroupPause},
	)
}

// team is a group of members that commit what they processed before they give anything up.
type team struct {
	group       string
	topics      []string
	configure   func(config *sarama.Config)
	version     sarama.KafkaVersion
	ledger      *harness.Ledger
	assignments *harness.Assignments
}

func newTeam(t *T, configure func(config *sarama.Config), topics ...string) *team {
	return &team{
		group: t.Unique("group"), topics: topics, configure: configure, version: newestVersion,
		ledger: harness.NewLedger(), assignments: harness.NewAssignments(),
	}
}

// member is one consumer of a team; it is the handler of its own sessions.
type member struct {
	team     *team
	name     string
	client   sarama.Client
	consumer sarama.ConsumerGroup
	cancel   context.CancelFunc
	running  sync.WaitGroup
	once     sync.Once
	manual   bool
	t        *T
}

// join starts a member that consumes until it leaves. What configures it comes after the team's own
// settings.
func (g *team) join(t *T, name string, configure ...func(config *sarama.Config)) *member {
	config := newConfig(g.version)
	config.ClientID = name
	config.Consumer.Offsets.AutoCommit.Enable = false
	for _, apply := range append([]func(*sarama.Config){g.configure}, configure...) {
		apply(config)
	}
	client := newClient(t, config)
	consumer, err := sarama.NewConsumerGroupFromClient(g.group, client)
	t.NoError(err, "new consumer group")
	ctx, cancel := context.WithCancel(t)
	joined := &member{team: g, name: name, client: client, consumer: consumer, cancel: cancel, t: t}
	joined.manual = !config.Consumer.Offsets.AutoCommit.Enable
	t.Cleanup(joined.leave)
	joined.running.Go(func() {
		for failure := range consumer.Errors() {
			t.Notef("%s: %v", name, failure)
		}
	})
	joined.running.Go(func() {
		for ctx.Err() == nil {
			err := consumer.Consume(ctx, g.topics, joined)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
			if err != nil {
				t.Notef("%s: consume: %v", name, err)
			}
		}
	})
	return joined
}

// leave ends a member gracefully: a static one stays known to the broker.
func (m *member) leave() {
	m.once.Do(func() {
		m.cancel()
		if err := m.consumer.Close(); err != nil {
			m.t.Notef("%s: close: %v", m.name, err)
		}
		m.running.Wait()
		_ = m.client.Close()
	})
}

func (m *member) Setup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim holds a partition from its start to its end, which is where the commit belongs.
func (m *member) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	partition := fmt.Sprintf("%s[%d]", claim.Topic(), claim.Partition())
	m.team.assignments.Gain(m.name, partition)
	defer m.team.assignments.Lose(m.name, partition)
	if m.manual {
		defer session.Commit()
	}
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.team.ledger.Note(m.name, fmt.Sprintf("%s@%d", partition, message.Offset))
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

// feed produces messages, a few at a time, until it is stopped; then it tells how many.
func feed(t *T, topic string) (stop func() int) {
	ctx, cancel := context.WithCancel(t)
	config := newConfig(newestVersion)
	config.Producer.Partitioner = sarama.NewRoundRobinPartitioner
	producer := newProducer(t, config)
	count, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			messages := newMessages(topic, 5, fmt.Sprintf("feed-%d", count))
			if err := producer.SendMessages(messages); err != nil {
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

func describeGroup(t *T, group string) *sarama.GroupDescription {
	groups, err := newAdmin(t, newConfig(newestVersion)).DescribeConsumerGroups([]string{group})
	t.NoError(err, "describe groups")
	harness.Equal(t, groups[0].Err, sarama.ErrNoError, "describe group")
	return groups[0]
}

// committed returns the committed offset of a partition, -1 without one.
func committed(t *T, admin sarama.ClusterAdmin, group, topic string, partition int32) int64 {
	response, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {partition}})
	t.NoError(err, "list group offsets")
	block := response.GetBlock(topic, partition)
	t.True(block != nil, "no answer for partition %d", partition)
	harness.Equal(t, block.Err, sarama.ErrNoError, "list group offsets")
	return block.Offset
}

func committedSum(t *T, group, topic string, partitions int32) int {
	admin := newAdmin(t, newConfig(newestVersion))
	sum := 0
	for partition := range partitions {
		sum += int(max(committed(t, admin, group, topic, partition), 0))
	}
	return sum
}

func checkRebalance(t *T, name string, strategy func() sarama.BalanceStrategy) {
	const partitions = 6
	topic := newTopic(t, "topic", partitions)
	produce(t, newConfig(newestVersion), topic, 200, "before")
	g := newTeam(t, func(config *sarama.Config) {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy()}
	}, topic)
	stop := feed(t, topic)

	a := g.join(t, "a")
	g.assignments.AwaitBalanced(t, partitions, "a")
	b := g.join(t, "b")
	c := g.join(t, "c")
	g.assignments.AwaitBalanced(t, partitions, "a", "b", "c")
	g.ledger.Await(t, g.ledger.Distinct()+50)
	t.Eventually("the group is stable", func() bool {
		return describeGroup(t, g.group).State == "Stable"
	})
	described := describeGroup(t, g.group)
	harness.Equal(t, described.Protocol, name, "protocol")
	harness.Equal(t, len(described.Members), 3, "members")

	b.leave()
	g.assignments.AwaitBalanced(t, partitions, "a", "c")
	d := g.join(t, "d")
	c.leave()
	g.assignments.AwaitBalanced(t, partitions, "a", "d")
	total := 200 + stop()
	g.ledger.Await(t, total)
	for _, each := range []string{"a", "b", "c", "d"} {
		t.True(g.ledger.By(each) > 0, "member %s got no message", each)
	}
	d.leave()
	a.leave()
	g.ledger.ExactlyOnce(t, total)
	harness.Equal(t, committedSum(t, g.group, topic, partitions), total, "sum of committed offsets")
}

func static(instance string) func(config *sarama.Config) {
	return func(config *sarama.Config) {
		config.Consumer.Group.InstanceId = instance
		config.Consumer.Group.Session.Timeout = 30 * time.Second
	}
}

func unchanged(*sarama.Config) {}

// checkStaticReturn restarts a static member: nobody else may notice (KIP-345).
func checkStaticReturn(t *T) {
	topic := newTopic(t, "topic", 4)
	g := newTeam(t, unchanged, topic)
	g.join(t, "a", static("instance-a"))
	b := g.join(t, "b", static("instance-b"))
	g.assignments.AwaitBalanced(t, 4, "a", "b")
	held, changes := g.assignments.Held("b"), g.assignments.Changes("a")
	stop := feed(t, topic)
	g.ledger.Await(t, 50)
	b.leave()
	harness.Equal(t, len(describeGroup(t, g.group).Members), 2, "members while one is away")

	g.join(t, "b", static("instance-b"))
	t.Eventually("the member holds what it held", func() bool {
		now := g.assignments.Held("b")
		return len(now) == 2 && now[0] == held[0] && now[1] == held[1]
	})
	total := stop()
	g.ledger.Await(t, total)
	g.ledger.ExactlyOnce(t, total)
	harness.Equal(t, g.assignments.Changes("a"), changes, "rebalances that the other member saw")
	for _, each := range describeGroup(t, g.group).Members {
		t.True(each.GroupInstanceId != nil, "member %s has no instance id", each.MemberId)
		harness.Equal(t, *each.GroupInstanceId, "instance-"+each.ClientId, "instance id")
	}
}

func checkStaticRemoved(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, unchanged, topic)
	g.join(t, "a", static("instance-a"))
	b := g.join(t, "b", static("instance-b"))
	g.assignments.AwaitBalanced(t, 2, "a", "b")
	b.leave()
	admin := newAdmin(t, newConfig(newestVersion))
	response, err := admin.RemoveMemberFromConsumerGroup(g.group, []string{"instance-b", "instance-x"})
	t.NoError(err, "remove members")
	for _, each := range response.Members {
		want := sarama.ErrNoError
		if *each.GroupInstanceId == "instance-x" {
			want = sarama.ErrUnknownMemberId
		}
		harness.Equal(t, each.Err, want, "removal of "+*each.GroupInstanceId)
	}
	g.assignments.AwaitBalanced(t, 2, "a")
}

func checkCommitAndResume(t *T) {
	topic := newTopic(t, "topic", 3)
	produce(t, newConfig(newestVersion), topic, 90, "message")
	g := newTeam(t, unchanged, topic)
	first := g.join(t, "first")
	g.ledger.Await(t, 90)
	first.leave()
	harness.Equal(t, committedSum(t, g.group, topic, 3), 90, "sum of committed offsets")
	produce(t, newConfig(newestVersion), topic, 30, "later")
	g.join(t, "second")
	g.ledger.Await(t, 120)
	harness.Equal(t, g.ledger.By("second"), 30, "messages of the second member")
	g.ledger.ExactlyOnce(t, 120)
}

func checkAutoCommit(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, func(config *sarama.Config) {
		config.Consumer.Offsets.AutoCommit.Enable = true
		config.Consumer.Offsets.AutoCommit.Interval = 50 * time.Millisecond
	}, topic)
	first := g.join(t, "first")
	produce(t, newConfig(newestVersion), topic, 50, "message")
	g.ledger.Await(t, 50)
	t.Eventually("the offsets are committed", func() bool {
		return committedSum(t, g.group, topic, 2) == 50
	})
	produce(t, newConfig(newestVersion), topic, 25, "more")
	g.ledger.Await(t, 75)
	first.leave()
	produce(t, newConfig(newestVersion), topic, 25, "later")
	g.join(t, "second")
	g.ledger.Await(t, 100)
	g.ledger.ExactlyOnce(t, 100)
}

// rewinder resets the offset of its one partition and ends the session.
type rewinder struct{ to int64 }

func (r rewinder) Setup(session sarama.ConsumerGroupSession) error {
	for topic, partitions := range session.Claims() {
		for _, partition := range partitions {
			session.ResetOffset(topic, partition, r.to, "rewound")
		}
	}
	session.Commit()
	return nil
}

func (r rewinder) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r rewinder) ConsumeClaim(sarama.ConsumerGroupSession, sarama.ConsumerGroupClaim) error {
	return nil
}

func checkSessionReset(t *T) {
	topic := newTopic(t, "topic", 1)
	produce(t, newConfig(newestVersion), topic, 20, "message")
	g := newTeam(t, unchanged, topic)
	first := g.join(t, "first")
	g.ledger.Await(t, 20)
	first.leave()
	consumer, err := sarama.NewConsumerGroupFromClient(g.group, newClient(t, manualCommit()))
	t.NoError(err, "new consumer group")
	t.NoError(consumer.Consume(t, g.topics, rewinder{to: 5}), "consume")
	t.NoError(consumer.Close(), "close")
	admin := newAdmin(t, newConfig(newestVersion))
	harness.Equal(t, committed(t, admin, g.group, topic, 0), 5, "committed offset")
	g.join(t, "second")
	t.Eventually("the messages from 5 on are read again", func() bool {
		return g.ledger.By("second") == 15
	})
}

func checkSeveralTopics(t *T) {
	var topics []string
	for i := range 3 {
		topics = append(topics, newTopic(t, fmt.Sprintf("topic-%d", i), 4))
	}
	g := newTeam(t, func(config *sarama.Config) {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
			sarama.NewBalanceStrategyRoundRobin(),
		}
	}, topics...)
	g.join(t, "a")
	g.join(t, "b")
	g.assignments.AwaitBalanced(t, 12, "a", "b")
	for _, topic := range topics {
		produce(t, newConfig(newestVersion), topic, 40, topic)
	}
	g.ledger.Await(t, 120)
	g.ledger.ExactlyOnce(t, 120)
}

func checkAddedPartitions(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, func(config *sarama.Config) {
		config.Metadata.RefreshFrequency = 300 * time.Millisecond
	}, topic)
	g.join(t, "a")
	g.join(t, "b")
	g.assignments.AwaitBalanced(t, 2, "a", "b")
	admin := newAdmin(t, newConfig(newestVersion))
	t.NoError(admin.CreatePartitions(topic, 6, nil, false), "create partitions")
	awaitTopic(t, admin, topic, 6)
	g.assignments.AwaitBalanced(t, 6, "a", "b")
	produce(t, newConfig(newestVersion), topic, 60, "message")
	g.ledger.Await(t, 60)
	g.ledger.ExactlyOnce(t, 60)
}

func checkNoCommonProtocol(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, unchanged, topic)
	g.join(t, "a")
	g.assignments.AwaitBalanced(t, 2, "a")
	config := newConfig(newestVersion)
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
		sarama.NewBalanceStrategySticky(),
	}
	stranger, err := sarama.NewConsumerGroupFromClient(g.group, newClient(t, config))
	t.NoError(err, "new consumer group")
	t.Cleanup(func() { _ = stranger.Close() })
	err = stranger.Consume(t, g.topics, rewinder{})
	wantError(t, err, sarama.ErrInconsistentGroupProtocol, "consume")
}

func checkGroupPause(t *T) {
	topic := newTopic(t, "topic", 1)
	g := newTeam(t, unchanged, topic)
	a := g.join(t, "a")
	produce(t, newConfig(newestVersion), topic, 10, "message")
	g.ledger.Await(t, 10)
	a.consumer.PauseAll()
	// One fetch may have been sent before the pause.
	g.ledger.QuietFor(t, 300*time.Millisecond)
	produce(t, newConfig(newestVersion), topic, 10, "paused")
	g.ledger.QuietFor(t, 500*time.Millisecond)
	a.consumer.ResumeAll()
	g.ledger.Await(t, 20)
	g.ledger.ExactlyOnce(t, 20)
}
