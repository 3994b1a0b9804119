package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"keylane.test/harness"
)

// Clients of older releases send older requests; the same client capped at them does as well.
func versionChecks() []harness.Check {
	var checks []harness.Check
	for _, each := range []struct {
		name     string
		versions func() *kversion.Versions
	}{
		{"1.0", kversion.V1_0_0}, {"2.0", kversion.V2_0_0}, {"2.4", kversion.V2_4_0},
		{"2.8", kversion.V2_8_0}, {"3.3", kversion.V3_3_0}, {"3.7", kversion.V3_7_0},
		{"4.0", kversion.V4_0_0},
	} {
		checks = append(checks, harness.Check{
			Name: "versions/" + each.name,
			Run:  func(t *T) { checkVersions(t, each.versions) },
		})
	}
	return checks
}

func checkVersions(t *T, versions func() *kversion.Versions) {
	topic := newTopic(t, "topic", 4)
	old := kgo.MaxVersions(versions())
	producer := newClient(t, old)
	t.NoError(producer.ProduceSync(t, newRecords(topic, 100, "record")...).FirstErr(), "produce")
	consumeAll(t, topic, 100, old)

	g := newTeam(t, topic, old, kgo.Balancers(kgo.RangeBalancer()))
	g.join(t, "a")
	second := g.join(t, "b")
	g.assignments.AwaitBalanced(t, 4, "a", "b")
	g.ledger.Await(t, 100)
	second.leave()
	g.assignments.AwaitBalanced(t, 4, "a")
	t.NoError(producer.ProduceSync(t, newRecords(topic, 20, "later")...).FirstErr(), "produce")
	g.ledger.Await(t, 120)
	g.ledger.ExactlyOnce(t, 120)
	awaitCommitted(t, g.group, topic, 120)

	consumer := newClient(t, old, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(1)))
	consume(t, consumer, 120)
}
