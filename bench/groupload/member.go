package main

import "time"

// member is one consumer by the classic protocol, on a connection of its own.
type member struct {
	*connection
	group      string
	id         string
	generation int
	isLeader   bool
	members    []string // all of the group, known to the leader only
	heartbeat  []byte   // encoded once a generation
}

// subscription is what Kafka's consumers send: version 1, one topic, no data, no owned partitions.
var subscription = (&request{}).i16(1).i32(1).str("bench-groups").i32(0xffffffff).i32(0).b

// assignment is one partition of one topic.
var assignment = (&request{}).i16(1).i32(1).str("bench-groups").i32(1).i32(0).i32(0xffffffff).b

const (
	sessionMs   = 45_000
	rebalanceMs = 300_000
)

func newMember(address, group string) *member {
	return &member{connection: dial(address), group: group}
}

// join returns when a round has completed with this member in it.
func (m *member) join() {
	for {
		frame := plain(joinGroup, 5).str(m.group).i32(sessionMs).i32(rebalanceMs).str(m.id).null()
		frame.str("consumer").i32(1).str("range").blob(subscription)
		a := m.ask(frame.bytes())
		a.i32() // throttle
		code := a.i16()
		m.generation = a.i32()
		a.str() // protocol
		leader := a.str()
		id := a.str()
		switch code {
		case 0:
			m.id, m.isLeader = id, leader == id
			m.members = m.members[:0]
			for n := a.i32(); n > 0; n-- {
				m.members = append(m.members, a.str())
				a.str()
				a.p += a.i32()
			}
			m.heartbeat = flexible(heartbeat, 4).compact(m.group).i32(uint32(m.generation)).
				compact(m.id).i8(0).tags().bytes()
			return
		case memberIDRequired:
			m.id = id
		case coordinatorLoading, coordinatorNotAvailable, notCoordinator, rebalanceInProgress:
			time.Sleep(20 * time.Millisecond)
		default:
			fail("JoinGroup of %s: error %d", m.group, code)
		}
	}
}

// sync returns whether the generation still stands.
func (m *member) sync() bool {
	frame := plain(syncGroup, 3).str(m.group).i32(uint32(m.generation)).str(m.id).null()
	if m.isLeader {
		frame.i32(uint32(len(m.members)))
		for _, id := range m.members {
			frame.str(id).blob(assignment)
		}
	} else {
		frame.i32(0)
	}
	a := m.ask(frame.bytes())
	a.i32()
	code := a.i16()
	if code != 0 && code != rebalanceInProgress {
		fail("SyncGroup of %s: error %d", m.group, code)
	}
	return code == 0
}

// beat returns the error code of one heartbeat.
func (m *member) beat() int {
	a := m.ask(m.heartbeat)
	a.p++ // no tags of the header
	a.i32()
	return a.i16()
}

// enter joins until the group is Stable with this member in it.
func (m *member) enter() {
	for m.join(); !m.sync(); {
		m.join()
	}
}

// leave tells the group, so that its members' sessions do not end in the middle of what comes next.
func (m *member) leave() {
	a := m.ask(plain(leaveGroup, 3).str(m.group).i32(1).str(m.id).null().bytes())
	a.i32()
	if code := a.i16(); code != 0 {
		fail("LeaveGroup of %s: error %d", m.group, code)
	}
}
