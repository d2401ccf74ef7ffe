package main

import (
	"context"
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/flush"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/scheduler"
)

// makeFlushes returns the queue of what is to be distilled because a session came
// to an edge.
func (h *house) makeFlushes(checkpoints func() *checkpoint.Service) *flush.Queue {
	return flush.New(flush.Options{
		Agents: func() ([]memory.AgentID, error) { return h.home.List() }, Dir: h.agentDir, Logs: h.readLog,
		Distilled: func(ctx context.Context, agent memory.AgentID) (int64, error) {
			items, release, err := h.items.read(ctx, agent)
			if err != nil {
				return 0, err
			}
			defer release()
			return items.Distilled(ctx)
		},
		Checkpoint: func(ctx context.Context, agent memory.AgentID) error {
			_, err := checkpoints().Checkpoint(ctx, agent, checkpoint.Request{})
			return err
		},
		Idle: func(agent memory.AgentID) (time.Duration, error) {
			cfg, err := h.cfg.For(agent)
			if err != nil || !cfg.Memory.Enabled {
				return 0, err
			}
			return time.Duration(cfg.Flush.Idle), nil
		},
		Redact: lateRedactor{h}, Now: h.now, Log: h.log,
	})
}

// settled tells the queue how a checkpoint ended, whoever asked for it.
func (h *house) settled(ctx context.Context, agent memory.AgentID, res checkpoint.Result, ended error) {
	if h.flushes == nil {
		return // a home of an evaluation: nobody talks to its agents
	}
	err := h.flushes.Settle(ctx, agent, flush.Outcome{Left: res.BacklogLeft, Stopped: res.Stopped, StoppedBy: string(res.StoppedBy), Err: ended})
	if err != nil {
		h.log.Warn().Err(err).Str("agent", string(agent)).Msg("what became of a flush is not noted")
	}
}

// drain distils what is queued for an agent, and what has fallen silent, and probes
// its memory where that is due.
func (h *house) drain(ctx context.Context, agent memory.AgentID) (bool, error) {
	if err := h.flushes.Listen(ctx, agent); err != nil {
		return false, err
	}
	if _, err := h.canary.Due(ctx, agent); err != nil && ctx.Err() == nil {
		h.log.Warn().Err(err).Str("agent", string(agent)).Msg("memory not probed")
	}
	return h.flushes.Drain(ctx, agent)
}

// longLived is what every process that lasts does beside its own work: it runs
// the schedule, drains the queue of flushes, makes vectors, and probes memories.
func (h *house) longLived(s *scheduler.Scheduler) func(context.Context) error {
	return func(ctx context.Context) error {
		h.lasting.Store(true)
		ctx, end := context.WithCancel(ctx)
		var beside sync.WaitGroup
		beside.Go(func() { h.flushes.Serve(ctx) })
		beside.Go(func() { h.keepEmbedding(ctx) })
		beside.Go(func() { h.canary.Serve(ctx) })
		err := s.Serve(ctx)
		end()
		beside.Wait()
		return err
	}
}
