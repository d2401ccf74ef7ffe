package redact

import "strings"

// specialValue reads values that are no single word: block scalars, lists, members called value.
// It answers 0 if there is none, and -1 if there is one that holds no secret.
func (sc *scanner) specialValue(c class, p int, x syntax) int {
	s := sc.s
	switch {
	case (s[p] == '|' || s[p] == '>') && (x == colon || x == assign):
		return sc.block(c, p)
	case s[p] == '[' && tagEnd(s, p) == 0 && x.strong() || s[p] == '[' && x == colon && startsString(s, skipBlanks(s, p+1)):
		return sc.list(c, p+1)
	case s[p] == '{' && x.strong():
		q := skipSpaces(s, p+1)
		if !startsString(s, q) {
			return 0
		}
		if at, inner := sc.pairedValue(q, p+1); inner != noSyntax {
			if end := sc.take(c, at, inner); end > 0 {
				return end
			}
		}
		return -1
	}
	return 0
}

// list reads the quoted values of a list whose first entry may begin at p.
func (sc *scanner) list(c class, p int) int {
	s := sc.s
	last := -1
	for range 256 {
		p = skipSpaces(s, p)
		v, ok := sc.quotedValue(p)
		if !ok {
			return last
		}
		if v.end > v.start && judge(c, v.of(s), assign, true, true) {
			last = sc.addValue(c, v)
		}
		p = skipSpaces(s, v.next)
		if p >= len(s) || s[p] != ',' {
			return last
		}
		p++
	}
	return last
}

// block reads a YAML block scalar whose indicator stands at p: the lines after it that are indented further than its name's line.
func (sc *scanner) block(c class, p int) int {
	s := sc.s
	head := p + 1
	for head < len(s) && (s[head] == '-' || s[head] == '+' || isDigit(s[head])) {
		head++
	}
	head = skipBlanks(s, head)
	if head >= len(s) || s[head] != '\n' && s[head] != '\r' {
		return 0
	}
	outer := indentation(s, strings.LastIndexByte(s[max(0, p-256):p], '\n')+1+max(0, p-256))
	start, end := -1, -1
	for line := sc.lineEnd(head) + 1; line < len(s); {
		stop := sc.lineEnd(line)
		inner := indentation(s, line)
		if line+inner < stop {
			if inner <= outer {
				break
			}
			if start < 0 {
				start = line + inner
			}
			end = stop
		}
		line = stop + 1
	}
	if start < 0 || isPlaceholder(s[start:end]) || strings.HasPrefix(s[start:], "-----BEGIN") || strings.HasPrefix(s[start:], "$ANSIBLE_VAULT") {
		return -1
	}
	if c == token && !shapeOf(s[start:end]).random(end-start, 8) {
		return -1
	}
	return sc.add(classKinds[c], start, end)
}

// indentation answers how many spaces begin the line at i.
func indentation(s string, i int) int {
	n := 0
	for i+n < len(s) && s[i+n] == ' ' {
		n++
	}
	return n
}

// groups reads codes in groups, one after the other: backup codes, or the seed of an authenticator written in fours.
func (sc *scanner) groups(c class, p int) int {
	s := sc.s
	start, end, count, letters := p, 0, 0, 0
	for count < 64 {
		v := sc.plainValue(p, bare, 40)
		w := v.of(s)
		sh := shapeOf(w)
		chunk := sh.lowers == 0 && sh.symbols == 0 && sh.others == 0 && len(w) >= 4 && len(w) <= 8 && sh.joiners == 0
		numbered := sh.digits > 0 && len(w) >= 4 && len(w) <= 24 && !isMeasure(w) || sh.letters() == 0 && sh.digits >= 4 && sh.joiners <= 1
		if !(c == token && chunk || c == oneTime && (numbered || chunk && count > 0)) {
			break
		}
		count, letters, end = count+1, letters+sh.letters(), v.end
		p = v.next
		for limit := p + 8; p < len(s) && p < limit && (isSpace(s[p]) || strings.IndexByte(",;-|/", s[p]) >= 0); p++ {
		}
	}
	if c == token && (count < 4 || letters == 0) || count < 2 {
		return 0
	}
	return sc.add(classKinds[c], start, end)
}
