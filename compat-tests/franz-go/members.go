package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"keylane.test/harness"
)

func memberChecks() []harness.Check {
	return []harness.Check{
		{Name: "members/static-member-comes-back", Run: checkStaticReturn},
		{Name: "members/static-member-is-fenced", Run: checkStaticFenced},
		{Name: "members/static-member-is-removed-by-admin", Run: checkStaticRemoved},
		{Name: "members/common-protocol-is-chosen", Run: checkCommonProtocol},
		{Name: "members/no-common-protocol", Run: checkNoCommonProtocol},
		{Name: "members/member-id-is-required-first", Run: checkMemberIDRequired},
		{Name: "members/unknown-member-and-generation", Run: checkUnknownMember},
		{Name: "members/session-timeout-bounds", Run: checkSessionTimeoutBounds},
	}
}

// cuttableDialer makes connections that can be broken for good, as if the machine had died.
type cuttableDialer struct {
	mutex sync.Mutex
	gone  bool
	conns []net.Conn
}

func (d *cuttableDialer) dial(ctx context.Context, network, host string) (net.Conn, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.gone {
		return nil, errors.New("this link was cut")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
	if err == nil {
		d.conns = append(d.conns, conn)
	}
	return conn, err
}

func (d *cuttableDialer) cut() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.gone = true
	for _, conn := range d.conns {
		conn.Close()
	}
}

func describeGroup(t *T, group string) kadm.DescribedGroup {
	client := openClient(t)
	defer client.Close()
	groups, err := kadm.NewClient(client).DescribeGroups(t, group)
	t.NoError(err, "describe groups")
	t.NoError(groups[group].Err, "describe group")
	return groups[group]
}

// checkStaticReturn restarts a static member: nobody else may notice (KIP-345).
func checkStaticReturn(t *T) {
	topic := newTopic(t, "topic", 4)
	g := newTeam(t, topic, kgo.Balancers(kgo.StickyBalancer()), kgo.SessionTimeout(30*time.Second))
	g.join(t, "a", kgo.InstanceID("instance-a"))
	b := g.join(t, "b", kgo.InstanceID("instance-b"))
	g.assignments.AwaitBalanced(t, 4, "a", "b")
	held, changes := g.assignments.Held("b"), g.assignments.Changes("a")
	stop := feed(t, topic)
	g.ledger.Await(t, 50)
	b.leave()
	harness.Equal(t, len(describeGroup(t, g.group).Members), 2, "members while one is away")

	g.assignments.Replace("b")
	g.join(t, "b", kgo.InstanceID("instance-b"))
	t.Eventually("the member holds what it held", func() bool {
		now := g.assignments.Held("b")
		return len(now) == 2 && now[0] == held[0] && now[1] == held[1]
	})
	total := stop()
	g.ledger.Await(t, total)
	g.ledger.ExactlyOnce(t, total)
	harness.Equal(t, g.assignments.Changes("a"), changes, "rebalances that the other member saw")
	for _, each := range describeGroup(t, g.group).Members {
		t.True(each.InstanceID != nil, "member %s has no instance id", each.MemberID)
		harness.Equal(t, *each.InstanceID, "instance-"+each.ClientID, "instance id")
	}
}

// checkStaticFenced starts a second member with the same instance id: the first is told so.
func checkStaticFenced(t *T) {
	topic := newTopic(t, "topic", 2)
	fenced := make(chan struct{})
	var once sync.Once
	watch := kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) {
		once.Do(func() { close(fenced) })
	})
	options := []kgo.Opt{
		kgo.ConsumerGroup(t.Unique("group")), kgo.ConsumeTopics(topic), kgo.InstanceID("twin"),
		kgo.HeartbeatInterval(200 * time.Millisecond), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	produce(t, topic, 10, "record")
	first := newClient(t, append(options, watch)...)
	consume(t, first, 10)
	second := newClient(t, options...)
	ctx, cancel := context.WithCancel(t)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			second.PollFetches(ctx)
		}
	}()
	var failure error
	for failure == nil && t.Err() == nil {
		first.PollFetches(t).EachError(func(_ string, _ int32, err error) { failure = err })
	}
	t.True(errors.Is(failure, kerr.FencedInstanceID), "got %v, want FENCED_INSTANCE_ID", failure)
	select {
	case <-fenced:
	case <-t.Done():
		t.Fatalf("the fenced member did not lose its partitions")
	}
}

func checkStaticRemoved(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, topic, kgo.SessionTimeout(60*time.Second))
	g.join(t, "a", kgo.InstanceID("instance-a"))
	b := g.join(t, "b", kgo.InstanceID("instance-b"))
	g.assignments.AwaitBalanced(t, 2, "a", "b")
	b.leave()
	g.assignments.Replace("b")
	responses, err := newAdmin(t).LeaveGroup(t,
		kadm.LeaveGroup(g.group).Reason("removed").InstanceIDs("instance-b", "instance-x"))
	t.NoError(err, "leave group")
	t.NoError(responses["instance-b"].Err, "leave group of instance-b")
	unknown := responses["instance-x"].Err
	t.True(errors.Is(unknown, kerr.UnknownMemberID), "got %v, want UNKNOWN_MEMBER_ID", unknown)
	g.assignments.AwaitBalanced(t, 2, "a")
}

func checkCommonProtocol(t *T) {
	topic := newTopic(t, "topic", 4)
	g := newTeam(t, topic)
	g.join(t, "a", kgo.Balancers(kgo.RangeBalancer(), kgo.RoundRobinBalancer()))
	g.assignments.AwaitBalanced(t, 4, "a")
	harness.Equal(t, describeGroup(t, g.group).Protocol, "range", "protocol of one member")
	g.join(t, "b", kgo.Balancers(kgo.StickyBalancer(), kgo.RoundRobinBalancer()))
	g.assignments.AwaitBalanced(t, 4, "a", "b")
	harness.Equal(t, describeGroup(t, g.group).Protocol, "roundrobin", "protocol of both members")
}

func checkNoCommonProtocol(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, topic)
	g.join(t, "a", kgo.Balancers(kgo.RangeBalancer()))
	g.assignments.AwaitBalanced(t, 2, "a")
	stranger := newClient(t, kgo.ConsumerGroup(g.group), kgo.ConsumeTopics(topic),
		kgo.Balancers(kgo.StickyBalancer()))
	var failure error
	for failure == nil && t.Err() == nil {
		stranger.PollFetches(t).EachError(func(_ string, _ int32, err error) { failure = err })
	}
	t.True(errors.Is(failure, kerr.InconsistentGroupProtocol),
		"got %v, want INCONSISTENT_GROUP_PROTOCOL", failure)
	harness.Equal(t, len(describeGroup(t, g.group).Members), 1, "members")
}

func joinRequest(group, memberID string) *kmsg.JoinGroupRequest {
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.MemberID = group, memberID
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 10_000, 10_000
	request.ProtocolType = "consumer"
	protocol := kmsg.NewJoinGroupRequestProtocol()
	metadata := kmsg.NewConsumerMemberMetadata()
	protocol.Name, protocol.Metadata = "range", metadata.AppendTo(nil)
	request.Protocols = append(request.Protocols, protocol)
	return request
}

// checkMemberIDRequired walks the two joins of KIP-394 by hand.
func checkMemberIDRequired(t *T) {
	client, group := newClient(t, kgo.ClientID("by-hand")), t.Unique("group")
	first, err := joinRequest(group, "").RequestWith(t, client)
	t.NoError(err, "join")
	harness.Equal(t, first.ErrorCode, kerr.MemberIDRequired.Code, "first join")
	t.True(first.MemberID != "", "no member id in the answer")
	second, err := joinRequest(group, first.MemberID).RequestWith(t, client)
	t.NoError(err, "join again")
	harness.Equal(t, second.ErrorCode, 0, "second join")
	harness.Equal(t, second.Generation, 1, "generation")
	harness.Equal(t, second.LeaderID, first.MemberID, "leader")
	harness.Equal(t, len(second.Members), 1, "members")
	t.True(second.Protocol != nil && *second.Protocol == "range", "protocol is not range")

	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = group, first.MemberID, 1
	sync.ProtocolType, sync.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	assignment := kmsg.NewSyncGroupRequestGroupAssignment()
	assignment.MemberID, assignment.MemberAssignment = first.MemberID, []byte("opaque")
	sync.GroupAssignment = append(sync.GroupAssignment, assignment)
	synced, err := sync.RequestWith(t, client)
	t.NoError(err, "sync")
	harness.Equal(t, synced.ErrorCode, 0, "sync")
	harness.Equal(t, string(synced.MemberAssignment), "opaque", "assignment")
}

func checkUnknownMember(t *T) {
	client, group := newClient(t), t.Unique("group")
	unknown, err := joinRequest(group, "made-up-member").RequestWith(t, client)
	t.NoError(err, "join")
	harness.Equal(t, unknown.ErrorCode, kerr.UnknownMemberID.Code, "join with a made up id")

	first, err := joinRequest(group, "").RequestWith(t, client)
	t.NoError(err, "join")
	second, err := joinRequest(group, first.MemberID).RequestWith(t, client)
	t.NoError(err, "join again")
	harness.Equal(t, second.ErrorCode, 0, "join")

	heartbeat := kmsg.NewPtrHeartbeatRequest()
	heartbeat.Group, heartbeat.MemberID, heartbeat.Generation = group, first.MemberID, 99
	beat, err := heartbeat.RequestWith(t, client)
	t.NoError(err, "heartbeat")
	harness.Equal(t, beat.ErrorCode, kerr.IllegalGeneration.Code, "heartbeat of generation 99")
	heartbeat.MemberID = "made-up-member"
	beat, err = heartbeat.RequestWith(t, client)
	t.NoError(err, "heartbeat")
	harness.Equal(t, beat.ErrorCode, kerr.UnknownMemberID.Code, "heartbeat of a made up member")

	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = group
	for _, id := range []string{first.MemberID, "made-up-member"} {
		each := kmsg.NewLeaveGroupRequestMember()
		each.MemberID = id
		leave.Members = append(leave.Members, each)
	}
	left, err := leave.RequestWith(t, client)
	t.NoError(err, "leave")
	harness.Equal(t, left.Members[0].ErrorCode, 0, "leave")
	harness.Equal(t, left.Members[1].ErrorCode, kerr.UnknownMemberID.Code, "leave of a made up member")
	harness.Equal(t, describeGroup(t, group).State, "Empty", "state after leaving")
}

func checkSessionTimeoutBounds(t *T) {
	client := newClient(t)
	for _, millis := range []int32{1, 7_200_000} {
		request := joinRequest(t.Unique("group"), "")
		request.SessionTimeoutMillis = millis
		response, err := request.RequestWith(t, client)
		t.NoError(err, "join")
		harness.Equal(t, response.ErrorCode, kerr.InvalidSessionTimeout.Code, "error")
	}
	response, err := joinRequest("", "").RequestWith(t, client)
	t.NoError(err, "join")
	harness.Equal(t, response.ErrorCode, kerr.InvalidGroupID.Code, "join of a group without name")
}
