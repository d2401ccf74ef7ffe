package events

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Head is what Rewrite tells of an event before it is read whole.
type Head struct {
	Seq  int64
	Type memory.EventType
}

// Edits say what Rewrite changes.
type Edits struct {
	// Wants reports whether Event is asked about the event at all.
	Wants func(Head) bool
	// Event changes an event in place and reports whether it did. Its seq stays.
	Event func(*memory.Event) (changed bool, err error)
	// Drop reports whether damaged bytes of the log go.
	Drop func(raw []byte) bool
}

// Rewritten is what Rewrite did.
type Rewritten = journal.Rewritten

// Rewrite changes events of the log in dir where they stand: each keeps its seq
// and gets a new checksum, so that no gap comes about. It works beside others that
// read and append. An interrupted Rewrite is completed by the next one.
func Rewrite(ctx context.Context, dir string, log zerolog.Logger, e Edits) (Rewritten, error) {
	done, err := journal.Rewrite(ctx, dir, log, journal.Edits{Drop: e.Drop, Line: func(line journal.Line) ([]byte, error) {
		if !e.Wants(Head{Seq: line.Seq, Type: typeOf(line.Data)}) {
			return nil, nil
		}
		ev, err := decode(line.Data)
		if err != nil {
			return nil, nil // no event: it is reported as damage where it is read
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

// typeOf reads the type of a line that this package wrote; "" for any other.
func typeOf(line []byte) memory.EventType {
	l := layout{rest: line, ok: true}
	l.member(`{"id":`)
	typ := l.member(`,"type":`)
	if !l.ok {
		return ""
	}
	return memory.EventType(typ)
}
