package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/mirror"
)

// workspaces is what the commands on workspaces work with.
func (h *house) workspaces() cli.Workspaces {
	return cli.Workspaces{
		Locate: h.locateWorkspace, Import: h.importWorkspace, Write: h.writeWorkspace,
		Watch: func(ctx context.Context, w *workspace.Workspace, follow func(context.Context) error) error {
			return mirror.Watch(ctx, w, watchSettle, follow)
		},
	}
}

// watchSettle is how long a workspace must be still before it is imported.
const watchSettle = 500 * time.Millisecond

// workspaceCommands are the commands on workspaces that are no operations.
func (h *house) workspaceCommands() []cli.Command {
	ws := h.workspaces()
	return []cli.Command{cli.WorkspaceRecords(ws), cli.WorkspaceImport(ws), cli.WorkspaceWatch(ws), cli.WorkspaceWrite(ws),
		cli.WorkspaceIndex(ws, h.workspaceIndexes().IndexOf)}
}

// workspaceNotes offers the operations on workspaces.
func (h *house) workspaceNotes() *mirror.Service {
	open := func(agent memory.AgentID) (mirror.Writer, func(), error) {
		dir, err := h.workspaceOf(agent, "")
		if err != nil {
			return mirror.Writer{}, nil, err
		}
		w, err := workspace.Open(dir)
		if err != nil {
			return mirror.Writer{}, nil, err
		}
		return h.workspaceWriter(w, h.now), func() { h.closed(agent, w) }, nil
	}
	return mirror.NewService(open, h.talkOf, func() string { return h.getenv("OPENCLAW_MEMORY_DIR") })
}

func (h *house) workspaceWriter(w *workspace.Workspace, now func() time.Time) mirror.Writer {
	return mirror.Writer{W: w, Redact: lateRedactor{h}, Now: now, NewID: h.newID}
}

// talkOf reads the turns of a session out of an agent's log.
func (h *house) talkOf(ctx context.Context, agent memory.AgentID, session string) (mirror.Talk, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return mirror.Talk{}, err
	}
	store, err := h.sessions(agent, dir)
	if err != nil {
		return mirror.Talk{}, err
	}
	t := mirror.Talk{Session: memory.Session{ID: session}}
	known, err := store.Get(ctx, session)
	switch {
	case err == nil:
		t.Session = known
	case !errors.Is(err, memory.ErrNotFound): // an imported conversation has no file
		return mirror.Talk{}, err
	}
	log, release, err := h.readLog(ctx, agent)
	if err != nil {
		return mirror.Talk{}, err
	}
	defer release()
	for at := (memory.Cursor{}); ; {
		list, next, err := log.Read(ctx, at, 1000)
		if err != nil || len(list) == 0 {
			return t, err
		}
		for _, e := range list {
			if e.SessionID == session && e.Type.IsTurn() {
				t.Turns = append(t.Turns, e)
			}
		}
		at = next
	}
}

// importWorkspace brings a workspace into an agent's memory, and indexes it.
func (h *house) importWorkspace(ctx context.Context, agent memory.AgentID, w *workspace.Workspace) (mirror.Report, error) {
	ctx, done, err := h.hold(erasure.Import)(ctx, agent)
	if err != nil {
		return mirror.Report{}, err
	}
	defer done()
	im, release, err := h.mirror(ctx, agent)
	if err != nil {
		return mirror.Report{}, err
	}
	defer release()
	report, err := im.Import(ctx, w)
	if err != nil || report.Events == 0 {
		return report, err
	}
	_, releaseArchive, err := h.followed(ctx, agent)
	if err != nil {
		return report, err
	}
	releaseArchive()
	return report, nil
}

// mirror lends what imports a workspace into an agent's memory.
func (h *house) mirror(ctx context.Context, agent memory.AgentID) (*mirror.Importer, func(), error) {
	dir, err := h.home.Make(agent)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return nil, nil, err
	}
	log, releaseLog, err := h.logs.write(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	items, releaseItems, err := h.items.write(ctx, agent)
	if err != nil {
		releaseLog()
		return nil, nil, err
	}
	im := &mirror.Importer{Items: items, Log: log, Redact: lateRedactor{h}, Now: h.now, Dir: dir.Path("memory"), MaxItems: cfg.Memory.MaxWorkingItems}
	return im, func() { releaseItems(); releaseLog() }, nil
}

// writeWorkspace writes an agent's active items into a workspace.
func (h *house) writeWorkspace(ctx context.Context, agent memory.AgentID, w *workspace.Workspace) (mirror.Written, error) {
	items, release, err := h.items.read(ctx, agent)
	if err != nil {
		return mirror.Written{}, err
	}
	defer release()
	all := 0
	list, err := items.List(ctx, working.ListRequest{Status: "all", Limit: &all})
	if err != nil {
		return mirror.Written{}, err
	}
	return h.workspaceWriter(w, h.now).Items(ctx, list.Items)
}

// locateWorkspace returns the directory of the workspace that was named, else
// the configured one of the command's agent, else OpenClaw's own.
func (h *house) locateWorkspace(named string) (string, error) {
	return h.workspaceOf(memory.AgentID(h.opts.Agent), named)
}

// workspaceOf is locateWorkspace for any agent.
func (h *house) workspaceOf(agent memory.AgentID, named string) (string, error) {
	if named == "" {
		named = h.opts.Workspace
	}
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	if err != nil && named == "" {
		return "", memory.WithHint(memory.Errorf(memory.ErrInvalid, "find the home directory: %w", err), "name the workspace with --workspace")
	}
	return workspace.Locate(named, cfg.Workspace.Path, home, h.getenv)
}

// livesIn is the runtime's way to the workspaces that agents live in.
type livesIn struct{ h *house }

// Wake reads what an agent wakes with.
func (l livesIn) Wake(ctx context.Context, agent memory.AgentID, cfg config.Workspace, o workspace.Waking) (string, error) {
	w, err := workspace.Open(cfg.Path)
	if err != nil {
		return "", err
	}
	defer l.h.closed(agent, w)
	return w.Wake(ctx, o, func(n workspace.Notice) {
		l.h.log.Warn().Str("agent", string(agent)).Str("file", n.File).Str("reason", n.Reason).Msg("wake with the workspace")
	})
}

// Sleep writes what the next session needs to know.
func (l livesIn) Sleep(_ context.Context, agent memory.AgentID, cfg config.Workspace, session memory.Session, turns []memory.Event, now time.Time) error {
	w, err := workspace.Open(cfg.Path)
	if err != nil {
		return err
	}
	defer l.h.closed(agent, w)
	_, err = l.h.workspaceWriter(w, func() time.Time { return now }).Sleep(mirror.Talk{Session: session, Turns: turns})
	return err
}
