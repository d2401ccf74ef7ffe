package main

import (
	"context"
	"os"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/mirror"
)

// workspaces is what the commands on workspaces work with.
func (h *house) workspaces() cli.Workspaces {
	return cli.Workspaces{Locate: h.locateWorkspace, Import: h.importWorkspace}
}

// workspaceCommands are the commands on workspaces that are no operations.
func (h *house) workspaceCommands() []cli.Command {
	ws := h.workspaces()
	return []cli.Command{cli.WorkspaceRecords(ws), cli.WorkspaceImport(ws), cli.WorkspaceIndex(ws, h.workspaceIndexes().IndexOf)}
}

// importWorkspace brings a workspace into an agent's memory, and indexes it.
func (h *house) importWorkspace(ctx context.Context, agent memory.AgentID, w *workspace.Workspace) (mirror.Report, error) {
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

// locateWorkspace returns the directory of the workspace that was named, else
// the configured one, else OpenClaw's own.
func (h *house) locateWorkspace(named string) (string, error) {
	return h.workspaceOf(memory.AgentID(h.opts.Agent), named)
}

// workspaceOf is locateWorkspace for any agent.
func (h *house) workspaceOf(agent memory.AgentID, named string) (string, error) {
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
