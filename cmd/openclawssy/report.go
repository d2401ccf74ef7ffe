package main

import (
	"context"
	"errors"
	"time"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/report"
	"github.com/openclawssy/openclawssy/internal/spend"
)

// makeReports returns what reports on agents' memories.
func (h *house) makeReports(look *care.Service) *report.Service {
	return report.NewService(report.Options{
		Items: h.items.read, Dir: h.agentDir, Redact: lateRedactor{h}, Now: h.now, Hold: h.hold(erasure.Copy),
		Condition: func(ctx context.Context, agent memory.AgentID) (report.Condition, error) {
			return h.conditionOf(ctx, look, agent)
		},
		Spent: func(agent memory.AgentID, from, to time.Time) (spend.Used, error) {
			return h.ledger().Between(agent, from, to)
		},
		Held: func(ctx context.Context, agent memory.AgentID) (int, error) {
			held, err := h.desk.Held(ctx, agent, struct{}{})
			return len(held.Messages), err
		},
		Expired: h.expired,
	})
}

// conditionOf is an agent's status as a report has it.
func (h *house) conditionOf(ctx context.Context, look *care.Service, agent memory.AgentID) (report.Condition, error) {
	st, err := look.Status(ctx, agent)
	c := report.Condition{Events: st.Events, Backlog: st.Backlog, Parked: st.Parked, Gaps: st.Gaps, Dropped: st.Dropped, Overdue: st.Overdue, Problems: make([]report.Problem, len(st.Problems))}
	for i, p := range st.Problems {
		c.Problems[i] = report.Problem{Text: p.Text, Since: p.Since}
	}
	return c, err
}

// expired counts the events that are older than the configuration keeps them.
func (h *house) expired(ctx context.Context, agent memory.AgentID) (n int64, keepFrom time.Time, err error) {
	cfg, err := h.cfg.For(agent)
	if err != nil || cfg.Events.RetentionDays == 0 {
		return 0, time.Time{}, err
	}
	keepFrom = h.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -cfg.Events.RetentionDays)
	log, release, err := h.readLog(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return 0, keepFrom, nil
	}
	if err != nil {
		return 0, keepFrom, err
	}
	defer release()
	for at := (memory.Cursor{}); ; {
		list, next, err := log.Read(ctx, at, 1000)
		if err != nil || len(list) == 0 {
			return n, keepFrom, err
		}
		for _, e := range list {
			if _, gone := e.Erased(); !gone && e.Type.IsTurn() && e.Timestamp.Before(keepFrom) {
				n++
			}
		}
		at = next
	}
}

func (h *house) eraseReports(_ context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	dir, err := h.agentDir(agent)
	if err != nil {
		return 0, err
	}
	return report.Erase(dir, t)
}
