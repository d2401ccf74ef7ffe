package events

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Edits say what Rewrite changes.
type Edits struct {
	// Wants reports whether Event is asked about the event at all. What it does not
	// want is not decoded.
	Wants func(*Head) bool
	// Event changes an event in place and reports whether it did. Its seq stays.
	Event func(*memory.Event) (changed bool, err error)
	// Drop reports whether damaged bytes of the log go.
	Drop func(raw []byte) bool
	// Seqs are the only events that are looked at, in ascending order; nil for all. They
	// are found without reading the rest of the log, and Drop is not asked.
	Seqs []int64
}

// Rewritten is what Rewrite did.
type Rewritten = journal.Rewritten

// Rewrite changes events of the log in dir where they stand: each keeps its seq
// and gets a new checksum, so that no gap comes about. It works beside others that
// read and append. An interrupted Rewrite is completed by the next one.
func Rewrite(ctx context.Context, dir string, log zerolog.Logger, e Edits) (Rewritten, error) {
	var h Head
	done, err := journal.Rewrite(ctx, dir, log, journal.Edits{Drop: e.Drop, Seqs: e.Seqs, Line: func(line journal.Line) ([]byte, error) {
		if err := h.read(line); err != nil || !e.Wants(&h) {
			return nil, nil // no event is reported as damage where it is read
		}
		ev, err := h.Event()
		if err != nil {
			return nil, nil // likewise
		}
		changed, err := e.Event(&ev)
		if err != nil || !changed {
			return nil, err
		}
		return appendEvent(nil, ev)
	}})
	if err != nil {
		return done, fmt.Errorf("rewrite the event log: %w", err)
	}
	return done, nil
}
