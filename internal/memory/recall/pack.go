package recall

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
)

const (
	// fittedThreshold is the relevance below which nothing is injected: see
	// docs/BENCHMARKS.md for how it was found.
	fittedThreshold = 3.2
	maxUntrusted    = 2  // lines from tools or the web in a block
	readAhead       = 32 // passages whose text is read at a time
)

// packer fills a block.
type packer struct {
	found     *found
	room      int // bytes left
	lines     []string
	trace     Trace
	untrusted int
	events    map[string][]string // quotes of the selected items, by event
	sent      map[string][]string // texts of the selected passages, by event
	selected  []string            // their texts
	words     []map[string]bool   // content words of the first of them
}

// pack selects candidates in the order of their scores until the budget is used
// up, and frames them.
func (s *Service) pack(ctx context.Context, f *found) (Block, error) {
	defer f.release()
	p := &packer{found: f, room: 4*f.search.settings.Tokens - frameBytes, events: map[string][]string{}, sent: map[string][]string{}, trace: f.trace()}
	if p.trace.Relevance >= p.trace.Threshold {
		if err := s.fill(ctx, p); err != nil {
			return Block{}, err
		}
	} else if err := s.explainAbstention(ctx, p); err != nil {
		return Block{}, err
	}
	out := Block{Degraded: f.degraded(), Trace: p.trace}
	out.Text, out.Lines = frame(p.lines)
	if out.Lines == nil {
		out.Lines = []string{}
	}
	out.TraceID = traceID(f.search.request.Text, out.Text)
	return out, nil
}

// trace begins the record of how a block comes about.
func (f *found) trace() Trace {
	t := Trace{Terms: orEmpty(f.query.Terms), Prefixes: orEmpty(f.query.Prefixes), Speakers: orEmpty(f.query.Speakers),
		Mode: f.used, Lexical: f.withoutVectors(), MinImportance: f.search.settings.MinImportance, Threshold: f.search.settings.Threshold, Candidates: []Candidate{}}
	if f.close != nil {
		t.Model = f.close.Model()
	}
	if f.unranked != nil {
		t.Unranked = f.unranked.Error()
	}
	for _, status := range f.statuses() {
		t.Statuses = append(t.Statuses, string(status))
	}
	switch {
	case t.Threshold == 0:
		t.Threshold = fittedThreshold
	case t.Threshold < 0:
		t.Threshold = 0
	}
	for _, e := range f.episodes {
		t.Relevance = max(t.Relevance, e.scores.relevance())
	}
	for _, it := range f.items {
		t.Relevance = max(t.Relevance, it.scores.relevance())
	}
	return t
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// fill takes the best candidate of either kind until no more fits.
func (s *Service) fill(ctx context.Context, p *packer) error {
	episodes := reader{found: p.found, seen: func(read []memory.Episode) { s.findOutdated(ctx, p.found, read) }}
	items := p.found.items
	for p.hasRoom() {
		e, scores, more, err := episodes.peek(ctx)
		if err != nil {
			return err
		}
		switch {
		case len(items) > 0 && (!more || items[0].scores.total >= scores.total):
			p.addItem(items[0], s.itemLine(p.found, items[0].item))
			items = items[1:]
		case more:
			p.addEpisode(e, scores, func() string { return s.episodeLine(e) })
			episodes.next()
		default:
			return nil
		}
	}
	return nil
}

// explainAbstention puts the best candidates into the trace of an empty block.
func (s *Service) explainAbstention(ctx context.Context, p *packer) error {
	const why = "nothing is relevant enough: below the threshold"
	for _, it := range p.found.items[:min(8, len(p.found.items))] {
		p.note(it.item.Handle, it.scores, false, why)
	}
	episodes := reader{found: p.found}
	for range 8 {
		e, scores, more, err := episodes.peek(ctx)
		if err != nil || !more {
			return err
		}
		p.note(e.Handle, scores, false, why)
		episodes.next()
	}
	return nil
}

// leastLine is the shortest line that is worth looking for.
const leastLine = 30

func (p *packer) hasRoom() bool {
	most := p.found.search.settings.MaxLines
	return p.room >= leastLine && (most == 0 || len(p.lines) < most)
}

// note puts a candidate into the trace.
func (p *packer) note(handle string, sc scores, in bool, why string) {
	if len(p.trace.Candidates) < maxTraced {
		c := Candidate{Handle: handle, Score: round(sc.total), Scores: sc.parts(), In: in, Why: why}
		if at := slices.IndexFunc(p.found.items, func(r rankedItem) bool { return r.item.Handle == handle }); at >= 0 {
			c.Verify = p.found.items[at].item.Verify
		}
		p.trace.Candidates = append(p.trace.Candidates, c)
	}
}

// parts returns the parts of a score by name, those that are not 0.
func (s scores) parts() map[string]float64 {
	out := map[string]float64{}
	for _, part := range []struct {
		name  string
		value float64
	}{{"words", s.words}, {"window", s.window}, {"prefix", s.prefix}, {"session", s.session}, {"answer", s.answer}, {"turn_before", s.before},
		{"speaker", s.speaker}, {"day", s.day}, {"said", s.said}, {"kind", s.kind}, {"form", s.form}, {"near", s.near}, {"meaning", s.meaning}} {
		if part.value != 0 {
			out[part.name] = round(part.value)
		}
	}
	return out
}

func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// add takes a line in if it fits, and says so.
func (p *packer) add(handle string, sc scores, line string, fromOutside bool) bool {
	switch cost := len(line) + 1; {
	case line == "":
		p.note(handle, sc, false, "nothing readable is left of it")
	case fromOutside && p.untrusted >= maxUntrusted:
		p.note(handle, sc, false, fmt.Sprintf("%d lines from tools or the web are in already", maxUntrusted))
	case cost > p.room:
		p.note(handle, sc, false, fmt.Sprintf("does not fit: %d bytes, %d left", cost, p.room))
	default:
		p.room -= cost
		p.lines = append(p.lines, line)
		if fromOutside {
			p.untrusted++
		}
		p.note(handle, sc, true, "selected")
		return true
	}
	return false
}

func (p *packer) addItem(it rankedItem, line string) {
	for _, ev := range it.item.Evidence {
		for _, passage := range p.sent[ev.EventID] {
			if strings.Contains(passage, ev.Quote) {
				p.note(it.item.Handle, it.scores, false, "the passage that it rests on is in already")
				return
			}
		}
	}
	if !p.add(it.item.Handle, it.scores, line, it.item.Trust.Rank() <= memory.TrustTool.Rank()) {
		return
	}
	p.remember(it.item.Content)
	for _, ev := range it.item.Evidence {
		p.events[ev.EventID] = append(p.events[ev.EventID], ev.Quote)
	}
}

func (p *packer) addEpisode(e memory.Episode, sc scores, line func() string) {
	if r := p.found.search.request; r.InPrompt > 0 && e.SessionID == r.Session && e.Seq >= r.InPrompt {
		p.note(e.Handle, sc, false, "stands in the prompt already")
		return
	}
	for _, quote := range p.found.outdated[e.EventID] {
		if strings.Contains(e.Text, quote) {
			p.note(e.Handle, sc, false, "what it says was replaced since")
			return
		}
	}
	for _, quote := range p.events[e.EventID] {
		if strings.Contains(e.Text, quote) {
			p.note(e.Handle, sc, false, "an item that rests on it is in already")
			return
		}
	}
	if len(e.Text) > p.room && len(e.Text) <= maxContent { // its line is longer still
		p.note(e.Handle, sc, false, fmt.Sprintf("does not fit: %d bytes and more, %d left", len(e.Text), p.room))
		return
	}
	if why := p.echo(e); why != "" {
		p.note(e.Handle, sc, false, why)
		return
	}
	if p.add(e.Handle, sc, line(), isUntrusted(e)) {
		p.remember(e.Text)
		p.sent[e.EventID] = append(p.sent[e.EventID], e.Text)
	}
}

func isUntrusted(e memory.Episode) bool {
	return e.Origin == memory.OriginTool || e.Origin == memory.OriginWeb
}

// episodeLine writes a passage as a line of a block.
func (s *Service) episodeLine(e memory.Episode) string {
	speaker, content := e.Speaker, e.Text
	if e.Origin == memory.OriginWeb {
		speaker = string(memory.OriginWeb)
	}
	if e.Caption != "" {
		content += " (image: " + e.Caption + ")"
	}
	return formatLine(e.Handle, []string{dateOf(e.Time), speaker}, content, s.opts.Redact.Text)
}

// reader reads the texts of ranked passages, some at a time.
type reader struct {
	found *found
	at    int // of found.episodes
	ahead map[string]memory.Episode
	read  int                    // passages whose text was asked for
	seen  func([]memory.Episode) // told of what was read; may be nil
}

// peek returns the best passage that is left, and whether there is one.
func (r *reader) peek(ctx context.Context) (memory.Episode, scores, bool, error) {
	for ; r.at < len(r.found.episodes); r.at++ {
		if r.at >= r.read {
			if err := r.fetch(ctx); err != nil {
				return memory.Episode{}, scores{}, false, err
			}
		}
		next := r.found.episodes[r.at]
		if e, there := r.ahead[archive.Handle(int64(next.n))]; there {
			return e, next.scores, true, nil
		}
	}
	return memory.Episode{}, scores{}, false, nil
}

func (r *reader) next() { r.at++ }

func (r *reader) fetch(ctx context.Context) error {
	to := min(r.read+readAhead, len(r.found.episodes))
	numbers := make([]int64, 0, readAhead)
	for _, e := range r.found.episodes[r.read:to] {
		numbers = append(numbers, int64(e.n))
	}
	read, err := r.found.store.Episodes(ctx, numbers)
	if err != nil {
		return err
	}
	r.read = to
	r.ahead = make(map[string]memory.Episode, len(read))
	for _, e := range read {
		if e.Type == memory.AssistantOutput && llm.SaysNothing(e.Text) {
			continue // the archive hides those that it has indexed since it knows of them
		}
		r.ahead[e.Handle] = e
	}
	if r.seen != nil {
		r.seen(read)
	}
	return nil
}
