package distill

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// folded is a text made comparable, with the way back to the original.
type folded struct {
	text string
	// from and to are, for each byte of text, the byte span in the original of the
	// characters that it came from.
	from, to []int
}

// fold applies NFKC, makes all quotation marks, dashes and runs of white space
// one each, and drops invisible characters. Case is kept.
func fold(s string) folded {
	var b strings.Builder
	var f folded
	var it norm.Iter
	space := true // leading space is dropped
	for it.InitString(norm.NFKC, s); !it.Done(); {
		from := it.Pos()
		characters := string(it.Next())
		for _, r := range characters {
			r = foldRune(r)
			if r < 0 || r == ' ' && space {
				continue
			}
			space = r == ' '
			for range utf8.RuneLen(r) {
				f.from, f.to = append(f.from, from), append(f.to, it.Pos())
			}
			b.WriteRune(r)
		}
	}
	f.text = b.String()
	return f
}

// foldRune returns a space for white space and -1 for what is dropped.
func foldRune(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case strings.ContainsRune("'’‘‚‛`´′", r):
		return '\''
	case strings.ContainsRune("\"“”„‟«»″", r):
		return '"'
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case text.IsInvisible(r):
		return -1
	}
	return r
}

// span finds quote in text, both folded, and returns that part of text as it
// stands there. A quote without a letter or digit is never found.
func span(text, quote string) (string, bool) {
	want := strings.TrimSpace(fold(quote).text)
	if !strings.ContainsFunc(want, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return "", false
	}
	in := fold(text)
	at := strings.Index(in.text, want)
	if at < 0 {
		return "", false
	}
	return strings.TrimSpace(text[in.from[at]:in.to[at+len(want)-1]]), true
}
