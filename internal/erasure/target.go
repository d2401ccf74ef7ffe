// Package erasure says what an erasure takes away, and finds and blots it out in
// bytes. Stores are told a Target and remove what it names, each in its own way.
package erasure

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Event is an event that goes. Its line in the log becomes a tombstone.
type Event struct {
	Seq      int64  `json:"seq"`
	ID       string `json:"id"`
	Passages int    `json:"passages"` // of it in the archive: their handles stay taken
}

// Item is a memory that goes, or whose earlier versions go.
type Item struct {
	ID     string `json:"id"`
	Handle string `json:"handle"`
}

// Target is what one erasure takes away. It is plain data until Prepare, so that
// an erasure that was interrupted can go on with it.
type Target struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Events   []Event   `json:"events"`   // by seq
	Items    []Item    `json:"items"`    // memories that go
	Cleaned  []Item    `json:"cleaned"`  // memories that stay, but whose earlier versions quote what goes
	Episodes []int64   `json:"episodes"` // the numbers of the events' EVT handles
	Sessions []string  `json:"sessions"` // that go whole
	Runs     []string  `json:"runs"`     // that go whole
	// Before takes what is kept by day, such as reports, away up to then; nil for none.
	Before *time.Time `json:"before,omitempty"`
	Texts  []string   `json:"texts"`           // needles
	Match  string     `json:"match,omitempty"` // found whatever its case

	finder   *Finder
	named    *Finder       // of the ids of Items and Cleaned
	unnamed  bool          // one of these is too short to be looked for
	seqs     map[int64]int // index in Events
	ids      map[string]bool
	items    map[string]bool
	cleaned  map[string]bool
	handles  map[string]bool // of what goes
	heirs    map[string]bool // of Cleaned
	sessions map[string]bool
	runs     map[string]bool
}

// Prepare makes t ready to be asked. It must be called after the last change of
// its fields.
func (t *Target) Prepare() {
	if len(t.Texts) > maxNeedles {
		t.Texts = t.Texts[:maxNeedles]
	}
	ids := slices.Clone(t.Runs)
	for _, s := range t.Sessions { // an id that is as long as a word is one
		if len(s) >= minNeedle {
			ids = append(ids, s)
		}
	}
	t.finder = newFinder(t.Texts, ids, t.Match)
	t.seqs, t.ids, t.items, t.cleaned, t.handles = map[int64]int{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, e := range t.Events {
		t.seqs[e.Seq], t.ids[e.ID] = i, true
	}
	t.heirs, t.unnamed = map[string]bool{}, false
	names := make([]string, 0, len(t.Items)+len(t.Cleaned))
	for _, it := range slices.Concat(t.Items, t.Cleaned) {
		names = append(names, it.ID)
		t.unnamed = t.unnamed || len(it.ID) < anchorBytes
	}
	t.named = newFinder(nil, names, "")
	for _, it := range t.Items {
		t.items[it.ID], t.handles[it.Handle] = true, true
	}
	for _, it := range t.Cleaned {
		t.cleaned[it.ID], t.heirs[it.Handle] = true, it.Handle != ""
	}
	for _, n := range t.Episodes {
		t.handles["EVT-"+strconv.FormatInt(n, 10)] = true
	}
	t.sessions, t.runs = setOf(t.Sessions), setOf(t.Runs)
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

// Finder finds what goes in bytes.
func (t *Target) Finder() *Finder { return t.finder }

// InChange reports whether a memory that goes or is cleaned may be named in b, which
// is JSON, or a text that goes may stand in it.
func (t *Target) InChange(b []byte) bool { return t.unnamed || t.named.In(b) || t.finder.In(b) }

// Event returns the event of that number, if it goes.
func (t *Target) Event(seq int64) (e Event, goes bool) {
	i, goes := t.seqs[seq]
	if goes {
		e = t.Events[i]
	}
	return e, goes
}

// Touches reports whether an event of the range, both ends included, goes.
func (t *Target) Touches(first, last int64) bool {
	i, _ := slices.BinarySearchFunc(t.Events, first, func(e Event, seq int64) int { return int(e.Seq - seq) })
	return i < len(t.Events) && t.Events[i].Seq <= last
}

// EventID reports whether the event of that id goes.
func (t *Target) EventID(id string) bool { return t.ids[id] }

// Item reports whether the memory of that id goes.
func (t *Target) Item(id string) bool { return t.items[id] }

// IsCleaned reports whether the earlier versions of the memory of that id go.
func (t *Target) IsCleaned(id string) bool { return t.cleaned[id] }

// Session reports whether the session goes whole.
func (t *Target) Session(id string) bool { return t.sessions[id] }

// Run reports whether the run goes whole.
func (t *Target) Run(id string) bool { return t.runs[id] }

// Names reports whether b names a handle, MEM-n or EVT-n, of what goes, or that of a
// memory that is cleaned together with a note.
func (t *Target) Names(b []byte) bool {
	any := func([]byte) bool { return true }
	return named(b, t.handles, any) || hasNote(b) && named(b, t.heirs, any)
}

// Tells reports whether a text about the memory of that id tells of what goes: that
// memory goes, or is cleaned and the text has its note.
func (t *Target) Tells(id, text string) bool {
	return t.items[id] || t.cleaned[id] && hasNote([]byte(text))
}

// Cites reports whether b cites one of the handles of what goes, or one of the heirs
// together with a note: as the block does, with a bracket behind it, or as JSON does.
func Cites(b []byte, goes, heirs map[string]bool) bool {
	quoted := func(behind []byte) bool {
		return len(behind) > 0 && (behind[0] == ']' || behind[0] == '"' || behind[0] == '\\')
	}
	return named(b, goes, quoted) || len(heirs) > 0 && hasNote(b) && named(b, heirs, quoted)
}

// hasNote reports whether b holds the note of a memory that took another's place.
func hasNote(b []byte) bool { return bytes.Contains(b, []byte(memory.NoteOpens)) }

// named reports whether one of the handles stands in b, and may with what is behind it.
func named(b []byte, handles map[string]bool, may func(behind []byte) bool) bool {
	if len(handles) == 0 {
		return false
	}
	for _, prefix := range []string{"MEM-", "EVT-"} {
		for rest := b; ; {
			i := bytes.Index(rest, []byte(prefix))
			if i < 0 {
				break
			}
			end := i + len(prefix)
			for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
				end++
			}
			if handles[string(rest[i:end])] && may(rest[end:]) {
				return true
			}
			rest = rest[end:]
		}
	}
	return false
}
