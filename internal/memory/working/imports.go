package working

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Imported is one change that an importer asks for: what its source says now, and
// what it says no more.
type Imported struct {
	Why      string // what is imported, kept in the history
	Put      []Entry
	Archive  []Withdrawal
	Suppress []string // ids of events whose episodes are no longer recalled
}

// Withdrawal takes an item out of use; it can be brought back.
type Withdrawal struct {
	ID     string
	Reason string
}

// ImportResult is what came of an Imported.
type ImportResult struct {
	// IDs are those that the entries of Put got, in their order: that of the entry,
	// or one with a number behind it where a superseded item has that. "" where the
	// entry was refused.
	IDs       []string
	Created   []string // handles, as in the lists below
	Archived  []string
	Overfull  []string         // archived to keep under the cap of active items
	Refused   []memory.Refusal // entries that break a rule
	Unchanged int              // entries that were there already, or that a person has forgotten or rejected
}

// Import makes one change of an importer's wishes. An entry is stored under its
// id, whatever else says the same; one that is stored already stays as it is, and
// an archived one is taken up again, unless a person has forgotten or rejected
// it. Evidence of one that stays is renewed. An entry that would replace what is from a more trusted source is
// quarantined. Of Archive, what is not active stays as it is.
func (s *Store) Import(ctx context.Context, in Imported) (ImportResult, error) {
	for i := range in.Put {
		s.redactItem(&in.Put[i].Item)
	}
	var res ImportResult
	err := s.commit(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
		res = ImportResult{IDs: make([]string, len(in.Put))}
		for i, e := range in.Put {
			id, err := res.put(ctx, p, e)
			if err != nil {
				return nil, err
			}
			res.IDs[i] = id
		}
		for _, w := range in.Archive {
			if err := res.archive(ctx, p, w); err != nil {
				return nil, err
			}
		}
		var err error
		if res.Overfull, err = p.trim(ctx, s.opts.MaxItems); err != nil {
			return nil, err
		}
		if len(p.order)+len(in.Suppress) == 0 {
			return nil, nil
		}
		return &memory.Change{Action: "import", By: "import", Why: in.Why, Suppress: in.Suppress}, nil
	})
	if err != nil {
		return ImportResult{}, fmt.Errorf("import %s: %w", in.Why, err)
	}
	return res, nil
}

// put stores one entry and returns the id that it got.
func (r *ImportResult) put(ctx context.Context, p *plan, e Entry) (string, error) {
	if err := checkItem(e.Item); err != nil {
		r.Refused = append(r.Refused, memory.Refusal{Entry: e.Item.Title, Reason: err.Error()})
		return "", nil
	}
	have, err := p.free(ctx, &e.Item)
	if err != nil {
		return "", err
	}
	var placed *memory.Item
	switch {
	case have == nil:
		placed = p.add(e.Item)
	case have.Status == memory.Archived && have.Reason != rejected && e.Item.Status == memory.Active:
		if placed, err = p.touch(ctx, have.ID); err != nil {
			return "", err
		}
		placed.Status, placed.Reason, placed.ValidTo = e.Item.Status, e.Item.Reason, e.Item.ValidTo
	case have.Status == memory.Active && len(e.Item.Evidence) > 0 && !slices.Equal(have.Evidence, e.Item.Evidence) && have.Trust == e.Item.Trust:
		// The same words stand in another event now.
		if placed, err = p.touch(ctx, have.ID); err != nil {
			return "", err
		}
		placed.Evidence = e.Item.Evidence
		r.Unchanged++
		return placed.ID, nil
	default:
		r.Unchanged++
		return have.ID, nil
	}
	r.Created = append(r.Created, placed.Handle)
	return placed.ID, p.replace(ctx, e.Replaces, placed)
}

// free finds the item of it's id. Where that is superseded it gives it an id with
// a number behind, and looks again; nil for an id that is not taken.
func (p *plan) free(ctx context.Context, it *memory.Item) (*memory.Item, error) {
	base := it.ID
	for n := 2; ; n++ {
		have, err := p.peek(ctx, it.ID)
		switch {
		case isNone(err):
			return nil, nil
		case err != nil:
			return nil, err
		case have.Status != memory.Superseded:
			return &have, nil
		}
		it.ID = base + "_" + strconv.Itoa(n)
	}
}

// replace lets placed take the place of the item of that id, if that is in use and
// no more trusted.
func (p *plan) replace(ctx context.Context, id string, placed *memory.Item) error {
	if id == "" || id == placed.ID {
		return nil
	}
	old, err := p.peek(ctx, id)
	switch {
	case isNone(err):
		return nil
	case err != nil:
		return err
	case old.Status == memory.Forgotten, old.Reason == rejected:
		return nil
	case placed.Trust.Rank() < old.Trust.Rank():
		placed.Status, placed.Reason = memory.Quarantined, wouldReplace+old.Handle+moreTrusted
		return nil
	}
	return p.supersede(ctx, id, placed)
}

func (r *ImportResult) archive(ctx context.Context, p *plan, w Withdrawal) error {
	now, err := p.peek(ctx, w.ID)
	if isNone(err) || err == nil && now.Status != memory.Active {
		return nil
	}
	if err != nil {
		return err
	}
	it, err := p.touch(ctx, w.ID)
	if err != nil {
		return err
	}
	it.Status, it.Reason = memory.Archived, w.Reason
	r.Archived = append(r.Archived, it.Handle)
	return nil
}
