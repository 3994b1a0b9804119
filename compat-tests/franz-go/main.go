// Command franz-go checks a broker with the Go client github.com/twmb/franz-go.
package main

import (
	"slices"

	"keylane.test/harness"
)

func main() {
	harness.Main(slices.Concat(
		produceChecks(),
		idempotenceChecks(),
		consumeChecks(),
		sessionChecks(),
		groupChecks(),
		memberChecks(),
		adminChecks(),
		adminGroupChecks(),
		versionChecks(),
		harness.KeyedChecks(keyedClient),
	))
}
