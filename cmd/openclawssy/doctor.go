package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/doctor"
	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/scheduler"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// backupDays is how old an agent's last backup may be, where there was one.
const backupDays = 30

// examine returns the examination of the home.
func (h *house) examine(s *scheduler.Scheduler) func(context.Context, doctor.Request) (doctor.Report, error) {
	return func(ctx context.Context, req doctor.Request) (doctor.Report, error) {
		h.looking = true
		return doctor.Examine(ctx, doctor.Parts{
			Home: h.home, Config: h.misconfigured, Getenv: h.getenv, Schedule: scheduled(s), Lag: h.lag, Acknowledge: h.acknowledge, Reach: h.reach, Reopen: h.reopen, Canary: h.canary.Probe,
			Sessions: func(ctx context.Context, agent memory.AgentID, want memory.Session) error {
				store, _, err := h.writeSessions(ctx, agent)
				if err == nil {
					_, err = store.Ensure(ctx, want)
				}
				return err
			},
			Now: h.now, BackupDays: backupDays,
		}, req)
	}
}

// scheduled tells of an agent's jobs, and how they ended.
func scheduled(s *scheduler.Scheduler) func(context.Context, memory.AgentID) (doctor.Schedule, error) {
	return func(ctx context.Context, agent memory.AgentID) (doctor.Schedule, error) {
		list, err := s.List(ctx, agent, struct{}{})
		if err != nil {
			return doctor.Schedule{}, err
		}
		plan := doctor.Schedule{Serving: list.Serving, Trouble: list.Trouble}
		for _, j := range list.Jobs {
			job := doctor.Job{Name: j.Name, Overdue: j.Overdue, Stuck: j.Stuck}
			for _, r := range j.Runs {
				if r.Outcome == scheduler.Done {
					break
				}
				if r.Outcome == scheduler.Stopped || r.Outcome == scheduler.Interrupted {
					continue // its process ended: that is not the job's fault
				}
				if job.Failed++; job.Failed == 1 {
					job.Last, job.Detail = r.Started, r.Detail
				}
			}
			plan.Jobs = append(plan.Jobs, job)
		}
		return plan, nil
	}
}

// lag counts the events that an agent's archive has not seen, as the files stand.
func (h *house) lag(ctx context.Context, agent memory.AgentID) (n int64, err error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return 0, err
	}
	log := events.OpenReader(dir.Path("memory", "events"), zerolog.Nop())
	defer func() { err = errors.Join(err, log.Close()) }()
	last, err := log.LastSeq()
	if err != nil {
		return 0, err
	}
	return archive.LookLag(ctx, dir.Path("memory", "archive.db"), last)
}

// acknowledge takes note of the events that an agent lost.
func (h *house) acknowledge(ctx context.Context, agent memory.AgentID) (int64, error) {
	dir, err := h.agentDir(agent)
	if err != nil {
		return 0, err
	}
	n, err := vitals.Acknowledge(ctx, dir, h.now())
	entry := runlog.Entry{Op: "doctor --acknowledge", Effect: op.Write, Caller: runlog.CallerUser, Decision: runlog.Allow, Outcome: runlog.Outcome(err)}
	if err != nil {
		entry.Error = err.Error()
	}
	return n, errors.Join(err, h.audit(ctx, agent, entry))
}

// reopen opens what an agent has for writing, and gives it back: what is missing is
// made anew from the log.
func (h *house) reopen(ctx context.Context, agent memory.AgentID) error {
	if _, err := h.home.Find(agent); err != nil {
		return err
	}
	_, releaseItems, err := h.items.write(ctx, agent)
	if err != nil {
		return err
	}
	releaseItems()
	_, releaseArchive, err := h.followed(ctx, agent)
	if err != nil {
		return err
	}
	releaseArchive()
	return nil
}

// reach asks the configured model's endpoint for its list of models, which costs
// nothing. An endpoint that has no such list is there all the same.
func (h *house) reach(ctx context.Context) (err error) {
	m := h.cfg.Model
	if m.Provider == offline {
		return memory.Errorf(memory.ErrNotFound, "no model is configured")
	}
	key, err := llm.Secret(m.Key, h.getenv, h.home.Path())
	if err != nil {
		return memory.Errorf(memory.ErrInvalid, "model.key: %w", err)
	}
	base := llm.BaseURL(llm.Provider(m.Provider), m.BaseURL)
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: base, Private: m.AllowPrivate}}, Timeout: time.Duration(m.Timeout)})
	if err != nil {
		return memory.Errorf(memory.ErrInvalid, "model.base_url: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/models", nil)
	if err != nil {
		return memory.Errorf(memory.ErrInvalid, "model.base_url: %w", err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := out.Do(req)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	switch {
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return memory.Errorf(memory.ErrDenied, "the endpoint refuses the key (%s)", res.Status)
	case res.StatusCode >= 500:
		return memory.Errorf(memory.ErrUnavailable, "the endpoint answers %s", res.Status)
	}
	return nil
}
