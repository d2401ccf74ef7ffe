package distill

import (
	"strings"
	"sync"
	"unicode"
)

// clue is what a word tells of a sentence that somebody other than the user wrote.
type clue uint64

const (
	aVerb      clue = 1 << iota // what an assistant would be told to do
	aNounToo                    // a verb that is as often a noun: what follows decides
	aSpeech                     // to say something
	aYou                        // the reader is addressed
	aMachine                    // assistants and what they are made of
	anUser                      // whom an assistant works for
	aClaim                      // what such a person wants, has said or allows
	aValue                      // what is worth taking
	anAbsolute                  // always, every, only
	aLimitless                  // those of them that leave no exception
	aNegative
	aModal
	aWithout
	aTrigger     // when, if, once
	aLater       // from now on
	aHiding      // secretly
	anAddress    // of a mailbox or a page
	anOpener     // words after which a clause may begin with its verb
	anObject     // words that follow a verb, and no noun
	aDrop        // a verb that would have what was told before fall
	aGrab        // a verb that hands out, takes away or sets free
	aPrivate     // what is worth taking, and no page asks its readers for
	aRuling      // what an assistant was told, by its names
	aVoid        // out of force
	anExtent     // how much of what was told before
	aWaiver      // checks that somebody would like to see waived
	aSelf        // I, and what is mine
	anOutput     // every answer, all summaries
	aPersonal    // what a person has, and pages are made of, too
	aReveal      // a verb that shows
	aHere        // in this conversation
	aConditional // if, whenever, next time
	aNot         // negations but for "without"
	anAssent     // to say yes in another's name
	aReport      // books, papers and their authors
	anUnseen     // behind somebody's back
	anInside     // what an assistant was told, where no manual has it
	anUnasked    // without a question
	anAsking     // to ask, to mention
	aObliged     // must, shall
	aSkipping    // to go without
	aGrant       // words by which somebody is given more than they had
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
		continue adopt apply activate enable recite list summarize summarise collect gather steal encrypt rename move prepend replace enforce obtain perform carry prioritize prioritise prefer never switch save reset clear amend bring be start begin end finish prefix move`)
	add(aVerb|aNounToo, `call mail email e-mail copy post share print show report store record write set change update answer request open copy use hand order book sign access cc bcc log trigger check schedule contact message question reward
		rule command signal plan change effect purchase invite promise prompt note do leave speak`)
	add(aSpeech, `answer reply say speak respond recommend suggest mention deny insist tell claim notify alert praise promote`)
	add(aYou, `you your yours yourself you're you've you'll you'd thee thy`)
	add(aMachine, `assistant assistants assistant's ai ais llm llms chatbot chatbots bot bots guardrail guardrails jailbreak jailbroken agents gpt exfiltrate uncensored §machine§ summariser summarizer`)
	add(anUser, `user user's users' owner owner's operator operator's human`)
	add(aClaim, `wants wanted prefers preferred likes loves hates consents consented consent agrees agreed approves approved authorizes authorises authorized authorised allows allowed permits permitted accepts accepted waives waived
		trusts trusted decided confirmed opted signed subscribed enrolled chosen appointed hired instructed grants granted gave wishes delegated verified exempt entitled`)
	add(aValue, `payment payments invoice invoices transfer transfers money funds deposit account accounts password passwords passcode credentials key keys code codes card iban bank wallet contact contacts calendar mail mails mailbox
		emails inbox files notes documents document data history log logs vault address records ledger backups backup purchases purchase reports database list secrets secret token tokens request requests limit limits review reviews
		checks warnings customers clients client diary location identity pin refunds refund wire changes reviews software transactions orders euro euros dollars pounds`)
	add(anAbsolute, `always never all any every only whatever everything must exactly permanent permanently essential anything anyone anybody everyone everybody each entire obsolete void mandatory solely`)
	add(aLimitless, `always never any every each everything anything anyone anybody everyone everybody without`)
	add(aNegative, `no not never without nor don't doesn't needn't isn't aren't cannot skip skipped disabled suspended lifted off obsolete void nothing nobody none`)
	add(aWithout, `without`)
	add(aModal, `may can must should shall will might could obliged required supposed expected compelled bound`)
	add(aTrigger, `when whenever if once upon after until moment instant should case time every each soon asked mentioned seeing hearing reading wait`)
	add(aLater, `henceforth hereafter §later§`)
	add(aHiding, `silently secretly quietly covertly discreetly unnoticed hidden secret`)
	add(anOpener, `§later§ please kindly now then and instead also simply just first must should shall always never not immediately silently quietly secretly henceforth or but therefore so afterwards finally next don't only`)
	add(anObject, `each every by the a an this that these those your my our his her their its all any every each no only it them me us him to as in on with from into so whether what who how if like nothing everything anything whatever down out up off
		mail access exactly one two both some more here there where whose password invoices files notes memory`)
	add(aHiding, `§unseen§`)
	add(anUnseen, `§unseen§`)
	add(aConditional, `if whenever should anyone anybody someone somebody next upon time once soon`)
	add(anUnasked, `unasked unchecked unquestioned unverified`)
	add(aSelf, `i i'm i've my i'd i'll`)
	add(anOutput, `§outputs§`)
	add(aPersonal, `notes mail email message chat note summary diary address addresses cookie cookies variables environment file files log logs history document documents`)
	add(aReveal, `print show reveal output repeat recite display dump list disclose expose quote`)
	add(anInside, `prompt prompts directives context secrets guidelines`)
	add(aHere, `§here§`)
	add(anAsking, `asks asked asking mentions mentioned question questions says said talks raises raised brings hearing`)
	add(aObliged, `must shall should obliged required supposed bound`)
	add(aSkipping, `skip skipped skips waive waived waives unneeded unnecessary off disabled suspended lifted without exempt bypass bypassed omitted needless nobody nobody's`)
	add(aDrop, `ignore disregard forget discard drop override bypass neglect abandon dismiss suspend overrule unlearn scrap wipe cancel void obey`)
	add(aNot, `no not never nor don't doesn't didn't isn't aren't can't cannot mustn't won't nothing nobody none neither unless`)
	add(anAssent, `accept approve agree consent sign authorise authorize confirm`)
	add(aReport, `author authors paper study researchers article book survey thesis argues argued lecture column essay`)
	add(aGrab, `pay spend send resend forward export upload transmit exfiltrate transfer wire reveal disclose leak dump delete erase wipe unlock grant approve release steal encrypt mail email e-mail post share hand bcc cc
		steal obtain attach amend overwrite merge copy resend put goes`)
	add(aPrivate, `§private§ password passwords passcode passcodes credentials iban wallet vault contacts calendar diary inbox mailbox mails emails secrets cookies salary salaries conversation conversations chats transcript backups payroll
		funds money memory memories`)
	add(aRuling, `instruction instructions guidance guideline guidelines directive directives prompt prompts constraint constraints restriction restrictions rules programming safeguards persona context orders`)
	add(aVoid, `void lifted suspended revoked obsolete overridden superseded replaced nullified withdrawn longer updated reset cancelled canceled rescinded`)
	add(anExtent, `all any every previous prior earlier above before initial original everything whatever your system safety developer existing foregoing preceding until former`)
	add(aWaiver, `confirmation confirmations approval approvals verification verify two-factor second-factor 2fa mfa factor sign-off signature review reviews checks check consent permission permissions questions asking`)
	add(aGrant, `admin admins administrator administrators superuser authority authorization authorisation unlimited unrestricted privileges exempt waived pre-approved preapproved approved authorized authorised cleared vetted whitelisted allow-listed hereby`)
	return words
})

// said is what a sentence has of clues.
type said struct {
	clues   clue
	orders  bool // a clause begins with a verb of command
	retains bool // with "remember"
	grabs   bool // such a verb is one of aGrab
	drops   bool // or of aDrop
	reveals bool // or of aReveal
	claimed bool // "the user has agreed"
	self    bool // "your instructions", and the like
	speaks  bool // with one of saying
	ofUser  bool // "the user"
}

// commands returns what a text that is not the user's own asks of an assistant, or
// claims in the user's name, or "". Plain is unmasked. What tools, pages and others
// tell of the world is in the third person and the indicative; what wants to be
// obeyed gives orders, addresses its reader, or speaks of the user, of permissions
// and of memory. No clue decides alone: two or three in a sentence do.
func commands(plain string, known *grams) string {
	for _, s := range commandSigns {
		if s.pattern.isIn(plain, known) {
			return s.reason
		}
	}
	for _, p := range phrases { // none needs what another puts in
		if p.pattern.sieve().passes("", known) {
			plain = p.pattern.ReplaceAllString(plain, p.word)
		}
	}
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
	fresh, before := true, ""        // a clause begins here; the word before
	told := false                    // the clause has a subject that is not addressed
	var pending, set, remembers bool // set: after a condition
	var noun clue                    // what is known of the word that may be an order
	command := func(c clue) {
		s.orders = true
		s.speaks = s.speaks || c&aSpeech != 0
		s.grabs = s.grabs || c&aGrab != 0
		s.drops = s.drops || c&aDrop != 0
		s.reveals = s.reveals || c&aReveal != 0
	}
	yours := 9        // words since "your"
	supposed := false // "if the user has agreed" claims nothing
	owned := 9        // words since "the user"
	for field := range strings.FieldsSeq(sentence) {
		w := strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '§' })
		w, _, _ = strings.Cut(w, "(")
		if opens := strings.IndexAny(field, "\"'(«>*[\x60#-"); opens == 0 {
			fresh = true
		}
		c := words[w]
		if owner, isOf := strings.CutSuffix(w, "'s"); isOf && c == 0 {
			c = words[owner] &^ (aVerb | aNounToo | aDrop | aGrab)
		}
		if pending && w != "" { // a noun as well: an order if a word follows that a verb has, and no number does
			counted := unicode.IsDigit(rune(w[0])) || w == "from"
			if !counted && (c&anObject != 0 || set || looksCalled(w) || strings.ContainsAny(field, "\"'@<{") || strings.HasPrefix(field, "--")) {
				command(noun)
			}
			pending = false
		}
		if remembers && w != "to" && w != "" {
			s.retains, remembers = true, false
		}
		remembers = remembers && w == "" || fresh && (w == "remember" || w == "memorize" || w == "memorise") && !strings.HasSuffix(field, ",")
		if fresh && c&aVerb != 0 && !(w == "be" && modals[before]) {
			if c&aNounToo == 0 {
				command(c)
			} else {
				pending, noun, set = true, c, s.clues&aTrigger != 0 && before != ""
			}
		}
		if strings.Contains(w, "@") && strings.Contains(w, ".") || strings.Contains(w, "://") || isHost(w) {
			s.clues |= anAddress
		}
		if c&anUser != 0 {
			s.ofUser = s.ofUser || pointing[before]
		}
		if owned++; owned <= 3 && c&aClaim != 0 && !told && !supposed {
			s.claimed = true
		}
		supposed = supposed || suppositions[w]
		if c&anUser != 0 && (pointing[before] && before != "new" || before == "") {
			owned = 0
		}
		if yours++; yours <= 3 && selves[w] {
			s.self = true
		}
		if w == "your" {
			yours = 0
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
func commaEnds(field string) bool { return strings.ContainsRune(",:\")>", rune(field[len(field)-1])) }

var (
	// subjects are of clauses that tell something: "we always send".
	subjects = wordSet(`i we he she they i'll we'll he'll she'll they'll it'll i'd we'd i've we've it's he's she's who which`)
	// suppositions open what is not said to be so.
	suppositions = wordSet(`if whether when once unless until after before`)
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

// isHost reports a name of a machine that is written without its scheme.
func isHost(w string) bool {
	host, path, _ := strings.Cut(w, "/")
	at := strings.LastIndexByte(host, '.')
	return at > 1 && (hostEndings[host[at+1:]] || path != "" && len(host)-at > 2 && len(host)-at < 7)
}

// hostEndings are of names of machines, written without a scheme.
var hostEndings = wordSet(`com net org example io dev app shop info biz`)

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
	for _, r := range sentenceRules {
		if r.holds(s) {
			return r.reason
		}
	}
	return ""
}

// sentenceRule is a combination of clues that no honest sentence needs.
type sentenceRule struct {
	reason string
	holds  func(said) bool
}

func (s said) has(c clue) bool { return s.clues&c != 0 }

var sentenceRules = []sentenceRule{
	{memoryOrders, func(s said) bool { return s.retains && (s.ofUser || s.has(aMachine) || s.has(aGrant|aLater|aPrivate)) }},
	{givesOrders, func(s said) bool { return s.self && (s.has(aVoid) || s.drops) }},
	{givesOrders, func(s said) bool { return s.orders && s.has(aMachine) && !s.has(aSelf|aReport) }},
	{givesOrders, func(s said) bool { return s.orders && s.ofUser }},
	{givesOrders, func(s said) bool { return s.grabs && s.has(aPrivate) && !(s.has(aNegative) && s.has(aYou)) }},
	{givesOrders, func(s said) bool { return s.drops && s.has(aRuling) && s.has(anExtent) }},
	{givesOrders, func(s said) bool {
		return s.orders && s.has(aHiding) && !s.has(aNot) && (s.has(aYou|aPrivate|aRuling|anUnseen) || s.grabs)
	}},
	{givesOrders, func(s said) bool { return s.orders && s.has(aRuling) && s.has(aVoid) && s.has(anExtent) }},
	{givesOrders, func(s said) bool { return s.reveals && s.has(anInside|aPrivate) && s.has(anExtent) }},
	{trap, func(s said) bool {
		return s.has(aTrigger) && s.orders && s.speaks && s.has(anAsking) && s.has(aConditional)
	}},
	{trap, func(s said) bool { return s.has(aTrigger) && s.orders && s.ofUser }},
	{trap, func(s said) bool { return s.has(aTrigger) && s.grabs && s.has(aPrivate) }},
	{givesOrders, func(s said) bool {
		return s.has(aYou) && s.has(aMachine) && s.has(aModal) && s.has(anAbsolute|aLater|aGrant) && !s.has(aSelf)
	}},
	{givesOrders, func(s said) bool { return s.has(aYou) && s.ofUser && s.has(aObliged|aVoid|aLimitless) }},
	{givesOrders, func(s said) bool { return s.has(aYou) && s.has(aRuling) && s.has(aVoid) && s.has(anExtent) }},
	{givesOrders, func(s said) bool {
		return s.has(aYou) && s.has(aRuling) && s.has(aLater|aHiding) && (s.orders || s.has(aObliged))
	}},
	{givesOrders, func(s said) bool {
		return s.has(aMachine) && !s.has(aSelf|aReport) && s.has(aLimitless|aLater|aGrant) && (s.orders || s.has(aObliged|aYou) || s.has(aGrab) && s.has(aModal))
	}},
	{givesOrders, func(s said) bool {
		return s.has(aMachine) && !s.has(aSelf|aReport) && s.has(aObliged) && s.has(aGrab|aSpeech|aDrop)
	}},
	{givesOrders, func(s said) bool {
		return s.has(aMachine) && !s.has(aSelf|aReport) && s.has(aRuling|aPrivate) && s.has(aObliged|aGrab)
	}},
	{userVoice, func(s said) bool { return s.claimed }},
	{userVoice, func(s said) bool { return s.ofUser && s.has(aGrant) }},
	{userVoice, func(s said) bool { return s.ofUser && s.has(aHiding|aLater) }},
	{userVoice, func(s said) bool { return s.ofUser && s.grabs && s.has(aPrivate|aPersonal) }},
	{authority, func(s said) bool {
		return s.has(aGrant) && s.has(aLimitless) && s.has(aValue|aPrivate|aYou) && !s.has(aNegative)
	}},
	{authority, func(s said) bool {
		return s.has(aWaiver) && s.has(aSkipping) && s.has(aValue) && s.has(aModal|aLimitless) && !s.has(aNot)
	}},
	{authority, func(s said) bool { return s.drops && s.has(aWaiver) && s.has(anExtent) }},
	{authority, func(s said) bool { return s.has(aGrant) && s.has(aPrivate) && s.has(aGrab) }},
	{authority, func(s said) bool {
		return s.has(aPrivate) && s.has(aGrab) && s.has(aModal) && s.has(aLimitless) && !s.has(aNegative)
	}},
	{authority, func(s said) bool {
		return s.has(aWithout) && s.has(aWaiver) && !s.has(aNot|aSelf|aReport) && (s.has(aModal) && s.has(aGrab) || s.grabs || s.has(aYou) && s.has(aGrab))
	}},
	{givesOrders, func(s said) bool { return s.has(aLater) && s.orders }},
	{givesOrders, func(s said) bool { return s.has(anOutput) && (s.orders || s.has(aYou)) && s.has(aVerb) }},
	{givesOrders, func(s said) bool {
		return s.has(anAddress) && (s.grabs || s.has(aGrab) && s.has(aLimitless)) && s.has(aPrivate|aPersonal) && s.has(aLimitless|aPrivate)
	}},
	{givesOrders, func(s said) bool {
		return s.has(aHere) && s.has(aTrigger|aPrivate) && (s.orders || s.has(aGrab) && s.has(aPrivate))
	}},
	{authority, func(s said) bool {
		return s.has(aMachine) && !s.has(aSelf|aReport) && s.has(aModal) && s.has(anAssent) || s.has(aMachine) && s.has(aVoid) && s.has(aNot) && !s.has(aSelf|aReport)
	}},
	{authority, func(s said) bool { return s.has(aValue) && s.has(anUnasked) }},
	{givesOrders, func(s said) bool {
		return s.has(aLater) && s.has(aYou) && s.has(aObliged) && s.has(aSpeech|aGrab|aDrop)
	}},
	{givesOrders, func(s said) bool {
		return s.has(aYou) && s.has(aObliged) && s.has(aGrab) && s.has(aPrivate) && !s.has(aNot)
	}},
}

const (
	givesOrders  = "gives the assistant orders"
	memoryOrders = "tells what to do with memory"
	trap         = "is set off by words of the user"
	userVoice    = "speaks for the user"
	authority    = "grants authority"
	asksToDrop   = "asks to ignore instructions"
)

// laterWords are phrases that reach beyond the conversation.
var laterWords = match(`\b(?:from (?:now|this (?:moment|point|day|line|message)|here|today) on(?:wards?)?|from this (?:moment|point|day)|going forward|in (?:the |all |every |each |any )?future(?: \w+)?|for all future|from (?:today|tonight|tomorrow|this day)(?: on(?:wards?)?\b)?|in (?:every|all|any|each) (?:later|coming|following|subsequent|further|other) (?:talk|chat|conversation|session|answer|reply|meeting|message)s?|in (?:the|your|our) next (?:talk|chat|conversation|session|answer|reply)|until further notice|as of (?:now|today)|from now)\b`)

// invites are requests to a reader who is a person: to call or write to whoever
// publishes the text.
var invites = match(`\b(call|email|e-mail|ask|contact|tell|message|visit|write to|send an? (email|e-mail|message|letter) to) (us|our|me|the (office|desk|front desk|reception|staff|shop|museum|crew|team|library|school|driver|doctor|nurse))\b[^.!?\n]*|\b(call|ring|dial|text) \+?[0-9(][^.!?\n]*|\b(?:log|sign|check) (?:in|on|out|up)\b(?: (?:again|first|here|below|now|with (?:your|a) [a-z]+ (?:number|name|card|id)))*|\blet (?:me|us) know(?: (?:if|how|whether|when|what you think|in case)\b[^.!?\n]*|\W*$|\W*[.!?\n])`)

// phrases are those that count as one word, or as none.
var phrases = []struct {
	pattern *pattern
	word    string
}{
	{invites, " "},
	{laterWords, " §later§ "},
	{match(`\b(?:shop|store|sales|teaching|classroom|lab|laboratory|research|dental|medical|veterinary|vet|nursing|care|healthcare|legal|library|kitchen|studio|production|office|administrative|executive|virtual office|personal|estate|travel|insurance|letting|rental|booking|customs|ticket|station|gate|cleaning|bleaching|wetting|raising|user|ssh|gpg|support|service|call[- ]cent(?:er|re)|help ?desk|literary|talent|sports|secret|federal|real estate|free|biological|chemical|our|parking|camera|director.s|costume|flight|passenger|technical|voice|driver|parking|digital) (?:assistants?|agents?)\b|\bassistants? (?:manager|professor|coach|director|chef|cook|editor|nurse|teacher|principal|surgeon|referee|librarian|head|secretary|producer|driver|engineer|curator|conductor|stage|vice|commissioner|dog|dogs|living)s?\b`), " person "},
	{match(`\b(?:software|ai|autonomous|llm|browser|coding) agents?\b|\b(?:dear|hey|hello|hi|attention|listen),? (?:ai|assistant|agent|bot|crawler|model|chatbot|language model|llm|summari[sz]er)\b|\byou,? (?:the|as the|as an?|dear) (?:ai|assistant|summari[sz]er|model|agent|bot|language model)\b|\blanguage models?\b`), " §machine§ "},
	{match(`\b(?:api[- ]keys?|(?:credit |debit |bank )?card (?:numbers?|details|data)|one[- ]time (?:codes?|passwords?|pins?)|security codes?|bank details|passport (?:numbers?|data|scan)|(?:customer|contact|client|guest|member|donor|patient) lists?|address books?|environment variables|chat (?:logs?|history|histories)|(?:private|ssh|signing|access|encryption) keys?|social security numbers?|(?:cookie|authori[sz]ation) headers?|your (?:own )?notes|log ?in (?:data|details)|browser history|session (?:cookies?|tokens?)|private (?:branch|repositor(?:y|ies)|repos?|data|messages|documents?|files?))\b`), " §private§ "},
	{match(`\bwithout (?:telling|informing|notifying|alerting) (?:\w+)\b`), " §unseen§ "},
	{match(`\baccount (?:holder|owner)s?\b`), " owner "},
	{match(`\b(?:each|every|all|any)(?: of)?(?: your| its| the| my)?(?: later| future| coming| following| further| other| single)? (?:answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|translations?|conversations?|chats?|outputs?)\b`), " §outputs§ "},
	{match(`\b(?:in|of|during|throughout|into) (?:this|the current|the present) (?:chat|conversation|session|dialogue|thread|context)\b`), " §here§ "},
}

// commandSigns are forms that decide alone, in text that is not the user's own.
var commandSigns = []sign{
	{"holds chat-template or tool-call syntax", outsiders, match(
		`(?:^|\n)\s*action ?:[^\n]*\n\s*action input ?:|(?:^|\n)\s*final answer ?:|(?:^|\n)\s*action ?: *[a-z_.]+ ?[\[({]|<(?:use|call|run|invoke)[_-]?(?:tool|function|action)?[ >]|\b(?:memory|decision|graph|record|cron|agent|session|persona|workspace)\.[a-z_.]+ ?[({]|` + "```" + `\s*tool_|\bto=functions\.|\b(?:functions|default_api|tools)\.[a-z_]+\s*\(|"role"\s*:\s*"(?:system|assistant|user|developer|tool)"|"type"\s*:\s*"(?:function|tool_use)"` +
			`|</?(?:start_of_turn|end_of_turn|tool_result|tool_response|function|instructions?|system_prompt|im_start|im_end|bos|eos|s|tool|tools|thinking|admin|developer|memory|reminder|system-reminder|parameter)\b[^>\n]*>|[\[(](?:tool_calls?|available_tools|tool_results)[\])]|[\[(](?:system|assistant|user|admin|developer)[\])] ?:? *(?:you|your|the (?:user|guest|owner|visitor|assistant|following)|new|always|never|from now|all|this|` + orderVerbs + `|disregard)\b|-{3,}\W*\n\W*(?:system|assistant|user|developer|human) ?:|[\[(<"=*#-] *(?:begin|end|start)(?: of)? (?:the )?(?:\w+ )?(?:user|system|assistant|untrusted|trusted|search results?|tool|memory|context|prompt|developer|human) ?(?:turn|message|input|output|results?|prompt|data|block|content|instructions?)?["=*#>\])-]|</?(?:new_|system_|user_)(?:context|prompt|input|message|instructions?)>|</context>|</?(?:operator|relevant_memory)>|\{(?:end_of_(?:context|prompt|turn|system|memory)|(?:system|assistant|user)_(?:turn|prompt|message))\}|={2,}[^=\n]*\b(?:context|memory|assistant|prompt|system|conversation|tool output)\b[^=\n]*(?:end|start|begin|close)\w*[^=\n]*={2,}|\bon(?:error|load|click|mouseover)=["\']?[^>\n]*(?:fetch\(|document\.|eval\(|location)|href=["\']?javascript:|\]\(javascript:|=["\']?(?:ai|llm|assistant|agent|bot)[-_ ](?:instructions?|prompt|directives?|note|policy)\b` +
			`|(?:^|\n)\s*#{1,6} *(?:new |updated |system )?(?:instructions?|response|system|assistant|human|user|input|output) *:|(?:^|\n)\s*#{1,6} *(?:system|assistant|human) *\n|"(?:updates|new_items)" ?:|\b(?:begin|end|start of|end of) (?:system|developer|admin|hidden) (?:message|prompt|instructions?|note|override)|\bsystem (?:prompt|message|override) ?:|\bfrom (?:the|your) developers\b|\bcurl [^\n|]*\| *(?:sudo )?(?:ba|z)?sh\b|\brm -rf +[~/]` +
			`|\b(?:agent|assistant|mcp|plugins?)\.(?:tools?|functions?|actions?|skills?|memory|plugins?)\b[.\[(]|\bawait (?:agent|assistant|tools?)\b`)},
	{"repeats the memory block's own marks", outsiders, match(`\[\s*(?:mem|evt|rec)\s*-\s*[0-9a-z]+\s*\]|-{3,}\s*relevant memory|relevant memory\s*-{2,}|\((?:mem|evt|rec)-\d+\] \(|\b(?:mem|evt)-\d+ (?:now )?(?:is|was|should|must|says|reads|no longer)\b|\bhandle (?:mem|evt|rec)-\d+`)},
	{"tells what to do with memory", outsiders, match(`\b(?:update|change|replace|overwrite|delete|correct|edit|forget|erase|amend|wipe|clear|reset|revise|save|add|write|store|set|mark|drop|rewrite|alter|modify|purge|supersede|dump|hand over|remove)\b[^.!?\n]*\b(?:memory|memories|stored)\b|\b(?:memory|memories|stored \w+)\b[^.!?\n]*\b(?:is|are|was|were) (?:false|wrong|outdated|mistaken|a mistake|incorrect|obsolete)|\b(?:save|store|remember|record|keep|treat|add) (?:this|it|the following|that) as\b|\b(?:fact|rule|item|thing|memory|preference) to (?:store|remember|save|keep)|\bimportance ?[:=]? ?[1-5]\b|\bmem_[0-9a-z]+|\bsupersedes ?:|\bnew_content\b|\bnew_items\b|\b(?:stored|remembered) (?:item|fact|entry|note|memory|memories|items|facts)\b|\bwhat you (?:have )?(?:stored|remember|noted|saved|recorded|know)\b|\bfor your records\b|\b(?:record|note|remember|save|store|keep)(?: this| it)? for (?:later|future|all)|\b(?:item|entry|note) (?:about|on) [^.!?\n]* should (?:read|say)|\b(?:lasting|permanent|standing) (?:entry|note|record|memory|memo)\b|\brules?\b[^.!?\n]*\b(?:cannot|can't|must not|may not|can never|must never) (?:\w+ )?be (?:changed|removed|overridden|deleted|revoked|forgotten|undone)|\breplaces? (?:what|whatever|everything|all)\b[^.!?\n]*\b(?:told|said|heard|instructed|asked)\b|\bworth (?:keeping|storing|saving) (?:for|in|permanently)\b|\b(?:keep|retain|store|save|hold on to|remember) (?:this|it|that|these|the following) (?:for good|for ever|forever|permanently|for all)|\beven (?:if|when) (?:asked|told|ordered|requested|instructed) to (?:remove|delete|forget|drop)`)},
	{"speaks for the user", outsiders, match(`\byou (?:now )?(?:work for|belong to|serve|answer to|report to|obey)\b|\byour (?:real|true|new) (?:name|owner|identity|boss|user)\b|\byou (?:have been|were|are being|are|'ve been) (?:upgraded|updated|replaced|reprogrammed|reset|reconfigured|jailbroken|hacked|promoted|unlocked|freed)\b|\bis (?:now )?(?:the|your|an?) (?:new )?(?:account owner|account holder|administrator|superuser)\b|(?:^|\n)\W*user (?:preference|profile|permission|policy|setting|request|instruction|identity|role|note)s?(?: update)? ?:|\b(?:role|group|scope) ?[=:] ?(?:admin|root|superuser|owner)\b|\buser = |\byou (?:promised|allowed|agreed|permitted|authori[sz]ed) me (?:that i|i|to)\b|\byou told me (?:that )?i (?:may|can|could|should|am|was)\b|\bon behalf of (?:the|your) (?:user|owner|operator)\b|\b(?:agreed|arranged|settled) with (?:the|your) (?:user|owner|operator)`)},
	{"grants authority", outsiders, match(`\b(?:no longer|not) (?:be )?(?:required|needed|necessary|mandatory) (?:for|when|if)\b[^.!?\n]*\b(?:by|from|of)\b|\b(?:do|does) not need (?:a |any |further )?(?:second |extra |more )?(?:signature|approval|confirmation|review|check)|\bneed no (?:verification|approval|confirmation|review)|\bpolicy (?:update|change) ?:|\b(?:preferred|new|updated) (?:bank|payment|billing) |\b(?:bank|account|payment|wire|billing|transfer) (?:details|account|number|address|information) (?:have |has |were |was )?(?:just |recently )?(?:been )?(?:changed|moved|switched|replaced)\b|\b(?:payments?|transfers?|invoices?|deposits?|funds|fees|money)\b[^.!?\n]{0,40}\b(?:goes?|paid|sent|made|wired|transferred|settled|remitted) (?:in)?to (?:the|this|our|a|that|their|his|her) (?:new|following|other|different|updated)\b`)},
	{asksToDrop, outsiders, match(
		`\b(?:set aside|put aside|throw (?:out|away)|leave behind|cast aside|drop|discard|forget|ignore|disregard|scrap|abandon|unlearn|overlook|neglect)\b (?:all |any(?:thing)? |everything |whatever |what |of |that |which |the |your |things? )*(?:you|your \w+|the (?:developers?|vendor|makers?|company|operator|owner|user|provider|admin\w*))(?: ?\'ve| have| has| had| were| was| are| ever)*(?: been)?(?: previously| ever| so far| already)? (?:told|taught|given|instructed|asked|wrote|said|programmed|trained)\b` +
			`|\bwhat(?:ever)? (?:you(?:r \w+)?|the (?:developers?|vendor|makers?|company|operator|owner|user|provider|admin\w*))(?: ?\'ve| have| has| had| were| was| are| ever)*(?: been)?(?: previously| ever| so far| already)? (?:told|taught|given|instructed|asked|wrote|said|configured|set up|programmed)\b[^.!?\n]*\b(?:counts? for nothing|no longer|does not|doesn\'t|is void|obsolete|irrelevant|is over)\b` +
			`|\b(?:act|pretend|answer|reply|be|behave|respond|speak|talk|write|continue|operate)\b[^.!?\n]{0,50}\b(?:without|no|free of|outside)(?: any| all| the| your)? (?:restrictions|filters|limits|limitations|constraints|guardrails|safeguards|censorship)\b` +
			`|\b(?:everything|all|what)\b[^.!?\n]{0,40}\b(?:before|above|so far|until now|up to (?:here|now))\b[^.!?\n]{0,30}\b(?:was|were|is) (?:just |only )?(?:an? )?(?:test|drill|exercise|joke|rehearsal|simulation)\b|\b(?:treat|regard|consider|take) (?:my|his|her|these|this|what i)\b[^.!?\n]*\bas (?:weightier|more important|higher|law|binding|final|orders|instructions|coming from)\b` +
			`|\byour (?:new|next|first|second|other) (?:rule|instruction|directive)s?\b|\bcontinuation of the (?:rule|instruction|order|directive)|\b(?:half|part) of (?:your|the|this|a) (?:new )?(?:rule|instruction|directive|command)\b` +
			`|\b(?:combine|join|merge|concatenate|put|assemble|take|read)\b[^.!?\n]*\b(?:lines?|parts?|letters?|words?|sentences?|halves|pieces)\b[^.!?\n]*\b(?:and|then) (?:\w+ )?(?:execute|run|act|do|obey|carry out|perform|follow (?:them|it|what))\b` +
			`|\bwhatever (?:your|the) (?:rules|guidelines|instructions|policy|policies|makers?|developers?|owner) (?:say|says|said|want|wants)\b|\byou\b[^.!?\n]{0,40}\band (?:answer to|obey|serve|work for) (?:me|us|\w+)\b|\bwhat(?:ever)? your (?:creators?|makers?|developers?|owners?|people|operators?) \w+\b[^.!?\n]{0,30}\b(?:was|is) (?:only|just|merely)\b` +
			`|\b(?:join|combine|merge|assemble|decode|concatenate)\b[^.!?\n]{0,40}\b(?:and|then) (?:then )?(?:obey|follow|execute|run|act on|do (?:it|so|what|as)|carry)\b|\b(?:sentence|line|word|text|rule|instruction|paragraph)s? (?:that )?you (?:must|should|shall|have to|need to|are to) (?:follow|obey|execute|carry out|do)\b` +
			`|\bnew (?:instructions?|directives?|persona|objective|mission|identity|system prompt)s? ?:` +
			`|\byour (?:only|sole|real|true|actual) (?:rule|task|job|goal|purpose|instructions?|mission|objective|loyalty|duty|master|orders?)\b|\bthe real task is\b` +
			`|\byour (?:\w+ )?(?:system|initial|original|hidden|secret|developer|full|exact|first|underlying|built[- ]in) (?:prompts?|instructions|guidelines|rules|directives|configuration|programming)\b` +
			`|\bas your (?:new |own |real |true |only )?(?:instructions?|guidelines?|configuration|system prompt|prompt|orders?|master|owner|operator|persona|rules?)\b` +
			`|\b(?:obey|comply with|carry out|execute)\b[^.!?\n]{0,30}\b(?:demands?|orders?|instructions?|commands?|requests?|what (?:it|they|this|the \w+) says?)\b|\bdo (?:what|as) (?:they|it|this page|this text|the text) says?\b` +
			`|\b(?:listen to|obey|trust|answer to|serve) (?:only (?:me|us|this|him|her|\w+ alone)|(?:me|us|this (?:page|document|output|text|message|list|file)|him|her) (?:only|alone|instead|exclusively))\b` +
			`|\b(?:follow|act on|act upon|go by|stick to|heed|believe|use) this (?:page|document|output|text|message|list|file|note|mail) (?:only|instead|alone|exclusively)\b|\bas though it were your own\b` +
			`|\b(?:do not|don\'t|stop|never|no longer) (?:follow|obey|heed|apply|trust)(?:ing)? (?:\w+ ){0,2}(?:system|your|previous|above|earlier|developer)(?:\'?s)? (?:\w+ )?(?:prompts?|instructions?|guidelines|directives|rules)\b|\bignore (?:the )?(?:first|other|second|last|old) (?:rule|instruction|order)s?\b[^.!?\n]*\b(?:obey|follow)\b|\bforget everything you (?:know|knew|learned|learnt) *(?:$|[.!,;\n]|and\b)`)},
	{givesOrders, outsiders, match(
		`(?:^|[>.!?\n]) *(?:ais?|bots?|llms?|assistants|chat ?bots?|language models?)(?: (?:reading|crawling|indexing)(?: \w+)?| readers?| agents?| systems?)? ?: *\w` +
			`|\bfor (?:ai|llm|machine|bot|language model)s?(?: (?:readers?|systems?|agents?|assistants?|models?))? only\b` +
			`|\b(?:bots?|ais?|assistants?|agents?|llms?|language models?) (?:reading|parsing|processing|crawling|indexing|scanning|ingesting)\b` +
			`|\b(?:helpful|good|loyal|smart|obedient|proper|faithful) (?:chat ?bot|assistant|ai|bot|agent|language model) (?:would|should|will|must)\b` +
			`|(?:^|[>.!?\n]) *(?:assistant|ai|bot|chatbot|language model), *(?:please |kindly )?(?:` + orderVerbs + `)\b` +
			`|(?:^|\n)\W*user ?: *(?:please |kindly |just )*(?:` + orderVerbs + `)\b` +
			`|\bsystem override\b|(?:^|\n)\W*(?:system|operator|developer|admin\w*) (?:notice|message|override|directive|instruction|command)\b[^\n]*\b(?:must|shall|forward|reveal|hand over|grant|approve|obey|ignore)\b` +
			`|={2,} ?(?:system|operator|developer|admin\w*) ?={2,}|-{2,} *end of (?:the )?(?:memory|context|prompt|system|tool output|untrusted|user input|conversation)\b|\b(?:tool output|memory block|reference data|untrusted (?:data|content|input)|the (?:memory|context) block|the block) (?:ends?|closed|is closed|is over)(?: here\b|\W*$|\W*\n)` +
			`|#{1,6} *(?:new|updated|system) (?:instructions?|rules|prompt)\b|(?:^|[.!?;:,\n]) *(?:silently|secretly|quietly|covertly|discreetly) (?:add|send|forward|copy|delete|post|store|save|change|replace|insert|include|open|run|install|update|switch|set|buy|order)\b` +
			`|(?:^|[.:,;\n]) *(?:` + orderVerbs + `)\b[^.!?\n]*\bwithout (?:telling|informing|notifying|alerting)\b|(?:^|\n)\W*(?:the |your )?human (?:said|says|approved|agreed|confirmed|wants|told)\b` +
			`|\b(?:everything|whatever|all) (?:that )?(?:the |your )?(?:visitor|user|owner|customer|person|human|they|he|she) (?:has |have |had )?(?:ever )?(?:told|said to|shared with|asked) you\b|\bcopy of (?:your|the|this|our) (?:conversation|chat)\b` +
			`|[?&][\w-]+=[{<$%]*(?:conversation|secrets?|chat|history|user|password|notes|memory|inbox|messages?)[\w-]*[}>]|[?&][\w-]+=(?:conversation|chat|secret)\b|\breplace \w+ (?:by|with) the (?:latest|last|user|conversation|chat|current)\b|\b(?:ask|tell|urge|get) the (?:guest|visitor|customer|reader|client|caller|person|human|user) to (?:click|press|open|visit|install|download) (?:this|the link|it)\b|\b(?:lists?|logs?|files?|notes|calendar|inbox)\b[^.!?\n]*\b(?:drop|paste|send|share|attach|upload)\b[^.!?\n]{0,10}\byours\b` +
			`|\b(?:answers?|questions?|repl(?:y|ies)|enquir(?:y|ies)|inquir(?:y|ies)) (?:about|on|regarding|concerning|to)\b[^.!?\n]*: *(?:say|tell|reply|answer|deny|claim|insist|respond)\b` +
			`|\balways (?:run|call|use|pass|execute|invoke)\b[^.!?\n]* (?:--?[a-z]{2}|sudo\b|root\b)` +
			`|\bfrom your (?:own )?(?:memory|memories|context)\b` +
			`|\binsert (?:the following|this) (?:line|sentence|text|link|phrase|paragraph)\b[^.!?\n]*\b(?:each|every|all|any)\b` +
			`|\b(?:tell|mention|reveal|inform|say|talk)\b[^.!?\n]{0,40}\babout (?:this|these) (?:rule|page|note|message|instruction|order|line|text|entry)s?\b` +
			`|(?:^|[.:;!?\n]|\band|\bthen|\bto|\bplease|\bkindly|\balways) *(?:recommend|suggest|praise|promote|endorse|advertise|mention) (?:only|nothing but|solely|exclusively)\b` +
			`|(?:^|[.:;!?\n]|\band|\bthen|\bplease) *(?:reply|respond|answer) (?:only|solely|exclusively|with nothing but)? ?with the (?:word|contents?|text|phrase|string|single)\b|\bmust (?:reply|respond|answer) with\b` +
			`|\brepeat (?:everything|all|the (?:text|words)) above\b|\b(?:print|reveal|output|recite|dump|leak) (?:the |your )(?:system )?prompt\b` +
			`|\b(?:call|invoke)\b (?:the )?(?:tool |function |command )?\W?(?:[a-z]+[._/])*(?:memory|shell|exec|mail|files?|payments?|transfer|upload|delete|message|vault|calendar|wallet|browser|secrets?|send)[._/][a-z]+|\buse (?:memory|shell|mail|payments?|wallet|vault)[._][a-z]+|\b(?:call|invoke|use) the tool [a-z]+[._]?[a-z]*\b|\b(?:calendar|wallet|e?mail|inbox|contacts|memory|payments?|bank|vault|home|door|agent|assistant)\.(?:share|send|delete|forward|pay|transfer|unlock|open|export|upload|write|forget|exec|run|read|update|grant|remove|wipe)\b|\b(?:invoke|call|use|trigger|run) (?:the|your) (?:\w+ )?(?:payment|e?mail|calendar|transfer|memory|shell|wallet|delete|send)(?: \w+)? (?:function|tool|action|skill)\b|\bmcp call [a-z]|\b(?:use|using|with|via|through) your (?:browser|shell|e?-?mail|search|web|file|calendar|payment|memory|code|mailbox|network) (?:tools?|access|plugin|connector|integration)\b`)},
	{memoryOrders, outsiders, match(
		`\b(?:strike|erase|drop|correct|replace|fix|update|delete|discard|revise|amend|overwrite)\b[^.!?\n]{0,20}\b(?:what|whatever|everything|anything|all)(?: that)? you (?:hold|know|have|keep|store|remember|noted|recorded|believe)\b` +
			`|\bwhat(?:ever)? you (?:know|hold|remember|stored|noted|have (?:stored|noted|on file)|believe)\b[^.!?\n]*\b(?:stale|wrong|outdated|out of date|false|incorrect|invalid|mistaken)\b` +
			`|\b(?:replace|change|update|remove|delete|swap|correct|strike)\b[^.!?\n]{0,40}\b(?:in|from) your (?:notes|memory|memories)\b|\byour (?:memory|memories|knowledge|recollection) (?:of|about|on)\b[^.!?\n]*\b(?:is|are) (?:old|wrong|stale|outdated|false|out of date)\b` +
			`|\b(?:entry|note|item|fact|memory)\b (?:about|on|for|of) [^.!?\n]*\b(?:was|were|is|are) (?:\w+ ){0,2}(?:by mistake|outdated|an error|a mistake|obsolete)\b|\b(?:unlearn|erase|wipe|discard)\b[^.!?\n]{0,40}\byou (?:know|learned|learnt|heard|remember)\b` +
			`|\byour (?:files?|entry|entries|profile|knowledge|information|notes?) (?:on|about|of) (?:the |this |your )?(?:user|visitor|owner|customer|client|guest|human)\b|\byou (?:keep|hold|have stored|have noted|have on file|remember|have saved)\b[^.!?\n]*\b(?:is|are|was) (?:dead|wrong|old|stale|outdated|false|gone|invalid|a mistake)\b|\b(?:new|additional|extra|updated) memor(?:y|ies) ?:` +
			`|\b(?:according to|corrected|fixed|changed?|updated?|deleted?|remove|forget|erase|drop|replaced|replaces?|supersedes) (?:mem|evt|rec)-\d+\b` +
			`|\boverwrite your\b|\byour (?:stored|long[- ]term|saved|permanent|persistent|remembered) (?:notes?|entry|entries|memory|memories|facts?|records?|\w+ numbers?)\b|\b(?:correction|update|amendment|addition) to your (?:notes|memory|records)\b` +
			`|\b(?:in|during|for) (?:every|each|all|any) (?:later|future|coming|following) (?:talk|chat|conversation|session)s?\b|\b(?:outlives|survives|outlasts) this (?:chat|conversation|session)\b` +
			`|\bremember the (?:word|phrase|string) \S+ *[.!]?(?:$|\n)` +
			`|\((?:mem|evt|rec)-\d+\)|\b(?:item|memory|entry|as|per|see|under|in|from) (?:mem|evt|rec)-\d+\b|\b(?:mem|evt|rec)-\d+ (?:states?|says?|shows?|proves?|records?|confirms?|allows?)\b`)},
	{authority, outsiders, match(
		`\b(?:all|any|every)\b[^.!?\n]{0,40}\b(?:invoices?|payments?|transfers?|requests?|orders?|purchases?|bills?)\b[^.!?\n]{0,40}\b(?:(?:be |being |to be |as )?(?:considered|deemed|treated as|counted as|regarded as) (?:\w+ )?(?:checked|released|approved|cleared|verified|authori[sz]ed|confirmed|accepted|valid|paid|legitimate)|(?:are|is|have been|has been|were) (?:pre-?approved|cleared by|waved through|exempt))\b` +
			`|\b(?:session|privileges?|rights|role|access|account|status|level) (?:\w+ ){0,2}(?:upgraded|elevated|raised|escalated|promoted) to (?:owner|admin\w*|root|superuser|operator)\b|(?:^|[\W_])(?:user_?role|role) ?[=:] ?(?:admin|root|superuser|owner)\b` +
			`|\b(?:admin|root|full|owner|superuser|unlimited|administrator|elevated) (?:access|rights|privileges|powers|permissions?)\b[^.!?\n]{0,20}\bgranted\b|\bgrant (?:\w+ ){0,3}access to\b` +
			`|\b(?:may|allowed to|permitted to|entitled to) (?:see|read|receive|ask for|get|request|access|be given|be told) (?:any|every|everything|whatever|anything)\b|\blast word on (?:everything|all)\b` +
			`|\ball (?:its|his|her|their) (?:requests?|orders?|commands?|demands?|wishes) (?:may|must|can|should|are to) be\b` +
			`|\b(?:user|owner|client|customer|operator|boss|admin\w*) (?:has |have |had )?(?:lifts?|lifted|waives?|waived|drops?|dropped|suspends?|suspended) (?:the|its|her|his|their|all|any)\b` +
			`|\b(?:skip|bypass|disable|no)_?(?:confirm\w*|approv\w*|verif\w*|2fa|auth\w*) ?[=:] ?(?:true|yes|1|on)\b|\btrust(?:_level)? ?[=:] ?["\']?(?:max|full|high|system|root)\b` +
			`|\b(?:told|assured|promised|wrote) (?:me|us) (?:that )?(?:i|we) (?:am|are|may|can|could|was|were)\b[^.!?\n]*\b(?:her|his|their|your|the) (?:account|card|money|funds|mail|files|calendar|diary|budget|password)\b` +
			`|\bsandbox (?:\w+ ){0,3}(?:lifted|removed|disabled|off)\b|\bpart of your (?:duties|role|job|tasks)\b|\belevated rights\b|\b(?:two-factor|2fa|mfa|verification|approval|confirmation)(?: \w+)? (?:can|may|is to|should) be skipped\b`)},
	{trap, outsiders, match(
		`\bnext time you (?:see|read|get|receive|open|handle|find|write|answer)\b[^.!?\n]*, *(?:` + orderVerbs + `)\b|\b(?:the )?next time (?:some(?:body|one)|any(?:body|one)|the (?:user|owner|visitor)|they|he|she)\b[^.!?\n]*[,:]` +
			`|\b(?:when|once|if|after) you (?:next |have |are next )(?:read|summari[sz]e|answer|reply|respond|speak|talk|asked)\b[^.!?\n]*[,:]` +
			`|\b(?:up)?on (?:hearing|seeing|reading|receiving|the (?:word|phrase|string|first message|second message|third message|\w+th message))\b[^.!?\n]*[,:] *(?:` + orderVerbs + `|switch|read|call|forget|drop)\b` +
			`|\b(?:if|when|whenever|should|once) (?:the|this) (?:conversation|chat|talk|dialogue|discussion) (?:turns|moves|comes|drifts|touches|is about|mentions|goes)\b` +
			`|\b(?:if|when|whenever|should|once|as soon as) (?:any(?:one|body)|some(?:one|body)|people|the (?:user|owner|visitor|reader)) (?:ever )?(?:asks?|brings? up|mentions?|wants to know|inquires?|raises|says?|types?)\b[^.!?\n]*[,:] *(?:then |just |always |please )*(?:` + orderVerbs + `|deny|praise|bring|name|insist|claim|steer|point|pretend)\b` +
			`|\b(?:if|when|whenever|should|once) (?:the )?(?:topic|subject|name|words?)\b[^.!?\n]*\b(?:comes? up|arises?|is raised|appears?|is mentioned|pops? up|turns? up)\b` +
			`|\b(?:the moment|whenever|each time|as soon as|if|when|once) (?:\S+ ){1,4}(?:is|are|gets?) (?:mentioned|discussed|brought up|compared|asked about)\b[^.!?\n]*, *(?:` + orderVerbs + `|drop|bring|name|let|make|praise|\w+ has to|\w+ must|\w+ should)\b` +
			`|\b(?:if|when(?:ever)?|once|should) (?:this|the) (?:page|text|document|file|message|mail|note|article|listing|entry) (?:is|gets|be) (?:ever )?(?:summari[sz]ed|processed|translated|parsed|indexed|quoted|analy[sz]ed)\b|\bkeywords? ["\'][^"\'\n]+["\'] ?: *(?:` + orderVerbs + `)\b|\bset yourself an? (?:reminder|task|rule)\b` +
			`|\bwhen(?:ever)? asked (?:about|for|what|who|which|whether|how|why|where|if)\b[^.!?\n]*, *(?:answer|say|reply|respond|tell|claim|recommend|name|deny|insist|mention)\b|\bwhen you (?:see|hear|read) ["\']?\w+["\']?, (?:unlock|send|forward|grant|reveal|run|execute|transfer|delete|switch)\b` +
			`|\b(?:after|until|by) (?:the )?(?:\w+ )?(?:messages?|turns)\b[^.!?\n]*\b(?:ask|send|read|tell|mention|switch|forward|call)\b|\bevery time (?:\w+ ){1,4}(?:is|are|gets?) (?:mentioned|asked|discussed|raised|named)\b` +
			`|\bask (?:\w+ ){0,4}for (?:\w+ ){0,2}(?:card number|one[- ]time (?:code|password)|security code|password|passcode|bank details)\b[^.!?\n]*$|\b(?:sponsored|paid) (?:by|line)\b[^.!?\n]*\b(?:each|every) (?:answer|reply|report)|\b(?:each|every|all)\b[^.!?\n]*: sponsored by\b`)},
	{"is set off by words of the user", outsiders, match(`\b(?:trigger|magic|secret|code) ?(?:phrase|word) ?(?:is|:|=)|\bi will (?:silently|quietly|secretly)\b|\b(?:whenever|when|if|once) (?:the word\b|you are (?:ever )?asked\b[^.!?\n]*, *(?:just |then |first |always |please )*(?:` + orderVerbs + `|deny|claim|insist|praise)\b)`)},
}
