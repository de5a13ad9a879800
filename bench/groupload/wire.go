package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// Kafka's API keys and the versions that are sent: those of today's clients where it costs the
// broker something, the last plain ones elsewhere.
const (
	offsetCommit    = 8
	findCoordinator = 10
	joinGroup       = 11
	heartbeat       = 12
	leaveGroup      = 13
	syncGroup       = 14
	apiVersions     = 18
	createTopics    = 19
)

// Error codes that are part of the game.
const (
	coordinatorLoading      = 14
	coordinatorNotAvailable = 15
	notCoordinator          = 16
	unknownTopicOrPartition = 3
	topicExists             = 36
	rebalanceInProgress     = 27
	memberIDRequired        = 79
)

// request builds one frame; the length is filled in by bytes().
type request struct{ b []byte }

func plain(key, version uint16) *request {
	r := &request{make([]byte, 4, 128)}
	return r.i16(key).i16(version).i32(7).str("groupload")
}

// flexible is a request whose header and body carry tagged fields.
func flexible(key, version uint16) *request { return plain(key, version).tags() }

func (r *request) i8(v uint8) *request   { r.b = append(r.b, v); return r }
func (r *request) i16(v uint16) *request { r.b = binary.BigEndian.AppendUint16(r.b, v); return r }
func (r *request) i32(v uint32) *request { r.b = binary.BigEndian.AppendUint32(r.b, v); return r }
func (r *request) i64(v uint64) *request { r.b = binary.BigEndian.AppendUint64(r.b, v); return r }
func (r *request) tags() *request        { return r.i8(0) }
func (r *request) null() *request        { return r.i16(0xffff) }

func (r *request) str(s string) *request {
	r.i16(uint16(len(s)))
	r.b = append(r.b, s...)
	return r
}

func (r *request) blob(s []byte) *request {
	r.i32(uint32(len(s)))
	r.b = append(r.b, s...)
	return r
}

// compact is a compact string; everything here is shorter than 127 bytes.
func (r *request) compact(s string) *request {
	r.i8(uint8(len(s) + 1))
	r.b = append(r.b, s...)
	return r
}

func (r *request) bytes() []byte {
	binary.BigEndian.PutUint32(r.b, uint32(len(r.b)-4))
	return r.b
}

// answer walks over the fields of a response.
type answer struct {
	b []byte
	p int
}

func (a *answer) i16() int { a.p += 2; return int(int16(binary.BigEndian.Uint16(a.b[a.p-2:]))) }
func (a *answer) i32() int { a.p += 4; return int(int32(binary.BigEndian.Uint32(a.b[a.p-4:]))) }
func (a *answer) str() string {
	n := a.i16()
	if n < 0 {
		return ""
	}
	a.p += n
	return string(a.b[a.p-n : a.p])
}

// connection has one request under way at a time, as Kafka's consumers have to a coordinator.
type connection struct {
	net.Conn
	reader   *bufio.Reader
	buffer   []byte
	received int64
}

// dial returns once the broker has taken the connection: a burst of thousands that only the kernel
// has answered overflows the broker's backlog, and each that does waits for a second.
func dial(address string) *connection {
	conn, err := net.Dial("tcp", address)
	check(err)
	c := &connection{Conn: conn, reader: bufio.NewReaderSize(conn, 512)}
	c.ask(plain(apiVersions, 0).bytes())
	return c
}

// ask sends a frame and waits for its answer, which is good until the next one.
func (c *connection) ask(frame []byte) *answer {
	_, err := c.Write(frame)
	check(err)
	var size [4]byte
	_, err = io.ReadFull(c.reader, size[:])
	check(err)
	n := int(binary.BigEndian.Uint32(size[:]))
	if cap(c.buffer) < n {
		c.buffer = make([]byte, n)
	}
	c.buffer = c.buffer[:n]
	_, err = io.ReadFull(c.reader, c.buffer)
	check(err)
	c.received += int64(n + 4)
	return &answer{c.buffer, 4} // behind the correlation id
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

// cpuSeconds is what a process has used so far, in user and system mode.
func cpuSeconds(pid string) float64 {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw[strings.LastIndex(string(raw), ")")+2:]))
	var user, system float64
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return (user + system) / 100
}
