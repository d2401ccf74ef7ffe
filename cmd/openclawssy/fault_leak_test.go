//go:build fault && linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	rt "runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
)

// raced are the packages whose tests run under the race detector here: those in
// which goroutines share something. `make race` takes all of them, and longer.
var raced = []string{
	"./internal/sqlite", "./internal/journal", "./internal/memory/events", "./internal/memory/working", "./internal/memory/archive", "./internal/memory/recall", "./internal/memory/graph",
	"./internal/memory/embed/scan", "./internal/memory/meaning", "./internal/memory/vectors", "./internal/agents", "./internal/erasure", "./internal/spend", "./internal/egress",
	"./internal/scheduler", "./internal/runtime", "./internal/flush", "./internal/vitals", "./internal/message", "./internal/session", "./internal/httpapi", "./internal/mcpapi", "./internal/proxy",
}

// TestFaultF15 opens and closes everything a thousand times, does the same again and
// again in a home that stays as large, and runs what is concurrent under the race
// detector.
func TestFaultF15(t *testing.T) {
	r := fault.Begin(t, "F15")
	home := fault.Dir(t)
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

	stillHome(t, r)

	packages := raced[:max(1, min(len(raced), r.N(len(raced))))]
	// The detector sees what runs at the same time, and no more of it in a hundred
	// random histories than in twenty: -short.
	cmd := exec.Command("go", append([]string{"test", "-race", "-short", "-timeout=25m", "-tags=sqlite_fts5"}, packages...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "TMPDIR="+fault.Dir(t)) // nothing of it is to survive a power cut
	out, err := cmd.CombinedOutput()
	races := len(regexp.MustCompile(`WARNING: DATA RACE`).FindAll(out, -1))
	if err != nil {
		t.Errorf("under the race detector: %v\n%s", err, out)
	}
	r.Count("packages raced", len(packages))
	r.Zero("races", races)
}

// stillHome uses a home for long in which nothing new is said: turns are recalled,
// looked for, distilled where there is something, maintained and exported, and what is
// written is erased. The heap in use must not grow by it.
func stillHome(t *testing.T, r *fault.Run) {
	s := judge.NewServer(t)
	s.Always("good")
	l, err := newLifetime(filepath.Join(fault.Dir(t), "home"), s.URL, time.Now, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		do(l.importHistory(ctx, 100))
		do(l.note(ctx))
	}
	do(l.checkpoint(ctx))
	heap := func() float64 {
		debug.FreeOSMemory()
		var m rt.MemStats
		rt.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1024
	}
	rounds, half := r.N(200), 0.0
	for i := range rounds {
		for q := range 10 {
			l.house.recalls.Block(ctx, l.agent, recall.Request{Text: fmt.Sprint("Where do I keep the thing ", q, "?"), Session: "s9"})
		}
		do(l.search(ctx))
		do(l.checkpoint(ctx))
		switch i % 10 {
		case 0:
			do(l.maintain(ctx))
			do(l.call(ctx, "graph.export", struct{}{}, nil))
		case 5:
			log, release, err := l.house.logs.write(ctx, l.agent)
			do(err)
			_, err = log.Write(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "passing", Text: sentence(lifeWord())})
			release()
			do(err)
			do(l.call(ctx, "memory.erase", care.EraseRequest{Session: "passing", Yes: true}, nil))
		}
		if i == rounds/2 {
			half = heap()
		}
	}
	r.Count("rounds in a home that stays as large", rounds)
	r.Count("KiB of heap in use", int(heap()))
	r.AtMost("more than after half of them", heap()-half, 256, " KiB")
	do(l.house.close())
}

// openFiles counts this process's file descriptors.
func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
