package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// apply writes down what is to be done, does it, and brings the manifest up to
// date.
func (x *pass) apply(ctx context.Context) error {
	if err := x.withhold(ctx); err != nil {
		return err
	}
	x.compose()
	if x.composeSurvivors() || x.Unfinished {
		if err := x.lookUp(ctx); err != nil {
			return err
		}
	}
	x.intend()
	if err := x.save(x.w, x.manifest); err != nil {
		return err
	}
	if err := x.writeEvents(ctx); err != nil {
		return err
	}
	if err := x.writeItems(ctx); err != nil {
		return err
	}
	for _, name := range x.removed {
		delete(x.Files, name)
	}
	for _, c := range x.changed {
		f := &fileState{SHA256: c.sum, Sections: make([]sectionState, len(c.pieces))}
		for i, p := range c.pieces {
			f.Sections[i] = p.state
		}
		x.Files[c.name] = f
	}
	return nil
}

// intend notes what is about to change, so that the next import sees to it if this
// one is broken off and the workspace has been edited meanwhile.
func (x *pass) intend() {
	x.Unfinished = true
	ending := holding{maps.Clone(x.expired), map[string]bool{}}
	for _, o := range x.ended() {
		ending.add(o.state)
	}
	kept := x.kept()
	maps.DeleteFunc(ending.items, func(id string, _ bool) bool { return kept.items[id] })
	maps.DeleteFunc(ending.events, func(id string, _ bool) bool { return kept.events[id] })
	maps.Copy(x.Pending.Items, ending.items)
	maps.Copy(x.Pending.Events, ending.events)
	for _, c := range x.changed {
		for _, p := range c.pieces {
			for _, it := range p.expected {
				x.Pending.Items[it.ID] = true // even one that is kept: it comes to rest on another event
			}
			for _, e := range p.events {
				x.Pending.Events[e.ID] = true
			}
		}
	}
}

// sourcePrefix begins the source ids of events that come of a workspace.
const sourcePrefix = "workspace:"

// lookUp reads from the log which events of workspaces it has.
func (x *pass) lookUp(ctx context.Context) error {
	for at := (memory.Cursor{}); ; {
		list, next, err := x.Log.Read(ctx, at, 1000)
		if err != nil {
			return fmt.Errorf("look for what was imported before: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		for _, e := range list {
			if strings.HasPrefix(e.Meta(memory.MetaSourceID), sourcePrefix) {
				x.known[e.ID] = e.Seq
			}
		}
		at = next
	}
}

const eventBatch = 500

// writeEvents appends the events that the log does not have.
func (x *pass) writeEvents(ctx context.Context) error {
	var batch []memory.Event
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		written, err := x.Log.Write(ctx, batch...)
		if err != nil {
			return err
		}
		for _, e := range written {
			x.known[e.ID] = e.Seq
		}
		batch = nil
		return nil
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			fresh := slices.DeleteFunc(p.events, func(e memory.Event) bool { _, there := x.known[e.ID]; return there })
			if len(fresh) == 0 {
				continue
			}
			x.report.Events++
			batch = append(batch, fresh...)
			if len(batch) >= eventBatch {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// Limits of one change of items.
const (
	itemBatch  = 200
	itemBytes  = 256 << 10
	otherBatch = 5000
)

// writeItems stores the new items, and takes out of use what is no more.
func (x *pass) writeItems(ctx context.Context) error {
	b := batch{pass: x, in: x.change(), replaced: map[string]bool{}}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if err := b.section(ctx, p); err != nil {
				return err
			}
		}
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	for part := range slices.Chunk(x.withdrawals(b.replaced), otherBatch) {
		b.in.Archive = part
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(x.retirements(), otherBatch) {
		b.in.Suppress = part
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// withdrawals are the items that no section holds any more, but for those that
// another one has replaced.
func (x *pass) withdrawals(replaced map[string]bool) []working.Withdrawal {
	var out []working.Withdrawal
	for _, id := range slices.Sorted(maps.Keys(x.Pending.Items)) {
		if x.held.items[id] || replaced[id] {
			continue
		}
		w := working.Withdrawal{ID: id, Reason: "no longer in the workspace"}
		if x.expired[id] {
			w.Reason = "its retention is over"
		}
		out = append(out, w)
	}
	return out
}

// retirements are the events that the workspace says no more.
func (x *pass) retirements() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(x.Pending.Events)) {
		if !x.held.events[id] {
			x.Retired[id] = true
			out = append(out, id)
		}
	}
	return out
}

// change is an empty change. An item that did not come of a workspace may stand for
// a section; one that did goes with its own.
func (x *pass) change() working.Imported {
	return working.Imported{Why: "workspace " + x.w.Path(), Shares: func(it memory.Item) bool {
		metadata, _ := it.Metadata.(map[string]any)
		_, ours := metadata[provenanceKey]
		return !ours
	}}
}

// batch gathers changes of items.
type batch struct {
	*pass
	in       working.Imported
	of       []*newSection // whose entries in.Put has, one for each
	bytes    int
	replaced map[string]bool // items in whose place another one was asked for, by baseID
}

// section adds the items of a section.
func (b *batch) section(ctx context.Context, p *newSection) error {
	var before []itemState
	if !p.same {
		p.state.Items = nil
		if p.was != nil {
			before = p.was.state.Items
		}
	}
	for i, it := range p.expected {
		e := working.Entry{Item: it}
		if p.isDaily() {
			e.Item.Evidence[0].EventID, e.Item.Evidence[0].Seq, e.Item.Evidence[0].SourceID = p.state.Events[0], b.known[p.state.Events[0]], sourceID(p.piece)
		} else if i < len(before) {
			e.Replaces = b.replaceable(before[i])
		}
		b.in.Put, b.of = append(b.in.Put, e), append(b.of, p)
		b.bytes += len(it.Content)
	}
	if len(b.in.Put) >= itemBatch || b.bytes >= itemBytes {
		return b.flush(ctx)
	}
	return nil
}

// replaceable returns the id of an item that one other may replace: no section says
// it any more. "" for one that stays.
func (b *batch) replaceable(old itemState) string {
	id := baseID(old.ID)
	if old.Elsewhere || b.held.items[id] || b.replaced[id] {
		return ""
	}
	b.replaced[id] = true
	return id
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.in.Put)+len(b.in.Archive)+len(b.in.Suppress) == 0 {
		return nil
	}
	res, err := b.Items.Import(ctx, b.in)
	if err != nil {
		return err
	}
	for i, p := range b.of {
		if id := res.IDs[i]; id != "" && !p.same {
			asked := b.in.Put[i].Item
			p.state.Items = append(p.state.Items, itemState{ID: id, Until: asked.ValidTo, Elsewhere: baseID(id) != asked.ID})
		}
	}
	b.report.Created += len(res.Created)
	b.report.Overfull += len(res.Overfull)
	b.report.Refused = append(b.report.Refused, res.Refused...)
	b.in, b.of, b.bytes = b.change(), nil, 0
	return nil
}
