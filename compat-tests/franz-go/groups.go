package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"keylane.test/harness"
)

var balancers = []struct {
	name     string
	balancer func() kgo.GroupBalancer
}{
	{"range", kgo.RangeBalancer},
	{"roundrobin", kgo.RoundRobinBalancer},
	{"sticky", kgo.StickyBalancer},
	{"cooperative-sticky", kgo.CooperativeStickyBalancer},
}

func groupChecks() []harness.Check {
	var checks []harness.Check
	for _, each := range balancers {
		checks = append(checks, harness.Check{
			Name: "groups/rebalance-on-join-and-leave/" + each.name,
			Run:  func(t *T) { checkRebalance(t, each.name, each.balancer()) },
		})
	}
	return append(checks,
		harness.Check{Name: "groups/cooperative-keeps-partitions", Run: checkCooperative},
		harness.Check{Name: "groups/commit-and-resume", Run: checkCommitAndResume},
		harness.Check{Name: "groups/autocommit-and-resume", Run: checkAutoCommit},
		harness.Check{Name: "groups/marked-records-only", Run: checkMarks},
		harness.Check{Name: "groups/more-members-than-partitions", Run: checkIdleMember},
		harness.Check{Name: "groups/two-groups-one-topic", Run: checkTwoGroups},
		harness.Check{Name: "groups/partitions-are-added", Run: checkAddedPartitions},
		harness.Check{Name: "groups/dead-member-is-removed", Run: checkDeadMember},
	)
}

// team is a group of members that commit what they processed before they give anything up.
type team struct {
	group       string
	topic       string
	options     []kgo.Opt
	ledger      *harness.Ledger
	assignments *harness.Assignments
	revoked     atomic.Int64
	// cut tells that a link was broken on purpose, after which fetches may fail.
	cut atomic.Bool
}

func newTeam(t *T, topic string, options ...kgo.Opt) *team {
	return &team{
		group: t.Unique("group"), topic: topic, options: options,
		ledger: harness.NewLedger(), assignments: harness.NewAssignments(),
	}
}

// member is one consumer of a team, with the goroutine that polls it.
type member struct {
	client *kgo.Client
	cancel context.CancelFunc
	ended  chan struct{}
	once   sync.Once
}

func partitionNames(partitions map[string][]int32) []string {
	var names []string
	for topic, numbers := range partitions {
		for _, number := range numbers {
			names = append(names, fmt.Sprintf("%s[%d]", topic, number))
		}
	}
	return names
}

func (g *team) memberOptions(name string) []kgo.Opt {
	base := []kgo.Opt{
		kgo.ConsumerGroup(g.group), kgo.ConsumeTopics(g.topic), kgo.ClientID(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.HeartbeatInterval(200 * time.Millisecond), kgo.SessionTimeout(10 * time.Second),
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			g.assignments.Gain(name, partitionNames(got)...)
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			g.revoked.Add(int64(len(partitionNames(lost))))
			g.assignments.Lose(name, partitionNames(lost)...)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			g.assignments.Lose(name, partitionNames(lost)...)
		}),
	}
	return append(base, g.options...)
}

// join starts a member: it notes every record, commits and only then lets a rebalance go on.
func (g *team) join(t *T, name string, options ...kgo.Opt) *member {
	ctx, cancel := context.WithCancel(t)
	client := openClient(t, append(g.memberOptions(name), options...)...)
	joined := &member{client: client, cancel: cancel, ended: make(chan struct{})}
	t.Cleanup(func() { joined.leave() })
	go func() {
		defer close(joined.ended)
		for {
			fetches := client.PollRecords(ctx, 50)
			if fetches.IsClientClosed() || ctx.Err() != nil {
				client.AllowRebalance()
				return
			}
			fetches.EachError(func(_ string, partition int32, err error) {
				if !errors.Is(err, context.Canceled) && !g.cut.Load() {
					t.Errorf("%s: fetch of partition %d: %v", name, partition, err)
				}
			})
			fetches.EachRecord(func(record *kgo.Record) {
				g.ledger.Note(name, fmt.Sprintf("%d@%d", record.Partition, record.Offset))
			})
			if err := client.CommitUncommittedOffsets(t); err != nil {
				t.Notef("%s: commit: %v", name, err)
			}
			client.AllowRebalance()
		}
	}()
	return joined
}

// leave ends a member gracefully: a static one stays known to the broker.
func (m *member) leave() {
	m.once.Do(func() {
		m.cancel()
		<-m.ended
		m.client.CloseAllowingRebalance()
	})
}

// feed produces records one small batch after the other until it is stopped, then tells how many.
func feed(t *T, topic string) (stop func() int) {
	ctx, cancel := context.WithCancel(t)
	client := newClient(t, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	count, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			records := newRecords(topic, 5, fmt.Sprintf("feed-%d", count))
			if err := client.ProduceSync(t, records...).FirstErr(); err != nil {
				t.Errorf("feed: %v", err)
				return
			}
			count += len(records)
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

func checkRebalance(t *T, name string, balancer kgo.GroupBalancer) {
	const partitions = 6
	topic := newTopic(t, "topic", partitions)
	produce(t, topic, 200, "before")
	g := newTeam(t, topic, kgo.Balancers(balancer))
	stop := feed(t, topic)

	g.join(t, "a")
	g.assignments.AwaitBalanced(t, partitions, "a")
	second := g.join(t, "b")
	third := g.join(t, "c")
	g.assignments.AwaitBalanced(t, partitions, "a", "b", "c")
	g.ledger.Await(t, g.ledger.Distinct()+50)
	described := describeGroup(t, g.group)
	harness.Equal(t, described.State, "Stable", "state")
	harness.Equal(t, described.Protocol, name, "protocol")
	harness.Equal(t, len(described.Members), 3, "members")

	second.leave()
	g.assignments.AwaitBalanced(t, partitions, "a", "c")
	g.join(t, "d")
	third.leave()
	g.assignments.AwaitBalanced(t, partitions, "a", "d")
	total := 200 + stop()
	g.ledger.Await(t, total)
	g.ledger.ExactlyOnce(t, total)
	for _, name := range []string{"a", "b", "c", "d"} {
		t.True(g.ledger.By(name) > 0, "member %s got no record", name)
	}
	awaitCommitted(t, g.group, topic, total)
}

// awaitCommitted waits until the committed offsets of all partitions add up to total.
func awaitCommitted(t *T, group, topic string, total int) {
	admin := newAdmin(t)
	t.Eventually(fmt.Sprintf("committed offsets add up to %d", total), func() bool {
		offsets, err := admin.FetchOffsets(t, group)
		t.NoError(err, "fetch offsets")
		sum := 0
		for _, offset := range offsets[topic] {
			t.NoError(offset.Err, "fetch offsets")
			sum += int(offset.At)
		}
		return sum == total
	})
}

// checkCooperative wants a newcomer to cost only the partitions that move (KIP-429).
func checkCooperative(t *T) {
	topic := newTopic(t, "topic", 6)
	g := newTeam(t, topic, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	stop := feed(t, topic)
	g.join(t, "a")
	g.assignments.AwaitBalanced(t, 6, "a")
	g.join(t, "b")
	g.assignments.AwaitBalanced(t, 6, "a", "b")
	harness.Equal(t, g.revoked.Load(), 3, "partitions revoked by the second member")
	g.join(t, "c")
	g.assignments.AwaitBalanced(t, 6, "a", "b", "c")
	harness.Equal(t, g.revoked.Load(), 5, "partitions revoked by the third member")
	total := stop()
	g.ledger.Await(t, total)
	g.ledger.ExactlyOnce(t, total)
}

func checkCommitAndResume(t *T) {
	topic := newTopic(t, "topic", 1)
	produce(t, topic, 100, "record")
	options := []kgo.Opt{
		kgo.ConsumerGroup(t.Unique("group")), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200 * time.Millisecond),
	}
	first := openClient(t, options...)
	records := consume(t, first, 100)
	t.NoError(first.CommitRecords(t, records[39]), "commit record 39")
	first.Close()

	second := openClient(t, options...)
	records = consume(t, second, 60)
	harness.Equal(t, records[0].Offset, 40, "first offset after resuming")
	t.NoError(second.CommitUncommittedOffsets(t), "commit all")
	committed := second.CommittedOffsets()[topic][0]
	harness.Equal(t, committed.Offset, 100, "committed offset")
	second.Close()

	third := newClient(t, options...)
	nothingWithin(t, third, time.Second)
	produce(t, topic, 1, "next")
	harness.Equal(t, consume(t, third, 1)[0].Offset, 100, "offset of the next record")
}

func checkAutoCommit(t *T) {
	topic, group := newTopic(t, "topic", 2), t.Unique("group")
	produce(t, topic, 100, "record")
	options := []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.AutoCommitInterval(100 * time.Millisecond), kgo.GreedyAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100 * time.Millisecond),
	}
	first := openClient(t, options...)
	consume(t, first, 100)
	awaitCommitted(t, group, topic, 100)
	first.Close()
	second := newClient(t, options...)
	nothingWithin(t, second, time.Second)
	produce(t, topic, 10, "next")
	consume(t, second, 10)
}

func checkMarks(t *T) {
	topic, group := newTopic(t, "topic", 1), t.Unique("group")
	produce(t, topic, 50, "record")
	options := []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.AutoCommitMarks(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100 * time.Millisecond),
	}
	first := openClient(t, options...)
	records := consume(t, first, 50)
	first.MarkCommitRecords(records[9], records[24])
	t.NoError(first.CommitMarkedOffsets(t), "commit marks")
	first.Close()
	second := newClient(t, options...)
	harness.Equal(t, consume(t, second, 25)[0].Offset, 25, "first offset after resuming")
}

func checkIdleMember(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, topic, kgo.Balancers(kgo.RangeBalancer()))
	members := map[string]*member{}
	for _, name := range []string{"a", "b", "c"} {
		members[name] = g.join(t, name)
	}
	holders := func() (busy, idle []string) {
		for name := range members {
			if len(g.assignments.Held(name)) > 0 {
				busy = append(busy, name)
			} else {
				idle = append(idle, name)
			}
		}
		return busy, idle
	}
	t.Eventually("two of three members hold a partition each", func() bool {
		if busy, _ := holders(); len(busy) != 2 {
			return false
		}
		described := describeGroup(t, g.group)
		return len(described.Members) == 3 && described.State == "Stable"
	})
	busy, idle := holders()
	members[busy[0]].leave()
	g.assignments.AwaitBalanced(t, 2, busy[1], idle[0])
	produce(t, topic, 30, "record")
	g.ledger.Await(t, 30)
	g.ledger.ExactlyOnce(t, 30)
}

func checkTwoGroups(t *T) {
	topic := newTopic(t, "topic", 3)
	produce(t, topic, 60, "record")
	for _, part := range []string{"one", "two"} {
		client := newClient(t, kgo.ConsumerGroup(t.Unique(part)), kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		consume(t, client, 60)
	}
}

func checkAddedPartitions(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, topic, kgo.MetadataMaxAge(500*time.Millisecond))
	g.join(t, "a")
	g.join(t, "b")
	g.assignments.AwaitBalanced(t, 2, "a", "b")
	responses, err := newAdmin(t).UpdatePartitions(t, 6, topic)
	t.NoError(err, "create partitions")
	t.NoError(responses[topic].Err, "create partitions")
	g.assignments.AwaitBalanced(t, 6, "a", "b")
	produce(t, topic, 60, "record")
	g.ledger.Await(t, 60)
	g.ledger.ExactlyOnce(t, 60)
}

// checkDeadMember silences a member: after the session timeout the others get its partitions.
func checkDeadMember(t *T) {
	topic := newTopic(t, "topic", 4)
	g := newTeam(t, topic, kgo.SessionTimeout(6*time.Second))
	g.join(t, "a")
	link := &cuttableDialer{}
	t.Cleanup(link.cut)
	g.join(t, "b", kgo.Dialer(link.dial))
	g.assignments.AwaitBalanced(t, 4, "a", "b")
	g.cut.Store(true)
	link.cut()
	t.Eventually("the other member holds all partitions", func() bool {
		return len(g.assignments.Held("a")) == 4
	})
	harness.Equal(t, len(describeGroup(t, g.group).Members), 1, "members")
}
