package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/clients"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// settingUp is what the commands that set up other programs work with.
func (h *house) settingUp() cli.SettingUp {
	return cli.SettingUp{
		Clients: func() (clients.Setup, error) {
			home, err := os.UserHomeDir()
			if err != nil {
				return clients.Setup{}, memory.Errorf(memory.ErrUnavailable, "look for the clients' files: %w", err)
			}
			return clients.Setup{Place: clients.Place{Home: home, OS: runtime.GOOS, Getenv: h.getenv}, Dir: h.home.File("setup")}, nil
		},
		Server: h.ownServer,
	}
}

// ownServer returns how another program starts this one. It names the program and
// the home in full: a client has another path and another directory.
func (h *house) ownServer(agent memory.AgentID, tools []string) (clients.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return clients.Server{}, memory.Errorf(memory.ErrUnavailable, "find this program: %w", err)
	}
	home, err := filepath.Abs(h.home.Path())
	if err != nil {
		return clients.Server{}, memory.Errorf(memory.ErrUnavailable, "find the home: %w", err)
	}
	args := []string{"mcp", "--home", home, "--agent", string(agent)}
	if len(tools) > 0 {
		args = append(args, "--tools", strings.Join(tools, ","))
	}
	return clients.Server{Command: self, Args: args}, nil
}
