package workspace

import (
	"iter"
	"regexp"
	"strings"
)

// rows cuts a file of gating policies: sections as ever, but the body rows of
// their tables are records of their own, after what else the section says.
func rows(text string) iter.Seq[section] {
	return func(yield func(section) bool) {
		for s := range sections(text, false) {
			rest, body := tables(s)
			if !emit(s, rest, s.end, yield) {
				return
			}
			for _, row := range body {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// tables takes the tables out of a section: rest is its text without them, body
// their rows. A table is a row, a separator row and more rows.
func tables(s section) (rest string, body []section) {
	lines := strings.Split(s.text, "\n")
	var kept []string
	for i := 0; i < len(lines); {
		if !isRow(lines[i]) || i+1 == len(lines) || !isSeparator(lines[i+1]) {
			kept = append(kept, lines[i])
			i++
			continue
		}
		for i += 2; i < len(lines) && isRow(lines[i]); i++ {
			if !isSeparator(lines[i]) {
				body = append(body, section{heading: s.heading, headed: s.headed, text: lines[i], start: s.start + i, end: s.start + i})
			}
		}
	}
	return strings.Join(kept, "\n"), body
}

func isRow(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "|") }

var separatorCell = regexp.MustCompile(`^:?-+:?$`)

func isSeparator(line string) bool {
	if !isRow(line) {
		return false
	}
	for _, cell := range cells(line) {
		if !separatorCell.MatchString(cell) {
			return false
		}
	}
	return true
}

// cells returns the cells of a row, trimmed. A bar after a backslash is part of
// its cell.
func cells(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	var out []string
	from := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			out = append(out, strings.TrimSpace(line[from:i]))
			from = i + 1
		}
	}
	if last := strings.TrimSpace(line[min(from, len(line)):]); last != "" || len(out) == 0 {
		out = append(out, last)
	}
	return out
}
