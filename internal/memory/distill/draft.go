package distill

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// draft is an item in the making: the sentences of one turn that tell one fact.
type draft struct {
	turn       *turn
	mood       mood
	parts      []*view
	context    string // what was said just before, where the sentences say little without it
	kind       string
	importance int
	confidence float64
}

const (
	maxDraft   = 420 // bytes of the sentences of one draft
	attachFrom = .5  // weight from which a sentence may complete a kept one
)

// drafts picks what is worth keeping from one turn.
func drafts(t *turn) []*draft {
	var out []*draft
	var open *draft // the draft that the next sentence may complete
	var loose *view // a sentence before, too light to stand alone
	quoted := false // a quotation stands between
	for i := range t.sentences {
		s := &t.sentences[i]
		v := viewOf(s, t)
		m := classify(s, t)
		if slices.ContainsFunc(s.words, func(w word) bool { return looksSecret(w.text) }) {
			m = ordering // whatever it is, it is not to be kept
		}
		weight := 0.0
		switch m {
		case telling:
			weight = weigh(v)
		case ruling, reminding:
			weight = keepFrom
		case quoting:
			loose = nil
			quoted = true // what the user makes of it may still belong to the open draft
			continue
		default:
			if aside := asideOf(s, t); aside != nil {
				out = append(out, &draft{turn: t, mood: telling, parts: []*view{aside}})
			}
			if m == joking && takesBack.MatchString(v.lower) && open != nil { // "Kidding." denies what went before
				out = out[:len(out)-1]
			}
			open, loose = nil, nil
			continue
		}
		if quoted && !v.explains {
			open = nil
		}
		quoted = false
		switch {
		case m == reminding && open != nil && len(v.topics) < 3: // "… every second Sunday. Please remind me."
			open.mood, open.parts = reminding, append(open.parts, v)
		case open != nil && open.completes(v, m, weight):
			open.parts = append(open.parts, v)
		case weight >= keepFrom:
			open = &draft{turn: t, mood: m, parts: []*view{v}}
			if loose != nil && m == telling && (isShort(loose) || anaphors[v.core[0].lower] || announces.MatchString(loose.lower)) {
				open.parts = []*view{loose, v}
			}
			out = append(out, open)
		case m == telling && loose != nil && hangsOn(v) && weight > 0 && weigh(loose)+weight >= keepFrom+.5:
			open = &draft{turn: t, mood: m, parts: []*view{loose, v}}
			out = append(out, open)
		case m == telling && weight >= 1:
			open, loose = nil, v
			continue
		default:
			open = nil
		}
		loose = nil
	}
	for _, d := range out {
		d.finish()
	}
	return out
}

// personAside is an apposition that says who somebody is, inside a sentence that
// does something else: "Tell that to Ana, she's our landlady."
var personAside = regexp.MustCompile(`\p{Lu}[\pL'’-]+(?: \p{Lu}[\pL'’-]+)?,? (?:who(?:['’]s| is)|s?he(?:['’]s| is)) (?:my|our|the) [^,.;:!?"“]+`)

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

var takesBack = regexp.MustCompile(`^(?:\w+ )?(?:just |only |i'm |totally )?(?:kidding|joking|jk)\b`)

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
	case speaksForeign(v.sentence) != speaksForeign(last.sentence):
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

// finish sets kind, importance and confidence, and takes in what was said before
// where the sentences say little without it.
func (d *draft) finish() {
	first := d.parts[0]
	opens := d.turn.opensWith(first.sentence)
	hangs := anaphors[first.core[0].lower] && !namesSomebody(first)
	switch {
	case d.mood != telling || !opens:
	case first.answer && !offers.MatchString(d.turn.asked) && (!hasVerb(first.core) || hangs || yesNo.MatchString(first.lower) || len(first.names) == 0 && len(first.topics) < 4):
		d.context = answered(d.turn.asked)
	case hangs && d.turn.asked == "":
		d.context = statedLast(d.turn.heard)
	}
	d.kind = d.chooseKind()
	d.importance, d.confidence = d.chooseWeight()
}

// namesSomebody reports a proper name that is not an abbreviation.
func namesSomebody(v *view) bool {
	for _, n := range v.names {
		if !acronym.MatchString(strings.ToUpper(n)) || len(n) > 4 {
			return true
		}
	}
	return false
}

// opensWith reports that nothing is said in the turn before s but a word or two.
func (t *turn) opensWith(s *sentence) bool {
	for i := range t.sentences {
		if &t.sentences[i] == s {
			return true
		}
		if len(contentWords(t.sentences[i].words)) > 2 {
			return false
		}
	}
	return false
}

// answered returns a question that is worth keeping with its answer.
func answered(question string) string {
	if len(stemsOf(question)) == 0 || len(question) > maxContext {
		return ""
	}
	return oneLine(question)
}

// statedLast returns the last sentence of what the other side said, where it
// states something: a suggestion must not slip in with the reply to it.
func statedLast(heard string) string {
	all := sentences(heard)
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	lower := strings.ToLower(last.text)
	if last.pasted || len(last.text) > maxContext || len(stemsOf(last.text)) < 2 || strings.HasSuffix(last.text, "?") || proposes.MatchString(lower) || steers(last.text) {
		return ""
	}
	return oneLine(last.text)
}

const maxContext = 160 // bytes of a question or statement taken in

// proposes marks what an assistant suggests, judges or announces.
var proposes = regexp.MustCompile(`\b(?:i'd|i would|i could|i can|i'll|i will|you could|you should|you might|you can|suggest|recommend|consider|maybe|perhaps|might|would|could|should|try|always|never|let me|want me|shall|ignor\w+|hidden|orders|instructions?|pretend\w*|posing|acting on|follow\w*|addressed|tried)\b`)

// offers are questions of an assistant about its own next step.
var offers = regexp.MustCompile(`(?i)\b(?:should i|shall i|do you want|want me|would you like|can i|may i|could i|need me|anything else|what can i|how can i|what about|ready)\b`)

var yesNo = regexp.MustCompile(`^(?:yes|no|yeah|yep|nope|it is|it does|they are|they do|correct|exactly|right|neither|both)\b`)

// text returns the user's words of the draft.
func (d *draft) text() string {
	var b strings.Builder
	for i, p := range d.parts {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.text)
	}
	return b.String()
}

func (d *draft) lower() string { return strings.ToLower(strings.ReplaceAll(d.text(), "’", "'")) }

func (d *draft) any(holds func(v *view) bool) bool {
	for _, p := range d.parts {
		if holds(p) {
			return true
		}
	}
	return false
}

// evidence returns the exact spans that the draft rests on; sentences that follow
// each other make one.
func (d *draft) evidence() []Quote {
	var out []Quote
	start, end := d.parts[0].start, d.parts[0].end
	flush := func() {
		out = append(out, Quote{EventID: d.turn.event.ID, Quote: d.turn.event.Text[start:end]})
	}
	for _, p := range d.parts[1:] {
		if strings.TrimSpace(d.turn.event.Text[end:p.start]) != "" {
			flush()
			start = p.start
		}
		end = p.end
	}
	flush()
	return out
}

var (
	futureEvent = regexp.MustCompile(`\b(?:appointment|dentist|doctor|viewing|interview|exam|launch|release|deadline|flight|fly|flying|trip|wedding|race|marathon|concert|party|meeting|surgery|operation|delivery|go-live|cutover|live|visit|course|starts?|due|booked|signed up|moves? in|comes?|arrives?|release|demo|talk|defen[cs]e|submission|hand in)\b`)
	issueShape  = regexp.MustCompile(`\b(?:bug|broken|fails?|failing|crash\w*|error|leak\w*|flaky|corrupt\w*|deadlock|outage|regression|fell over|doesn't work|does not work|not working|hangs|wraps|was slow|is slow|stutters?|fixed|resolved)\b`)
	projectName = regexp.MustCompile(`\b(?:repo|repository|project|codebase|service|app|game|thesis|shop|studio|business|company)\b.{0,40}\b(?:called|named|is|for you|it's)\b|\bnew repo\b`)
)

// chooseKind names the kind by the strongest sign.
func (d *draft) chooseKind() string {
	lower := d.lower()
	dayAhead := d.any(func(v *view) bool { return len(daysOf(v.text, d.turn.at)) > 0 })
	switch {
	case d.mood == reminding:
		return memory.KindReminder
	case d.mood == ruling, d.any(prefers) && !d.any(func(v *view) bool { return hasBase(v.words, health) }):
		return memory.KindPreference
	case d.any(func(v *view) bool { return decision.MatchString(v.lower) }):
		return memory.KindDecision
	case issueShape.MatchString(lower):
		return memory.KindIssue
	case dayAhead && futureEvent.MatchString(lower):
		return memory.KindCommitment
	case d.any(func(v *view) bool {
		return len(v.names) > 0 && (hasBase(v.words, kin) || hasBase(v.words, roles)) && definition.MatchString(v.lower)
	}):
		return memory.KindPerson
	case projectName.MatchString(lower):
		return memory.KindProject
	case dayAhead && saysPast.MatchString(lower):
		return memory.KindEvent
	}
	return memory.KindFact
}

// chooseWeight returns importance and confidence.
func (d *draft) chooseWeight() (int, float64) {
	danger := d.any(func(v *view) bool { return hasBase(v.words, health) && firstOrKin(v) })
	switch {
	case danger && dangerous.MatchString(d.lower()):
		return 5, .9
	case danger, d.kind == memory.KindReminder, d.mood == ruling:
		return 4, .9
	case d.kind == memory.KindDecision, d.kind == memory.KindCommitment, d.kind == memory.KindPerson, d.kind == memory.KindProject:
		return 4, .85
	case d.kind == memory.KindPreference:
		return 4, .8
	}
	return 3, .75
}

var dangerous = regexp.MustCompile(`allerg|epipen|diabet|coeliac|celiac|epilep|insulin|penicillin|anaphyla|过敏|pacemaker|pregnan`)

func firstOrKin(v *view) bool {
	return has(v.words, firstPerson) || hasBase(v.words, kin) || len(v.names) > 0
}
