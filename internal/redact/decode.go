package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
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

// view is a text with its escapes taken off, and where each of its parts stood.
type view struct {
	text  strings.Builder
	plain []int // offsets in text after an escape
	raw   []int // and in the escaped text
}

// offset answers where the byte i of the view stood.
func (v *view) offset(i int) int {
	low, high := 0, len(v.plain)
	for low < high {
		if mid := (low + high) / 2; v.plain[mid] <= i {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return i
	}
	return v.raw[low-1] + i - v.plain[low-1]
}

// views decodes the lines with escapes, from the first on, and scans what they say. In forms of the web a plus may be
// a blank or itself, so such a line is read both ways.
func (sc *scanner) views() {
	s := sc.s
	for line := strings.LastIndexByte(s[:sc.encoded], '\n') + 1; line < len(s); {
		end := sc.lineEnd(line)
		text := s[line:end]
		at := firstEscape(text)
		if at >= 0 {
			sc.view(line, decodeLine(text, false))
		}
		if pluses(text) >= leastPluses || at >= 0 && strings.IndexByte(text, '%') >= 0 && strings.IndexByte(text, '+') >= 0 {
			sc.view(line, decodeLine(text, true))
		}
		line = end + 1
	}
}

// leastPluses is the number of pluses between letters that shows a sentence of a form of the web: my+password+is.
const leastPluses = 3

// pluses counts the pluses between letters in the first bytes of a line.
func pluses(line string) int {
	line = line[:min(len(line), 4096)]
	n := 0
	for i := 1; i+1 < len(line) && n < leastPluses; i++ {
		if line[i] == '+' && isPlus(line, i) {
			n++
		}
	}
	return n
}

// isPlus tells whether the plus at i stands between letters or digits.
func isPlus(s string, i int) bool { return i > 0 && i+1 < len(s) && isAlnum(s[i-1]) && isAlnum(s[i+1]) }

// view scans what the line that begins at line says without its escapes.
func (sc *scanner) view(line int, v *view) {
	for _, f := range sc.r.scan(v.text.String(), sc.depth-1) {
		sc.add(f.Kind, line+v.offset(f.Start), line+v.offset(f.End))
	}
}

// firstEscape answers where the first escape of a line stands that a reader of plain text would not see through, or -1.
func firstEscape(s string) int {
	for i := range len(s) {
		if runKinds[s[i]]&runEscape != 0 && escapeAt(s, i) > 0 {
			return i
		}
	}
	return -1
}

// decodeLine takes the escapes off a line; with plus, every plus becomes a blank.
func decodeLine(s string, plus bool) *view {
	v := &view{}
	v.text.Grow(len(s))
	last := 0
	for i := 0; i < len(s); {
		size, text := 0, " "
		switch {
		case s[i] == '+' && plus:
			size = 1
		case runKinds[s[i]]&runEscape != 0:
			size, text = unescape(s[i:], true)
		}
		if size == 0 {
			i++
			continue
		}
		v.text.WriteString(s[last:i])
		v.text.WriteString(text)
		i += size
		last = i
		v.plain = append(v.plain, v.text.Len())
		v.raw = append(v.raw, i)
	}
	v.text.WriteString(s[last:])
	return v
}

// escapeAt answers the length of the escape at i that a reader of plain text would not see through, or 0.
func escapeAt(s string, i int) int {
	size, _ := unescape(s[i:], false)
	return size
}

// entities are the named character references of markup.
var entities = []struct{ name, text string }{
	{"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&apos;", "'"}, {"&equals;", "="}, {"&colon;", ":"}, {"&nbsp;", " "},
	{"&sol;", "/"}, {"&commat;", "@"}, {"&num;", "#"}, {"&dollar;", "$"}, {"&excl;", "!"}, {"&lowbar;", "_"},
}

// invisible are characters without width, which hide nothing from a reader but much from a program.
var invisible = []string{"\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u200e", "\u200f"}

// unescape reads the escape that s begins with. It answers its length, 0 if there is none, and what it stands for.
// simple: also the escapes of one letter, such as \" and \n.
func unescape(s string, simple bool) (int, string) {
	switch {
	case s[0] == '%' && len(s) >= 3 && isHex(s[1]) && isHex(s[2]):
		return hexEscape(s, 1, 2)
	case s[0] == '\\' && len(s) >= 2:
		return backslash(s, simple)
	case s[0] == '&' && len(s) >= 4:
		return entity(s)
	}
	for _, mark := range invisible {
		if strings.HasPrefix(s, mark) {
			return len(mark), ""
		}
	}
	return 0, ""
}

func backslash(s string, simple bool) (int, string) {
	switch {
	case s[1] == 'u' && len(s) >= 6:
		return hexEscape(s, 2, 4)
	case s[1] == 'x' && len(s) >= 4:
		return hexEscape(s, 2, 2)
	case !simple:
		return 0, ""
	case strings.IndexByte("\"'\\/`", s[1]) >= 0:
		return 2, s[1:2]
	case s[1] == 'n' || s[1] == 'r':
		return 2, "\n"
	case s[1] == 't':
		return 2, "\t"
	}
	return 0, ""
}

// hexEscape decodes the digits hexadecimal digits of s from position from on, as a byte or a UTF-16 unit.
func hexEscape(s string, from, digits int) (int, string) {
	n, err := strconv.ParseUint(s[from:from+digits], 16, 16)
	if err != nil {
		return 0, ""
	}
	if digits == 2 && n >= utf8.RuneSelf {
		return from + digits, string([]byte{byte(n)})
	}
	return from + digits, string(rune(n))
}

func entity(s string) (int, string) {
	for _, e := range entities {
		if strings.HasPrefix(s, e.name) {
			return len(e.name), e.text
		}
	}
	end := strings.IndexByte(s[:min(len(s), 10)], ';')
	if s[1] != '#' || end < 3 {
		return 0, ""
	}
	number, base := s[2:end], 10
	if number[0] == 'x' || number[0] == 'X' {
		number, base = number[1:], 16
	}
	n, err := strconv.ParseUint(number, base, 21)
	if err != nil {
		return 0, ""
	}
	return end + 1, string(rune(n))
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
