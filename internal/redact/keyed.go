package redact

import (
	"strings"
	"unicode/utf8"
)

// maxIdentifier bounds a name to each side of the part that was recognised.
const maxIdentifier = 48

// nameAt reads the name around s[start:end], a part that names of secrets have, and the value that follows it.
func (sc *scanner) nameAt(start, end int) int {
	if end <= sc.named {
		return 0
	}
	from, to := sc.identifier(start, end)
	sc.named = to
	if at := strings.LastIndex(sc.s[from:to], "--"); at >= 0 {
		from += at
	}
	isFlag := sc.s[from] == '-'
	for from < to-1 && (sc.s[from] == '-' || sc.s[from] == '.' || sc.s[from] == '_') {
		from++
	}
	var n name
	if !isFlag {
		n.add(sc.s[sc.qualifiers(from):from])
	}
	n.add(sc.s[from:to])
	return sc.valueOf(n.class(), from, to, isFlag)
}

// identifier answers the bounds of the name around s[start:end].
func (sc *scanner) identifier(start, end int) (int, int) {
	s := sc.s
	from, to := start, end
	for from > 0 && start-from < maxIdentifier && (charsDash.has(s[from-1]) || s[from-1] == '.') {
		from--
	}
	if from > 0 && from < start && s[from-1] == '\\' && strings.IndexByte("nrt", s[from]) >= 0 {
		from++
	}
	for to < len(s) && to-end < maxIdentifier && (charsDash.has(s[to]) || s[to] == '.' && to+1 < len(s) && isAlnum(s[to+1])) {
		to++
	}
	for to > end && s[to-1] == '-' {
		to--
	}
	return from, to
}

// qualifiers answers where the one or two words begin that stand before a name, a single space between them: "api key".
func (sc *scanner) qualifiers(from int) int {
	s := sc.s
	begin := from
	for range 2 {
		if begin < 2 || s[begin-1] != ' ' || !charsDash.has(s[begin-2]) {
			break
		}
		i := begin - 1
		for i > 0 && begin-i < 24 && charsDash.has(s[i-1]) {
			i--
		}
		begin = i
	}
	return begin
}

// valueOf reads the value of the name s[from:to], which has class c.
func (sc *scanner) valueOf(c class, from, to int, isFlag bool) int {
	switch c {
	case notSecret:
		return 0
	case authHeader:
		return sc.authorization(to)
	case cookie:
		return sc.cookies(to)
	case login:
		return sc.loginAt(from, to)
	case seedPhrase:
		return sc.seedAt(to)
	}
	p, x := sc.separator(from, to, isFlag)
	if x == noSyntax || x == bare {
		if sc.backwards(c, from, to) && x == noSyntax {
			return 0
		}
		if sc.speech(c, to) > 0 || sc.answered(c, from, to) > 0 {
			return 0 // what stands before the value is still to be read
		}
	}
	if x <= cell && (sc.column(c, from, to) > 0 || sc.inserted(c, from, to) > 0) {
		return 0
	}
	switch {
	case x == noSyntax || x == colon && sc.s[from:to] == "PASS": // what tests print
		return 0
	case x == bare && sc.s[from:to] == "AUTH": // Redis
		c = token
	case x == bare && strings.EqualFold(sc.s[from:to], "pass") && strings.IndexByte(sc.s[p:wordEnd(sc.s, p)], '_') >= 0:
		return 0 // the verb
	case x == bare && c == pin && lower(sc.s[from]) == 'c': // cvc 123
		x = spoken
	}
	if end := sc.take(c, p, x); end > 0 {
		return end
	}
	return sc.typedValue(c, p, x)
}

// typedValue reads the value after a type that stands at p: apiKey: string = "x", var secret Secret = "x".
func (sc *scanner) typedValue(c class, p int, x syntax) int {
	s := sc.s
	if x != colon && x != bare || p >= len(s) || !isLetter(s[p]) {
		return 0
	}
	end := skipBlanks(s, run(s, p, charsType, 48))
	if at, op := operator(s, end, false); op == assign && startsString(s, skipBlanks(s, at)) {
		return sc.take(c, skipBlanks(s, at), assign)
	}
	return 0
}

var charsType = newCharset(alnums + "_.[]<>?|")

// take reads the value at p and notes it if it is a secret.
func (sc *scanner) take(c class, p int, x syntax) int {
	s := sc.s
	p = skipPrefixes(s, p)
	if p >= len(s) {
		return 0
	}
	if end := sc.specialValue(c, p, x); end != 0 {
		return max(end, 0)
	}
	if v, ok := sc.quotedValue(p); ok {
		return sc.takeQuoted(c, v, x)
	}
	if x == element {
		v, ok := sc.elementText(p)
		if ok {
			return sc.takeQuoted(c, v, x)
		}
		x = bare // <token>, as manuals write what is to be filled in
	}
	return sc.takePlain(c, p, x)
}

// takePlain reads a value at p that no quotes enclose.
func (sc *scanner) takePlain(c class, p int, x syntax) int {
	s := sc.s
	if body, _, closing := opening(s, p); closing != "" { // a string that does not end, or the end of one
		if body < len(s) && strings.IndexByte("+,.)", s[body]) >= 0 {
			return 0
		}
		p = body
	}
	if v, ok := sc.wrapped(p, x); ok {
		return sc.takeQuoted(c, v, x)
	}
	p = skipScheme(s, p)
	if end := tagEnd(s, min(p, len(s)-1)); p < len(s) && end > 0 && (end == len(s) || !isAlnum(s[end])) {
		return end
	}
	if end := run(s, p, charsWord, 32); end > p && end < len(s) && (s[end] == '=' || s[end] == ':') && nameClass(s[p:end]) != notSecret {
		return 0 // another name, which is read when its turn comes
	}
	v := sc.plainValue(p, x, maxJudged)
	if v.end <= v.start {
		return 0
	}
	if (c == oneTime || c == pin) && isHalf(s, v) && isHalf(s, value{start: v.end + 1, end: run(s, min(v.end+1, len(s)), charsAlnum, 16)}) {
		return sc.add(classKinds[c], v.start, v.end+4)
	}
	if (c == oneTime || c == token) && x >= colon {
		if end := sc.groups(c, v.start); end > 0 {
			return end
		}
	}
	if !judge(c, v.of(s), x, false, sc.alone(v.next, x)) || x == assign && isArgument(s, v) {
		return 0
	}
	if v.next == p+maxJudged {
		v = sc.plainValue(p, x, len(s))
	}
	end := sc.addValue(c, v)
	if x == spoken {
		return sc.others(c, end)
	}
	return end
}

// others notes the secrets that an "or" joins to the one that ends at p: X or Y.
func (sc *scanner) others(c class, p int) int {
	s := sc.s
	for range 8 {
		at := skipBlanks(s, p)
		end := wordEnd(s, at)
		if at == p || !isOneOf(alternatives, s[at:end]) {
			return p
		}
		v := sc.plainValue(skipBlanks(s, end), spoken, maxJudged)
		text := v.of(s)
		if sh := shapeOf(text); text == "" || !stands(text, sh) || sh.digits == 0 || !judge(c, text, spoken, false, true) {
			return p
		}
		p = sc.addValue(c, v)
	}
	return p
}

// alternatives join secrets of which one will do.
var alternatives = setOf(`or oder ou o of lub eller`)

// isArgument tells whether v is a plain name that a call passes on: connect(password=user_password).
func isArgument(s string, v value) bool {
	text := v.of(s)
	return v.next < len(s) && (s[v.next] == ')' || s[v.next] == ',') && isIdentifier(text) && shapeOf(text).digits == 0 && strings.IndexByte(text, '_') > 0
}

// isHalf tells whether v is three digits, half of a code as telephones show it.
func isHalf(s string, v value) bool {
	return v.end-v.start == 3 && v.end <= len(s) && isDigits(s[v.start:v.end])
}

// wrapped reads the only argument of the call that begins at p, if it is a string that cannot be the name of a setting.
func (sc *scanner) wrapped(p int, x syntax) (value, bool) {
	s := sc.s
	name := run(s, p, charsPathName, 48)
	if !x.strong() && x != colon || name == p || name >= len(s) || s[name] != '(' {
		return value{}, false
	}
	v, ok := sc.quotedValue(skipBlanks(s, name+1))
	text := v.of(s)
	return v, ok && shapeOf(text).random(len(text), 12) && !isOrdinary(text)
}

var charsPathName = newCharset(alnums + "_.:")

// takeQuoted judges a quoted value, and those joined to it by + or a line break.
func (sc *scanner) takeQuoted(c class, v value, x syntax) int {
	s := sc.s
	if isGap(s, v) {
		return 0
	}
	v.start = skipScheme(s, v.start)
	if v.end <= v.start || !judge(c, v.of(s), x, true, true) {
		return 0
	}
	end := sc.addValue(c, v)
	for next := v.next; ; {
		p := skipSpaces(s, next)
		joined := p < len(s) && (s[p] == '+' || s[p] == '.' || s[p] == '\\')
		if joined {
			p = skipSpaces(s, p+1)
		}
		more, ok := value{}, false
		if joined {
			more, ok = sc.quotedValue(p)
		}
		if !ok || more.end <= more.start {
			return max(end, next)
		}
		next = sc.addValue(c, more)
	}
}

// isGap tells whether v only seems a string: its first quote closes one, as in "password=" + x + "&y".
func isGap(s string, v value) bool {
	inner := v.of(s)
	body := strings.TrimLeft(inner, " ")
	if body == "" || strings.IndexByte("+.,%", body[0]) < 0 || v.start < 2 || isSpace(s[v.start-2]) {
		return false
	}
	body = strings.TrimLeft(body[1:], " ")
	return body == "" || body[0] == '(' && inner[0] == ' ' || isLetter(body[0]) && (inner[len(inner)-1] == ' ' || inner[len(inner)-1] == '+' || run(body, 0, charsWord, 64) == len(body))
}

// addValue notes the value v. Where an issuer's prefix begins it, the finding has the issuer's kind.
func (sc *scanner) addValue(c class, v value) int {
	kind := classKinds[c]
	for _, row := range sc.r.vendorRows[sc.s[v.start]] {
		if f, ok := sc.vendorAt(row, v.start); ok && f.Start == v.start && f.Kind != "webhook" {
			kind = f.Kind
			v.end = max(v.end, f.End)
			break
		}
	}
	return sc.add(kind, v.start, v.end)
}

// alone tells whether nothing but a comment, a closing bracket or another pair follows position p in its line.
func (sc *scanner) alone(p int, x syntax) bool {
	s := sc.s
	p = skipBlanks(s, p)
	if p >= len(s) {
		return true
	}
	switch s[p] {
	case '\n', '\r', ';', '}', ']', '"', '\'', '\\', '`':
		return true
	case '-', '|', '>', '<', '&':
		return x == flag || x == element || s[p] == '<' || s[p] == '|'
	case ',', ')':
		return x != flag
	case '#', '/':
		return p > 0 && isBlank(s[p-1])
	case '.', '!', '?':
		return p+1 >= len(s) || isSpace(s[p+1])
	}
	r, _ := utf8.DecodeRuneInString(s[p:])
	return r >= 0x3000
}

// skipPrefixes skips what a programming language puts before a string: r"", f"", N”, $”, @"", !!str, and calls that only wrap one.
func skipPrefixes(s string, p int) int {
	for _, w := range wrappers {
		if hasFold(s, p, w) {
			p = skipBlanks(s, p+len(w))
		}
	}
	for width := 1; width <= 2 && p+width < len(s); width++ {
		if strings.IndexByte("rbfuRBFUN$@L", s[p+width-1]) < 0 {
			break
		}
		if c := s[p+width]; c == '"' || c == '\'' || c == '`' && width == 1 {
			return p + width
		}
	}
	return p
}

// wrappers stand before a value and only wrap it. The order matters: types and keywords come before calls.
var wrappers = []string{
	"!!str ", "!!binary ", "string = ", "str = ", "string := ", "new ", "(convertto-securestring ", "convertto-securestring ", "-string ",
	"securestring(", "secretstr(", "secret(", "buffer.from(", "base64.b64decode(", "b64decode(", "base64decode(", "atob(", "string(", "str(", "[]byte(", "bytes(", "some(",
	"base64.b64encode(", "base64:",
}

// skipScheme skips the scheme of an HTTP credential: Bearer x, Basic x, token x.
func skipScheme(s string, p int) int {
	for _, scheme := range authSchemes {
		if hasFold(s, p, scheme) {
			return skipBlanks(s, p+len(scheme))
		}
	}
	return p
}

var authSchemes = []string{"bearer ", "basic ", "token ", "apikey ", "api-key ", "ssws ", "splunk ", "genie ", "genieKey ", "bot ", "negotiate ", "ntlm ", "jwt ", "key ", "flyv1 "}
