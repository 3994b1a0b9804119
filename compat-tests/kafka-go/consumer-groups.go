package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

func consumerGroupChecks() []harness.Check {
	checks := []harness.Check{
		{Name: "consumer-group/common-protocol-is-chosen", Run: checkCommonProtocol},
		{Name: "consumer-group/commit-and-resume", Run: checkCommitAndResume},
		{Name: "consumer-group/dead-member-is-removed", Run: checkDeadMember},
	}
	for name, balancer := range map[string]kafka.GroupBalancer{
		"range":         kafka.RangeGroupBalancer{},
		"roundrobin":    kafka.RoundRobinGroupBalancer{},
		"rack-affinity": kafka.RackAffinityGroupBalancer{Rack: "r1"},
	} {
		checks = append(checks, harness.Check{
			Name: "consumer-group/rebalance-on-join-and-leave/" + name,
			Run:  func(t *T) { checkRebalance(t, balancer) },
		})
	}
	return checks
}

// team is a group of members that commit what they processed before they give anything up.
type team struct {
	group       string
	topic       string
	balancers   []kafka.GroupBalancer
	ledger      *harness.Ledger
	assignments *harness.Assignments
}

func newTeam(t *T, topic string, balancers ...kafka.GroupBalancer) *team {
	return &team{
		group: t.Unique("group"), topic: topic, balancers: balancers,
		ledger: harness.NewLedger(), assignments: harness.NewAssignments(),
	}
}

// member is one consumer of a team.
type member struct {
	group   *kafka.ConsumerGroup
	running sync.WaitGroup
	once    sync.Once
}

// join starts a member that takes part in one generation after the other until it leaves.
func (g *team) join(t *T, name string, configure ...func(config *kafka.ConsumerGroupConfig)) *member {
	config := kafka.ConsumerGroupConfig{
		ID: g.group, Brokers: []string{t.Bootstrap}, Topics: []string{g.topic},
		GroupBalancers: g.balancers, StartOffset: kafka.FirstOffset,
		Dialer:            &kafka.Dialer{ClientID: name, Timeout: 10 * time.Second},
		HeartbeatInterval: 200 * time.Millisecond, JoinGroupBackoff: 50 * time.Millisecond,
		SessionTimeout: 10 * time.Second, RebalanceTimeout: 10 * time.Second,
	}
	for _, apply := range configure {
		apply(&config)
	}
	group, err := kafka.NewConsumerGroup(config)
	t.NoError(err, "new consumer group")
	joined := &member{group: group}
	t.Cleanup(joined.leave)
	joined.running.Go(func() {
		for {
			generation, err := group.Next(t)
			if errors.Is(err, kafka.ErrGroupClosed) || t.Err() != nil {
				return
			}
			if err != nil {
				t.Notef("%s: next generation: %v", name, err)
				continue
			}
			for _, assigned := range generation.Assignments[g.topic] {
				generation.Start(func(ctx context.Context) {
					g.process(t, ctx, name, generation, assigned)
				})
			}
		}
	})
	return joined
}

// process reads one partition until the generation ends, which waits for the commit at the end.
func (g *team) process(
	t *T, ctx context.Context, name string, generation *kafka.Generation,
	assigned kafka.PartitionAssignment,
) {
	partition := fmt.Sprintf("%s[%d]", g.topic, assigned.ID)
	g.assignments.Gain(name, partition)
	defer g.assignments.Lose(name, partition)
	config := readerConfig(t, g.topic)
	config.Partition = assigned.ID
	reader := kafka.NewReader(config)
	defer reader.Close()
	if err := reader.SetOffset(assigned.Offset); err != nil {
		t.Errorf("%s: set offset: %v", name, err)
		return
	}
	next := int64(-1)
	for ctx.Err() == nil {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("%s: read: %v", name, err)
			}
			break
		}
		g.ledger.Note(name, fmt.Sprintf("%d@%d", message.Partition, message.Offset))
		next = message.Offset + 1
	}
	if next >= 0 {
		offsets := map[string]map[int]int64{g.topic: {assigned.ID: next}}
		if err := generation.CommitOffsets(offsets); err != nil {
			t.Notef("%s: commit: %v", name, err)
		}
	}
}

// leave ends a member gracefully.
func (m *member) leave() {
	m.once.Do(func() {
		_ = m.group.Close()
		m.running.Wait()
	})
}

func checkRebalance(t *T, balancer kafka.GroupBalancer) {
	const partitions = 6
	topic := newTopic(t, "topic", partitions)
	write(t, topic, 200, "before")
	g := newTeam(t, topic, balancer)
	stop := feed(t, topic)
	a := g.join(t, "a")
	g.assignments.AwaitBalanced(t, partitions, "a")
	b := g.join(t, "b")
	c := g.join(t, "c")
	g.assignments.AwaitBalanced(t, partitions, "a", "b", "c")
	g.ledger.Await(t, g.ledger.Distinct()+50)
	described := describeGroup(t, g.group)
	harness.Equal(t, described.GroupState, "Stable", "state")
	harness.Equal(t, len(described.Members), 3, "members")

	b.leave()
	g.assignments.AwaitBalanced(t, partitions, "a", "c")
	d := g.join(t, "d")
	c.leave()
	g.assignments.AwaitBalanced(t, partitions, "a", "d")
	total := 200 + stop()
	g.ledger.Await(t, total)
	for _, name := range []string{"a", "b", "c", "d"} {
		t.True(g.ledger.By(name) > 0, "member %s got no message", name)
	}
	d.leave()
	a.leave()
	g.ledger.ExactlyOnce(t, total)
	harness.Equal(t, committedSum(t, g.group, topic), total, "sum of committed offsets")
}

func checkCommonProtocol(t *T) {
	topic := newTopic(t, "topic", 4)
	g := newTeam(t, topic)
	g.join(t, "a", func(config *kafka.ConsumerGroupConfig) {
		config.GroupBalancers = []kafka.GroupBalancer{
			kafka.RangeGroupBalancer{}, kafka.RoundRobinGroupBalancer{},
		}
	})
	g.assignments.AwaitBalanced(t, 4, "a")
	g.join(t, "b", func(config *kafka.ConsumerGroupConfig) {
		config.GroupBalancers = []kafka.GroupBalancer{kafka.RoundRobinGroupBalancer{}}
	})
	g.assignments.AwaitBalanced(t, 4, "a", "b")
	write(t, topic, 40, "message")
	g.ledger.Await(t, 40)
	g.ledger.ExactlyOnce(t, 40)
}

func checkCommitAndResume(t *T) {
	topic := newTopic(t, "topic", 3)
	write(t, topic, 90, "message")
	g := newTeam(t, topic, kafka.RangeGroupBalancer{})
	first := g.join(t, "first")
	g.ledger.Await(t, 90)
	first.leave()
	harness.Equal(t, committedSum(t, g.group, topic), 90, "sum of committed offsets")
	write(t, topic, 30, "later")
	g.join(t, "second")
	g.ledger.Await(t, 120)
	harness.Equal(t, g.ledger.By("second"), 30, "messages of the second member")
	g.ledger.ExactlyOnce(t, 120)
}

// checkDeadMember joins by hand and then falls silent: after the session timeout the other member of
// the group gets all partitions.
func checkDeadMember(t *T) {
	topic := newTopic(t, "topic", 4)
	g := newTeam(t, topic, kafka.RangeGroupBalancer{})
	silent := joinByHand(t, g.group, topic, 6*time.Second)
	syncByHand(t, g.group, silent, map[string][]int{topic: {0, 1, 2, 3}})
	g.join(t, "a")
	g.assignments.AwaitBalanced(t, 4, "a")
	harness.Equal(t, len(describeGroup(t, g.group).Members), 1, "members")
}
