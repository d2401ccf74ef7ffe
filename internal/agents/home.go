// Package agents finds each agent's directory under the home, and lends what is
// open in it: one thing per agent, closed when it is idle and others need its
// place.
package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Home is the directory that holds everything. Nothing is created before the
// first write.
type Home struct{ path string }

// NewHome returns the home at path, which need not exist.
func NewHome(path string) (Home, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Home{}, memory.Errorf(memory.ErrInvalid, "home %q: %w", path, err)
	}
	return Home{path: abs}, nil
}

// Path returns the home's absolute path.
func (h Home) Path() string { return h.path }

// File returns the path of a file or directory of the home itself.
func (h Home) File(name string) string { return filepath.Join(h.path, name) }

// Create makes the home's directory (0700) where it is missing.
func (h Home) Create() error {
	if err := os.MkdirAll(h.path, 0o700); err != nil {
		return memory.WithHint(memory.Errorf(memory.ErrUnavailable, "create home: %w", err), "choose another with --home")
	}
	return nil
}

// Dir is one agent's directory.
type Dir struct{ path string }

// Path joins names to the agent's directory.
func (d Dir) Path(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// Find returns an agent's directory; ErrNotFound where the agent has none.
func (h Home) Find(agent memory.AgentID) (Dir, error) {
	dir := Dir{filepath.Join(h.path, "agents", string(agent))}
	root, err := os.OpenRoot(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Dir{}, memory.Errorf(memory.ErrNotFound, "agent %s has no memory yet", agent)
	}
	if err != nil {
		return Dir{}, memory.Errorf(memory.ErrUnavailable, "open home: %w", err)
	}
	defer root.Close()
	// Neither agents/ nor the agent may be a link to somewhere else.
	for _, name := range []string{"agents", filepath.Join("agents", string(agent))} {
		st, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Dir{}, memory.Errorf(memory.ErrNotFound, "agent %s has no memory yet", agent)
		case err != nil:
			return Dir{}, memory.Errorf(memory.ErrUnavailable, "open agent %s: %w", agent, err)
		case !st.IsDir():
			return Dir{}, memory.Errorf(memory.ErrDenied, "open agent %s: %s is not a directory", agent, h.File(name))
		}
	}
	return dir, nil
}

// Make returns an agent's directory, creating it and its memory directory (0700).
func (h Home) Make(agent memory.AgentID) (Dir, error) {
	if err := h.Create(); err != nil {
		return Dir{}, err
	}
	root, err := os.OpenRoot(h.path)
	if err != nil {
		return Dir{}, memory.Errorf(memory.ErrUnavailable, "open home: %w", err)
	}
	defer root.Close()
	for _, name := range []string{"agents", filepath.Join("agents", string(agent)), filepath.Join("agents", string(agent), "memory")} {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return Dir{}, memory.Errorf(memory.ErrUnavailable, "create agent %s: %w", agent, err)
		}
	}
	return h.Find(agent)
}

// List returns the agents that have a directory, in the order of their names.
// Directories that are no agent's are left out.
func (h Home) List() ([]memory.AgentID, error) {
	entries, err := os.ReadDir(filepath.Join(h.path, "agents"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	var ids []memory.AgentID
	for _, e := range entries {
		if id, err := memory.ParseAgentID(e.Name()); err == nil && e.IsDir() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
