package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	runBase64 = 1 << iota
	runDigit
	runEscape
)

// runKinds says which bytes runs() cares about.
var runKinds = func() (kinds [256]uint8) {
	for c := range 128 {
		if charsBase64.has(byte(c)) {
			kinds[c] |= runBase64
		}
		if isDigit(byte(c)) {
			kinds[c] |= runDigit
		}
	}
	for _, c := range []byte{'%', '\\', '&', 0xE2, 0xC2, 0xEF} {
		kinds[c] |= runEscape
	}
	return kinds
}()

// leastEncoded is the least length of base64 that is decoded.
const leastEncoded = 20

// runs looks for stretches of base64, numbers with check digits, bot tokens with dots, and the first escape.
func (sc *scanner) runs() {
	s := sc.s
	start := -1
	for i := 0; i < len(s); i++ {
		kind := runKinds[s[i]]
		if kind&runBase64 != 0 {
			if start < 0 {
				start = i
			}
			if s[i] == '+' && sc.encoded < 0 && isPlus(s, i) {
				sc.encoded = i
			}
			if kind&runDigit != 0 && (i == 0 || !isDigit(s[i-1])) {
				sc.numberAt(i)
			}
			continue
		}
		if start >= 0 {
			if i-start >= leastEncoded {
				if s[i] == '\n' && i-start >= 60 && i+1 < len(s) && charsBase64.has(s[i+1]) {
					continue // base64 broken into lines
				}
				sc.encodedRun(start, i)
			}
			start = -1
		}
		if kind&runEscape != 0 && sc.encoded < 0 && escapeAt(s, i) > 0 {
			sc.encoded = i
		}
	}
	if start >= 0 && len(s)-start >= leastEncoded {
		sc.encodedRun(start, len(s))
	}
}

// numberAt notes the card or account number whose first digit is at i.
func (sc *scanner) numberAt(i int) {
	s := sc.s
	if start, end := ibanAt(s, i); end > 0 {
		sc.add("iban", start, end)
		return
	}
	if i > 0 && (isAlnum(s[i-1]) || strings.IndexByte("_.-", s[i-1]) >= 0) || i > 1 && s[i-1] == ' ' && isDigit(s[i-2]) {
		return
	}
	if end := cardAt(s, i); end > 0 {
		sc.afterCard(end)
		sc.add("card", i, end)
	}
}

// encodedRun looks at the base64 s[start:end]: a bot token that goes on after a dot, or encoded text that holds a secret.
func (sc *scanner) encodedRun(start, end int) {
	s := sc.s
	if end < len(s) && s[end] == '.' && end-start <= 32 {
		if stop := botToken(s, start, end); stop > 0 {
			sc.add("discord", start, stop)
			return
		}
	}
	if sc.depth == 0 {
		return
	}
	if sc.decoded(start, end) || strings.IndexByte(s[start:end], '\n') < 0 {
		return
	}
	for from := start; from < end; { // lines of their own
		stop := min(end, sc.lineEnd(from))
		sc.decoded(from, stop)
		from = stop + 1
	}
}

// decoded notes the base64 s[from:end], which may have a name and = before it, if what it says holds a secret.
func (sc *scanner) decoded(from, end int) bool {
	s := sc.s
	for from < end && strings.IndexByte("=-/", s[from]) >= 0 {
		from++
	}
	if at := strings.IndexByte(s[from:min(end, from+64)], '='); at >= 0 && strings.Trim(s[from+at:end], "=") != "" && strings.IndexByte(s[from:from+at], '\n') < 0 {
		from += at + 1
	}
	if end-from < leastEncoded || !looksText(s[from:min(end, from+32)]) {
		return false
	}
	found := sc.r.scan(decodeBase64(s[from:end]), sc.depth-1)
	if len(found) > 0 {
		sc.add(found[0].Kind, from, end)
	}
	return len(found) > 0
}

// looksText tells whether the first bytes behind a piece of base64 are text.
func looksText(piece string) bool {
	piece = piece[:len(piece)/4*4]
	plain := decodeBase64(piece)
	if len(plain) < 6 {
		return false
	}
	for i := range len(plain) {
		if c := plain[i]; c < ' ' && !isSpace(c) || c == 0x7f {
			return false
		}
	}
	for cut := 0; cut < utf8.UTFMax; cut++ { // a rune may be cut at the end
		if len(plain) > cut && utf8.ValidString(plain[:len(plain)-cut]) {
			return true
		}
	}
	return false
}

// decodeBase64 decodes either alphabet, padded or not, with line breaks in it. It answers "" where s is no base64.
func decodeBase64(s string) string {
	s = strings.TrimRight(s, "=\r\n")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.RawURLEncoding
	}
	plain, err := encoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return string(plain)
}

// botToken reads a Discord token, three parts with dots between them, whose first part is s[start:dot].
func botToken(s string, start, dot int) int {
	if dot-start < 23 || dot-start > 28 || strings.IndexByte("MNO", s[start]) < 0 {
		return 0
	}
	second := run(s, dot+1, charsDash, 16)
	if second-dot-1 < 5 || second-dot-1 > 7 || second >= len(s) || s[second] != '.' {
		return 0
	}
	third := run(s, second+1, charsDash, 64)
	if third-second-1 < 25 {
		return 0
	}
	return third
}

// encodedForms answers v and the ways it is written in base64, addresses and JSON, without repeats.
func encodedForms(v string) []string {
	forms := []string{
		v, base64.RawStdEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)), url.QueryEscape(v), url.PathEscape(v),
	}
	if quoted, err := json.Marshal(v); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	var distinct []string
	for _, form := range forms {
		seen := false
		for _, d := range distinct {
			seen = seen || d == form
		}
		if !seen {
			distinct = append(distinct, form)
		}
	}
	return distinct
}

// spellings answers p for a word in small letters, with a capital first, and in capitals; ASCII needs one only.
func spellings(word string, p pattern) []pattern {
	word = strings.TrimSpace(word)
	p.text = word
	patterns := []pattern{p}
	if utf8.RuneCountInString(word) == len(word) {
		return patterns
	}
	_, size := utf8.DecodeRuneInString(word)
	for _, text := range []string{strings.ToUpper(word[:size]) + word[size:], strings.ToUpper(word)} {
		if text = asciiLower(text); text != word && text != patterns[len(patterns)-1].text {
			p.text = text
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// asciiLower lowers the ASCII letters of s only.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = lower(c)
	}
	return string(b)
}
