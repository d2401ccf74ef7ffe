package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/judge"
)

// season is a home with a model server, worked on by one long-lived process after
// another under a clock that is moved by hand.
type season struct {
	t     *testing.T
	home  string
	at    time.Time
	model *judge.Server
	house *house // of the process that runs; nil for none
	app   cli.App
}

// run runs a command in the process that runs, or in a new one.
func (s *season) run(args ...string) string {
	s.t.Helper()
	if s.house == nil {
		s.house = newHouse(func() time.Time { return s.at }, func(string) string { return "" }, nil)
		s.app = s.house.app()
	}
	var out, errs bytes.Buffer
	args = append(args, "--home", s.home, "--set", "recall.deadline_ms=20000", "--set", "model.provider=generic", "--set", "model.name=stub", "--set", "model.base_url="+s.model.URL)
	status := cli.Run(context.Background(), s.app, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if status != 0 {
		s.t.Fatalf("%v at %s ended with %d: %s%s", args, s.at, status, &out, &errs)
	}
	return out.String()
}

// end ends the process.
func (s *season) end() {
	s.t.Helper()
	if s.house == nil {
		return
	}
	if err := s.house.close(); err != nil {
		s.t.Error(err)
	}
	s.house = nil
}

// trace is what an agent's directory holds.
type trace struct {
	bytes, events int64
	checkpoints   int
	reports       int
	calls         int // of the model, by anybody
}

func (s *season) trace(agent string) trace {
	s.t.Helper()
	s.end() // what is in memory or in a write-ahead log is in the files now
	tr := trace{calls: len(s.model.Calls())}
	dir := filepath.Join(s.home, "agents", agent)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		tr.bytes += st.Size()
		switch filepath.Base(filepath.Dir(path)) {
		case "checkpoints":
			tr.checkpoints++
		case "reports":
			tr.reports++
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var status struct{ Events int64 }
	if err := json.Unmarshal([]byte(s.run("memory", "status", "--agent", agent, "--json")), &status); err != nil {
		s.t.Fatal(err)
	}
	tr.events = status.Events
	return tr
}

// messages returns the texts in an agent's inbox.
func (s *season) messages(agent string) []string {
	s.t.Helper()
	var inbox struct {
		Messages []struct{ Handle, Text string }
	}
	if err := json.Unmarshal([]byte(s.run("agent", "message", "inbox", "--limit", "0", "--agent", agent, "--json")), &inbox); err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, m := range inbox.Messages {
		out = append(out, m.Text)
	}
	return out
}

// TestSeason lets 90 days go by over two agents, with all that the schedule does:
// checkpoints, maintenance, packing, reports and messages. One was talked to for three
// days, the other only exists.
func TestSeason(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &season{t: t, home: t.TempDir(), at: time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC), model: judge.Serve(l)}
	defer func() {
		if err := s.model.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, said := range []string{"I live in Lisbon and I like green tea a lot.", "My sister Anna is a carpenter in Porto.", "Remind me tomorrow at 16:00 to call the bank."} {
		s.run("ask", "--agent", "busy", "--session", "s1", "--user", "maria", "--channel", "cli", said)
		s.at = s.at.Add(24 * time.Hour)
	}
	if err := os.MkdirAll(filepath.Join(s.home, "agents", "quiet"), 0o700); err != nil {
		t.Fatal(err)
	}
	defer s.end()
	agents := []string{"busy", "quiet"}
	var settled map[string]trace
	for day := range 90 {
		if day%20 == 0 {
			s.end()
		}
		for range 2 {
			s.at = s.at.Add(12 * time.Hour)
			for _, agent := range agents {
				s.run("cron", "run", "--due", "--agent", agent)
			}
		}
		// By then the old days are packed, and all there was to do is done.
		if day == 45 {
			settled = map[string]trace{}
			for _, agent := range agents {
				settled[agent] = s.trace(agent)
			}
		}
	}
	for _, agent := range agents {
		if got := s.trace(agent); got != settled[agent] {
			t.Errorf("%s has not come to rest: %+v, 45 days later %+v", agent, settled[agent], got)
		}
	}
	if got := settled["quiet"]; got.events+int64(got.checkpoints+got.reports) > 0 {
		t.Errorf("an agent that nobody talked to: %+v", got)
	}
	busy := settled["busy"]
	if busy.checkpoints == 0 || busy.reports != 2 || busy.calls == 0 {
		t.Errorf("the agent that was talked to: %+v, want checkpoints and the two files of one report", busy)
	}
	packed, err := filepath.Glob(filepath.Join(s.home, "agents", "busy", "memory", "events", "*.jsonl.zst"))
	if err != nil || len(packed) == 0 {
		t.Errorf("nothing was packed: %v", err)
	}
	seen := map[string]bool{}
	for _, text := range s.messages("busy") {
		if seen[text] {
			t.Errorf("sent twice: %q", text)
		}
		seen[text] = true
	}
	s.end()
	t.Logf("%+v, %d messages", busy, len(seen))
}
