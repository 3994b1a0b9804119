package harness

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"
)

// Ledger counts the deliveries of records across all members of a group.
type Ledger struct {
	mutex  sync.Mutex
	counts map[string]int
	owners map[string][]string
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{counts: map[string]int{}, owners: map[string][]string{}}
}

// Note counts one delivery of the record id to member.
func (l *Ledger) Note(member, id string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.counts[id]++
	l.owners[id] = append(l.owners[id], member)
}

// Distinct returns how many different records were delivered.
func (l *Ledger) Distinct() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.counts)
}

// By returns how many deliveries a member had.
func (l *Ledger) By(member string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	count := 0
	for _, owners := range l.owners {
		for _, owner := range owners {
			if owner == member {
				count++
			}
		}
	}
	return count
}

// Await waits until count different records were delivered.
func (l *Ledger) Await(t *T, count int) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for l.Distinct() < count {
		select {
		case <-ticker.C:
		case <-t.Done():
			t.Fatalf("timed out with %d of %d records delivered", l.Distinct(), count)
		}
	}
}

// QuietFor checks that nothing new is delivered for a while: that something does not happen cannot be
// awaited otherwise.
func (l *Ledger) QuietFor(t *T, wait time.Duration) {
	before := l.Distinct()
	select {
	case <-time.After(wait):
	case <-t.Done():
	}
	Equal(t, l.Distinct(), before, "records delivered while none was to come")
}

// ExactlyOnce ends the check unless exactly count records were delivered, each of them once.
func (l *Ledger) ExactlyOnce(t *T, count int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var repeated []string
	for id, times := range l.counts {
		if times > 1 {
			repeated = append(repeated, fmt.Sprintf("%s by %s", id, strings.Join(l.owners[id], ", ")))
		}
	}
	sort.Strings(repeated)
	if len(repeated) > 0 {
		t.Fatalf("%d records delivered more than once, among them %s", len(repeated), repeated[0])
	}
	if len(l.counts) != count {
		t.Fatalf("%d records delivered, want %d", len(l.counts), count)
	}
}

// Assignments follows which member holds which partitions, as the members themselves see it.
type Assignments struct {
	mutex   sync.Mutex
	held    map[string]map[string]bool
	changes map[string]int
}

// NewAssignments returns a table in which nobody holds anything.
func NewAssignments() *Assignments {
	return &Assignments{held: map[string]map[string]bool{}, changes: map[string]int{}}
}

// Gain adds partitions to what member holds.
func (a *Assignments) Gain(member string, partitions ...string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.held[member] == nil {
		a.held[member] = map[string]bool{}
	}
	a.changes[member]++
	for _, partition := range partitions {
		a.held[member][partition] = true
	}
}

// Lose takes partitions from what member holds.
func (a *Assignments) Lose(member string, partitions ...string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.changes[member]++
	for _, partition := range partitions {
		delete(a.held[member], partition)
	}
}

// Replace sets all that member holds.
func (a *Assignments) Replace(member string, partitions ...string) {
	a.mutex.Lock()
	a.held[member] = nil
	a.mutex.Unlock()
	a.Gain(member, partitions...)
}

// Changes returns how often what member holds was told to it.
func (a *Assignments) Changes(member string) int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.changes[member]
}

// Held returns the sorted partitions of member.
func (a *Assignments) Held(member string) []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	partitions := make([]string, 0, len(a.held[member]))
	for partition := range a.held[member] {
		partitions = append(partitions, partition)
	}
	sort.Strings(partitions)
	return partitions
}

// Balanced tells whether exactly the given members hold all count partitions, each partition once and
// each member within one of a fair share.
func (a *Assignments) Balanced(count int, members ...string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	total := 0
	for _, held := range a.held {
		total += len(held)
	}
	if total != count {
		return false
	}
	seen := map[string]bool{}
	for _, member := range members {
		held := a.held[member]
		if len(held) < count/len(members) || len(held) > (count+len(members)-1)/len(members) {
			return false
		}
		for partition := range held {
			seen[partition] = true
		}
	}
	return len(seen) == count
}

// AwaitBalanced waits until Balanced holds.
func (a *Assignments) AwaitBalanced(t *T, count int, members ...string) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !a.Balanced(count, members...) {
		select {
		case <-ticker.C:
		case <-t.Done():
			t.Fatalf("timed out: %d partitions not balanced over %v: %v", count, members, a.snapshot())
		}
	}
}

func (a *Assignments) snapshot() map[string]int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	held := map[string]int{}
	for member, partitions := range a.held {
		held[member] = len(partitions)
	}
	return held
}
