package workspace

import (
	"iter"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Split is a way to cut files into records.
type Split string

// The ways to cut. The last two give records ids of their own, which are never
// those of the first.
const (
	SplitClient     Split = "client"      // as the reference client: at every line that starts with "## "
	SplitFenceAware Split = "fence-aware" // the same, but not inside fenced code
	SplitRows       Split = "rows"        // the same, and each row of a gating table is a record
)

// ParseSplit checks s; "" is SplitClient.
func ParseSplit(s string) (Split, error) {
	switch sp := Split(s); sp {
	case "":
		return SplitClient, nil
	case SplitClient, SplitFenceAware, SplitRows:
		return sp, nil
	}
	return "", &memory.FieldError{Field: "split", Reason: "must be client, fence-aware or rows, not " + s}
}

// idNames is what stands in the name of an id between file and index.
var idNames = map[Split]string{SplitClient: ":", SplitFenceAware: ":fence:", SplitRows: ":row:"}

// section is a piece of a file.
type section struct {
	heading    string
	headed     bool // false: no heading
	text       string
	start, end int // lines, 1 for the first, both included
}

const headingMark = "## "

// sections cuts a text at its headings of the second level. What stands before
// the first one is a section unless it is blank.
func sections(text string, fenceAware bool) iter.Seq[section] {
	return func(yield func(section) bool) {
		if strings.Contains(text, "\r\n") {
			text = strings.ReplaceAll(text, "\r\n", "\n")
		}
		now := section{start: 1}
		begin := 0
		var open fence
		number := 0
		for pos := 0; pos < len(text); {
			line, next := text[pos:], len(text)
			if end := strings.IndexByte(line, '\n'); end >= 0 {
				line, next = line[:end], pos+end+1
			}
			number++
			inside := fenceAware && open.see(line)
			if !inside && strings.HasPrefix(line, headingMark) {
				if pos > 0 && !emit(now, text[begin:pos-1], number-1, yield) {
					return
				}
				now, begin = section{heading: headingOf(line), headed: true, start: number}, pos
			}
			pos = next
		}
		emit(now, strings.TrimSuffix(text[begin:], "\n"), number, yield)
	}
}

// emit yields a section whose text and end are known now. false: no more.
func emit(s section, text string, end int, yield func(section) bool) bool {
	if !s.headed && blank(text) {
		return true
	}
	s.text, s.end = text, end
	return yield(s)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func headingOf(line string) string {
	for strings.HasPrefix(line, headingMark) {
		line = line[len(headingMark):]
	}
	return strings.TrimSpace(line)
}

// whole returns a text as one section, untouched; none if it is blank.
func whole(text string) iter.Seq[section] {
	return func(yield func(section) bool) {
		if blank(text) {
			return
		}
		lines := strings.Count(text, "\n")
		if !strings.HasSuffix(text, "\n") {
			lines++
		}
		yield(section{text: text, start: 1, end: max(1, lines)})
	}
}

// fence follows the fenced code blocks of CommonMark.
type fence struct {
	mark byte // ` or ~; 0 outside of a block
	size int
}

// see takes the next line and reports whether it is part of a block.
func (f *fence) see(line string) bool {
	rest := strings.TrimLeft(line, " ")
	if len(line)-len(rest) > 3 || rest == "" || rest[0] != '`' && rest[0] != '~' {
		return f.mark != 0
	}
	after := strings.TrimLeft(rest, rest[:1])
	size := len(rest) - len(after)
	switch {
	case f.mark == 0:
		if size >= 3 && (rest[0] == '~' || !strings.Contains(after, "`")) {
			f.mark, f.size = rest[0], size
		}
		return f.mark != 0
	case rest[0] == f.mark && size >= f.size && strings.Trim(after, " \t") == "":
		f.mark = 0
	}
	return true
}
