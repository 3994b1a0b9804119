// Consumers with franz-go and its defaults, but for what an application has to say: what it polled
// is committed every five seconds, in the background.
package main

import (
	"context"
	"errors"
	"log"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"keylane.bench/consumers/program"
)

func main() {
	program.Run(open)
}

func open(settings program.Settings, member *program.Member) (leave func()) {
	var assigned atomic.Int64
	change := func(sign int64) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			count := int64(len(partitions[settings.Topic]))
			member.Assigned(int(assigned.Add(sign * count)))
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(settings.Bootstrap),
		kgo.ConsumerGroup(settings.Group),
		kgo.ConsumeTopics(settings.Topic),
		kgo.OnPartitionsAssigned(change(1)),
		kgo.OnPartitionsRevoked(change(-1)),
		kgo.OnPartitionsLost(change(-1)),
	)
	if err != nil {
		log.Fatal(err)
	}
	stop := program.Repeat(func(ctx context.Context) {
		fetches := client.PollFetches(ctx)
		fetches.EachError(func(_ string, partition int32, err error) {
			if !errors.Is(err, context.Canceled) {
				log.Printf("fetch of partition %d: %v", partition, err)
			}
		})
		handle(ctx, fetches, member)
	})
	return func() {
		stop()
		client.Close()
	}
}

func handle(ctx context.Context, fetches kgo.Fetches, member *program.Member) {
	for each := fetches.RecordIter(); !each.Done() && ctx.Err() == nil; {
		record := each.Next()
		member.Handle(record.Value, record.Partition, record.Offset)
	}
}
