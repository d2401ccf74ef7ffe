package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openclawssy/openclawssy/internal/backup"
	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/message"
	"github.com/openclawssy/openclawssy/internal/workspace/index"
)

// makeErasure returns what erases from every store. A store that is added to the
// house adds its Eraser here.
func (h *house) makeErasure() *care.Erasure {
	return care.NewErasure(care.Erasing{
		Dir: func(agent memory.AgentID) (string, error) {
			dir, err := h.home.Find(agent)
			return dir.Path(), err
		},
		Logs: h.readLog, Archives: h.followed, Now: h.now, NewID: h.newID, Log: h.log,
		Items: func(ctx context.Context, agent memory.AgentID) (*working.Store, func(), error) {
			return h.items.write(ctx, agent)
		},
		Holder: process(),
		Knows: func(ctx context.Context, agent memory.AgentID, session string) bool {
			store, release, err := h.writeSessions(ctx, agent)
			if err != nil {
				return false
			}
			defer release()
			_, err = store.Get(ctx, session)
			return err == nil
		},
		Erasers: []care.Eraser{
			care.Step{Store: "checkpoints", Do: h.eraseCheckpoints}, care.Step{Store: "runs", Do: h.eraseRuns}, care.Step{Store: "audit", Do: h.eraseAudit},
			care.Step{Store: "sessions", Do: h.eraseSessions}, care.Step{Store: "records", Do: h.eraseRecords}, care.Step{Store: "graph", Do: h.eraseGraph},
			care.Step{Store: "workspace index", Do: h.eraseWorkspaceIndex}, care.Step{Store: "messages", Do: h.eraseMessages},
			care.Step{Store: "reports", Do: h.eraseReports},
			care.Step{Store: "vectors", Do: h.eraseVectors}, care.Step{Store: "scheduled jobs", Do: h.eraseJobs},
		},
		Outside: h.outside,
		Copies:  h.halfCopies,
		Follow:  h.followForgotten,
	})
}

// endErasure ends an erasure or a forgetting of an agent that was interrupted, before
// anything of the agent is opened. While one is under way, here or elsewhere, it does
// nothing.
func (h *house) endErasure(ctx context.Context, agent memory.AgentID) {
	dir, err := h.home.Find(agent)
	if err != nil || !care.Pending(dir.Path()) && !care.Forgetting(dir.Path()) {
		return
	}
	if _, already := h.ending.LoadOrStore(agent, true); already {
		return
	}
	defer h.ending.Delete(agent)
	if err := h.erasure.Resume(context.WithoutCancel(ctx), agent); err != nil {
		h.log.Error().Err(err).Str("agent", string(agent)).Msg("an erasure that was interrupted could not be ended; it is tried again at the next opening")
	}
	if err := h.erasure.EndForgetting(context.WithoutCancel(ctx), agent); err != nil {
		h.log.Error().Err(err).Str("agent", string(agent)).Msg("what was being forgotten could not be taken away everywhere; it is tried again at the next opening")
	}
}

// forgetting goes around a forgetting: erasures keep out meanwhile.
func (h *house) forgetting(ctx context.Context, agent memory.AgentID, do working.Forgets) error {
	ctx, done, err := h.hold(erasure.Files)(ctx, agent)
	if err != nil {
		return err
	}
	defer done()
	return h.erasure.Forget(ctx, agent, do)
}

// followForgotten takes the vectors of what is recalled no more, and what the graph has
// of it: its memories, and what tools and messages told.
func (h *house) followForgotten(ctx context.Context, agent memory.AgentID, t *erasure.Target) error {
	if err := h.meaning.Follow(ctx, agent); err != nil {
		return err
	}
	if h.fromMemory(agent) {
		if _, err := h.follower().Follow(ctx, agent); err != nil && !errors.Is(err, memory.ErrNotFound) {
			return err
		}
	}
	if t.Finder().Empty() {
		return nil
	}
	store, release, err := h.readGraph(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	holds, err := store.Holds(ctx, t.Finder().In)
	release()
	if err != nil || !holds {
		return err
	}
	store, release, err = h.graphs.write(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	_, err = store.EraseTold(ctx, t.Finder().In)
	return err
}

// hold begins work on an agent that an erasure must not come in between of. What
// writes for an agent may make its directory; what follows it finds none and holds
// nothing.
func (h *house) hold(w erasure.Work) erasure.Hold {
	return func(ctx context.Context, agent memory.AgentID) (context.Context, func(), error) {
		find := h.home.Find
		if w == erasure.Turn || w == erasure.Import {
			find = h.home.Make
		}
		dir, err := find(agent)
		if errors.Is(err, memory.ErrNotFound) {
			return ctx, func() {}, nil
		}
		if err != nil {
			return nil, nil, err
		}
		inMemory := dir.Path("memory")
		if erasure.Inside(ctx, inMemory) {
			return ctx, func() {}, nil
		}
		if _, err := os.Stat(inMemory); errors.Is(err, fs.ErrNotExist) {
			return ctx, func() {}, nil // an agent that remembers nothing has nothing to erase
		}
		for range 2 {
			h.endErasure(ctx, agent)
			work, leave, err := erasure.Enter(ctx, inMemory, w)
			if w == erasure.Copy && errors.Is(err, memory.ErrUnavailable) {
				return ctx, func() {}, nil // where nothing can be written nothing is erased
			}
			if err != nil {
				return nil, nil, err
			}
			if !care.Pending(dir.Path()) {
				return work, h.leaving(agent, leave), nil
			}
			if err := leave(); err != nil {
				return nil, nil, err
			}
		}
		return nil, nil, memory.WithHint(memory.Errorf(memory.ErrUnavailable, "an erasure of agent %s was interrupted, and could not be ended", agent),
			"the log says why; it is tried again at the next call")
	}
}

// leaving ends work once the graph has been told of everything that happened in it.
func (h *house) leaving(agent memory.AgentID, leave func() error) func() {
	end := func() {
		if err := leave(); err != nil {
			h.log.Warn().Err(err).Str("agent", string(agent)).Msg("end of work that keeps erasures out")
		}
	}
	if h.recorder == nil {
		return end
	}
	return func() { h.recorder.After(end) }
}

func (h *house) eraseCheckpoints(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return 0, err
	}
	store, release, err := h.items.write(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	return checkpoint.EraseFiles(ctx, dir.Path("memory", "checkpoints"), store, t)
}

// eraseJobs empties what the runs of the agent's jobs ended with.
func (h *house) eraseJobs(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	if h.schedule == nil {
		return 0, nil
	}
	return h.schedule.Erase(ctx, agent, t.Finder().In)
}

func (h *house) eraseRuns(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	runs, release, err := h.readRuns(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	return runs.EraseRuns(t)
}

func (h *house) eraseAudit(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	runs, release, err := h.readRuns(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	return runs.EraseAudit(t)
}

func (h *house) eraseSessions(ctx context.Context, agent memory.AgentID, t *erasure.Target) (n int, err error) {
	store, release, err := h.writeSessions(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	for _, id := range t.Sessions {
		removed, err := store.Remove(id)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}

func (h *house) eraseRecords(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	if _, release, err := h.readRecords(ctx, agent); err != nil {
		return 0, err
	} else {
		release()
	}
	store, release, err := h.records.write(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	return store.Erase(ctx, t.Finder().In)
}

func (h *house) eraseGraph(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	if _, release, err := h.readGraph(ctx, agent); err != nil {
		return 0, err
	} else {
		release()
	}
	if h.fromMemory(agent) {
		if _, err := h.follower().Follow(ctx, agent); err != nil {
			return 0, err
		}
	}
	store, release, err := h.graphs.write(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	return store.Erase(ctx, t.Finder().In)
}

func (h *house) eraseMessages(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	if _, release, err := h.readLedger(ctx, agent); err != nil {
		return 0, err
	} else {
		release()
	}
	// What follows memory at this moment must not write what it read before.
	if _, err := h.desk.Update(ctx, agent); err != nil {
		return 0, err
	}
	store, release, err := h.ledgers.write(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	return store.Erase(ctx, func(b []byte) bool { return t.Finder().In(b) || t.Names(b) }, func(r message.Ref) bool { return t.Tells(r.ID, r.Text) }, t.Session)
}

// eraseWorkspaceIndex deletes the index of the agent's workspace where it holds
// what goes: it is made again from the workspace, which is not the agent's own.
func (h *house) eraseWorkspaceIndex(_ context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return 0, err
	}
	path := dir.Path("memory", index.FileName)
	holds := false
	for _, suffix := range []string{"", "-wal"} {
		found, err := fileHolds(path+suffix, t)
		if err != nil {
			return 0, err
		}
		holds = holds || found
	}
	if !holds {
		return 0, nil
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, memory.Errorf(memory.ErrUnavailable, "delete the workspace index: %w", err)
		}
	}
	return 1, nil
}

func fileHolds(path string, t *erasure.Target) (holds bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, memory.Errorf(memory.ErrUnavailable, "look through %s: %w", filepath.Base(path), err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	found, err := t.Finder().Count(f)
	return found.Count > 0, err
}

// halfCopies are what backups and restores that were interrupted have left: they hold
// whole agents.
func (h *house) halfCopies() ([]string, error) {
	var found []string
	for _, place := range []string{h.home.Path(), h.home.File("agents")} {
		left, err := backup.ClearStages(place, true)
		if err != nil {
			return found, err
		}
		found = append(found, left...)
	}
	return found, nil
}

// outside lists what may hold what was erased and is no store of the agent: files
// of its workspace and of the home that say it, and archives and backups, whose
// inside is not looked at.
func (h *house) outside(ctx context.Context, agent memory.AgentID, t *erasure.Target) ([]string, error) {
	var found []string
	look := func(dir string, archives bool) error {
		return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return memory.Errorf(memory.ErrUnavailable, "look through %s: %w", dir, err)
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case !d.Type().IsRegular():
				return nil
			case archives:
				found = append(found, path)
				return nil
			}
			holds, err := fileHolds(path, t)
			if holds {
				found = append(found, path)
			}
			return err
		})
	}
	if dir, err := h.workspaceOf(agent, ""); err == nil { // no workspace is no trouble
		if err := look(dir, false); err != nil {
			return found, err
		}
	}
	if err := look(h.home.File("scheduler"), false); err != nil {
		return found, err
	}
	for _, dir := range []string{"alf", "backups"} {
		if err := look(h.home.File(dir), true); err != nil {
			return found, err
		}
	}
	return found, nil
}
