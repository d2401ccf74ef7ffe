package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/vitals"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// wakeShare is the part of the model's window that a workspace's files may fill.
const wakeShare = 4

// wake returns what of the agent's workspace the prompt begins with. It is read
// once in a session, so that the beginning of its prompts stays the same; where it
// cannot be read the turn goes on without.
func (x *turn) wake(ctx context.Context) string {
	cfg := x.cfg.Workspace
	if x.rt.Lives == nil || cfg.Path == "" || !cfg.Wake || x.window.awake {
		return x.window.woken
	}
	x.window.awake = true
	total := min(cfg.WakeTokens, roomOf(x.cfg).prompt/wakeShare)
	text, err := x.rt.Lives.Wake(ctx, x.Agent, cfg, workspace.Waking{Private: x.session.Kind != memory.SessionGroup, Now: x.now,
		File: min(cfg.FileTokens, total) * charsPerToken, Total: total * charsPerToken})
	if err != nil {
		x.res.Notes = append(x.res.Notes, "the workspace cannot be read: "+err.Error())
		return ""
	}
	x.window.woken = x.rt.Redact.Text(text)
	return x.window.woken
}

// Slept is what came of the end of a session.
type Slept struct {
	Queued bool // what was said in it is queued to be distilled
}

// Sleep ends a session for memory, at an edge: what was said in it is queued to be
// distilled, and the agent's workspace is told. Every entry calls it where a session
// ends: /new, the end of a chat, a server that stops. It waits for no model. For a
// session in which nothing was said, and where memory is off, it does nothing.
func (r *Runtime) Sleep(ctx context.Context, agent memory.AgentID, session string, why vitals.Edge) (Slept, error) {
	cfg, err := r.Config(agent)
	if err != nil || !cfg.Memory.Enabled {
		return Slept{}, err
	}
	known, err := r.session(ctx, agent, session)
	if errors.Is(err, memory.ErrNotFound) {
		return Slept{}, nil
	}
	if err != nil {
		return Slept{}, fmt.Errorf("end session %s: %w", session, err)
	}
	x := &turn{Turn: Turn{Agent: agent, Session: known, Origin: memory.OriginUser}, rt: r, cfg: cfg}
	defer x.leave()
	if err := x.enterWindow(ctx); err != nil {
		return Slept{}, fmt.Errorf("end session %s: %w", session, err)
	}
	if err := x.follow(ctx); err != nil {
		return Slept{}, err
	}
	var out Slept
	if said := x.window.events; len(said) > 0 && r.Flush != nil {
		last := said[len(said)-1].Seq
		if out.Queued, err = r.Flush.Ask(ctx, agent, why, last); err != nil {
			r.stats.flushFailed.Add(1)
			err = fmt.Errorf("what was said could not be queued to be distilled; it is in the log: %w", err)
		} else {
			x.window.flushed = max(x.window.flushed, last)
		}
	}
	if r.Lives == nil || cfg.Workspace.Path == "" || !cfg.Workspace.Sleep {
		return out, err
	}
	if slept := r.Lives.Sleep(ctx, agent, cfg.Workspace, x.session, x.window.turns(), x.now); slept != nil {
		err = errors.Join(err, fmt.Errorf("the workspace could not be told of the session: %w", slept))
	}
	return out, err
}

func (r *Runtime) session(ctx context.Context, agent memory.AgentID, id string) (memory.Session, error) {
	known := r.Known
	if known == nil {
		known = r.Sessions
	}
	store, release, err := known(ctx, agent)
	if err != nil {
		return memory.Session{}, err
	}
	defer release()
	return store.Get(ctx, id)
}

// Ops returns the operations this package offers.
func (r *Runtime) Ops() []op.Op {
	return []op.Op{
		op.New("session.end", "Say that a session is over: what was said in it is queued to be distilled, and nobody waits for that.", op.Write, r.EndSession).
			WithExample(`{"session": "s-01m813pjwvyj7r666en9r89sp2"}`),
	}
}

// EndRequest is the input of session.end.
type EndRequest struct {
	Session string `json:"session" cli:"arg" jsonschema:"the session's id"`
}

// Ending is the output of session.end.
type Ending struct {
	Agent   memory.AgentID `json:"agent"`
	Session string         `json:"session"`
	Queued  bool           `json:"queued"` // what was said is queued to be distilled; false where it is already, or nothing was
	Ended   time.Time      `json:"ended"`  // when it ended first
}

// Text shows it to a person.
func (e Ending) Text() string {
	text := fmt.Sprintf("Session %s ended %s.\n", e.Session, e.Ended.Format(time.DateTime))
	if e.Queued {
		text += "What was said in it is queued to be distilled; it can be recalled already.\n"
	}
	return text
}

// EndSession ends a session, whichever face it was led through. It is taken up again
// by the next message to it. A session that does not exist is ErrNotFound, and that of
// the very turn that asks ErrConflict.
func (r *Runtime) EndSession(ctx context.Context, agent memory.AgentID, in EndRequest) (Ending, error) {
	out := Ending{Agent: agent, Session: in.Session}
	if running, is := memory.SessionOf(ctx); is && running.ID == in.Session {
		return out, memory.WithHint(memory.Errorf(memory.ErrConflict, "session %s is not over: this call is of a turn of it", in.Session), "/new ends it and begins another")
	}
	known, err := r.session(ctx, agent, in.Session)
	if err != nil {
		return out, err
	}
	if known.Ended != nil { // a message since would have taken it up again
		out.Ended = *known.Ended
		return out, nil
	}
	slept, err := r.Sleep(ctx, agent, in.Session, vitals.EdgeEnd)
	if err != nil {
		return out, err
	}
	out.Queued = slept.Queued
	store, release, err := r.Sessions(ctx, agent)
	if err != nil {
		return out, err
	}
	defer release()
	ended, err := store.End(ctx, in.Session)
	if err == nil && ended.Ended != nil {
		out.Ended = *ended.Ended
	}
	return out, err
}

// notes are what a person should know of how a session ended.
func (s Slept) notes(err error) []string {
	var notes []string
	if err != nil {
		notes = append(notes, err.Error())
	}
	if s.Queued {
		notes = append(notes, "what was said is queued to be distilled; it can be recalled already")
	}
	return notes
}
