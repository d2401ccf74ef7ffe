package main

import (
	"context"
	"errors"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/record"
)

// recordFiles makes the commands that bring records from files and into them.
func (h *house) recordFiles() []cli.Command {
	return cli.RecordFiles{
		Read: h.recordsOrNone, Write: h.records.write,
		Config: func(agent memory.AgentID) record.Config {
			_, config := h.describeRecords(agent)
			return config
		},
		Report: func(ctx context.Context, path string, q record.ReportQuery) (record.Report, error) {
			return record.ReportFile(ctx, path, q, h.now())
		},
	}.Commands()
}

// recordsOrNone lends an agent's records, or a store of nothing where it has none.
func (h *house) recordsOrNone(ctx context.Context, agent memory.AgentID) (*record.Store, func(), error) {
	s, release, err := h.readRecords(ctx, agent)
	if !errors.Is(err, memory.ErrNotFound) {
		return s, release, err
	}
	s, err = record.Empty(h.describeRecords(agent))
	return s, func() {}, err
}
