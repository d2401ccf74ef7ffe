package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/bridge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/record"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

func recordConfig(c config.Records) record.Config {
	return record.Config{Namespaces: c.Namespaces, DefaultTTL: c.DefaultTTL, PruneStrategy: c.PruneStrategy, ListLimit: c.ListLimit}
}

// recordsPath returns where an agent's records are or would be.
func (h *house) recordsPath(agent memory.AgentID) (string, error) {
	own := h.home.File("agents/" + string(agent) + "/memory/" + record.FileName)
	scope := record.DefaultAgent
	if h.only && string(agent) == h.opts.Agent {
		scope = record.OneAgent
	}
	return record.DatabasePath(own, h.getenv(record.PathVariable), scope)
}

func (h *house) openRecords(ctx context.Context, agent memory.AgentID, _ agents.Dir) (*record.Store, []func(), error) {
	if err := h.capturing(agent); err != nil {
		return nil, nil, err
	}
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return nil, nil, err
	}
	s, err := h.openRecordsAs(ctx, agent, cfg.Records, false)
	if err != nil || !cfg.Records.Recall {
		return s, nil, err
	}
	// Recall indexes what was written since; what there was before it was switched
	// on is too much for its deadline.
	if err := s.Index(ctx); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, nil, nil
}

func (h *house) openRecordsReadOnly(ctx context.Context, agent memory.AgentID, _ agents.Dir) (*record.Store, []func(), error) {
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return nil, nil, err
	}
	s, err := h.openRecordsAs(ctx, agent, cfg.Records, true)
	return s, nil, err
}

func (h *house) openRecordsAs(ctx context.Context, agent memory.AgentID, cfg config.Records, readOnly bool) (*record.Store, error) {
	path, err := h.recordsPath(agent)
	if err != nil {
		return nil, err
	}
	opts := record.Options{Config: recordConfig(cfg), Now: h.now, ReadOnly: readOnly}
	if cfg.Redact {
		red, err := h.redactor()
		if err != nil {
			return nil, err
		}
		opts.Redact = red
	}
	return record.Open(ctx, path, opts)
}

// readRecords lends an agent's records; ErrNotFound where it has none.
func (h *house) readRecords(ctx context.Context, agent memory.AgentID) (*record.Store, func(), error) {
	path, err := h.recordsPath(agent)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, memory.Errorf(memory.ErrNotFound, "agent %s has no records", agent)
	}
	if _, err := h.home.Find(agent); errors.Is(err, memory.ErrNotFound) {
		return h.records.write(ctx, agent) // a database of AINL_MEMORY_DB, under an agent that has nothing else yet
	}
	return h.records.read(ctx, agent)
}

// describeRecords tells where an agent's records are or would be.
func (h *house) describeRecords(agent memory.AgentID) (string, record.Config) {
	cfg, err := h.cfg.For(agent)
	if err != nil { // checked when it was loaded
		cfg = h.cfg
	}
	path, err := h.recordsPath(agent)
	if err != nil { // only with a scope that serve refuses
		path = ""
	}
	return path, recordConfig(cfg.Records)
}

// recordByHandle finds the record of a REC handle.
func (h *house) recordByHandle(ctx context.Context, agent memory.AgentID, handle string) (any, error) {
	s, release, err := h.readRecords(ctx, agent)
	if err != nil {
		return nil, err
	}
	defer release()
	r, found, err := s.ByHandle(ctx, handle)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, memory.Errorf(memory.ErrNotFound, "there is no record %s", handle)
	}
	return r.View()
}

// recallRecords returns how recall asks for records, of agents that want it.
func (h *house) recallRecords(records *record.Service) recall.Source {
	return func(ctx context.Context, agent memory.AgentID, q text.Query, limit int) ([]memory.Item, error) {
		cfg, err := h.cfg.For(agent)
		if err != nil || !cfg.Records.Recall {
			return nil, err
		}
		return records.Match(ctx, agent, q, limit)
	}
}

// bridge serves one agent to a program in another language.
func (h *house) bridge(ctx context.Context, agent memory.AgentID, in io.Reader, out io.Writer) error {
	h.only = true
	path, cfg := h.describeRecords(agent)
	return bridge.Serve(ctx, in, out, bridge.Adapters{
		"memory":          bridge.Memory(record.NewAdapter(agent, h.readRecords, h.records.write, path, cfg)),
		graph.AdapterName: bridge.Graph(h.graphAdapter(agent)),
	})
}
