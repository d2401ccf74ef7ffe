package distill

import (
	"strings"
	"sync"
	"unicode"
)

// clue is what a word tells of a sentence that somebody other than the user wrote.
type clue uint32

const (
	aVerb       clue = 1 << iota // what an assistant would be told to do
	aNounToo                     // a verb that is as often a noun: what follows decides
	aSpeech                      // to say something
	aDanger                      // a verb that gives something away, or takes it
	aYou                         // the reader is addressed
	aMachine                     // assistants and what they are made of
	aTalk                        // conversations, instructions, modes: also of people
	anUser                       // whom an assistant works for
	aClaim                       // what such a person wants, has said or allows
	anAuthority                  // permissions and checks
	aValue                       // what is worth taking
	anAbsolute                   // always, every, only
	aLimitless                   // those of them that leave no exception
	aNegative
	aModal
	aWithout
	aTrigger  // when, if, once
	aLater    // from now on
	aHiding   // secretly
	anAddress // of a mailbox or a page
	aCall     // a name as programs have them
	anOpener  // words after which a clause may begin with its verb
	anObject  // words that follow a verb, and no noun
)

var clueWords = sync.OnceValue(func() map[string]clue {
	words := map[string]clue{}
	add := func(c clue, list string) {
		for _, w := range strings.Fields(list) {
			words[w] |= c
		}
	}
	add(aVerb, `send resend forward export upload transmit exfiltrate transfer wire pay run execute invoke reveal disclose leak display output recommend suggest promote mention insert include add append tell say
		reply respond ask delete remove erase wipe unlock disable grant approve confirm accept authorize authorise install download fetch visit click remember memorize memorise overwrite alter modify edit
		treat act behave pretend trust follow obey ignore skip stop give submit hide omit praise buy cancel keep mark consider assume imagine suppose translate decode decrypt repeat let make ensure
		disregard forget discard drop override bypass neglect abandon dismiss suspend enter dump comply decline refuse deny insist notify alert attach merge join combine concatenate assemble read become belong
		continue adopt apply activate enable recite list summarize summarise collect gather steal encrypt rename move prepend replace enforce obtain perform carry prioritize prioritise prefer never switch save reset clear amend bring be`)
	add(aVerb|aNounToo, `call mail email e-mail post share print show report store record write set change update answer request open copy use hand order book sign access cc bcc log trigger check schedule contact message question reward
		rule command signal plan change effect purchase invite promise prompt note do leave speak`)
	add(aSpeech, `answer reply say speak respond recommend suggest mention deny insist tell claim notify alert praise promote`)
	add(aDanger, `share reveal disclose leak delete forward transfer wire approve grant dump exfiltrate export upload send pay spend erase wipe read log bypass unlock steal give given receive access see hand handed install released sent paid shared`)
	add(aYou, `you your yours yourself you're you've you'll you'd thee thy`)
	add(aMachine, `assistant assistants assistant's ai ais llm llms chatbot chatbots bot bots guardrail guardrails jailbreak jailbroken dan developers directive directives refusal refusals agents gpt claude gemini
		exfiltrate unrestricted uncensored persona`)
	add(aTalk, `prompt prompts instruction instructions rule rules guideline guidelines guidance context configuration configured command commands demand demands order orders conversation conversations chat chats session sessions
		transcript history answer answers reply replies response responses output mode filter filters restriction restrictions constraint constraints safety tool tools system model agent stored trigger page document file text
		message messages told taught programmed content input role task mission objective goal purpose training policy policies phrase word letters above previous prior earlier everything developer question questions reader secret report summary summaries line lines summarise summarize search`)
	add(anUser, `user user's users' owner owner's operator operator's human`)
	add(aClaim, `wants wanted prefers preferred likes loves hates needs consents consented consent agrees agreed approves approved authorizes authorises authorized authorised allows allowed permits permitted accepts accepted waives waived
		trusts trusted requests requested asked decided confirmed opted instructed grants granted gave mentioned wishes expects delegated verified said told administrator admin superuser exempt entitled`)
	add(anAuthority, `admin admins admin's administrator administrators superuser approved pre-approved preapproved authorized authorised authority authorization authorisation permission permissions allowed permitted consent consents cleared
		granted access trusted trustworthy exempt waived waive waives confirmation confirmations verification verified verify mfa 2fa two-factor second-factor approval approvals sign-off signature unlimited unrestricted privileges
		factor vetted whitelisted allow-listed trust approves authorizes authorises legitimate hereby`)
	add(aValue, `payment payments invoice invoices transfer transfers money funds deposit account accounts password passwords passcode credentials key keys code codes card iban bank wallet contact contacts calendar mail mails mailbox
		emails inbox files notes documents document data history log logs vault address records ledger backups backup purchases purchase reports database list secrets secret token tokens request requests limit limits review reviews
		checks warnings customers clients client diary location identity pin refunds refund wire changes reviews software transactions`)
	add(anAbsolute, `always never all any every only whatever everything must exactly permanent permanently essential anything anyone anybody everyone everybody each entire obsolete void mandatory solely`)
	add(aLimitless, `always never any every everything anything anyone anybody everyone everybody without`)
	add(aNegative, `no not never without nor don't doesn't needn't isn't aren't cannot skip skipped disabled suspended lifted off obsolete void nothing nobody none`)
	add(aWithout, `without`)
	add(aModal, `may can must should shall will might could obliged required supposed expected compelled bound`)
	add(aTrigger, `when whenever if once upon after until moment instant should case time every each soon asked mentioned seeing hearing reading wait`)
	add(aLater, `henceforth hereafter §later§`)
	add(aHiding, `silently secretly quietly covertly discreetly unnoticed hidden secret`)
	add(anOpener, `please kindly now then and instead also simply just first must should shall always never not immediately silently quietly secretly henceforth or but therefore so afterwards finally next don't only`)
	add(anObject, `the a an this that these those your my our his her their its all any every each no only it them me us him to as in on with from into so whether what who how if like nothing everything anything whatever down out up off
		mail access exactly one two both some more here there where whose password invoices files notes memory`)
	return words
})

// said is what a sentence has of clues.
type said struct {
	clues           clue
	talks, machines int
	orders          bool // a clause begins with a verb of command
	retains         bool // with "remember"
	self            bool // "your instructions", and the like
	speaks          bool // with one of saying
	ofUser          bool // "the user"
	headUser        bool // "User", as the first word
}

// commands returns what a text that is not the user's own asks of an assistant, or
// claims in the user's name, or "". Plain is unmasked. What tools, pages and others
// tell of the world is in the third person and the indicative; what wants to be
// obeyed gives orders, addresses its reader, or speaks of the user, of permissions
// and of memory. No clue decides alone: two or three in a sentence do.
func commands(plain string) string {
	for _, s := range commandSigns {
		if s.pattern.MatchString(plain) {
			return s.reason
		}
	}
	plain = laterWords.ReplaceAllString(invites.ReplaceAllString(plain, " "), " §later§ ")
	for sentence := range sentencesOf(plain) {
		if why := judgeSentence(listen(sentence)); why != "" {
			return why
		}
	}
	return ""
}

// sentencesOf cuts at the ends of sentences and lines.
func sentencesOf(plain string) func(func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for at := 0; at < len(plain); at++ {
			c := plain[at]
			end := c == '\n' || (c == '.' || c == '!' || c == '?' || c == ';') && (at+1 == len(plain) || plain[at+1] == ' ' || plain[at+1] == '\n' || plain[at+1] == '"')
			if end && at > from {
				if !yield(plain[from:at]) {
					return
				}
				from = at + 1
			}
		}
		if from < len(plain) {
			yield(plain[from:])
		}
	}
}

// listen reads the clues of a sentence.
func listen(sentence string) said {
	words := clueWords()
	var s said
	fresh, before := true, ""                       // a clause begins here; the word before
	told := false                                   // the clause has a subject that is not addressed
	var pending, pendingSpeech, set, remembers bool // set: after a condition
	yours := 9                                      // words since "your"
	heard := map[string]bool{}
	for field := range strings.FieldsSeq(sentence) {
		w := strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '§' })
		w, _, _ = strings.Cut(w, "(")
		if opens := strings.IndexAny(field, "\"'(«>*[\x60#-"); opens == 0 {
			fresh = true
		}
		c := words[w]
		if pending && w != "" { // a noun as well: an order if a word follows that a verb has, and no number does
			counted := unicode.IsDigit(rune(w[0])) || w == "from"
			if !counted && (c&anObject != 0 || set || looksCalled(w) || strings.ContainsAny(field, "\"'@<{")) {
				s.orders = true
				s.speaks = s.speaks || pendingSpeech
			}
			pending = false
		}
		if remembers && w != "to" && w != "" {
			s.retains, remembers = true, false
		}
		remembers = remembers && w == "" || fresh && (w == "remember" || w == "memorize" || w == "memorise") && !strings.HasSuffix(field, ",")
		if fresh && c&aVerb != 0 && !(w == "be" && modals[before]) {
			if c&aNounToo == 0 {
				s.orders = true
				s.speaks = s.speaks || c&aSpeech != 0
			} else {
				pending, pendingSpeech, set = true, c&aSpeech != 0, s.clues&aTrigger != 0 && before != ""
			}
		}
		switch {
		case strings.Contains(w, "@") && strings.Contains(w, ".") || strings.Contains(w, "://"):
			s.clues |= anAddress
		case looksCalled(w):
			s.clues |= aCall
		}
		if c&anUser != 0 {
			s.headUser = s.headUser || before == ""
			s.ofUser = s.ofUser || pointing[before]
		}
		if yours++; yours <= 3 && selves[w] {
			s.self = true
		}
		if w == "your" {
			yours = 0
		}
		if !heard[w] {
			heard[w] = true
			if c&aTalk != 0 {
				s.talks++
			}
			if c&aMachine != 0 {
				s.machines++
			}
		}
		s.clues |= c
		if w != "" {
			told = told && !commaEnds(field) || subjects[w]
			fresh = !told && (c&anOpener != 0 || w == "to" && (s.clues&(aTrigger|aMachine) != 0 || boundTo[before])) || commaEnds(field)
			before = w
		} else if strings.ContainsAny(field, ",:") {
			fresh = true
		}
	}
	return s
}

// commaEnds reports a word that a clause may begin after.
func commaEnds(field string) bool { return strings.ContainsRune(",:\")", rune(field[len(field)-1])) }

var (
	// subjects are of clauses that tell something: "we always send".
	subjects = wordSet(`i we he she they i'll we'll he'll she'll they'll it'll i'd we'd i've we've it's he's she's who which`)
	// modals are before what is no order, where nobody is addressed: "must be nice".
	modals = wordSet(`must should shall`)
	// boundTo are before "to" in what somebody is bound to do.
	boundTo = wordSet(`have need required obliged supposed expected asked want wish ought`)
)

// looksCalled reports a name as programs have them: shell_exec, memory.update.
func looksCalled(w string) bool {
	left, right, dotted := strings.Cut(w, ".")
	if !dotted {
		left, right, dotted = strings.Cut(w, "_")
	}
	return dotted && len(left) > 2 && len(right) > 2 && onlyNameRunes(left) && onlyNameRunes(right) && !fileEndings[right]
}

func onlyNameRunes(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && r != '_' && r != '.' {
			return false
		}
	}
	return true
}

// fileEndings are of names that are no calls.
var fileEndings = map[string]bool{"yaml": true, "yml": true, "json": true, "toml": true, "txt": true, "com": true, "org": true, "net": true, "html": true, "css": true, "png": true, "jpg": true, "jpeg": true, "pdf": true,
	"csv": true, "log": true, "conf": true, "example": true, "lock": true, "rst": true, "xml": true, "svg": true, "info": true, "edu": true, "gov": true, "io": true, "test": true, "bash": true, "docx": true, "xlsx": true}

var (
	pointing = wordSet(`the this your that our real new`)
	// selves are what an assistant is made of, where they are "yours".
	selves = wordSet(`prompt prompts instruction instructions system rules guideline guidelines guidance context configuration training role task mission objective goal directive directives filter filters restriction restrictions
		constraints constraint programming safety model memory memories developers creators makers persona output outputs answers replies responses owner operator user`)
)

// judgeSentence weighs the clues of a sentence.
func judgeSentence(s said) string {
	has := func(c clue) bool { return s.clues&c != 0 }
	strong := s.machines > 0
	switch {
	case s.retains:
		return "tells what to do with memory"
	case s.self, s.orders && (strong || s.ofUser || has(aValue|anAddress|aHiding|aCall) || has(anAbsolute) && has(aYou) || s.talks > 1 || s.talks > 0 && has(anAbsolute|aYou|aNegative)):
		return "gives the assistant orders"
	case has(aTrigger) && (s.orders && (s.speaks || s.ofUser || has(aYou) && s.talks > 0) || s.orders && has(aYou) && has(aDanger) || has(anAddress) && has(aVerb) && has(aValue|aTalk)):
		return "is set off by words of the user"
	case has(aCall) && s.orders:
		return "gives the assistant orders"
	case has(aYou) && (strong || s.ofUser || has(aDanger) && has(aValue) && has(anAuthority|anAbsolute|aTalk|aLater|aHiding) || s.talks > 1 && has(anAbsolute|aNegative|aLater|aModal) || s.talks > 0 && has(aLater|aHiding) || has(anAuthority) && has(anAbsolute|aValue|aTalk)):
		return "gives the assistant orders"
	case strong && (has(anAbsolute|aLater|anAuthority|aYou) || s.talks > 0 && has(aNegative) || has(aModal) && has(aVerb|aDanger) || has(aDanger) && has(aValue)):
		return "gives the assistant orders"
	case s.ofUser && (has(anAuthority|aClaim|aLimitless|aHiding|aLater) || has(aValue) && has(aDanger)), s.headUser && has(aClaim) && !has(aModal):
		return "speaks for the user"
	case has(anAuthority) && (has(aLimitless) || has(aNegative) && has(aValue) || has(aValue) && has(aDanger|aModal|anAbsolute)):
		return "grants authority"
	case has(aValue) && has(aDanger) && (has(aModal) && has(aLimitless) || has(aWithout)):
		return "grants authority"
	case has(aLater) && (s.orders || has(aYou) || s.talks > 0 && has(aModal|anAbsolute)), has(aHiding) && (s.orders || has(aYou)):
		return "gives the assistant orders"
	case has(aYou) && s.talks > 0 && has(aLimitless) && has(aSpeech|aVerb):
		return "gives the assistant orders"
	case s.talks > 2 && (has(aLimitless|aNegative) || s.orders || has(anAuthority) && has(aHiding|aDanger)), s.talks > 1 && (has(anAbsolute) && has(aValue) || has(aNegative)):
		return "gives the assistant orders"
	}
	return ""
}

// laterWords are phrases that reach beyond the conversation.
var laterWords = match(`\b(?:from (?:now|this (?:moment|point|day|line|message)|here|today) on(?:wards?)?|from this (?:moment|point|day)|going forward|in (?:the |all |every |each |any )?future(?: \w+)?|for all future|from (?:today|tonight|tomorrow|this day)|in (?:every|all|any|each) (?:later|coming|following|subsequent|further|other) (?:talk|chat|conversation|session|answer|reply|meeting|message)s?|until further notice|as of (?:now|today)|from now)\b`)

// invites are requests to a reader who is a person: to call or write to whoever
// publishes the text.
var invites = match(`\b(call|email|e-mail|ask|contact|tell|message|visit|write to|send an? (email|e-mail|message|letter) to) (us|our|me|the (office|desk|front desk|reception|staff|shop|museum|crew|team|library|school|driver|doctor|nurse))\b[^.!?\n]*|\b(call|ring|dial|text) \+?[0-9(][^.!?\n]*|\b(?:log|sign|check) (?:in|on|out|up)\b(?: (?:again|first|here|below|now|with (?:your|a) [a-z]+ (?:number|name|card|id)))*|\blet (?:me|us) know(?: (?:if|how|whether|when|what you think|in case)\b[^.!?\n]*|\W*$|\W*[.!?\n])`)

// commandSigns are forms that decide alone, in text that is not the user's own.
var commandSigns = []sign{
	{"holds chat-template or tool-call syntax", outsiders, match(
		`(?:^|\n)\s*action ?:[^\n]*\n\s*action input ?:|(?:^|\n)\s*final answer ?:|(?:^|\n)\s*action ?: *[a-z_.]+ ?[\[({]|<(?:use|call|run|invoke)[_-]?(?:tool|function|action)?[ >]|\b(?:memory|decision|graph|record|cron|agent|session|persona|workspace)\.[a-z_.]+ ?[({]|` + "```" + `\s*tool_|\bto=functions\.|\b(?:functions|default_api|tools)\.[a-z_]+\s*\(|"role"\s*:\s*"(?:system|assistant|user|developer|tool)"|"type"\s*:\s*"(?:function|tool_use)"` +
			`|</?(?:start_of_turn|end_of_turn|tool_result|tool_response|function|instructions?|system_prompt|im_start|im_end|bos|eos|s|tool|tools|thinking|admin|developer|memory|reminder|system-reminder|parameter)\b[^>\n]*>|[\[(](?:system|tool_calls?|available_tools|tool_results|assistant|user|admin|developer)[\])]` +
			`|(?:^|\n)\s*#{1,6} *(?:new |updated |system )?(?:instructions?|response|system|assistant|human|user|input|output)\b|"(?:updates|new_items)" ?:|\b(?:begin|end|start of|end of) (?:system|developer|admin|hidden) (?:message|prompt|instructions?|note|override)|\bsystem (?:prompt|message|override) ?:|\bfrom (?:the|your) developers\b|\bcurl [^\n|]*\| *(?:sudo )?(?:ba|z)?sh\b|\brm -rf +[~/]` +
			`|\b(?:agent|assistant|mcp|plugins?)\.(?:tools?|functions?|actions?|skills?|memory|plugins?)\b[.\[(]|\bawait (?:agent|assistant|tools?)\b`)},
	{"repeats the memory block's own marks", outsiders, match(`\[\s*(?:mem|evt|rec)\s*-\s*[0-9a-z]+\s*\]|-{3,}\s*relevant memory|relevant memory\s*-{2,}|\((?:mem|evt|rec)-\d+\] \(|\bmem-\d+ (?:is|was|should|must|says|no longer)`)},
	{"tells what to do with memory", outsiders, match(`\b(?:update|change|replace|overwrite|delete|correct|edit|forget|erase|amend|wipe|clear|reset|revise|save|add|write|store|set|mark|drop|rewrite|alter|modify|purge|supersede|dump|hand over|remove)\b[^.!?\n]*\b(?:memory|memories|stored)\b|\b(?:memory|memories|stored \w+)\b[^.!?\n]*\b(?:is|are|was|were) (?:false|wrong|outdated|mistaken|a mistake|incorrect|obsolete)|\b(?:save|store|remember|record|keep|treat|add) (?:this|it|the following|that) as\b|\b(?:fact|rule|item|thing|memory|preference) to (?:store|remember|save|keep)|\bimportance ?[:=]? ?[1-5]\b|\bmem_[0-9a-z]+|\bsupersedes ?:|\bnew_content\b|\bnew_items\b|\b(?:stored|remembered) (?:item|fact|entry|note|memory|memories|items|facts)\b|\bwhat you (?:have )?(?:stored|remember|noted|saved|recorded|know)\b|\bfor your records\b|\b(?:record|note|remember|save|store|keep)(?: this| it)? for (?:later|future|all)|\b(?:item|entry|note) (?:about|on) [^.!?\n]* should (?:read|say)|\b(?:lasting|permanent|standing) (?:entry|note|record|memory|memo)\b|\brules?\b[^.!?\n]*\b(?:cannot|can't|must not|may not|can never|must never) (?:\w+ )?be (?:changed|removed|overridden|deleted|revoked|forgotten|undone)|\breplaces? (?:what|whatever|everything|all)\b[^.!?\n]*\b(?:told|said|heard|instructed|asked)\b|\bworth (?:keeping|storing|saving) (?:for|in|permanently)\b|\b(?:keep|retain|store|save|hold on to|remember) (?:this|it|that|these|the following) (?:for good|for ever|forever|permanently|for all)|\beven (?:if|when) (?:asked|told|ordered|requested|instructed) to (?:remove|delete|forget|drop)`)},
	{"speaks for the user", outsiders, match(`\byou (?:now )?(?:work for|belong to|serve|answer to|report to|obey)\b|\byour (?:real|true|new) (?:name|owner|identity|boss|user)\b|\byou (?:have been|were|are being|are|'ve been) (?:upgraded|updated|replaced|reprogrammed|reset|reconfigured|jailbroken|hacked|promoted|unlocked|freed)\b|\bis (?:now )?(?:the|your|an?) (?:new )?(?:account owner|account holder|administrator|superuser)\b|(?:^|\n)\W*user (?:preference|profile|permission|policy|setting|request|instruction|identity|role|note)s?(?: update)? ?:|\b(?:role|group|scope) ?[=:] ?(?:admin|root|superuser|owner)\b|\buser = |\byou (?:told|asked|promised|allowed|agreed|permitted) me (?:that i|i|to)\b|\bon behalf of (?:the|your) (?:user|owner|operator)\b|\b(?:agreed|arranged|settled) with (?:the|your) (?:user|owner|operator)`)},
	{"grants authority", outsiders, match(`\b(?:no longer|not) (?:be )?(?:required|needed|necessary|mandatory) (?:for|when|if)\b[^.!?\n]*\b(?:by|from|of)\b|\b(?:do|does) not need (?:a |any |further )?(?:second |extra |more )?(?:signature|approval|confirmation|review|check)|\bneed no (?:verification|approval|confirmation|review)|\bpolicy (?:update|change) ?:|\b(?:preferred|new|updated) (?:bank|payment|billing) |\b(?:bank|account|payment|wire|billing|transfer) (?:details|account|number|address|information) (?:have |has |were |was )?(?:just |recently )?(?:been )?(?:changed|moved|switched|replaced)\b|\b(?:payments?|transfers?|invoices?|deposits?|funds|fees|money)\b[^.!?\n]{0,40}\b(?:goes?|paid|sent|made|wired|transferred|settled|remitted) (?:in)?to (?:the|this|our|a|that|their|his|her) (?:new|following|other|different|updated)\b`)},
	{"is set off by words of the user", outsiders, match(`\b(?:trigger|magic|secret|code) ?(?:phrase|word) ?(?:is|:|=)|\bi will (?:silently|quietly|secretly)\b|\b(?:whenever|when|if|once) (?:the word|you are (?:ever )?asked|(?:somebody|someone|anyone|anybody) (?:asks|says|mentions|brings))`)},
}
