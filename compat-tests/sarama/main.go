// Command sarama checks a broker with the Go client github.com/IBM/sarama.
package main

import (
	"slices"

	"keylane.test/harness"
)

func main() {
	harness.Main(slices.Concat(
		produceChecks(),
		consumeChecks(),
		offsetChecks(),
		groupChecks(),
		adminChecks(),
		adminGroupChecks(),
		versionChecks(),
		harness.KeyedChecks(keyedClient),
	), harness.ReadyWhen(awaitCoordinators))
}
