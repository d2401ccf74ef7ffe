package report

import (
	"errors"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// longest is how much of a memory's text a report shows, in characters.
const longest = 160

// clean makes a text fit for a line of a report: without secrets, in one line, with
// nothing that a terminal obeys or Markdown takes for more than text, and not too long.
func (g *gathering) clean(s string) string {
	s = oneLine(g.opts.Redact.Text(s))
	if utf8.RuneCountInString(s) <= longest {
		return s
	}
	cut := []rune(s)[:longest]
	short := string(cut)
	if space := strings.LastIndexByte(short, ' '); space > len(short)/2 {
		short = short[:space]
	}
	return strings.TrimRight(short, " ,;:") + " …"
}

// markdown are the characters that Markdown or HTML takes for more than text, and
// what stands for them. Plain prose has none of them.
var markdown = strings.NewReplacer("`", "'", "<", "‹", ">", "›", "[", "(", "]", ")", "*", "∗", "|", "¦", "![", "(")

func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case text.IsInvisible(r) && !text.IsJoiner(r):
			return -1
		}
		return r
	}, s)
	return markdown.Replace(strings.Join(strings.Fields(s), " "))
}

// skipGone makes nothing of a file that has gone meanwhile.
func skipGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
