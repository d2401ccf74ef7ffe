//go:build fault && linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// listened is a child whose acknowledgements are taken all the time, so that it
// never waits for the one who reads them.
type listened struct {
	*judge.Child
	done chan struct{}

	mu    sync.Mutex
	lines []string
}

func listen(c *judge.Child) *listened {
	l := &listened{Child: c, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for {
			line, more := c.Ack()
			if !more {
				return
			}
			l.mu.Lock()
			l.lines = append(l.lines, line)
			l.mu.Unlock()
		}
	}()
	return l
}

// count returns how many acknowledgements of a kind there are.
func (l *listened) count(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.HasPrefix(line, kind) {
			n++
		}
	}
	return n
}

// await waits until there are more acknowledgements of a kind than there are now,
// and returns how long that took; false where it took longer than limit.
func (l *listened) await(kind string, limit time.Duration) (time.Duration, bool) {
	began, before := time.Now(), l.count(kind)
	for time.Since(began) < limit {
		if l.count(kind) > before {
			return time.Since(began), true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return limit, false
}

// kill kills it, and returns all that it acknowledged. That it had ended by
// itself, with an error, fails the test.
func (l *listened) kill(t *testing.T) []string {
	t.Helper()
	if err := syscall.Kill(-l.Pid(), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	<-l.done
	rest, err := l.End()
	if err != nil {
		t.Errorf("a process ended by itself: %v\n%s", err, l.Err())
	}
	return append(l.lines, rest...)
}

// holder is the process that holds the lease of the checkpoints of a home's agent
// default; 0 while nobody does.
func holder(ctx context.Context, home string) (pid int, err error) {
	held, err := working.LookLeases(ctx, filepath.Join(home, "agents", "default", "memory"))
	for _, l := range held {
		if l.Name == "checkpoint" {
			_, err := fmt.Sscanf(l.Holder, "process %d on", &pid)
			return pid, err
		}
	}
	return 0, err
}

// awaitHolder waits until one of these processes holds that lease, and returns it
// and how long that took; nil where it took longer than limit.
func awaitHolder(t *testing.T, home string, limit time.Duration, among ...*listened) (*listened, time.Duration) {
	t.Helper()
	began := time.Now()
	for time.Since(began) < limit {
		pid, err := holder(t.Context(), home)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range among {
			if l.Pid() == pid {
				return l, time.Since(began)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, limit
}

// isBusy reports whether a process holds a lock that others wait for in the middle
// of an append or of a change of memory.
func isBusy(t *testing.T, pid int, dir string) bool {
	t.Helper()
	inodes := map[string]bool{}
	for _, name := range []string{"memory.lock", "memory.db-shm", "events/journal.head"} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		inodes[fmt.Sprint(st.Sys().(*syscall.Stat_t).Ino)] = true
	}
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) { // 5: FLOCK ADVISORY WRITE 4711 00:1b:171964 0 EOF
		f := strings.Fields(line)
		if len(f) < 6 || f[3] != "WRITE" || f[4] != fmt.Sprint(pid) {
			continue
		}
		if inodes[f[5][strings.LastIndex(f[5], ":")+1:]] {
			return true
		}
	}
	return false
}

// TestFaultF5 has two processes live on one agent at once, stops one of them,
// lets it go on, and kills it; and then has two live for sixteen agents. P19.
func TestFaultF5(t *testing.T) {
	r := fault.Begin(t, "F5")
	s := judge.NewServer(t)
	c := counted{}
	began := time.Now()
	phase := func(name string) { t.Logf("%s after %s", name, time.Since(began).Round(time.Second)) }
	home := filepath.Join(fault.Dir(t), "home")
	start := func(part, home string) *listened {
		return listen(judge.StartChild(t, part, home, lifeModel+"="+s.URL, lifeAhead+"=0s", lifeSlower+"=10"))
	}
	o, acked := &told{}, 0
	a, b := start("life", home), start("life", home)
	time.Sleep(r.For(10 * time.Second))

	// The one that holds the lease of the checkpoints stops: the other takes its
	// place once the lease has passed. What one stops in the middle of, an append
	// or a change of memory, everybody waits for until it goes on.
	s.Think(time.Second) // so that it is held most of the time, and waited with
	const lease = 15 * time.Second
	longest, appends, between := time.Duration(0), 0, 0
	rounds := r.N(3)
	for range rounds {
		var stopped *listened
		var at time.Time
		for {
			if stopped, _ = awaitHolder(t, home, time.Minute, a, b); stopped == nil {
				t.Fatal("nobody distils")
			}
			stopped.Signal(syscall.SIGSTOP)
			at = time.Now()
			if !isBusy(t, stopped.Pid(), filepath.Join(home, "agents", "default", "memory")) {
				break
			}
			between++
			stopped.Signal(syscall.SIGCONT)
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		}
		other := a
		if stopped == a {
			other = b
		}
		if _, goesOn := other.await("said", 10*time.Second); goesOn {
			appends++
		}
		if by, _ := awaitHolder(t, home, 2*lease, other); by == nil {
			t.Errorf("nobody takes the place of a process that is stopped for %s", time.Since(at))
		}
		longest = max(longest, time.Since(at))
		stopped.Signal(syscall.SIGCONT)
		if _, goesOn := stopped.await("said", time.Minute); !goesOn {
			t.Error("a process that was stopped does not go on")
		}
	}

	// Of one that is killed while it holds the lease the other does not wait for
	// the lease to pass: at least two thirds of it are left then.
	killing := time.Duration(0)
	for range rounds {
		killed, _ := awaitHolder(t, home, time.Minute, a, b)
		if killed == nil {
			t.Fatal("nobody distils")
		}
		if killed == a {
			a, b = b, a
		}
		o.take(b.kill(t)...)
		by, took := awaitHolder(t, home, 2*lease, a)
		if by == nil {
			t.Error("nobody takes the place of a process that was killed")
		}
		killing = max(killing, took)
		b = start("life", home)
	}
	s.Think(0)
	o.take(a.kill(t)...)
	o.take(b.kill(t)...)
	acked += len(o.said) + len(o.noted)
	found, err := examine(t.Context(), home, s.URL, clockAhead(generation), o, true)
	if err != nil {
		t.Error(err)
	}
	c.add(t, "two processes", found.Findings)

	phase("two processes")
	many := filepath.Join(fault.Dir(t), "many")
	a, b = start("many", many), start("many", many)
	time.Sleep(r.For(10 * time.Second))
	by := map[string]*told{}
	for _, line := range append(a.kill(t), b.kill(t)...) {
		name, rest, _ := strings.Cut(line, " ")
		if by[name] == nil {
			by[name] = &told{}
		}
		by[name].take(rest)
	}
	for i := range manyAgents {
		name := fmt.Sprint("agent-", i)
		if by[name] == nil {
			continue
		}
		acked += len(by[name].said) + len(by[name].noted)
		found, err := examineAgent(t.Context(), memory.AgentID(name), many, s.URL, clockAhead(generation), by[name], i%8 == 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.add(t, name, found.Findings)
	}

	r.Count("acknowledged", acked)
	r.Count("agents", 1+len(by))
	for _, f := range []judge.Fault{judge.Lost, judge.Duplicated, judge.DistilledTwice, judge.Damaged} {
		r.Zero(string(f), c[f])
		delete(c, f)
	}
	other := 0
	for _, n := range c {
		other += n
	}
	r.Zero("other faults", other)
	r.Count("appends beside a stopped process", fmt.Sprintf("%d of %d", appends, rounds))
	r.Count("stopped in the middle of an append or a change, and sent on", between)
	r.AtMost("takeover from a stopped process", longest.Seconds(), lease.Seconds(), " s")
	r.AtMost("takeover from a killed one", killing.Seconds(), (lease / 3).Seconds(), " s")
}
