package main

import (
	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/memory"
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
