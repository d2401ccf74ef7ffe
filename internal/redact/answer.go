package redact

import "strings"

// maxAsked is how many bytes of a question are kept for the answer to it.
const maxAsked = 256

// Asks returns the end of s if it asks for a secret, and "" otherwise: what is said
// next may be one, though nothing in it says so. Answer takes it.
func (r *Redactor) Asks(s string) string {
	at := max(0, len(s)-maxAsked)
	for at < len(s) && !isSpace(s[at]) && at > 0 {
		at++
	}
	question := strings.TrimSpace(s[at:])
	// It asks for one if what cannot be anything else would be taken for the answer.
	for _, probe := range []string{"uV7-qx2Kd9!mZ4", "471193"} {
		if found := r.scan(question+"\n"+probe, 0); len(found) > 0 && found[len(found)-1].End > len(question) {
			return question
		}
	}
	return ""
}

// Answer is Text of what was said next after a question that Asks returned.
func (r *Redactor) Answer(question, s string) string {
	s = r.Text(s)
	if question == "" {
		return s
	}
	offset := len(question) + 1
	found := []Finding{}
	for _, f := range r.Find(question + "\n" + s) {
		if f.Start >= offset {
			found = append(found, Finding{Kind: f.Kind, Start: f.Start - offset, End: f.End - offset})
		}
	}
	if len(found) == 0 {
		return s
	}
	return r.replace(s, found)
}

// answered reads the answer to a question for the name s[from:to], at whose end the
// question is, or near: what is the gate code? It's X. It answers 0 if there is none.
func (sc *scanner) answered(c class, from, to int) int {
	s := sc.s
	if c != password && c != token && c != pin && c != oneTime || !endsPhrase(s, to) {
		return 0
	}
	end := to
	for limit := min(len(s), to+64); end < limit && strings.IndexByte("?.!:\n", s[end]) < 0; {
		end++
	}
	if end >= len(s) || end == to+64 {
		return 0
	}
	if announced := s[end] == '\n' && isOneOf(announcers, strings.TrimSpace(s[to:end])); !announced && !sc.asked(from, s[end] == '?') {
		return 0
	}
	p := skipSpaces(s, min(end+1, len(s)))
	if s[end] != '\n' && p == end+1 || p >= len(s) {
		return 0
	}
	if label := run(s, p, charsWord, 24); label > p && label+1 < len(s) && s[label] == ':' && isBlank(s[label+1]) {
		p = skipBlanks(s, label+1) // who answers
	}
	for range 8 {
		end := wordEnd(s, p)
		word := strings.TrimRight(s[p:end], ",.!:")
		if !isOneOf(openers, word) {
			break
		}
		p = skipBlanks(s, end)
	}
	v := sc.plainValue(p, spoken, maxJudged)
	text := v.of(s)
	if c == password || c == token {
		if !stands(text, shapeOf(text)) {
			return 0
		}
	} else if v.end < len(s) && isBlank(s[v.end]) {
		return 0 // 4711 is the shop next door
	}
	return sc.take(c, p, spoken)
}

// asked tells whether the sentence in which a name begins at i asks for its value:
// please send me the PIN; what is the PIN? But not: where do you keep the PIN?
func (sc *scanner) asked(i int, questioned bool) bool {
	before := sc.s[max(0, i-64):i]
	if at := strings.LastIndexAny(before, ".!?\n"); at >= 0 {
		before = before[at+1:]
	}
	for word := range strings.FieldsSeq(before) {
		word = strings.TrimRight(word, ",:")
		if isOneOf(requests, word) {
			return true
		}
		if isOneOf(otherwise, word) {
			questioned = false
		}
	}
	return questioned
}

// otherwise are words of questions for something else than a value.
var otherwise = setOf(`where how why when who did does has have wo warum wann wer hat où comment pourquoi quand dónde cómo por cuándo`)

// announcers stand behind a name whose value is in the next line: token below.
var announcers = setOf(`below follows attached here ↓ 👇 next`)

// requests are words of a sentence that asks for something.
var requests = setOf(`what wie cuál quel quelle welches what's whats which enter type give send tell share provide need paste confirm please repeat
	gib nenne schick sende brauche bitte dame envía envíame necesito donne envoie manda mandami`)

// openers are words that an answer begins with.
var openers = setOf(`
	it is it's its that's thats that the this password code pin key token one sure ok okay yes yep yeah of course here you go there i think still
	should be was now currently again as always use try just my our hm well oh ah right so
	es ist das ja klar natürlich sí claro c'est oui bien sûr è sì het`)
