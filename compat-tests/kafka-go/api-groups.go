package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"keylane.test/harness"
)

func groupAPIChecks() []harness.Check {
	return []harness.Check{
		{Name: "client/group-by-hand", Run: checkGroupByHand},
		{Name: "client/static-members-by-hand", Run: checkStaticByHand},
		{Name: "client/describe-list-delete-groups", Run: checkGroupLife},
		{Name: "client/commit-fetch-delete-offsets", Run: checkOffsets},
		{Name: "client/offset-errors", Run: checkOffsetErrors},
		{Name: "client/find-coordinator", Run: checkFindCoordinator},
	}
}

func describeGroup(t *T, group string) kafka.DescribeGroupsResponseGroup {
	response, err := newClient(t).DescribeGroups(t, &kafka.DescribeGroupsRequest{
		GroupIDs: []string{group},
	})
	t.NoError(err, "describe groups")
	harness.Equal(t, len(response.Groups), 1, "groups in the answer")
	t.NoError(response.Groups[0].Error, "describe group")
	return response.Groups[0]
}

func joinRequest(group, topic, memberID string, session time.Duration) *kafka.JoinGroupRequest {
	return &kafka.JoinGroupRequest{
		GroupID: group, MemberID: memberID, SessionTimeout: session,
		RebalanceTimeout: 10 * time.Second, ProtocolType: "consumer",
		Protocols: []kafka.GroupProtocol{{
			Name: "range", Metadata: kafka.GroupProtocolSubscription{Topics: []string{topic}},
		}},
	}
}

func join(t *T, request *kafka.JoinGroupRequest) *kafka.JoinGroupResponse {
	response, err := newClient(t).JoinGroup(t, request)
	t.NoError(err, "join group")
	return response
}

// joinByHand makes the only member of a group, with the two joins of KIP-394.
func joinByHand(t *T, group, topic string, session time.Duration) *kafka.JoinGroupResponse {
	first := join(t, joinRequest(group, topic, "", session))
	wantError(t, first.Error, kafka.MemberIDRequired, "first join")
	t.True(first.MemberID != "", "no member id in the answer")
	second := join(t, joinRequest(group, topic, first.MemberID, session))
	t.NoError(second.Error, "second join")
	harness.Equal(t, second.LeaderID, first.MemberID, "leader")
	harness.Equal(t, second.ProtocolName, "range", "protocol")
	harness.Equal(t, len(second.Members), 1, "members")
	return second
}

// syncByHand gives partitions to a member that is alone in its group.
func syncByHand(t *T, group string, joined *kafka.JoinGroupResponse, partitions map[string][]int) {
	response, err := newClient(t).SyncGroup(t, &kafka.SyncGroupRequest{
		GroupID: group, GenerationID: joined.GenerationID, MemberID: joined.MemberID,
		ProtocolType: "consumer", ProtocolName: "range",
		Assignments: []kafka.SyncGroupRequestAssignment{{
			MemberID:   joined.MemberID,
			Assignment: kafka.GroupProtocolAssignment{AssignedPartitions: partitions},
		}},
	})
	t.NoError(err, "sync group")
	t.NoError(response.Error, "sync group")
	for topic, want := range partitions {
		got := response.Assignment.AssignedPartitions[topic]
		harness.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "assignment")
	}
}

func checkGroupByHand(t *T) {
	topic, group := newTopic(t, "topic", 2), t.Unique("group")
	joined := joinByHand(t, group, topic, 10*time.Second)
	syncByHand(t, group, joined, map[string][]int{topic: {0, 1}})
	// Errors of heartbeats are not looked at: kafka-go reads them from the place of the throttle time.
	beat, err := newClient(t).Heartbeat(t, &kafka.HeartbeatRequest{
		GroupID: group, MemberID: joined.MemberID, GenerationID: int32(joined.GenerationID),
	})
	t.NoError(err, "heartbeat")
	t.NoError(beat.Error, "heartbeat")

	described := describeGroup(t, group)
	harness.Equal(t, described.GroupState, "Stable", "state")
	member := described.Members[0]
	harness.Equal(t, member.MemberID, joined.MemberID, "member id")
	harness.Equal(t, member.ClientID, "compat", "client id")
	harness.Equal(t, fmt.Sprint(member.MemberMetadata.Topics), fmt.Sprint([]string{topic}), "topics")
	assigned := member.MemberAssignments.Topics[0]
	harness.Equal(t, fmt.Sprint(assigned.Partitions), "[0 1]", "assigned partitions")

	commit := func(memberID string, generation int) error {
		response, err := newClient(t).OffsetCommit(t, &kafka.OffsetCommitRequest{
			GroupID: group, MemberID: memberID, GenerationID: generation,
			Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: 1, Offset: 7}}},
		})
		t.NoError(err, "offset commit")
		return response.Topics[topic][0].Error
	}
	t.NoError(commit(joined.MemberID, joined.GenerationID), "commit")
	wantError(t, commit(joined.MemberID, 99), kafka.IllegalGeneration, "commit of generation 99")
	wantError(t, commit("made-up", joined.GenerationID), kafka.UnknownMemberId, "commit of made-up")
	wantError(t, commit("", -1), kafka.UnknownMemberId, "commit past the members")

	left, err := newClient(t).LeaveGroup(t, &kafka.LeaveGroupRequest{
		GroupID: group, Members: []kafka.LeaveGroupRequestMember{{ID: joined.MemberID}},
	})
	t.NoError(err, "leave group")
	t.NoError(left.Error, "leave group")
	t.NoError(left.Members[0].Error, "leave group")
	harness.Equal(t, describeGroup(t, group).GroupState, "Empty", "state after leaving")
}

func checkStaticByHand(t *T) {
	topic, group := newTopic(t, "topic", 1), t.Unique("group")
	request := joinRequest(group, topic, "", 20*time.Second)
	request.GroupInstanceID = "instance"
	first := join(t, request)
	t.NoError(first.Error, "join")
	syncStatic := func(joined *kafka.JoinGroupResponse) string {
		response, err := newClient(t).SyncGroup(t, &kafka.SyncGroupRequest{
			GroupID: group, GenerationID: joined.GenerationID, MemberID: joined.MemberID,
			GroupInstanceID: "instance", ProtocolType: "consumer", ProtocolName: "range",
			Assignments: []kafka.SyncGroupRequestAssignment{{
				MemberID: joined.MemberID,
				Assignment: kafka.GroupProtocolAssignment{
					AssignedPartitions: map[string][]int{topic: {0}},
				},
			}},
		})
		t.NoError(err, "sync group")
		t.NoError(response.Error, "sync group")
		return fmt.Sprint(response.Assignment.AssignedPartitions)
	}
	assignment := syncStatic(first)
	// The same instance joins again: a new member id, the same generation, the same assignment.
	again := join(t, request)
	t.NoError(again.Error, "join again")
	t.True(again.MemberID != first.MemberID, "the member id stays")
	harness.Equal(t, again.GenerationID, first.GenerationID, "generation")
	harness.Equal(t, syncStatic(again), assignment, "assignment")
	response, err := newClient(t).OffsetCommit(t, &kafka.OffsetCommitRequest{
		GroupID: group, MemberID: first.MemberID, GenerationID: first.GenerationID,
		InstanceID: "instance", Topics: map[string][]kafka.OffsetCommit{topic: {{Offset: 1}}},
	})
	t.NoError(err, "offset commit")
	wantError(t, response.Topics[topic][0].Error, kafka.FencedInstanceID, "commit of the old member")

	left, err := newClient(t).LeaveGroup(t, &kafka.LeaveGroupRequest{
		GroupID: group, Members: []kafka.LeaveGroupRequestMember{{GroupInstanceID: "instance"}},
	})
	t.NoError(err, "leave group")
	t.NoError(left.Members[0].Error, "leave group by instance")
	harness.Equal(t, len(describeGroup(t, group).Members), 0, "members after leaving")
}

func checkGroupLife(t *T) {
	topic := newTopic(t, "topic", 2)
	g := newTeam(t, topic, kafka.RangeGroupBalancer{})
	a, b := g.join(t, "a"), g.join(t, "b")
	g.assignments.AwaitBalanced(t, 2, "a", "b")
	described := describeGroup(t, g.group)
	harness.Equal(t, len(described.Members), 2, "members")
	for _, each := range described.Members {
		t.True(strings.HasPrefix(each.MemberID, each.ClientID+"-"), "member id %s", each.MemberID)
		held := fmt.Sprintf("%s[%d]", topic, each.MemberAssignments.Topics[0].Partitions[0])
		harness.Equal(t, held, g.assignments.Held(each.ClientID)[0], "partition of "+each.ClientID)
	}
	listed := func() (protocolType string, exists bool) {
		response, err := newClient(t).ListGroups(t, &kafka.ListGroupsRequest{})
		t.NoError(err, "list groups")
		t.NoError(response.Error, "list groups")
		for _, each := range response.Groups {
			if each.GroupID == g.group {
				return each.ProtocolType, true
			}
		}
		return "", false
	}
	protocolType, exists := listed()
	t.True(exists && protocolType == "consumer", "listed %v as %q", exists, protocolType)
	remove := func(group string) error {
		response, err := newClient(t).DeleteGroups(t, &kafka.DeleteGroupsRequest{
			GroupIDs: []string{group},
		})
		t.NoError(err, "delete groups")
		return response.Errors[group]
	}
	wantError(t, remove(g.group), kafka.NonEmptyGroup, "delete while active")
	a.leave()
	b.leave()
	t.Eventually("the group is empty", func() bool {
		return describeGroup(t, g.group).GroupState == "Empty"
	})
	t.NoError(remove(g.group), "delete")
	_, exists = listed()
	t.True(!exists, "the deleted group is listed")
	wantError(t, remove(g.group), kafka.GroupIdNotFound, "delete again")
}

func commitOffsets(
	t *T, group, topic string, offsets ...kafka.OffsetCommit,
) []kafka.OffsetCommitPartition {
	response, err := newClient(t).OffsetCommit(t, &kafka.OffsetCommitRequest{
		GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: offsets},
	})
	t.NoError(err, "offset commit")
	return response.Topics[topic]
}

func fetchOffsets(t *T, group, topic string, partitions ...int) map[int]kafka.OffsetFetchPartition {
	request := &kafka.OffsetFetchRequest{GroupID: group}
	if len(partitions) > 0 {
		request.Topics = map[string][]int{topic: partitions}
	}
	response, err := newClient(t).OffsetFetch(t, request)
	t.NoError(err, "offset fetch")
	t.NoError(response.Error, "offset fetch")
	found := map[int]kafka.OffsetFetchPartition{}
	for _, partition := range response.Topics[topic] {
		t.NoError(partition.Error, "offset fetch")
		found[partition.Partition] = partition
	}
	return found
}

func checkOffsets(t *T) {
	topic, group := newTopic(t, "topic", 3), t.Unique("group")
	for _, result := range commitOffsets(t, group, topic,
		kafka.OffsetCommit{Partition: 0, Offset: 10, Metadata: "note"},
		kafka.OffsetCommit{Partition: 2, Offset: 77}) {
		t.NoError(result.Error, "commit")
	}
	found := fetchOffsets(t, group, topic, 0, 1, 2)
	harness.Equal(t, found[0].CommittedOffset, 10, "offset of partition 0")
	harness.Equal(t, found[0].Metadata, "note", "metadata of partition 0")
	harness.Equal(t, found[1].CommittedOffset, -1, "offset of partition 1")
	harness.Equal(t, found[2].CommittedOffset, 77, "offset of partition 2")
	harness.Equal(t, len(fetchOffsets(t, group, topic)), 2, "partitions with a commit")

	response, err := newClient(t).OffsetDelete(t, &kafka.OffsetDeleteRequest{
		GroupID: group, Topics: map[string][]int{topic: {0}},
	})
	t.NoError(err, "offset delete")
	t.NoError(response.Error, "offset delete")
	t.NoError(response.Topics[topic][0].Error, "offset delete")
	found = fetchOffsets(t, group, topic)
	t.True(len(found) == 1 && found[2].CommittedOffset == 77, "offsets that are left: %v", found)
}

func checkOffsetErrors(t *T) {
	topic, group := newTopic(t, "topic", 1), t.Unique("group")
	results := commitOffsets(t, group, topic,
		kafka.OffsetCommit{Partition: 0, Offset: 1, Metadata: strings.Repeat("x", 5000)})
	wantError(t, results[0].Error, kafka.OffsetMetadataTooLarge, "metadata of 5000 bytes")
	results = commitOffsets(t, group, topic, kafka.OffsetCommit{Partition: 9, Offset: 1})
	wantError(t, results[0].Error, kafka.UnknownTopicOrPartition, "partition 9 of 1")
	harness.Equal(t, fetchOffsets(t, group, topic, 0)[0].CommittedOffset, -1, "offset")
	response, err := newClient(t).OffsetDelete(t, &kafka.OffsetDeleteRequest{
		GroupID: t.Unique("unknown"), Topics: map[string][]int{topic: {0}},
	})
	t.NoError(err, "offset delete")
	wantError(t, response.Error, kafka.GroupIdNotFound, "offset delete of an unknown group")
}

func checkFindCoordinator(t *T) {
	response, err := newClient(t).FindCoordinator(t, &kafka.FindCoordinatorRequest{
		Key: t.Unique("group"), KeyType: kafka.CoordinatorKeyTypeConsumer,
	})
	t.NoError(err, "find coordinator")
	t.NoError(response.Error, "find coordinator")
	metadata, err := newClient(t).Metadata(t, &kafka.MetadataRequest{})
	t.NoError(err, "metadata")
	found := false
	for _, broker := range metadata.Brokers {
		found = found || (broker.ID == response.Coordinator.NodeID &&
			broker.Port == response.Coordinator.Port)
	}
	t.True(found, "coordinator %v is not among the brokers", response.Coordinator)
}
