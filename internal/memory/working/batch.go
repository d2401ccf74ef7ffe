package working

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Entry is one item that a checkpoint wants to store.
type Entry struct {
	Item memory.Item // active or quarantined, without handle and times
	// Replaces is the id of the item that this one supersedes: a stored one, or
	// that of an earlier entry; "" for none.
	Replaces string
	At       time.Time // when the evidence happened; the old item held until then
}

// Batch is what came of one batch of events.
type Batch struct {
	Lease   Lease
	Record  memory.Checkpoint // range, events, cursor, mode, model, tokens, refusals, parked; the rest is filled in
	Entries []Entry
}

// Apply stores what came of a batch as one change: items, evidence, supersessions,
// the checkpoint's record and the cursor all together or not at all. An entry that
// says what is known already is merged with it; one that breaks a rule is refused
// alone, and the record says why. The answer is ErrConflict, and nothing has
// changed, where the lease was lost or the range was dealt with meanwhile.
func (s *Store) Apply(ctx context.Context, b Batch) (memory.Checkpoint, error) {
	items := make([]memory.Item, len(b.Entries))
	for i := range b.Entries {
		s.redactItem(&b.Entries[i].Item)
		items[i] = b.Entries[i].Item
	}
	alike := s.alike(ctx, items...)
	var record memory.Checkpoint
	err := s.commit(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
		if err := holds(ctx, p.tx, b.Lease); err != nil {
			return nil, err
		}
		if err := stillOpen(ctx, p.tx, b.Record); err != nil {
			return nil, err
		}
		p.alike = alike
		a := &applied{plan: p, record: emptyLists(b.Record), final: map[string]string{}}
		for _, e := range b.Entries {
			if err := a.entry(ctx, e); err != nil {
				return nil, err
			}
		}
		if b.Record.Mode != ModeOffline && b.Record.Parked == nil {
			if err := a.settleProvisional(ctx); err != nil {
				return nil, err
			}
		}
		archived, err := p.trim(ctx, s.opts.MaxItems)
		if err != nil {
			return nil, err
		}
		a.record.Archived = archived
		if a.record.ID, err = freeID(ctx, p.tx, p.at, b.Record.Range.Last); err != nil {
			return nil, err
		}
		a.record.At = p.at
		record = a.record
		return &memory.Change{Action: "checkpoint", By: "distiller", Checkpoint: &record}, nil
	})
	if err != nil {
		return memory.Checkpoint{}, fmt.Errorf("checkpoint events %d to %d: %w", b.Record.Range.First, b.Record.Range.Last, err)
	}
	return record, nil
}

// emptyLists returns c with lists that are empty rather than null in JSON.
func emptyLists(c memory.Checkpoint) memory.Checkpoint {
	for _, list := range []*[]string{&c.Created, &c.Updated, &c.Merged, &c.Quarantined} {
		*list = []string{}
	}
	if c.Refused == nil {
		c.Refused = []memory.Refusal{}
	}
	c.Refused = slices.Clone(c.Refused)
	return c
}

// Modes of a checkpoint.
const (
	ModeModel   = "model"   // a model distilled it
	ModeRules   = "rules"   // the rules did, no model being configured
	ModeOffline = "offline" // the rules did provisionally, the model being away
	ModeParked  = "parked"  // nobody could; the range waits
)

// stillOpen refuses a batch whose range another checkpoint has dealt with.
func stillOpen(ctx context.Context, q querier, c memory.Checkpoint) error {
	st, err := readState(ctx, q)
	if err != nil {
		return err
	}
	if c.Cursor.Seq > st.cursor.Seq && c.Range.First > st.cursor.Seq {
		return nil
	}
	notes, err := parkedRanges(ctx, q)
	if err != nil {
		return err
	}
	for _, settled := range c.Unparked {
		inside := func(p memory.ParkedNote) bool { return p.Range.First <= settled.First && settled.Last <= p.Range.Last }
		if !slices.ContainsFunc(notes, inside) {
			return memory.Errorf(memory.ErrConflict, "events %d to %d are no longer parked", settled.First, settled.Last)
		}
	}
	if len(c.Unparked) == 0 {
		return memory.Errorf(memory.ErrConflict, "events %d to %d have been distilled meanwhile", c.Range.First, c.Range.Last)
	}
	return nil
}

// freeID returns the id of a checkpoint: checkpoint-<time>-<last seq>, with a
// number behind it if that is taken.
func freeID(ctx context.Context, q querier, at time.Time, last int64) (string, error) {
	base := fmt.Sprintf("checkpoint-%s-%d", at.Format("20060102T150405Z"), last)
	for id, n := base, 2; ; id, n = fmt.Sprintf("%s-%d", base, n), n+1 {
		var taken int
		if err := q.QueryRowContext(ctx, `SELECT count(*) FROM checkpoints WHERE id = ?`, id).Scan(&taken); err != nil || taken == 0 {
			return id, err
		}
	}
}

// applied gathers what becomes of a batch's entries.
type applied struct {
	*plan
	record memory.Checkpoint
	final  map[string]string // id of an entry's item to the item that it was merged with
}

func (a *applied) entry(ctx context.Context, e Entry) error {
	if _, err := a.peek(ctx, e.Item.ID); err == nil || !isNone(err) {
		return err // stored already
	}
	if err := checkItem(e.Item); err != nil {
		a.refuse(e, err.Error())
		return nil
	}
	target, err := a.target(ctx, &e)
	if err != nil {
		return err
	}
	placed, outcome, err := a.place(ctx, e.Item)
	if err != nil {
		return err
	}
	a.final[e.Item.ID] = placed.ID
	switch {
	case outcome == placedRejected:
		a.refuse(e, "says the same as "+placed.Handle+", which is "+string(placed.Status)+" and from "+string(placed.Trust))
		return nil
	case outcome == placedMerged:
		a.record.Merged = addHandle(a.record.Merged, placed.Handle)
	case placed.Status == memory.Quarantined:
		a.record.Quarantined = addHandle(a.record.Quarantined, placed.Handle)
	default:
		a.record.Created = addHandle(a.record.Created, placed.Handle)
	}
	if target != "" && target != placed.ID && placed.Status == memory.Active {
		if placed.ValidFrom == nil && !e.At.IsZero() && outcome == placedNew {
			at := milliseconds(e.At)
			placed.ValidFrom = &at
		}
		if err := a.supersede(ctx, target, placed); err != nil {
			return err
		}
	}
	if placed.Supersedes != "" {
		old, err := a.peek(ctx, placed.Supersedes)
		if err != nil {
			return err
		}
		a.record.Updated = addHandle(a.record.Updated, old.Handle)
	}
	return nil
}

// target resolves what an entry supersedes. An entry that may not supersede it
// goes into quarantine.
func (a *applied) target(ctx context.Context, e *Entry) (string, error) {
	if e.Replaces == "" {
		return "", nil
	}
	id := e.Replaces
	if merged, ours := a.final[id]; ours {
		id = merged
	}
	old, err := a.peek(ctx, id)
	switch {
	case isNone(err), err == nil && old.Status == memory.Forgotten:
		return "", nil // forgotten meanwhile, or refused: there is nothing to replace
	case err != nil:
		return "", err
	case e.Item.Trust.Rank() < old.Trust.Rank():
		e.Item.Status, e.Item.Reason = memory.Quarantined, wouldReplace+old.Handle+moreTrusted
		return "", nil
	}
	return id, nil
}

func (a *applied) refuse(e Entry, reason string) {
	title := strings.Join(strings.Fields(e.Item.Title), " ")
	if runes := []rune(title); len(runes) > 80 {
		title = string(runes[:80]) + "…"
	}
	a.record.Refused = append(a.record.Refused, memory.Refusal{Entry: title, Reason: reason})
}

// settleProvisional takes out of use the items that the rules made of this range
// while the model was away and that the model does not confirm: a confirmed one
// has been merged, and is provisional no more.
func (a *applied) settleProvisional(ctx context.Context) error {
	items, err := loadItems(ctx, a.tx, `WHERE provisional = 1 AND status IN ('active', 'quarantined') AND number IN
		(SELECT number FROM evidence WHERE seq BETWEEN ? AND ?) ORDER BY number`, a.record.Range.First, a.record.Range.Last)
	if err != nil {
		return err
	}
	for _, it := range items {
		now, err := a.peek(ctx, it.ID)
		if err != nil {
			return err
		}
		if !now.Provisional || now.Status == memory.Superseded {
			continue
		}
		if err := a.withdraw(ctx, it.ID, memory.Superseded, "made while the model was away, and not confirmed by it"); err != nil {
			return err
		}
		a.record.Updated = addHandle(a.record.Updated, it.Handle)
	}
	return nil
}

func addHandle(list []string, handle string) []string {
	if slices.Contains(list, handle) {
		return list
	}
	return append(list, handle)
}

// Reverted is what came of undoing a checkpoint.
type Reverted struct {
	ID        string   `json:"id"`
	Withdrawn []string `json:"withdrawn" jsonschema:"handles of items that it had created, now archived"`
	Restored  []string `json:"restored" jsonschema:"handles of items that it had changed or replaced, now as before"`
	Kept      []string `json:"kept" jsonschema:"handles of items changed again since, left as they are"`
}

// RevertCheckpoint undoes what one checkpoint did to items, as a new change: what
// it created is archived, what it replaced or merged is as before. What has been
// changed again since is left alone. The events count as distilled all the same.
func (s *Store) RevertCheckpoint(ctx context.Context, id string) (Reverted, error) {
	res := Reverted{ID: id, Withdrawn: []string{}, Restored: []string{}, Kept: []string{}}
	err := s.commit(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
		var seq int64
		err := p.tx.QueryRowContext(ctx, `SELECT seq FROM checkpoints WHERE id = ?`, id).Scan(&seq)
		if isNone(err) {
			return nil, noCheckpoint(id)
		}
		if err != nil {
			return nil, err
		}
		items, err := loadItems(ctx, p.tx, `WHERE number IN (SELECT number FROM revisions WHERE seq = ?) ORDER BY number`, seq)
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			if err := res.undo(ctx, p, it, seq); err != nil {
				return nil, err
			}
		}
		if len(p.order) == 0 {
			return nil, nil
		}
		return &memory.Change{Action: "revert", By: string(memory.Actor(ctx)), Why: "undo " + id}, nil
	})
	if err != nil {
		return Reverted{}, fmt.Errorf("revert %s: %w", id, err)
	}
	return res, nil
}

// undo gives one item the state that it had before the change of that number.
func (r *Reverted) undo(ctx context.Context, p *plan, now memory.Item, seq int64) error {
	number, err := numberOf(now.Handle)
	if err != nil {
		return err
	}
	versions, err := versionsOf(ctx, p.tx, number)
	if err != nil {
		return err
	}
	last := versions[len(versions)-1]
	if last.Seq != seq || now.Status == memory.Forgotten {
		r.Kept = append(r.Kept, now.Handle)
		return nil
	}
	it, err := p.touch(ctx, now.ID)
	if err != nil {
		return err
	}
	if len(versions) == 1 {
		it.Status, it.Reason = memory.Archived, "its checkpoint was reverted"
		r.Withdrawn = append(r.Withdrawn, it.Handle)
		return nil
	}
	version, updated := it.Version, it.UpdatedAt
	*it = versions[len(versions)-2].Item
	it.Version, it.UpdatedAt = version, updated
	r.Restored = append(r.Restored, it.Handle)
	return nil
}

// Progress is how far the event log has been distilled.
type Progress struct {
	Cursor memory.Cursor
	Parked []memory.ParkedNote // oldest first
}

// Progress brings the store up to date with the log, and returns how far the log
// has been distilled.
func (s *Store) Progress(ctx context.Context) (Progress, error) {
	if err := s.locked(ctx, func() error { return s.catchUp(ctx) }); err != nil {
		return Progress{}, err
	}
	var pr Progress
	err := s.view(ctx, func(tx *sql.Tx) error {
		st, err := readState(ctx, tx)
		if err != nil {
			return err
		}
		pr.Cursor = st.cursor
		pr.Parked, err = parkedRanges(ctx, tx)
		return err
	})
	return pr, err
}

// Distilled returns the seq of the log up to which everything is distilled or
// parked, as the database has it.
func (s *Store) Distilled(ctx context.Context) (seq int64, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		st, err := readState(ctx, tx)
		seq = st.cursor.Seq
		return err
	})
	return seq, err
}

// Suppressed returns which of the events of those ids are no longer recalled.
func (s *Store) Suppressed(ctx context.Context, events []memory.Event) (map[string]bool, error) {
	gone := map[string]bool{}
	err := s.view(ctx, func(tx *sql.Tx) error {
		for _, e := range events {
			var there bool
			if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM suppressed WHERE event_id = ?)`, e.ID).Scan(&there); err != nil {
				return err
			}
			if there {
				gone[e.ID] = true
			}
		}
		return nil
	})
	return gone, err
}
