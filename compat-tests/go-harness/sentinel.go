package harness

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Sentinel watches over the order of each key in keyed delivery. All consumers of a group tell it what
// they begin and end. Per key, records are numbered from 0 on; at most one may be in work at a time,
// and none may be begun before the one in front of it is done. A record that comes again is counted:
// whoever provokes a failure decides how many are right.
type Sentinel struct {
	mutex   sync.Mutex
	inWork  map[string]string
	next    map[string]int
	faults  []string
	handled int
	// Records that came again after they were done.
	repeated []repetition
	done     map[KeyedRecord]doing
	members  map[string]*watched
}

// doing is who was done with a record, and when.
type doing struct {
	who  string
	when time.Time
}

// repetition is a record that was done twice.
type repetition struct {
	record       KeyedRecord
	first, again doing
}

func (d doing) String() string { return fmt.Sprintf("%s at %s", d.who, d.when.Format("05.000")) }

func (r repetition) String() string {
	return fmt.Sprintf("%s-%d: %s, then %s", r.record.Key, r.record.Number, r.first, r.again)
}

// watched is what one member did.
type watched struct {
	handled int
	last    time.Time
	pause   time.Duration
}

// NewSentinel returns a sentinel that has seen nothing.
func NewSentinel() *Sentinel {
	return &Sentinel{
		inWork: map[string]string{}, done: map[KeyedRecord]doing{},
		next: map[string]int{}, members: map[string]*watched{},
	}
}

func (s *Sentinel) member(who string) *watched {
	if s.members[who] == nil {
		s.members[who] = &watched{last: time.Now()}
	}
	return s.members[who]
}

// Begin notes that who begins with a record.
func (s *Sentinel) Begin(who, key string, number int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if other, busy := s.inWork[key]; busy {
		s.faults = append(s.faults, fmt.Sprintf("%s/%d at %s and at %s", key, number, who, other))
	}
	if next := s.next[key]; number > next {
		s.faults = append(s.faults, fmt.Sprintf("%s/%d before %s/%d at %s", key, number, key, next, who))
	}
	s.inWork[key] = who
	member, now := s.member(who), time.Now()
	member.pause = max(member.pause, now.Sub(member.last))
	member.last = now
}

// End notes that who is done with a record.
func (s *Sentinel) End(who, key string, number int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.inWork, key)
	s.member(who).handled++
	record, now := KeyedRecord{key, number}, doing{who, time.Now()}
	if number < s.next[key] {
		s.repeated = append(s.repeated, repetition{record, s.done[record], now})
		return
	}
	s.done[record] = now
	s.next[key] = number + 1
	s.handled++
}

// Drop forgets what who has in work: it was killed. It returns how many records that were.
func (s *Sentinel) Drop(who string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	count := 0
	for key, owner := range s.inWork {
		if owner == who {
			delete(s.inWork, key)
			count++
		}
	}
	return count
}

// Handled returns how many different records are done, Repeated how many came again after that.
func (s *Sentinel) Handled() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.handled
}

// Repeated returns how many records came again after they were done.
func (s *Sentinel) Repeated() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.repeated)
}

// By returns how many records a member has handled, those that came again included.
func (s *Sentinel) By(who string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.member(who).handled
}

// Next returns the number of the record of a key that is to come next.
func (s *Sentinel) Next(key string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.next[key]
}

// InWork returns who works on a record of the key, empty if nobody does.
func (s *Sentinel) InWork(key string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.inWork[key]
}

// Behind returns how many of the keys have not come to record number count.
func (s *Sentinel) Behind(keys []string, count int) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	behind := 0
	for _, key := range keys {
		if s.next[key] < count {
			behind++
		}
	}
	return behind
}

// StartPauses begins to measure the longest pause of each member.
func (s *Sentinel) StartPauses() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, member := range s.members {
		member.last, member.pause = time.Now(), 0
	}
}

// LongestPause returns the longest time in which a member began no record, up to now.
func (s *Sentinel) LongestPause(who string) time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	member := s.member(who)
	return max(member.pause, time.Since(member.last))
}

// Await waits until count different records are done.
func (s *Sentinel) Await(t *T, count int) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for s.Handled() < count {
		select {
		case <-ticker.C:
		case <-t.Done():
			t.Fatalf("timed out with %d of %d records handled; %s", s.Handled(), count, s.trouble())
		}
	}
}

func (s *Sentinel) trouble() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return strings.Join(s.faults[:min(len(s.faults), 5)], "; ")
}

// InOrder ends the check unless the order of every key was kept.
func (s *Sentinel) InOrder(t *T) {
	if trouble := s.trouble(); trouble != "" {
		t.Fatalf("%d faults: %s", len(s.faults), trouble)
	}
}

// Once ends the check unless count records were handled in order, none of them again.
func (s *Sentinel) Once(t *T, count int) { s.OnceBut(t, count, "") }

// OnceBut is as Once, but what who did may have come again, to who alone.
func (s *Sentinel) OnceBut(t *T, count int, who string) {
	s.InOrder(t)
	Equal(t, s.Handled(), count, "records handled")
	s.mutex.Lock()
	defer s.mutex.Unlock()
	wrong := slices.DeleteFunc(slices.Clone(s.repeated), func(each repetition) bool {
		return each.first.who == who && each.again.who == who
	})
	if len(wrong) > 0 {
		t.Fatalf("%d records came again: %v", len(wrong), wrong[:min(len(wrong), 5)])
	}
	if len(s.repeated) > 0 {
		t.Notef("%d records came again to %s", len(s.repeated), who)
	}
}
