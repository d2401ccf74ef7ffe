package main

import (
	"context"
	"os"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/life"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// alf is what the commands on archives work with.
func (h *house) alf() cli.ALF {
	return cli.ALF{Workspaces: h.workspaces(), Now: h.now, Keep: h.keep, Options: h.exportOptions, Agent: h.exportAgent}
}

// keep is where the last archive of each agent is kept.
func (h *house) keep() life.Keep { return life.Keep{Dir: h.home.File("alf")} }

// exportOptions fills in what an export needs of this machine.
func (h *house) exportOptions(o life.ExportOptions) (life.ExportOptions, error) {
	red, err := h.redactor()
	if err != nil {
		return o, err
	}
	o.Redact, o.Keep, o.Now = red.Text, h.keep(), h.now
	user, err := os.UserHomeDir()
	if err != nil {
		return o, nil // no home directory, no OpenClaw in it
	}
	o.Installation, err = workspace.FindInstallation(user, h.getenv)
	return o, err
}

// exportAgent exports an agent's own memory.
func (h *house) exportAgent(context.Context, memory.AgentID, life.ExportOptions) (life.Exported, error) {
	return life.Exported{}, memory.Errorf(memory.ErrUnavailable, "not yet")
}
