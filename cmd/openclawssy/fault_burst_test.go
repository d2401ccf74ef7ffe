//go:build fault && linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
)

const (
	burstAgents = 256
	burstHot    = 8 // of them take half of it, from as many speakers each as there are of them
	// burstMany is the variable that tells a child how many events there are.
	burstMany = "BURST_EVENTS"
	// burstFlush is after how many events a speaker waits until they are durable.
	burstFlush = 5000
)

func burstAgent(i int) memory.AgentID { return memory.AgentID(fmt.Sprint("agent-", i)) }

// burstShare is how many events each speaker of an agent has to say, of so many in
// all at least.
func burstShare(agent, events int) (speakers, each int) {
	if agent < burstHot {
		return burstHot, events/2/burstHot/burstHot + 1
	}
	return 1, events/2/(burstAgents-burstHot) + 1
}

// burstText is what a speaker says.
func burstText(speaker, n int) string {
	return fmt.Sprintf("burst %d %d of what a program says when it says too much at once", speaker, n)
}

// burstPart has all agents take their events as fast as they come, once the file go
// stands beside the home. It acknowledges what is durable and what was refused, and
// ends.
func burstPart(dir string, ack func(string) error) error {
	l, err := opened(dir, ack)
	if err != nil {
		return err
	}
	return errors.Join(l.burst(context.Background(), dir+".go"), l.house.close())
}

func (l *lifetime) burst(ctx context.Context, start string) error {
	ack := l.ack
	many, err := strconv.Atoi(os.Getenv(burstMany))
	if err != nil {
		return err
	}
	logs := make([]*events.Log, burstAgents)
	for i := range logs {
		log, release, err := l.house.logs.write(ctx, burstAgent(i))
		if err != nil {
			return err
		}
		defer release()
		logs[i] = log
	}
	if err := ack("open"); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(start); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	// Of how many calls each tenth of a millisecond was the time that they took; the
	// last counts all that took longer.
	var took [20_000]atomic.Int64
	failed := make([]error, burstAgents)
	var all sync.WaitGroup
	for i, log := range logs {
		speakers, each := burstShare(i, many)
		for s := range speakers {
			all.Go(func() {
				for n := 1; n <= each; n++ {
					began := time.Now()
					_, err := log.Append(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s1", Text: burstText(s, n)})
					took[min(len(took)-1, int(time.Since(began)/(100*time.Microsecond)))].Add(1)
					if errors.Is(err, events.ErrBackpressure) {
						err = ack(fmt.Sprintf("refused %d %d %d", i, s, n))
					}
					if err == nil && (n%burstFlush == 0 || n == each) {
						if err = log.Flush(ctx); err == nil {
							err = ack(fmt.Sprintf("durable %d %d %d", i, s, n))
						}
					}
					if err != nil {
						failed[i] = err
						return
					}
				}
			})
		}
	}
	all.Wait()
	calls, blocked := int64(0), [2]string{}
	for i := range took {
		calls += took[i].Load()
	}
	for q, share := range []float64{.99, 1} {
		sum := int64(0)
		for i := range took {
			if sum += took[i].Load(); float64(sum) >= share*float64(calls) {
				blocked[q] = fmt.Sprintf("%.1f", float64(i+1)/10)
				break
			}
		}
	}
	err = errors.Join(errors.Join(failed...), ack(fmt.Sprintf("ended %s %s %.0f", blocked[0], blocked[1], resident(os.Getpid()))))
	for i := range logs {
		st := logs[i].Stats()
		err = errors.Join(err, ack(fmt.Sprintf("counted %d %d", i, st.Backpressure)))
	}
	return err
}

// jamPart holds the lock of the hot agents' logs, as a writer does that hangs in the
// middle of an append.
func jamPart(dir string, ack func(string) error) error {
	for i := range burstHot {
		head, err := os.OpenFile(filepath.Join(dir, "agents", string(burstAgent(i)), "memory", "events", "journal.head"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := unix.Flock(int(head.Fd()), unix.LOCK_EX); err != nil {
			return err
		}
	}
	if err := ack("jammed"); err != nil {
		return err
	}
	select {}
}

// TestFaultF9 lets a million events burst over 256 agents at once, onto a disk whose
// every fsync takes 20 ms, while another process hangs that writes to some of them.
// P1, P7, P15, P16: what was acknowledged is there, what was refused was told and
// counted, and memory is bounded. Nothing is spilled anywhere: there is one way into
// a log.
func TestFaultF9(t *testing.T) {
	r := fault.Begin(t, "F9")
	many := r.N(1_000_000)
	home := filepath.Join(fault.Dir(t), "home")
	var under []string
	if r.Has(fault.Strace, "a disk whose every fsync takes 20 ms") {
		under = fault.Inject{Calls: "fsync,fdatasync", What: "delay_exit=20000"}.Command()
	}
	began := time.Now()
	c := judge.StartChildUnder(t, under, "burst", home, burstMany+"="+fmt.Sprint(many), "GOMEMLIMIT=256MiB")
	if line, _ := c.Ack(); line != "open" {
		t.Fatalf("it begins with %q: %s", line, c.Err())
	}
	jam := judge.StartChild(t, "jam", home)
	if line, _ := jam.Ack(); line != "jammed" {
		t.Fatalf("it begins with %q: %s", line, jam.Err())
	}
	jam.Signal(syscall.SIGSTOP)
	if err := os.WriteFile(home+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	release := time.AfterFunc(r.For(5*time.Second), func() {
		if err := syscall.Kill(jam.Pid(), syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	defer release.Stop()
	type voice struct{ agent, speaker int }
	durable, refused := map[voice]int{}, map[voice]map[int]bool{}
	told, counted, peak, blocked := 0, int64(0), 0.0, [2]string{}
	for {
		line, more := c.Ack()
		if !more {
			break
		}
		var v voice
		var n int
		var perAgent int64
		what, rest, _ := strings.Cut(line, " ")
		var err error
		switch what {
		case "durable":
			_, err = fmt.Sscan(rest, &v.agent, &v.speaker, &n)
			durable[v] = n
		case "refused":
			if _, err = fmt.Sscan(rest, &v.agent, &v.speaker, &n); refused[v] == nil {
				refused[v] = map[int]bool{}
			}
			refused[v][n] = true
			told++
		case "ended":
			_, err = fmt.Sscan(rest, &blocked[0], &blocked[1], &peak)
		case "counted":
			_, err = fmt.Sscan(rest, &v.agent, &perAgent)
			counted += perAgent
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	if _, err := c.End(); err != nil {
		t.Errorf("the burst: %v\n%s", err, c.Err())
	}
	burst := time.Since(start)
	if _, err := jam.End(); err != nil {
		t.Error(err)
	}

	// What is in the logs, against what was told.
	l, err := newLifetime(home, "", time.Now, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	lost, twice, thereAndRefused, there := 0, 0, 0, 0
	var noted int64
	for i := range burstAgents {
		log, giveBack, err := l.house.readLog(t.Context(), burstAgent(i))
		if err != nil {
			t.Fatal(err)
		}
		speakers, each := burstShare(i, many)
		seen := make([][]uint8, speakers)
		for s := range seen {
			seen[s] = make([]uint8, each+1)
		}
		for at := (memory.Cursor{}); ; {
			list, next, err := log.Read(t.Context(), at, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				break
			}
			at = next
			for _, e := range list {
				f := strings.Fields(e.Text)
				if len(f) < 3 || f[0] != "burst" {
					continue
				}
				s, err := strconv.Atoi(f[1])
				n, err2 := strconv.Atoi(f[2])
				if err = errors.Join(err, err2); err != nil || e.Text != burstText(s, n) {
					t.Fatalf("%s reads %q", e.ID, e.Text)
				}
				seen[s][n]++
				there++
			}
		}
		giveBack()
		for s := range seen {
			v := voice{i, s}
			if durable[v] != each {
				t.Errorf("%s: speaker %d was told of %d durable events of %d", burstAgent(i), s, durable[v], each)
			}
			for n := 1; n <= each; n++ {
				switch got := seen[s][n]; {
				case got == 0 && !refused[v][n]:
					lost++
				case got > 1:
					twice++
				case got > 0 && refused[v][n]:
					thereAndRefused++
				}
			}
		}
		if i < burstHot {
			var status struct {
				Dropped int64 `json:"dropped"`
			}
			one := &lifetime{house: l.house, catalog: l.catalog, agent: burstAgent(i), ack: l.ack}
			if err := one.call(t.Context(), "memory.status", struct{}{}, &status); err != nil {
				t.Fatal(err)
			}
			noted += status.Dropped
		}
	}
	if err := l.house.close(); err != nil {
		t.Error(err)
	}
	t.Logf("the burst took %s of %s", burst.Round(time.Second/10), time.Since(began).Round(time.Second/10))
	r.AtLeast("events", float64(there+told), float64(many), "")
	r.Count("agents", burstAgents)
	r.Count("in the logs", there)
	r.Zero("silently lost", lost)
	r.Zero("there twice", twice)
	r.Zero("refused and there", thereAndRefused)
	if many >= 500_000 { // the queues of the hot agents hold fewer than that
		r.AtLeast("refused with ErrBackpressure", float64(told), 1, "")
	} else {
		r.Count("refused with ErrBackpressure", told)
	}
	r.Zero("refused and not counted by the log", int(int64(told)-counted))
	r.Zero("refused and not told by status", int(int64(told)-noted))
	r.Count("an append took, p99 and max", cmp.Or(blocked[0], "?")+" ms, "+cmp.Or(blocked[1], "?")+" ms")
	r.AtMost("resident memory at its peak", peak, 64+8*burstAgents, " MiB")
}
