package redact

import (
	"strings"
	"unicode/utf8"
)

// maxQuoted bounds how far a closing quote is looked for.
const maxQuoted = 8192

// opening reads an opening quote at p: backslashes, then the quote. It answers where the string begins,
// how many backslashes stood before the quote, and what closes it.
func opening(s string, p int) (body, slashes int, closing string) {
	for p+slashes < len(s) && s[p+slashes] == '\\' {
		slashes++
	}
	q := p + slashes
	if q >= len(s) || slashes > 15 {
		return 0, 0, ""
	}
	switch s[q] {
	case '"', '\'', '`':
		return q + 1, slashes, s[q : q+1]
	}
	if slashes > 0 || s[q] < utf8.RuneSelf {
		return 0, 0, ""
	}
	for _, pair := range []struct{ open, closing string }{
		{"“", "”"}, {"„", "“"}, {"«", "»"}, {"»", "«"}, {"‘", "’"}, {"‚", "‘"}, {"「", "」"}, {"『", "』"}, {"‹", "›"},
	} {
		if strings.HasPrefix(s[q:], pair.open) {
			return q + len(pair.open), 0, pair.closing
		}
	}
	return 0, 0, ""
}

// quotedValue reads the string that begins at p. It answers false if none begins there or none ends in its line.
func (sc *scanner) quotedValue(p int) (value, bool) {
	s := sc.s
	body, slashes, closing := opening(s, p)
	if closing == "" {
		return value{}, false
	}
	limit := min(body+maxQuoted, sc.lineEnd(body))
	if len(closing) > 1 {
		at := strings.Index(s[body:min(limit, body+256)], closing)
		if at < 0 && closing == "“" {
			closing = "”"
			at = strings.Index(s[body:min(limit, body+256)], closing)
		}
		return value{start: body, end: body + at, next: body + at + len(closing), quoted: true}, at >= 0
	}
	which := searchDouble + strings.IndexByte("\"'`", closing[0])
	for at, tries := sc.nextOf(which, body), 0; at < limit && tries < 64; at, tries = sc.nextOf(which, at+1), tries+1 {
		before := 0
		for at-before > body && s[at-before-1] == '\\' {
			before++
		}
		if slashes == 0 && before%2 == 1 || slashes > 0 && before > slashes {
			continue
		}
		if closing == "'" && slashes == 0 && at > body && at+1 < limit && s[at+1] == '\'' {
			at++ // a doubled quote of SQL
			continue
		}
		return value{start: body, end: at - min(before, slashes), next: at + 1, quoted: true}, true
	}
	return value{}, false
}

// plainValue reads a value without quotes that begins at p, no further than limit bytes.
func (sc *scanner) plainValue(p int, x syntax, limit int) value {
	s := sc.s
	i, depth := p, 0
scan:
	for stop := min(len(s), p+limit); i < stop; i++ {
		c := s[i]
		if isAlnum(c) {
			continue
		}
		if c >= utf8.RuneSelf {
			size, ends := foreignStop(s[i:])
			if ends {
				break
			}
			i += size - 1
			continue
		}
		switch c {
		case '(', '[', '{':
			depth++
			if c == '[' {
				if end := tagEnd(s, i); end > 0 {
					i = end - 1
					depth--
				}
			}
		case ')', ']', '}':
			if depth--; depth < 0 {
				break scan
			}
		default:
			if endsPlain(s, i, x) {
				break scan
			}
		}
	}
	v := value{start: p, end: i, next: i}
	v.end = trimEnd(s, v.start, v.end)
	return v
}

// endsPlain tells whether the ASCII byte at i, which is no letter, digit or bracket, ends a value without quotes.
func endsPlain(s string, i int, x syntax) bool {
	next := byte(' ')
	if i+1 < len(s) {
		next = s[i+1]
	}
	switch s[i] {
	case ' ', '\t', '\n', '\r', '\v', '\f', 0, ';':
		return true
	case '"', '\'', '`':
		return !isAlnum(next) || x == query
	case '\\':
		return strings.IndexByte("nrt\"'\\`", next) >= 0
	case '&':
		return x == query || strings.HasPrefix(s[i:], "&quot;") || strings.HasPrefix(s[i:], "&amp;") || startsPair(s, i+1)
	case '#':
		return x == query
	case ',':
		return isSpace(next) || next == '"' || next == '\'' || startsPair(s, i+1)
	case '<':
		return x == element || next == '/' || isLetter(next)
	case '|':
		return isSpace(next)
	case '>':
		return isSpace(next)
	}
	return false
}

// startsPair tells whether a name with = or : after it begins at i.
func startsPair(s string, i int) bool {
	end := run(s, i, charsDot, 40)
	return end > i && end < len(s) && (s[end] == '=' || s[end] == ':')
}

// foreignStop answers the size of the rune that s begins with, and whether it ends a value:
// a letter of a script without spaces, wide punctuation, a typographic quote, an odd space.
func foreignStop(s string) (int, bool) {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r >= 0x2000 && r <= 0x206F, r == 0xA0, r == 0xAB, r == 0xBB, r >= 0x3000 && r <= 0x30FF, r >= 0x3400 && r <= 0x9FFF,
		r >= 0xAC00 && r <= 0xD7AF, r >= 0xFF00 && r <= 0xFF60, r >= 0x1F300, r >= 0x2190 && r <= 0x27BF:
		return size, true
	}
	return size, false
}

// trimEnd takes the punctuation of a sentence and emphasis off the end of a value.
func trimEnd(s string, start, end int) int {
	for end > start {
		switch s[end-1] {
		case '.', ',', ':':
		case '*':
			if end-start < 2 || s[end-2] != '*' {
				return end
			}
			end--
		default:
			return end
		}
		end--
	}
	return end
}

// elementText reads the text of an XML element that begins at p. It answers false if no end tag follows.
func (sc *scanner) elementText(p int) (value, bool) {
	s := sc.s
	window := s[p:min(len(s), p+maxQuoted)]
	at := strings.IndexByte(window, '<')
	if at < 1 || !strings.HasPrefix(window[at:], "</") {
		return value{}, false
	}
	end := p + at
	for end > p && (isSpace(s[end-1]) || strings.HasSuffix(s[p:end], "]]>")) {
		if !isSpace(s[end-1]) {
			end -= 2
		}
		end--
	}
	return value{start: p, end: end, next: p + at, quoted: true}, end > p
}
