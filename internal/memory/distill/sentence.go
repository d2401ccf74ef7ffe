package distill

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentence is one sentence of a turn, with its place in the turn's text.
type sentence struct {
	start, end int
	text       string // text[start:end] of the turn, trimmed
	words      []word // outside quotations and code
	quotes     []string
	pasted     bool // stands wholly in a quotation, a code block or a pasted text
	explains   bool // makes the quotation or foreign text just before it the user's own
	paragraph  int  // number of the line that it stands in
}

// word is a token of a sentence, between spaces and without the punctuation
// around it.
type word struct {
	text       string // as written
	lower      string
	start, end int    // byte span in the sentence's text
	after      string // punctuation that follows it, up to the next word
	code       bool   // an identifier, a path, a version or inline code
}

// what a byte of a turn belongs to.
const (
	inPlain byte = iota
	inQuote
	inCode
	inPaste
)

// sentences cuts the text of a turn. Chat has little punctuation, so line breaks
// end sentences too.
func sentences(text string) []sentence {
	mask := maskOf(text)
	var out []sentence
	start, paragraph := 0, 0
	emit := func(end int) {
		if s, ok := newSentence(text, mask, start, end); ok {
			s.paragraph = paragraph
			out = append(out, s)
		}
		start = end
	}
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRuneInString(text[i:])
		next := i + width
		switch {
		case r == '\n':
			emit(i)
			paragraph++
		case mask[i] == inQuote && closesSentence(text, mask, i, next), mask[i] == inPlain && endsSentence(text, i, next):
			emit(next)
		}
		i = next
	}
	emit(len(text))
	return markPasted(out)
}

// endsSentence reports whether the rune at i to next ends a sentence.
func endsSentence(text string, i, next int) bool {
	switch text[i:next] {
	case "。", "！", "？":
		return true
	case "!", "?", "…":
	case ".":
		if isAbbreviation(text[:i]) {
			return false
		}
	default:
		return false
	}
	after, _ := utf8.DecodeRuneInString(text[next:])
	return next == len(text) || unicode.IsSpace(after) || unicode.Is(unicode.Han, after)
}

// closesSentence reports whether the byte at i is the closing mark of a quotation
// that ends in a full stop of its own, so that what follows is a new sentence.
func closesSentence(text string, mask []byte, i, next int) bool {
	if next < len(text) && (mask[next] == inQuote || !unicode.IsSpace(rune(text[next]))) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(text[:i])
	return strings.ContainsRune(".!?。！？", last)
}

var abbreviations = wordSet("mr mrs ms dr prof st vs e.g i.e eg ie etc approx nr z.b bzw ca sra sr")

func isAbbreviation(before string) bool {
	at := strings.LastIndexFunc(before, func(r rune) bool { return unicode.IsSpace(r) || r == '(' })
	last := strings.ToLower(before[at+1:])
	return abbreviations[last] || (utf8.RuneCountInString(last) == 1 && unicode.IsLetter(rune(last[0])) && last != "i")
}

// quotationMarks pairs opening with closing marks. The straight mark closes
// itself.
var quotationMarks = map[rune]string{'"': `"`, '“': "”", '„': "“”", '«': "»", '»': "«", '「': "」", '『': "』"}

// maskOf says for each byte of text whether it is plain, quoted, code or a pasted
// block.
func maskOf(text string) []byte {
	mask := make([]byte, len(text))
	fenced := false
	for at := 0; at < len(text); {
		end := at + len(text[at:])
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := strings.TrimSpace(text[at:end])
		fence := strings.HasPrefix(line, "```")
		switch {
		case fenced || fence:
			fill(mask[at:end], inPaste)
			if fence {
				fenced = !fenced
			}
		case strings.HasPrefix(line, ">"), strings.HasPrefix(line, "|"):
			fill(mask[at:end], inPaste)
		default:
			maskLine(text[at:end], mask[at:end])
		}
		at = end
	}
	return mask
}

// maskLine marks quotations and inline code within one line. A quotation of one
// to three words is a name or a mention and stays plain.
func maskLine(line string, mask []byte) {
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRuneInString(line[i:])
		closing, opens := quotationMarks[r]
		kind := inQuote
		if r == '`' {
			closing, opens, kind = "`", true, inCode
		}
		length := 0
		if opens {
			length = strings.IndexAny(line[i+n:], closing)
		}
		if !opens || length < 0 {
			i += n
			continue
		}
		_, m := utf8.DecodeRuneInString(line[i+n+length:])
		end := i + n + length + m
		inner := line[i+n : i+n+length]
		if kind == inCode || len(strings.Fields(inner)) > 3 || isUnspaced(inner) {
			fill(mask[i:end], kind)
		}
		i = end
	}
}

func fill(mask []byte, kind byte) {
	for i := range mask {
		mask[i] = kind
	}
}

// isUnspaced reports text of a script without spaces between words.
func isUnspaced(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
	})
}

// newSentence trims a span and cuts it into words; ok is false for one without
// letters or digits.
func newSentence(text string, mask []byte, start, end int) (sentence, bool) {
	for start < end && unicode.IsSpace(rune(text[start])) {
		start++
	}
	for end > start && unicode.IsSpace(rune(text[end-1])) {
		end--
	}
	s := sentence{start: start, end: end, text: text[start:end]}
	if !strings.ContainsFunc(s.text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return s, false
	}
	quote := -1
	plain := false
	for i := start; i <= end; i++ {
		quoted := i < end && mask[i] == inQuote
		switch {
		case quoted && quote < 0:
			quote = i
		case !quoted && quote >= 0:
			s.quotes = append(s.quotes, text[quote:i])
			quote = -1
		}
		plain = plain || i < end && (mask[i] == inPlain || mask[i] == inCode && text[i] != '`') && !isBlank(text[i])
	}
	s.words = wordsOf(s.text, mask[start:end])
	s.pasted = !plain || len(s.words) == 0 || mask[start] == inPaste
	return s, true
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// wordsOf cuts the plain parts of a sentence into words. Each quotation leaves
// one word with the text «».
func wordsOf(text string, mask []byte) []word {
	var out []word
	for i := 0; i < len(text); {
		switch {
		case mask[i] == inQuote:
			j := i
			for j < len(text) && mask[j] == inQuote {
				j++
			}
			out = append(out, word{text: "«»", lower: "«»", start: i, end: j})
			i = j
		case isBlank(text[i]):
			i++
		default:
			j := i
			for j < len(text) && !isBlank(text[j]) && mask[j] != inQuote {
				j++
			}
			out = appendWords(out, text, i, j, mask[i] == inCode)
			i = j
		}
	}
	return out
}

// joins words in writing where they are two: a dash or an ellipsis between them.
var wordJoint = match(`—|–|--|\.\.\.|…|→|->|，|、|；|：`)

// tagDigits are what tells one secret from another in the tag that stands for it.
// They depend on a key, and nothing that is made of a text may.
var tagDigits = match(`(\[REDACTED:\w+)#[0-9a-f]{4}`)

// appendWords adds the word or words of one stretch without blanks.
func appendWords(out []word, text string, i, j int, code bool) []word {
	if at := jointIn(text[i:j]); at != nil && !code {
		out = appendWords(out, text, i, i+at[0], code)
		if n := len(out); n > 0 {
			out[n-1].after += ","
		}
		return appendWords(out, text, i+at[1], j, code)
	}
	core := strings.TrimLeftFunc(text[i:j], isAround)
	start := j - len(core)
	if start > i && len(out) > 0 && strings.ContainsAny(text[i:start], "([-") {
		out[len(out)-1].after += ","
	}
	core = strings.TrimRightFunc(core, isAround)
	if core == "" {
		return out
	}
	w := word{start: start, end: start + len(core), after: text[start+len(core) : j]}
	if strings.Contains(core, "[REDACTED:") {
		core = tagDigits.ReplaceAllString(core, "$1")
	}
	w.text, w.code = core, code || looksLikeCode(core)
	w.lower = strings.ToLower(strings.ReplaceAll(core, "’", "'"))
	return append(out, w)
}

// jointIn returns the span of the first joint; nil for none. Most words are plain
// letters, for which no pattern is tried.
func jointIn(s string) []int {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == '-' || r == '.' || r >= utf8.RuneSelf }) {
		return nil
	}
	return wordJoint.FindStringIndex(s)
}

func isAround(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("€$£%°+#_/@«»", r)
}

var codeForm = match(`[\pL\d]_[\pL\d]|^/\w|\w/\w*$|[a-z]\.[a-z]\w|::|[a-z][A-Z]\w*[a-z]|^[a-z]+\d+[a-z]*$|^v?\d+(\.\d+)+$|^[A-Z][A-Z0-9]+-\d+|^--?[a-z]|^#\d`)

// looksLikeCode reports identifiers, paths, versions and ticket numbers.
func looksLikeCode(s string) bool { return !isPlainWord(s) && codeForm.MatchString(s) }

// isPlainWord reports whether s is of the letters a to z, the first of them large
// or small: codeForm matches no such word.
func isPlainWord(s string) bool {
	for i := range len(s) {
		if (s[i] < 'a' || s[i] > 'z') && (i > 0 || s[i] < 'A' || s[i] > 'Z') {
			return false
		}
	}
	return true
}

// introducesPaste matches the lead of a text that somebody else wrote, up to its
// colon.
var introducesPaste = match(`(?i)^(?:(?:and |ok |so )*(?:from|by) (?:the |my |our |their |a )?[\w' ]{2,30}(?:, [\w' ]{2,40})?|(?:.*\b)?(?:` +
	`(?:says|said|wrote|writes|writing|texted|messaged|told (?:me|us)|printed|posted|pasted|forwarded|sent(?: (?:me|us))?|shared|replied|answered|schreibt|schrieb|sagt|sagte|meinte|dice|dijo|escribi[oó])(?: [\w.,' ]{0,40})?` +
	`|(?:here'?s|here is|this is|got|found|read|saw)\b[^:]{0,60}\b(?:note|notes|mail|e-?mail|letter|message|text|post|blog|thread|forum|article|docs?|readme|review|comment|page|output|log|quote|flyer|ad|snippet|paragraph|newsletter)[^:]{0,40}` +
	`|(?:note|nota|notiz|mail|letter|message|text|comment|post|review)s? (?:from|by|of|de|von|on)\b[^:]{0,60}` +
	`|[她他](?:写道|说|写|回复)` +
	`))\s*(?:[:：]\s|[:：]$|：)`)

// adopts matches the beginning of a sentence in which the user makes a text that
// went before their own.
var adopts = match(`(?i)^(?:(?:and|ok|okay|right|grand|so|well|yes|yeah|good|great|fine|translated|meaning)[, ]+)*` +
	`(?:so|that'?s (?:where|what|why|how|when|our|my|a|the|true|right|correct|also|now)|that is (?:where|what|why|how|when|our|my|true|right)|(?:that|it|this|which) means|which (?:is|means|was|we)|and that'?s (?:how|what|why|where)|meaning|in (?:english|short)|i\.?e\.?|heißt|das heißt|o sea|es decir|true(?: enough)?|i agree|agreed|same (?:here|for me)|guilty)\b`)

// markPasted sets explains, and extends pasted over the sentences that follow an introduction of
// someone else's words, up to the end of the paragraph or to where the user
// speaks again.
func markPasted(all []sentence) []sentence {
	open := -1 // paragraph in which a pasted text runs
	for i := range all {
		s := &all[i]
		var loc []int
		if strings.ContainsAny(s.text, ":：") { // what introduces ends with one
			loc = introducesPaste.FindStringIndex(s.text)
		}
		switch {
		case loc != nil && len(s.quotes) == 0 && !ownColon.MatchString(s.text):
			rest := strings.TrimSpace(s.text[loc[1]:])
			s.pasted = true
			open = s.paragraph
			if rest == "" {
				open++
			}
			if isUnspaced(rest) { // the translation that follows is the user's
				open = -1
			}
		case open == s.paragraph && !adopts.MatchString(s.text):
			s.pasted = true
		default:
			open = -1
		}
		if i > 0 {
			before := all[i-1]
			s.explains = (before.pasted || len(before.quotes) > 0 || isUnspaced(before.text)) && adopts.MatchString(s.text)
		}
	}
	return all
}

// ownColon matches leads that look like an introduction and announce the user's
// own words.
var ownColon = match(`(?i)^[^:]*\b(?:i|we|i'm|we're|decision|decided|rule|rules|reminder|update|news|plan|change|correction|summary|status|auf deutsch|in german|in english|in spanish|en español)\b[^:]*:`)
