package mirror

import (
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// match finds for each section of a changed file what it was: the same text in the
// same file, or elsewhere (of a daily log, at the same time); else the same heading
// or place in the same file.
func (x *pass) match() {
	old := map[string][]*oldSection{} // by file
	bySum := map[string][]*oldSection{}
	names := slices.Clone(x.removed)
	for _, c := range x.changed {
		names = append(names, c.name)
	}
	for _, name := range names {
		if x.Files[name] == nil {
			continue
		}
		for i, s := range x.Files[name].Sections {
			o := &oldSection{file: name, index: i, state: s}
			old[name] = append(old[name], o)
			bySum[s.SHA256] = append(bySum[s.SHA256], o)
		}
	}
	x.pair(func(c *changedFile, i int, p *newSection) *oldSection {
		return firstFree(bySum[p.sum], p, func(o *oldSection) bool { return o.file == c.name })
	}, true)
	x.pair(func(_ *changedFile, _ int, p *newSection) *oldSection {
		return firstFree(bySum[p.sum], p, func(o *oldSection) bool { return !p.isDaily() || o.state.saidAt(p.moment()) })
	}, true)
	x.pair(func(c *changedFile, _ int, p *newSection) *oldSection {
		return firstFree(old[c.name], p, func(o *oldSection) bool { return p.heading != "" && o.state.Heading == p.heading })
	}, false)
	x.pair(func(c *changedFile, i int, p *newSection) *oldSection {
		return firstFree(old[c.name], p, func(o *oldSection) bool { return o.index == i && (o.state.Heading == "") == (p.heading == "") })
	}, false)
	for _, name := range names {
		for _, o := range old[name] {
			if !o.taken {
				x.gone = append(x.gone, o)
			}
		}
	}
	x.report.Removed = len(x.gone)
}

// doubtful reports whether an import that was broken off may have taken something
// of a section out of use: it is made again, even if it says the same.
func (x *pass) doubtful(s sectionState) bool {
	return slices.ContainsFunc(s.Items, func(it itemState) bool { return x.Pending.Items[baseID(it.ID)] }) ||
		slices.ContainsFunc(s.Events, func(id string) bool { return x.Pending.Events[id] })
}

// firstFree returns the first section of a list that p may have been.
func firstFree(list []*oldSection, p *newSection, fits func(*oldSection) bool) *oldSection {
	for _, o := range list {
		if !o.taken && o.state.Daily == p.isDaily() && fits(o) {
			return o
		}
	}
	return nil
}

// saidAt reports whether the section of a daily log has an event of that time: in
// the log of another day the same words are another event.
func (s sectionState) saidAt(at time.Time) bool {
	if len(s.Events) == 0 {
		return false
	}
	id, err := ulid.Parse(strings.TrimPrefix(s.Events[0], eventPrefix))
	return err == nil && id.Time() == eventTime(at)
}

// pair gives sections that have no past yet the one that find finds.
func (x *pass) pair(find func(c *changedFile, i int, p *newSection) *oldSection, same bool) {
	for _, c := range x.changed {
		for i, p := range c.pieces {
			if p.was != nil {
				continue
			}
			o := find(c, i, p)
			if o == nil {
				continue
			}
			o.taken, p.was = true, o
			switch {
			case !same:
				x.report.Replaced++
			case !x.doubtful(o.state):
				p.same, p.state = true, o.state
				if o.file != c.name || o.index != i {
					x.report.Moved++
				}
			}
		}
	}
}

// expire lets go of the items whose retention is over.
func (x *pass) expire() {
	for _, f := range x.Files {
		for i := range f.Sections {
			s := &f.Sections[i]
			s.Items = slices.DeleteFunc(s.Items, func(it itemState) bool {
				if !it.isOver(x.now) {
					return false
				}
				x.expired[baseID(it.ID)] = true
				x.report.Expired++
				return true
			})
		}
	}
}

// isOver reports whether the item's retention is over.
func (it itemState) isOver(now time.Time) bool { return it.Until != nil && !it.Until.After(now) }

// expires reports whether the retention of an item of the file is over.
func (f *fileState) expires(now time.Time) bool {
	return slices.ContainsFunc(f.Sections, func(s sectionState) bool {
		return slices.ContainsFunc(s.Items, func(it itemState) bool { return it.isOver(now) })
	})
}

// baseID is the id that an item was to get: its id without the number that it got
// behind it.
func baseID(id string) string {
	if i := strings.LastIndexByte(id, '_'); i > len("mem") {
		return id[:i]
	}
	return id
}

// holding is a set of items, by baseID, and of events, by the id of the first part.
type holding struct{ items, events map[string]bool }

func (h holding) add(s sectionState) {
	for _, it := range s.Items {
		if !it.Elsewhere {
			h.items[baseID(it.ID)] = true
		}
	}
	for _, id := range s.Events {
		h.events[id] = true
	}
}

// kept is what the sections hold that stay as they are.
func (x *pass) kept() holding {
	h := holding{map[string]bool{}, map[string]bool{}}
	other := map[string]bool{}
	for _, name := range x.removed {
		other[name] = true
	}
	for _, c := range x.changed {
		other[c.name] = true
		for _, p := range c.pieces {
			if p.same {
				h.add(p.state)
			}
		}
	}
	for name, f := range x.Files {
		for i := range f.Sections {
			if !other[name] {
				h.add(f.Sections[i])
			}
		}
	}
	return h
}

// ended are the sections that say no more what they said: gone, or changed.
func (x *pass) ended() []*oldSection {
	out := slices.Clone(x.gone)
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if p.was != nil && !p.same {
				out = append(out, p.was)
			}
		}
	}
	return out
}
