package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/doctor"
	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/scheduler"
)

// backupDays is how old an agent's last backup may be, where there was one.
const backupDays = 30

// examine returns the examination of the home.
func (h *house) examine(s *scheduler.Scheduler) func(context.Context, doctor.Request) (doctor.Report, error) {
	return func(ctx context.Context, req doctor.Request) (doctor.Report, error) {
		h.looking = true
		return doctor.Examine(ctx, doctor.Parts{
			Home: h.home, Config: h.misconfigured, Overdue: overdue(s), Reach: h.reach, Reopen: h.reopen, Canary: h.canary.Probe,
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
