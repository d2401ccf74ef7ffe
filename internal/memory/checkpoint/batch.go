package checkpoint

import (
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
)

const (
	readChunk    = 64 // events read from the log at a time
	contextTurns = 4  // shown before a batch
	// Most items offered to a model, whose prompt they lengthen, and to the rules.
	relatedToModel = 30
	relatedToRules = 400
)

// batch is a range of the log to be distilled.
type batch struct {
	distill.Batch
	span  memory.Range
	next  memory.Cursor // behind the range
	turns int           // in the range, suppressed ones included
}

// collect takes the next batch behind a cursor: turns until their texts fill
// BatchTokens, at least one, and the book-keeping between and behind them. It is
// not complete yet.
func (r *run) collect(ctx context.Context, from memory.Cursor) (batch, error) {
	b := batch{span: memory.Range{First: from.Seq + 1}, next: from}
	room := r.BatchTokens * 4
	for {
		events, next, err := r.Log.Read(ctx, b.next, readChunk)
		if err != nil {
			return batch{}, err
		}
		if len(events) == 0 {
			break
		}
		fits := 0
		for _, e := range events {
			if e.Type.IsTurn() {
				if room -= utf8.RuneCountInString(e.Text); room < 0 && b.turns > 0 {
					break
				}
				b.turns++
				b.Events = append(b.Events, e)
			}
			fits++
		}
		if fits < len(events) {
			// Read again up to the cut, for the cursor that stands there.
			if fits > 0 {
				if _, b.next, err = r.Log.Read(ctx, b.next, fits); err != nil {
					return batch{}, err
				}
				if last := events[fits-1].Seq; b.next.Seq != last {
					return batch{}, memory.Errorf(memory.ErrInternal, "the log was read again up to event %d, and ended at %d", last, b.next.Seq)
				}
			}
			break
		}
		b.next = next
	}
	b.span.Last = b.next.Seq
	return b, nil
}

// load reads a parked range, and completes it.
func (r *run) load(ctx context.Context, span memory.Range) (batch, error) {
	b := batch{span: span}
	at := memory.Cursor{Seq: span.First - 1}
	for at.Seq < span.Last {
		events, next, err := r.Log.Read(ctx, at, int(min(readChunk, span.Last-at.Seq)))
		if err != nil {
			return batch{}, err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if e.Seq <= span.Last && e.Type.IsTurn() {
				b.turns++
				b.Events = append(b.Events, e)
			}
		}
		at = next
	}
	return b, r.complete(ctx, &b)
}

// complete fills in what the distiller is told besides the events, and takes out
// the events that must not be recalled.
func (r *run) complete(ctx context.Context, b *batch) error {
	gone, err := r.Store.Suppressed(ctx, b.Events)
	if err != nil {
		return err
	}
	b.Events = slices.DeleteFunc(b.Events, func(e memory.Event) bool { return gone[e.ID] || saysNothing(e) })
	b.Agent, b.Now, b.Sessions = r.agent, r.service.opts.Now(), map[string]memory.Session{}
	if len(b.Events) == 0 {
		return nil
	}
	texts := make([]string, len(b.Events))
	for i := range b.Events {
		e := &b.Events[i]
		e.Text = firstRunes(e.Text, r.BatchTokens*4)
		texts[i] = e.Text
		if _, known := b.Sessions[e.SessionID]; known || e.SessionID == "" {
			continue
		}
		session, err := r.Sessions.Get(ctx, e.SessionID)
		if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return err
		}
		b.Sessions[e.SessionID] = session
	}
	limit := relatedToModel
	if r.Model == nil {
		limit = relatedToRules
	}
	if b.Related, err = r.Store.Related(ctx, texts, limit); err != nil {
		return err
	}
	b.Context, err = r.before(ctx, b.Events[0])
	return err
}

// before returns a few turns of the same session just before an event.
func (r *run) before(ctx context.Context, first memory.Event) ([]memory.Event, error) {
	const back = 3 * contextTurns // events looked through
	from := max(0, first.Seq-1-back)
	events, _, err := r.Log.Read(ctx, memory.Cursor{Seq: from}, back)
	if err != nil {
		return nil, err
	}
	gone, err := r.Store.Suppressed(ctx, events)
	if err != nil {
		return nil, err
	}
	events = slices.DeleteFunc(events, func(e memory.Event) bool {
		return e.Seq >= first.Seq || !e.Type.IsTurn() || e.SessionID != first.SessionID || gone[e.ID] || saysNothing(e)
	})
	for i := range events {
		events[i].Text = firstRunes(events[i].Text, 2000)
	}
	return events[max(0, len(events)-contextTurns):], nil
}

// saysNothing reports that there is nothing in an answer to conclude anything from.
func saysNothing(e memory.Event) bool {
	return e.Type == memory.AssistantOutput && llm.SaysNothing(e.Text)
}

// firstRunes cuts s after n runes.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
