//go:build fault && linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// generation is how far each process's clock is ahead of the one before.
const generation = 15 * time.Minute

// killed gathers what the parts of the row find, which run beside each other.
type killed struct {
	mu           sync.Mutex
	findings     counted
	kills, acked int
}

func (k *killed) add(t *testing.T, where string, found judge.Findings, kills, acked int) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.findings.add(t, where, found)
	k.kills, k.acked = k.kills+kills, k.acked+acked
}

// TestFaultF1 kills a memory at random moments and before its Nth write, fsync,
// rename, unlink and truncation, while it takes turns, imports, distils and
// maintains. P1 to P4: what was acknowledged is there once, and is distilled
// once. Each home is a part of its own, with a model of its own.
func TestFaultF1(t *testing.T) {
	r := fault.Begin(t, "F1")
	k := &killed{findings: counted{}}
	atCalls := r.Has(fault.Strace, "kills at every Nth system call")
	t.Run("homes", func(t *testing.T) {
		for _, part := range []struct {
			name        string
			kills, each int // each: kills of one home
		}{{"ingest", r.N(160), 32}, {"life", r.N(190), 10}} {
			for from := 0; from < part.kills; from += part.each {
				t.Run(fmt.Sprint(part.name, from), func(t *testing.T) {
					t.Parallel()
					killOften(t, part.name, min(part.each, part.kills-from), k)
				})
			}
		}
		if !atCalls {
			return
		}
		base, o := dayHome(t)
		for _, calls := range []string{"write", "pwrite64", "fsync,fdatasync", "rename,renameat,renameat2", "unlink,unlinkat", "ftruncate", "openat"} {
			t.Run(calls, func(t *testing.T) {
				t.Parallel()
				killAtEveryCall(t, calls, r.N(60), base, o, k)
			})
		}
	})
	r.AtLeast("kills", float64(k.kills), float64(r.N(500)), "")
	r.AtLeast("acknowledged", float64(k.acked), float64(r.N(50_000)), "")
	for _, f := range []judge.Fault{judge.Lost, judge.Duplicated, judge.DistilledTwice, judge.NeverDistilled, judge.Damaged, judge.NoProvenance, judge.Litter} {
		r.Zero(string(f), k.findings[f])
		delete(k.findings, f)
	}
	other := 0
	for _, n := range k.findings {
		other += n
	}
	r.Zero("other faults", other)
}

// killOften starts a part in one home again and again, kills it at a random
// moment, and examines what is left.
func killOften(t *testing.T, part string, n int, k *killed) {
	home := filepath.Join(fault.Dir(t), "home")
	s := judge.NewServer(t)
	s.Mix(3, "good", "good", "good", "good", "good", "good", "500", "fenced")
	o := &told{}
	for i := range n {
		ahead := time.Duration(2*i) * generation
		child := judge.StartChild(t, part, home, lifeModel+"="+s.URL, lifeAhead+"="+ahead.String())
		before := len(o.said)
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
		found := examined{}
		if part != "ingest" || last || i%5 == 4 { // it stands in the log or it does not; that is looked for now and then
			if last {
				s.Always("good")
			}
			var err error
			if found, err = examine(t.Context(), home, s.URL, clockAhead(ahead+generation), o, last && part == "life"); err != nil {
				t.Fatalf("%s, after kill %d: %v", part, i+1, err)
			}
		}
		k.add(t, fmt.Sprintf("%s, after kill %d", part, i+1), found.Findings, 1, len(o.said)-before)
		if t.Failed() {
			return
		}
	}
}

// dayHome makes a home in which a day has been lived, and returns what was told there.
func dayHome(t *testing.T) (home string, o *told) {
	s := judge.NewServer(t)
	s.Always("good")
	home, o = filepath.Join(fault.Dir(t), "base"), &told{}
	o.take(judge.StartChild(t, "day", home, lifeModel+"="+s.URL).Wait()...)
	return home, o
}

// killAtEveryCall runs a day in a copy of a home, and kills it before its first,
// second, … call of a kind, most times at most, until the day ends by itself.
func killAtEveryCall(t *testing.T, calls string, most int, base string, o *told, k *killed) {
	s := judge.NewServer(t)
	s.Always("good")
	home := filepath.Join(fault.Dir(t), "home")
	for n := 1; n <= most; n++ {
		cloneHome(t, home, base)
		here := &told{said: append([]string{}, o.said...), noted: append([]string{}, o.noted...)}
		under := fault.Inject{Calls: calls, What: "signal=KILL", When: fmt.Sprint(n)}.Command()
		child := judge.StartChildUnder(t, under, "day", home, lifeModel+"="+s.URL, lifeAhead+"="+generation.String())
		here.take(child.Wait()...)
		found, err := examine(t.Context(), home, s.URL, clockAhead(2*generation), here, true)
		if err != nil {
			t.Fatalf("killed before %s number %d: %v", calls, n, err)
		}
		kills := 1
		if child.Ended() {
			kills = 0
		}
		k.add(t, fmt.Sprintf("killed before %s number %d", calls, n), found.Findings, kills, len(here.said)-len(o.said))
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
		if t.Failed() || child.Ended() {
			return
		}
	}
}

// cloneHome copies a home, with its modes.
func cloneHome(t *testing.T, to, from string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy a home: %v: %s", err, out)
	}
}
