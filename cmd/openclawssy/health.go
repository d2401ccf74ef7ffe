package main

import (
	"context"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
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
		Dir:        h.agentDir, Dropped: h.dropped, Now: h.now,
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

// dropped counts the events that this process could not take for an agent, and
// that are not in its vitals yet.
func (h *house) dropped(agent memory.AgentID) int64 {
	l, open := h.writing.Load(agent)
	if !open {
		return 0
	}
	return lostBy(l.(*events.Log))
}

func lostBy(l *events.Log) int64 {
	stats := l.Stats()
	return stats.Lost + stats.Backpressure
}

// noteLost keeps how many events a log that is closed could not take.
func (h *house) noteLost(agent memory.AgentID, dir agents.Dir, l *events.Log) {
	h.writing.Delete(agent)
	lost := lostBy(l)
	if lost == 0 {
		return
	}
	err := vitals.Update(context.Background(), dir.Path(), func(s *vitals.State) {
		if s.Lost == nil {
			s.Lost = &vitals.Lost{}
		}
		s.Lost.Events += lost
		s.Lost.Last = h.now().UTC()
	})
	if err != nil {
		h.log.Error().Err(err).Str("agent", string(agent)).Int64("events", lost).Msg("lost events not noted")
	}
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
