package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/graphview"
	"github.com/openclawssy/openclawssy/internal/httpapi"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// graphPage makes the viewer of an agent's graph.
func (h *house) graphPage(graphs *graph.Service) func(memory.AgentID) http.Handler {
	return func(agent memory.AgentID) http.Handler {
		return graphview.New(graphview.Source{
			Export: func(ctx context.Context) (any, error) { return graphs.Export(ctx, agent, graph.ExportInput{}) },
			Folder: func() (*os.Root, error) { return h.memoryFolder(agent) },
		}, h.log)
	}
}

// graphMount answers the page of the graph under serve.
func (h *house) graphMount() httpapi.Mount {
	graphs := h.graphService()
	return httpapi.Mount{Pattern: "GET /v1/agents/{agent}/graph", Summary: "The agent's graph of what it knows.", Right: access.Read, Handler: graphview.Graph(func(r *http.Request) (any, error) {
		caller := access.Caller(r.Context())
		agent, err := memory.ParseAgentID(r.PathValue("agent"))
		if err == nil {
			err = caller.Allow(access.Read, agent)
		}
		if err != nil {
			return nil, err
		}
		return graphs.Export(r.Context(), agent, graph.ExportInput{})
	}, h.log)}
}

// memoryFolder opens an agent's memory folder; ErrNotFound where it has none.
func (h *house) memoryFolder(agent memory.AgentID) (*os.Root, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir.Path("memory"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, memory.Errorf(memory.ErrNotFound, "agent %s has no memory yet", agent)
	}
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "open the memory of agent %s: %w", agent, err)
	}
	return root, nil
}

// scratchGraph lends a graph in a directory that goes with it.
func (h *house) scratchGraph(ctx context.Context, _ memory.AgentID) (*graph.Store, func(), error) {
	dir, err := os.MkdirTemp("", "openclawssy-graph-")
	if err != nil {
		return nil, nil, memory.Errorf(memory.ErrUnavailable, "make a scratch directory: %w", err)
	}
	s, err := graph.Open(ctx, filepath.Join(dir, graph.FileName), graph.Options{Now: h.now, NewID: h.newHexID, Log: h.log})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, func() {
		if err := errors.Join(s.Close(), os.RemoveAll(dir)); err != nil {
			h.log.Warn().Err(err).Msg("throw the scratch graph away")
		}
	}, nil
}

// sessionToken is a secret of 130 bits.
func sessionToken() string { return rand.Text() }
