// Package program is what the consumers in Go share. Serial consumers of one group, each a client
// of its own:
//
//	franz-go|sarama BOOTSTRAP TOPIC GROUP CONSUMERS PARTITIONS EVENTS_FILE
//
// A value is "SEQUENCE SERVICE_US"; handling it is to wait for so long. Standard output says "ready"
// when every consumer has its share of the partitions, and "handled N" as that goes up, after the
// file has the events: "SEQUENCE START_US END_US MEMBER PARTITION OFFSET". They leave the group when
// standard input ends.
//
// A value that begins with "-" is no work, and only counted, so that writing events is not what is
// measured: "- START_US END_US MEMBER COUNT" for what a member had since the line before.
package program

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const flushInterval = 100 * time.Millisecond

// Settings are what a consumer has to be told.
type Settings struct {
	Bootstrap, Topic, Group string
}

// Member is one consumer, as the program sees it.
type Member struct {
	number int
	// serial lets one handler run at a time, whatever a client starts beside each other.
	serial sync.Mutex
	// events guards all that is below.
	events      sync.Mutex
	lines       bytes.Buffer
	handled     int
	counted     int
	countedFrom int64
	assigned    int
}

// Open makes a consumer join the group; what it answers makes it leave.
type Open func(settings Settings, member *Member) (leave func())

// Repeat calls a step again and again, until it is stopped and the last step has ended.
func Repeat(step func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			step(ctx)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// Assigned is to be told how many partitions the member has now.
func (m *Member) Assigned(count int) {
	m.events.Lock()
	defer m.events.Unlock()
	m.assigned = count
}

// Handle does a record's work and notes it.
func (m *Member) Handle(value []byte, partition int32, offset int64) {
	m.serial.Lock()
	defer m.serial.Unlock()
	if len(value) > 0 && value[0] == '-' {
		m.count()
		return
	}
	start := nowUs()
	fields := bytes.Fields(value)
	if len(fields) < 2 {
		log.Fatalf("unknown value %s", value)
	}
	serviceUs, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		log.Fatalf("unknown value %s", value)
	}
	if serviceUs > 0 {
		time.Sleep(time.Duration(serviceUs) * time.Microsecond)
	}
	m.events.Lock()
	defer m.events.Unlock()
	fmt.Fprintln(&m.lines, string(fields[0]), start, nowUs(), m.number, partition, offset)
	m.handled++
}

func (m *Member) count() {
	m.events.Lock()
	defer m.events.Unlock()
	if m.counted == 0 {
		m.countedFrom = nowUs()
	}
	m.counted++
	m.handled++
}

// flush writes what there is and answers how many records the member has handled so far.
func (m *Member) flush(to io.Writer) int {
	m.events.Lock()
	defer m.events.Unlock()
	if m.counted > 0 {
		fmt.Fprintln(&m.lines, "-", m.countedFrom, nowUs(), m.number, m.counted)
		m.counted = 0
	}
	if _, err := m.lines.WriteTo(to); err != nil {
		log.Fatal(err)
	}
	return m.handled
}

// Run is the whole program.
func Run(open Open) {
	arguments := os.Args[1:]
	if len(arguments) != 6 {
		log.Fatal("usage: BOOTSTRAP TOPIC GROUP CONSUMERS PARTITIONS EVENTS_FILE")
	}
	settings := Settings{Bootstrap: arguments[0], Topic: arguments[1], Group: arguments[2]}
	count, err := strconv.Atoi(arguments[3])
	if err != nil {
		log.Fatal(err)
	}
	partitions, err := strconv.Atoi(arguments[4])
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.Create(arguments[5])
	if err != nil {
		log.Fatal(err)
	}
	members := make([]*Member, count)
	leaves := make([]func(), count)
	for number := range members {
		members[number] = &Member{number: number}
		leaves[number] = open(settings, members[number])
	}
	follow(members, partitions, file)
	var leaving sync.WaitGroup
	for _, leave := range leaves {
		leaving.Go(leave)
	}
	leaving.Wait()
	flush(members, file)
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
}

// follow tells what the members do until standard input ends.
func follow(members []*Member, partitions int, file io.Writer) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
	}()
	isReady := false
	told := 0
	for {
		select {
		case <-ended:
			return
		case <-time.After(flushInterval):
		}
		if !isReady && isShared(members, partitions) {
			isReady = true
			fmt.Println("ready")
		}
		if handled := flush(members, file); handled != told {
			told = handled
			fmt.Println("handled", handled)
		}
	}
}

func flush(members []*Member, file io.Writer) (handled int) {
	for _, member := range members {
		handled += member.flush(file)
	}
	return handled
}

func isShared(members []*Member, partitions int) bool {
	sum := 0
	for _, member := range members {
		member.events.Lock()
		share := member.assigned
		member.events.Unlock()
		if share < partitions/len(members) {
			return false
		}
		sum += share
	}
	return sum == partitions
}

// nowUs is CLOCK_MONOTONIC, which is the same clock in all processes of the machine.
func nowUs() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		log.Fatal(err)
	}
	return now.Nano() / 1000
}
