package runtime

import (
	"context"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// CheckMessage reports what Say would refuse of a message before it runs: a
// command other than /tool, an operation that there is not or that destroys, and
// an input that it does not take.
func (r *Runtime) CheckMessage(message string) error {
	c, isCommand, err := ParseCommand(message)
	if err != nil || !isCommand {
		return err
	}
	if c.Name != "tool" {
		return memory.Errorf(memory.ErrInvalid, "/%s is for a person at a chat", c.Name)
	}
	o, err := r.Catalog.Get(c.Tool)
	if err != nil {
		return err
	}
	if err := (policy{caller: runlog.CallerCron}).refuses(o); err != nil {
		return err
	}
	return o.Check(c.Input)
}

// Say says a scheduled message to an agent, in a session of that id, and returns
// the answer. Who added the schedule is the context's memory.Actor: what a model
// added has a model's rights.
//
// A message that calls an operation (/tool …) is no turn of a conversation: only
// the audit log has it, so that a checkpoint that finds nothing to do makes
// nothing for the next one to find.
func (r *Runtime) Say(ctx context.Context, agent memory.AgentID, session, message string) (string, error) {
	origin := memory.OriginSystem
	if memory.Actor(ctx) == memory.OriginAssistant {
		origin = memory.OriginAssistant
	}
	c, isCommand, err := ParseCommand(message)
	if err != nil {
		return "", err
	}
	if isCommand && c.Name == "tool" {
		return r.sayTool(ctx, agent, session, origin, c)
	}
	if err := r.CheckMessage(message); err != nil {
		return "", err
	}
	res, err := r.Run(ctx, Turn{Agent: agent, Session: memory.Session{ID: session, Channel: cronChannel}, Text: message, Origin: origin})
	return res.Text, err
}

func (r *Runtime) sayTool(ctx context.Context, agent memory.AgentID, session string, origin memory.Origin, c Command) (string, error) {
	cfg, err := r.Config(agent)
	if err != nil {
		return "", err
	}
	p := policy{caller: runlog.CallerCron}
	if origin == memory.OriginAssistant {
		p.allowed = append([]string{}, cfg.Runtime.Tools...)
	}
	o, err := r.Catalog.Get(c.Tool)
	if err != nil {
		return "", err
	}
	began, decision := r.Now(), runlog.Allow
	var out any
	callErr := p.refuses(o)
	if callErr != nil {
		decision = runlog.Deny
	} else {
		// The job's own deadline bounds it: a checkpoint takes longer than a tool may.
		out, callErr = o.Call(memory.WithActor(ctx, origin), agent, c.Input)
	}
	text, callErr := resultText(out, callErr)
	err = r.audit(ctx, agent, runlog.Entry{Op: o.Name, Effect: o.Effect, Caller: p.caller, Session: session, Decision: decision,
		Outcome: runlog.Outcome(callErr), Error: message(callErr), Millis: r.Now().Sub(began).Milliseconds()})
	if callErr != nil {
		return "", callErr
	}
	return r.Redact.Text(text), err
}
