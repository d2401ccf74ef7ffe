package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/doctor"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// command runs a command in a process of its own and returns its status and output.
func command(t *testing.T, home string, args ...string) (status int, out string) {
	t.Helper()
	p := newRunning(t, home)
	var stdout, stderr bytes.Buffer
	status = cli.Run(t.Context(), p.app, append(args, "--home", home, "--set", "recall.deadline_ms=20000"), cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return status, stdout.String() + stderr.String()
}

// holds lists the files below dir that hold a text.
func holds(t *testing.T, dir, text string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCanary(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	dir := filepath.Join(home, "agents", "a")
	if status, out := command(t, home, "memory", "canary", "--agent", "a"); status != 3 {
		t.Fatalf("of an agent that is not there: %d, %s", status, out)
	}
	if status, out := command(t, home, "ask", "--agent", "a", "--session", "s1", "I live in Lisbon."); status != 0 {
		t.Fatal(out)
	}
	before := statusOf(t, home, "a")
	status, out := command(t, home, "memory", "canary", "--agent", "a")
	if status != 0 || !strings.Contains(out, "recalled within") {
		t.Fatalf("%d, %s", status, out)
	}
	const mark = "A probe of the memory"
	if left := holds(t, dir, mark); len(left) > 0 {
		t.Errorf("left of the probe: %v", left)
	}
	st := statusOf(t, home, "a")
	if st.Canary == nil || !st.Canary.Ok || st.Canary.Open || len(st.Problems) > 0 || st.Gaps != 0 || st.Backlog != before.Backlog || *st.LastEvent != *before.LastEvent {
		t.Errorf("status %+v, canary %+v; before %+v", st, st.Canary, before)
	}
	if status, out := command(t, home, "events", "tail", "--agent", "a", "--json"); status != 0 || strings.Contains(out, `"probe"`) || strings.Contains(out, "erased") {
		t.Errorf("events tail: %d, %s", status, out)
	}
	if status, out := command(t, home, "doctor", "--agent", "a", "--canary"); status != 0 || !strings.Contains(out, "canary") {
		t.Errorf("doctor: %d, %s", status, out)
	}

	// A probe that was killed behind its writing.
	p := newRunning(t, home)
	log, release, err := p.logs.write(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	leave := func() int64 {
		t.Helper()
		last, err := log.LastSeq()
		if err != nil {
			t.Fatal(err)
		}
		if err := vitals.Update(t.Context(), dir, func(s *vitals.State) { s.Canary.Open, s.Canary.Seq = true, last }); err != nil {
			t.Fatal(err)
		}
		written, err := log.Write(t.Context(), memory.Event{Type: memory.Probe, Origin: memory.OriginSystem, SessionID: "openclawssy-canary", Text: mark + ": bako timu."})
		if err != nil {
			t.Fatal(err)
		}
		return written[0].Seq
	}
	leave()
	for _, args := range [][]string{{"memory", "recall", mark + " bako timu"}, {"memory", "search", mark + " bako timu", "--scope", "all"}, {"events", "tail"}} {
		if status, out := command(t, home, append(args, "--agent", "a", "--json")...); status != 0 || strings.Contains(out, "bako timu.") {
			t.Errorf("%v shows what was left: %d, %s", args, status, out)
		}
	}
	if left := holds(t, filepath.Join(dir, "memory"), "bako timu"); len(left) < 2 {
		t.Fatalf("it is in the log and in the archive, but found in %v", left)
	}
	if status, out := command(t, home, "doctor", "--agent", "a"); status != 1 || !strings.Contains(out, "was interrupted") {
		t.Errorf("doctor: %d, %s", status, out)
	}
	if status, out := command(t, home, "doctor", "--fix", "--agent", "a"); status != 0 || !strings.Contains(out, "mended") {
		t.Errorf("doctor --fix: %d, %s", status, out)
	}
	if left := holds(t, dir, mark); len(left) > 0 {
		t.Errorf("left behind doctor --fix: %v", left)
	}
	leave()
	if status, out := command(t, home, "memory", "canary", "--agent", "a"); status != 0 {
		t.Errorf("%d, %s", status, out)
	}
	if left := holds(t, dir, mark); len(left) > 0 {
		t.Errorf("left behind the next probe: %v", left)
	}
	release()
	list, err := events.Newest(t.Context(), log.Reader, 100)
	if err != nil || len(list) != 2 {
		t.Errorf("%d events, %v", len(list), err)
	}
}

// TestCanaryThatFails breaks the archive.
func TestCanaryThatFails(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if status, out := command(t, home, "ask", "--agent", "a", "--session", "s1", "I live in Lisbon."); status != 0 {
		t.Fatal(out)
	}
	archive := filepath.Join(home, "agents", "a", "memory", "archive.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.RemoveAll(archive + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(archive, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if status, out := command(t, home, "memory", "canary", "--agent", "a"); status != 1 || !strings.Contains(out, "could not be recalled") {
		t.Fatalf("%d, %s", status, out)
	}
	st := statusOf(t, home, "a")
	if st.Canary == nil || st.Canary.Ok || st.DegradedSince == nil || !hasProblem(st, "canary") {
		t.Errorf("status %+v", st)
	}
	if status, out := command(t, home, "doctor", "--agent", "a", "--json"); status != 1 || !hasFinding(t, out, "canary") {
		t.Errorf("doctor: %d, %s", status, out)
	}
	if err := os.RemoveAll(archive); err != nil {
		t.Fatal(err)
	}
	if status, out := command(t, home, "memory", "canary", "--agent", "a"); status != 0 {
		t.Fatalf("%d, %s", status, out)
	}
	if st := statusOf(t, home, "a"); hasProblem(st, "canary") || st.DegradedSince != nil {
		t.Errorf("status %+v", st)
	}
}

func hasProblem(st care.Status, code string) bool {
	for _, p := range st.Problems {
		if p.Code == code {
			return true
		}
	}
	return false
}

func hasFinding(t *testing.T, out, check string) bool {
	t.Helper()
	var rep doctor.Report
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&rep); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	for _, f := range rep.Findings {
		if f.Check == check {
			return true
		}
	}
	return false
}
