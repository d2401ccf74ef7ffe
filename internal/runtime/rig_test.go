package runtime

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/flush"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/session"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret is one that the redactor knows; joined, so that no scanner of
// repositories takes it for a real one.
var secret = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"

// script is a model that says what it is told to.
type script struct {
	mu      sync.Mutex
	replies []func(ctx context.Context, req llm.Request) (llm.Reply, error)
	seen    []llm.Request
}

func (s *script) Chat(ctx context.Context, req llm.Request) (llm.Reply, error) {
	s.mu.Lock()
	s.seen = append(s.seen, req)
	next := says("fine")
	if len(s.replies) > 0 {
		next = s.replies[0]
		s.replies = s.replies[1:]
	}
	s.mu.Unlock()
	reply, err := next(ctx, req)
	if err == nil && req.Stream != nil {
		req.Stream(reply.Text)
	}
	reply.Model, reply.Usage = "script", llm.Usage{Calls: 1, TokensIn: 10, TokensOut: 1}
	return reply, err
}

// last is the last request that the model got.
func (s *script) last() llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

func says(text string) func(context.Context, llm.Request) (llm.Reply, error) {
	return func(context.Context, llm.Request) (llm.Reply, error) { return llm.Reply{Text: text}, nil }
}

// calls makes a reply that asks for tools: name, arguments, name, arguments, …
func calls(pairs ...string) func(context.Context, llm.Request) (llm.Reply, error) {
	var r llm.Reply
	for i := 0; i < len(pairs); i += 2 {
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: fmt.Sprintf("call_%d", i/2), Name: pairs[i], Arguments: pairs[i+1]})
	}
	return func(context.Context, llm.Request) (llm.Reply, error) { return r, nil }
}

// fixed is a memory that always answers the same.
type fixed string

func (f fixed) Block(_ context.Context, _ memory.AgentID, req recall.Request) recall.Block {
	return recall.Block{Text: string(f), Lines: []string{}, Trace: recall.Trace{Terms: strings.Fields(req.Text), Candidates: []recall.Candidate{{Handle: "MEM-1", Score: .5, In: true}}}}
}

// queue returns the real queue of flushes of a home, with nobody who drains it:
// what a checkpoint would have distilled is all up to distilled.
func queue(dir string, distilled *atomic.Int64) *flush.Queue {
	return flush.New(flush.Options{
		Dir:       func(agent memory.AgentID) (string, error) { return filepath.Join(dir, "agents", string(agent)), nil },
		Distilled: func(context.Context, memory.AgentID) (int64, error) { return distilled.Load(), nil },
		Now:       time.Now, Log: zerolog.Nop(),
	})
}

// asks counts what a queue is asked, and may refuse it.
type asks struct {
	Flusher
	asked []vitals.Edge // that were news
	fail  error
}

func (a *asks) Ask(ctx context.Context, agent memory.AgentID, why vitals.Edge, upTo int64) (bool, error) {
	if a.fail != nil {
		return false, a.fail
	}
	queued, err := a.Flusher.Ask(ctx, agent, why, upTo)
	if queued {
		a.asked = append(a.asked, why)
	}
	return queued, err
}

// rig is a home with one process in it.
type rig struct {
	*Runtime
	t     *testing.T
	dir   string
	model *script
	cfg   config.Config
	log   *events.Log
	echo  []string // what test.echo was asked, and by whom
}

type text struct {
	Text string `json:"text"`
}

// newRig makes a runtime on a home in dir; edit may change its parts before.
func newRig(t *testing.T, dir string, edit func(*rig, *Options)) *rig {
	t.Helper()
	cfg, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("key"))
	red, err := redact.New(sum[:])
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, dir: dir, model: &script{}, cfg: cfg}
	g.cfg.Runtime.Tools = []string{"test.*", "memory.search"}
	var n atomic.Int64
	start := time.Date(2026, 5, 8, 11, 56, 0, 0, time.UTC)
	now := func() time.Time { return start.Add(time.Duration(n.Add(1)) * time.Microsecond) }
	newID := func() string { return ulid.Make().String() }
	agent := filepath.Join(dir, "agents", "default")
	o := Options{
		Config:  func(memory.AgentID) (config.Config, error) { return g.cfg, nil },
		Model:   func(memory.AgentID) (llm.Chatter, error) { return g.model, nil },
		Catalog: g.catalog(),
		Logs: func(ctx context.Context, _ memory.AgentID) (*events.Log, func(), error) {
			if g.log == nil {
				l, err := events.Open(ctx, filepath.Join(agent, "memory", "events"), events.Options{Now: now, NewID: newID, Redact: red})
				if err != nil {
					return nil, nil, err
				}
				g.log = l
			}
			return g.log, func() {}, nil
		},
		Sessions: lend(session.Open(filepath.Join(agent, "sessions"), session.Options{Agent: "default", Now: now, Redact: red})),
		Runs:     lend(runlog.Open(agent, runlog.Options{Agent: "default", Now: now, NewID: newID, Redact: red})),
		Redact:   red, Now: now, NewID: newID, Log: zerolog.Nop(),
	}
	if edit != nil {
		edit(g, &o)
	}
	g.Runtime = New(o)
	t.Cleanup(g.shut)
	return g
}

// shut ends the process.
func (g *rig) shut() {
	if g.log != nil {
		if err := g.log.Close(); err != nil {
			g.t.Error(err)
		}
		g.log = nil
	}
}

func lend[T any](v T) memory.Borrow[T] {
	return func(context.Context, memory.AgentID) (T, func(), error) { return v, func() {}, nil }
}

// catalog has operations of every sort.
func (g *rig) catalog() *op.Catalog {
	var mu sync.Mutex
	add := func(name string, effect op.Effect, fn func(ctx context.Context, in text) (text, error)) op.Op {
		return op.New(name, "For tests.", effect, func(ctx context.Context, _ memory.AgentID, in text) (text, error) { return fn(ctx, in) })
	}
	echo := func(ctx context.Context, in text) (text, error) {
		mu.Lock()
		defer mu.Unlock()
		g.echo = append(g.echo, string(memory.Actor(ctx))+": "+in.Text)
		return in, nil
	}
	var c op.Catalog
	c.Add(
		add("test.echo", op.Read, echo),
		add("web.fetch", op.Read, echo),
		add("memory.search", op.Read, echo),
		add("memory.write", op.Write, echo),
		add("memory.erase", op.Destroy, echo),
		add("test.erase", op.Destroy, echo),
		add("test.fail", op.Write, func(context.Context, text) (text, error) {
			return text{}, &memory.FieldError{Field: "text", Reason: "must be polite", Hint: "say please"}
		}),
		add("test.panic", op.Write, func(context.Context, text) (text, error) { panic("boom") }),
		add("test.big", op.Read, func(context.Context, text) (text, error) { return text{strings.Repeat("é", 100_000)}, nil }),
		add("test.hang", op.Read, func(ctx context.Context, _ text) (text, error) {
			<-ctx.Done()
			return text{}, ctx.Err()
		}),
	)
	return c.Freeze()
}

// say runs a turn that must succeed.
func (g *rig) say(session, message string) Result {
	g.t.Helper()
	res, err := g.Run(context.Background(), turnOf(session, message))
	if err != nil {
		g.t.Fatalf("Run(%q) = %v", message, err)
	}
	return res
}

func turnOf(session, message string) Turn {
	return Turn{Agent: "default", Session: memory.Session{ID: session, Channel: "cli", Zone: "Europe/Lisbon"}, Text: message}
}

// logged reads all events from disk, as another process would.
func (g *rig) logged() []memory.Event {
	g.t.Helper()
	r := events.OpenReader(filepath.Join(g.dir, "agents", "default", "memory", "events"), zerolog.Nop())
	defer r.Close()
	list, _, err := r.Read(context.Background(), memory.Cursor{}, 100_000)
	if err != nil {
		g.t.Fatal(err)
	}
	return list
}

// brief shows events as lines.
func brief(list []memory.Event) string {
	var sb strings.Builder
	for _, e := range list {
		fmt.Fprintf(&sb, "%s %s %q\n", e.Type, e.Origin, e.Text)
	}
	return sb.String()
}

// file reads a file of the agent.
func (g *rig) file(names ...string) string {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{g.dir, "agents", "default"}, names...)...))
	if err != nil {
		g.t.Fatal(err)
	}
	return string(text)
}

// checkPrompt fails where a prompt is not what an endpoint takes, or not in order.
func checkPrompt(t *testing.T, messages []llm.Message) {
	t.Helper()
	if len(messages) < 3 || messages[0].Role != llm.System {
		t.Fatalf("the prompt does not begin with the system message: %+v", messages)
	}
	waits := map[string]bool{}
	for i, m := range messages {
		switch {
		case m.Role == llm.System && i > 0:
			t.Fatalf("message %d is a system message: %+v", i, m)
		case m.Role == llm.Tool:
			if !waits[m.ToolCallID] {
				t.Fatalf("message %d answers no call: %+v", i, m)
			}
			delete(waits, m.ToolCallID)
		case len(waits) > 0:
			t.Fatalf("message %d comes before the results of %v: %+v", i, waits, m)
		case m.Content == "" && len(m.ToolCalls) == 0:
			t.Fatalf("message %d is empty: %+v", i, m)
		}
		for _, c := range m.ToolCalls {
			waits[c.ID] = true
		}
	}
	if len(waits) > 0 {
		t.Fatalf("calls without results: %v", waits)
	}
}
