package redact

import "strings"

// maxArmor bounds how far the end of a key in armor is looked for.
const maxArmor = 1 << 16

// armorAt reads the body of the private key whose first line begins at start. Public keys and certificates stay.
func (sc *scanner) armorAt(start int) int {
	s := sc.s
	if hasFold(s, start, "private-lines:") {
		return sc.ppkAt(start + len("private-lines:"))
	}
	title := run(s, start, charsDashSpace, 80)
	close := strings.Index(s[start+4:title], "----") // after the opening dashes
	if at := strings.Index(s[start+6:title], "----"); at >= 0 {
		close = at + 2
	}
	if close < 0 {
		return 0
	}
	head := start + 4 + close
	label := s[start:head]
	for head < title && s[head] == '-' {
		head++
	}
	if !strings.Contains(label, "PRIVATE") && !strings.Contains(label, "SECRET") {
		return 0
	}
	end := sc.armorEnd(head)
	body := skipArmorHeaders(s, head, end)
	for body < end && !isAlnum(s[body]) {
		body++
	}
	if body > head && body < end && strings.IndexByte("nr", s[body]) >= 0 && s[body-1] == '\\' {
		for body < end && (s[body-1] == '\\' && strings.IndexByte("nr", s[body]) >= 0 || !isAlnum(s[body])) {
			body++
		}
	}
	for end > body && !isAlnum(s[end-1]) && s[end-1] != '=' {
		end--
	}
	for end-2 >= body && s[end-2] == '\\' && (s[end-1] == 'n' || s[end-1] == 'r') {
		end -= 2
		for end > body && s[end-1] == '\\' {
			end--
		}
	}
	if end-body < 12 {
		return 0
	}
	if resume := sc.add("private_key", body, end); body-head <= 8 {
		return resume
	}
	return 0 // the headers before the body are still to be read
}

var charsDashSpace = newCharset(alnums + "- ")

// armorEnd answers where the body ends that begins at head: before its END line, or after the last line that looks like a body.
func (sc *scanner) armorEnd(head int) int {
	s := sc.s
	limit := min(len(s), head+maxArmor)
	if at := strings.Index(s[head:limit], "----"); at >= 0 {
		mark := head + at
		limit = mark
		rest := strings.TrimLeft(s[mark:min(len(s), mark+16)], "- ")
		if (strings.HasPrefix(rest, "END") || strings.HasPrefix(rest, "end")) && isArmorBody(s[head:mark]) {
			return mark
		}
	}
	end := head
	for p := head; p < limit; {
		next := armorLineEnd(s, p, limit)
		line := strings.Trim(s[p:next], " \t\r\n\\\"'>|+,#*")
		if at := strings.IndexByte(line, '\\'); at >= 0 && at < len(line)-2 {
			break // an escape of other text
		}
		words := strings.Fields(line)
		header := strings.Contains(line, ": ")
		if len(words) > 1 && !header && !isArmorBody(line) || strings.HasPrefix(line, "----") {
			break
		}
		if len(words) > 0 && !header {
			if p == head && len(words[0]) < 16 || len(words[0]) < 16 && shapeOf(line).digits == 0 && end == head {
				break
			}
			end = p + strings.Index(s[p:next], line) + len(line)
		}
		p = next + 1
	}
	return end
}

// armorLineEnd answers where the line at p ends, be the line break a real or an escaped one.
func armorLineEnd(s string, p, limit int) int {
	for i := p; i < limit; i++ {
		if s[i] == '\n' || s[i] == '\\' && i > p && i+1 < limit && s[i+1] == 'n' {
			return i
		}
	}
	return limit
}

// isArmorBody tells whether body is mostly base64, with few blanks in it.
func isArmorBody(body string) bool {
	good, blanks, lettersOnly := 0, 0, 0
	for i := range len(body) {
		switch c := body[i]; {
		case isAlnum(c) || c == '+' || c == '/' || c == '=':
			good++
		case c == ' ':
			blanks++
		}
	}
	for w := range strings.FieldsSeq(body) {
		if len(w) < 12 && isWords(w, "") {
			lettersOnly++
		}
	}
	return good >= 16 && lettersOnly <= 2+blanks/8 && blanks*4 < good
}

// skipArmorHeaders skips lines such as "Proc-Type: 4,ENCRYPTED" at the top of a body.
func skipArmorHeaders(s string, p, end int) int {
	for p < end {
		next := armorLineEnd(s, p, end)
		if line := strings.TrimLeft(s[p:next], "\\nr \t\r\n>|"); strings.Trim(line, " \t") != "" {
			if at := strings.Index(line, ": "); at <= 0 || at > 20 {
				return p
			}
		}
		p = next + 1
	}
	return p
}

// ppkAt reads the lines of base64 after "Private-Lines: n" of a PuTTY key.
func (sc *scanner) ppkAt(p int) int {
	s := sc.s
	p = sc.lineEnd(p)
	start := skipSpaces(s, p)
	end := start
	for line := start; line < len(s); {
		stop := run(s, line, charsBase64, 100)
		if stop-line < 8 || stop < len(s) && !isSpace(s[stop]) {
			break
		}
		end = stop
		line = skipSpaces(s, stop)
	}
	if end-start < 12 {
		return 0
	}
	return sc.add("private_key", start, end)
}
