package working

import (
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Lineage knows which items took the place of which, and what their notes say of
// those before. It is the one definition of who carries the words of an item that
// goes, and it holds also where those words are not known any more: an item that was
// forgotten has left its id alone.
type Lineage struct {
	heirs map[string][]string // by id: the items that took its place, in any version
	own   map[string][]string // by id: what it said itself, in any version
	notes map[string][]note   // by id
}

// note is what a version says of the item that it took the place of: erasure.Mark where
// its text was taken away, so that nobody knows.
type note struct{ of, text string }

// NewLineage returns one that knows no item.
func NewLineage() *Lineage {
	return &Lineage{heirs: map[string][]string{}, own: map[string][]string{}, notes: map[string][]note{}}
}

// Add makes a version of an item known.
func (l *Lineage) Add(it memory.Item) {
	l.tie(it.Supersedes, it.ID)
	l.tie(it.ID, it.SupersededBy)
	for _, text := range []string{it.Title, it.Content} {
		own, said := memory.CutNote(text)
		if text == erasure.Mark {
			own, said = "", text
		}
		if own != "" && !slices.Contains(l.own[it.ID], own) {
			l.own[it.ID] = append(l.own[it.ID], own)
		}
		if n := (note{it.Supersedes, said}); said != "" && !slices.Contains(l.notes[it.ID], n) {
			l.notes[it.ID] = append(l.notes[it.ID], n)
		}
	}
}

func (l *Lineage) tie(old, heir string) {
	if old != "" && heir != "" && !slices.Contains(l.heirs[old], heir) {
		l.heirs[old] = append(l.heirs[old], heir)
	}
}

// Heirs returns the ids of the items that stay while others go, and whose notes may
// carry words of those, or may have before they were taken away: of the one that they
// took the place of, or of one before that, of which a note may have left something
// standing.
func (l *Lineage) Heirs(goes []string) []string {
	gone, seen := make(map[string]bool, len(goes)), make(map[string]bool, len(goes))
	for _, id := range goes {
		gone[id], seen[id] = true, true
	}
	var out []string
	for queue := slices.Clone(goes); len(queue) > 0; {
		id := queue[0]
		queue = queue[1:]
		for _, heir := range l.heirs[id] {
			if seen[heir] {
				continue
			}
			seen[heir] = true
			queue = append(queue, heir)
			if slices.ContainsFunc(l.notes[heir], func(n note) bool { return gone[n.of] || !l.said(n) }) {
				out = append(out, heir)
			}
		}
	}
	slices.Sort(out)
	return out
}

// said reports whether all that a note quotes was said by the very item that it is of.
func (l *Lineage) said(n note) bool {
	if n.text == erasure.Mark {
		return false
	}
	quoted := strings.TrimSuffix(strings.TrimPrefix(n.text, memory.NoteOpens[1:]), ")")
	return slices.ContainsFunc(l.own[n.of], func(own string) bool { return strings.Contains(own, quoted) })
}
