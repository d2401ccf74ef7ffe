package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
)

// commandOf runs a command as the program does, and fails the test where it fails.
func commandOf(t *testing.T, home string, args ...string) string {
	t.Helper()
	return commandAt(t, time.Now, home, args...)
}

// commandAt is commandOf by another clock.
func commandAt(t *testing.T, now func() time.Time, home string, args ...string) string {
	t.Helper()
	h := newHouse(now, func(string) string { return "" }, nil)
	var out, errs bytes.Buffer
	status := cli.Run(context.Background(), h.app(), append(args, "--home", home), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	if status != 0 {
		t.Fatalf("%v ended with %d: %s%s", args, status, &out, &errs)
	}
	return out.String()
}

// wholeLife is what an agent goes through in a tour, and what is in a fixture.
var wholeLife = [][]string{
	{"ask", "--session", "s1", "--user", "mara", "I am severely allergic to peanuts and I live in Leeds."},
	{"ask", "--session", "s1", "Please remind me every Friday at 10:00 to send the report."},
	{"ask", "--session", "s2", "My sister Ana lives in Porto and has two dogs."},
	{"memory", "write", "--title", "tea", "--content", "The user drinks green tea."},
	{"memory", "write", "--title", "old", "--content", "The shed is green."},
	{"memory", "forget", "MEM-2"},
	{"memory", "checkpoint"},
	{"memory", "maintenance"},
	{"memory", "report"},
	{"memory", "canary"},
	{"memory", "recall", "What am I allergic to?"},
	{"record", "put", "--namespace", "workflow", "--record-kind", "workflow.step", "--record-id", "one", "--payload", `{"n":1}`},
	{"graph", "add_node", "--id", "ann", "--node-type", "semantic", "--label", "Ann"},
	{"agent", "message", "send", "the report is due", "--session-id", "s1"},
	{"token", "create", "--name", "laptop"},
	{"cron", "add", "nightly", "--schedule", "30 2 * * *", "--op", "memory.checkpoint"},
	{"cron", "run", "nightly"},
	{"memory", "erase", "--session", "s2", "--yes"},
}

// tour uses every feature that writes files, in a home and a workspace of its own.
func tour(t *testing.T, home string) {
	t.Helper()
	space, outside := filepath.Join(t.TempDir(), "space"), t.TempDir()
	if err := os.Mkdir(space, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(space, "MEMORY.md"), []byte("# Garden\n\nThe well is nine metres deep.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range append(slices.Clone(wholeLife), [][]string{
		{"workspace", "import", space},
		{"workspace", "search", "well", "--workspace", space},
		{"alf", "export", "--agent", "default", "--output", filepath.Join(outside, "a.alf")},
		{"backup", filepath.Join(outside, "b.tar.zst")},
		{"doctor"},
		{"status"},
	}...) {
		commandOf(t, home, args...)
	}
}

// formatRow is the first cell of a row of FORMATS.md: a path in backticks.
var formatRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestEveryFileIsInFormats uses the program, and looks every file that it leaves up
// in docs/FORMATS.md.
func TestEveryFileIsInFormats(t *testing.T) {
	text, err := os.ReadFile("../../docs/FORMATS.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*regexp.Regexp{}
	for _, m := range formatRow.FindAllStringSubmatch(string(text), -1) {
		var pattern strings.Builder
		for i, part := range regexp.MustCompile(`<[^>]*>`).Split(m[1], -1) {
			if i > 0 {
				pattern.WriteString(`[^/]+`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		known[m[1]] = regexp.MustCompile("^" + pattern.String() + "$")
	}
	home := filepath.Join(t.TempDir(), "home")
	tour(t, home)
	met := map[string]bool{}
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(home, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		found := false
		for row, pattern := range known {
			if pattern.MatchString(rel) {
				found, met[row] = true, true
			}
		}
		if !found {
			t.Errorf("docs/FORMATS.md has no row for %s", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(met) < 30 {
		t.Errorf("only %d of %d rows were met", len(met), len(known))
	}
}

// TestSecurityNamesTests looks up every test that docs/SECURITY.md names.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(code, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 50 {
		t.Fatalf("only %d tests are named", len(names))
	}
	for _, m := range names {
		if !there[m[1]] {
			t.Errorf("docs/SECURITY.md names %s, which is no test", m[1])
		}
	}
}
