package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

func adminGroupChecks() []harness.Check {
	return []harness.Check{
		{Name: "admin/list-describe-delete-group", Run: checkGroupLife},
		{Name: "admin/unknown-group", Run: checkUnknownGroup},
		{Name: "admin/alter-and-list-group-offsets", Run: checkAlterOffsets},
		{Name: "admin/alter-offsets-of-active-group", Run: checkAlterActive},
		{Name: "admin/delete-group-offset", Run: checkDeleteOffset},
		{Name: "admin/offsets-of-many-groups", Run: checkManyGroups},
	}
}

func checkGroupLife(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), newTopic(t, "topic", 2)
	g := newTeam(t, unchanged, topic)
	a, b := g.join(t, "a"), g.join(t, "b")
	g.assignments.AwaitBalanced(t, 2, "a", "b")
	t.Eventually("the group is stable", func() bool {
		return describeGroup(t, g.group).State == "Stable"
	})
	described := describeGroup(t, g.group)
	harness.Equal(t, described.ProtocolType, "consumer", "protocol type")
	harness.Equal(t, described.Protocol, "range", "protocol")
	harness.Equal(t, len(described.Members), 2, "members")
	for _, each := range described.Members {
		t.True(strings.HasPrefix(each.MemberId, each.ClientId+"-"), "member id %s", each.MemberId)
		t.True(each.ClientHost != "", "no client host")
		assignment, err := each.GetMemberAssignment()
		t.NoError(err, "assignment")
		held := fmt.Sprintf("%s[%d]", topic, assignment.Topics[topic][0])
		harness.Equal(t, held, g.assignments.Held(each.ClientId)[0], "partition of "+each.ClientId)
		metadata, err := each.GetMemberMetadata()
		t.NoError(err, "metadata")
		t.True(slices.Contains(metadata.Topics, topic), "subscription of %s", each.ClientId)
	}
	groups, err := admin.ListConsumerGroups()
	t.NoError(err, "list groups")
	harness.Equal(t, groups[g.group], "consumer", "listed protocol type")

	wantError(t, admin.DeleteConsumerGroup(g.group), sarama.ErrNonEmptyGroup, "delete while active")
	a.leave()
	b.leave()
	t.Eventually("the group is empty", func() bool {
		return describeGroup(t, g.group).State == "Empty"
	})
	t.NoError(admin.DeleteConsumerGroup(g.group), "delete")
	groups, err = admin.ListConsumerGroups()
	t.NoError(err, "list groups")
	_, exists := groups[g.group]
	t.True(!exists, "the deleted group is listed")
}

func checkUnknownGroup(t *T) {
	admin, group := newAdmin(t, newConfig(newestVersion)), t.Unique("unknown")
	wantError(t, admin.DeleteConsumerGroup(group), sarama.ErrGroupIDNotFound, "delete")
	groups, err := admin.DescribeConsumerGroups([]string{group})
	t.NoError(err, "describe")
	// Since DescribeGroups v6 (KIP-1043) an unknown group is an error, before it was a dead group.
	if groups[0].Err != sarama.ErrGroupIDNotFound {
		harness.Equal(t, groups[0].State, "Dead", "state")
	}
	topic := newTopic(t, "topic", 1)
	harness.Equal(t, committed(t, admin, group, topic, 0), -1, "offset of an unknown group")
}

func alterOffsets(
	t *T, admin sarama.ClusterAdmin, group, topic string, offsets map[int32]sarama.OffsetAndMetadata,
) map[int32]sarama.KError {
	response, err := admin.AlterConsumerGroupOffsets(
		group, map[string]map[int32]sarama.OffsetAndMetadata{topic: offsets}, nil)
	t.NoError(err, "alter offsets")
	return response.Errors[topic]
}

func checkAlterOffsets(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), newTopic(t, "topic", 3)
	group := t.Unique("group")
	results := alterOffsets(t, admin, group, topic, map[int32]sarama.OffsetAndMetadata{
		0: {Offset: 10, Metadata: "note", LeaderEpoch: -1},
		2: {Offset: 77, LeaderEpoch: 0},
	})
	for partition, code := range results {
		harness.Equal(t, code, sarama.ErrNoError, fmt.Sprintf("partition %d", partition))
	}
	// Without partitions all of the group are asked for.
	response, err := admin.ListConsumerGroupOffsets(group, nil)
	t.NoError(err, "list offsets")
	zero, one := response.GetBlock(topic, 0), response.GetBlock(topic, 1)
	two := response.GetBlock(topic, 2)
	t.True(zero != nil && one == nil && two != nil, "partitions of %v, %v, %v", zero, one, two)
	harness.Equal(t, zero.Offset, 10, "offset of partition 0")
	harness.Equal(t, zero.Metadata, "note", "metadata of partition 0")
	harness.Equal(t, zero.LeaderEpoch, -1, "epoch of partition 0")
	harness.Equal(t, two.Offset, 77, "offset of partition 2")
	harness.Equal(t, two.LeaderEpoch, 0, "epoch of partition 2")
	harness.Equal(t, committed(t, admin, group, topic, 1), -1, "offset of partition 1")
	harness.Equal(t, describeGroup(t, group).State, "Empty", "state")
}

func checkAlterActive(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), newTopic(t, "topic", 1)
	g := newTeam(t, unchanged, topic)
	g.join(t, "a")
	g.assignments.AwaitBalanced(t, 1, "a")
	results := alterOffsets(t, admin, g.group, topic, map[int32]sarama.OffsetAndMetadata{
		0: {Offset: 3, LeaderEpoch: -1},
	})
	harness.Equal(t, results[0], sarama.ErrUnknownMemberId, "commit past the members")
}

func checkDeleteOffset(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), newTopic(t, "topic", 2)
	group := t.Unique("group")
	alterOffsets(t, admin, group, topic, map[int32]sarama.OffsetAndMetadata{
		0: {Offset: 1, LeaderEpoch: -1}, 1: {Offset: 2, LeaderEpoch: -1},
	})
	t.NoError(admin.DeleteConsumerGroupOffset(group, topic, 0), "delete")
	harness.Equal(t, committed(t, admin, group, topic, 0), -1, "deleted offset")
	harness.Equal(t, committed(t, admin, group, topic, 1), 2, "offset that stays")
	g := newTeam(t, unchanged, topic)
	g.join(t, "a")
	g.assignments.AwaitBalanced(t, 2, "a")
	err := admin.DeleteConsumerGroupOffset(g.group, topic, 0)
	wantError(t, err, sarama.ErrGroupSubscribedToTopic, "delete of a subscribed topic")
}

func checkManyGroups(t *T) {
	admin, topic := newAdmin(t, newConfig(newestVersion)), newTopic(t, "topic", 1)
	query := map[string]map[string][]int32{}
	want := map[string]int64{}
	for i := range 6 {
		group := t.Unique(fmt.Sprintf("group-%d", i))
		alterOffsets(t, admin, group, topic, map[int32]sarama.OffsetAndMetadata{
			0: {Offset: int64(i), LeaderEpoch: -1},
		})
		query[group] = map[string][]int32{topic: {0}}
		want[group] = int64(i)
	}
	answers, err := admin.ListConsumerGroupOffsetsBatch(query)
	t.NoError(err, "list offsets of groups")
	harness.Equal(t, len(answers), len(want), "groups in the answer")
	for group, answer := range answers {
		harness.Equal(t, answer.Err, sarama.ErrNoError, "offsets of "+group)
		harness.Equal(t, answer.Blocks[topic][0].Offset, want[group], "offset of "+group)
	}
}
