package main

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"

	"github.com/oklog/ulid/v2"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// graphAt tells where an agent's graph is or would be, and what is around it.
// The contract's variables that name a file or a host count where one agent is
// worked on; limits and dry run always do.
func (h *house) graphAt(agent memory.AgentID) (path string, host graph.Host) {
	own := h.ownGraph(agent)
	host = graph.HostFrom(h.getenv)
	if !h.only || string(agent) != h.opts.Agent {
		return own, graph.Host{DryRun: host.DryRun, Limits: host.Limits}
	}
	if path, named := graph.PathFrom(h.getenv); named {
		return path, host
	}
	return own, host
}

// ownGraph is where an agent's graph is, unless the environment says otherwise.
func (h *house) ownGraph(agent memory.AgentID) string {
	return h.home.File("agents/" + string(agent) + "/memory/" + graph.FileName)
}

func (h *house) graphHost(agent memory.AgentID) graph.Host {
	_, host := h.graphAt(agent)
	return host
}

func (h *house) openGraph(ctx context.Context, agent memory.AgentID, _ agents.Dir) (*graph.Store, []func(), error) {
	if err := h.capturing(agent); err != nil {
		return nil, nil, err
	}
	s, err := h.openGraphAs(ctx, agent, false)
	return s, nil, err
}

func (h *house) openGraphReadOnly(ctx context.Context, agent memory.AgentID, _ agents.Dir) (*graph.Store, []func(), error) {
	s, err := h.openGraphAs(ctx, agent, true)
	return s, nil, err
}

func (h *house) openGraphAs(ctx context.Context, agent memory.AgentID, readOnly bool) (*graph.Store, error) {
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return nil, err
	}
	path, host := h.graphAt(agent)
	opts := graph.Options{Now: h.now, NewID: h.newHexID, Limits: host.Limits, Snapshot: host.Snapshot, ReadOnly: readOnly, Log: h.log}
	if cfg.Graph.Redact {
		red, err := h.redactor()
		if err != nil {
			return nil, err
		}
		opts.Redact = red
	}
	return graph.Open(ctx, path, opts)
}

// newHexID returns the 32 hex digits of a fresh ULID. It is safe for concurrent
// use.
func (h *house) newHexID() string {
	id := ulid.MustNew(ulid.Timestamp(h.now()), ulid.DefaultEntropy())
	return hex.EncodeToString(id[:])
}

// readGraph lends an agent's graph; ErrNotFound where it has none.
func (h *house) readGraph(ctx context.Context, agent memory.AgentID) (*graph.Store, func(), error) {
	path, host := h.graphAt(agent)
	for _, file := range []string{path, path + graph.JournalSuffix, host.Snapshot} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := h.home.Find(agent); errors.Is(err, memory.ErrNotFound) {
			return h.graphs.write(ctx, agent) // a graph of the environment, under an agent that has nothing else yet
		}
		return h.graphs.read(ctx, agent)
	}
	return nil, nil, memory.Errorf(memory.ErrNotFound, "agent %s has no graph", agent)
}

// graphService offers the graphs of agents.
func (h *house) graphService() *graph.Service {
	return graph.NewService(h.followedGraph, h.graphs.write, h.graphHost, h.now, h.log)
}

// graphAdapter speaks the graph's contract for one agent.
func (h *house) graphAdapter(agent memory.AgentID) *graph.Adapter {
	return graph.NewAdapter(agent, h.followedGraph, h.graphs.write, h.graphHost(agent), h.now, h.log)
}
