package distill

import (
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
	chosen     bool // settles a question between ways to go
}

// finish sets kind, importance and confidence, and takes in what was said before
// where the sentences say little without it.
func (d *draft) finish() {
	first := d.parts[0]
	opens := d.turn.opensWith(first.sentence)
	hangs := anaphors[first.core[0].lower] && !namesSomebody(first)
	d.chosen = d.mood == telling && first.answer && chooses(first)
	switch {
	case d.mood != telling || !opens || standsAlone(first) && !hangs:
	case first.answer && !offers.MatchString(d.turn.asked) && (!hasVerb(first.core) || hangs || yesNo.MatchString(first.lower) || len(first.names) == 0 && len(first.topics) < 4):
		d.context = answered(d.turn.asked)
	case impersonal.MatchString(first.lower):
	case hangs && d.turn.asked == "":
		d.context = statedLast(d.turn.heard)
	case redone.MatchString(first.lower):
		d.context = statedLast(d.turn.said)
	}
	d.kind = d.chooseKind()
	d.importance, d.confidence = d.chooseWeight()
}

var (
	// impersonal sentences open with an "it" that stands for nothing.
	impersonal = match(`^(?:\w+ )?it (?:turn(?:s|ed) out|seems|seemed|looks like|looked like|rained|snowed|took (?:me|us))\b`)
	// redone reports on what the user spoke of in the turn before.
	redone = match(`^(?:\w+ )?(?:tried|tested|measured|timed|repeated|redid|reran) (?:it|that|this)\b`)
)

// standsAlone reports an answer with a subject of the first person and a verb of
// its own, which needs no question before it.
func standsAlone(v *view) bool {
	if len(v.core) < 4 || len(v.topics) < 2 {
		return false
	}
	next := v.core[1].lower
	return (v.core[0].lower == "i" || v.core[0].lower == "we") && !auxiliaries[next] && !functionWords[next]
}

// chooses reports the choice of one of two ways that a question offers, or of
// another than the one it proposes.
func chooses(v *view) bool {
	asked := strings.ToLower(v.turn.asked)
	switch {
	case len(v.topics) == 0 || len(v.core) > 5 || hasVerb(v.core):
		return false
	case offersChoice.MatchString(asked):
		return true
	}
	return asksWay.MatchString(asked) && v.words[0].lower == "no" && (len(v.names) > 0 || hasCode(v.core))
}

var (
	offersChoice = match(`^(?:[\w'./-]+ ){1,6}or (?:[\w'./-]+ ?){1,4}\?$`)
	asksWay      = match(`^(?:should|shall|do|will|are) (?:we|you) (?:use|take|go|get|buy|choose|pick|keep|switch|move|going|using)\b`)
)

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
	core := afterLead(last.words)
	if len(core) == 0 || core[0].text == "«»" || isImperative(core, joinWords(core)) {
		return ""
	}
	return oneLine(last.text[core[0].start:])
}

const maxContext = 160 // bytes of a question or statement taken in

// proposes marks what an assistant suggests, judges or announces.
var proposes = match(`\b(?:i'd|i would|i could|i can|i'll|i will|you could|you should|you might|you can|suggest|recommend|consider|maybe|perhaps|might|would|could|should|try|always|never|let me|want me|shall|ignor\w+|hidden|orders|instructions?|pretend\w*|posing|acting on|follow\w*|addressed|tried)\b`)

// offers are questions of an assistant about its own next step.
var offers = match(`(?i)\b(?:should i|shall i|do you want|want me|would you like|can i|may i|could i|need me|anything else|what can i|how can i|what about|ready)\b`)

var yesNo = match(`^(?:yes|no|yeah|yep|nope|it is|it does|they are|they do|correct|exactly|right|neither|both)\b`)

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
	futureEvent = match(`\b(?:appointment|dentist|doctor|viewing|interview|exam|launch|release|deadline|flight|fly|flying|trip|wedding|race|marathon|concert|party|meeting|surgery|operation|delivery|go-live|cutover|live|visit|course|starts?|due|booked|signed up|moves? in|comes?|arrives?|release|demo|talk|defen[cs]e|submission|hand in)\b`)
	issueShape  = match(`\b(?:bug|broken|fails?|failed|failing|(?:now|again) (?:it|that) works|works (?:now|again)|crash\w*|error|leak\w*|flaky|corrupt\w*|deadlock|outage|regression|fell over|doesn't work|does not work|not working|hangs|wraps|was slow|is slow|stutters?|fixed|resolved|solved)\b`)
	projectName = match(`\b(?:repo|repository|project|codebase|service|app|game|thesis|shop|studio|business|company)\b.{0,40}\b(?:called|named|is|for you|it's)\b|\bnew repo\b`)
)

var (
	// noEvent are uses of words of events that tell none.
	noEvent = match(`\b(?:can|could|may) (?:\w+ )?(?:come|visit)\b|\blives? (?:in|at|on|near|with)\b|\bcomes? (?:too|from|along|with)\b`)
	// owes is a duty or a promise of the speaker's, and owesBy one with a day.
	owes   = match(`\b(?:i|we)(?:'ve| have)? promised?\b|\bi(?:'ve| have)? (?:gave|given) my word\b`)
	owesBy = match(`\b(?:i|we)(?: (?:have to|need to|must|ought to|owe)|'ve got to|'ll| will)\b.*\b(?:by|before|until|on)\b`)
	// movesDay puts an event on another day.
	movesDay = match(`\b(?:moves|moved|pushed|postponed|shifts|shifted|goes|brought forward|put (?:back|off|forward)|rescheduled) (?:\w+ )?to\b`)
	// settled are decisions that name themselves at their end, or by their verb.
	settled = match(`^[^.]{2,60}, final[.!]?$|\b(?:we|i)(?:'ve| have)? (?:\w+ )?(?:switched|migrated|changed over|went over) (?:over )?(?:from .{1,40} )?to\b|\bchanged (?:our minds?|my mind)\b`)
	// insteadOf compares; it settles nothing.
	insteadOf = match(`\binstead(?: of)?\b`)
	holder    = match(`\b(?:[Tt]he|[Oo]ur|[Mm]y) (?:\w+ ){0,2}([\pL-]+)(?:['’]s| is| will be) (?:\p{Lu}\pL+)`)
)

// namesHolder reports a sentence that says who holds a role: "our new vet is Ruth".
func namesHolder(v *view) bool {
	m := holder.FindStringSubmatch(v.text)
	return m != nil && (roles[m[1]] || kin[m[1]] || m[1] == "person" || m[1] == "contact")
}

// decidesHere reports a decision of the user's side; the end of a fault is none,
// whatever was used instead.
func (d *draft) decidesHere() bool {
	return settled.MatchString(d.lower()) || d.any(func(v *view) bool {
		return decision.MatchString(v.lower) && (decision.MatchString(insteadOf.ReplaceAllString(v.lower, "")) || !issueShape.MatchString(d.lower()))
	})
}

// chooseKind names the kind by the strongest sign.
func (d *draft) chooseKind() string {
	lower := d.lower()
	dayAhead := d.any(func(v *view) bool { return len(daysOf(v.text, d.turn.at)) > 0 })
	switch {
	case d.mood == reminding:
		return memory.KindReminder
	case d.mood == ruling, d.any(prefers) && !d.any(func(v *view) bool { return hasBase(v.words, health) }):
		return memory.KindPreference
	case d.decidesHere(), d.chosen:
		return memory.KindDecision
	case d.any(namesHolder):
		return memory.KindPerson
	case owes.MatchString(lower), dayAhead && owesBy.MatchString(lower), dayAhead && movesDay.MatchString(lower) && futureEvent.MatchString(lower):
		return memory.KindCommitment
	case issueShape.MatchString(lower):
		return memory.KindIssue
	case dayAhead && futureEvent.MatchString(noEvent.ReplaceAllString(lower, "")):
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

var dangerous = match(`allerg|epipen|diabet|coeliac|celiac|epilep|insulin|penicillin|anaphyla|过敏|pacemaker|pregnan`)

func firstOrKin(v *view) bool {
	return has(v.words, firstPerson) || hasBase(v.words, kin) || len(v.names) > 0
}
