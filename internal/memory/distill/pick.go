package distill

import (
	"slices"
	"strings"
	"unicode"
)

const (
	maxDraft   = 420 // bytes of the sentences of one draft
	attachFrom = .5  // weight from which a sentence may complete a kept one
	looseFrom  = 1   // weight from which it may wait for the next one
)

// drafts picks what is worth keeping from one turn.
func drafts(t *turn) []*draft {
	p := &picker{turn: t}
	for i := range t.sentences {
		p.take(&t.sentences[i])
	}
	for _, d := range p.drafts {
		d.finish()
	}
	return p.drafts
}

// picker reads a turn sentence by sentence, and keeps together what tells one
// fact.
type picker struct {
	turn   *turn
	drafts []*draft
	open   *draft // the draft that the next sentence may complete
	loose  *view  // the sentence before, if it was too light to stand alone
	quoted bool   // a quotation stands between
}

// take decides on the next sentence.
func (p *picker) take(s *sentence) {
	v := viewOf(s, p.turn)
	m := classify(s, p.turn)
	if slices.ContainsFunc(s.words, func(w word) bool { return looksSecret(w.text) }) {
		m = ordering // whatever it is, it is not to be kept
	}
	switch m {
	case telling:
		for _, part := range conjuncts(v) {
			p.keep(part, m, weigh(part))
		}
	case ruling, reminding:
		p.keep(v, m, keepFrom)
	case quoting:
		p.loose, p.quoted = nil, true // what the user makes of it may still belong to the open draft
	default:
		p.pass(v, m)
	}
}

// pass goes over a sentence that tells nothing; who is named in it, and whether it
// takes back what went before, still counts.
func (p *picker) pass(v *view, m mood) {
	if m == joking && takesBack.MatchString(v.lower) {
		p.drafts = slices.DeleteFunc(p.drafts, func(d *draft) bool { return d == p.open })
	}
	if aside := asideOf(v.sentence, p.turn); aside != nil {
		p.drafts = append(p.drafts, &draft{turn: p.turn, mood: telling, parts: []*view{aside}})
	}
	p.open, p.loose = nil, nil
}

// keep adds a sentence to the open draft, opens one with it, or sets it aside.
func (p *picker) keep(v *view, m mood, weight float64) {
	if p.quoted && !v.explains {
		p.open = nil
	}
	loose := p.loose
	p.loose, p.quoted = nil, false
	switch {
	case m == reminding && p.open != nil && len(v.topics) < 3: // "… every second Sunday. Please remind me."
		p.open.mood, p.open.parts = reminding, append(p.open.parts, v)
	case p.open != nil && p.open.completes(v, m, weight):
		p.open.parts = append(p.open.parts, v)
	case weight >= keepFrom && m == telling && loose != nil && leadsTo(loose, v):
		p.start(m, loose, v)
	case weight >= keepFrom:
		p.start(m, v)
	case m == telling && loose != nil && hangsOn(v) && weight > 0 && weigh(loose)+weight >= keepFrom+.5:
		p.start(m, loose, v) // neither stands alone
	case weight >= looseFrom:
		p.open, p.loose = nil, v
	default:
		p.open = nil
	}
}

func (p *picker) start(m mood, parts ...*view) {
	p.open = &draft{turn: p.turn, mood: m, parts: parts}
	p.drafts = append(p.drafts, p.open)
}

// leadsTo reports that a light sentence announces the next one.
func leadsTo(loose, v *view) bool {
	return isShort(loose) || anaphors[v.core[0].lower] || announces.MatchString(loose.lower)
}

// completes reports whether v belongs to the fact that d tells: it hangs on a
// pronoun, has no verb of its own, is very short, or goes on about the same thing.
func (d *draft) completes(v *view, m mood, weight float64) bool {
	last := d.parts[len(d.parts)-1]
	hangs := hangsOn(v)
	bare := !hasVerb(v.core)
	switch {
	case weight < attachFrom && !(bare && len(v.topics) > 1 && weight >= 0):
		return false
	case v.end-d.parts[0].start > maxDraft, d.mood == reminding, m == reminding:
		return false
	case d.mood != m:
		return d.mood == ruling && m == telling && (hangs || bare)
	case hangs:
		return true
	case speaksForeign(v.sentence) != speaksForeign(last.sentence), m == telling && apart(last, v):
		return false
	case isShort(v) && (bare || weight < keepFrom || !namesSomebody(v)), isShort(last):
		return true
	case d.mood == ruling:
		return bare && len(v.topics) < 5
	}
	changed := changeCue.MatchString(last.lower)
	if changed && (!hasNumber(last.words) || changeCue.MatchString(v.lower)) {
		return true // what has changed, and to what
	}
	if bare {
		return weight < keepFrom || !hasNumber(v.words)
	}
	decided := decision.MatchString(last.lower)
	support := (decided || issueShape.MatchString(last.lower)) && saysPast.MatchString(v.lower)
	return support || decided && decision.MatchString(v.lower) || sharesTopic(last, v)
}

// conjunction joins two statements, the second with a subject of its own.
var conjunction = match(`(?i)(?:,? (?:and|but)(?: also)?|;) (?:i|i['’](?:m|ve)|we|we['’](?:re|ve)|my|our)\b`)

// dependent opens a clause that means nothing without the other one.
var dependent = match(`\b(?:if|when|whenever|unless|until|while|because|since|so|that|whether|than|once|before|after|as (?:i|we|he|she|it|they|you|soon|long|far)|then|both|either|neither)\b`)

// conjuncts cuts a sentence that states unlike things side by side ("I live in
// Ghent and I'm allergic to nuts"), so that what changes one of them leaves the
// other. Any other sentence comes back whole.
func conjuncts(v *view) []*view {
	if len(v.quotes) > 0 || v.explains || strings.HasSuffix(v.text, "?") {
		return []*view{v}
	}
	for _, at := range conjunction.FindAllStringIndex(v.text, -1) {
		joint := at[0] + strings.LastIndexByte(v.text[at[0]:at[1]], ' ')
		first, second := v.span(0, at[0]), v.span(joint+1, len(v.text))
		if len(first.core) > 0 && len(second.core) > 0 && classify(first.sentence, v.turn) == telling && classify(second.sentence, v.turn) == telling && apart(first, second) {
			return append([]*view{first}, conjuncts(second)...)
		}
	}
	return []*view{v}
}

// span returns the part of a view between two bytes of its text as one of its own.
func (v *view) span(from, to int) *view {
	s := sentence{start: v.start + from, end: v.start + to, text: v.text[from:to], paragraph: v.paragraph}
	s.words = wordsOf(s.text, make([]byte, len(s.text)))
	return viewOf(&s, v.turn)
}

// apart reports two statements that each stand alone and speak of different
// things: neither tells a change, which says what was and what is.
func apart(a, b *view) bool {
	for _, v := range []*view{a, b} {
		if !firstPerson[v.core[0].lower] || !hasVerb(v.core) || weigh(v) < keepFrom || dependent.MatchString(v.lower) || changeCue.MatchString(v.lower) || decision.MatchString(v.lower) || issueShape.MatchString(v.lower) {
			return false
		}
	}
	return !hangsOn(b) && !sharesTopic(a, b)
}

// sharesTopic reports a content word in common.
func sharesTopic(a, b *view) bool {
	stems := stemsOf(a.text)
	for s := range stemsOf(b.text) {
		if stems[s] {
			return true
		}
	}
	return false
}

func isShort(v *view) bool { return len(v.core) <= 5 }

// personAside is an apposition that says who somebody is, inside a sentence that
// does something else: "Tell that to Ana, she's our landlady."
var personAside = match(`\p{Lu}[\pL'’-]+(?: \p{Lu}[\pL'’-]+)?,? (?:who(?:['’]s| is)|s?he(?:['’]s| is)) (?:my|our|the) [^,.;:!?"“]+`)

// asideOf returns such an apposition as a statement of its own, or nil.
func asideOf(s *sentence, t *turn) *view {
	if s.pasted || len(s.quotes) > 0 {
		return nil
	}
	at := personAside.FindStringIndex(s.text)
	if at == nil {
		return nil
	}
	aside := sentence{start: s.start + at[0], end: s.start + at[1], text: s.text[at[0]:at[1]], paragraph: s.paragraph}
	aside.words = wordsOf(aside.text, make([]byte, len(aside.text)))
	if !hasBase(aside.words, kin) && !hasBase(aside.words, roles) {
		return nil
	}
	return viewOf(&aside, t)
}

// looksSecret reports a word such as a key or a password that redaction did not
// know: ten characters or more, with upper and lower case letters and digits that
// change places at least five times.
func looksSecret(w string) bool {
	upper, lower, digit, turns := false, false, false, 0
	var last rune
	for _, r := range w {
		class := 'x'
		switch {
		case unicode.IsUpper(r):
			class, upper = 'u', true
		case unicode.IsLower(r):
			class, lower = 'l', true
		case unicode.IsDigit(r):
			class, digit = 'd', true
		}
		if last != 0 && class != last {
			turns++
		}
		last = class
	}
	return len(w) >= 10 && upper && lower && digit && turns >= 5
}

var takesBack = match(`^(?:\w+ )?(?:just |only |i'm |totally )?(?:kidding|joking|jk)\b`)
