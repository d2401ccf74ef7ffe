package distill

import (
	"slices"
	"strings"
)

// view is a sentence prepared for weighing.
type view struct {
	*sentence
	turn   *turn
	lower  string   // the plain words, joined by spaces
	core   []word   // after discourse markers
	names  []string // proper names
	topics []string // content words
	answer bool     // opens the reply to a question
}

func viewOf(s *sentence, t *turn) *view {
	v := &view{sentence: s, turn: t, lower: joinWords(s.words), core: afterLead(s.words), names: names(s), topics: contentWords(s.words)}
	v.answer = t.asked != "" && s == &t.sentences[0]
	return v
}

// signal is one reason to take a statement for a lasting fact, or against it.
type signal struct {
	name   string
	weight float64
	holds  func(v *view) bool
}

// A statement is kept from this sum of weights on. It takes two reasons and none
// against: "my sister" and a name, a change and a date.
const keepFrom = 2.5

// weigh sums the signals of a statement.
func weigh(v *view) float64 {
	sum := 0.0
	for _, s := range signals {
		if s.holds(v) {
			sum += s.weight
		}
	}
	return sum
}

// signals are properties of the language of facts. Weights are small and few, so
// that no single property decides.
var signals = []signal{
	// What it speaks of.
	{"about the speaker", 1, func(v *view) bool { return has(v.words, firstPerson) }},
	{"names somebody or something", 1, func(v *view) bool { return len(v.names) > 0 }},
	{"names two", .5, func(v *view) bool { return len(v.names) > 1 }},
	{"has a number", 1, func(v *view) bool { return hasNumber(v.words) }},
	{"has a measure or a time", .5, func(v *view) bool { return hasMeasure(v.words) }},
	{"has a calendar word", .5, func(v *view) bool { return has(v.words, calendarWords) }},
	{"has a day", .5, func(v *view) bool { return len(daysOf(v.text, v.turn.at)) > 0 }},
	{"has an identifier", 1, func(v *view) bool { return hasCode(v.words) }},
	{"says who the speaker is", 2.5, func(v *view) bool { return describesSpeaker(v) }},
	{"has a term in capitals", .5, func(v *view) bool { return hasAcronym(v.words) }},
	{"names kin or a role", 1, func(v *view) bool { return hasBase(v.words, kin) || hasBase(v.words, roles) || hasBase(v.words, pets) }},
	{"speaks of health", 1.5, func(v *view) bool { return hasBase(v.words, health) }},

	// What it says of it.
	{"says what something is", 1, func(v *view) bool { return definition.MatchString(v.lower) }},
	{"tells a state", 1, func(v *view) bool { return has(v.core, statives) }},
	{"relates to something by name", .5, func(v *view) bool { return relatesToName(v) }},
	{"tells what somebody does", .5, func(v *view) bool {
		return len(v.core) > 1 && statives[v.core[1].lower] && len(v.names) > 0 && v.names[0] == baseName(v.core[0].lower)
	}},
	{"tells how a thing works", .5, func(v *view) bool { return thingWorks.MatchString(v.lower) && has(v.core, statives) }},
	{"tells a change", 1, func(v *view) bool { return has(v.core, changes) }},
	{"corrects or ends something", 1, func(v *view) bool { return changeCue.MatchString(v.lower) }},
	{"tells a habit", 1, func(v *view) bool { return has(v.words, habitual) || recurring.MatchString(v.lower) }},
	{"sets a rule or a bound", 1, func(v *view) bool { return has(v.words, bounds) || obliges.MatchString(v.lower) }},
	{"decides", 2.5, func(v *view) bool { return decision.MatchString(v.lower) }},
	{"prefers", 2, func(v *view) bool { return prefers(v) }},
	{"plans for a day", 1, func(v *view) bool {
		return futureForm.MatchString(v.lower) && (hasNumber(v.words) || has(v.words, calendarWords))
	}},
	{"tells of a fault or its end", 1, func(v *view) bool { return has(v.words, issueWords) || has(v.words, fixWords) }},
	{"is asked to be kept", 2, func(v *view) bool { return toKeep.MatchString(v.lower) }},
	{"announces itself", 1, func(v *view) bool { return announces.MatchString(v.lower) }},
	{"introduces", 1, func(v *view) bool { return introduces.MatchString(v.lower) }},
	{"gives a name", 1, func(v *view) bool { return givesName.MatchString(v.lower) }},
	{"contrasts", 1, func(v *view) bool { return strings.Contains(v.text, ", not ") || strings.Contains(v.text, " and not ") }},
	{"makes a rule for a case", 1.5, func(v *view) bool { return caseRule.MatchString(v.lower) }},
	{"explains a foreign text", 2, func(v *view) bool { return v.explains }},
	{"is said in another language", 1, func(v *view) bool { return speaksForeign(v.sentence) }},

	// How the assistant takes it.
	{"is noted by the assistant", 1, func(v *view) bool { return notes.MatchString(v.turn.reply) }},
	{"is echoed by the assistant", .5, func(v *view) bool { return echoed(v) }},
	{"chooses", 4, func(v *view) bool { return v.answer && chooses(v) }},
	{"ends in a decision", 3, func(v *view) bool { return settled.MatchString(strings.ToLower(v.text)) }},
	{"asks for something by a time", 1, func(v *view) bool { return wantsBy.MatchString(v.lower) }},
	{"says where something belongs", 1, func(v *view) bool { return belongs.MatchString(v.lower) && !subjectPronouns[v.core[0].lower] }},
	{"says what is faulty", 1, func(v *view) bool { return faultVerb.MatchString(v.lower) }},
	{"tells the cause of a fault that is over", 2, func(v *view) bool { return causeFound.MatchString(v.lower) && v.turn.closes(v) }},
	{"promises", 1.5, func(v *view) bool { return owes.MatchString(v.lower) }},
	{"tells a state in Chinese", 1.5, func(v *view) bool { return chineseState.MatchString(v.text) && !chineseAsks.MatchString(v.text) }},
	{"answers a question", 1, func(v *view) bool { return v.answer && len(v.topics) > 0 }},

	// What speaks against it.
	{"tells the moment", -2, func(v *view) bool { return tellsMoment(v) }},
	{"judges", -1.5, func(v *view) bool { return judges.MatchString(strings.Join(lowers(v.core), " ")) }},
	{"speaks of the assistant", -2, func(v *view) bool { return aboutAssistant.MatchString(strings.Join(lowers(v.core), " ")) }},
	{"thanks or greets", -2, func(v *view) bool { return courtesy.MatchString(v.lower) && len(v.topics) < 5 }},
	{"hangs on what went before", -.5, func(v *view) bool { return len(v.core) > 0 && anaphors[v.core[0].lower] }},
	{"says little", -1.5, func(v *view) bool {
		return len(v.topics) < 2 && !isUnspaced(v.text) && !likesSomething(v) && !describesSpeaker(v) && !(weekdaysOf(v.text) != "" && definition.MatchString(v.lower))
	}},
	{"is a fragment", -.5, func(v *view) bool { return len(v.topics) < 4 && !hasVerb(v.core) && !isUnspaced(v.text) }},
	{"has only just happened", -1.5, func(v *view) bool { return justNow.MatchString(v.lower) }},
	{"is over within the hour", -3, func(v *view) bool { return withinHour.MatchString(v.lower) }},
	{"hangs on a relative", -1, func(v *view) bool { return v.core[0].lower == "which" }},
	{"holds a secret", -4, func(v *view) bool { return strings.Contains(v.text, "[REDACTED:") }},
	{"is figurative or vague", -1.5, func(v *view) bool { return vague.MatchString(v.lower) }},
	{"tells what somebody does at the keyboard", -1.5, func(v *view) bool { return atHand.MatchString(v.lower) }},
}

var (
	// definition is a copula that tells what, who or where the subject is.
	definition = match(`\b(?:is|are|'s|was|'re|i'm|we're|\w+'s|ist|sind|es|son) (?:now |still |also |actually |only |just |called |named |eine? |the one |about |around |currently )*(?:a|an|the|my|our|his|her|their|in|on|at|from|by|with|under|behind|next|called|named|one|two|three|ein|eine|una?|\d\S*|[a-z]+ (?:in|at|from|of|for))\b|\b(?:called|named|born|located|based|written|built|stored|hosted) (?:in|at|on|with|by|\w+)\b`)
	// thingWorks has a thing for its subject and a verb of the present.
	thingWorks = match(`^(?:\w+ )?(?:the|our|each|every|all) (?:[\pL\d_-]+ ){1,4}\w+(?:s|are|must|can)\b`)
	recurring  = match(`\b(?:on|every|each) (?:\w+ )?(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:once|twice|three times|\d+ times|\d+x) (?:a|per|each|every) \w+|\b(?:a|per) (?:day|week|month|year|night)\b|\bsince\b`)
	obliges    = match(`\b(?:have to|has to|had to|need to|needs to|supposed to|not allowed|can't (?:have|eat|do|drink|take|use|work|be)|cannot|may not|must not|no more than|up to|at least|at most|wants? (?:it|us|the|every|all|a|\d+)|stick to|instead of|rather than|not in)\b`)
	futureForm = match(`\b(?:will|i'll|we'll|she'll|he'll|they'll|going to|gonna|'m \w+ing|'re \w+ing|is \w+ing|are \w+ing|is on|are on|is at|starts?|begins?|due|booked|flying|leaving|planned|scheduled|appointment|launch|release|deadline|until|from|by|comes?|gets?|getting)\b`)
	announces  = match(`\b(?:by the way|btw|for the record|fyi|something you should know|you should know|to know|heads up|news|update|decision|change of plan|note that|nota bene|keep in mind|remember that|remember:|important|house rules?|as of|from now on|übrigens|por cierto)\b`)
	notes      = match(`(?i)\b(?:noted|got it|understood|congratulations|congrats|i'll (?:keep|remember|bear|stick|use|avoid|move|update|leave|plan|note)|it is[.,!]|stays?\b|important one|filed|on the list|notiert|verstanden|in the calendar|good to know|thanks for telling|sorry to hear|i'm sorry|happy belated)\b`)
	// judges is a verdict without a fact: "that's lovely", "she's a star".
	judges         = match(`^(?:(?:that|it|this|he|she|they|you|which)(?:'s|'re| is| was| are| were| sounds| looks| feels| would be)|looks|sounds|feels|what an?|how|so) (?:\w+ ){0,3}(?:good|great|nice|lovely|perfect|fine|cool|brilliant|awesome|amazing|wonderful|beautiful|gorgeous|terrible|awful|horrible|bad|sad|funny|hilarious|weird|strange|odd|creepy|mad|crazy|genius|adorable|cute|fair|true|right|wrong|easy|boring|excellent|handy|useful|class|star|legend|hero|angel|better|best|worse|worst|fun|rubbish|nonsense|shame|pity|joke|classic|crime|tempting|magic|day|week|relief|plan|idea|treat|mess|disaster|disgrace|it)$`)
	aboutAssistant = match(`^(?:you|you're|you've|you'll|you'd|your|thank you|thanks|i (?:love|like) (?:you|it|that|this|when|how|a \w+ (?:who|that))|love (?:it|that|this)|i knew|told you|as i said|we talked|i (?:said|told|asked|know|see|mean|can read|knew|thought|hope|bet|promise|swear))\b`)
	courtesy       = match(`\b(?:thanks|thank you|thx|cheers|sorry|hello|hi|bye|goodbye|good ?night|good morning|see you|talk (?:soon|later)|have a (?:good|nice)|you're a|well done|nice one|good (?:one|catch|work|job|point)|never ?mind|no worries|welcome)\b`)
	vague          = match(`\b(?:you know what i mean|or whatever|or something|i mean|like a (?:stone|rock|baby|log|pro|king|queen)|says me|to be honest i|feels like|as if|basically|literally|god help|of all things|for the love of|apparently|supposedly|allegedly|somehow|on my feet|on my knees|on its last legs|over the moon|under the weather)\b`)
	atHand         = match(`\b(?:here's|here is|here are|let me|i'll (?:look|see|check|try|ask|send|paste|read|go|be back|have a look|do it|take a look|think|tell|walk|explain|show|wait|let)|look at|check this|see (?:below|above|attached)|attached|have a look|back in|be right|brb|hang on|hold on|one sec|wait|just (?:texted|called|told|died|typed|saw|read|realised|realized|noticed|found this)|i (?:ran|pasted|typed|clicked|pressed|copied))\b`)
)

var (
	// introduces says what a thing is for: "it's the service that ...".
	introduces = match(`\b(?:it's|is|are|'s) (?:the|a|an|our|my) [\pL\d' -]{2,40}? (?:that|which|who|where|for)\b|\bnew (?:repo|project|game|client|job|member|colleague|person|flatmate|address|number)\b|\bthis is (?:for )?(?:the|my|our) \S+ (?:repo|project|app|game|thesis|service|team)\b`)
	caseRule   = match(`^(?:if|when|whenever|before|after|unless|once) (?:you|we|it|there|something|someone|a|an|the|any)\b`)
	givesName  = match(`\b(?:(?:it|he|she|they|that|who|which|\w+)(?:'s| is| are| was) called|called|named|title is|name is|name's|known as|nicknamed|heißt|se llama)\b`)
	justNow    = match(`\b(?:i|we|i've|we've|have|has|'s) just \w+(?:ed|t|en|ne|w)\b`)
	withinHour = match(`\bin (?:a|one|two|five|ten|fifteen|twenty|thirty|half an|an|\d+) (?:minutes?|mins?|seconds?|hour|sec|moment)\b|\bright now\b|\bthis minute\b`)
)

// changeCue are the words of correction and of ending.
var changeCue = match(`\b(?:actually|instead|no longer|not (?:\w+ ){0,3}any ?more|any ?more|anymore|used to|changed|change of|earlier|later than|moved|moving (?:to|off|from|away)|moves|pushed|postponed|rescheduled|shifted|shifts|delayed|brought forward|bumped|cancelled|canceled|called off|put (?:back|off|forward)|double.booked|scratch|closed|fix is in|is leaving|leaving|is off|are off|is out|is gone|are gone|gone|take (?:it|that|the \w+ thing|the earlier thing) back|i was wrong|my mistake|correction|wait,? no|hmm,? no|switch(?:ed|ing)|swap(?:ped|ping)?|replac(?:ed|ing|es)|dropp?(?:ed|ing)|ditched|sold|quit|gave up|stopped|fixed|resolved|solved|no more|new|now|these days|from now|turns out|upgraded|downgraded|(?:raise|lower|increase|reduce|extend|shorten)(?:s|d|ed)? (?:the|our|my|it|its|her|his)|raised|lowered|upped|increased|reduced|doubled|tripled|halved|migration|migrated|put \w+ (?:up|down)|pulled out|rejected|turned down|fell through|after all|back to|takes? over|took over|can go|not the|forget the|goes? to|went (?:to|from)|back to|nicht mehr|jetzt|stattdessen|doch|ya no|ahora|en vez de|finally|found out|(?:got|brought|cut|took) \S+(?: \S+)? (?:down|up) to|bumped|turned (?:` + countWords + `)|more realistic|is done|(?:is|are) (?:fine|ok|okay|allowed) (?:now|too|again)|up to .{1,30} (?:is|are) (?:fine|ok|okay|allowed)|^(?:tried|tested|measured|timed|repeated|redid|reran) (?:it|that|this)|no more|bought|got a new|over to)\b|, (?:and )?not (?:the )?[\pL\d.,-]+(?: \w+)?[.!]*$|\b(?:isn't|aren't|wasn't|is not|not) .{1,40}, (?:but |it's |it is )|\bnot \S+(?: \S+)? but `)

// decision are the words that settle something.
var decision = match(`\b(?:(?:i|we|i've|we've|they) (?:\w+ ){0,2}(?:decided|agreed|settled|chose|picked|opted)|decision|decided|settled|let's (?:go with|stick (?:with|to)|call it|use|take|settle on|do it on|keep|make it|switch to|move to|stay with|aim for|say)|(?:going|go|went|we go|goes) (?:with|for)|[\pL\d]+ it is(?: then)?$|it's going to be|we(?:'re| are) (?:moving|switching|migrating|dropping|replacing|getting|taking|keeping|staying|using|going)|we take|we'll (?:use|take|go|do|keep|stay|stick|move|switch|have|get)|^(?:\S+ ){1,4}(?:stays|then)$|final (?:answer|decision|call|version|name)|the (?:plan|deal|winner|favourite|name) is|her call|his call|my call|make (?:it|that) \d\S*|wir haben (?:uns )?(?:beschlossen|entschieden)|hemos decidido|我们决定|instead)\b`)

var preferCue = match(`\b(?:i|we|i'd|we'd|i'm|we're|my|i've|ich|wir|yo)\b.{0,25}\b(?:prefer|prefers|rather|can't stand|cannot stand|hate|hates|love|loves|like|likes|dislike|don't like|don't want|want|favourite|favorite|only (?:drink|eat|use|buy|wear|read|listen|work|take|want|ever)|never (?:eat|drink|use|wear|buy|take|touch)|not a fan|big fan|allergic|don't (?:eat|drink|do|use|want)|won't|no fan of|avoid|trinke|esse|mag|bevorzuge|prefiero|me gusta|odio)\b|我(?:喜欢|不喜欢|只|更喜欢)`)

// emptyObject ends a liking that says nothing: "I love it when that happens".
var emptyObject = match(`\b(?:love|like|hate|want|prefer)s? (?:to|it|that|this|you|them|those|when|how|nothing|to know|a (?:person|man|woman|machine|good|bit|bot|human)|people|your|the (?:way|idea|sound))\b`)

func prefers(v *view) bool {
	return preferCue.MatchString(v.lower) && !emptyObject.MatchString(v.lower)
}

var (
	toKeep       = match(`^(?:(?:please|and|also|oh|so) )*(?:remember|note) that \w`)
	likesThing   = match(`^i (?:really |just |absolutely )?(?:like|love|adore|enjoy|hate|dislike|loathe|can't stand|prefer) \w+s?$`)
	wantsBy      = match(`\b(?:wants?|needs?|requires?|insists?|expects?) .{1,60} (?:before|by|until)\b`)
	belongs      = match(`\b(?:go|goes|belongs?|stays?) (?:in|into|on|onto|under) `)
	faultVerb    = match(`\b(?:the|my|our) (?:[\w-]+ ){1,3}(?:leaks|sticks|jams|drips|rattles|overheats|stalls|squeaks|flickers|crashes|hangs)\b`)
	causeFound   = match(`^(?:it|that|the (?:problem|cause|culprit|reason|fault|bug)) (?:was|were|turned out to be) `)
	bareOutcome  = match(`(?i)^(?:all |problem |now )?(?:solved|fixed|sorted|resolved|repaired|gone|done|works(?: (?:now|again))?)(?: now)?[.!]*$`)
	chineseState = match(`我.{0,12}(?:有|叫|是|住|用|必须|需要|工作|养|学|搬)`)
	chineseAsks  = match(`吗|什么|怎么|哪|谁|多少|为什么|几`)
)

var (
	iAm   = match(`^(?:i'm|i am|i was born|we're|we are) (?:(?:also|actually|now|a|an|the|from|in|strictly|mostly|originally|half|part|both|registered|qualified|trained|retired|newly|recently|happily|currently|not|no longer) )*`)
	iHave = match(`^(?:i|we)(?:'ve got| have(?: got)?| own| keep) (?:(?:also|a|an|one|no|little|big|old|small|young|younger|older|elder|twin|pet|black|white|brown|red|grey|rescue) |` + countWords + ` )*`)
)

// describesSpeaker reports the shortest statements of who the speaker is: "I'm
// vegetarian", "I am a nurse", "I have a cat", "I'm from Ghana". What is said is
// the word itself; "I'm tired" describes the moment.
func describesSpeaker(v *view) bool {
	said := joinWords(v.core)
	if at := iAm.FindStringIndex(said); at != nil {
		lead, rest := said[:at[1]], strings.Fields(said[at[1]:])
		if len(rest) == 0 || len(rest) > 3 || transient[rest[0]] || rest[0] == "your" {
			return false
		}
		last := rest[len(rest)-1]
		named := (lead == "i'm " || lead == "i am ") && len(v.names) > 0 && v.names[0] == baseName(rest[0])
		return named || selfWords[last] || health[last] || roles[last] || strings.HasSuffix(lead, "from ") && len(v.names) > 0 || strings.HasPrefix(said, "i was born")
	}
	if at := iHave.FindStringIndex(said); at != nil {
		rest := strings.Fields(said[at[1]:])
		return len(rest) > 0 && len(rest) <= 3 && (pets[rest[0]] || kin[rest[0]] || pets[strings.TrimSuffix(rest[0], "s")] || kin[strings.TrimSuffix(rest[0], "s")] || health[rest[0]])
	}
	return false
}

// likesSomething reports the shortest preference that says something: "I like
// kites".
func likesSomething(v *view) bool {
	return len(v.topics) == 1 && likesThing.MatchString(joinWords(v.core)) && prefers(v)
}

// closes reports that the turn says, after v, that a fault is over.
func (t *turn) closes(v *view) bool {
	return slices.ContainsFunc(t.sentences, func(s sentence) bool { return s.start >= v.end && bareOutcome.MatchString(s.text) })
}

// hangsOn reports a sentence that cannot be understood without the one before: it
// starts with a pronoun or with a verb that has no subject, or points at "the
// other one".
func hangsOn(v *view) bool {
	first := v.core[0].lower
	return anaphors[first] || v.explains || v.words[0].lower == "so" || len(v.topics) < 4 && objectPronoun(v.core) || strings.HasSuffix(first, "s") && statives[first] && !strings.HasSuffix(first, "ss") && len(v.names) < 2 && !isUpperFirst(v.core[0].text) ||
		pointsBack.MatchString(v.lower)
}

var relations = wordSet(`with at from on in by to for via through near into`)

// relatesToName reports a preposition before a proper name.
func relatesToName(v *view) bool {
	for i := range v.words {
		if i > 0 && relations[v.words[i-1].lower] && isName(v.words, i, false) {
			return true
		}
	}
	return false
}

// objectPronoun reports "it" or "them" behind a verb.
func objectPronoun(core []word) bool {
	for _, w := range core[1:] {
		if w.lower == "it" || w.lower == "them" {
			return true
		}
	}
	return false
}

func isUpperFirst(s string) bool { return s != strings.ToLower(s[:1])+s[1:] }

var pointsBack = match(`^(?:\S+ ){0,4}(?:the|that|this) (?:\w+ )?one\b`)

func has(words []word, set map[string]bool) bool {
	for _, w := range words {
		if set[w.lower] {
			return true
		}
	}
	return false
}

// hasBase is has for nouns, which may carry a possessive or a plural ending.
func hasBase(words []word, set map[string]bool) bool {
	for _, w := range words {
		base := baseName(w.lower)
		if set[base] || set[strings.TrimSuffix(base, "s")] {
			return true
		}
	}
	return false
}

func hasNumber(words []word) bool {
	for _, w := range words {
		if isNumber(w) || numberWords[w.lower] {
			return true
		}
	}
	return false
}

var measureForm = match(`^[€$£~]?\d[\d.,]*(?:k|m|km|kg|g|mg|ml|l|gb|tb|mb|h|s|ms|min|am|pm|%|€|x|w|kw|v|°c?)$|^\d{1,2}:\d{2}$|^[€$£]\d`)

func hasMeasure(words []word) bool {
	for i, w := range words {
		if measureForm.MatchString(w.lower) {
			return true
		}
		if i > 0 && units[w.lower] && (isNumber(words[i-1]) || numberWords[words[i-1].lower]) {
			return true
		}
	}
	return false
}

func hasCode(words []word) bool {
	for _, w := range words {
		if w.code {
			return true
		}
	}
	return false
}

var acronym = match(`^[A-Z][A-Z0-9]{1,5}s?$`)

func hasAcronym(words []word) bool {
	for _, w := range words {
		if acronym.MatchString(w.text) && w.text != "OK" && !leadIns[w.lower] {
			return true
		}
	}
	return false
}

// hasVerb reports a finite verb as far as the tables know one.
func hasVerb(words []word) bool {
	for _, w := range words {
		if auxiliaries[w.lower] || statives[w.lower] || changes[w.lower] || strings.Contains(w.lower, "'s") || strings.Contains(w.lower, "'re") ||
			strings.Contains(w.lower, "'m") || strings.Contains(w.lower, "'ve") || strings.Contains(w.lower, "'ll") || len(w.lower) > 4 && strings.HasSuffix(w.lower, "ed") {
			return true
		}
	}
	return false
}

func lowers(words []word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.lower
	}
	return out
}

// tellsMoment reports a first person in a passing state: "I'm starving".
func tellsMoment(v *view) bool {
	for i, w := range v.core {
		switch w.lower {
		case "i'm", "we're", "i", "we", "am", "he's", "she's", "it's", "that's", "feeling", "feel":
			for _, next := range v.core[i+1 : min(i+3, len(v.core))] {
				if transient[next.lower] {
					return !hasMeasure(v.words) && len(v.names) == 0
				}
				if !adverbs[next.lower] && !strengths[next.lower] {
					break
				}
			}
		}
	}
	return false
}

var strengths = wordSet(`am was were feel so very too quite a bit pretty totally completely absolutely not`)

// echoed reports that the assistant's answer repeats words of the statement
// without asking about them.
func echoed(v *view) bool {
	shared := 0
	reply := strings.ToLower(v.turn.reply)
	if strings.HasSuffix(strings.TrimSpace(reply), "?") {
		return false
	}
	for _, w := range v.topics {
		if len(w) > 2 && strings.Contains(reply, w) {
			shared++
		}
	}
	return shared >= 2
}

var foreignWords = wordSet(`ich wir mein meine unser unsere ist sind nicht nur kein keine und mit für wird werden habe haben der die das
	yo mi mis es somos no nos tenemos tengo con para una los las el nuestro nuestra je nous mon ma est avec`)

// speaksForeign reports a statement in another language than English that speaks
// in the first person.
func speaksForeign(s *sentence) bool {
	n, self := 0, false
	for _, w := range s.words {
		if foreignWords[w.lower] {
			n++
			self = self || firstPerson[w.lower]
		}
	}
	return self && n >= 2 || strings.Contains(s.text, "我") && isUnspaced(s.text)
}
