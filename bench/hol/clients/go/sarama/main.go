// Consumers with sarama and its defaults, but for what an application has to say: handled records
// are marked, and what is marked is committed every second, in the background.
package main

import (
	"context"
	"errors"
	"log"

	"github.com/IBM/sarama"

	"keylane.bench/consumers/program"
)

func main() {
	program.Run(open)
}

func open(settings program.Settings, member *program.Member) (leave func()) {
	config := sarama.NewConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	group, err := sarama.NewConsumerGroup([]string{settings.Bootstrap}, settings.Group, config)
	if err != nil {
		log.Fatal(err)
	}
	stop := program.Repeat(func(ctx context.Context) {
		err := group.Consume(ctx, []string{settings.Topic}, &handler{settings.Topic, member})
		if err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
			log.Printf("consume: %v", err)
		}
	})
	return func() {
		stop()
		if err := group.Close(); err != nil {
			log.Printf("close: %v", err)
		}
	}
}

type handler struct {
	topic  string
	member *program.Member
}

func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	h.member.Assigned(len(session.Claims()[h.topic]))
	return nil
}

func (h *handler) Cleanup(sarama.ConsumerGroupSession) error {
	h.member.Assigned(0)
	return nil
}

func (h *handler) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			h.member.Handle(message.Value, message.Partition, message.Offset)
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}
