package working

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// rejected is the reason of an item that a person has turned down: the same is
// not taken again.
const rejected = "rejected"

// commit makes one change: with everyone else locked out it brings the database
// up to date, lets propose say what to change, appends that to the log, waits
// until it is on disk, and applies it. A nil change from propose does nothing.
// Once the event is appended the change is made even if ctx ends.
func (s *Store) commit(ctx context.Context, propose func(ctx context.Context, p *plan) (*memory.Change, error)) error {
	changed, err := s.commitQuietly(ctx, propose)
	if changed {
		s.Tell()
	}
	return err
}

// Tell tells whoever follows the items that some have changed (Options.Changed).
func (s *Store) Tell() {
	if s.opts.Changed != nil {
		s.opts.Changed()
	}
}

// CatchUp applies what other processes have changed.
func (s *Store) CatchUp(ctx context.Context) error {
	return s.locked(ctx, func() error { return s.catchUp(ctx) })
}

// commitQuietly is commit without telling anybody; it reports whether there was a
// change.
func (s *Store) commitQuietly(ctx context.Context, propose func(ctx context.Context, p *plan) (*memory.Change, error)) (bool, error) {
	var change *memory.Change
	err := s.locked(ctx, func() error {
		if err := s.catchUp(ctx); err != nil {
			return err
		}
		err := s.view(ctx, func(tx *sql.Tx) error {
			p, err := newPlan(ctx, tx, milliseconds(s.opts.Now()))
			if err != nil {
				return err
			}
			if change, err = propose(ctx, p); err != nil || change == nil {
				return err
			}
			change.At = p.at
			change.Items = p.touched()
			return nil
		})
		if err != nil || change == nil {
			return err
		}
		return s.record(context.WithoutCancel(ctx), *change)
	})
	return err == nil && change != nil, err
}

// record appends a change to the log and applies it.
func (s *Store) record(ctx context.Context, ch memory.Change) error {
	s.redactChange(&ch)
	handles := make([]string, len(ch.Items))
	for i, it := range ch.Items {
		if err := it.Validate(); err != nil {
			return err
		}
		handles[i] = it.Handle
	}
	plain, err := encodeChange(ch)
	if err != nil {
		return err
	}
	typ := memory.MemoryChange
	if ch.Checkpoint != nil {
		typ = memory.CheckpointEvent
	}
	from, _ := memory.SessionOf(ctx) // so that what was written in a session is erased with it
	events, err := s.opts.Log.Write(ctx, memory.Event{Type: typ, Origin: memory.OriginSystem, Timestamp: ch.At, SessionID: from.ID,
		Text:     strings.TrimSpace(fmt.Sprintf("%s by %s: %s", ch.Action, ch.By, strings.Join(handles, " "))),
		Metadata: map[string]any{memory.MetaChange: plain}})
	if err != nil {
		return fmt.Errorf("append the change to the event log: %w", err)
	}
	seq := events[len(events)-1].Seq
	if err := s.catchUp(ctx); err != nil {
		return fmt.Errorf("the change is kept as event %d and will be applied later: %w", seq, err)
	}
	if s.ahead.at.Seq < seq {
		return memory.Errorf(memory.ErrInternal, "event %d was written, but the log ends at %d", seq, s.ahead.at.Seq)
	}
	return nil
}

// redactChange takes secrets out of every text of a change.
func (s *Store) redactChange(ch *memory.Change) {
	ch.Why = s.opts.Redact.Text(ch.Why)
	for i := range ch.Items {
		s.redactItem(&ch.Items[i])
	}
	if c := ch.Checkpoint; c != nil {
		for i := range c.Refused {
			c.Refused[i].Entry, c.Refused[i].Reason = s.opts.Redact.Text(c.Refused[i].Entry), s.opts.Redact.Text(c.Refused[i].Reason)
		}
		if c.Parked != nil {
			c.Parked.Reason = s.opts.Redact.Text(c.Parked.Reason)
		}
	}
}

// redactItem takes secrets out of an item, which it changes in place.
func (s *Store) redactItem(it *memory.Item) {
	it.Title, it.Content, it.Reason = s.opts.Redact.Text(it.Title), s.opts.Redact.Text(it.Content), s.opts.Redact.Text(it.Reason)
	evidence := make([]memory.Evidence, len(it.Evidence))
	for i, ev := range it.Evidence {
		ev.Quote, ev.SourceID = s.opts.Redact.Text(ev.Quote), s.opts.Redact.Text(ev.SourceID)
		evidence[i] = ev
	}
	it.Evidence = evidence
	if it.Metadata != nil {
		it.Metadata = s.opts.Redact.Value(it.Metadata)
	}
}

// checkText refuses what no item may hold: text that is not UTF-8, and control
// characters other than line breaks and tabs.
func checkText(field, text string) error {
	bad := func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar
	}
	if strings.ContainsFunc(text, bad) {
		return &memory.FieldError{Field: field, Reason: "must be UTF-8 without control characters"}
	}
	return nil
}

// checkSource refuses what an item may not be, seen where it comes from: what
// tools and web pages say has no authority.
func checkSource(it memory.Item) error {
	if it.Trust.Rank() > memory.TrustTool.Rank() {
		return nil
	}
	switch it.Kind {
	case memory.KindPreference, memory.KindPolicy, memory.KindIdentity, memory.KindReminder:
		return &memory.FieldError{Field: "kind", Reason: "must not be " + it.Kind + ": the item rests on what a tool or web page says"}
	}
	if it.Importance > 3 {
		return &memory.FieldError{Field: "importance", Reason: "must be at most 3: the item rests on what a tool or web page says"}
	}
	return nil
}
