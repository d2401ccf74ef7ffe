//go:build fault && linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// generation is how far each process's clock is ahead of the one before.
const generation = 15 * time.Minute

// TestFaultF1 kills a memory at random moments and before its Nth write, fsync,
// rename, unlink and truncation, while it takes turns, imports, distils and
// maintains. P1 to P4: what was acknowledged is there once, and is distilled
// once.
func TestFaultF1(t *testing.T) {
	r := fault.Begin(t, "F1")
	s := judge.NewServer(t)
	s.Mix(3, "good", "good", "good", "good", "good", "good", "500", "fenced")
	c := counted{}
	kills, acked := 0, 0
	for _, part := range []struct {
		name        string
		kills, each int // each: kills of one home
	}{{"ingest", r.N(160), 32}, {"life", r.N(190), 10}} {
		for done := 0; done < part.kills && !t.Failed(); {
			n := min(part.each, part.kills-done)
			acked += killOften(t, part.name, s, n, c)
			done, kills = done+n, kills+n
		}
	}
	if r.Has(fault.Strace, "kills at every Nth system call") {
		points, more := killAtEveryCall(t, r, s, c)
		kills, acked = kills+points, acked+more
	}
	r.AtLeast("kills", float64(kills), float64(r.N(500)), "")
	r.AtLeast("acknowledged", float64(acked), float64(r.N(50_000)), "")
	for _, f := range []judge.Fault{judge.Lost, judge.Duplicated, judge.DistilledTwice, judge.NeverDistilled, judge.Damaged, judge.NoProvenance, judge.Litter} {
		r.Zero(string(f), c[f])
		delete(c, f)
	}
	other := 0
	for _, n := range c {
		other += n
	}
	r.Zero("other faults", other)
}

// killOften starts a part in one home again and again, kills it at a random
// moment, and examines what is left.
func killOften(t *testing.T, part string, s *judge.Server, n int, c counted) (acked int) {
	t.Helper()
	home := filepath.Join(fault.Dir(t), "home")
	defer func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	}()
	o := &told{}
	for i := range n {
		ahead := time.Duration(2*i) * generation
		child := judge.StartChild(t, part, home, lifeModel+"="+s.URL, lifeAhead+"="+ahead.String())
		for range 1 + rand.IntN(20) {
			line, more := child.Ack()
			if !more {
				break
			}
			o.take(line)
		}
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond) // into the middle of something
		o.take(child.Kill()...)
		last := i == n-1
		if part == "ingest" && !last && i%5 != 4 { // it stands in the log or it does not; that is looked for now and then
			continue
		}
		if last {
			s.Always("good")
		}
		found, err := examine(t.Context(), home, s.URL, clockAhead(ahead+generation), o, last && part == "life")
		s.Always("")
		if err != nil {
			t.Errorf("%s, after kill %d: %v", part, i+1, err)
			return len(o.said)
		}
		c.add(t, fmt.Sprintf("%s, after kill %d", part, i+1), found.Findings)
		if t.Failed() {
			return len(o.said)
		}
	}
	return len(o.said)
}

// killAtEveryCall runs a day in a copy of a home, and kills it before its first,
// second, … call of a kind, until the day ends by itself.
func killAtEveryCall(t *testing.T, r *fault.Run, s *judge.Server, c counted) (points, acked int) {
	t.Helper()
	s.Always("good")
	base := filepath.Join(fault.Dir(t), "base")
	o := &told{}
	first := judge.StartChild(t, "day", base, lifeModel+"="+s.URL)
	o.take(first.Wait()...)
	for _, calls := range []string{"write", "pwrite64", "fsync,fdatasync", "rename,renameat,renameat2", "unlink,unlinkat", "ftruncate", "openat"} {
		most := r.N(60) // of one kind; the commonest have more
		step := 1
		for n := 1; ; n += step {
			if n > most {
				break
			}
			home := filepath.Join(fault.Dir(t), "home")
			cloneHome(t, home, base)
			here := &told{said: append([]string{}, o.said...), noted: append([]string{}, o.noted...)}
			under := fault.Inject{Calls: calls, What: "signal=KILL", When: fmt.Sprint(n)}.Command()
			child := judge.StartChildUnder(t, under, "day", home, lifeModel+"="+s.URL, lifeAhead+"="+generation.String())
			acks := child.Wait()
			here.take(acks...)
			found, err := examine(t.Context(), home, s.URL, clockAhead(2*generation), here, true)
			if err != nil {
				t.Errorf("killed before %s number %d: %v", calls, n, err)
				return points, acked
			}
			c.add(t, fmt.Sprintf("killed before %s number %d", calls, n), found.Findings)
			if err := os.RemoveAll(home); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				return points, acked
			}
			acked += len(here.said) - len(o.said)
			if child.Ended() {
				break
			}
			points++
		}
	}
	return points, acked
}

// cloneHome copies a home, with its modes.
func cloneHome(t *testing.T, to, from string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy a home: %v: %s", err, out)
	}
}
