package redact

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

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
