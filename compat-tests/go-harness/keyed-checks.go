package harness

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// laneOffsets is where the offsets of lanes begin; those of the log stay below.
const laneOffsets = 1 << 44

// KeyedChecks are the checks of keyed delivery with one client. Apache Kafka has no keyed delivery, and
// a Keylane of unknown settings may not have it for topics of these names.
func KeyedChecks(client Keyed) []Check {
	runMemberProcess(client)
	if os.Getenv("COMPAT_BROKER") != "keylane" {
		fmt.Println("the checks of keyed delivery are left out: COMPAT_BROKER is not keylane")
		return nil
	}
	check := func(name string, run func(t *T, client Keyed)) Check {
		return Check{Name: "keyed/" + name, Run: func(t *T) { run(t, client) }}
	}
	if LeaderPID() > 0 {
		// It ends a broker, so it is for itself.
		return []Check{check("the-leader-is-killed", checkKeyedFailover)}
	}
	// The longest ones first, so that none of them is left alone at the end.
	checks := []Check{
		check("kill-9-of-a-consumer", checkKeyedKill),
		check("long-handler-while-others-come-and-go", checkKeyedLongHandler),
		check("slow-record-delays-its-own-key-only", checkKeyedSlow),
		check("rolling-restart", checkKeyedRolling),
		check("each-record-once", checkKeyedOnce),
		check("commit-and-resume", checkKeyedResume),
		check("lag-is-what-is-unfinished", checkKeyedLag),
	}
	if Nodes() > 1 {
		// It is about the client, which finds ways around a proxy in front of one node.
		fmt.Println("the check with a proxy is left out: there are several nodes")
		return checks
	}
	return append(checks, check("commits-and-fetches-beside-a-handler", checkKeyedHabits))
}

func atOnce(KeyedDelivery) {}

func takes(pace time.Duration) func(KeyedDelivery) {
	return func(KeyedDelivery) { time.Sleep(pace) }
}

func commitEach(member *KeyedMember) { member.CommitEach = true }

// allWork waits until every member has handled records that come in slowly.
func (g *keyedGroup) allWork(names ...string) {
	g.t.Eventually("all members work", func() bool {
		for _, name := range names {
			if g.sentinel.By(name) <= 10 {
				return false
			}
		}
		return true
	})
}

func checkKeyedOnce(t *T, client Keyed) {
	g := newKeyedGroup(t, client, 6)
	keys := keyedNames(500)
	g.send(keyedRounds(keys, 0, 10))
	names := []string{"a", "b", "c"}
	for _, name := range names {
		g.join(name, func(record KeyedDelivery) {
			// Otherwise the group reads the log, and most of the other checks would pass as well.
			if record.Offset < laneOffsets {
				t.Errorf("offset %d is not one of a lane", record.Offset)
			}
		})
	}
	later := sameKeys(keys)
	stop := g.flow(50*time.Millisecond, func(round int) []KeyedRecord { return later(round + 10) })
	g.allWork(names...)
	g.sentinel.Await(t, 10_000)
	sent := stop() + 5_000
	g.sentinel.Await(t, sent)
	g.finished()
	g.sentinel.Once(t, sent)
}

// checkKeyedSlow lets one record take five seconds while others arrive, or until they are done.
func checkKeyedSlow(t *T, client Keyed) {
	g := newKeyedGroup(t, client, 6)
	gate := make(chan struct{})
	handle := func(record KeyedDelivery) {
		if record.Key == "slow" && record.Number == 0 {
			<-gate
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		g.join(name, handle)
	}
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	// All three take part before it begins.
	stop := g.flow(50*time.Millisecond, sameKeys(keyedNames(60)))
	g.allWork("a", "b", "c")
	sent := stop()
	g.sentinel.Await(t, sent)
	g.finished()

	g.send([]KeyedRecord{{"slow", 0}})
	t.Eventually("the slow record is in work", func() bool { return g.sentinel.InWork("slow") != "" })
	start := time.Now()
	keys := make([]string, 1_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("other-%d", i)
	}
	for number := 1; number <= 50; number++ {
		g.send([]KeyedRecord{{"slow", number}})
	}
	g.send(keyedRounds(keys, 0, 3))
	t.Eventually("all keys are through but those in the same hand", func() bool {
		return g.sentinel.Behind(keys, 3) <= client.InHandMax
	})
	took := time.Since(start)
	t.Notef("the other keys took %s", took.Round(time.Millisecond))
	// As long as a consumer of many a system is given up after.
	select {
	case <-time.After(5*time.Second - took):
	case <-t.Done():
	}
	Equal(t, g.sentinel.Next("slow"), 0, "next record of the slow key")
	behind := g.sentinel.Behind(keys, 3)
	t.Notef("%d keys wait in the hand of the slow consumer", behind)
	open()
	sent += 3_051
	g.sentinel.Await(t, sent)
	g.finished()
	g.sentinel.Once(t, sent)
}

func checkKeyedRolling(t *T, client Keyed) {
	g := newKeyedGroup(t, client, 6)
	for _, name := range []string{"a1", "b1", "c1"} {
		g.join(name, takes(time.Millisecond), commitEach)
	}
	same, fresh := sameKeys(keyedNames(50)), newKeys(10)
	// What a client dropped when it rejoined comes back to it when it comes back for more, so there has
	// to be something of other keys as well.
	stop := g.flow(100*time.Millisecond, func(round int) []KeyedRecord {
		return slices.Concat(same(round), fresh(round))
	})
	g.sentinel.Await(t, 300)
	for _, name := range []string{"a", "b", "c"} {
		g.leaves[name+"1"]()
		g.join(name+"2", takes(time.Millisecond), commitEach)
		g.sentinel.Await(t, g.sentinel.Handled()+300)
	}
	sent := stop()
	g.sentinel.Await(t, sent)
	g.finished()
	g.sentinel.Once(t, sent)
}

// checkKeyedKill kills a consumer: its keys go on when its session is over, and at most what it had
// handled and not yet committed comes again.
func checkKeyedKill(t *T, client Keyed) {
	const session = 6 * time.Second
	g := newKeyedGroup(t, client, 6)
	kill := g.joinProcess("victim", 20*time.Millisecond, session)
	for _, name := range []string{"b", "c"} {
		g.join(name, takes(time.Millisecond), func(member *KeyedMember) {
			member.SessionTimeout = session
		})
	}
	stop := g.flow(100*time.Millisecond, sameKeys(keyedNames(50)))
	t.Eventually("the victim has handled some", func() bool { return g.sentinel.By("victim") > 30 })
	kill()
	inWork := g.sentinel.Drop("victim")
	t.Notef("the victim had %d records in work", inWork)
	g.sentinel.Await(t, g.sentinel.Handled()+500)
	sent := stop()
	g.sentinel.Await(t, sent)
	g.finished()
	g.sentinel.InOrder(t)
	Equal(t, g.sentinel.Handled(), sent, "records handled")
	repeated := g.sentinel.Repeated()
	t.True(repeated <= 300, "%d records came again", repeated)
}

func checkKeyedResume(t *T, client Keyed) {
	g := newKeyedGroup(t, client, 6)
	keys := keyedNames(30)
	g.send(keyedRounds(keys, 0, 10))
	g.join("first", takes(5*time.Millisecond), commitEach)
	g.sentinel.Await(t, 50)
	g.leaves["first"]()
	handled := g.sentinel.Handled()
	t.True(handled < 300, "it did not leave in the middle")
	Equal(t, g.lag(), 300-handled, "lag")
	g.send(keyedRounds(keys, 10, 12))
	g.join("second", atOnce, commitEach)
	g.sentinel.Await(t, 360)
	g.finished()
	g.sentinel.Once(t, 360)
}

// checkKeyedLag leaves holes all over the partitions: every second key stops at its fourth record.
func checkKeyedLag(t *T, client Keyed) {
	g := newKeyedGroup(t, client, 6)
	keys := keyedNames(20)
	held := map[string]bool{}
	for i := 0; i < len(keys); i += 2 {
		held[keys[i]] = true
	}
	gate := make(chan struct{})
	var stopped atomic.Int32
	handle := func(record KeyedDelivery) {
		if held[record.Key] && record.Number == 3 {
			stopped.Add(1)
			<-gate
		}
	}
	g.send(keyedRounds(keys, 0, 10))
	for _, name := range []string{"a", "b", "c"} {
		g.join(name, handle, commitEach)
	}
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	lag := 0
	t.Eventually("the lag agrees with what was handled", func() bool {
		handled := g.sentinel.Handled()
		lag = g.lag()
		return stopped.Load() > 0 && g.sentinel.Handled() == handled && lag == 200-handled
	})
	t.True(lag >= 10 && lag < 200, "the lag is %d", lag)
	open()
	g.sentinel.Await(t, 200)
	g.finished()
	g.sentinel.Once(t, 200)
}

// checkKeyedLongHandler keeps one member in a handler for longer than its session while another one
// joins and a third leaves: nobody else pauses, and nobody else gets the record.
//
// Promised is no more than that. If the lane of the record goes to somebody else and the client rejoins
// beside the handler, the broker cannot tell whether the record is in the handler or was dropped. It
// stays with its member, which is given it again when it has waited with nothing else in hand for one
// session, and that is over before this handler is.
func checkKeyedLongHandler(t *T, client Keyed) {
	const long = 12 * time.Second
	g := newKeyedGroup(t, client, 6)
	var begun atomic.Bool
	handle := func(record KeyedDelivery) {
		if record.Key == "long" && record.Number == 0 && begun.CompareAndSwap(false, true) {
			time.Sleep(long)
		}
	}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		g.join(name, handle)
	}
	// Keys that are new all the time, because a key that the busy member has in hand waits with it.
	stop := g.flow(50*time.Millisecond, newKeys(30))
	g.allWork(names...)
	g.send([]KeyedRecord{{"long", 0}, {"long", 1}})
	t.Eventually("the long one is in work", func() bool { return g.sentinel.InWork("long") != "" })
	busy := g.sentinel.InWork("long")
	var stays, leaves string
	for _, name := range names {
		switch {
		case name == busy:
		case stays == "":
			stays = name
		default:
			leaves = name
		}
	}
	g.sentinel.StartPauses()
	g.join("guest", handle)
	t.Eventually("the guest has work", func() bool { return g.sentinel.By("guest") > 20 })
	g.leaves[leaves]()
	t.Eventually("the long one is done", func() bool {
		for _, name := range []string{stays, "guest"} {
			if pause := g.sentinel.LongestPause(name); pause >= 3*time.Second {
				t.Fatalf("%s had nothing for %s", name, pause)
			}
		}
		return g.sentinel.Next("long") > 0
	})
	sent := stop() + 2
	g.sentinel.Await(t, sent)
	g.finished()
	mayRepeat := ""
	if client.RejoinsInWork {
		mayRepeat = busy
	}
	g.sentinel.OnceBut(t, sent, mayRepeat)
}

// checkKeyedHabits looks at what the client sends while a record is being handled; the broker's view of
// what a client has in hand is built on it. One record per answer: the second one is sent when the
// first is in work.
func checkKeyedHabits(t *T, client Keyed) {
	g := newKeyedGroup(t, client, 1)
	proxy := StartProxy(t)
	places := make(chan KeyedDelivery, 10)
	gate := make(chan struct{})
	g.join("a", func(record KeyedDelivery) {
		places <- record
		if record.Key == "slow" {
			<-gate
		}
	}, func(member *KeyedMember) {
		member.Bootstrap, member.OwnCommits = proxy.Address, true
	})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	g.send([]KeyedRecord{{"first", 0}})
	g.sentinel.Await(t, 1)
	<-places
	g.finished()

	// Some clients commit before they hand a record over.
	start := time.Now()
	g.send([]KeyedRecord{{"slow", 0}})
	slow := <-places
	g.send([]KeyedRecord{{"behind", 0}})
	// Intervals of commits and long polls pass several times over.
	time.Sleep(2 * time.Second)
	asked := proxy.Between(start, time.Now())
	open()
	g.sentinel.Await(t, 3)
	behind := <-places
	g.finished()
	g.sentinel.Once(t, 3)

	commits, fetches := false, false
	for _, each := range asked {
		t.Notef("commit %t, partition %d, offset %d", each.IsCommit, each.Partition, each.Offset)
		if each.Partition != slow.Partition {
			continue
		}
		if each.IsCommit {
			commits = commits || each.Offset > slow.Offset
		} else {
			fetches = fetches || each.Offset > behind.Offset
		}
	}
	Equal(t, commits, client.CommitsInWork, "a commit covers the record in work")
	Equal(t, fetches, client.FetchesBehind, "a fetch comes behind an answer not handed out")
}

// checkKeyedFailover kills the node that leads: producers and consumers go on with another one, and
// nothing is lost or out of order, nor handled twice by a client that keeps what it could not commit.
func checkKeyedFailover(t *T, client Keyed) {
	g := newKeyedGroup(t, client, 6)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		g.join(name, takes(time.Millisecond))
	}
	keys := keyedNames(30)
	stop := g.flow(20*time.Millisecond, sameKeys(keys))
	g.allWork(names...)
	g.sentinel.StartPauses()
	t.NoError(syscall.Kill(LeaderPID(), syscall.SIGKILL), "kill the leader")
	handled := g.sentinel.Handled()
	t.Eventually("all work again", func() bool {
		for _, name := range names {
			if g.sentinel.LongestPause(name) > 30*time.Second {
				t.Fatalf("%s has nothing to do", name)
			}
		}
		return g.sentinel.Handled() > handled+3000
	})
	for _, name := range names {
		t.Notef("%s had nothing for %s", name, g.sentinel.LongestPause(name).Round(time.Millisecond))
	}
	sent := stop()
	g.sentinel.Await(t, sent)
	g.finished()
	if !client.ForgetsAtFailover {
		g.sentinel.Once(t, sent)
	}
	g.sentinel.InOrder(t)
	Equal(t, g.sentinel.Handled(), sent, "records handled")
	t.Notef("%d records came again", g.sentinel.Repeated())
}
