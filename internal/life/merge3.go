package life

import (
	"fmt"
	"strings"
)

// piece is a section of a Markdown file with every byte of it.
type piece struct {
	key  string // its heading and which of that heading it is
	text string
}

func (p piece) bare() string { return strings.TrimRight(p.text, "\r\n \t") }

// pieces cuts a text before each H2 heading; joined they are the text.
func pieces(text string) []piece {
	var out []piece
	seen := map[string]int{}
	begin := func(heading string) {
		seen[heading]++
		out = append(out, piece{key: fmt.Sprintf("%s#%d", heading, seen[heading])})
	}
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "## ") {
			begin(strings.TrimSpace(l))
		} else if len(out) == 0 {
			begin("")
		}
		out[len(out)-1].text += l
	}
	return out
}

// merge3 merges two texts that came from base, section by section. A section
// that both changed, in ways that do not go together, stays as ours has it and
// counts as a conflict; so does one that one side changed and the other took
// away.
func merge3(base, ours, theirs string) (merged string, conflicts int) {
	was, come := byKey(pieces(base)), byKey(pieces(theirs))
	var out []piece
	have := map[string]bool{}
	for _, o := range pieces(ours) {
		have[o.key] = true
		b, t := was[o.key], come[o.key]
		switch {
		case t == nil && (b == nil || b.bare() != o.bare()):
			if b != nil {
				conflicts++ // they took away what we changed
			}
			out = append(out, o)
		case t == nil: // they took away what we left alone
		case t.bare() == o.bare() || b != nil && b.bare() == t.bare():
			out = append(out, o)
		case b != nil && b.bare() == o.bare():
			out = append(out, *t)
		default:
			both, fits := appended(b, o, *t)
			if !fits {
				conflicts++
			}
			out = append(out, both)
		}
	}
	before := ""
	for _, t := range pieces(theirs) {
		if !have[t.key] {
			b := was[t.key]
			switch {
			case b == nil:
				out = insertAfter(out, before, t)
			case b.bare() != t.bare():
				conflicts++ // they changed what we took away
			}
		}
		before = t.key
	}
	return join(out), conflicts
}

func byKey(list []piece) map[string]*piece {
	out := make(map[string]*piece, len(list))
	for i := range list {
		out[list[i].key] = &list[i]
	}
	return out
}

// appended joins what both sides added at the end of a section, as logs grow;
// false, and ours, where they did anything else.
func appended(base *piece, ours, theirs piece) (piece, bool) {
	if base == nil {
		return ours, false
	}
	b := base.bare()
	if b == "" || !strings.HasPrefix(ours.text, b+"\n") || !strings.HasPrefix(theirs.text, b+"\n") {
		return ours, false
	}
	tail := strings.TrimLeft(theirs.text[len(b):], "\r\n")
	return piece{ours.key, strings.TrimRight(ours.text, "\r\n \t") + "\n" + tail}, true
}

// insertAfter puts p behind the piece of the given key, else at the end.
func insertAfter(list []piece, key string, p piece) []piece {
	for i, x := range list {
		if x.key == key {
			return append(list[:i+1:i+1], append([]piece{p}, list[i+1:]...)...)
		}
	}
	return append(list, p)
}

// join puts pieces together. One that was the last of its file and is not any
// more gets the blank line that stands before a heading.
func join(list []piece) string {
	var sb strings.Builder
	for i, p := range list {
		sb.WriteString(p.text)
		if i == len(list)-1 || strings.HasSuffix(p.text, "\n\n") || p.text == "" {
			continue
		}
		if !strings.HasSuffix(p.text, "\n") {
			sb.WriteString("\n")
		}
		if strings.TrimSpace(p.text) != "" && !strings.HasSuffix(p.text, "\n\n") && !strings.HasSuffix(p.text, "\r\n\r\n") {
			sb.WriteString("\n")
		}
	}
	return sb.String()
}
