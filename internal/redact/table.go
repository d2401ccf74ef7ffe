package redact

import "strings"

const (
	maxRow  = 1024 // bytes of a row that is looked at
	maxRows = 256
)

// column notes the secrets under the heading s[from:to] of a table, be it Markdown, CSV or set apart by tabs.
// It answers the end of the last one, or 0.
func (sc *scanner) column(c class, from, to int) int {
	s := sc.s
	end := sc.lineEnd(to)
	mark := divider(s, from, to, end)
	if mark == 0 || end == len(s) {
		return 0
	}
	begin := lineStart(s, from)
	if end-begin > maxRow || !isHeader(s[begin:end], mark) {
		return 0
	}
	marks, index := strings.Count(s[begin:end], string(mark)), strings.Count(s[begin:from], string(mark))
	if begin > 0 && strings.Count(s[lineStart(s, begin-1):begin-1], string(mark)) == marks {
		return 0 // a row like the others
	}
	last := 0
	for row, rows := end+1, 0; row < len(s) && rows < maxRows; rows++ {
		stop := sc.lineEnd(row)
		if stop-row > maxRow || strings.Count(s[row:stop], string(mark)) != marks {
			break
		}
		if at := sc.cellAt(c, row, stop, index, mark); at > 0 {
			last = at
		}
		row = stop + 1
	}
	return last
}

// lineStart answers where the line of i begins, or a position far before i.
func lineStart(s string, i int) int {
	from := max(0, i-maxRow-1)
	return from + strings.LastIndexByte(s[from:i], '\n') + 1
}

// divider answers what sets the cells of a heading apart, given the name s[from:to] in one of them, or 0.
func divider(s string, from, to, end int) byte {
	after, before := skipQuotes(s, to), skipBack(s, from)
	for _, mark := range []byte{'|', ',', ';', '\t'} {
		left := before > 0 && s[before-1] == mark || mark == '\t' && from > 0 && s[from-1] == mark
		right := after < end && s[after] == mark || mark == '\t' && to < end && s[to] == mark
		if (left || right) && (right || after >= end || s[after] == '\r') && (left || before == 0 || s[before-1] == '\n') {
			return mark
		}
	}
	return 0
}

// skipQuotes answers the position from i on of the first byte that is no blank, quote or star.
func skipQuotes(s string, i int) int {
	for limit := i + 16; i < len(s) && i < limit && (isBlank(s[i]) || strings.IndexByte("\"'*", s[i]) >= 0); {
		i++
	}
	return i
}

// isHeader tells whether a line has short names between marks and nothing else.
func isHeader(line string, mark byte) bool {
	for cell := range strings.SplitSeq(line, string(mark)) {
		if cell = strings.Trim(cell, " \t\r\"'*"); len(cell) > 32 || mark != '|' && cell == "" || strings.Count(cell, " ") > 2 || strings.ContainsAny(cell, ":=(){}") {
			return false
		}
	}
	return true
}

// cellAt notes the cell of the given index in the row s[row:stop] if it is a secret.
func (sc *scanner) cellAt(c class, row, stop, index int, mark byte) int {
	s := sc.s
	start := row
	for range index {
		start += strings.IndexByte(s[start:stop], mark) + 1
	}
	end := stop
	if at := strings.IndexByte(s[start:stop], mark); at >= 0 {
		end = start + at
	}
	const padding = " \t\r\"'`*"
	start += len(s[start:end]) - len(strings.TrimLeft(s[start:end], padding))
	end = start + len(strings.TrimRight(s[start:end], padding))
	if end <= start || !judge(c, s[start:end], assign, true, true) {
		return 0
	}
	return sc.add(classKinds[c], start, end)
}

// inserted notes the secrets that an SQL statement writes into the column s[from:to]: INSERT INTO t (a, password) VALUES ('x', 'y').
// It answers the end of the last one, or 0.
func (sc *scanner) inserted(c class, from, to int) int {
	s := sc.s
	next := skipQuotes(s, to)
	if next >= len(s) || s[next] != ')' && s[next] != ',' {
		return 0
	}
	before := s[max(0, from-maxJudged):from]
	open := strings.LastIndexByte(before, '(')
	closing := strings.IndexByte(s[to:min(len(s), to+maxJudged)], ')')
	if open < 0 || closing < 0 {
		return 0
	}
	index := strings.Count(before[open:], ",")
	p := skipSpaces(s, to+closing+1)
	if !hasFold(s, p, "values") {
		return 0
	}
	last := 0
	for p = skipSpaces(s, p+len("values")); p < len(s) && s[p] == '('; p = skipSpaces(s, p+1) {
		end, at := sc.rowValue(c, p+1, index)
		last = max(last, at)
		p = skipSpaces(s, end)
		if p+1 >= len(s) || s[p] != ')' {
			break
		}
		if p = skipSpaces(s, p+1); p >= len(s) || s[p] != ',' {
			break
		}
	}
	return last
}

// rowValue notes the value of the given index in the list that begins at p. It answers where the list ends and the finding does.
func (sc *scanner) rowValue(c class, p, index int) (end, found int) {
	s := sc.s
	for i := range 64 {
		p = skipSpaces(s, p)
		if v, ok := sc.quotedValue(p); ok {
			if i == index && v.end > v.start && judge(c, v.of(s), assign, true, true) {
				found = sc.addValue(c, v)
			}
			p = v.next
		} else {
			for p < len(s) && s[p] != ',' && s[p] != ')' && s[p] != '\n' {
				p++
			}
		}
		if p = skipSpaces(s, p); p >= len(s) || s[p] != ',' {
			break
		}
		p++
	}
	return p, found
}
