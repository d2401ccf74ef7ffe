package main

import (
	"os"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// workspaces is what the workspace commands work with.
func (h *house) workspaces() cli.Workspaces {
	return cli.Workspaces{Locate: h.locateWorkspace}
}

// locateWorkspace returns the directory of the workspace that was named, else
// the configured one, else OpenClaw's own.
func (h *house) locateWorkspace(named string) (string, error) {
	cfg, err := h.cfg.For(memory.AgentID(h.opts.Agent))
	if err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	if err != nil && named == "" {
		return "", memory.WithHint(memory.Errorf(memory.ErrInvalid, "find the home directory: %w", err), "name the workspace with --workspace")
	}
	return workspace.Locate(named, cfg.Workspace.Path, home, h.getenv)
}
