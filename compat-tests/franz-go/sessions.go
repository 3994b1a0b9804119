package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"keylane.test/harness"
)

// Fetch sessions (KIP-227), by hand and through the consumer.
func sessionChecks() []harness.Check {
	return []harness.Check{
		{Name: "sessions/topic-names", Run: func(t *T) { checkSession(t, 12) }},
		{Name: "sessions/topic-ids", Run: func(t *T) { checkSession(t, 17) }},
		{Name: "sessions/errors", Run: checkSessionErrors},
		{Name: "sessions/consumer-of-many-partitions", Run: checkSessionConsumer},
	}
}

// fetcher sends fetches of one session to the leader of a topic with one node.
type fetcher struct {
	client  *kgo.Client
	topic   string
	topicID [16]byte
	leader  int
	id      int32
	epoch   int32
	wait    int32
}

func newFetcher(t *T, topic string, maxVersion int16) *fetcher {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(1, maxVersion)
	client := newClient(t, kgo.MaxVersions(versions))
	metadata, err := newAdmin(t).Metadata(t, topic)
	t.NoError(err, "metadata")
	leader := metadata.Topics[topic].Partitions[0].Leader
	return &fetcher{
		client: client, topic: topic, topicID: metadata.Topics[topic].ID, leader: int(leader),
	}
}

// fetch asks for the partitions from the given offsets, on top of what the session holds.
func (f *fetcher) fetch(t *T, offsets map[int32]int64) *kmsg.FetchResponse {
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = f.wait, 1, 10<<20
	request.SessionID, request.SessionEpoch = f.id, f.epoch
	part := kmsg.NewFetchRequestTopic()
	part.Topic, part.TopicID = f.topic, f.topicID
	for number, offset := range offsets {
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.Partition, partition.FetchOffset = number, offset
		partition.PartitionMaxBytes = 1 << 20
		part.Partitions = append(part.Partitions, partition)
	}
	if len(offsets) > 0 {
		request.Topics = append(request.Topics, part)
	}
	response, err := f.client.Broker(f.leader).Request(t, request)
	t.NoError(err, "fetch")
	return response.(*kmsg.FetchResponse)
}

// answered maps the partitions of a response to whether they carry records.
func answered(t *T, response *kmsg.FetchResponse) map[int32]bool {
	harness.Equal(t, response.ErrorCode, 0, "error of the fetch")
	partitions := map[int32]bool{}
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			harness.Equal(t, partition.ErrorCode, 0, "error of a partition")
			partitions[partition.Partition] = len(partition.RecordBatches) > 0
		}
	}
	return partitions
}

// checkSession walks one session from its full fetch to its end.
func checkSession(t *T, maxVersion int16) {
	topic := newSingleLeaderTopic(t)
	producer := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	put := func(partition int32) {
		record := &kgo.Record{Topic: topic, Partition: partition, Value: []byte("v")}
		t.NoError(producer.ProduceSync(t, record).FirstErr(), "produce")
	}
	put(0)
	f := newFetcher(t, topic, maxVersion)
	first := f.fetch(t, map[int32]int64{0: 0, 1: 0})
	got := answered(t, first)
	t.True(len(got) == 2 && got[0] && !got[1], "full fetch answered %v", got)
	if first.SessionID == 0 {
		// A broker may decline a session; clients then go on with full fetches.
		got = answered(t, f.fetch(t, map[int32]int64{0: 1, 1: 0}))
		t.True(len(got) == 2 && !got[0], "second full fetch answered %v", got)
		return
	}
	f.id, f.epoch = first.SessionID, 1
	got = answered(t, f.fetch(t, map[int32]int64{0: 1}))
	t.True(len(got) == 0, "nothing changed, yet answered %v", got)

	put(1)
	f.epoch, f.wait = 2, 5000
	got = answered(t, f.fetch(t, nil))
	t.True(len(got) == 1 && got[1], "new record in partition 1, answered %v", got)

	// Not moving on repeats the same data; a forgotten partition is left out.
	f.epoch = 3
	got = answered(t, f.fetch(t, nil))
	t.True(len(got) == 1 && got[1], "same position, answered %v", got)
	f.epoch, f.wait = 4, 0
	got = answered(t, f.forget(t, 1))
	t.True(len(got) == 0, "partition 1 was forgotten, yet answered %v", got)

	f.epoch = -1
	last := f.fetch(t, map[int32]int64{0: 0, 1: 0})
	harness.Equal(t, last.SessionID, 0, "session id of a final full fetch")
	got = answered(t, last)
	t.True(len(got) == 2 && got[0] && got[1], "final full fetch answered %v", got)
}

func (f *fetcher) forget(t *T, partition int32) *kmsg.FetchResponse {
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = f.wait, 1, 10<<20
	request.SessionID, request.SessionEpoch = f.id, f.epoch
	forgotten := kmsg.NewFetchRequestForgottenTopic()
	forgotten.Topic, forgotten.TopicID = f.topic, f.topicID
	forgotten.Partitions = []int32{partition}
	request.ForgottenTopics = append(request.ForgottenTopics, forgotten)
	response, err := f.client.Broker(f.leader).Request(t, request)
	t.NoError(err, "fetch that forgets a partition")
	return response.(*kmsg.FetchResponse)
}

func checkSessionErrors(t *T) {
	topic := newSingleLeaderTopic(t)
	produce(t, topic, 1, "record")
	f := newFetcher(t, topic, 17)
	f.id, f.epoch = 123456789, 7
	unknown := f.fetch(t, nil)
	harness.Equal(t, unknown.ErrorCode, kerr.FetchSessionIDNotFound.Code, "unknown session")
	harness.Equal(t, len(unknown.Topics), 0, "topics beside the error")
	f.id, f.epoch = 0, 0
	first := f.fetch(t, map[int32]int64{0: 0, 1: 0})
	if first.SessionID == 0 {
		return
	}
	f.id, f.epoch = first.SessionID, 5
	skipped := f.fetch(t, nil)
	harness.Equal(t, skipped.ErrorCode, kerr.InvalidFetchSessionEpoch.Code, "skipped epoch")
}

// checkSessionConsumer adds, pauses and drops partitions of a consumer whose sessions live long.
func checkSessionConsumer(t *T) {
	const partitions = 50
	topic := newTopic(t, "topic", partitions)
	producer := newClient(t, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	client := newClient(t, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	next := map[int32]int64{}
	for round := range 8 {
		count := partitions
		if round%2 == 1 {
			count = 3
		}
		records := newRecords(topic, count, "record")
		t.NoError(producer.ProduceSync(t, records...).FirstErr(), "produce")
		for _, got := range consume(t, client, count) {
			harness.Equal(t, got.Offset, next[got.Partition], "offset")
			next[got.Partition]++
		}
	}
}

// newSingleLeaderTopic makes a topic of two partitions with one leader, also in a cluster.
func newSingleLeaderTopic(t *T) string {
	admin := newAdmin(t)
	brokers, err := admin.ListBrokers(t)
	t.NoError(err, "list brokers")
	node := brokers[0].NodeID
	request := kmsg.NewPtrCreateTopicsRequest()
	part := kmsg.NewCreateTopicsRequestTopic()
	part.Topic, part.NumPartitions, part.ReplicationFactor = t.Unique("topic"), -1, -1
	for number := range int32(2) {
		assignment := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		assignment.Partition, assignment.Replicas = number, []int32{node}
		part.ReplicaAssignment = append(part.ReplicaAssignment, assignment)
	}
	request.Topics = append(request.Topics, part)
	request.TimeoutMillis = 10_000
	response, err := request.RequestWith(t, newClient(t))
	t.NoError(err, "create topic")
	t.NoError(kerr.ErrorForCode(response.Topics[0].ErrorCode), "create topic")
	awaitTopic(t, admin, part.Topic, 2)
	return part.Topic
}
