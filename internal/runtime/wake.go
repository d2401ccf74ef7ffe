package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
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

// Sleep lets the agent's workspace know of a session that ends now. It does nothing
// for an agent without a workspace, and for a session in which nothing was said.
func (r *Runtime) Sleep(ctx context.Context, agent memory.AgentID, session string) error {
	cfg, err := r.Config(agent)
	if err != nil || r.Lives == nil || cfg.Workspace.Path == "" || !cfg.Workspace.Sleep || !cfg.Memory.Enabled {
		return err
	}
	known, err := r.session(ctx, agent, session)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end session %s: %w", session, err)
	}
	x := &turn{Turn: Turn{Agent: agent, Session: known, Origin: memory.OriginUser}, rt: r, cfg: cfg}
	defer x.leave()
	if err := x.enterWindow(ctx); err != nil {
		return fmt.Errorf("end session %s: %w", session, err)
	}
	if err := x.follow(ctx); err != nil {
		return err
	}
	return r.Lives.Sleep(ctx, agent, cfg.Workspace, x.session, x.window.turns(), x.now)
}

func (r *Runtime) session(ctx context.Context, agent memory.AgentID, id string) (memory.Session, error) {
	store, release, err := r.Sessions(ctx, agent)
	if err != nil {
		return memory.Session{}, err
	}
	defer release()
	return store.Get(ctx, id)
}

// asleep is what a person should know of how Sleep went.
func (r *Runtime) asleep(err error) []string {
	if err == nil {
		return nil
	}
	return []string{"the workspace could not be told of the session: " + err.Error()}
}
