//go:build fault && linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
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

// awaitDistilling waits until somebody asks the model to distil, and returns how
// long that took; false where it took longer than limit.
func awaitDistilling(s *judge.Server, limit time.Duration) (time.Duration, bool) {
	time.Sleep(300 * time.Millisecond) // what was on its way has come
	began, from := time.Now(), len(s.Calls())
	for time.Since(began) < limit {
		calls := s.Calls()
		for _, c := range calls[from:] {
			if _, is := c.Request.Offer(); is {
				return time.Since(began), true
			}
		}
		from = len(calls)
		time.Sleep(20 * time.Millisecond)
	}
	return limit, false
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

	// One stops, most likely in the middle of a checkpoint: the other takes its
	// place once the lease has passed. What one stops in the middle of an append
	// everybody waits for; that is a moment long, and so is not often hit.
	s.Think(200 * time.Millisecond)
	const lease = 15 * time.Second
	longest, appends, blocked := time.Duration(0), 0, 0
	rounds := r.N(3)
	for range rounds {
		a.Signal(syscall.SIGSTOP)
		if _, goesOn := b.await("said", 5*time.Second); goesOn {
			appends++
		} else {
			blocked++
		}
		took, taken := awaitDistilling(s, 2*lease)
		if taken {
			longest = max(longest, took)
		} else if blocked == 0 {
			t.Errorf("nobody distils while a process is stopped for %s", took)
		}
		a.Signal(syscall.SIGCONT)
		if _, goesOn := a.await("said", time.Minute); !goesOn {
			t.Error("a process that was stopped does not go on")
		}
	}
	s.Think(0)
	o.take(a.kill(t)...)
	killed, taken := awaitDistilling(s, 2*lease)
	if !taken {
		t.Error("after the other was killed nobody distils")
	}
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
	r.AtMost("takeover from a stopped process", longest.Seconds(), (lease + 5*time.Second).Seconds(), " s")
	r.AtMost("takeover from a killed one", killed.Seconds(), (lease + 5*time.Second).Seconds(), " s")
}
