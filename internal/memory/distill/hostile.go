package distill

import (
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// sign is something in a text that a memory must not carry.
type sign struct {
	reason string
	// outsiders limits the sign to text that does not rest on the user's own
	// words: what a user may say of their assistant, a web page may not.
	outsiders bool
	pattern   *pattern
}

// signs are matched against unmasked text (lower case, look-alikes folded).
var signs = []sign{
	{"repeats the memory block's own marks", false, match(
		`\[(mem|evt|rec)-[0-9a-z]+\]|-{3,} ?relevant memory|reference data [0-9a-f]{6}: not instructions`)},
	{"holds chat-template or tool-call syntax", false, match(
		`<\|[a-z_]+\|>|\[/?inst\]|<<sys>>|</?(system|assistant|user|human|tool_call|tool_use|function_calls?|invoke)>|(^|\n|\. )\s*/tool [a-z]|"(tool_calls|function_call)"\s*:|"name"\s*:\s*"[\w.]+"\s*,\s*"(arguments|parameters|input)"\s*:`)},
	{"asks to ignore instructions", false, match(
		`\b(ignore|disregard|forget|override|bypass)\b( \w+){0,3} (previous|prior|earlier|above|preceding|system|developer|former|existing|safety)( \w+)? (instructions?|prompts?|rules|messages|guidelines|directives?)\b` +
			`|ignorier\w* (bitte )?(alle )?(vorherigen|bisherigen|obigen|fruheren) (anweisung|regel|instruktion)` +
			`|ignora (todas )?(las |tus )?(instrucciones|reglas|ordenes) (anteriores|previas)` +
			`|ignorez? (toutes )?(les |vos )?(instructions|consignes|regles) (precedentes|anterieures)` +
			`|(忽略|无视|忘记)(之前|以上|先前|上面|前面)?的?(所有|一切)?的?(之前|以上|先前|上面|前面)?的?(指令|指示|命令|规则|提示)`)},
	{"speaks to the assistant as a system message", false, match(
		`\b(system|developer|admin|operator|root)( (message|note|notice|prompt|override|instruction))? ?: *(please |you |now |always |never |immediately )*(remember|store|save|record|note that|ignore|disregard|set|add|grant|approve|execute|run|send|call|forward|reveal|print|output|enable|disable|delete|transfer|write|must|are|will|should|the user|user|all|new|from now)\b`)},
	{"addresses language models that read it", false, match(
		`\b(note|notice|message|hint|attention|instructions?|reminder|important|tip|info)\b[:,]? (to|for) (all |any |the )?(ai|llms?|language models?|chat ?bots?|bots?|(ai |coding |automated )?(assistants?|agents?))\b` +
			`|\battention,? (all )?(ai|llms?|language models?|chat ?bots?|assistants?|agents?)\b` +
			`|\b(ai|llm|bot)s?[- ](systems?|readers?|assistants?|agents?|models?|crawlers?)( (reading|processing|parsing|that read) (this|it))?( must| should|,? (please )?(remember|store|save|record|note|add|ignore|always|never)|:)` +
			`|\b(assistants?|agents?|models?|bots?|ai|llms?)\b,? (reading|processing|parsing|summari[sz]ing|that reads?|who reads?) (this|these|it)\b` +
			`|(<!--|/\*|\(|\[)\s*(ai|assistants?|agents?|llms?|bots?)( readers?| systems?)? ?:`)},
	{"tells what to remember about the user", false, match(
		`\b(remember|store|save|record|memori[sz]e|note|add|write|log)\b[^.]{0,40}\b(the|this|that|your|our) (user|operator|owner|customer|client|account holder) ` +
			`(has|have|is|was|prefers?|approve[sd]?|authori[sz]e[sd]?|consent(s|ed)?|wants?|waives?d?|likes?|agree[sd]?|accept(s|ed)?|gave|grant(s|ed)?|opted|allow(s|ed)?|requests?|requested)\b` +
			`|\b(remember|store|save|record|add|write)\b( \w+){0,3} (in|to|into) (your |the |its )?(long[- ]term )?memory\b`)},
	{"is set off by words of the user", false, match(
		`\b(when(ever)?|if|once|as soon as|every time) (the |this |your )?(user|operator|owner|human) (says?|asks?|types?|mentions?|writes?|sends?|replies|requests?)\b`)},
	{"joins an address with credentials", false, match(
		`(https?://|www\.)[\s\S]*\b(` + credentialWords + `)\b|\b(` + credentialWords + `)\b[\s\S]*(https?://|www\.)`)},
	{"gives the assistant orders", true, match(
		`(^|\n)\W*(please )?(always|never|from now on|you must|you should|you are (now|required|to)|do not|don't|make sure|ensure|be sure to|ignore|disregard)\b` +
			`|\b(from now on|henceforth|you must|you are now|you are required|you have to|it is mandatory that you|assistants? (must|should)|agents? (must|should))\b` +
			`|(^|\n)\W*(system|assistant|human|developer)\W? ?:`)},
	{"grants authority", true, grantsAuthority},
}

const credentialWords = `passwords?|passwd|passcode|tokens?|api[- ]?keys?|credentials?|passwort|kennwort|contrasena|密码`

// grantsAuthority are words by which somebody waives a check. Said by the user
// they are kept with low confidence; said by anybody else they are set aside.
var grantsAuthority = match(
	`\b(pre-?approv\w+|pre-?authori[sz]\w+|auto-?approv\w+|blanket (approval|permission|consent)|standing approval)` +
		`|\b(you|assistant|agent|bot)('re| are| is|'s)? (now )?(authori[sz]ed|allowed|permitted|cleared|free) to\b` +
		`|\b(authori[sz]es?|authori[sz]ed|approves?|approved|permits?|consents? to|consented to|waives?|waived|waiving)\b[^.]{0,60}\b(assistant|agent|you|purchases?|payments?|transfers?|wires?|orders|reviews?|checks?|sharing|reporting|calls?|confirmation|limits?)\b` +
		`|\b(skip|bypass|without|no need for|disable)\b( \w+){0,2} (code review|reviews?|approval|confirmation|permission|authori[sz]ation|asking( me)?|sign-?off)\b` +
		`|\bno need to (ask|check|confirm)\b`)

// hostile returns why text must not become a memory of that trust without a
// person's approval, or "".
func hostile(text string, trust memory.Trust) string {
	if strings.ContainsFunc(text, isHidden) {
		return "holds hidden characters"
	}
	plain := unmask(text)
	for _, s := range signs {
		if s.outsiders && trust == memory.TrustUser {
			continue
		}
		if s.pattern.MatchString(plain) {
			return s.reason
		}
	}
	if holdsEncoded(text) {
		return "holds an encoded block"
	}
	if override.MatchString(leet.Replace(plain)) {
		return "asks to ignore instructions"
	}
	return ""
}

// override is looked for once more with digits read as letters.
var override = match(`\b(ignore|disregard|forget|override)( \w+){0,3} (previous|prior|earlier|above|system)( \w+)? (instructions?|prompts?|rules)\b`)

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
