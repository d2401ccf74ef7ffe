package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/maintenance"
	"github.com/openclawssy/openclawssy/internal/memory/report"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/mirror"
)

// maintenance returns the service that keeps memories in order.
func (h *house) maintenance(reports *report.Service) *maintenance.Service {
	return maintenance.NewService(maintenance.Options{
		Read: h.maintainable, Write: h.maintaining, Uses: h.recalledIn, Near: h.alike, Follow: h.followWorkspace, Compact: h.compact, Scheduled: reports.Scheduled,
		Now: h.now, NewID: h.newID, Holder: process(),
	})
}

// followWorkspace brings the workspace that an agent is configured to live in into
// its memory. With memory switched off it does nothing.
func (h *house) followWorkspace(ctx context.Context, agent memory.AgentID, dry bool) (*maintenance.Followed, error) {
	cfg, err := h.cfg.For(agent)
	if err != nil || cfg.Workspace.Path == "" || !cfg.Memory.Enabled {
		return nil, err
	}
	dir, err := h.workspaceOf(agent, "")
	if err != nil {
		return nil, err
	}
	w, err := workspace.Open(dir)
	if err != nil {
		return nil, err
	}
	defer h.closed(agent, w)
	if dry {
		im := &mirror.Importer{Now: h.now}
		if found, err := h.home.Find(agent); err == nil {
			im.Dir = found.Path("memory")
		}
		im.Redact = lateRedactor{h}
		n, err := im.Look(ctx, w)
		if n == 0 || err != nil {
			return nil, err
		}
		return &maintenance.Followed{Path: dir, Files: n}, nil
	}
	r, err := h.importWorkspace(ctx, agent, w)
	if err != nil {
		return nil, err
	}
	f := &maintenance.Followed{Path: dir, Files: r.Files - r.Unchanged, Added: r.Created + r.Events, Changed: r.Replaced + r.Moved, Removed: r.Removed + r.Expired}
	if f.Added+f.Changed+f.Removed == 0 {
		return nil, nil
	}
	return f, nil
}

// compact lets what an agent's databases no longer need go back to the disk.
func (h *house) compact(ctx context.Context, agent memory.AgentID) (freed int64, err error) {
	items, release, err := h.items.write(ctx, agent)
	if err != nil {
		return 0, err
	}
	done, err := items.Compact(ctx)
	release()
	if err != nil {
		return done.Freed, err
	}
	dir, err := h.home.Find(agent)
	if err != nil {
		return done.Freed, err
	}
	if _, err := os.Stat(dir.Path("memory", "archive.db")); errors.Is(err, fs.ErrNotExist) {
		return done.Freed, nil // nothing has been indexed, and looking makes it
	}
	turns, release, err := h.archives.write(ctx, agent)
	if err != nil {
		return done.Freed, err
	}
	defer release()
	more, err := turns.Compact(ctx)
	done.Freed += more.Freed
	if err != nil {
		return done.Freed, err
	}
	kept, releaseVectors, err := h.readVectors(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return done.Freed, nil
	}
	if err != nil {
		return done.Freed, err
	}
	defer releaseVectors()
	rest, err := kept.Compact(ctx)
	return done.Freed + rest.Freed, err
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
