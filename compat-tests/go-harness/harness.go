// Package harness runs the checks of a compat suite against one broker and reports them.
//
// It is a plain program's frame and not `go test`, because a suite is built once and then pointed at
// any broker. Checks run side by side (they mostly wait for the broker), each with its own deadline,
// its own topics and its own groups; nothing of one check may depend on another.
package harness

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// CheckTimeout bounds one check; no check needs a tenth of it on an idle broker.
const CheckTimeout = 60 * time.Second

// Check is one named statement about the broker.
type Check struct {
	Name string
	Run  func(t *T)
}

// T is what a running check sees: its context, the broker and the ways to fail.
type T struct {
	context.Context
	Bootstrap string

	name     string
	runID    string
	mutex    sync.Mutex
	failure  string
	notes    []string
	cleanups []func()
}

// Unique returns a name for a topic or a group that no other check and no other run uses.
func (t *T) Unique(part string) string {
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.name)
	return fmt.Sprintf("%s-%s-%s", name, part, t.runID)
}

// Cleanup registers fn to run after the check, last registered first.
func (t *T) Cleanup(fn func()) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.cleanups = append(t.cleanups, fn)
}

// Notef keeps a line that is printed only when the check fails.
func (t *T) Notef(format string, args ...any) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// Errorf marks the check as failed and goes on; it may be called from any goroutine.
func (t *T) Errorf(format string, args ...any) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.failure == "" {
		t.failure = fmt.Sprintf(format, args...)
	}
}

// Fatalf marks the check as failed and ends it; only the goroutine of the check may call it.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// NoError ends the check when err is set.
func (t *T) NoError(err error, what string) {
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// True ends the check when the condition does not hold.
func (t *T) True(condition bool, format string, args ...any) {
	if !condition {
		t.Fatalf(format, args...)
	}
}

// Equal ends the check when got differs from want.
func Equal[V comparable](t *T, got, want V, what string) {
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// Eventually waits until the condition holds. It polls, for conditions that only the broker can tell.
func (t *T) Eventually(what string, condition func() bool) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-t.Done():
			t.Fatalf("timed out waiting: %s", what)
		}
	}
}

// Option changes how Main runs.
type Option func(*settings)

type settings struct {
	ready func(t *T)
}

// ReadyWhen makes Main run fn before all checks. It awaits what a fresh broker needs a moment for and
// a client does not wait for itself.
func ReadyWhen(fn func(t *T)) Option {
	return func(s *settings) { s.ready = fn }
}

// Main runs the checks and ends the process. Arguments: BOOTSTRAP [REGEX].
func Main(checks []Check, options ...Option) {
	var chosen settings
	for _, apply := range options {
		apply(&chosen)
	}
	parallel := flag.Int("parallel", 4, "checks that run at the same time")
	list := flag.Bool("list", false, "print the names of the checks and end")
	flag.Parse()
	if *list {
		for _, check := range checks {
			fmt.Println(check.Name)
		}
		return
	}
	if flag.NArg() < 1 || flag.NArg() > 2 {
		fmt.Fprintln(os.Stderr, "usage: BOOTSTRAP [REGEX]")
		os.Exit(2)
	}
	pattern, err := regexp.Compile(flag.Arg(1))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	runID := newRunID()
	if chosen.ready != nil {
		ok, report := runOne(Check{Name: "ready", Run: chosen.ready}, flag.Arg(0), runID)
		if !ok {
			fmt.Printf("%s\n0 passed, 1 failed\n", report)
			os.Exit(1)
		}
	}
	passed, failed := runAll(selectChecks(checks, pattern), flag.Arg(0), runID, *parallel)
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

func selectChecks(checks []Check, pattern *regexp.Regexp) []Check {
	var selected []Check
	for _, check := range checks {
		if pattern.MatchString(check.Name) {
			selected = append(selected, check)
		}
	}
	return selected
}

// newRunID returns what makes the names of this run differ from those of all others.
func newRunID() string {
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		panic(err)
	}
	return hex.EncodeToString(random)
}

func runAll(checks []Check, bootstrap, runID string, parallel int) (passed, failed int) {
	queue := make(chan Check)
	var workers sync.WaitGroup
	var mutex sync.Mutex
	for range max(parallel, 1) {
		workers.Go(func() {
			for check := range queue {
				ok, report := runOne(check, bootstrap, runID)
				mutex.Lock()
				fmt.Println(report)
				if ok {
					passed++
				} else {
					failed++
				}
				mutex.Unlock()
			}
		})
	}
	for _, check := range checks {
		queue <- check
	}
	close(queue)
	workers.Wait()
	return passed, failed
}

func runOne(check Check, bootstrap, runID string) (bool, string) {
	ctx, cancel := context.WithTimeout(context.Background(), CheckTimeout)
	defer cancel()
	t := &T{Context: ctx, Bootstrap: bootstrap, name: check.Name, runID: runID}
	start := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer t.runCleanups()
		defer t.recoverPanic()
		check.Run(t)
	}()
	// A client that ignores the context may never return: the check is then given up on.
	select {
	case <-ended:
	case <-time.After(CheckTimeout + 10*time.Second):
		t.Errorf("did not end within %s of its deadline", 10*time.Second)
		t.Notef("%s", ownStacks())
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	seconds := time.Since(start).Seconds()
	if t.failure == "" {
		return true, fmt.Sprintf("ok %s (%.2fs)", check.Name, seconds)
	}
	lines := []string{fmt.Sprintf("not ok %s (%.2fs): %s", check.Name, seconds, t.failure)}
	for _, note := range t.notes {
		lines = append(lines, "  "+strings.ReplaceAll(note, "\n", "\n  "))
	}
	return false, strings.Join(lines, "\n")
}

// ownStacks returns the stacks of the goroutines that are in code of the suite; those of the clients
// are many and say little.
func ownStacks() string {
	all := make([]byte, 4<<20)
	all = all[:runtime.Stack(all, true)]
	var own []string
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		if strings.Contains(stack, "\nmain.") {
			own = append(own, stack)
		}
	}
	return strings.Join(own, "\n\n")
}

func (t *T) recoverPanic() {
	if reason := recover(); reason != nil {
		t.Errorf("panic: %v", reason)
		t.Notef("%s", debug.Stack())
	}
}

func (t *T) runCleanups() {
	for {
		t.mutex.Lock()
		count := len(t.cleanups)
		if count == 0 {
			t.mutex.Unlock()
			return
		}
		fn := t.cleanups[count-1]
		t.cleanups = t.cleanups[:count-1]
		t.mutex.Unlock()
		fn()
	}
}

// Compacts tells whether the broker under test has compacted topics. Keylane refuses them by name
// until it has them.
func Compacts() bool {
	return os.Getenv("COMPAT_BROKER") != "keylane"
}

// Nodes says of how many nodes the cluster is; each has a replica of every partition.
func Nodes() int {
	nodes, err := strconv.Atoi(os.Getenv("COMPAT_NODES"))
	if err != nil {
		return 1
	}
	return nodes
}

// Leader is where the node is that leads, for checks that write requests themselves.
func (t *T) Leader() string {
	if leader := os.Getenv("COMPAT_LEADER"); leader != "" {
		return leader
	}
	return t.Bootstrap
}

// LeaderPID is the process of the node that leads, where a check may kill it; 0 elsewhere.
func LeaderPID() int {
	pid, err := strconv.Atoi(os.Getenv("COMPAT_LEADER_PID"))
	if err != nil {
		return 0
	}
	return pid
}
