package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// withhold marks the sections whose past a person has forgotten: what they say now
// would bring it back.
func (x *pass) withhold(ctx context.Context) error {
	var replaced []memory.Event
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if p.was == nil || p.same {
				continue
			}
			for _, id := range p.was.state.Events {
				if !x.Retired[id] {
					replaced = append(replaced, memory.Event{ID: id})
				}
			}
		}
	}
	suppressed, err := x.Items.Suppressed(ctx, replaced)
	if err != nil {
		return err
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if p.was == nil || p.same {
				continue
			}
			forgotten := p.was.state.Withheld || slices.ContainsFunc(p.was.state.Events, func(id string) bool { return suppressed[id] })
			for _, it := range p.was.state.Items {
				got, err := x.Items.Get(ctx, working.GetRequest{Handle: it.ID})
				if err != nil && !errors.Is(err, memory.ErrNotFound) {
					return err
				}
				forgotten = forgotten || !p.isDaily() && err == nil && got.Item.Status == memory.Forgotten
			}
			if p.state.Withheld = forgotten; forgotten {
				x.report.Withheld++
			}
		}
	}
	return nil
}

// compose makes the events and items of new and changed sections, and notes in
// held what the workspace will have said then.
func (x *pass) compose() {
	x.held = x.kept()
	for _, o := range x.ended() {
		for _, id := range o.state.Events {
			if !x.held.events[id] {
				x.Retired[id] = true
			}
		}
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if !p.same && !p.state.Withheld {
				x.composeSection(p)
			}
		}
	}
	x.fit()
	for _, c := range x.changed {
		for _, p := range c.pieces {
			for _, it := range p.expected {
				x.held.items[it.ID] = true
			}
		}
	}
}

func (x *pass) composeSection(p *newSection) {
	made := p.itemsOf(x.w.Path())
	if p.isDaily() {
		p.events = events.Split(x.eventOf(p.piece))
		for _, e := range p.events {
			p.state.Events = append(p.state.Events, e.ID)
			x.held.events[e.ID] = true
		}
		made = p.observations(x.w.Path(), x.Redact)
	}
	for _, it := range made {
		if it.ValidTo != nil && !it.ValidTo.After(x.now) {
			x.report.Expired++
			continue
		}
		p.expected = append(p.expected, it)
	}
}

// composeSurvivors makes the items of tagged lines again that another section had
// too and has no more: they are to rest on the event of the one that stays.
func (x *pass) composeSurvivors() (any bool) {
	lost := map[string]bool{}
	for _, o := range x.ended() {
		for _, it := range o.state.Items {
			lost[baseID(it.ID)] = o.state.Daily
		}
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			for _, it := range p.expected {
				delete(lost, it.ID)
			}
		}
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if !p.same || !p.isDaily() || !slices.ContainsFunc(p.state.Items, func(it itemState) bool { return lost[baseID(it.ID)] }) {
				continue
			}
			for _, it := range p.observations(x.w.Path(), x.Redact) {
				if lost[it.ID] {
					p.expected, any = append(p.expected, it), true
				}
			}
		}
	}
	return any
}

// fit keeps what is new within the cap of active items: sections before tagged
// lines of daily logs, then by importance, then the latest.
func (x *pass) fit() {
	type candidate struct {
		of   *newSection
		item *memory.Item
	}
	var all []candidate
	for _, c := range x.changed {
		for _, p := range c.pieces {
			for i := range p.expected {
				all = append(all, candidate{p, &p.expected[i]})
			}
		}
	}
	if x.MaxItems == 0 || len(all) <= x.MaxItems {
		return
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.of.isDaily() != b.of.isDaily() {
			if b.of.isDaily() {
				return -1
			}
			return 1
		}
		return cmp.Or(b.item.Importance-a.item.Importance, b.of.record.CreatedAt.Compare(a.of.record.CreatedAt))
	})
	for _, c := range all[x.MaxItems:] {
		c.item.Status, c.item.Reason = memory.Archived, "over the cap of active items"
		x.report.Overfull++
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			p.expected = slices.DeleteFunc(p.expected, func(it memory.Item) bool { return p.isDaily() && it.Status == memory.Archived })
		}
	}
}

// eventOf makes the event of a daily section. Its id follows from what the section
// says; a text that was retired and has come back gets another one, and so does
// one whose event belongs to a section that has moved away.
func (x *pass) eventOf(p piece) memory.Event {
	at := p.moment()
	e := memory.Event{Type: memory.UserMessage, Origin: memory.OriginImport, Text: x.Redact.Text(p.text), Timestamp: at,
		SessionID: "workspace-" + at.UTC().Format(time.DateOnly),
		Metadata:  map[string]any{memory.MetaSourceID: sourceID(p), memory.MetaSpeaker: "daily log"}}
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s %d", x.w.Path(), p.record.OriginFile, p.sum, n))
		var id ulid.ULID
		binary.BigEndian.PutUint64(id[:], eventTime(at)<<16)
		copy(id[6:], sum[:])
		if e.ID = eventPrefix + id.String(); !x.Retired[e.ID] && !x.held.events[e.ID] {
			return e
		}
	}
}

// eventPrefix begins the ids of events; a ULID follows.
const eventPrefix = "evt_"

// eventTime is a time as an event's id has it, in milliseconds.
func eventTime(at time.Time) uint64 {
	return uint64(max(0, min(at.UnixMilli(), int64(ulid.MaxTime()))))
}

// sourceID is the id of an event's source: file and lines.
func sourceID(p piece) string {
	return fmt.Sprintf("%s%s:%d-%d", sourcePrefix, p.record.OriginFile, p.record.LineStart, p.record.LineEnd)
}
