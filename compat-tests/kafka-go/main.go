// Command kafka-go checks a broker with the Go client github.com/segmentio/kafka-go.
package main

import (
	"slices"

	"keylane.test/harness"
)

func main() {
	harness.Main(slices.Concat(
		writerChecks(),
		readerChecks(),
		readerGroupChecks(),
		consumerGroupChecks(),
		connChecks(),
		topicAPIChecks(),
		recordAPIChecks(),
		groupAPIChecks(),
		harness.KeyedChecks(keyedClient),
	), harness.ReadyWhen(awaitCoordinators))
}
