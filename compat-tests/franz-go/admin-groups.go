package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"keylane.test/harness"
)

func adminGroupChecks() []harness.Check {
	return []harness.Check{
		{Name: "admin/list-describe-delete-group", Run: checkGroupLife},
		{Name: "admin/unknown-groups", Run: checkUnknownGroups},
		{Name: "admin/commit-and-fetch-offsets", Run: checkAdminOffsets},
		{Name: "admin/commit-against-active-group", Run: checkAdminCommitActive},
		{Name: "admin/delete-offsets", Run: checkDeleteOffsets},
		{Name: "admin/offsets-of-many-groups", Run: checkManyGroups},
		{Name: "admin/lag", Run: checkLag},
		{Name: "admin/find-coordinators", Run: checkFindCoordinators},
	}
}

func checkGroupLife(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 2)
	g := newTeam(t, topic, kgo.Balancers(kgo.RangeBalancer()))
	a := g.join(t, "a")
	b := g.join(t, "b")
	g.assignments.AwaitBalanced(t, 2, "a", "b")
	produce(t, topic, 10, "record")
	g.ledger.Await(t, 10)

	described := describeGroup(t, g.group)
	harness.Equal(t, described.State, "Stable", "state")
	harness.Equal(t, described.ProtocolType, "consumer", "protocol type")
	harness.Equal(t, len(described.Members), 2, "members")
	for _, each := range described.Members {
		t.True(strings.HasPrefix(each.MemberID, each.ClientID+"-"), "member id %s", each.MemberID)
		t.True(each.ClientHost != "", "no client host")
		assigned, ok := each.Assigned.AsConsumer()
		t.True(ok && len(assigned.Topics) == 1, "assignment of %s", each.ClientID)
		name := fmt.Sprintf("%s[%d]", topic, assigned.Topics[0].Partitions[0])
		held := g.assignments.Held(each.ClientID)
		t.True(slices.Contains(held, name), "%s is not with %s", name, each.ClientID)
		joined, ok := each.Join.AsConsumer()
		t.True(ok && slices.Contains(joined.Topics, topic), "subscription of %s", each.ClientID)
	}
	listed, err := admin.ListGroups(t, "Stable")
	t.NoError(err, "list groups")
	harness.Equal(t, listed[g.group].State, "Stable", "listed state")
	harness.Equal(t, listed[g.group].ProtocolType, "consumer", "listed protocol type")

	_, err = admin.DeleteGroup(t, g.group)
	wantError(t, err, kerr.NonEmptyGroup, "delete an active group")
	a.leave()
	b.leave()
	t.Eventually("the group is empty", func() bool {
		return describeGroup(t, g.group).State == "Empty"
	})
	listed, err = admin.ListGroups(t, "Stable")
	t.NoError(err, "list groups")
	_, stable := listed[g.group]
	t.True(!stable, "the empty group is listed as stable")
	_, err = admin.DeleteGroup(t, g.group)
	t.NoError(err, "delete")
	offsets, err := admin.FetchOffsets(t, g.group)
	if err == nil {
		harness.Equal(t, len(offsets[topic]), 0, "offsets of a deleted group")
	}
	listed, err = admin.ListGroups(t)
	t.NoError(err, "list groups")
	_, exists := listed[g.group]
	t.True(!exists, "the deleted group is listed")
}

func checkUnknownGroups(t *T) {
	admin, group := newAdmin(t), t.Unique("unknown")
	_, err := admin.DeleteGroup(t, group)
	wantError(t, err, kerr.GroupIDNotFound, "delete")
	described, err := admin.DescribeGroups(t, group)
	t.NoError(err, "describe")
	// Since DescribeGroups v6 (KIP-1043) an unknown group is an error, before it was a dead group.
	if described[group].Err != nil {
		wantError(t, described[group].Err, kerr.GroupIDNotFound, "describe")
	} else {
		harness.Equal(t, described[group].State, "Dead", "state")
	}
	_, err = admin.LeaveGroup(t, kadm.LeaveGroup(group).InstanceIDs("instance"))
	if err != nil {
		wantError(t, err, kerr.UnknownMemberID, "leave")
	}
}

func checkAdminOffsets(t *T) {
	admin, topic, group := newAdmin(t), newTopic(t, "topic", 3), t.Unique("group")
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 10, LeaderEpoch: -1, Metadata: "note"})
	offsets.Add(kadm.Offset{Topic: topic, Partition: 2, At: 77, LeaderEpoch: 0})
	t.NoError(admin.CommitAllOffsets(t, group, offsets), "commit")
	fetched, err := admin.FetchOffsets(t, group)
	t.NoError(err, "fetch")
	harness.Equal(t, len(fetched[topic]), 2, "partitions")
	zero, _ := fetched.Lookup(topic, 0)
	harness.Equal(t, zero.At, 10, "offset of partition 0")
	harness.Equal(t, zero.Metadata, "note", "metadata of partition 0")
	harness.Equal(t, zero.LeaderEpoch, -1, "epoch of partition 0")
	two, _ := fetched.Lookup(topic, 2)
	harness.Equal(t, two.At, 77, "offset of partition 2")
	harness.Equal(t, two.LeaderEpoch, 0, "epoch of partition 2")
	full, err := admin.FetchOffsetsForTopics(t, group, topic)
	t.NoError(err, "fetch for topics")
	one, exists := full.Lookup(topic, 1)
	t.True(exists, "partition 1 is missing")
	harness.Equal(t, one.At, -1, "offset without a commit")

	// The committed offsets are where a consumer of the group starts.
	produce(t, topic, 1, "record")
	long := kadm.Offsets{}
	long.Add(kadm.Offset{
		Topic: topic, Partition: 0, At: 1, LeaderEpoch: -1, Metadata: strings.Repeat("x", 5000)})
	responses, err := admin.CommitOffsets(t, group, long)
	t.NoError(err, "commit with long metadata")
	wantError(t, responses[topic][0].Err, kerr.OffsetMetadataTooLarge, "commit with long metadata")
	described := describeGroup(t, group)
	harness.Equal(t, described.State, "Empty", "state of a group with offsets only")
}

func checkAdminCommitActive(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 1)
	g := newTeam(t, topic)
	g.join(t, "a")
	g.assignments.AwaitBalanced(t, 1, "a")
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, 5, -1)
	responses, err := admin.CommitOffsets(t, g.group, offsets)
	t.NoError(err, "commit")
	wantError(t, responses[topic][0].Err, kerr.UnknownMemberID, "commit past the members")
}

func checkDeleteOffsets(t *T) {
	admin, topic, group := newAdmin(t), newTopic(t, "topic", 2), t.Unique("group")
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, 3, -1)
	offsets.AddOffset(topic, 1, 4, -1)
	t.NoError(admin.CommitAllOffsets(t, group, offsets), "commit")
	set := kadm.TopicsSet{}
	set.Add(topic, 0)
	deleted, err := admin.DeleteOffsets(t, group, set)
	t.NoError(err, "delete")
	t.NoError(deleted.Error(), "delete")
	fetched, err := admin.FetchOffsets(t, group)
	t.NoError(err, "fetch")
	harness.Equal(t, len(fetched[topic]), 1, "offsets that are left")
	harness.Equal(t, fetched[topic][1].At, 4, "offset of partition 1")

	g := newTeam(t, topic)
	g.join(t, "a")
	g.assignments.AwaitBalanced(t, 2, "a")
	produce(t, topic, 10, "record")
	g.ledger.Await(t, 10)
	deleted, err = admin.DeleteOffsets(t, g.group, set)
	t.NoError(err, "delete of an active group")
	refused, _ := deleted.Lookup(topic, 0)
	wantError(t, refused, kerr.GroupSubscribedToTopic, "delete of a subscribed topic")
	_, err = admin.DeleteOffsets(t, t.Unique("unknown"), set)
	wantError(t, err, kerr.GroupIDNotFound, "delete of an unknown group")
}

func checkManyGroups(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 1)
	var groups []string
	for i := range 8 {
		group := t.Unique(fmt.Sprintf("group-%d", i))
		groups = append(groups, group)
		offsets := kadm.Offsets{}
		offsets.AddOffset(topic, 0, int64(i), -1)
		t.NoError(admin.CommitAllOffsets(t, group, offsets), "commit")
	}
	for group, fetched := range admin.FetchManyOffsets(t, groups...) {
		t.NoError(fetched.Err, "fetch of "+group)
		want := int64(slices.Index(groups, group))
		harness.Equal(t, fetched.Fetched[topic][0].At, want, "offset of "+group)
	}
	deleted, err := admin.DeleteGroups(t, groups...)
	t.NoError(err, "delete groups")
	for _, each := range deleted {
		t.NoError(each.Err, "delete of "+each.Group)
	}
}

func checkLag(t *T) {
	admin, topic, group := newAdmin(t), newTopic(t, "topic", 1), t.Unique("group")
	produce(t, topic, 30, "record")
	client := openClient(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	records := consume(t, client, 30)
	t.NoError(client.CommitRecords(t, records[11]), "commit")
	lags, err := admin.Lag(t, group)
	t.NoError(err, "lag")
	lag := lags[group]
	t.NoError(lag.Error(), "lag")
	harness.Equal(t, lag.Lag.Total(), 18, "lag")
	client.Close()
}

func checkFindCoordinators(t *T) {
	admin := newAdmin(t)
	brokers, err := admin.ListBrokers(t)
	t.NoError(err, "list brokers")
	groups := []string{t.Unique("a"), t.Unique("b"), t.Unique("c")}
	for group, found := range admin.FindGroupCoordinators(t, groups...) {
		t.NoError(found.Err, "coordinator of "+group)
		t.True(slices.Contains(brokers.NodeIDs(), found.NodeID), "coordinator %d", found.NodeID)
	}
}
