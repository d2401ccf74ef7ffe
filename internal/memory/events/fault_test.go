//go:build fault

package events

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every system call that the log makes fails once, and kills the process once,
// at each of its occurrences. Whatever happens: what was acknowledged is in the
// log once, what was refused is not in it, and the next process goes on.
func TestFailingSystemCalls(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skipf("SKIPPED, NOT TESTED: failing system calls; strace is not there: %v", err)
	}
	points := 0
	for _, call := range []string{"pwrite64", "fdatasync", "fsync", "ftruncate", "openat", "flock", "write"} {
		faults := []string{"signal=KILL", "error=EIO", "error=ENOSPC"}
		if call == "write" { // the child's own acknowledgements
			faults = faults[:1]
		}
		for _, fault := range faults {
			t.Run(call+" "+fault, func(t *testing.T) {
				for when := 1; when < 200; when++ {
					if !sweep(t, strace, call, fault, when) {
						break
					}
					points++
				}
			})
		}
	}
	t.Logf("%d points", points)
}

// sweep runs the script with one fault and judges the log. It reports whether
// the fault was met.
func sweep(t *testing.T, strace, call, fault string, when int) bool {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "events")
	trace := filepath.Join(t.TempDir(), "trace")
	child := exec.Command(strace, "-f", "-qq", "-o", trace, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, fault, when), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+dir, scriptVariable+"=1", "GOMAXPROCS=1")
	var out, errs bytes.Buffer
	child.Stdout, child.Stderr = &out, &errs
	runErr := child.Run()
	raw, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	met := bytes.Contains(raw, []byte("(INJECTED)")) || bytes.Contains(raw, []byte("killed by SIGKILL"))
	if runErr != nil && !met {
		t.Fatalf("at %d the child failed without a fault: %v\n%s", when, runErr, errs.String())
	}
	l := open(t, dir, options(t))
	if _, err := l.Write(context.Background(), said("after")); err != nil {
		t.Fatalf("at %d the next process cannot go on: %v", when, err)
	}
	rep, err := l.Verify(context.Background())
	if err != nil || !rep.Ok {
		t.Errorf("at %d: damage %v, gaps %v, %v", when, rep.Damage, rep.Gaps, err)
	}
	times := map[string]int{}
	for _, e := range readAll(t, l.Reader) {
		times[e.ID]++
	}
	for _, line := range strings.Split(out.String(), "\n") {
		outcome, ids, _ := strings.Cut(line, " ")
		for _, id := range strings.Fields(ids) {
			if outcome == "ok" && times[id] != 1 || outcome == "refused" && times[id] != 0 {
				t.Errorf("at %d: an event was answered %q and stands in the log %d times\n%s", when, outcome, times[id], errs.String())
			}
		}
	}
	return met
}
