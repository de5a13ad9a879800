// groupload drives the group coordinator of any Kafka-protocol broker with requests that cost it
// almost nothing, so that what is measured is the broker.
//
//	groupload -b host:port -pid broker -mode heartbeats|join|commits
//
// It prints one JSON line.  A member has a connection of its own, as Kafka's consumers have.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"sort"
	"sync"
	"time"
)

var (
	address  = flag.String("b", "127.0.0.1:9092", "broker")
	pid      = flag.String("pid", "", "the broker's process")
	mode     = flag.String("mode", "heartbeats", "heartbeats|join|commits")
	prefix   = flag.String("g", "group", "names of groups begin so")
	members  = flag.Int("members", 1000, "members in all")
	groups   = flag.Int("groups", 100, "groups they are in")
	interval = flag.Duration("interval", 3*time.Second, "from one heartbeat of a member to the next")
	warm     = flag.Float64("warm", 1, "seconds before the measurement")
	seconds  = flag.Float64("d", 5, "seconds")
	clients  = flag.Int("c", 50, "connections that commit, each with one commit under way")
)

func main() {
	flag.Parse()
	findTheCoordinator()
	var figures map[string]any
	switch *mode {
	case "heartbeats":
		figures = heartbeats()
	case "join":
		figures = join()
	case "commits":
		figures = commits()
	default:
		fail("no mode %s", *mode)
	}
	line, _ := json.Marshal(figures)
	fmt.Println(string(line))
}

// findTheCoordinator makes the broker create its topic of offsets, and waits until it has.
func findTheCoordinator() {
	c := dial(*address)
	defer c.Close()
	for {
		a := c.ask(plain(findCoordinator, 1).str(*prefix).i8(0).bytes())
		a.i32()
		code := a.i16()
		if code == 0 {
			return
		}
		if code != coordinatorNotAvailable {
			fail("FindCoordinator: error %d", code)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// all runs the same for every one of n and returns when all have ended.
func all(n int, do func(i int)) {
	var running sync.WaitGroup
	running.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			defer running.Done()
			do(i)
		}()
	}
	running.Wait()
}

// settle lets all members enter and beat until nothing has changed for a second; it returns when
// the last of them entered, and what the broker had used until then.
func settle(ms []*member) (time.Time, float64) {
	var mutex sync.Mutex
	var last time.Time
	var used float64
	entered := 0
	enter := func(m *member, counts int) {
		m.enter()
		mutex.Lock()
		defer mutex.Unlock()
		entered += counts
		if last = time.Now(); entered == len(ms) {
			used = cpuSeconds(*pid)
		}
	}
	isSettled := func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return entered == len(ms) && time.Since(last) > time.Second
	}
	all(len(ms), func(i int) {
		for enter(ms[i], 1); !isSettled(); time.Sleep(250 * time.Millisecond) {
			if ms[i].beat() == rebalanceInProgress {
				enter(ms[i], 0)
			}
		}
	})
	return last, used
}

// heartbeats lets members of many groups beat in their own rhythm.
func heartbeats() map[string]any {
	ms := make([]*member, *members)
	for i := range ms {
		ms[i] = newMember(*address, fmt.Sprintf("%s-%d", *prefix, i%*groups))
	}
	settle(ms)
	defer func() { all(len(ms), func(i int) { ms[i].leave() }) }()
	beatFor(ms, *warm)
	used, begin := cpuSeconds(*pid), time.Now()
	latencies := beatFor(ms, *seconds)
	return result(latencies, time.Since(begin).Seconds(), cpuSeconds(*pid)-used)
}

// beatFor returns how long every answer took, in ms.
func beatFor(ms []*member, seconds float64) [][]float64 {
	latencies := make([][]float64, len(ms))
	begin := time.Now()
	end := begin.Add(time.Duration(seconds * float64(time.Second)))
	all(len(ms), func(i int) {
		next := begin.Add(time.Duration(rand.Int63n(int64(*interval))))
		for ; next.Before(end); next = next.Add(*interval) {
			time.Sleep(time.Until(next))
			sent := time.Now()
			if code := ms[i].beat(); code != 0 {
				fail("Heartbeat of %s: error %d", ms[i].group, code)
			}
			latencies[i] = append(latencies[i], since(sent))
		}
	})
	return latencies
}

// join lets members enter one new group at once, and then all of them rejoin.
func join() map[string]any {
	ms := make([]*member, *members)
	for i := range ms {
		ms[i] = newMember(*address, *prefix)
		ms[i].received = 0
	}
	used, begin := cpuSeconds(*pid), time.Now()
	stable, usedThen := settle(ms)
	leader := 0
	for i, m := range ms {
		if m.isLeader {
			leader = i
		}
	}
	figures := map[string]any{
		"stable_ms":  stable.Sub(begin).Seconds() * 1e3,
		"stable_cpu": usedThen - used,
		"answers":    received(ms),
		"generation": ms[0].generation,
	}
	var leading sync.WaitGroup
	leading.Add(1)
	go func() {
		defer leading.Done()
		ms[leader].enter()
	}()
	follower := (leader + 1) % len(ms)
	for ms[follower].beat() == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, m := range ms {
		m.received = 0
	}
	used, begin = cpuSeconds(*pid), time.Now()
	all(len(ms), func(i int) {
		if i != leader {
			ms[i].enter()
		}
	})
	leading.Wait()
	figures["rejoined_ms"] = since(begin)
	figures["rejoined_cpu"] = cpuSeconds(*pid) - used
	figures["rejoined_answers"] = received(ms)
	if len(ms[leader].members) != len(ms) {
		fail("%d of %d members are in the last generation", len(ms[leader].members), len(ms))
	}
	all(len(ms), func(i int) { ms[i].leave() })
	return figures
}

func received(ms []*member) int64 {
	total := int64(0)
	for _, m := range ms {
		total += m.received
	}
	return total
}

// commits lets simple consumers commit one partition again and again.
func commits() map[string]any {
	createTopic()
	latencies := make([][]float64, *clients)
	cs := make([]*connection, *clients)
	for i := range cs {
		cs[i] = dial(*address)
	}
	var mutex sync.Mutex
	var used float64
	var begin time.Time
	counted := time.Now().Add(time.Duration(*warm * float64(time.Second)))
	end := counted.Add(time.Duration(*seconds * float64(time.Second)))
	all(len(cs), func(i int) {
		group := fmt.Sprintf("%s-%d", *prefix, i)
		for offset := uint64(1); time.Now().Before(end); offset++ {
			frame := flexible(offsetCommit, 8).compact(group).i32(0xffffffff).compact("").i8(0)
			frame.i8(2).compact("bench-groups").i8(2).i32(0).i64(offset).i32(0xffffffff).compact("")
			sent := time.Now()
			a := cs[i].ask(frame.tags().tags().tags().bytes())
			a.p += 1 + 4 + 1 + 1 + len("bench-groups") + 1 + 4 // tags, throttle, topic, partition
			code := a.i16()
			if sent.Before(counted) {
				if code != 0 {
					time.Sleep(20 * time.Millisecond) // it may still be loading
				}
				continue
			}
			if code != 0 {
				fail("OffsetCommit of %s: error %d", group, code)
			}
			if len(latencies[i]) == 0 {
				mutex.Lock()
				if begin.IsZero() {
					used, begin = cpuSeconds(*pid), time.Now()
				}
				mutex.Unlock()
			}
			latencies[i] = append(latencies[i], since(sent))
		}
	})
	return result(latencies, time.Since(begin).Seconds(), cpuSeconds(*pid)-used)
}

func createTopic() {
	c := dial(*address)
	defer c.Close()
	frame := plain(createTopics, 2).i32(1).str("bench-groups").i32(1).i16(1).i32(0).i32(0)
	a := c.ask(frame.i32(30_000).i8(0).bytes())
	a.i32()
	a.i32()
	a.str()
	if code := a.i16(); code != 0 && code != topicExists {
		fail("CreateTopics: error %d", code)
	}
}

func since(begin time.Time) float64 { return time.Since(begin).Seconds() * 1e3 }

// result is what every closed loop tells: how many, how fast, at which price.
func result(latencies [][]float64, elapsed, used float64) map[string]any {
	var sorted []float64
	for _, each := range latencies {
		sorted = append(sorted, each...)
	}
	sort.Float64s(sorted)
	n := float64(len(sorted))
	if n == 0 {
		fail("nothing was answered")
	}
	return map[string]any{
		"per_s":  n / elapsed,
		"cpu_us": used * 1e6 / n,
		"p50_ms": sorted[int(.5*(n-1))],
		"p99_ms": sorted[int(.99*(n-1))],
		"max_ms": sorted[int(n-1)],
	}
}
