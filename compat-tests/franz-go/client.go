package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"keylane.test/harness"
)

// T shortens the signatures of the checks.
type T = harness.T

// newClient opens a client that is closed when the check ends.
func newClient(t *T, options ...kgo.Opt) *kgo.Client {
	client := openClient(t, options...)
	t.Cleanup(client.CloseAllowingRebalance)
	return client
}

// openClient opens a client that the caller closes.
func openClient(t *T, options ...kgo.Opt) *kgo.Client {
	base := []kgo.Opt{kgo.SeedBrokers(t.Bootstrap), kgo.MetadataMinAge(100 * time.Millisecond)}
	client, err := kgo.NewClient(append(base, options...)...)
	t.NoError(err, "new client")
	return client
}

func newAdmin(t *T) *kadm.Client {
	return kadm.NewClient(newClient(t))
}

// newTopic creates a topic with pairs of configs and returns its name once it can be used.
func newTopic(t *T, part string, partitions int32, configs ...string) string {
	name := t.Unique(part)
	values := map[string]*string{}
	for i := 0; i+1 < len(configs); i += 2 {
		values[configs[i]] = &configs[i+1]
	}
	admin := newAdmin(t)
	response, err := admin.CreateTopic(t, partitions, 1, values, name)
	t.NoError(err, "create topic")
	t.NoError(response.Err, "create topic")
	awaitTopic(t, admin, name, int(partitions))
	return name
}

// awaitTopic waits until Metadata shows a topic with all its leaders and these answer for their
// partitions: Apache Kafka answers CreateTopics some milliseconds before that, and a record with
// acks=0 is lost in between.
func awaitTopic(t *T, admin *kadm.Client, name string, partitions int) {
	t.Eventually("topic "+name+" shows up", func() bool {
		metadata, err := admin.Metadata(t, name)
		t.NoError(err, "metadata")
		topic := metadata.Topics[name]
		if topic.Err != nil || len(topic.Partitions) != partitions {
			return false
		}
		for _, partition := range topic.Partitions {
			if partition.Err != nil || partition.Leader < 0 {
				return false
			}
		}
		ends, err := admin.ListEndOffsets(t, name)
		return err == nil && ends.Error() == nil && len(ends[name]) == partitions
	})
}

// newRecords makes count records whose keys are unique and spread over the partitions.
func newRecords(topic string, count int, prefix string) []*kgo.Record {
	records := make([]*kgo.Record, count)
	for i := range records {
		records[i] = &kgo.Record{
			Topic: topic,
			Key:   fmt.Appendf(nil, "%s-%d", prefix, i),
			Value: fmt.Appendf(nil, "value of %s-%d", prefix, i),
		}
	}
	return records
}

// produce writes count records with the default settings.
func produce(t *T, topic string, count int, prefix string) []*kgo.Record {
	records := newRecords(topic, count, prefix)
	client := openClient(t)
	defer client.Close()
	t.NoError(client.ProduceSync(t, records...).FirstErr(), "produce")
	return records
}

// consume polls until count records were received and returns them in order of arrival.
func consume(t *T, client *kgo.Client, count int) []*kgo.Record {
	var records []*kgo.Record
	for len(records) < count {
		fetches := client.PollFetches(t)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("fetch with %d of %d records: %v", len(records), count, err)
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			t.Errorf("fetch %s[%d]: %v", topic, partition, err)
		})
		records = append(records, fetches.Records()...)
	}
	harness.Equal(t, len(records), count, "records received")
	return records
}

// consumeSome polls until at least one record was received.
func consumeSome(t *T, client *kgo.Client) []*kgo.Record {
	for {
		fetches := client.PollFetches(t)
		t.NoError(fetches.Err(), "fetch")
		if records := fetches.Records(); len(records) > 0 {
			return records
		}
	}
}

// consumeAll reads a whole topic from its start, without a group.
func consumeAll(t *T, topic string, count int, options ...kgo.Opt) []*kgo.Record {
	base := []kgo.Opt{
		kgo.ConsumeTopics(topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(500 * time.Millisecond),
	}
	client := openClient(t, append(base, options...)...)
	defer client.Close()
	return consume(t, client, count)
}

// consumePartition opens a consumer of one partition from an offset.
func consumePartition(
	t *T, topic string, partition int32, offset kgo.Offset, options ...kgo.Opt,
) *kgo.Client {
	base := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: offset}}),
		kgo.FetchMaxWait(500 * time.Millisecond),
	}
	return newClient(t, append(base, options...)...)
}

// nothingWithin checks that a consumer gets no record for a while. It is the one place where time
// has to pass: that something does not happen cannot be awaited otherwise.
func nothingWithin(t *T, client *kgo.Client, wait time.Duration) {
	ctx, cancel := context.WithTimeout(t, wait)
	defer cancel()
	fetches := client.PollFetches(ctx)
	harness.Equal(t, fetches.NumRecords(), 0, "records that were not expected")
}
