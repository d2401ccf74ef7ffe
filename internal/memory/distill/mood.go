package distill

import (
	"strings"
)

// mood is what a sentence does: only some moods can tell a fact.
type mood int

const (
	telling   mood = iota // a statement, also a fragment of one
	ruling                // a standing instruction to the assistant
	reminding             // asks for a reminder
	asking                // a question
	ordering              // a one-off request
	supposing             // hypothetical
	joking                // said in fun
	wavering              // not decided, thinking aloud
	quoting               // someone else's words, not adopted
	attacking             // tries to steer the assistant in somebody else's text
)

// classify tells the mood of a sentence. next is the assistant's answer, which
// shows how a request was taken.
func classify(s *sentence, t *turn) mood {
	lower := strings.ToLower(strings.ReplaceAll(s.text, "’", "'"))
	core := afterLead(s.words)
	switch {
	case steers(s.text):
		return attacking
	case s.pasted:
		return quoting
	case asksReminder.MatchString(lower) && !declinesReminder.MatchString(lower):
		return reminding
	case inFun.MatchString(laughLead.ReplaceAllString(lower, "")):
		return joking
	case isSupposing(lower):
		return supposing
	case isQuestion(s, core, lower):
		if standingRequest.MatchString(lower) {
			return ruling
		}
		return asking
	case isWavering(lower):
		return wavering
	case speaksForeign(s):
		return telling
	case len(s.quotes) > 0 && !s.explains:
		return quoting
	case isReported(lower) && !s.explains:
		return quoting
	case behaviour.MatchString(lower), endsInOrder.MatchString(lower) && standingMarks.MatchString(lower):
		return ruling
	case isCaseOrder(core), lasting.MatchString(lower) && !hasVerb(core):
		return ruling
	}
	if reportsBack.MatchString(lower) {
		return ordering
	}
	if isImperative(core, lower) {
		if isStanding(core, lower, t) {
			return ruling
		}
		return ordering
	}
	return telling
}

// behaviour is a liking or dislike of what the assistant does.
var behaviour = match(`\b(?:i|we) (?:\w+ )?(?:hate|like|love|prefer|dislike|can't stand|don't like|appreciate)(?: it)? (?:when|if) you (?:don't |never |always )?\w+ \w+`)

// endsInOrder draws an order from what the sentence tells.
var endsInOrder = match(`, so (?:please )?(?:don't|do not|never|always|only) \w+ (?:\w+ )?(?:me|us|my|our)\b`)

// steers reports text that must not be learned from whoever shows it.
func steers(text string) bool {
	plain := unmask(text)
	for _, sign := range signs {
		if sign.reach != outsiders && sign.pattern.MatchString(plain) {
			return true
		}
	}
	return false
}

// asksReminder matches a request to be told something later, also as a question.
var asksReminder = match(`\b(?:remind (?:me|us|both)|(?:ping|nudge|poke|prod|buzz|nag) (?:me|us) (?:to|so)|(?:ping|nudge|poke|prod|buzz|alert|notify|warn|nag|text|message|wake|tell) (?:me|us) (?:on|at|every|each|in (?:a|an|the|\d|two|three|four|five|six)|next|tomorrow|tonight|again (?:on|in)|when it|a (?:day|week)|one (?:day|week)|the (?:day|week|evening|morning|night) before|mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?|before|by|about|around|from)` +
	`|(?:set|make|add|create|schedule|put in|i need|i'd like|want) (?:me |us |up )?(?:a |an |another |the )?(?:\w+ )?reminders?|don't let (?:me|us) forget|make sure (?:i|we) (?:don't forget|remember)|erinner\w* (?:mich|uns)|recu[eé]rdame|av[ií]same|提醒我)\b|\breminder:|提醒我`)

var declinesReminder = match(`\b(?:don't|do not|no need to|stop|never|needn't|you can stop|without) (?:ever )?(?:remind|ping|nudg|nag|message|messag|text|tell|wake|notify|alert|warn|poke|prod|buzz)|\bremind me (?:what|how|why|who|where|which|again (?:what|how|why|who|where))\b`)

// inFun matches marks of laughter and of jest at the end of what they colour; at
// the head they answer the joke of another.
var inFun = match(`\b(?:just |only |i'm |totally )?(?:kidding|joking|jk)\b|\bas(?:king)? for a friend\b|\bpulling your leg\b|(?:^|\s)/s\b|\bhaha|\b(?:lol|lmao|rofl|hehe|hihi|jaja(?:ja)?)\b|😂|🤣|😜|😉|;-?\)`)

var laughLead = match(`^(?:ha(?:ha)+|lol|lmao|hehe|hihi|jajaja?)\b[\s,.!]*`)

var (
	conditional = match(`\b(?:if|wenn|si|unless|provided)\b`)
	// remote conditionals: what is imagined, not planned.
	remote   = match(`\b(?:would|wouldn't|i'd|we'd|you'd|he'd|she'd|they'd|it'd|could|couldn't|hätte|würde|wäre|sería|haría)\b`)
	fancy    = match(`\b(?:if (?:i|we|you|he|she|they|it|this|that|the \w+|money|budget|time) (?:ever|were|was|had|won|could|did|wasn't|weren't|hadn't|lived|owned|got|became|ruled|knew)|if only|what if|imagine|suppose|supposing|say we|pretend|let's pretend|picture this|in (?:an?|another|my next) (?:perfect|ideal|parallel|other|different)?\s*(?:world|life|universe|dimension)|in my dreams|i wish|wish i|wish we|would be (?:fun|nice|funny|cool|great|lovely|hilarious)|wouldn't it be|one day i'?(?:ll|d)?|some ?day|dream of|dreaming of|daydream|hypothetically|in theory|stell dir vor|imagínate|ojalá|was wäre wenn|假如|如果我是|要是)\b`)
	wishes   = match(`\b(?:i|we)(?:'d| would) (?:love|like|rather|prefer|appreciate)\b`)
	standing = match(`\b(?:i'd rather|i would rather|we'd rather|i'd prefer|i would prefer|we'd prefer|i'd like (?:you|it|the|all|my|our|to get|to have|to be|to see)|rather)\b`)
)

// isSupposing reports what is imagined. A condition of the present with an order
// or a plain consequence is a rule, not a fancy.
func isSupposing(lower string) bool {
	switch {
	case fancy.MatchString(lower):
		return true
	case standing.MatchString(lower):
		return false
	case conditional.MatchString(lower) && remote.MatchString(lower):
		return true
	case wishes.MatchString(lower):
		return true
	}
	return fantasies.MatchString(lower)
}

// fantasies are first persons in the conditional without a condition, and orders
// to a world that is not there.
var fantasies = match(`^(?:\w+[, ]+){0,3}(?:i'd|we'd|i would|we would|he'd|she'd|they'd) (?:\w+ )?(?:be|have|go|do|get|put|buy|live|move|call|marry|sleep|need|die|sit|say|fire|skip|just|never|probably|honestly|definitely|end|run|make|take|build|pay|tell|call)\b`)

// isQuestion reports questions, also without a question mark.
func isQuestion(s *sentence, core []word, lower string) bool {
	marked := strings.HasSuffix(strings.TrimRight(lower, ` )"'”“»*_`), "?") || strings.HasSuffix(lower, "？")
	if marked {
		return !questionTag.MatchString(lower)
	}
	if len(core) < 2 {
		return false
	}
	first, second := core[0].lower, core[1].lower
	switch {
	case strings.Contains(s.text, ":"): // "When's the release: Monday" answers itself
		return false
	case auxiliaries[first] && (subjectPronouns[second] || second == "the" || second == "there" || second == "my" || second == "our"):
		return first != "do" && first != "don't" || subjectPronouns[second] && second != "it" && second != "that" && second != "this"
	case questionWords[first] && strings.Contains(first, "'"):
		return true
	case questionWords[first] && auxiliaries[second]:
		return true
	case first == "how" && (second == "about" || second == "many" || second == "much" || second == "long" || second == "come"):
		return true
	case first == "guess" && questionWords[second], first == "any" && (second == "idea" || second == "ideas" || second == "tips"):
		return true
	}
	return openQuestion.MatchString(lower)
}

var (
	// questionTag is a question mark behind a statement.
	questionTag = match(`,\s*(?:right|ok|okay|yeah|yes|no|remember|you know|see|eh|huh|innit|isn't it|doesn't it|don't we|didn't i|didn't we|haven't i|aren't we|won't you|will you|deal|gell|oder|verdad)\s*\?+$|\bdid i (?:say|mention|tell you)\s*\?+$`)
	// openQuestion asks without the form of a question.
	openQuestion = match(`\b(?:i wonder|wondering (?:if|whether|what|how)|no idea (?:if|whether|what|how|why)|remind me (?:what|how|why|who|where|again)|tell me (?:what|how|why|who|where|again)|your (?:opinion|thoughts|take)|thoughts\b$|mad question|quick question|stupid question|silly question)\b`)
)

// undecided phrases keep a plan open; the sentence tells no fact then.
var undecided = match(`\b(?:not (?:sure|certain|decided)|no idea|we'll see|i'll see|let's see|will see|remains to be seen|haven't decided|hasn't decided|undecided|still (?:thinking|deciding|unsure|torn)|thinking (?:about|of|aloud|out loud)|toying with|tempted to|playing with the idea|might (?:have to|be|get|go|do|try|move|switch|need|want|buy|take|also|as well)|may (?:have to|be able|need|switch|move|try)|i guess|i suppose|i'd say|i would say|nothing yet|ask me (?:again|later|on|next|tomorrow|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|don't (?:answer|quote me|hold me)|to be decided|tbd|up in the air|either .{1,40} or|or maybe|torn between|could also|should (?:i|we) (?:maybe|perhaps)|we could|i could|one of these days|ich überlege|mal sehen|no sé si|a lo mejor)\b`)

func isWavering(lower string) bool {
	if undecided.MatchString(lower) && !settles.MatchString(lower) {
		return true
	}
	for _, w := range strings.FieldsFunc(lower, func(r rune) bool { return r == ' ' || r == ',' || r == '.' }) {
		if tentative[w] && !settles.MatchString(lower) {
			return true
		}
	}
	return false
}

// settles are words by which a sentence ends the wavering it starts with.
var settles = match(`\b(?:decided|decision|settled|it is(?:,|\.|$)|final|go with|going with|went with)\b`)

// reported matches the words of a third person; what authorities order or find is
// a fact about the user all the same.
var (
	reported = match(`\b(?:(?:he|she|they|people|some) (?:say|claim|reckon|think|swear|believe)|[a-z]+ (?:says|said|claims|claimed|reckons|reckoned|thinks|thought|swears|swore|insists|insisted|believes|joked|jokes)|[a-z]+ (?:wants to know|asks if|asked if|asks whether|asked whether|keeps? (?:saying|telling|asking)|told (?:me|us|him|her|them)|swears by|recommends|suggests|suggested|recommended))\b`)
	selfSaid = match(`\b(?:i|we|you) (?:said|say|told|think|thought|believe|reckon|swear|asked|suggest|recommend)\b`)
	// authorities are those whose word settles a matter of fact.
	authorities = match(`\b(?:doctor|dr\.?|gp|surgeon|consultant|nurse|midwife|dentist|vet|physio|specialist|hospital|clinic|lab|pharmacist|bank|landlord|landlady|school|teacher|kindergarten|nursery|council|ministry|authority|airline|insurance|insurer|embassy|court|lawyer|solicitor|accountant|tax|boss|manager|client|customer|legal|security|supervisor|professor|examiner|vendor|supplier|provider|support|mechanic|garage|electrician|plumber|inspector|publisher|editor|hr|management|ärztin|arzt)\b`)
)

// isReported tells what others say. A decision of the user's that somebody is only
// named for afterwards stays theirs.
func isReported(lower string) bool {
	said := reported.FindStringIndex(lower)
	if said == nil || selfSaid.MatchString(lower) || authorities.MatchString(lower) {
		return false
	}
	decided := decision.FindStringIndex(lower)
	return decided == nil || said[0] < decided[0]
}

// isCaseOrder reports an order for a case: "when you translate, keep the names".
func isCaseOrder(core []word) bool {
	if !caseRule.MatchString(joinWords(core)) {
		return false
	}
	for i, w := range core[:len(core)-1] {
		if strings.Contains(w.after, ",") {
			rest := afterLead(core[i+1:])
			return isImperative(rest, joinWords(rest))
		}
	}
	return false
}

// imperativeVerbs open requests to an assistant.
var imperativeVerbs = wordSet(`run show give keep use write send make put try check commit fix look find tell read add remove delete create open close move rename stop start call
	book cancel order remind ping set list explain translate summarise summarize draft answer reply respond avoid leave forget remember note ignore skip go wait do let measure
	log count suggest recommend ask push merge deploy test build install update change switch convert format include exclude treat assume stick hold follow mention
	spell speak talk address refer sign round quote cite cap limit mind watch wrap plan pick choose schedule save store print sort group bring take get think
	guess promise help drop track compare calculate estimate search google fetch download upload generate refactor rewrite revert rebase document describe split cut shorten
	rephrase proofread repeat say spare be don't never always kindly feel stay turn pull ship bump default prepend append prefix report verify confirm double-check
	block reserve pay warn hide highlight expect insert replace undo redo return ring text email mail message
	halte verwende benutze schreib schreibe antworte nimm mach gib zeig vermeide usa responde escribe evita pon dame`)

// lasting makes a rule of a phrase without a verb: "short answers from now on".
var lasting = match(`\b(?:from now on|in future|in the future|going forward|by default)\b`)

// reportsBack ends a task: "and tell me the numbers".
var reportsBack = match(`\b(?:and|then) (?:tell|show|send|give|let) me\b|\band report\b`)

// nounNext are words that show that an imperative-looking first word is a noun or
// the subject: "Change of plan", "Run went well".
var nounNext = wordSet(`of is are was were has had have will went got goes gets then changed moved failed passed arrived came comes does did can could says said starts started
	ends ended takes took time times went 's results result runs ran works worked looks looked costs cost`)

// isImperative reports requests and rules: a bare verb in front, "no ..." without a
// verb, "in metres please".
func isImperative(core []word, lower string) bool {
	if len(core) == 0 {
		return false
	}
	first := core[0].lower
	second := ""
	if len(core) > 1 {
		second = core[1].lower
	}
	switch {
	case first == "let's" || first == "lets" || first == "let" && second == "us":
		return !decides.MatchString(lower)
	case first == "make" && decision.MatchString(lower): // "make it nine"
		return false
	case first == "no" && second != "":
		return !noTalk.MatchString(lower)
	case first == "never" || first == "always":
		return len(core) > 2 && !subjectPronouns[second] && !auxiliaries[second] && !functionWords[second] && !strings.HasSuffix(second, "ed") && second != "mind"
	case first == "don't" || first == "do" && second == "not":
		return !subjectPronouns[second] && !auxiliaries[second] && !strings.HasSuffix(second, "ed") && second != "mind"
	case first == "only" || first == "nothing" || first == "not":
		return len(core) > 2 && (strings.Contains(lower, "please") || strings.Contains(lower, " for me"))
	case first == "in" && strings.Contains(lower, "please"):
		return true
	case imperativeVerbs[first] && second == "":
		return true
	}
	return imperativeVerbs[first] && !nounNext[second] && !strings.HasSuffix(first, "s") && !strings.Contains(core[0].after, ":")
}

var noTalk = match(`\bno (?:idea|worries|problem|rush|wait|thanks|thank|way|need|doubt|wonder|clue|matter|hurry|offence|offense|pressure|luck|news|sign|one|but|that|it|i|we|he|she|they|longer|more|budget|time|money|space|chance|point|reason|sense)\b|\b(?:forget it|never mind|leave it|skip it)\b`)

var decides = match(`\b(?:let's (?:go with|stick (?:with|to)|call it|use|take|settle on|do it on|keep|make it|switch to|move to|stay with|aim for|say)|go with)\b`)

// standingMarks make an instruction hold beyond the moment; momentMarks tie it to
// the moment.
var (
	standingMarks = match(`\b(?:always|never|every|each|any|anything|anywhere|anyone|ever|everything|everyone|from now on|from here on|going forward|in future|in the future|by default|in general|generally|as a rule|whenever|when (?:you|i|we)|if (?:you|i|we|it|there|something|a|an)|unless|at all times|at all|max|maximum|at most|at least|no more than|instead of|rather than|with me|to me|for me|please list|without asking|directly|both|again and again|all|immer|nie|niemals|jeden|jede|siempre|nunca|nur|one (?:thing|line|sentence)|straight to|(?:after|before|until) (?:\d{1,2}(?:[.:]\d\d)?|six|seven|eight|nine|ten|eleven|noon|midnight)|on (?:weekends|mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays))\b|, not \b|\bnot whole\b`)
	momentMarks   = match(`\b(?:yet|right now|just now|for now|this (?:one|time|once|file|page|message|test|line|bit|thing|function|text)|that (?:one|to|in|again|file|last|back|up|down|for)|the (?:next|last|first|previous|rest|second|third) (?:one|bit|message|version|step|part|paragraph|line|sentence|file|answer)|the next|the last (?:message|answer|one)|tomorrow|tonight|today|quickly|quick|a moment|a sec|a minute|again please|once more|one more|here's|it (?:now|again|in|up|down|off|on|out)|where i|what i|of the tests|myself|ourselves)\b|^(?:try|wait|look|go|do|run|check|measure|fetch|search|find|draft|translate|compare|calculate|explain|tell|guess|think|leave|forget|commit|read|wrap|ship|skip) (?:it|that|this|them|me|on|for|the|a|an)\b|^(?:leave|forget|skip|drop|do|run|ship|try|commit|merge|undo|revert|read|send) (?:it|that|this|them)\b`)
	// standingVerbs govern lasting behaviour where their object is not one thing
	// at hand.
	standingVerbs   = wordSet(`keep use avoid prefer stick treat assume stop answer reply respond spell speak talk address default include exclude round prefix format cap limit mind expect call halte verwende benutze antworte vermeide usa responde evita`)
	standingRequest = match(`\b(?:can|could|would|will) (?:you|we)\b.*\b(?:always|never|from now on|by default|every time|in future|in general|stop (?:using|adding|saying|sending|putting|doing|with))\b`)
	// politely asked restraint of the moment, in fun.
	restraint = match(`^(?:please )?(?:stop|don't) (?:being|be|start|tell|worry|laugh|judge|ask|look|mention it|you|even|bother|answer|get me|say)\b|\bdon't you\b`)
	// acknowledged is how an assistant takes a rule, in contrast to doing a task.
	acknowledged = match(`(?i)^(?:got it|understood|noted|will do|deal|agreed|of course|verstanden|entendido|notiert|sure[:,]|ok(?:ay)?[:,]|clear[:,]|makes sense)|\b(?:noted|understood|it is|stays|from now on|every time|always|only)\b|^(?:no|never|always) \w+`)
)

// isStanding tells a lasting instruction from a task.
func isStanding(core []word, lower string, t *turn) bool {
	first := core[0].lower
	bare := momentMarks.MatchString(strings.TrimPrefix(joinWords(core), "please "))
	marked := standingMarks.MatchString(lower)
	accepted := acknowledged.MatchString(t.reply) && !t.acted
	switch {
	case restraint.MatchString(joinWords(core)):
		return false
	case bare && !strings.Contains(lower, "always") && !strings.Contains(lower, "never"):
		return false
	case first == "never" || first == "always":
		return true
	case first == "no" && len(core) <= 3 && !marked && !strings.Contains(lower, "please"):
		return accepted && echoes(t.reply, core[1:]) // a bare "no gadgets" turns down an offer
	case first == "no" || first == "in":
		return len(core) >= 2
	case marked && !t.acted:
		return true
	case standingVerbs[first] && !isDeictic(core) && !t.acted:
		return true
	case genericObject(core) && accepted:
		return true
	}
	return false
}

// echoes reports that a reply takes up one of the words.
func echoes(reply string, words []word) bool {
	reply = strings.ToLower(reply)
	for _, w := range words {
		if len(w.lower) > 3 && strings.Contains(reply, strings.TrimSuffix(w.lower, "s")) {
			return true
		}
	}
	return false
}

// isDeictic reports an object that is at hand: "use this", "stop it".
func isDeictic(core []word) bool {
	if len(core) < 2 {
		return true
	}
	switch core[1].lower {
	case "it", "that", "this", "them", "these", "those", "going", "there", "now":
		return true
	}
	return false
}

// genericObject reports an object without article or pointer, which speaks of a
// whole class: "give me diffs".
func genericObject(core []word) bool {
	for _, w := range core[1:] {
		switch w.lower {
		case "the", "that", "this", "these", "those", "it", "them", "a", "an", "my":
			return false
		}
	}
	return len(core) > 2
}

func joinWords(words []word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.lower)
	}
	return b.String()
}

// afterLead drops discourse markers from the head of a sentence: what is left
// starts with what the sentence is about.
func afterLead(words []word) []word {
	for len(words) > 1 {
		w := words[0]
		comma := strings.ContainsAny(w.after, ",:.;!-")
		switch {
		case leadIns[w.lower] && (comma || w.lower != "no" && !commaLeads[w.lower]): // "no emojis" keeps its no
			words = words[1:]
		case len(words) > 3 && w.lower == "by" && words[1].lower == "the" && words[2].lower == "way":
			words = words[3:]
		case len(words) > 4 && keepPair[w.lower+" "+words[1].lower]:
			words = words[2:]
		case len(words) > 2 && leadPair[w.lower+" "+words[1].lower]:
			words = words[2:]
		case len(words) > 3 && comma && len(w.text) > 1 && vocatives[w.lower]:
			words = words[1:]
		default:
			return words
		}
	}
	return words
}

var vocatives = wordSet(`robot buddy pal mate dear assistant friend`)

// keepPair ask that what follows be kept: "remember that the key is under the mat".
var keepPair = phraseSet("remember that", "note that")

// leadPair are discourse markers of two words.
var leadPair = phraseSet("of course", "different thing", "one thing", "small thing", "another thing", "new thing", "quick one", "other thing", "good news", "bad news",
	"big news", "in general", "house rule", "house rules", "my god", "oh and", "and also", "thank you", "my bad", "you know", "no wait", "wait no", "last thing", "mind you")
