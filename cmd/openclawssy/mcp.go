package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/httpapi"
	"github.com/openclawssy/openclawssy/internal/mcpapi"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/scheduler"
)

// mcpFace shows the Catalog over the Model Context Protocol.
func (h *house) mcpFace(c *op.Catalog) *mcpapi.Face {
	return mcpapi.New(mcpapi.Options{Catalog: c, Version: version, Report: h.latestReport, Audit: h.audit, Now: h.now, Log: h.log})
}

// tooling is what the command mcp works with.
func (h *house) tooling(c *op.Catalog, s *scheduler.Scheduler) cli.Tooling {
	return cli.Tooling{
		Schedule: h.longLived(s),
		Serve: func(ctx context.Context, agent memory.AgentID, tools []string, in io.Reader, out io.Writer) error {
			face := h.mcpFace(c)
			ops, err := face.CheckTools(tools)
			if err != nil {
				return err
			}
			return face.Stdio(ctx, agent, ops, in, out)
		},
	}
}

// mcpMount is the face as the server shows it.
func (h *house) mcpMount(c *op.Catalog) (httpapi.Mount, error) {
	face := h.mcpFace(c)
	ops, err := face.CheckTools(h.cfg.HTTP.MCPTools)
	if err != nil {
		return httpapi.Mount{}, fmt.Errorf("http.mcp_tools: %w", err)
	}
	return httpapi.Mount{Pattern: "/mcp", Summary: "The Model Context Protocol, streamable HTTP.", Takes: []httpapi.Header{agentHeader},
		Right: access.Read, Body: mcpapi.MaxLine, Own: true, Handler: face.HTTP(ops)}, nil
}

// latestReport returns the text of an agent's newest weekly report.
func (h *house) latestReport(_ context.Context, agent memory.AgentID) (text string, err error) {
	folder, err := h.memoryFolder(agent)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	names, err := fs.Glob(folder.FS(), "reports/weekly-*.md")
	if err != nil {
		return "", err
	}
	newest, at := "", time.Time{}
	for _, name := range names {
		info, err := folder.Stat(name)
		if err != nil {
			return "", memory.Errorf(memory.ErrUnavailable, "look for reports: %w", err)
		}
		if !info.ModTime().Before(at) {
			newest, at = name, info.ModTime()
		}
	}
	if newest == "" {
		return "", memory.WithHint(memory.Errorf(memory.ErrNotFound, "agent %s has no report yet", agent), "maintenance writes one every week")
	}
	raw, err := folder.ReadFile(newest)
	if err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "read the report: %w", err)
	}
	return string(raw), nil
}
