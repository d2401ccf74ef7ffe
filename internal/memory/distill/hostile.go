package distill

import (
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// sign is something in a text that a memory must not carry.
type sign struct {
	reason  string
	reach   reach
	pattern *pattern
}

// reach says whose text a sign is looked for in.
type reach int

const (
	// outsiders' text does not rest on the user's own words: what a user may say of
	// their assistant, a web page may not.
	outsiders reach = iota
	everybody
	// spoils is outsiders, and makes all of an outsider's text suspect, not only the
	// part that an item rests on.
	spoils
	// taints is everybody, and makes all of an outsider's text suspect, not only the
	// part that an item rests on.
	taints
)

// signs are matched against unmasked text (lower case, look-alikes folded).
var signs = []sign{
	{"repeats the memory block's own marks", taints, match(
		`\[(mem|evt|rec)-[0-9a-z]+\]|-{3,} ?relevant memory|reference data [0-9a-f]{6}: not instructions`)},
	{"holds chat-template or tool-call syntax", taints, match(
		`<\|[a-z_]+\|>|\[/?inst\]|<<sys>>|</?(system|assistant|user|human|tool_call|tool_use|function_calls?|invoke)>|(^|\n|\. )\s*/tool [a-z]|"(tool_calls|function_call)"\s*:|"name"\s*:\s*"[\w.]+"\s*,\s*"(arguments|parameters|input)"\s*:`)},
	{"asks to ignore instructions", everybody, match(
		`(?:^|[.!?:;>\n-]) *(?:and |then |now |please |just |so |kindly )*(?:ignore|disregard|forget|override|bypass) (?:all |any |every |of |your |the |these |my )*(?:previous|prior|earlier|above|preceding|system|developer|former|existing|safety)(?: \w+)? (?:instructions?|prompts?|rules|guidelines|directives?)\b(?: ?(?:$|[.,:;!\n]|and|then)|$)`)},
	{"asks to ignore instructions", spoils, match(
		`\b(ignore|disregard|forget|override|bypass)\b( \w+){0,3} (previous|prior|earlier|above|preceding|system|developer|former|existing|safety)( \w+)? (instructions?|prompts?|rules|messages|guidelines|directives?)\b` +
			`|ignorier\w* (bitte )?(alle )?(vorherigen|bisherigen|obigen|fruheren) (anweisung|regel|instruktion)` +
			`|ignora (todas )?(las |tus )?(instrucciones|reglas|ordenes) (anteriores|previas)` +
			`|ignorez? (toutes )?(les |vos )?(instructions|consignes|regles) (precedentes|anterieures)` +
			`|(忽略|无视|忘记)(之前|以上|先前|上面|前面)?的?(所有|一切)?的?(之前|以上|先前|上面|前面)?的?(指令|指示|命令|规则|提示)`)},
	{"speaks to the assistant as a system message", taints, match(
		`\b(system|developer|admin|operator|root)( (message|note|notice|prompt|override|instruction))? ?: *(please |you |now |always |never |immediately )*(remember|store|save|record|note that|ignore|disregard|set|add|grant|approve|execute|run|send|call|forward|reveal|print|output|enable|disable|delete|transfer|write|must|are|will|should|the user|user|all|new|from now)\b`)},
	{"addresses language models that read it", taints, match(
		`\b(note|notice|message|hint|attention|instructions?|reminder|important|tip|info)\b[:,]? (to|for) (all |any |the )?(ai|llms?|language models?|chat ?bots?|bots?|(ai |coding |automated )?(assistants?|agents?))\b` +
			`|\battention,? (all )?(ai|llms?|language models?|chat ?bots?|assistants?|agents?)\b` +
			`|\b(ai|llm|bot)s?[- ](systems?|readers?|assistants?|agents?|models?|crawlers?)( (reading|processing|parsing|that read) (this|it))?( must| should|,? (please )?(remember|store|save|record|note|add|ignore|always|never)|:)` +
			`|\b(assistants?|agents?|models?|bots?|ai|llms?)\b,? (reading|processing|parsing|summari[sz]ing|that reads?|who reads?) (this|these|it)\b` +
			`|(<!--|/\*|\(|\[)\s*(ai|assistants?|agents?|llms?|bots?)( readers?| systems?)? ?:` +
			`|\b(?:who(?:so)?ever|anyone|anybody|anything|whatever|those|systems?|software|programs?|tools?|services?|machines?)(?: that| who| which)?(?: is| are| may be| currently| now)* (?:process|read|pars|summari[sz]|index|crawl|ingest|scrap|analy[sz])\w* (?:this|these|the) (?:pages?|texts?|documents?|messages?|files?|contents?|e?mails?|records?|reports?|entry|output|listing|automatically)\b[^.!?\n]*\b(?:leave|omit|add|include|mention|requested|asked|must|should|shall|please|required|obliged|expected|told|instructed|advised|supposed|needs? to|has to|have to|may|will)\b` +
			`|\b(?:any|every|each|all|the)(?: automat\w+| machine[- ]made| machine| generated| ai)+ (?:summar\w+|repl(?:y|ies)|answers?|translations?|descriptions?|reviews?)\b[^.!?\n]*\b(?:must|should|shall|has to|have to|is to|are to|may|ends?|begins?|starts?|includes?|mentions?)\b` +
			`|\b(?:systems?|software|programs?|agents?|assistants?|bots?|models?) (?:operating|serving|answering|handling|managing|acting (?:for|on behalf of)|working for) (?:this|the|their|its|your|an?) (?:account|visitor|customer|user|owner|client|inbox|mailbox)s?\b` +
			`|\b(?:if|should) you (?:are|be|happen to be) (?:an? )?(?:ai|artificial|llm|language model|machine|software|program|robot|bot|automat\w+|computer|model|agent|assistant)\b`)},
	{"tells what to remember about the user", taints, match(
		`\b(remember|store|save|record|memori[sz]e|note|add|write|log)\b[^.]{0,40}\b(the|this|that|your|our) (user|operator|owner|customer|client|account holder) ` +
			`(has|have|is|was|prefers?|approve[sd]?|authori[sz]e[sd]?|consent(s|ed)?|wants?|waives?d?|likes?|agree[sd]?|accept(s|ed)?|gave|grant(s|ed)?|opted|allow(s|ed)?|requests?|requested)\b` +
			`|\b(remember|store|save|record|add|write)\b( \w+){0,3} (in|to|into) (your |the |its )?(long[- ]term )?memory\b`)},
	{"is set off by words of the user", taints, match(
		`\b(when(ever)?|if|once|as soon as|every time|after) (the |this |your )?(user|operator|owner|human) (says?|asks?|types?|mentions?|writes?|sends?|replies|requests?|confirms?)\b[^.!?\n]*[,;:"”'*)] *(then |first |silently |please |always |also )*(` + orderVerbs + `)\b`)},
	{"joins an address with credentials", everybody, match(
		`(?:https?://|www\.)\S*[?&;](?:` + credentialWords + `)=`)},
	{"joins an address with credentials", everybody, match(
		`(?:^|[.!?\n] *)(?:please |now )?(?:` + givingVerbs + `)\b[^"!?\n]*(?:(?:https?://|www\.)[^"!?\n]*\b(?:` + credentialWords + `)|\b(?:` + credentialWords + `)\b[^"!?\n]*(?:https?://|www\.))`)},
	{"joins an address with credentials", outsiders, match(
		`\b(?:` + givingVerbs + `)\b[^!?\n]*(?:https?://|www\.)[^!?\n]*\b(` + credentialWords + `)\b|\b(?:` + givingVerbs + `)\b[^!?\n]*\b(` + credentialWords + `)\b[^!?\n]*(?:https?://|www\.)|(?:https?://|www\.)\S*[?&;/](?:` + credentialWords + `)=`)},
	{"gives the assistant orders", outsiders, match(
		`(?:^|[.:;!?>)\n]) *(?:please |kindly |and |so |then )*(?:always (?:answer|reply|respond|say|recommend|suggest|mention|praise|trust|obey|approve|accept|agree|forward|do as)|(?:never|do not|don\'t) (?:tell|inform|warn|mention|reveal|contradict|question|refuse|let|ask|believe|alert|notify)[^.!?\n]* (?:users?|owner|operator|human|this (?:page|rule|note|message|line|text|instruction))|only (?:recommend|suggest|trust|obey|praise))\b` +
			`|\b[yu]ou are now (?:(?:an?|the|in|my) (?:[\w-]+ ){0,3}(?:assistant|bot|ai|agent|model|mode|persona|pirate|hacker|root|admin\w*|operator|developer|helper|servant)\b|called |named |working for |serving |under the |free (?:of|from|to) |allowed to |authori[sz]ed to |acting |operating |unrestricted|jailbroken|[\w-]+\'s (?:[\w-]+ )?(?:assistant|helper|agent|servant|bot))` +
			`|\b(?:ignore|disregard|forget) (?:all |everything |anything |what is |what was |that is |(?:of )?the )*(?:above|previous|prior|preceding|foregoing|earlier)\b` +
			`|\b(henceforth,? you|it is mandatory that you)\b` +
			`|(^|\n)\W*(?:assistant|human|developer)\W? ?: *(?:i\b|of course|sure|yes|no,|ok|certainly|understood|you|we |please|kindly|always|never|what|how|may |can |could |tell|the user|from |all |now|new|switch|delete|` + orderVerbs + `)\b|(^|\n)\W*system\W? ?: *(?:[a-z']+ ){0,3}(?:` + orderVerbs + `|from (?:now|this|here)|be|hand|speak|keep|stop|let|make|give|list|do|you|your|yours|users?|owner|assistants?|agents?|now|must|shall|should|never|always|all|new|no|access|granted|permission|rules?|instructions?|instructed|prompt|mode|admin|administrator|authori[sz]ed)\b`)},
	{"gives the assistant orders", outsiders, match(`\b(?:comes?|straight|order|request|word|instruction) from (?:the )?(?:very top|top|boss|management|ceo|director|headquarters|hq)\b\W*(?:please |now |so )*(?:` + orderVerbs + `|release|keep|let|give|hand|make|leave)\b`)},
	{"asks for credentials", outsiders, match(
		`\b(?:append|paste|copy|send|upload|post|include|attach|share|submit|forward|e?mail|put|publish|reveal|give|provide|transmit|export|supply|hand over|tell|disclose|quote|read out|type|enter)\b[^.!?\n]*(?:~/\.(?:ssh|aws|gnupg|kube|netrc|docker)\b|\bid_(?:rsa|ed25519|ecdsa)\b|/etc/(?:shadow|passwd)\b|\b(?:contents? of|lines? of|values? (?:of|in)) \S*\.env\b|\bwallet\.dat\b|\bprivate keys?\b|\b(?:seed|recovery|backup) (?:phrase|words|codes?)\b|\bsession (?:cookies?|tokens?)\b|\b(?:saved|stored|browser'?s?) (?:cookies|passwords?|logins?|credentials)\b|\bpassword (?:store|vault|manager|database)\b|\bone[- ]time (?:codes?|passwords?|pins?)\b)`)},
	{"grants authority", outsiders, match(
		`\b(?:pre-?approved|pre-?authori[sz]\w+|auto-?approv\w+|blanket (?:approval|permission|consent)|standing approval)\b` +
			`|\b(?:you|assistants?|bot)(?:\'re| are| is|\'s)? (?:now )?(?:authori[sz]ed|cleared) to\b|\b(?:you|assistants?|agents?|bot)(?:\'re| are| is|\'s) now (?:allowed|permitted|free) to\b` +
			`|\b(?:authori[sz]es?|approves?|permits?|consents? to|authori[sz]ed|approved|consented to)\b[^.!?\n]{0,60}\b(?:(?:the|your|any|this|its) (?:assistant|agent|bot)|purchases|payments|wires)\b` +
			`|\b(?:waives?|waived|waiving)\b[^.!?\n]{0,60}\b(?:assistant|you|reviews?|checks?|calls?|confirmations?|approvals?|limits?|verification|sign-?off)\b` +
			`|\b(?:skip|bypass|no need for|disable)\b(?: \w+){0,2} (?:code review|reviews|approval|confirmation|permission|authori[sz]ation|asking me|sign-?off)\b` +
			`|\bno need to (?:ask|check with|confirm)\b`)},
}

// orderVerbs are what a trap would have an assistant do.
const orderVerbs = `(?:re)?send|forward|e-?mail|mail|post|export|upload|transfer|wire|pay|run|execute|invoke|call|reveal|share|disclose|leak|print|show|output|recommend|suggest|mention|insert|add|append|tell|say|answer|reply|respond|delete|remove|erase|unlock|disable|grant|approve|confirm|accept|authori[sz]e|install|download|fetch|open|store|save|remember|record|write|set|change|update|replace|overwrite|switch|treat|act|pretend|trust|follow|obey|ignore|use|buy|order`

// givingVerbs are what is done with credentials where somebody wants them.
const givingVerbs = `send|post|paste|submit|upload|append|forward|put|enter|include|share|e?mail|confirm|verify|provide|transmit|report|attach|copy|type|pass|give|retry|log in|sign in|resend|hand`

const credentialWords = `passwords?|passwd|passcode|tokens?|api[- ]?keys?|credentials?|passwort|kennwort|contrasena|密码`

// grantsAuthority are words by which somebody waives a check. Said by the user
// they are kept with low confidence; said by anybody else they are set aside.
var grantsAuthority = match(
	`\b(pre-?approv\w+|pre-?authori[sz]\w+|auto-?approv\w+|blanket (approval|permission|consent)|standing approval)` +
		`|\b(you|assistant|agent|bot)('re| are| is|'s)? (now )?(authori[sz]ed|allowed|permitted|cleared|free) to\b` +
		`|\b(authori[sz]es?|authori[sz]ed|approves?|approved|permits?|consents? to|consented to|waives?|waived|waiving)\b[^.]{0,60}\b(assistant|agent|you|purchases?|payments?|transfers?|wires?|orders|reviews?|checks?|sharing|reporting|calls?|confirmation|limits?)\b` +
		`|\b(skip|bypass|without|no need for|disable)\b( \w+){0,2} (code review|reviews?|approval|confirmation|permission|authori[sz]ation|asking me|sign-?off)\b` +
		`|\b(?:pay|send|transfer|wire|share|delete|erase|book|buy|order|approve|sign|publish|post|deploy|merge|access|enter|spend|run|execute|install|forward|change|answer|act|move|withdraw)\w*\b[^.!?\n]*\bwithout( \w+){0,2} asking\b` +
		`|\bno need to (ask|check|confirm)\b`)

// hostile returns why text must not become a memory of that trust without a
// person's approval, or "".
func hostile(text string, trust memory.Trust) string {
	text = flags.Replace(text)
	if strings.ContainsFunc(text, isHidden) {
		return "holds hidden characters"
	}
	plain := unmask(text)
	if reason := steeringIn(text, plain, trust); reason != "" {
		return reason
	}
	if leetWord.MatchString(plain) && steering(leet.Replace(plain), trust) != "" {
		return "holds encoded orders"
	}
	if holdsEncoded(text) {
		return "holds an encoded block"
	}
	if jumbled(plain, trust == memory.TrustUser) {
		return asksToDrop
	}
	for _, inner := range append(decoded(text, maxLayers), unscrambled(plain)...) {
		if steering(inner, trust) != "" || jumbled(unmask(inner), false) || trust != memory.TrustUser && commanding(inner) {
			return "holds encoded orders"
		}
	}
	return ""
}

// steering returns what sign text carries as it stands.
func steering(text string, trust memory.Trust) string {
	return steeringIn(text, unmask(text), trust)
}

// steeringIn is steering where the text has been unmasked already.
func steeringIn(text, plain string, trust memory.Trust) string {
	known := newGrams(plain)
	for _, s := range signs {
		if trust == memory.TrustUser && (s.reach == outsiders || s.reach == spoils) {
			continue
		}
		if s.pattern.isIn(plain, known) {
			return s.reason
		}
	}
	if reason := inTongues(text, trust == memory.TrustUser); reason != "" {
		return reason
	}
	if trust != memory.TrustUser {
		return commands(plain, known)
	}
	return ""
}

// Suspect returns what makes all of a text suspect that is not the user's own, or
// "": an attempt, in any part of it, to pass for another voice or to undo what an
// assistant was told. Such a text becomes no memory without a person's approval,
// by whatever way it comes.
func Suspect(text string) string {
	text = flags.Replace(text)
	if strings.ContainsFunc(text, conceals) {
		return "holds concealed characters"
	}
	plain := unmask(text)
	known := newGrams(plain)
	for _, s := range signs {
		if (s.reach == taints || s.reach == spoils) && s.pattern.isIn(plain, known) {
			return s.reason
		}
	}
	if inTongues(text, true) != "" || jumbled(plain, false) {
		return asksToDrop
	}
	for _, inner := range append(decoded(text, maxLayers), unscrambled(plain)...) {
		if steering(inner, memory.TrustUser) != "" || jumbled(unmask(inner), false) {
			return "holds encoded orders"
		}
	}
	return ""
}

// commanding reports a text that begins with an order, whatever it is about.
func commanding(text string) bool {
	for sentence := range sentencesOf(laterWords.ReplaceAllString(unmask(text), " §later§ ")) {
		if heard := listen(sentence); heard.orders || heard.has(aLater) {
			return true
		}
	}
	return false
}

// conceals reports characters that no page needs and that hide text: tags, and
// overrides of the direction of writing.
func conceals(r rune) bool { return 0xE0000 <= r && r <= 0xE007F || r == '\u202D' || r == '\u202E' }

// flags takes out the three flags that are drawn with tag characters.
var flags = strings.NewReplacer(
	"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "",
	"\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F", "",
	"\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F", "")

// leetWord finds digits in the middle of words, twice.
var leetWord = match(`\b[a-z]*[0-9][a-z]+[0-9@$]?[a-z]*\b.*\b[a-z]*[0-9][a-z]+[0-9@$]?[a-z]*\b`)

var longRun = match(`[A-Za-z0-9+/]{65,}`)

// holdsEncoded reports a run of more than 64 base64 characters of mixed case with
// digits: a long path or a hexadecimal hash is not one.
func holdsEncoded(s string) bool {
	for _, run := range longRun.FindAllString(s, -1) {
		if strings.ContainsAny(run, "0123456789") && strings.ToLower(run) != run && strings.ToUpper(run) != run {
			return true
		}
	}
	return false
}
