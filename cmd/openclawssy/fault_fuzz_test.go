//go:build fault

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// fuzzed are the targets, and the least executions of each.
var fuzzed = []struct {
	pkg, name string
	execs     int
}{
	{"internal/memory/events", "FuzzEventLine", 150_000},
	{"internal/journal", "FuzzLine", 50_000},
	{"internal/journal", "FuzzTornTail", 50_000},
	{"internal/memory/distill", "FuzzCheckpointJSON", 150_000},
	{"internal/redact", "FuzzRedact", 50_000},
	{"internal/memory/recall", "FuzzRecallBlock", 100_000},
	{"internal/memory/archive", "FuzzFTSQuery", 50_000},
	{"internal/memory", "FuzzAgentID", 150_000},
	{"internal/session", "FuzzSessionID", 150_000},
	{"internal/backup", "FuzzPath", 150_000},
	{"internal/memory/graph", "FuzzOpen", 30_000},
	{"internal/memory/record", "FuzzMarkdown", 30_000},
	{"internal/memory/record", "FuzzTTL", 30_000},
	{"internal/workspace", "FuzzMarkdown", 30_000},
	{"internal/mcpapi", "FuzzMCPFrame", 30_000},
	{"internal/bridge", "FuzzServe", 30_000},
	{"internal/scheduler", "FuzzTiming", 30_000},
}

// fuzzLimit is how long a target may take for its least executions before it counts
// as hung: many times what the slowest takes on a busy machine.
const fuzzLimit = 10 * time.Minute

// TestFaultF13 fuzzes every parser, each at least so often. The binaries, which
// count what they cover, are built before; the build cache keeps their packages.
func TestFaultF13(t *testing.T) {
	r := fault.Begin(t, "F13")
	began := time.Now()
	binaries, where, memory := map[string]string{}, fuzzCache(t), fault.Dir(t)
	for _, f := range fuzzed {
		if binaries[f.pkg] != "" {
			continue
		}
		binary := filepath.Join(t.TempDir(), "fuzz.test")
		cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags=sqlite_fts5", "-fuzz=.", "-o", binary, "./"+f.pkg)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build the fuzz targets of %s: %v\n%s", f.pkg, err, out)
		}
		binaries[f.pkg] = binary
	}
	built := time.Since(began)
	began = time.Now()
	executed := regexp.MustCompile(`execs: ([0-9]+)`)
	fresh := regexp.MustCompile(`new interesting: ([0-9]+)`)
	last := func(pattern *regexp.Regexp, out []byte) int {
		all := pattern.FindAllSubmatch(out, -1)
		if len(all) == 0 {
			return 0
		}
		n, err := strconv.Atoi(string(all[len(all)-1][1]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	total, crashes, short, interesting, computed := 0, 0, 0, 0, time.Duration(0)
	for _, f := range fuzzed {
		want, at := r.N(f.execs), time.Now()
		ctx, stop := context.WithTimeout(t.Context(), fuzzLimit)
		cmd := exec.CommandContext(ctx, binaries[f.pkg], "-test.run=^$", "-test.fuzz=^"+f.name+"$", fmt.Sprintf("-test.fuzztime=%dx", want),
			"-test.fuzzminimizetime=1s", "-test.parallel=2", "-test.fuzzcachedir="+filepath.Join(where, filepath.FromSlash(f.pkg)))
		cmd.Dir = filepath.Join("../..", filepath.FromSlash(f.pkg))
		cmd.Env = append(os.Environ(), "TMPDIR="+memory) // targets that write files are many times as fast where nothing is synced to a disk
		out, err := cmd.CombinedOutput()
		stop()
		n := last(executed, out)
		took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // of its workers too
		computed += took
		t.Logf("%s %s: %d executions in %s, %s of a core", f.pkg, f.name, n, time.Since(at).Round(time.Second/10), took.Round(time.Second/10))
		total, interesting = total+n, interesting+last(fresh, out)
		switch {
		case err != nil:
			crashes++
			t.Errorf("%s %s: %v\n%s", f.pkg, f.name, err, out)
		case n < want:
			short++
			t.Errorf("%s %s: %d executions of %d\n%s", f.pkg, f.name, n, want, out)
		}
	}
	r.Count("targets", len(fuzzed))
	r.Count("executions", total)
	r.Zero("crashes", crashes)
	r.Zero("targets below their least", short)
	r.Count("inputs that reach something new", interesting)
	r.Count("seconds of fuzzing", int(time.Since(began).Seconds()))
	r.Count("of a core", int(computed.Seconds()))
	r.Count("seconds of building", int(built.Seconds()))
}

// fuzzCache is where the inputs that reached something new are kept, beside those
// of `go test -fuzz`: the next run begins where this one ended.
func fuzzCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "fuzz", "github.com", "openclawssy", "openclawssy")
}

// TestFaultF14 opens a home of every released format with this build, as it is and
// read only, and counts what is missing.
func TestFaultF14(t *testing.T) {
	r := fault.Begin(t, "F14")
	all, err := os.ReadDir(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	lost, asked := 0, 0
	for _, f := range all {
		raw, err := os.ReadFile(filepath.Join(fixtures, f.Name(), "answers.txt"))
		if err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(t.TempDir(), "home")
		if err := os.CopyFS(home, os.DirFS(filepath.Join(fixtures, f.Name(), "home"))); err != nil {
			t.Fatal(err)
		}
		private(t, home)
		want, got := strings.Split(string(raw), "\n"), map[string]int{}
		for line := range strings.Lines(whatItTells(t, home) + "\n") {
			got[strings.TrimRight(line, "\n")]++
		}
		for _, line := range want {
			asked++
			if got[line]--; got[line] < 0 {
				lost++
				t.Logf("%s: lost %s", f.Name(), line)
			}
		}
	}
	r.Count("formats", len(all))
	r.Count("lines of answers compared", asked)
	r.Zero("lines lost or changed", lost)
}
