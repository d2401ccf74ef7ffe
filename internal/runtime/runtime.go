// Package runtime is the agent loop. It takes one message of a conversation,
// writes it down, recalls what matters, asks the model, carries out the tools that
// the model asks for, and returns the answer.
//
// What it promises: the user's message is durable before the model is called, and
// everything else of a turn when the turn ends, however it ends; recall never
// fails a turn, and delays it by no more than its deadline; a prompt begins with
// what does not change (system, tools, history), then comes the recall block,
// computed once a turn, as a message of its own and never in the system prompt;
// and what the model is given was redacted before, so that it is the same as what
// stands in the log.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/session"
	"github.com/openclawssy/openclawssy/internal/vitals"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Recaller finds what is relevant to a turn: a recall.Service. It does not fail,
// and keeps to its own deadline.
type Recaller interface {
	Block(ctx context.Context, agent memory.AgentID, req recall.Request) recall.Block
}

// Flusher queues the distillation of turns that are at stake: a flush.Queue. The
// runtime never waits for it to be done.
type Flusher interface {
	// Asked returns the seq up to which it was asked to.
	Asked(agent memory.AgentID) int64
	// Ask queues everything up to an event, and reports whether that was news.
	Ask(ctx context.Context, agent memory.AgentID, why vitals.Edge, upTo int64) (bool, error)
}

// Workspace is the way to the OpenClaw workspaces that agents live in.
type Workspace interface {
	// Wake reads the files that a session's prompt begins with.
	Wake(ctx context.Context, agent memory.AgentID, cfg config.Workspace, o workspace.Waking) (string, error)
	// Sleep writes down what the next session needs to know of one that ends now.
	Sleep(ctx context.Context, agent memory.AgentID, cfg config.Workspace, session memory.Session, turns []memory.Event, now time.Time) error
}

// Hooks are told of what happens in turns, when they end: a weave.Recorder. They
// return at once and do not fail.
type Hooks interface {
	ToolExecuted(agent memory.AgentID, x graph.ToolExecution)
	PromptCompressed(agent memory.AgentID, p graph.PromptCompress)
	MessagePassed(agent memory.AgentID, m graph.SwarmMessage)
}

// Redactor removes secrets from text.
type Redactor interface{ Text(string) string }

// Options are what a Runtime needs. All are required unless said otherwise.
type Options struct {
	Config   func(memory.AgentID) (config.Config, error) // of one agent
	Model    func(memory.AgentID) (llm.Chatter, error)
	Catalog  *op.Catalog
	Logs     memory.Borrow[*events.Log]
	Sessions memory.Borrow[*session.Store] // makes an agent that does not exist
	// Known lends the sessions of an agent that exists, ErrNotFound for others: what
	// only asks for a session makes no agent. nil: Sessions does it.
	Known  memory.Borrow[*session.Store]
	Runs   memory.Borrow[*runlog.Store]
	Recall Recaller // nil: nothing is recalled
	Flush  Flusher  // nil: nothing is queued to be distilled
	Hooks  Hooks    // nil: nobody is told
	// Hold keeps erasures of the agent out while a turn is under way, so that what
	// the turn has read before cannot be written after. nil: nothing is erased.
	Hold erasure.Hold
	// Persona returns the active traits of an agent, the strongest first, for the
	// prompts of scheduled runs. nil: there are none.
	Persona func(ctx context.Context, agent memory.AgentID) ([]graph.Trait, error)
	Lives   Workspace // nil: agents live in no workspace
	Redact  Redactor
	Now     func() time.Time
	NewID   func() string // a fresh ULID
	Log     zerolog.Logger
}

// Runtime runs turns. Make one with New, and Close it. It is safe for concurrent
// use; the turns of one session wait for each other.
type Runtime struct {
	Options
	windows windows
	stats   counters
}

// counters count what went wrong without failing a turn.
type counters struct{ turns, failed, flushFailed, abandoned atomic.Int64 }

// Stats are counts since the Runtime was made.
type Stats struct {
	Turns       int64 `json:"turns"`
	Failed      int64 `json:"failed"`       // turns that ended with an error
	FlushFailed int64 `json:"flush_failed"` // edges of sessions that could not be queued
	Abandoned   int64 `json:"abandoned"`    // operations that did not return
}

// New returns a runtime.
func New(o Options) *Runtime {
	return &Runtime{Options: o, windows: windows{all: map[string]*window{}}}
}

// Stats returns the counts.
func (r *Runtime) Stats() Stats {
	return Stats{Turns: r.stats.turns.Load(), Failed: r.stats.failed.Load(), FlushFailed: r.stats.flushFailed.Load(), Abandoned: r.stats.abandoned.Load()}
}

// Turn is one message to an agent.
type Turn struct {
	Agent memory.AgentID
	// Session is the conversation it belongs to. An empty ID starts one; Channel
	// is required, the other members may be empty.
	Session memory.Session
	Text    string
	// Origin says who speaks: user (if empty), assistant, system, or agent. An
	// agent's message is data: it is no command, and never has the user's role.
	Origin  memory.Origin
	Speaker string // name of who speaks, where several do
	// Stream is called with the answer's text as it comes; it may be nil.
	Stream func(delta string)
}

// Result is what came of a turn. After an error it says how far the turn got.
type Result struct {
	Run       string // id; empty where no run was made
	Session   string // id of the session to go on with
	Text      string // the answer
	Block     string // of memory that was injected
	Model     string // that answered, as it names itself
	Usage     llm.Usage
	Rounds    int
	ToolCalls int
	Notes     []string // what a person should know, such as that memory could not be asked
}

// maxText is the most bytes of a message.
const maxText = 1 << 20

// Run runs one turn. An error of the model is an error of the turn, with
// everything said so far written down; one of recall is only a note.
func (r *Runtime) Run(ctx context.Context, t Turn) (Result, error) {
	cfg, err := r.check(&t)
	if err != nil {
		return Result{Session: t.Session.ID}, err
	}
	var command Command
	var isCommand bool
	if t.Origin != memory.OriginAgent {
		if command, isCommand, err = ParseCommand(t.Text); err != nil {
			return Result{Session: t.Session.ID}, err
		}
	}
	switch {
	case isCommand && command.Name == "help":
		return Result{Session: t.Session.ID, Text: Help()}, nil
	case isCommand && command.Name == "quit":
		return Result{Session: t.Session.ID}, memory.Errorf(memory.ErrInvalid, "/quit leaves an interactive chat, and this is none")
	}
	ctx, done, err := r.Hold.Begin(ctx, t.Agent)
	if err != nil {
		return Result{Session: t.Session.ID}, err
	}
	defer done()
	if isCommand && command.Name == "new" {
		return r.startAnew(ctx, t, cfg)
	}
	r.stats.turns.Add(1)
	res, err := r.run(ctx, t, cfg, command)
	if err != nil {
		r.stats.failed.Add(1)
	}
	return res, err
}

// check brings a turn into form and returns its agent's configuration.
func (r *Runtime) check(t *Turn) (config.Config, error) {
	if _, err := memory.ParseAgentID(string(t.Agent)); err != nil {
		return config.Config{}, err
	}
	t.Text = strings.ToValidUTF8(t.Text, "\uFFFD")
	switch {
	case strings.TrimSpace(t.Text) == "":
		return config.Config{}, &memory.FieldError{Field: "text", Reason: "must say something"}
	case len(t.Text) > maxText:
		return config.Config{}, &memory.FieldError{Field: "text", Reason: "must be at most 1 MiB"}
	}
	switch t.Origin {
	case "":
		t.Origin = memory.OriginUser
	case memory.OriginUser, memory.OriginAssistant, memory.OriginSystem, memory.OriginAgent:
	default:
		return config.Config{}, &memory.FieldError{Field: "origin", Reason: "must be user, assistant, system or agent"}
	}
	cfg, err := r.Config(t.Agent)
	if err != nil {
		return cfg, err
	}
	if have, most := tokens(t.Text), roomOf(cfg).prompt/2; have > most {
		return cfg, &memory.FieldError{Field: "text", Reason: fmt.Sprintf("is about %d tokens long, and the model has room for %d", have, most)}
	}
	return cfg, nil
}

// startAnew ends the turn's session and starts another like it. Nobody waits for
// a model: what was said is durable and can be recalled already.
func (r *Runtime) startAnew(ctx context.Context, t Turn, cfg config.Config) (Result, error) {
	store, release, err := r.Sessions(ctx, t.Agent)
	if err != nil {
		return Result{Session: t.Session.ID}, err
	}
	defer release()
	next := t.Session
	var notes []string
	if t.Session.ID != "" {
		var slept Slept
		slept, err = r.Sleep(ctx, t.Agent, t.Session.ID, vitals.EdgeNew)
		notes = slept.notes(err)
		old, err := store.End(ctx, t.Session.ID)
		switch {
		case err == nil:
			next = memory.Session{Channel: t.Session.Channel, UserID: old.UserID, Zone: old.Zone, Kind: old.Kind}
		case !errors.Is(err, memory.ErrNotFound):
			return Result{Session: t.Session.ID}, err
		}
	}
	next.ID = r.newSession()
	next, err = store.Ensure(ctx, next)
	if err != nil {
		return Result{Session: t.Session.ID}, err
	}
	return Result{Session: next.ID, Text: "This is a new session. What was said before stays in memory.", Notes: notes}, nil
}

// newSession makes the id of a session: lower case, as its file's name.
func (r *Runtime) newSession() string { return "s-" + strings.ToLower(r.NewID()) }

// audit adds a line to the agent's audit log.
func (r *Runtime) audit(ctx context.Context, agent memory.AgentID, e runlog.Entry) error {
	store, release, err := r.Runs(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	return store.Audit(e)
}
