//go:build fault

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

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

// TestFaultF13 fuzzes every parser, each at least so often.
func TestFaultF13(t *testing.T) {
	r := fault.Begin(t, "F13")
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
	total, crashes, short, interesting := 0, 0, 0, 0
	for _, f := range fuzzed {
		want := r.N(f.execs)
		cmd := exec.Command("go", "test", "-tags=sqlite_fts5", "-run=^$", "-fuzz=^"+f.name+"$", fmt.Sprintf("-fuzztime=%dx", want), "-fuzzminimizetime=1s", "-parallel=2", "./"+f.pkg)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			crashes++
			t.Errorf("%s %s: %v\n%s", f.pkg, f.name, err, out)
			continue
		}
		n := last(executed, out)
		total, interesting = total+n, interesting+last(fresh, out)
		if n < want {
			short++
			t.Errorf("%s %s: %d executions of %d\n%s", f.pkg, f.name, n, want, out)
		}
	}
	r.Count("targets", len(fuzzed))
	r.Count("executions", total)
	r.Zero("crashes", crashes)
	r.Zero("targets below their least", short)
	r.Count("inputs that reach something new", interesting)
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
