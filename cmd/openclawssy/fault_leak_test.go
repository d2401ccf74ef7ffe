//go:build fault && linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// raced are the packages whose tests run under the race detector here: those in
// which goroutines share something. `make race` takes all of them, and longer.
var raced = []string{
	"./internal/journal", "./internal/memory/events", "./internal/memory/working", "./internal/memory/archive", "./internal/memory/recall", "./internal/memory/graph",
	"./internal/memory/embed/scan", "./internal/memory/meaning", "./internal/memory/vectors", "./internal/agents", "./internal/erasure", "./internal/spend", "./internal/egress",
	"./internal/scheduler", "./internal/runtime", "./internal/flush", "./internal/vitals", "./internal/message", "./internal/session", "./internal/httpapi", "./internal/mcpapi", "./internal/proxy",
}

// TestFaultF15 opens and closes everything a thousand times, and runs what is
// concurrent under the race detector.
func TestFaultF15(t *testing.T) {
	r := fault.Begin(t, "F15")
	home := t.TempDir()
	use := func(i int) {
		h := newHouse(time.Now, func(string) string { return "" }, nil)
		app := h.app()
		for _, args := range [][]string{
			{"memory", "write", "--title", fmt.Sprint("note ", i), "--content", fmt.Sprintf("The number of this note is %d.", i)},
			{"memory", "search", "number", "of", "this", "note"},
			{"graph", "status"},
			{"agent", "message", "inbox"},
			{"record", "list", "workflow"},
		} {
			var out, errs bytes.Buffer
			if status := cli.Run(context.Background(), app, append(args, "--home", home), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); status != 0 {
				t.Fatalf("%v ended with %d: %s%s", args, status, &out, &errs)
			}
		}
		if err := h.close(); err != nil {
			t.Fatal(err)
		}
	}
	use(0) // what is opened once per process is open now
	use(1)
	files, routines := openFiles(t), goleak.IgnoreCurrent()
	rounds := r.N(1000)
	for i := range rounds {
		use(i + 2)
	}
	r.Count("opened and closed", rounds)
	r.Zero("files left open", max(0, openFiles(t)-files))
	left := 0
	if err := goleak.Find(routines); err != nil { // those that are just ending are waited for
		left = max(1, strings.Count(err.Error(), "Goroutine "))
		t.Log(err)
	}
	r.Zero("goroutines left", left)

	packages := raced[:max(1, min(len(raced), r.N(len(raced))))]
	cmd := exec.Command("go", append([]string{"test", "-race", "-tags=sqlite_fts5"}, packages...)...)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	races := len(regexp.MustCompile(`WARNING: DATA RACE`).FindAll(out, -1))
	if err != nil {
		t.Errorf("under the race detector: %v\n%s", err, out)
	}
	r.Count("packages raced", len(packages))
	r.Zero("races", races)
}

// openFiles counts this process's file descriptors.
func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
