package main

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// writeFixture makes a fixture of this build's formats:
//
//	go test ./cmd/openclawssy -run TestFixturesOpen -write-fixture v2
//
// What it tells is written down beside it, to be read before it is committed.
var writeFixture = flag.String("write-fixture", "", "name of a fixture to make")

// clockAt is a clock that begins at a time. Fixtures are made, and read, by such a
// one: what is due, or how old, is the same whenever the test runs.
func clockAt(begin time.Time) func() time.Time {
	started := time.Now()
	return func() time.Time { return begin.Add(time.Since(started)) }
}

// madeAt and readAt are when fixtures are made and read.
var madeAt, readAt = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const fixtures = "testdata/fixtures"

// questions are readAt of every fixture; their answers must not change.
var questions = [][]string{
	{"memory", "list", "--status", "all", "--limit", "0", "--json"},
	{"memory", "history", "MEM-1", "--json"},
	{"memory", "recall", "What am I allergic to?", "--set", "recall.deadline_ms=20000"},
	{"memory", "checkpoint", "list", "--json"},
	{"events", "verify", "--json"},
	{"events", "tail", "100", "--json"},
	{"record", "get", "--namespace", "workflow", "--record-kind", "workflow.step", "--record-id", "one", "--json"},
	{"graph", "export", "--json"},
	{"agent", "message", "inbox", "--json"},
	{"cron", "list", "--json"},
	{"token", "list", "--json"},
}

// moving are parts of answers that are of the moment: when something is due, and
// where the home lies.
var moving = regexp.MustCompile(`"(next|due|due_at|overdue|path|waiting|last_used)": [^\n]*|--- RELEVANT MEMORY ---\n\([^)]*\)|"score": [^\n]*`)

// whatItTells asks all questions of a home.
func whatItTells(t *testing.T, home string) string {
	t.Helper()
	var b strings.Builder
	for _, q := range questions {
		b.WriteString("$ openclawssy " + strings.Join(q, " ") + "\n")
		b.WriteString(strings.ReplaceAll(moving.ReplaceAllString(commandAt(t, clockAt(readAt), home, q...), "…"), home, "HOME"))
	}
	return b.String()
}

// TestFixturesOpen opens a home of every released format with this build, as it is
// and after its database was lost, and compares what it tells.
func TestFixturesOpen(t *testing.T) {
	if *writeFixture != "" {
		makeFixture(t, filepath.Join(fixtures, *writeFixture))
	}
	all, err := os.ReadDir(fixtures)
	if err != nil || len(all) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, f := range all {
		t.Run(f.Name(), func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(fixtures, f.Name(), "answers.txt"))
			if err != nil {
				t.Fatal(err)
			}
			home := filepath.Join(t.TempDir(), "home")
			if err := os.CopyFS(home, os.DirFS(filepath.Join(fixtures, f.Name(), "home"))); err != nil {
				t.Fatal(err)
			}
			private(t, home)
			if got := whatItTells(t, home); got != string(want) {
				t.Errorf("it tells something else now:\n%s", firstDifference(string(want), got))
			}
			if got := commandAt(t, clockAt(readAt), home, "doctor"); !strings.Contains(got, "nothing needs to be done") {
				t.Errorf("doctor finds fault with it:\n%s", got)
			}
			commandAt(t, clockAt(readAt), home, "memory", "write", "--title", "new", "--content", "Something was written by this build.")
			for _, lost := range []string{"memory.db", "archive.db", "memory.open"} {
				if err := os.Remove(filepath.Join(home, "agents", "default", "memory", lost)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			if got := commandAt(t, clockAt(readAt), home, "memory", "list", "--status", "all", "--limit", "0", "--json"); strings.Count(got, `"handle"`) != strings.Count(string(want)[:strings.Index(string(want), "$ openclawssy memory history")], `"handle"`)+1 {
				t.Errorf("rebuilt from its log it has other memories:\n%s", got)
			}
		})
	}
}

// firstDifference shows the line at which two texts part.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "want " + a[i] + "\ngot  " + b[i] + "\nafter " + strings.Join(a[max(0, i-4):i], "\n")
		}
	}
	return "one is longer"
}

// private gives the files of a copy the modes that they have in a home.
func private(t *testing.T, home string) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if d.IsDir() {
			mode = 0o700
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// makeFixture makes a home with a little of everything, without what belongs to
// processes or is made again from the rest.
func makeFixture(t *testing.T, dir string) {
	t.Helper()
	home := filepath.Join(dir, "home")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	now := clockAt(madeAt)
	for _, args := range wholeLife {
		commandAt(t, now, home, args...)
	}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if name := filepath.Base(path); err == nil && !d.IsDir() && (strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "vectors") || name == "memory.open" || strings.HasPrefix(name, "weekly-")) {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	told := filepath.Join(t.TempDir(), "home")
	if err := os.CopyFS(told, os.DirFS(home)); err != nil {
		t.Fatal(err)
	}
	private(t, told)
	if err := os.WriteFile(filepath.Join(dir, "answers.txt"), []byte(whatItTells(t, told)), 0o644); err != nil {
		t.Fatal(err)
	}
}
