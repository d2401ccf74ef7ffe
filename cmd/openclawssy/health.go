package main

import (
	"time"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/scheduler"
	"github.com/openclawssy/openclawssy/internal/spend"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// looker answers for the health of agents.
func (h *house) looker(s *scheduler.Scheduler) *care.Service {
	return care.NewService(care.Parts{
		Logs: h.readLog, Items: h.items.read, Archives: h.archives.read, Jobs: planned(s),
		Spend:      func(agent memory.AgentID) (spend.Day, error) { return h.ledger().Today(agent) },
		Embeddings: h.embeddingHealth,
		Dir:        h.agentDir, Losses: h.losses.Waiting, Now: h.now,
	})
}

// makeCanary returns what probes the memory of agents.
func (h *house) makeCanary(rec *recall.Service) *care.Canary {
	return &care.Canary{
		Dir: h.agentDir, Logs: h.logs.write, Reads: h.readLog, Archives: h.followed, Finds: rec.Finds, Hold: h.hold(erasure.Files),
		Every: func(agent memory.AgentID) (time.Duration, error) {
			cfg, err := h.cfg.For(agent)
			if err != nil || !cfg.Memory.Enabled {
				return 0, err
			}
			return time.Duration(cfg.Memory.CanaryEvery), nil
		},
		Agents: func() ([]memory.AgentID, error) { return h.home.List() }, Now: h.now, NewID: h.newID, Log: h.log,
	}
}

// agentDir returns an agent's directory; ErrNotFound where it has none.
func (h *house) agentDir(agent memory.AgentID) (string, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return "", err
	}
	return dir.Path(), nil
}

// degraded tells recall what is known to be wrong with an agent's memory.
func (h *house) degraded(agent memory.AgentID) string {
	dir, err := h.agentDir(agent)
	if err != nil {
		return ""
	}
	state, err := vitals.Read(dir)
	if err != nil {
		return err.Error()
	}
	return state.Degraded()
}
