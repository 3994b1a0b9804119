package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Keyed is what a suite's client does in the checks of keyed delivery, in its own way.
type Keyed struct {
	// NewTopic makes a topic; its name begins with that of the check, so with "keyed-".
	NewTopic func(t *T, part string, partitions int, configs ...string) string
	// Send writes records in the given order and returns when they are acknowledged.
	Send func(t *T, topic string, records []KeyedRecord)
	// Join starts a consumer of a group; leave ends it gracefully, once.
	Join func(t *T, member KeyedMember) (leave func())
	// Lag adds up, over all partitions, log end minus committed offset, as a tool computes it; it is
	// -1 while the group is not known.
	Lag func(t *T, group, topic string, partitions int) int

	// CommitsInWork tells whether the client's own commits cover the record that is being handled.
	CommitsInWork bool
	// FetchesBehind tells whether the client fetches on behind an answer of which it has handed out
	// nothing, so that no fetch of it proves anything.
	FetchesBehind bool
	// RejoinsInWork tells whether the client rejoins while a handler runs, so that what it has in hand
	// may be handled, or dropped: nobody can tell.
	RejoinsInWork bool
	// ForgetsAtFailover tells whether the client joins anew when its coordinator is gone, and forgets
	// what it handled and could not commit: that comes again, as from Apache Kafka.
	ForgetsAtFailover bool
	// InHandMax bounds the keys that may wait for a consumer that is stuck in a handler for a key of
	// which it had nothing else in hand: those of the records that its client fetched ahead.
	InHandMax int
}

// KeyedRecord is one of the numbered records of a key.
type KeyedRecord struct {
	Key    string
	Number int
}

// KeyedDelivery is a record that a consumer hands to its handler.
type KeyedDelivery struct {
	KeyedRecord
	Partition int32
	Offset    int64
}

// KeyedMember describes a consumer.
type KeyedMember struct {
	Bootstrap      string
	Name           string
	Group          string
	Topic          string
	SessionTimeout time.Duration
	// CommitEach commits every record behind its handler, otherwise that may wait for the end of what
	// was polled at once.
	CommitEach bool
	// OwnCommits leaves commits to the client, at its default but for a shorter interval.
	OwnCommits bool
	Handle     func(KeyedDelivery)
}

// keyedGroup is a group in keyed delivery and all that happens in it.
type keyedGroup struct {
	t          *T
	client     Keyed
	group      string
	topic      string
	partitions int
	sentinel   *Sentinel
	leaves     map[string]func()
}

func newKeyedGroup(t *T, client Keyed, partitions int, configs ...string) *keyedGroup {
	return &keyedGroup{
		t: t, client: client, group: t.Unique("group"), partitions: partitions,
		topic:    client.NewTopic(t, "topic", partitions, configs...),
		sentinel: NewSentinel(), leaves: map[string]func(){},
	}
}

// join starts a member whose handler is watched.
func (g *keyedGroup) join(name string, handle func(KeyedDelivery), change ...func(*KeyedMember)) {
	member := KeyedMember{
		Bootstrap: g.t.Bootstrap, Name: name, Group: g.group, Topic: g.topic,
		SessionTimeout: 10 * time.Second,
		Handle: func(record KeyedDelivery) {
			g.sentinel.Begin(name, record.Key, record.Number)
			handle(record)
			g.sentinel.End(name, record.Key, record.Number)
		},
	}
	for _, apply := range change {
		apply(&member)
	}
	leave := sync.OnceFunc(g.client.Join(g.t, member))
	g.leaves[name] = leave
	g.t.Cleanup(leave)
}

func (g *keyedGroup) send(records []KeyedRecord) { g.client.Send(g.t, g.topic, records) }

func (g *keyedGroup) lag() int { return g.client.Lag(g.t, g.group, g.topic, g.partitions) }

// finished waits until everything is committed.
func (g *keyedGroup) finished() {
	lag := 0
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for lag = g.lag(); lag != 0; lag = g.lag() {
		select {
		case <-ticker.C:
		case <-g.t.Done():
			g.t.Fatalf("timed out with a lag of %d, %d records handled, %d again", lag,
				g.sentinel.Handled(), g.sentinel.Repeated())
		}
	}
}

// waitingMax is how many records of a flow may wait, for clients that commit each of them.
const waitingMax = 5_000

// flow sends the records of one round after the other until it is stopped, then it tells how many.
func (g *keyedGroup) flow(
	every time.Duration, recordsOf func(round int) []KeyedRecord,
) (stop func() int) {
	ctx, cancel := context.WithCancel(g.t)
	count, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for round := 0; ctx.Err() == nil; {
			if count-g.sentinel.Handled() < waitingMax {
				records := recordsOf(round)
				g.send(records)
				count += len(records)
				round++
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	stop = sync.OnceValue(func() int {
		cancel()
		<-ended
		return count
	})
	g.t.Cleanup(func() { stop() })
	return stop
}

// sameKeys are the records of rounds in which each key has one.
func sameKeys(keys []string) func(round int) []KeyedRecord {
	return func(round int) []KeyedRecord { return keyedRounds(keys, round, round+1) }
}

// newKeys are the records of rounds in which each record has a key of its own.
func newKeys(count int) func(round int) []KeyedRecord {
	return func(round int) []KeyedRecord {
		records := make([]KeyedRecord, count)
		for i := range records {
			records[i] = KeyedRecord{Key: fmt.Sprintf("new-%d-%d", round, i)}
		}
		return records
	}
}

// keyedNames makes count names of keys.
func keyedNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("key-%d", i)
	}
	return names
}

// keyedRounds makes the records [from, to) of every key, round by round.
func keyedRounds(keys []string, from, to int) []KeyedRecord {
	var records []KeyedRecord
	for number := from; number < to; number++ {
		for _, key := range keys {
			records = append(records, KeyedRecord{Key: key, Number: number})
		}
	}
	return records
}

const memberVariable = "COMPAT_KEYED_MEMBER"

// joinProcess starts a member in a process of its own, so that it can be killed. Each of its records
// takes as long as pace.
func (g *keyedGroup) joinProcess(name string, pace, session time.Duration) (kill func()) {
	self, err := os.Executable()
	g.t.NoError(err, "own program")
	command := exec.Command(self)
	place := []string{g.t.Bootstrap, name, g.group, g.topic, pace.String(), session.String()}
	command.Env = append(os.Environ(), memberVariable+"="+strings.Join(place, " "))
	command.Stderr = os.Stderr
	// The member ends when its standard input does: its parent may die without killing it.
	stdin, err := command.StdinPipe()
	g.t.NoError(err, "standard input")
	stdout, err := command.StdoutPipe()
	g.t.NoError(err, "standard output")
	g.t.NoError(command.Start(), "start of a member")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			g.noteLine(name, lines.Text())
		}
	}()
	kill = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		// All that it wrote before it died is read before its end is waited for.
		<-ended
		_ = command.Wait()
		_ = stdin.Close()
	})
	g.t.Cleanup(kill)
	return kill
}

func (g *keyedGroup) noteLine(name, line string) {
	var event, key string
	var number int
	if _, err := fmt.Sscanf(line, "%s %s %d", &event, &key, &number); err != nil {
		g.t.Notef("%s: %s", name, line)
		return
	}
	if event == "begin" {
		g.sentinel.Begin(name, key, number)
	} else {
		g.sentinel.End(name, key, number)
	}
}

// runMemberProcess is the life of a process that joinProcess started; it returns at once in any other.
func runMemberProcess(client Keyed) {
	place := strings.Fields(os.Getenv(memberVariable))
	if len(place) == 0 {
		return
	}
	pace, err := time.ParseDuration(place[4])
	if err != nil {
		panic(err)
	}
	session, err := time.ParseDuration(place[5])
	if err != nil {
		panic(err)
	}
	t := &T{Context: context.Background(), Bootstrap: place[0], name: place[1], runID: newRunID()}
	client.Join(t, KeyedMember{
		Bootstrap: place[0], Name: place[1], Group: place[2], Topic: place[3], SessionTimeout: session,
		Handle: func(record KeyedDelivery) {
			fmt.Println("begin " + record.Key + " " + strconv.Itoa(record.Number))
			time.Sleep(pace)
			fmt.Println("end " + record.Key + " " + strconv.Itoa(record.Number))
		},
	})
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
