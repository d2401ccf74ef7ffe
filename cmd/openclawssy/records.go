package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/record"
)

func recordConfig(c config.Records) record.Config {
	return record.Config{Namespaces: c.Namespaces, DefaultTTL: c.DefaultTTL, PruneStrategy: c.PruneStrategy, ListLimit: c.ListLimit}
}

func (h *house) openRecords(ctx context.Context, agent memory.AgentID, dir agents.Dir) (*record.Store, []func(), error) {
	if err := h.capturing(agent); err != nil {
		return nil, nil, err
	}
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return nil, nil, err
	}
	opts := record.Options{Config: recordConfig(cfg.Records), Now: h.now}
	if cfg.Records.Redact {
		red, err := h.redactor()
		if err != nil {
			return nil, nil, err
		}
		opts.Redact = red
	}
	s, err := record.Open(ctx, dir.Path("memory", record.FileName), opts)
	return s, nil, err
}

// readRecords lends an agent's records; ErrNotFound where it has none.
func (h *house) readRecords(ctx context.Context, agent memory.AgentID) (*record.Store, func(), error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(dir.Path("memory", record.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, memory.Errorf(memory.ErrNotFound, "agent %s has no records", agent)
	}
	return h.records.read(ctx, agent)
}

// describeRecords tells where an agent's records are or would be.
func (h *house) describeRecords(agent memory.AgentID) (string, record.Config) {
	cfg, err := h.cfg.For(agent)
	if err != nil { // checked when it was loaded
		cfg = h.cfg
	}
	return h.home.File("agents/" + string(agent) + "/memory/" + record.FileName), recordConfig(cfg.Records)
}

// recordByHandle finds the record of a REC handle.
func (h *house) recordByHandle(ctx context.Context, agent memory.AgentID, handle string) (any, error) {
	s, release, err := h.readRecords(ctx, agent)
	if err != nil {
		return nil, err
	}
	defer release()
	r, found, err := s.ByHandle(ctx, handle)
	if err == nil && !found {
		err = memory.Errorf(memory.ErrNotFound, "there is no record %s", handle)
	}
	return r, err
}
