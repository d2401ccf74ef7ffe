package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

// patient is a home with the agent "a", whose clock is moved by hand.
type patient struct {
	t     *testing.T
	home  agents.Home
	dir   agents.Dir
	red   *redact.Redactor
	now   time.Time
	parts Parts
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	home, err := agents.NewHome(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	p := &patient{t: t, home: home, now: noon}
	if p.dir, err = home.Make("a"); err != nil {
		t.Fatal(err)
	}
	if p.red, err = redact.New([]byte("a key of the tests, 32 bytes long")); err != nil {
		t.Fatal(err)
	}
	p.parts = Parts{
		Home: home, Getenv: func(string) string { return "" }, Now: func() time.Time { return p.now },
		Schedule: func(context.Context, memory.AgentID) (Schedule, error) { return Schedule{}, nil },
		Reach:    func(context.Context) error { return memory.ErrNotFound },
		Lag: func(ctx context.Context, _ memory.AgentID) (int64, error) {
			return archive.LookLag(ctx, p.dir.Path("memory", "archive.db"), 1000)
		},
		Reopen:   func(context.Context, memory.AgentID) error { return nil },
		Sessions: func(context.Context, memory.AgentID, memory.Session) error { return nil },
		Canary: func(context.Context, memory.AgentID) (vitals.Canary, error) {
			return vitals.Canary{}, memory.ErrNotFound
		},
		Acknowledge: func(ctx context.Context, _ memory.AgentID) (int64, error) {
			return vitals.Acknowledge(ctx, p.dir.Path(), p.now)
		},
	}
	return p
}

// log opens the agent's log; the test closes it.
func (p *patient) log() *events.Log {
	p.t.Helper()
	l, err := events.Open(p.t.Context(), p.dir.Path("memory", "events"), events.Options{Now: func() time.Time { return p.now }, Redact: p.red, Log: zerolog.Nop(),
		NewID: func() string { return ulid.MustNew(ulid.Timestamp(p.now), ulid.DefaultEntropy()).String() }})
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

func (p *patient) say(l *events.Log, text string) memory.Event {
	p.t.Helper()
	written, err := l.Write(p.t.Context(), memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s", Text: text, Timestamp: p.now})
	if err != nil {
		p.t.Fatal(err)
	}
	return written[0]
}

// items opens the agent's working memory; the test closes it.
func (p *patient) items(l *events.Log) *working.Store {
	p.t.Helper()
	s, err := working.Open(p.t.Context(), p.dir.Path("memory"), working.Options{Agent: "a", Log: l, Redact: p.red, Now: func() time.Time { return p.now },
		NewID: func() string { return ulid.MustNew(ulid.Timestamp(p.now), ulid.DefaultEntropy()).String() }})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *patient) closed(closers ...interface{ Close() error }) {
	p.t.Helper()
	for _, c := range closers {
		if err := c.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *patient) write(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// found returns the findings of a check, one a line.
func (p *patient) found(check string, req Request) string {
	p.t.Helper()
	rep, err := Examine(p.t.Context(), p.parts, req)
	if err != nil {
		p.t.Fatal(err)
	}
	var lines []string
	for _, f := range rep.Findings {
		if f.Check != check {
			continue
		}
		line := string(f.Severity) + ": " + f.What
		if f.Fixed != "" {
			line += " | " + f.Fixed
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// wants fails unless the findings of a check begin and end as told.
func (p *patient) wants(check, first, last string) {
	p.t.Helper()
	if got := p.found(check, Request{}); !strings.HasPrefix(got, first) || !strings.HasSuffix(got, last) || first == "" && got != "" {
		p.t.Errorf("%s: got %q, want %q … %q", check, got, first, last)
	}
}

func TestDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		free     uint64
		readOnly bool
		want     Severity // "" for well
	}{
		"much room":   {free: 600 << 20},
		"little room": {free: 500 << 20, want: Warning},
		"none":        {free: 1 << 20, want: Error},
		"read-only":   {free: 600 << 20, readOnly: true, want: Error},
	} {
		t.Run(name, func(t *testing.T) {
			var got Severity
			if f := ofDisk(tc.free, tc.readOnly); f != nil {
				got = f.Severity
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestClock(t *testing.T) {
	p := newPatient(t)
	l := p.log()
	p.say(l, "one")
	p.now = noon.Add(2 * time.Hour)
	p.say(l, "two")
	p.wants("clock", "", "")
	p.now = noon
	p.say(l, "three")
	p.closed(l)
	p.wants("clock", "warning: the newest event was written 2h0m0s in the future", "")
	p.now = noon.Add(3 * time.Hour)
	p.wants("clock", "info: it was set back by 2h0m0s before event 3", "")
}

func TestParkedAndLeases(t *testing.T) {
	p := newPatient(t)
	l := p.log()
	said := p.say(l, "my sister lives in Porto")
	s := p.items(l)
	lease, err := s.Acquire(t.Context(), "checkpoint", "pid 4711", 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	whole := memory.Range{First: said.Seq, Last: said.Seq}
	_, err = s.Apply(t.Context(), working.Batch{Lease: lease, Record: memory.Checkpoint{Range: whole, Events: 1, Cursor: memory.Cursor{Seq: said.Seq}, Mode: working.ModeParked,
		Parked: &memory.ParkedNote{Range: whole, Reason: "the model is away", Attempts: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	p.wants("working memory", "warning: 1 ranges of events could not be distilled: the model is away", "")
	p.wants("leases", "", "")
	p.now = noon.Add(time.Minute)
	p.wants("leases", "warning: a checkpoint hangs since 2026-05-08T12:00:15Z: pid 4711", "")
	if err := s.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	p.wants("leases", "", "")
	p.closed(s, l)
}

// TestLeaseOfTheDead leaves a row as a process that is killed does: without its lock.
func TestLeaseOfTheDead(t *testing.T) {
	p := newPatient(t)
	l := p.log()
	s := p.items(l)
	lease, err := s.Acquire(t.Context(), "maintenance", "pid 4711", 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	lock := p.dir.Path("memory", "lease-"+lease.Name+".lock")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	p.wants("leases", "info: a maintenance did not come to its end: pid 4711 was killed", "")
	if err := s.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	p.closed(s, l)
}

func TestUnknown(t *testing.T) {
	p := newPatient(t)
	for _, name := range []string{"archive.db", "graph.json"} {
		if err := os.MkdirAll(p.dir.Path("memory", name), 0o700); err != nil { // no file: it cannot be read
			t.Fatal(err)
		}
		p.wants(name, "unknown: it could not be looked at: ", "")
	}
	rep, err := Examine(t.Context(), p.parts, Request{})
	if err != nil || !rep.Failed() || !strings.HasSuffix(rep.Text(), "could not be looked at\n") {
		t.Errorf("what is not known counts as well: %s%v", rep.Text(), err)
	}
}

func TestLostEvents(t *testing.T) {
	p := newPatient(t)
	losses := vitals.Losses{Dir: func(memory.AgentID) (string, error) { return p.dir.Path(), nil }, Now: p.parts.Now, Log: zerolog.Nop()}
	losses.Add("a", vitals.LostEvents, 3)
	losses.Add("a", vitals.LostHooks, 7)
	losses.Close()
	const hooks = "\ninfo: 7 things that happened are missing from the graph's record of them, last at 2026-05-08T12:00:00Z"
	p.wants("health", "error: 3 events could not be taken", "12:00:00Z"+hooks)
	if got := p.found("health", Request{Acknowledge: true}); !strings.Contains(got, "| acknowledged: 3 lost events stay counted") {
		t.Errorf("acknowledged: %q", got)
	}
	p.wants("health", "info: 3 events could not be taken, last at 2026-05-08T12:00:00Z, acknowledged at 2026-05-08T12:00:00Z", hooks)
	more := vitals.Losses{Dir: losses.Dir, Now: p.parts.Now, Log: zerolog.Nop()}
	more.Add("a", vitals.LostEvents, 1)
	more.Close()
	p.wants("health", "error: 4 events could not be taken", hooks)
}

func TestIndexLag(t *testing.T) {
	p := newPatient(t)
	p.wants("index", "", "")
	a, err := archive.Open(t.Context(), p.dir.Path("memory", "archive.db"), archive.Options{Redact: p.red, Now: p.parts.Now})
	if err != nil {
		t.Fatal(err)
	}
	p.closed(a)
	p.wants("index", "warning: 1000 events are not searchable yet", "")
	if got := p.found("index", Request{Fix: true}); !strings.HasSuffix(got, "| indexed") {
		t.Errorf("mended: %q", got)
	}
}

func TestGraphJournal(t *testing.T) {
	p := newPatient(t)
	const good = "47b1ca90 {\"drop\":[],\"nodes\":[],\"edges\":[]}\n"
	path := p.dir.Path("memory", "graph.json.journal")
	p.write(path, good+good)
	p.wants("graph's journal", "", "")
	p.write(path, good+"00000000 {\"drop\":[]}\n"+good+"half of a li")
	p.wants("graph's journal", "error: 1 of 3 changes in graph.json.journal are damaged", "info: it ends with 12 bytes of a write that was interrupted, and never acknowledged")
}

func TestJobs(t *testing.T) {
	p := newPatient(t)
	p.parts.Schedule = func(context.Context, memory.AgentID) (Schedule, error) {
		return Schedule{Trouble: []string{"jobs.json was damaged"}, Jobs: []Job{{Name: "well"}, {Name: "nightly", Failed: 3, Last: noon, Detail: "no model"}, {Name: "slow", Stuck: true}, {Name: "late", Overdue: true}}}, nil
	}
	want := "warning: jobs.json was damaged\nwarning: nightly failed 3 times in a row, last at 2026-05-08T12:00:00Z: no model\n" +
		"warning: slow has passed its deadline and not returned\nwarning: late: overdue, and nothing runs the schedule"
	if got := p.found("jobs", Request{}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p.parts.Schedule = func(context.Context, memory.AgentID) (Schedule, error) { return Schedule{}, errors.New("no rights") }
	p.wants("jobs", "unknown: it could not be looked at: no rights", "")
}

func TestSpendAndTokens(t *testing.T) {
	p := newPatient(t)
	p.write(p.home.File("spend.json"), `{"days":{}}`)
	p.wants("spend", "", "")
	p.write(p.home.File("spend-embeddings.json"), `{"days`)
	p.wants("spend", "warning: ", "")
	p.write(p.home.File("spend-embeddings.json"), `{"damaged":["/x/spend.json.corrupt-1"]}`)
	p.wants("spend", "warning: spend-embeddings.json was damaged, and counting began anew", "")

	p.write(p.home.File("tokens.json"), `{`)
	p.wants("tokens", "error: ", "")
	if err := os.Remove(p.home.File("tokens.json")); err != nil {
		t.Fatal(err)
	}
	first := p.home.File("first.token")
	p.write(first, "secret")
	if err := os.Chtimes(first, noon, noon); err != nil {
		t.Fatal(err)
	}
	p.wants("tokens", "", "")
	p.now = noon.Add(25 * time.Hour)
	p.wants("tokens", "warning: "+first+" still holds a token in the clear", "")
	if err := os.Chmod(first, 0o644); err != nil {
		t.Fatal(err)
	}
	p.wants("modes", "warning: 1 files and directories are open to others, first "+first, "")
}

func TestEnvironment(t *testing.T) {
	p := newPatient(t)
	set := map[string]string{}
	p.parts.Getenv = func(name string) string { return set[name] }
	p.wants("environment", "", "")
	set["AINL_MEMORY_DB"] = filepath.Join(t.TempDir(), "gone", "records.db")
	p.wants("environment", "error: AINL_MEMORY_DB names "+set["AINL_MEMORY_DB"]+", and there is no such directory", "")
	set["AINL_MEMORY_DB"] = filepath.Join(t.TempDir(), "records.db") // the bridge makes it
	p.wants("environment", "", "")
	set["AINL_GRAPH_MEMORY_PATH"] = filepath.Join(t.TempDir(), "graph.json")
	p.write(set["AINL_GRAPH_MEMORY_PATH"], "{")
	p.wants("environment", "error: AINL_GRAPH_MEMORY_PATH names a file that cannot be used: ", "")
	p.write(set["AINL_GRAPH_MEMORY_PATH"], "{}")
	if _, err := p.home.Make("b"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("warning: %s is set, and there are 2 agents\nwarning: %s is set, and there are 2 agents", "AINL_MEMORY_DB", "AINL_GRAPH_MEMORY_PATH")
	p.wants("environment", want, "")
}
