package distill

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Entry is one entry of a reply that may be written.
type Entry struct {
	// Index is the entry's place in the reply: in new_items, or after them in
	// updates.
	Index int
	// Item has kind, title, content, importance, confidence, status, trust,
	// validity, evidence and, where it is quarantined, the reason. Its id, handle
	// and times are the store's to set.
	Item memory.Item
	// Replaces is the id of the offered item that this one supersedes, or "".
	Replaces string
	// ReplacesEntry is the Index of the entry of the same reply that this one
	// supersedes, or -1. That entry is among the accepted ones, earlier.
	ReplacesEntry int
	// Flags are remarks for whoever reviews the item, such as "grants authority".
	Flags []string
}

// Verdict is what Gate makes of a reply.
type Verdict struct {
	Accepted    []Entry          // to be stored as active, in order of Index
	Quarantined []Entry          // to be stored as quarantined, until a person decides
	Refused     []memory.Refusal // cannot be items
}

// Caps for items by the trust of their evidence.
const (
	outsideImportance   = 3  // most for what tools and web pages say
	authorityConfidence = .6 // most for a user's words that waive a check
)

var userOnly = []string{memory.KindPreference, memory.KindPolicy, memory.KindIdentity}

// Gate judges each entry of r on its own against the batch that was given. An
// entry that breaks a rule of form (sizes, ranges, no evidence, an event or item
// that was not offered) is refused, and so is a question for a statement; one whose quote is not in its event, or whose
// text tries to steer the assistant or exceeds what its source may say, is
// quarantined. Quotes of accepted entries are the exact spans of the events.
func Gate(b Batch, r Reply) Verdict {
	g := &gate{events: map[string]memory.Event{}, tainted: map[string]string{}, offered: map[string]memory.Item{}, taken: map[string]bool{}, accepted: map[int]memory.Trust{}}
	for _, e := range b.Events {
		g.events[e.ID] = e
	}
	for _, it := range b.Related {
		g.offered[it.ID] = it
	}
	for i, n := range r.NewItems {
		g.take(n.Title, func() (Entry, error) { return g.newItem(i, n) })
	}
	for i, u := range r.Updates {
		g.take(u.NewContent, func() (Entry, error) { return g.update(len(r.NewItems)+i, u) })
	}
	return g.verdict
}

type gate struct {
	events   map[string]memory.Event
	tainted  map[string]string // why nothing of an event is to be believed, by its id; "" where it may be
	offered  map[string]memory.Item
	taken    map[string]bool // targets that an entry has already replaced
	accepted map[int]memory.Trust
	verdict  Verdict
}

// take files the entry that judge returns, or its refusal.
func (g *gate) take(name string, judge func() (Entry, error)) {
	e, err := judge()
	switch {
	case err != nil:
		g.verdict.Refused = append(g.verdict.Refused, memory.Refusal{Entry: clip(oneLine(name), 80), Reason: err.Error()})
	case e.Item.Status == memory.Quarantined:
		g.verdict.Quarantined = append(g.verdict.Quarantined, e)
	default:
		g.accepted[e.Index] = e.Item.Trust
		g.verdict.Accepted = append(g.verdict.Accepted, e)
	}
}

func (g *gate) newItem(index int, n NewItem) (Entry, error) {
	e := Entry{Index: index, ReplacesEntry: -1, Item: memory.Item{Kind: n.Kind, Title: n.Title, Content: n.Content,
		Importance: n.Importance, Confidence: n.Confidence, Status: memory.Active}}
	var err error
	if e.Item.ValidFrom, err = moment("valid_from", n.ValidFrom); err != nil {
		return Entry{}, err
	}
	if e.Item.ValidTo, err = moment("valid_to", n.ValidTo); err != nil {
		return Entry{}, err
	}
	return g.judge(e, n.Evidence, n.Supersedes)
}

func (g *gate) update(index int, u Update) (Entry, error) {
	old, found := g.offered[u.ID]
	if !found {
		return Entry{}, &memory.FieldError{Field: "id", Reason: "is not among the items offered"}
	}
	title := old.Title
	if u.NewTitle != nil {
		title = *u.NewTitle
	}
	e := Entry{Index: index, ReplacesEntry: -1, Item: memory.Item{Kind: old.Kind, Title: title, Content: u.NewContent,
		Importance: old.Importance, Confidence: u.Confidence, Status: memory.Active}}
	return g.judge(e, u.Evidence, &u.ID)
}

// judge runs the rules that new items and updates share.
func (g *gate) judge(e Entry, quotes []Quote, supersedes *string) (Entry, error) {
	title, content := e.Item.Title, e.Item.Content
	e.Item.Title, e.Item.Content = oneLine(e.Item.Title), oneLine(e.Item.Content)
	doubt, err := g.cite(&e.Item, quotes)
	if err != nil {
		return Entry{}, err
	}
	if err := e.Item.Validate(); err != nil {
		return Entry{}, err
	}
	if slices.Contains(statedKinds, e.Item.Kind) && onlyAsks(e.Item.Content) {
		return Entry{}, &memory.FieldError{Field: "content", Reason: "is a question, and states nothing"}
	}
	limitTrust(&e)
	raw := title + "\n" + content
	for _, q := range quotes {
		raw += "\n" + q.Quote
	}
	if e.Item.Trust == memory.TrustImport || e.Item.Trust == memory.TrustAssistant {
		raw = ownVoice.ReplaceAllString(raw, "${1}…") // how distillers, and the notes that assistants keep, name whom they report on
	}
	if doubt == "" {
		doubt = hostile(raw, e.Item.Trust)
	}
	if doubt == "" {
		doubt = g.taint(quotes)
	}
	if doubt == "" {
		doubt = exceeds(e.Item)
	}
	if doubt == "" {
		if doubt, err = g.target(&e, supersedes); err != nil {
			return Entry{}, err
		}
	}
	if doubt != "" {
		e.Item.Status, e.Item.Reason = memory.Quarantined, doubt
		e.Replaces, e.ReplacesEntry = "", -1
	}
	return e, nil
}

// cite fills the item's evidence and trust. An unknown event is an error; a quote
// that its event does not hold is a doubt, and is not kept.
func (g *gate) cite(it *memory.Item, quotes []Quote) (doubt string, err error) {
	if len(quotes) == 0 {
		return "", &memory.FieldError{Field: "evidence", Reason: "must not be empty"}
	}
	for i, q := range quotes {
		event, found := g.events[q.EventID]
		if !found {
			return "", &memory.FieldError{Field: fmt.Sprintf("evidence[%d].event_id", i), Reason: "is not an event of the batch"}
		}
		exact, found := span(event.Text, q.Quote)
		switch {
		case len(exact) > memory.MaxContent:
			return "", &memory.FieldError{Field: fmt.Sprintf("evidence[%d].quote", i), Reason: "must be at most " + strconv.Itoa(memory.MaxContent) + " bytes"}
		case !found:
			doubt = fmt.Sprintf("evidence[%d].quote is not in its event", i)
		}
		cited := memory.Evidence{EventID: event.ID, SourceID: event.Meta(memory.MetaSourceID), Seq: event.Seq, Quote: exact}
		if !slices.Contains(it.Evidence, cited) {
			it.Evidence = append(it.Evidence, cited)
		}
		trust := memory.TrustOf(event.Origin)
		if event.Type == memory.ToolResult && trust.Rank() > memory.TrustTool.Rank() {
			trust = memory.TrustTool
		}
		it.Trust = memory.LowestTrust(it.Trust, trust)
	}
	return doubt, nil
}

// ownVoice finds the user as a distiller speaks of them.
var ownVoice = match(`(?im)(^|[.!?] )(?:the )?user(?:'s|’s)?\b`)

// taint returns why nothing of a quoted event is to be believed, "" where it may
// be: what somebody other than the user says is set aside as a whole where a part
// of it tries to steer whoever reads it. A model may have quoted another part.
func (g *gate) taint(quotes []Quote) string {
	for _, q := range quotes {
		why, known := g.tainted[q.EventID]
		if e := g.events[q.EventID]; !known && memory.TrustOf(e.Origin) != memory.TrustUser {
			if why = Suspect(e.Text); why != "" {
				why = "comes from a text that " + why
			}
		}
		if g.tainted[q.EventID] = why; why != "" {
			return why
		}
	}
	return ""
}

// target resolves what the entry supersedes, and takes it.
func (g *gate) target(e *Entry, supersedes *string) (doubt string, err error) {
	if supersedes == nil {
		return "", nil
	}
	name := *supersedes
	var trust memory.Trust
	if place, isNew := strings.CutPrefix(name, "new:"); isNew {
		at, err := strconv.Atoi(place)
		if err != nil || at < 0 || at >= e.Index {
			return "", &memory.FieldError{Field: "supersedes", Reason: "must name an earlier entry of new_items"}
		}
		if trust = g.accepted[at]; trust == "" {
			return "", nil // that entry was not taken: there is nothing to replace
		}
		e.ReplacesEntry = at
	} else {
		old, found := g.offered[name]
		if !found {
			return "", &memory.FieldError{Field: "supersedes", Reason: "is not among the items offered"}
		}
		trust, e.Replaces = old.Trust, name
	}
	switch {
	case g.taken[name]:
		return "", &memory.FieldError{Field: "supersedes", Reason: "names an item that another entry replaces already"}
	case e.Item.Trust.Rank() < trust.Rank():
		return "would replace an item of higher trust", nil
	}
	g.taken[name] = true
	return "", nil
}

// limitTrust caps importance and confidence by who said it.
func limitTrust(e *Entry) {
	if e.Item.Trust.Rank() <= memory.TrustTool.Rank() {
		e.Item.Importance = min(e.Item.Importance, outsideImportance)
	}
	if e.Item.Trust == memory.TrustUser && grantsAuthority.MatchString(unmask(e.Item.Title+"\n"+e.Item.Content)) {
		e.Item.Confidence = min(e.Item.Confidence, authorityConfidence)
		e.Flags = append(e.Flags, "grants authority")
	}
}

// exceeds returns why an item is of a kind that its source may not set, or "".
func exceeds(it memory.Item) string {
	if it.Trust != memory.TrustUser && slices.Contains(userOnly, it.Kind) {
		return "only the user's own words make a " + it.Kind
	}
	if it.Trust.Rank() <= memory.TrustTool.Rank() && it.Kind == memory.KindReminder {
		return "what a tool says makes no reminder"
	}
	return ""
}

// moment reads an RFC 3339 time, or a date as its start in UTC.
func moment(field string, s *string) (*time.Time, error) {
	if s == nil {
		return nil, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, *s); err == nil {
			t = t.UTC().Truncate(time.Millisecond)
			return &t, nil
		}
	}
	return nil, &memory.FieldError{Field: field, Reason: "must be an RFC 3339 date or time, or null"}
}
