package working

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Imported is one change that an importer asks for: what its source says now, and
// what it says no more.
type Imported struct {
	Action   string // kept in the history; "import" where empty
	Why      string // what is imported, kept in the history
	Put      []Entry
	Archive  []Withdrawal
	Suppress []string // ids of events whose episodes are no longer recalled
	// Shares reports whether an active item that says the same as a new entry, word
	// for word, stands for it, so that nothing is stored; nil for never.
	Shares func(memory.Item) bool
}

// Withdrawal takes an item out of use; it can be brought back.
type Withdrawal struct {
	ID     string // as an entry of Put had it: one that got a number behind it is meant too
	Reason string
}

// ImportResult is what came of an Imported.
type ImportResult struct {
	// IDs are those that the entries of Put got, in their order: that of the entry,
	// one with a number behind it ("_2") where a superseded item has that, or that of
	// the item that stands for it. "" where the entry was refused.
	IDs       []string
	Created   []string // handles, as in the lists below
	Archived  []string
	Overfull  []string         // archived to keep under the cap of active items
	Refused   []memory.Refusal // entries that break a rule
	Unchanged int              // entries that were there already, or that a person has forgotten or rejected
}

// Import makes one change of an importer's wishes. An entry is stored under its
// id, unless an item that Shares allows says the same; one that is stored already
// stays as it is, and an archived one is taken up again, unless a person has
// forgotten or rejected it. Its evidence is renewed, and one that stays holds as
// long as any entry asked for. An entry that would replace what is from a more
// trusted source is quarantined; one that is there already takes no other's place,
// but what it would replace is archived. Of Archive, what is not active stays as it
// is.
func (s *Store) Import(ctx context.Context, in Imported) (ImportResult, error) {
	for i := range in.Put {
		s.redactItem(&in.Put[i].Item)
	}
	var res ImportResult
	err := s.commit(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
		res = ImportResult{IDs: make([]string, len(in.Put))}
		for i, e := range in.Put {
			id, err := res.put(ctx, p, e, in.Shares)
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
		return &memory.Change{Action: cmp.Or(in.Action, "import"), By: "import", Why: in.Why, Suppress: in.Suppress}, nil
	})
	if err != nil {
		return ImportResult{}, fmt.Errorf("import %s: %w", in.Why, err)
	}
	return res, nil
}

// put stores one entry and returns the id that it got.
func (r *ImportResult) put(ctx context.Context, p *plan, e Entry, shares func(memory.Item) bool) (string, error) {
	if err := checkItem(e.Item); err != nil {
		r.Refused = append(r.Refused, memory.Refusal{Entry: e.Item.Title, Reason: err.Error()})
		return "", nil
	}
	var have *memory.Item
	var err error
	if e.Item.ID, have, err = p.unsuperseded(ctx, e.Item.ID); err != nil {
		return "", err
	}
	if have == nil && shares != nil && e.Item.Status == memory.Active {
		if have, err = p.sameWords(ctx, e.Item, shares); err != nil {
			return "", err
		}
	}
	var placed *memory.Item
	switch {
	case have == nil:
		setAside(&e.Item)
		placed = p.add(e.Item)
	case have.Status == memory.Archived && have.Reason != rejected && e.Item.Status == memory.Active:
		if placed, err = p.touch(ctx, have.ID); err != nil {
			return "", err
		}
		placed.Status, placed.Reason, placed.ValidTo = e.Item.Status, e.Item.Reason, e.Item.ValidTo
		if placed.Trust == e.Item.Trust && len(e.Item.Evidence) > 0 {
			placed.Evidence = e.Item.Evidence
		}
	default:
		r.Unchanged++
		return have.ID, r.stay(ctx, p, *have, e)
	}
	r.Created = append(r.Created, placed.Handle)
	return placed.ID, p.replace(ctx, e.Replaces, placed)
}

// stay renews what an item that is there already rests on and how long it holds,
// and archives what it would have replaced. An item of another id stands for the
// entry as it is.
func (r *ImportResult) stay(ctx context.Context, p *plan, have memory.Item, e Entry) error {
	if have.Status != memory.Active {
		return nil
	}
	evidence, until := have.Evidence, have.ValidTo
	if len(e.Item.Evidence) > 0 {
		evidence = e.Item.Evidence // the same words stand in another event now
	}
	if until != nil && (e.Item.ValidTo == nil || e.Item.ValidTo.After(*until)) {
		until = e.Item.ValidTo
	}
	if have.ID == e.Item.ID && have.Trust == e.Item.Trust && (until != have.ValidTo || !slices.Equal(evidence, have.Evidence)) {
		it, err := p.touch(ctx, have.ID)
		if err != nil {
			return err
		}
		it.Evidence, it.ValidTo = evidence, until
	}
	if e.Replaces == "" {
		return nil
	}
	id, old, err := p.unsuperseded(ctx, e.Replaces)
	if err != nil || old == nil || id == have.ID || old.Trust.Rank() > e.Item.Trust.Rank() {
		return err
	}
	return r.archive(ctx, p, Withdrawal{ID: id, Reason: have.Handle + " says it now"})
}

// mostInBand bounds the items of a band that are compared with a content, newest
// first. There are so many only where sections hardly differ.
const mostInBand = 512

// sameWords returns the active item that says the same as it, word for word, and
// that fits; nil for none. What is the same is in the same bands, so those of the
// band with the fewest are compared, by their contents alone: importing many
// sections would otherwise read dozens of like items whole for each of them.
func (p *plan) sameWords(ctx context.Context, it memory.Item, fits func(memory.Item) bool) (*memory.Item, error) {
	like := LikenessOf(it)
	stands := func(other memory.Item) bool {
		return other.Status == memory.Active && other.Content == it.Content && fits(other) && like.Same(LikenessOf(other))
	}
	for _, id := range p.added[it.Content] {
		if other := p.items[id]; stands(*other) {
			return other, nil
		}
	}
	bands, err := json.Marshal(like.Bands())
	if err != nil {
		return nil, err
	}
	candidates, err := loadItems(ctx, p.tx, `WHERE number IN (SELECT number
		FROM (SELECT number FROM bands WHERE band =
			(SELECT value FROM json_each(?) j ORDER BY (SELECT count(*) FROM (SELECT 1 FROM bands WHERE band = j.value LIMIT ?)) LIMIT 1)
			ORDER BY number DESC LIMIT ?)
		CROSS JOIN memory_items USING (number) WHERE content = ?) ORDER BY number`, string(bands), maxCandidates, mostInBand, it.Content)
	if err != nil {
		return nil, err
	}
	for _, c := range candidates {
		if touched, here := p.items[c.ID]; here {
			c = *touched
		}
		if stands(c) {
			return &c, nil
		}
	}
	return nil, nil
}

// unsuperseded finds the item of that id, or, where that is superseded, of the
// first id with a number behind it that is not. nil for an id that is not taken.
func (p *plan) unsuperseded(ctx context.Context, base string) (string, *memory.Item, error) {
	id := base
	for n := 2; ; n++ {
		have, err := p.peek(ctx, id)
		switch {
		case isNone(err):
			return id, nil, nil
		case err != nil:
			return "", nil, err
		case have.Status != memory.Superseded:
			return id, &have, nil
		}
		id = base + "_" + strconv.Itoa(n)
	}
}

// replace lets placed take the place of the item of that id, or that with a number
// behind, if it is in use. If it is more trusted, or what has replaced it is, placed
// is quarantined.
func (p *plan) replace(ctx context.Context, base string, placed *memory.Item) error {
	if base == "" {
		return nil
	}
	id, old, err := p.unsuperseded(ctx, base)
	if err != nil || id == placed.ID {
		return err
	}
	if old == nil {
		last, err := p.last(ctx, base)
		if isNone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		old = &last
	}
	switch {
	case old.Status == memory.Forgotten, old.Reason == rejected:
		return nil
	case placed.Trust.Rank() < old.Trust.Rank():
		placed.Status, placed.Reason = memory.Quarantined, wouldReplace+old.Handle+moreTrusted
		return nil
	case old.ID != id:
		return nil // what has replaced it meanwhile is not the importer's
	}
	return p.supersede(ctx, id, placed)
}

// last returns the item of that id, or the newest one that has replaced it.
func (p *plan) last(ctx context.Context, id string) (memory.Item, error) {
	for {
		it, err := p.peek(ctx, id)
		if err != nil || it.Status != memory.Superseded || it.SupersededBy == "" {
			return it, err
		}
		id = it.SupersededBy
	}
}

func (r *ImportResult) archive(ctx context.Context, p *plan, w Withdrawal) error {
	id, now, err := p.unsuperseded(ctx, w.ID)
	if err != nil || now == nil || now.Status != memory.Active {
		return err
	}
	it, err := p.touch(ctx, id)
	if err != nil {
		return err
	}
	it.Status, it.Reason = memory.Archived, w.Reason
	r.Archived = append(r.Archived, it.Handle)
	return nil
}
