//go:build fault && linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	cuts, acked := 0, 0
	const each = 10 // cuts of one home
	for _, options := range []string{"commit=600", "commit=1"} {
		d := fault.NewVolume(t, 256, options)
		for n := r.N(30); n > 0 && !t.Failed(); n -= each {
			home := filepath.Join(d.Dir, fmt.Sprint("home-", n))
			o := &told{}
			for i := range min(n, each) {
				ahead := time.Duration(2*i) * generation
				child := judge.StartChild(t, "life", home, lifeModel+"="+s.URL, lifeAhead+"="+ahead.String())
				for range 1 + rand.IntN(20) {
					line, more := child.Ack()
					if !more {
						break
					}
					o.take(line)
				}
				time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
				d.Cut(func() { // it may have ended by the errors that a dead disk gives
					rest, _ := child.End()
					o.take(rest...)
				})
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
