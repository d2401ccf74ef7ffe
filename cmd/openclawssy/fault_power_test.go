//go:build fault && linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// TestFaultF2 cuts the power while a memory does everything at once. P1: what
// was acknowledged is on the disk.
func TestFaultF2(t *testing.T) {
	r := fault.Begin(t, "F2")
	s := judge.NewServer(t)
	c := counted{}
	cuts, acked, late := 0, 0, 0
	const each = 10 // cuts of one home
	for _, options := range []string{"commit=600", "commit=1"} {
		d := fault.NewVolume(t, 1024, options) // of less than half of that the doctor warns
		for n := r.N(30); n > 0 && !t.Failed(); n -= each {
			home := filepath.Join(d.Dir, fmt.Sprint("home-", n))
			o := &told{}
			for i := range min(n, each) {
				ahead := time.Duration(2*i) * generation
				child := judge.StartChild(t, "life", home, lifeModel+"="+s.URL, lifeAhead+"="+ahead.String())
				l := listen(child)
				for n := 1 + rand.IntN(20); l.count("") < n; {
					select {
					case <-l.done:
						t.Fatalf("%s: it ended by itself: %s", options, l.Err())
					case <-time.After(time.Millisecond):
					}
				}
				time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
				// What it says once the power is gone, no machine would have said: ext4
				// answers well to an fsync whose transaction the shutdown has aborted.
				before := l.count("")
				d.Cut(func() { // it may have ended by the errors that a dead disk gives
					if err := syscall.Kill(-l.Pid(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
						t.Error(err)
					}
					<-l.done
					rest, _ := l.End()
					late += len(rest) + l.count("") - before
				})
				o.take(l.lines[:before]...)
				cuts++
				found, err := examine(t.Context(), home, s.URL, clockAhead(ahead+generation), o, i == each-1)
				if err != nil {
					t.Errorf("%s, after cut %d: %v", options, i+1, err)
					break
				}
				c.add(t, fmt.Sprintf("%s, after cut %d", options, i+1), found.Findings)
				if t.Failed() {
					break
				}
			}
			acked += len(o.said) + len(o.noted)
			if err := os.RemoveAll(home); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.AtLeast("cuts", float64(cuts), float64(2*r.N(30)), "")
	r.Count("acknowledged", acked)
	r.Count("answers after the power was gone, which are not judged", late)
	r.Zero("acknowledged and lost", c[judge.Lost])
	r.Zero("corrupt or unreadable", c[judge.Damaged])
	other := 0
	for f, n := range c {
		if f != judge.Lost && f != judge.Damaged {
			other += n
		}
	}
	r.Zero("other faults", other)
}
