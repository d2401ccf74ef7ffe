package care

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// maxPasses bounds how often the log is gone through for what repeats what goes:
// an answer that goes takes along what was learned from it, and so on.
const maxPasses = 4

// voice says whose words a needle is: what a person said is looked for in answers
// of any session; what the agent said itself may be said again.
type voice bool

const (
	said     voice = true  // by a person, or kept as a memory
	answered voice = false // by the agent or a tool
)

// planner finds out what an erasure takes away, from the log alone: items that
// were forgotten long ago have left their text there.
//
// It goes through the log several times, but decodes little of it: the changes of
// memory once, and of the rest what holds something that is looked for.
type planner struct {
	log *events.Reader
	// passages returns the numbers of events' EVT handles, by id of the event.
	passages func(ctx context.Context, ids []string) (map[string][]int64, error)
	// What was asked for: one of these, and the others are zero.
	session string
	item    string // id of a memory
	event   string // id
	match   string // lower-case
	before  *time.Time

	events   map[string]memory.Event // that go, by id, without text
	items    map[string]*known       // every memory there ever was, by id
	lineage  *working.Lineage        // of all of them
	episodes map[string][]int64      // numbers of the EVT handles of events that go, by id of the event
	handles  map[string]bool         // of memories and passages that go
	heirs    map[string]bool         // of memories whose notes may carry what goes
	repeats  map[string]bool         // ids of the answers that a memory that goes was forgotten with
	goes     map[string]bool         // ids of the memories that go
	cleaned  map[string]bool
	stays    map[string]bool // sessions of which something stays
	runsStay map[string]bool // likewise runs
	needles  map[string]voice
	texts    []string // needles in the order found
	shared   map[string]bool
	samples  []string
}

// known is what the log says of one memory.
type known struct {
	handle   string
	evidence map[string]bool // ids of events, of all versions
	texts    []string        // of all versions, their own
	noted    []string        // those with a note, whole
	sessions map[string]bool // in which versions were written
	repeats  []string        // ids of events that were suppressed when it was forgotten
	created  time.Time
}

func newPlanner(log *events.Reader) *planner {
	return &planner{log: log, events: map[string]memory.Event{}, items: map[string]*known{}, goes: map[string]bool{}, cleaned: map[string]bool{},
		lineage: working.NewLineage(), episodes: map[string][]int64{}, handles: map[string]bool{}, heirs: map[string]bool{}, repeats: map[string]bool{},
		stays: map[string]bool{}, runsStay: map[string]bool{}, needles: map[string]voice{}, shared: map[string]bool{}}
}

// run makes the target.
func (p *planner) run(ctx context.Context) (*erasure.Target, error) {
	matches := erasure.NewFinder(nil, p.match)
	err := p.log.Scan(ctx, func(h *events.Head) error {
		if mayCarry(h) {
			return p.readItem(h)
		}
		return p.selectEvent(h, matches)
	})
	if err != nil {
		return nil, err
	}
	if known := p.items[p.item]; known != nil { // its changes stand behind what it rests on
		p.goes[p.item] = true
		err := p.log.Scan(ctx, func(h *events.Head) error {
			if known.evidence[string(h.ID)] {
				return p.takeLine(h)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	p.selectItems()
	for range maxPasses {
		before := len(p.events) + len(p.goes)
		if err := p.name(ctx); err != nil {
			return nil, err
		}
		p.shared, p.cleaned, p.stays, p.runsStay = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
		if err := p.followEchoes(ctx); err != nil {
			return nil, err
		}
		p.selectItems()
		if len(p.events)+len(p.goes) == before {
			break
		}
	}
	if err := p.name(ctx); err != nil {
		return nil, err
	}
	return p.target(), nil
}

const namedAtOnce = 10_000

// name notes by which handles answers may cite what goes: those repeat it, in
// whatever words.
func (p *planner) name(ctx context.Context) error {
	var ids []string
	for id := range p.events {
		if _, known := p.episodes[id]; !known {
			ids = append(ids, id)
		}
	}
	for part := range slices.Chunk(ids, namedAtOnce) {
		passages, err := p.passages(ctx, part)
		if err != nil {
			return err
		}
		for _, id := range part {
			p.episodes[id] = passages[id]
			for _, n := range passages[id] {
				p.handles["EVT-"+strconv.FormatInt(n, 10)] = true
			}
		}
	}
	for id := range p.goes {
		p.handles[p.items[id].handle] = true
		for _, event := range p.items[id].repeats {
			p.repeats[event] = !p.items[id].evidence[event] // which says it by itself
		}
	}
	for _, id := range p.lineage.Heirs(slices.Collect(maps.Keys(p.goes))) {
		if k := p.items[id]; k != nil {
			p.heirs[k.handle] = true
		}
	}
	return nil
}

// cites reports whether an event that is no person's names something that goes.
func (p *planner) cites(h *events.Head) bool {
	return h.Type.IsTurn() && h.Type != memory.UserMessage && (p.repeats[string(h.ID)] || erasure.Cites(h.Line, p.handles, p.heirs))
}

// changeIn reads the change that an event carries; false where there is none that
// can be read: the working store reports it.
func changeIn(e *memory.Event) (memory.Change, bool) {
	carried, has := e.Metadata[memory.MetaChange]
	if !has {
		return memory.Change{}, false
	}
	ch, err := working.DecodeChange(carried)
	return ch, err == nil
}

// changeMember begins a change in an event's line.
var changeMember = []byte(`"` + memory.MetaChange + `":`)

// mayCarry reports whether an event may carry a change.
func mayCarry(h *events.Head) bool { return !h.Type.IsTurn() && bytes.Contains(h.Line, changeMember) }

// readItem notes what the log says of memories.
func (p *planner) readItem(h *events.Head) error {
	e, err := h.Event()
	if err != nil {
		return nil // Read reports the damage
	}
	ch, has := changeIn(&e)
	if !has {
		return nil
	}
	for _, it := range ch.Items {
		k := p.items[it.ID]
		if k == nil {
			k = &known{handle: it.Handle, evidence: map[string]bool{}, sessions: map[string]bool{}, created: it.CreatedAt}
			p.items[it.ID] = k
		}
		p.lineage.Add(it)
		if ch.Action == working.ActionForget && it.Status == memory.Forgotten {
			k.repeats = append(k.repeats, ch.Suppress...)
		}
		if e.SessionID != "" {
			k.sessions[e.SessionID] = true
		}
		for _, text := range textsOf(it) {
			if !slices.Contains(k.texts, text) {
				k.texts = append(k.texts, text)
			}
		}
		for _, text := range []string{it.Title, it.Content} {
			if _, note := memory.CutNote(text); note != "" && !slices.Contains(k.noted, text) {
				k.noted = append(k.noted, text)
			}
		}
		for _, ev := range it.Evidence {
			k.evidence[ev.EventID] = true
		}
	}
	return nil
}

// textsOf are the texts of an item that are its own: its note says what another said.
func textsOf(it memory.Item) []string {
	var out []string
	for _, s := range []string{it.Title, it.Content} {
		if s, _ = memory.CutNote(s); s != "" && s != erasure.Mark {
			out = append(out, s)
		}
	}
	for _, ev := range it.Evidence {
		if ev.Quote != "" {
			out = append(out, ev.Quote)
		}
	}
	return append(out, strings.TrimSpace(strings.Join(stringsIn(it.Metadata), "\n")))
}

// stringsIn returns the texts within plain data.
func stringsIn(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, element := range v {
			out = append(out, stringsIn(element)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, member := range v {
			out = append(out, stringsIn(member)...)
		}
		return out
	}
	return nil
}

// isBook reports whether events of a type are memory's own book-keeping: such stay,
// and lose what they say of what goes.
func isBook(t memory.EventType) bool {
	return t == memory.MemoryChange || t == memory.CheckpointEvent || t == memory.Maintenance
}

// selectEvent takes an event that was asked for.
func (p *planner) selectEvent(h *events.Head, matches *erasure.Finder) error {
	switch {
	case isBook(h.Type):
		return nil
	case p.session != "" && string(h.Session) == p.session,
		p.event != "" && string(h.ID) == p.event,
		p.before != nil && h.Time().Before(*p.before),
		p.match != "" && matches.In(h.Line):
		return p.takeLine(h)
	}
	return nil
}

// takeLine takes the event of a line, unless it has been erased, or holds the text
// that was asked for in its ids and the like alone.
func (p *planner) takeLine(h *events.Head) error {
	e, err := h.Event()
	if err != nil {
		return nil // Read reports the damage
	}
	if _, gone := e.Erased(); gone || isBook(e.Type) || p.match != "" && !strings.Contains(strings.ToLower(wordsOf(&e)), p.match) {
		return nil
	}
	p.take(&e)
	return nil
}

// wordsOf returns all text of an event.
func wordsOf(e *memory.Event) string {
	return e.Text + "\n" + strings.Join(stringsIn(e.Metadata), "\n")
}

const samplesShown = 20

// take adds an event to those that go, and its words to what is looked for.
func (p *planner) take(e *memory.Event) {
	if _, has := p.events[e.ID]; has {
		return
	}
	if len(p.samples) < samplesShown {
		p.samples = append(p.samples, e.Timestamp.Format("2006-01-02 15:04 ")+e.Speaker()+": "+short(e.Text))
	}
	v := answered
	if e.Type == memory.UserMessage || e.Type == memory.DecisionLog {
		v = said
	}
	p.look(e.Text, v)
	for _, s := range stringsIn(e.Metadata) {
		p.look(s, v)
	}
	kept := *e
	kept.Text, kept.Metadata = "", nil
	p.events[e.ID] = kept
}

func (p *planner) look(text string, v voice) {
	for _, n := range erasure.Needles(text) {
		old, has := p.needles[n]
		if !has {
			p.texts = append(p.texts, n)
		}
		p.needles[n] = old || v
	}
}

// selectItems takes the memories that rest on what goes, that were written or
// changed in the session that was asked for, that hold the text that was, or that
// were written by hand before the day.
func (p *planner) selectItems() {
	for id, k := range p.items {
		takes := p.goes[id] || p.session != "" && k.sessions[p.session]
		for ev := range k.evidence {
			if _, gone := p.events[ev]; gone {
				takes = true
			}
		}
		if p.match != "" && strings.Contains(strings.ToLower(strings.Join(k.texts, "\n")), p.match) {
			takes = true
		}
		if p.before != nil && len(k.evidence) == 0 && k.created.Before(*p.before) {
			takes = true
		}
		if !takes {
			continue
		}
		p.goes[id] = true
		for _, text := range k.texts {
			p.look(text, said)
		}
	}
}

// followEchoes looks in what stays for what goes: answers that repeat it go too;
// what somebody else says as well is nobody's own, and is looked for no more.
func (p *planner) followEchoes(ctx context.Context) error {
	finder := erasure.NewFinder(p.texts, "")
	type echo struct {
		event   memory.Event
		needles []int
	}
	var echoes []echo
	var citing []memory.Event
	quoting := map[string][]int{} // by memory
	for id, k := range p.items {
		if !p.goes[id] {
			quoting[id] = found(finder, strings.Join(k.texts, "\n"))
		}
	}
	err := p.log.Scan(ctx, func(h *events.Head) error {
		if _, goes := p.events[string(h.ID)]; goes || isBook(h.Type) {
			return nil
		}
		hit, cites := finder.In(h.Line), p.cites(h)
		if !hit && !cites && !(h.Type.IsTurn() && p.first(h)) {
			return nil
		}
		e, err := h.Event()
		if err != nil {
			return nil // Read reports the damage
		}
		if _, gone := e.Erased(); gone {
			return nil
		}
		if cites {
			citing = append(citing, e)
			return nil
		}
		if e.Type.IsTurn() {
			p.stays[e.SessionID], p.runsStay[e.RunID] = true, true
		}
		if !hit {
			return nil
		}
		hits := found(finder, wordsOf(&e))
		if len(hits) == 0 {
			return nil
		}
		if e.Type == memory.UserMessage {
			for _, n := range hits {
				p.shared[p.texts[n]] = true
			}
			return nil
		}
		echoes = append(echoes, echo{e, hits})
		return nil
	})
	if err != nil {
		return err
	}
	for i := range citing {
		p.take(&citing[i])
	}
	for _, x := range echoes {
		for _, n := range x.needles {
			if p.needles[p.texts[n]] == answered {
				p.shared[p.texts[n]] = true
			}
		}
	}
	own := func(n int) bool { return !p.shared[p.texts[n]] }
	for id, needles := range quoting {
		noted := strings.Join(p.items[id].noted, "\n")
		if slices.ContainsFunc(needles, func(n int) bool { return own(n) && p.needles[p.texts[n]] == said }) ||
			p.match != "" && strings.Contains(strings.ToLower(noted), p.match) {
			p.cleaned[id] = true
			continue
		}
		if !p.heirs[p.items[id].handle] {
			needles = append(needles, found(finder, noted)...)
		}
		for _, n := range needles { // an answer has it from this memory, which stays
			p.shared[p.texts[n]] = p.shared[p.texts[n]] || p.needles[p.texts[n]] == answered
		}
	}
	for _, x := range echoes {
		if slices.ContainsFunc(x.needles, own) {
			p.take(&x.event)
		}
	}
	return nil
}

// first reports whether an event is the first to say that its session or its run
// stays.
func (p *planner) first(h *events.Head) bool {
	return !p.stays[string(h.Session)] || !p.runsStay[string(h.Run)]
}

// found returns the needles in a text.
func found(f *erasure.Finder, text string) []int {
	var out []int
	f.Find([]byte(text), func(s erasure.Span) bool {
		out = append(out, s.Needle)
		return true
	})
	return out
}

// target sums up. Memories that stay but quote what goes are cleaned, where the
// quote can be taken out of them as they are now; else they go.
func (p *planner) target() *erasure.Target {
	t := &erasure.Target{Match: p.match, Before: p.before}
	runs, sessions := map[string]bool{}, map[string]bool{}
	for _, e := range p.events {
		numbers := p.episodes[e.ID]
		t.Events = append(t.Events, erasure.Event{Seq: e.Seq, ID: e.ID, Passages: len(numbers)})
		t.Episodes = append(t.Episodes, numbers...)
		if e.RunID != "" && !p.runsStay[e.RunID] {
			runs[e.RunID] = true
		}
		if e.SessionID != "" && !p.stays[e.SessionID] {
			sessions[e.SessionID] = true
		}
	}
	slices.SortFunc(t.Events, func(a, b erasure.Event) int { return int(a.Seq - b.Seq) })
	t.Runs, t.Sessions = sorted(runs), sorted(sessions)
	for id := range p.goes {
		t.Items = append(t.Items, erasure.Item{ID: id, Handle: p.items[id].handle})
	}
	for id := range p.cleaned {
		if !p.goes[id] {
			t.Cleaned = append(t.Cleaned, erasure.Item{ID: id, Handle: p.items[id].handle})
		}
	}
	sortItems(t.Items)
	sortItems(t.Cleaned)
	for _, text := range p.texts {
		if !p.shared[text] {
			t.Texts = append(t.Texts, text)
		}
	}
	t.Prepare()
	return t
}

func sorted(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

// inherit adds to those that are cleaned the memories whose notes may carry words of
// what goes, and moves to those that go what says it as it is now, and not only in its
// note. store is nil where there is none.
func (p *planner) inherit(ctx context.Context, t *erasure.Target, store *working.Store) error {
	for moved := true; moved; {
		moved = false
		goes := make([]string, len(t.Items))
		for i, it := range t.Items {
			goes[i] = it.ID
		}
		for _, id := range p.lineage.Heirs(goes) {
			if !slices.ContainsFunc(t.Cleaned, func(it erasure.Item) bool { return it.ID == id }) && p.items[id] != nil {
				t.Cleaned = append(t.Cleaned, erasure.Item{ID: id, Handle: p.items[id].handle})
			}
		}
		sortItems(t.Cleaned)
		t.Prepare()
		var stay []erasure.Item
		for _, it := range t.Cleaned {
			if store == nil {
				break
			}
			now, err := store.Get(ctx, working.GetRequest{Handle: it.ID})
			if errors.Is(err, memory.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if does, can := working.Quotes(now.Item, t); does && !can {
				t.Items, moved = append(t.Items, it), true
				continue
			}
			stay = append(stay, it)
		}
		if store != nil {
			t.Cleaned = stay
		}
	}
	t.Prepare()
	return nil
}

func sortItems(list []erasure.Item) {
	slices.SortFunc(list, func(a, b erasure.Item) int {
		return len(a.Handle)*10 - len(b.Handle)*10 + strings.Compare(a.Handle, b.Handle)
	})
}

// short is the beginning of a text, on one line.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return s
}
