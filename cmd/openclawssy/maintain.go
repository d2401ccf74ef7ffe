package main

import (
	"context"
	"errors"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/maintenance"
)

// maintenance returns the service that keeps memories in order.
func (h *house) maintenance() *maintenance.Service {
	return maintenance.NewService(maintenance.Options{
		Read: h.maintainable, Write: h.maintaining, Uses: h.recalledIn, Now: h.now, NewID: h.newID, Holder: process(),
	})
}

// maintaining lends what an agent's maintenance works with.
func (h *house) maintaining(ctx context.Context, agent memory.AgentID) (maintenance.Agent, func(), error) {
	if _, err := h.home.Find(agent); err != nil {
		return maintenance.Agent{}, nil, err
	}
	set, err := h.maintenanceSettings(agent)
	if err != nil {
		return maintenance.Agent{}, nil, err
	}
	log, releaseLog, err := h.logs.write(ctx, agent)
	if err != nil {
		return maintenance.Agent{}, nil, err
	}
	store, releaseStore, err := h.items.write(ctx, agent)
	if err != nil {
		releaseLog()
		return maintenance.Agent{}, nil, err
	}
	return maintenance.Agent{Store: store, Log: log, Write: log, Settings: set}, func() { releaseStore(); releaseLog() }, nil
}

// maintainable is maintaining for a look.
func (h *house) maintainable(ctx context.Context, agent memory.AgentID) (maintenance.Agent, func(), error) {
	set, err := h.maintenanceSettings(agent)
	if err != nil {
		return maintenance.Agent{}, nil, err
	}
	log, releaseLog, err := h.readLog(ctx, agent)
	if err != nil {
		return maintenance.Agent{}, nil, err
	}
	store, releaseStore, err := h.items.read(ctx, agent)
	if err != nil {
		releaseLog()
		return maintenance.Agent{}, nil, err
	}
	return maintenance.Agent{Store: store, Log: log, Settings: set}, func() { releaseStore(); releaseLog() }, nil
}

func (h *house) maintenanceSettings(agent memory.AgentID) (maintenance.Settings, error) {
	cfg, err := h.cfg.For(agent)
	return maintenance.Settings{
		StaleDays: cfg.Maintenance.StaleDays, VerifyDays: cfg.Maintenance.VerifyDays, Retention: cfg.Maintenance.Retention,
		MaxItems: cfg.Memory.MaxWorkingItems, PackAfter: cfg.Events.PackAfterDays, KeepEvents: cfg.Events.RetentionDays,
	}, err
}

// recalledIn says when memories were last recalled for a prompt.
func (h *house) recalledIn(ctx context.Context, agent memory.AgentID, since time.Time) (map[string]time.Time, error) {
	runs, release, err := h.readRuns(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	return runs.Recalled(ctx, since)
}
