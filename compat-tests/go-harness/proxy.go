package harness

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// Proxy stands between a client and the broker and notes which offsets the client fetches and commits.
// It shows itself to the client as the broker, by writing its own port into answers that name the
// broker's address.
type Proxy struct {
	Address string

	mutex  sync.Mutex
	asked  []Asked
	conns  []net.Conn
	shown  []byte
	hidden []byte
}

// Asked is one partition of a Fetch or an OffsetCommit request.
type Asked struct {
	At        time.Time
	IsCommit  bool
	Partition int32
	Offset    int64
}

// StartProxy listens on a free port in front of the broker under test, until the check ends.
func StartProxy(t *T) *Proxy {
	host, port, err := net.SplitHostPort(t.Bootstrap)
	t.NoError(err, "address of the broker")
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	t.NoError(err, "listen")
	_, ownPort, err := net.SplitHostPort(listener.Addr().String())
	t.NoError(err, "own address")
	proxy := &Proxy{
		Address: listener.Addr().String(),
		hidden:  wireAddress(host, port),
		shown:   wireAddress(host, ownPort),
	}
	t.Cleanup(func() {
		listener.Close()
		proxy.closeAll()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", t.Bootstrap)
			if err != nil {
				client.Close()
				continue
			}
			proxy.link(client, broker)
		}
	}()
	return proxy
}

// wireAddress is how Metadata and FindCoordinator write an address: the host and right behind it the
// port.
func wireAddress(host, port string) []byte {
	number, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	return binary.BigEndian.AppendUint32([]byte(host), uint32(number))
}

func (p *Proxy) link(client, broker net.Conn) {
	p.mutex.Lock()
	p.conns = append(p.conns, client, broker)
	p.mutex.Unlock()
	go pump(client, broker, func(frame []byte) []byte {
		p.note(frame)
		return frame
	})
	go pump(broker, client, func(frame []byte) []byte {
		return bytes.ReplaceAll(frame, p.hidden, p.shown)
	})
}

// pump carries whole frames from one side to the other until either ends.
func pump(from, to net.Conn, change func(frame []byte) []byte) {
	defer from.Close()
	defer to.Close()
	size := make([]byte, 4)
	for {
		if _, err := io.ReadFull(from, size); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size))
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		if _, err := to.Write(append(size[:4:4], change(frame)...)); err != nil {
			return
		}
	}
}

func (p *Proxy) closeAll() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, conn := range p.conns {
		conn.Close()
	}
}

// Between returns what was asked for in a span of time.
func (p *Proxy) Between(from, to time.Time) []Asked {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var found []Asked
	for _, each := range p.asked {
		if !each.At.Before(from) && !each.At.After(to) {
			found = append(found, each)
		}
	}
	return found
}

const (
	fetchKey        = 1
	offsetCommitKey = 8
)

func (p *Proxy) note(frame []byte) {
	r := &reader{rest: frame}
	key, version := int(r.int16()), int(r.int16())
	r.int32()
	r.skipText(false)
	var asked []Asked
	switch key {
	case fetchKey:
		asked = readFetch(r, version)
	case offsetCommitKey:
		asked = readCommit(r, version)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, each := range asked {
		each.At = time.Now()
		p.asked = append(p.asked, each)
	}
}

// readFetch reads a Fetch request of any version up to 18 behind its header.
func readFetch(r *reader, version int) (asked []Asked) {
	isFlexible := version >= 12
	if isFlexible {
		r.skipTags()
	}
	skipped := 8
	if version < 15 {
		skipped += 4
	}
	if version >= 3 {
		skipped += 4
	}
	if version >= 4 {
		skipped++
	}
	if version >= 7 {
		skipped += 8
	}
	r.take(skipped)
	for range r.count(isFlexible) {
		if version >= 13 {
			r.take(16)
		} else {
			r.skipText(isFlexible)
		}
		for range r.count(isFlexible) {
			partition := r.int32()
			if version >= 9 {
				r.int32()
			}
			asked = append(asked, Asked{Partition: partition, Offset: r.int64()})
			if version >= 12 {
				r.int32()
			}
			if version >= 5 {
				r.int64()
			}
			r.int32()
			if isFlexible {
				r.skipTags()
			}
		}
		if isFlexible {
			r.skipTags()
		}
	}
	return asked
}

// readCommit reads an OffsetCommit request of version 2 to 10 behind its header.
func readCommit(r *reader, version int) (asked []Asked) {
	isFlexible := version >= 8
	if isFlexible {
		r.skipTags()
	}
	r.skipText(isFlexible)
	r.int32()
	r.skipText(isFlexible)
	if version >= 7 {
		r.skipText(isFlexible)
	}
	if version <= 4 {
		r.int64()
	}
	for range r.count(isFlexible) {
		if version >= 10 {
			r.take(16)
		} else {
			r.skipText(isFlexible)
		}
		for range r.count(isFlexible) {
			asked = append(asked, Asked{IsCommit: true, Partition: r.int32(), Offset: r.int64()})
			if version >= 6 {
				r.int32()
			}
			r.skipText(isFlexible)
			if isFlexible {
				r.skipTags()
			}
		}
		if isFlexible {
			r.skipTags()
		}
	}
	return asked
}

// reader takes fields off the front of a request. A request that is too short would be one that the
// client has written wrongly or a version that is not known here; either should be seen: it panics.
type reader struct {
	rest []byte
}

func (r *reader) take(count int) []byte {
	taken := r.rest[:count]
	r.rest = r.rest[count:]
	return taken
}

func (r *reader) int16() int16 { return int16(binary.BigEndian.Uint16(r.take(2))) }

func (r *reader) int32() int32 { return int32(binary.BigEndian.Uint32(r.take(4))) }

func (r *reader) int64() int64 { return int64(binary.BigEndian.Uint64(r.take(8))) }

func (r *reader) uvarint() int {
	value, size := binary.Uvarint(r.rest)
	r.take(size)
	return int(value)
}

func (r *reader) count(isFlexible bool) int {
	if isFlexible {
		return r.uvarint() - 1
	}
	return int(r.int32())
}

func (r *reader) skipText(isFlexible bool) {
	if isFlexible {
		r.take(max(r.uvarint()-1, 0))
		return
	}
	r.take(max(int(r.int16()), 0))
}

func (r *reader) skipTags() {
	for range r.uvarint() {
		r.uvarint()
		r.take(r.uvarint())
	}
}
