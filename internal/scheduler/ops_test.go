package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/weave"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

func TestAddRefuses(t *testing.T) {
	h := newHome(t)
	s := h.process()
	h.add("a", AddRequest{Name: "taken", Schedule: "@hourly", Op: "test.chatter"})
	valid := AddRequest{Name: "n", Schedule: "@hourly", Op: "test.echo", Input: map[string]any{"text": "x"}}
	for name, tc := range map[string]struct {
		edit  func(*AddRequest)
		kind  memory.Kind
		field string
	}{
		"name":               {func(r *AddRequest) { r.Name = "../x" }, memory.ErrInvalid, "name"},
		"upper-case name":    {func(r *AddRequest) { r.Name = "Nightly" }, memory.ErrInvalid, "name"},
		"name taken":         {func(r *AddRequest) { r.Name = "taken" }, memory.ErrConflict, ""},
		"schedule":           {func(r *AddRequest) { r.Schedule = "now and then" }, memory.ErrInvalid, "schedule"},
		"timezone":           {func(r *AddRequest) { r.Timezone = "Mars/Olympus" }, memory.ErrInvalid, "timezone"},
		"deadline":           {func(r *AddRequest) { r.Deadline = "soon" }, memory.ErrInvalid, "deadline"},
		"endless deadline":   {func(r *AddRequest) { r.Deadline = "720h" }, memory.ErrInvalid, "deadline"},
		"nothing to do":      {func(r *AddRequest) { r.Op, r.Input = "", nil }, memory.ErrInvalid, "op"},
		"two things to do":   {func(r *AddRequest) { r.Message, r.Input = "hi", nil }, memory.ErrInvalid, "op"},
		"no such operation":  {func(r *AddRequest) { r.Op = "test.ecco" }, memory.ErrNotFound, ""},
		"destroys":           {func(r *AddRequest) { r.Op, r.Input = "test.erase", nil }, memory.ErrDenied, ""},
		"input missing":      {func(r *AddRequest) { r.Input = nil }, memory.ErrInvalid, "text"},
		"input unknown":      {func(r *AddRequest) { r.Input["agent"] = "b" }, memory.ErrInvalid, "agent"},
		"input of a message": {func(r *AddRequest) { r.Op, r.Message = "", "hi" }, memory.ErrInvalid, "input"},
		"blank message":      {func(r *AddRequest) { r.Op, r.Input, r.Message = "", nil, "  " }, memory.ErrInvalid, "message"},
		"long message":       {func(r *AddRequest) { r.Op, r.Input, r.Message = "", nil, strings.Repeat("x", maxMessage+1) }, memory.ErrInvalid, "message"},
		"message's tool":     {func(r *AddRequest) { r.Op, r.Input, r.Message = "", nil, "/tool no.such {}" }, memory.ErrNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bad := valid
			bad.Input = map[string]any{"text": "x"}
			tc.edit(&bad)
			if _, err := s.Add(context.Background(), "a", bad); !errors.Is(err, tc.kind) || memory.FieldOf(err) != tc.field {
				t.Errorf("Add = %v (field %q), want %s of field %q", err, memory.FieldOf(err), tc.kind, tc.field)
			}
			if l, err := s.List(context.Background(), "a", struct{}{}); err != nil || len(l.Jobs) != 1 {
				t.Errorf("after the refusal List = %+v, %v", l, err)
			}
		})
	}
}

// TestOpsFromJSON goes through every operation as a face does.
func TestOpsFromJSON(t *testing.T) {
	h := newHome(t)
	h.agents = []memory.AgentID{"a", "b"}
	var c op.Catalog
	c.Add(h.process().Ops()...)
	c.Freeze()
	call := func(agent memory.AgentID, name, input string, want memory.Kind) string {
		t.Helper()
		o, err := c.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		out, err := o.Call(context.Background(), agent, json.RawMessage(input))
		if memory.KindOf(err) != want {
			t.Fatalf("%s %s = %v, want %s", name, input, err, want)
		}
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, o := range c.All() {
		if o.Example == "" {
			continue
		}
		if err := o.Check(json.RawMessage(o.Example)); err != nil {
			t.Errorf("example of %s: %v", o.Name, err)
		}
	}
	if got := call("a", "cron.list", `{}`, ""); got != `{"agent":"a","serving":false,"jobs":[],"trouble":[]}` {
		t.Errorf("an empty list is %s", got)
	}
	call("a", "cron.add", `{"name":"echo","schedule":"@every 6h","op":"test.echo","input":{"text":"hi"}}`, "")
	if got := call("a", "cron.list", `{}`, ""); !strings.Contains(got, `"runs":[]`) || !strings.Contains(got, `"input":{"text":"hi"}`) || !strings.Contains(got, `"deadline":"10m0s"`) {
		t.Errorf("list = %s", got)
	}
	if got := call("b", "cron.list", `{}`, ""); strings.Contains(got, "echo") {
		t.Errorf("agent b sees a's jobs: %s", got)
	}
	for _, name := range []string{"cron.delete", "cron.pause", "cron.resume", "cron.run"} {
		call("b", name, `{"name":"echo"}`, memory.ErrNotFound)
	}
	call("a", "cron.run", `{}`, memory.ErrInvalid)
	call("a", "cron.run", `{"name":"echo","due":true}`, memory.ErrInvalid)
	if got := call("a", "cron.run", `{"name":"echo"}`, ""); !strings.Contains(got, `"outcome":"ok"`) || !strings.Contains(got, `hi`) {
		t.Errorf("run = %s", got)
	}
	if got := call("a", "cron.run", `{"due":true}`, ""); got != `{"agent":"a","runs":[]}` {
		t.Errorf("run --due with nothing due = %s", got)
	}
	if got := call("a", "cron.pause", `{"name":"echo"}`, ""); !strings.Contains(got, `"paused":true`) || !strings.Contains(got, `"next":null`) {
		t.Errorf("pause = %s", got)
	}
	call("a", "cron.run", `{"name":"echo"}`, "") // by hand it runs all the same
	call("a", "cron.resume", `{"name":"echo"}`, "")
	if got := call("a", "cron.delete", `{"name":"echo"}`, ""); !strings.Contains(got, `"text":"hi"`) {
		t.Errorf("delete = %s", got)
	}
	call("a", "cron.run", `{"name":"echo"}`, memory.ErrNotFound)
}

func TestRunDueRunsWhatIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		for name, schedule := range map[string]string{"early": "@every 1h", "late": "@every 3h"} {
			h.add("a", AddRequest{Name: name, Schedule: schedule, Op: "test.chatter"})
		}
		h.add("a", AddRequest{Name: "failing", Schedule: "@every 1h", Op: "test.fail"})
		time.Sleep(2 * time.Hour)
		out, err := h.process().Run(context.Background(), "a", RunRequest{Due: true})
		if !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "failing") || len(out.Runs) != 2 || out.Runs[0].Name != "early" ||
			!out.Runs[0].Due.Equal(h.began.Add(time.Hour)) {
			t.Errorf("Run = %+v, %v", out, err)
		}
		if out, err := h.process().Run(context.Background(), "a", RunRequest{Due: true}); err != nil || len(out.Runs) != 0 {
			t.Errorf("Run again = %+v, %v", out, err)
		}
	})
}

func TestDefaultJobsFollowTheConfiguration(t *testing.T) {
	ctx := context.Background()
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		names := func() string {
			t.Helper()
			l, err := h.process().List(ctx, "a", struct{}{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, j := range l.Jobs {
				got = append(got, j.Name+" "+j.Schedule)
			}
			return strings.Join(got, ", ")
		}
		h.auto = Auto{Checkpoint: true, Maintenance: true}
		if got := names(); got != "memory.checkpoint @every 6h, memory.maintenance 30 2 * * 0" {
			t.Errorf("default jobs = %s", got)
		}
		if _, err := os.Stat(filepath.Join(h.dir, "scheduler")); !os.IsNotExist(err) {
			t.Error("listing wrote the default jobs")
		}
		if _, err := h.process().Delete(ctx, "a", NameRequest{"memory.checkpoint"}); !errors.Is(err, memory.ErrConflict) || memory.HintOf(err) == "" {
			t.Errorf("Delete of a default job = %v", err)
		}
		if j, err := h.process().Pause(ctx, "a", NameRequest{"memory.checkpoint"}); err != nil || !j.Job.Paused {
			t.Errorf("Pause of a default job = %+v, %v", j, err)
		}
		h.live(24 * time.Hour)
		if n := h.count("a/memory.checkpoint"); n != 0 {
			t.Errorf("the paused default job ran %d times", n)
		}
		h.auto.Maintenance = false
		if got := names(); got != "memory.checkpoint @every 6h" {
			t.Errorf("with maintenance off the default jobs = %s", got)
		}
		h.add("a", AddRequest{Name: "memory.maintenance", Schedule: "@daily", Op: "memory.maintenance"})
		h.auto = Auto{Maintenance: true}
		if got := names(); got != "memory.maintenance @daily" {
			t.Errorf("beside a job of that name the default jobs = %s", got)
		}
		h.agents = nil
		if got := names(); got != "memory.maintenance @daily" {
			t.Errorf("without the agent the jobs = %s", got)
		}
	})
}

// TestDefaultJobsCountFromTheAgentsBeginning has an agent that only commands which end
// at once have worked with: its jobs grow overdue all the same, and the first process
// that lasts runs them; one that began just now is left to its interval.
func TestDefaultJobsCountFromTheAgentsBeginning(t *testing.T) {
	ctx := context.Background()
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		h.agents = []memory.AgentID{"a"}
		began := time.Now().Add(-time.Minute)
		h.auto = Auto{Checkpoint: true, Began: func() time.Time { return began }}
		look := func() JobStatus {
			t.Helper()
			l, err := h.process().List(ctx, "a", struct{}{})
			if err != nil || len(l.Jobs) != 1 {
				t.Fatal(l, err)
			}
			return l.Jobs[0]
		}
		if j := look(); j.Overdue || j.Next.Sub(began) > 6*time.Hour {
			t.Errorf("at the beginning: %+v", j)
		}
		h.live(time.Hour)
		if n := h.count("a/memory.checkpoint"); n != 0 {
			t.Errorf("an agent that has just begun had %d checkpoints", n)
		}
		h.agents = []memory.AgentID{"b"}
		began = time.Now().Add(-7 * time.Hour)
		l, err := h.process().List(ctx, "b", struct{}{})
		if err != nil || len(l.Jobs) != 1 || !l.Jobs[0].Overdue {
			t.Fatalf("seven hours later: %+v, %v", l, err)
		}
		h.live(time.Hour)
		if n := h.count("b/memory.checkpoint"); n != 1 {
			t.Errorf("what was overdue ran %d times", n)
		}
	})
}

// hookedRuns is what hooks were told.
type hookedRuns struct{ told []string }

func (h *hookedRuns) RunStarts(agent memory.AgentID) {
	h.told = append(h.told, string(agent)+" starts")
}

func (h *hookedRuns) RunEnded(agent memory.AgentID, r weave.Run) {
	text := fmt.Sprintf("%s ended %s %s %s %s %s", agent, r.Name, r.Does, r.Trigger, r.Outcome, r.Output)
	if r.OK {
		text += " ok"
	}
	if r.Idle {
		text += " idle"
	}
	h.told = append(h.told, text)
}

// TestOnlyWhatHappenedIsRecorded runs a job that adds an event, one that does
// nothing, and one that fails, on a real log.
func TestOnlyWhatHappenedIsRecorded(t *testing.T) {
	ctx := context.Background()
	h := newHome(t)
	dir := filepath.Join(h.dir, "agents", "a")
	log, err := events.Open(ctx, filepath.Join(dir, "events"), events.Options{Now: time.Now, NewID: func() string { return ulid.Make().String() }, Redact: stars{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	var catalog op.Catalog
	busy := false
	catalog.Add(op.New("test.work", "For tests.", op.Write, func(ctx context.Context, _ memory.AgentID, _ noInput) (done, error) {
		if busy {
			if _, err := log.Write(ctx, memory.Event{Type: memory.Maintenance, Origin: memory.OriginSystem, Text: "tidied"}); err != nil {
				return done{}, err
			}
		}
		return done{true}, nil
	}), op.New("test.fail", "For tests.", op.Write, func(context.Context, memory.AgentID, noInput) (done, error) {
		return done{}, memory.Errorf(memory.ErrConflict, "hunter2 is in use")
	}))
	runs := runlog.Open(dir, runlog.Options{Agent: "a", Now: time.Now, NewID: func() string { return ulid.Make().String() }, Redact: stars{}})
	hooks := &hookedRuns{}
	s := New(Options{Hooks: hooks, Dir: func() string { return filepath.Join(h.dir, "scheduler") }, Now: time.Now, Elapsed: func() time.Duration { return time.Since(h.began) },
		Catalog: catalog.Freeze(), Redact: stars{}, Deadline: func() time.Duration { return time.Minute },
		Agents: func() ([]memory.AgentID, error) { return h.agents, nil }, Auto: func(memory.AgentID) (Auto, error) { return Auto{}, nil },
		Reads: func(context.Context, memory.AgentID) (*events.Reader, func(), error) {
			return log.Reader, func() {}, nil
		},
		Writes: func(context.Context, memory.AgentID) (*events.Log, func(), error) { return log, func() {}, nil },
		Audit:  func(context.Context, memory.AgentID) (*runlog.Store, func(), error) { return runs, func() {}, nil }, Log: zerolog.Nop()})
	for _, name := range []string{"work", "fail"} {
		if _, err := s.Add(ctx, "a", AddRequest{Name: name, Schedule: "@hourly", Op: "test." + name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		busy bool
		want string // texts of the events that it adds
		told string // what the hooks are told
	}{
		{"work", false, "", `a starts; a ended work test.work hand ok {"ok":true} ok idle`},
		{"work", true, "tidied; scheduled job work (test.work): ok", `a starts; a ended work test.work hand ok {"ok":true} ok`},
		{"fail", false, "scheduled job fail (test.fail): failed: *** is in use", "a starts; a ended fail test.fail hand failed *** is in use idle"},
	} {
		hooks.told = nil
		busy = step.busy
		before, err := log.LastSeq()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(ctx, "a", RunRequest{Name: step.name}); (err != nil) != (step.name == "fail") {
			t.Fatalf("running %s = %v", step.name, err)
		}
		added, _, err := log.Read(ctx, memory.Cursor{Seq: before}, 100)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, e := range added {
			texts = append(texts, e.Text)
			if e.Type.IsTurn() {
				t.Errorf("running %s added a turn: %+v", step.name, e)
			}
		}
		if got := strings.Join(texts, "; "); got != step.want {
			t.Errorf("running %s added %q, want %q", step.name, got, step.want)
		}
		if got := strings.Join(hooks.told, "; "); got != step.told {
			t.Errorf("running %s told %q, want %q", step.name, got, step.told)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl"))
	if err != nil || len(names) == 0 {
		t.Fatalf("audit logs: %v, %v", names, err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != 2 || !strings.Contains(string(text), `"caller":"cron"`) || strings.Contains(string(text), "hunter2") {
		t.Errorf("audit log:\n%s", text)
	}
}
