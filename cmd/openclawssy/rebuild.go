package main

import (
	"context"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// rebuilds returns what makes working memory anew from the log.
func (h *house) rebuilds() *care.Rebuild {
	return care.NewRebuild(care.Rebuilding{
		Dir: func(agent memory.AgentID) (string, error) {
			dir, err := h.home.Find(agent)
			return dir.Path(), err
		},
		Logs: h.readLog,
		Items: func(ctx context.Context, agent memory.AgentID) (*working.Store, func(), error) {
			if _, err := h.home.Find(agent); err != nil {
				return nil, nil, err
			}
			return h.items.write(ctx, agent)
		},
		Open: func(ctx context.Context, agent memory.AgentID, dir string, log *care.Shadow) (*working.Store, error) {
			red, err := h.redactor()
			if err != nil {
				return nil, err
			}
			cfg, err := h.cfg.For(agent)
			if err != nil {
				return nil, err
			}
			return working.Open(ctx, dir, working.Options{Agent: agent, Log: log, Redact: red, Now: h.now, NewID: h.newID, MaxItems: cfg.Memory.MaxWorkingItems})
		},
		Distil: h.distilAnew, NewID: h.newID, Holder: process(),
	})
}

// distilAnew distils into a store of a rebuild. Replies that are kept of the same
// model are not asked for again.
func (h *house) distilAnew(ctx context.Context, agent memory.AgentID, model, dir string, store *working.Store, log *care.Shadow) (checkpoint.Result, error) {
	home, err := h.home.Find(agent)
	if err != nil {
		return checkpoint.Result{}, err
	}
	sessions, err := h.sessions(agent, home)
	if err != nil {
		return checkpoint.Result{}, err
	}
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return checkpoint.Result{}, err
	}
	a := checkpoint.Agent{Store: store, Log: log, Sessions: sessions, Dir: dir, BatchTokens: cfg.Checkpoint.BatchTokens, OnFailure: checkpoint.Park}
	if model != "" {
		client, err := h.modelNamed(model)
		if err != nil {
			return checkpoint.Result{}, err
		}
		if client == nil {
			return checkpoint.Result{}, memory.WithHint(&memory.FieldError{Field: "model", Reason: "cannot be used: no model is configured"}, "set model.provider, or rebuild with --rules")
		}
		if err := checkpoint.CopyReplies(home.Path("memory", "checkpoints"), dir, model); err != nil {
			return checkpoint.Result{}, err
		}
		a.Model = distill.NewModel(asking{client.For(agent), model})
	}
	service := checkpoint.NewService(checkpoint.Options{
		Write:  func(context.Context, memory.AgentID) (checkpoint.Agent, func(), error) { return a, func() {}, nil },
		Read:   func(context.Context, memory.AgentID) (*working.Store, func(), error) { return store, func() {}, nil },
		Redact: lateRedactor{h}, Now: h.now, NewID: h.newID, Holder: process()})
	return service.Checkpoint(ctx, agent, checkpoint.Request{})
}
