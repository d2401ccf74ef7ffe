package redact

import "strings"

// syntax is how a name and its value belong together.
type syntax uint8

const (
	noSyntax syntax = iota
	bare            // name value
	cell            // | name | value |, <td>name</td><td>value</td>
	colon           // name: value
	assign          // name = value, "name": value, name("value")
	query           // ?name=value&
	flag            // --name value
	element         // <name>value</name>
	spoken          // name is value
)

// strong syntaxes leave no doubt that a value follows.
func (x syntax) strong() bool { return x >= assign && x <= element }

// value is a stretch of text that may be a secret.
type value struct {
	start, end int
	next       int // where reading goes on after it
	quoted     bool
}

func (v value) of(s string) string { return s[v.start:v.end] }

// separator answers where the value of the name s[start:end] begins, and in which syntax.
func (sc *scanner) separator(start, end int, isFlag bool) (int, syntax) {
	s := sc.s
	if start > 0 && s[start-1] == '<' {
		return sc.elementValue(end)
	}
	p, quoted := closers(s, end)
	p = skipBlanks(s, p)
	p = skipNote(s, p)
	if q := skipTags(s, p); q > p {
		p = skipBlanks(s, q)
		if p >= len(s) || s[p] != ':' && s[p] != '=' {
			return p, cell
		}
	}
	if quoted || p < len(s) && (s[p] == '\n' || s[p] == '\r') {
		if at, x := sc.pairedValue(p, start); x != noSyntax {
			return at, x
		}
	}
	if quoted && p < len(s) {
		switch {
		case s[p] == '>':
			return sc.elementValue(p)
		case s[p] == '{':
			return sc.defaultValue(p)
		case s[p] == ',' && startsString(s, skipBlanks(s, p+1)):
			return argument(s, start, p+1, isFlag)
		}
	}
	if p == end && p < len(s) && s[p] == ',' && startsString(s, skipBlanks(s, p+1)) {
		return skipBlanks(s, p+1), bare // equal(password, "x")
	}
	if at, x := operator(s, p, quoted); x != noSyntax {
		if x == assign && start > 0 && (s[start-1] == '?' || s[start-1] == '&') {
			x = query
		}
		if x == colon && quoted {
			x = assign
		}
		return sc.valueStart(at, x), x
	}
	return apart(s, p, end, quoted, isFlag)
}

// apart answers the place and syntax of a value at p that only blanks set apart from its name, which ends at end.
func apart(s string, p, end int, quoted, isFlag bool) (int, syntax) {
	switch {
	case isFlag && p == end && p < len(s) && s[p] == '+': // an escaped blank
		return p + 1, flag
	case quoted || p == end || p >= len(s) || isSpace(s[p]) || !isBlank(s[p-1]):
		return 0, noSyntax
	case isFlag:
		return p, flag
	case s[p-1] == '\t':
		return p, cell
	}
	return p, bare
}

// argument answers the place and syntax of the string after the comma before p, if the string before it, whose name begins
// at start, is the first of a call, the first of a pair, or a flag.
func argument(s string, start, p int, isFlag bool) (int, syntax) {
	begin := skipBack(s, start)
	for begin > 0 && s[begin-1] == '-' {
		begin = skipBack(s, begin-1)
	}
	p = skipBlanks(s, p)
	switch {
	case isFlag || begin > 0 && s[begin-1] == '(':
		return p, assign
	case begin > 0 && s[begin-1] == '[':
		return p, bare
	}
	return 0, noSyntax
}

// closers skips what may close a name: quotes, escaped quotes, brackets, emphasis.
func closers(s string, p int) (int, bool) {
	quoted := false
	for limit := p + 8; p < len(s) && p < limit; p++ {
		switch s[p] {
		case '"', '\'', '`':
			quoted = true
		case '\\':
			if p+1 < len(s) && strings.IndexByte("nrt", s[p+1]) >= 0 {
				return p, quoted
			}
		case ']', '*', '?', '!':
		default:
			return p, quoted
		}
	}
	return p, quoted
}

// skipNote skips a note in parentheses that stands between a name and its separator: password (prod): x.
func skipNote(s string, p int) int {
	if p >= len(s) || s[p] != '(' {
		return p
	}
	for i := p + 1; i < len(s) && i < p+48 && s[i] != '\n' && s[i] != '"' && s[i] != '\''; i++ {
		if s[i] == ')' {
			return skipBlanks(s, i+1)
		}
	}
	return p
}

// skipTags skips the end tag that begins at p and the start tag after it: </td><td>.
func skipTags(s string, p int) int {
	if !strings.HasPrefix(s[min(p, len(s)):], "</") {
		return p
	}
	for range 4 {
		q := skipSpaces(s, p)
		if q >= len(s) || s[q] != '<' {
			break
		}
		at := strings.IndexByte(s[q:min(len(s), q+64)], '>')
		if at < 0 {
			break
		}
		p = q + at + 1
	}
	return p
}

// operators between a name and its value, the longest first.
var operators = []struct {
	text string
	x    syntax
}{
	{"===", assign}, {"!==", assign}, {"||=", assign}, {"??=", assign}, {":=", assign}, {"=>", assign}, {"==", assign}, {"!=", assign}, {"?=", assign}, {"+=", assign},
	{"||", assign}, {"??", assign}, {":-", assign}, {"=", assign}, {"->", colon}, {"::", bare}, {"→", colon}, {"⇒", colon}, {"：", colon}, {"＝", assign}, {":", colon}, {"— ", spoken}, {"– ", spoken}, {"- ", spoken},
}

// operator reads the operator at p. It answers where it ends, and noSyntax if there is none.
func operator(s string, p int, quoted bool) (int, syntax) {
	if p >= len(s) {
		return 0, noSyntax
	}
	for _, op := range operators {
		if strings.HasPrefix(s[p:], op.text) && (op.x != spoken || p > 0 && isBlank(s[p-1])) {
			return p + len(op.text), op.x
		}
	}
	switch {
	case s[p] == '(' && startsString(s, skipBlanks(s, p+1)):
		return p + 1, assign
	case s[p] == '|' && p+1 < len(s) && isBlank(s[p+1]):
		return p + 1, cell
	}
	return 0, noSyntax
}

// startsString tells whether a quoted string begins at p.
func startsString(s string, p int) bool {
	for p < len(s) && s[p] == '\\' {
		p++
	}
	return p < len(s) && (s[p] == '"' || s[p] == '\'' || s[p] == '`')
}

// valueStart skips what may stand between an operator and its value: blanks, emphasis, one line break and its indentation.
func (sc *scanner) valueStart(p int, x syntax) int {
	s := sc.s
	p = skipBlanks(s, p)
	for range 3 {
		if q := skipTags(s, p); q > p {
			p = skipBlanks(s, q)
		}
		if strings.HasPrefix(s[min(p, len(s)):], "**") {
			p = skipBlanks(s, p+2)
		}
	}
	if x != query && p < len(s) && (s[p] == '\n' || s[p] == '\r') {
		if q := skipSpaces(s, p); q < len(s) && strings.Count(s[p:q], "\n") <= 2 {
			return q
		}
	}
	return p
}

// elementValue answers where the text of an XML element begins whose name ends at end.
func (sc *scanner) elementValue(end int) (int, syntax) {
	s := sc.s
	at := strings.IndexByte(s[end:min(len(s), end+128)], '>')
	if at < 0 {
		return 0, noSyntax
	}
	if q := strings.Index(s[end:end+at], " value="); q >= 0 {
		return end + q + len(" value="), assign
	}
	if at > 0 && s[end+at-1] == '/' {
		return 0, noSyntax
	}
	p := skipSpaces(s, end+at+1)
	if strings.HasPrefix(s[min(p, len(s)):], "<![CDATA[") {
		p += len("<![CDATA[")
	}
	return p, element
}

// valueNames are what the value of a pair is called: {"name": "DB_PASSWORD", "value": "x"}.
var valueNames = []string{"value", "val", "content", "plaintext", "defaultvalue", "string"}

// pairedValue finds the value of a pair whose name, which begins at start, is the quoted or line-ending text before p.
func (sc *scanner) pairedValue(p, start int) (int, syntax) {
	s := sc.s
	if begin := skipBack(s, start); begin == 0 || strings.IndexByte(":={[,", s[begin-1]) < 0 {
		return 0, noSyntax
	}
	for limit := p + 64; p < len(s) && p < limit && (isSpace(s[p]) || strings.IndexByte(",\\\"'<", s[p]) >= 0); {
		p++
	}
	for _, n := range valueNames {
		if !hasFold(s, p, n) {
			continue
		}
		q, quoted := closers(s, p+len(n))
		q = skipBlanks(s, q)
		if at, x := operator(s, q, quoted); x == assign || x == colon {
			return sc.valueStart(at, assign), assign
		}
	}
	return 0, noSyntax
}

// defaultValue finds the default of the Terraform variable whose braces open at p.
func (sc *scanner) defaultValue(p int) (int, syntax) {
	s := sc.s
	window := s[p:min(len(s), p+256)]
	if at := strings.IndexByte(window, '}'); at >= 0 {
		window = window[:at]
	}
	at := strings.Index(window, "default")
	if at < 0 {
		return 0, noSyntax
	}
	q, x := operator(s, skipBlanks(s, p+at+len("default")), false)
	if x != assign {
		return 0, noSyntax
	}
	return sc.valueStart(q, assign), assign
}

// skipBack answers the position after the last byte before i that is no blank, quote or backslash.
func skipBack(s string, i int) int {
	for limit := i - 16; i > 0 && i > limit && (isBlank(s[i-1]) || strings.IndexByte("\"'`\\", s[i-1]) >= 0); {
		i--
	}
	return i
}
