package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/index"
)

// workspaceIndexes answers the operations on agents' workspaces.
func (h *house) workspaceIndexes() *index.Service {
	return index.NewService(h.openWorkspace, h.readIndex, h.writeIndex)
}

func (h *house) openWorkspace(_ context.Context, agent memory.AgentID) (*workspace.Workspace, error) {
	dir, err := h.workspaceOf(agent, h.opts.Workspace)
	if err != nil {
		return nil, err
	}
	return workspace.Open(dir)
}

// readIndex returns the index of an agent's workspace; ErrNotFound for an agent
// that has nothing on disk.
func (h *house) readIndex(_ context.Context, agent memory.AgentID) (*index.Index, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return nil, err
	}
	return h.indexIn(agent, dir)
}

// writeIndex is readIndex that makes the agent's directory.
func (h *house) writeIndex(_ context.Context, agent memory.AgentID) (*index.Index, error) {
	if err := h.capturing(agent); err != nil {
		return nil, err
	}
	dir, err := h.home.Make(agent)
	if err != nil {
		return nil, err
	}
	return h.indexIn(agent, dir)
}

func (h *house) indexIn(agent memory.AgentID, dir agents.Dir) (*index.Index, error) {
	red, err := h.redactor()
	if err != nil {
		return nil, err
	}
	o := index.Options{Now: h.now, NewID: h.newID, Redact: red, Sessions: h.openclawSessions}
	client, err := h.embeddings(agent)
	if err != nil {
		return nil, err
	}
	if client != nil { // the built-in model is made of what an agent was told, which is not what its workspace is about
		o.Embedder, o.Endpoint = named{client.For(agent), client.Name()}, index.Endpoint{Provider: client.Provider(), BaseURL: client.BaseURL()}
	}
	return index.New(dir.Path("memory", index.FileName), o), nil
}

// openclawSessions returns where OpenClaw keeps the transcripts of its default
// agent.
func (h *house) openclawSessions() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", memory.Errorf(memory.ErrInvalid, "find the home directory: %w", err)
	}
	in, err := workspace.FindInstallation(home, h.getenv)
	return filepath.Join(in.Dir, "agents", in.Agent, "sessions"), err
}
