package distill

import (
	"regexp"
	"strings"

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
