package distill

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// folded is a text made comparable, with the way back to the original.
type folded struct {
	text   string
	origin []int // byte offset in the original of each byte of text, and of its end
}

// fold applies NFKC, makes all quotation marks, dashes and runs of white space
// one each, and drops invisible characters. Case is kept.
func fold(s string) folded {
	var b strings.Builder
	origin := make([]int, 0, len(s)+1)
	put := func(r rune, at int) {
		n, _ := b.WriteRune(r)
		for range n {
			origin = append(origin, at)
		}
	}
	var it norm.Iter
	space := true // leading space is dropped
	for it.InitString(norm.NFKC, s); !it.Done(); {
		at := it.Pos()
		for _, r := range string(it.Next()) {
			r = foldRune(r)
			switch {
			case r == ' ' && !space:
				put(r, at)
			case r == ' ' || r < 0:
				continue
			default:
				put(r, at)
			}
			space = r == ' '
		}
	}
	return folded{text: b.String(), origin: append(origin, len(s))}
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
	case isInvisible(r):
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
	from, to := in.origin[at], in.origin[at+len(want)]
	return strings.TrimSpace(text[from:to]), true
}
