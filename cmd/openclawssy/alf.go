package main

import "github.com/openclawssy/openclawssy/internal/cli"

// alf is what the commands on archives work with.
func (h *house) alf() cli.ALF {
	return cli.ALF{Workspaces: h.workspaces(), Now: h.now}
}
