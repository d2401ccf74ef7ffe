// Package erasure says what an erasure takes away, and finds and blots it out in
// bytes. Stores are told a Target and remove what it names, each in its own way.
package erasure

import (
	"slices"
	"strconv"
	"time"
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
	// Forgets says that memories are forgotten, and not erased: the ids of the events
	// that they rested on stay in the log, so that an erasure can still find those.
	Forgets bool `json:"forgets,omitempty"`

	finder   *Finder
	named    *Finder       // of the ids of Items and Cleaned
	unnamed  bool          // one of these is too short to be looked for
	seqs     map[int64]int // index in Events
	ids      map[string]bool
	items    map[string]bool
	cleaned  map[string]bool
	handles  map[string]bool
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
	t.unnamed = false
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
		t.cleaned[it.ID] = true
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

// Names reports whether b names a handle, MEM-n or EVT-n, of what goes.
func (t *Target) Names(b []byte) bool {
	for i := 0; i+5 <= len(b); i++ {
		if b[i+3] != '-' || (string(b[i:i+3]) != "MEM" && string(b[i:i+3]) != "EVT") {
			continue
		}
		end := i + 4
		for end < len(b) && '0' <= b[end] && b[end] <= '9' {
			end++
		}
		if t.handles[string(b[i:end])] {
			return true
		}
		i = end - 1
	}
	return false
}
