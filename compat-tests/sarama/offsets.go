package main

import (
	"strings"
	"time"

	"github.com/IBM/sarama"

	"keylane.test/harness"
)

func offsetChecks() []harness.Check {
	return []harness.Check{
		{Name: "offsets/mark-commit-and-resume", Run: checkOffsetManager},
		{Name: "offsets/autocommit", Run: checkOffsetAutoCommit},
		{Name: "offsets/reset-goes-back", Run: checkOffsetReset},
		{Name: "offsets/initial-of-new-group", Run: checkOffsetInitial},
		{Name: "offsets/many-partitions", Run: checkOffsetPartitions},
		{Name: "offsets/metadata-too-large", Run: checkOffsetMetadata},
	}
}

// manage opens an offset manager with some of its partitions. Without autocommit only the end of the
// manager ends the waiting of its partitions' Close, which is why closing ends the manager first.
func manage(
	t *T, config *sarama.Config, group, topic string, partitions ...int32,
) (manager sarama.OffsetManager, managed []sarama.PartitionOffsetManager, closing func()) {
	manager, err := sarama.NewOffsetManagerFromClient(group, newClient(t, config))
	t.NoError(err, "new offset manager")
	for _, partition := range partitions {
		each, err := manager.ManagePartition(topic, partition)
		t.NoError(err, "manage partition")
		managed = append(managed, each)
	}
	return manager, managed, func() {
		for _, each := range managed {
			each.AsyncClose()
		}
		t.NoError(manager.Close(), "close offset manager")
		for _, each := range managed {
			t.NoError(each.Close(), "close partition offset manager")
		}
	}
}

func manualCommit() *sarama.Config {
	config := newConfig(newestVersion)
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func wantNext(t *T, managed sarama.PartitionOffsetManager, offset int64, metadata string) {
	gotOffset, gotMetadata := managed.NextOffset()
	harness.Equal(t, gotOffset, offset, "next offset")
	harness.Equal(t, gotMetadata, metadata, "metadata")
}

func checkOffsetManager(t *T) {
	topic, group, config := newTopic(t, "topic", 1), t.Unique("group"), manualCommit()
	manager, managed, closing := manage(t, config, group, topic, 0)
	managed[0].MarkOffset(10, "ten")
	manager.Commit()
	managed[0].MarkOffset(20, "marked but not committed")
	closing()

	manager, managed, closing = manage(t, config, group, topic, 0)
	wantNext(t, managed[0], 10, "ten")
	// Marking never goes back.
	managed[0].MarkOffset(5, "five")
	wantNext(t, managed[0], 10, "ten")
	managed[0].MarkOffset(30, "thirty")
	manager.Commit()
	closing()

	_, managed, closing = manage(t, config, group, topic, 0)
	wantNext(t, managed[0], 30, "thirty")
	closing()
}

func checkOffsetAutoCommit(t *T) {
	topic, group, config := newTopic(t, "topic", 1), t.Unique("group"), newConfig(newestVersion)
	config.Consumer.Offsets.AutoCommit.Interval = 50 * time.Millisecond
	_, managed, closing := manage(t, config, group, topic, 0)
	managed[0].MarkOffset(12, "by timer")
	admin := newAdmin(t, config)
	t.Eventually("the offset is committed", func() bool {
		return committed(t, admin, group, topic, 0) == 12
	})
	managed[0].MarkOffset(13, "by close")
	closing()
	harness.Equal(t, committed(t, admin, group, topic, 0), 13, "offset committed by close")
}

func checkOffsetReset(t *T) {
	topic, group, config := newTopic(t, "topic", 1), t.Unique("group"), manualCommit()
	manager, managed, closing := manage(t, config, group, topic, 0)
	managed[0].MarkOffset(100, "")
	manager.Commit()
	managed[0].ResetOffset(40, "back")
	manager.Commit()
	closing()
	_, managed, closing = manage(t, config, group, topic, 0)
	wantNext(t, managed[0], 40, "back")
	closing()
}

func checkOffsetInitial(t *T) {
	topic := newTopic(t, "topic", 1)
	for _, initial := range []int64{sarama.OffsetOldest, sarama.OffsetNewest} {
		config := manualCommit()
		config.Consumer.Offsets.Initial = initial
		_, managed, closing := manage(t, config, t.Unique("group"), topic, 0)
		wantNext(t, managed[0], initial, "")
		closing()
	}
}

func checkOffsetPartitions(t *T) {
	const partitions = 12
	topic, group, config := newTopic(t, "topic", partitions), t.Unique("group"), manualCommit()
	var all []int32
	for partition := range int32(partitions) {
		all = append(all, partition)
	}
	manager, managed, closing := manage(t, config, group, topic, all...)
	for i, each := range managed {
		each.MarkOffset(int64(i)*1000, strings.Repeat("m", i))
	}
	manager.Commit()
	closing()
	_, managed, closing = manage(t, config, group, topic, all...)
	// Marking offset 0 is no move from the initial offset, hence partition 0 is left out.
	for i, each := range managed[1:] {
		wantNext(t, each, int64(i+1)*1000, strings.Repeat("m", i+1))
	}
	closing()
}

func checkOffsetMetadata(t *T) {
	topic, group, config := newTopic(t, "topic", 1), t.Unique("group"), manualCommit()
	manager, managed, _ := manage(t, config, group, topic, 0)
	managed[0].MarkOffset(1, strings.Repeat("x", 5000))
	go manager.Commit()
	select {
	case failure := <-managed[0].Errors():
		wantError(t, failure.Err, sarama.ErrOffsetMetadataTooLarge, "commit")
	case <-t.Done():
		t.Fatalf("no error for metadata of 5000 bytes")
	}
}
