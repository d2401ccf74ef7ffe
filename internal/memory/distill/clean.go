package distill

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// clean makes s fit to be shown to a model or kept as an item's text: valid
// UTF-8, without terminal escapes, control, bidirectional, zero-width and other
// invisible characters. Line breaks stay. Joiners stay where a script or an
// emoji sequence needs them.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	b.Grow(len(s))
	var before rune
	for i, r := range s {
		after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		switch {
		case r == '\r':
			if after != '\n' {
				b.WriteByte('\n')
			}
		case r == '\n', r == '\t':
			b.WriteRune(r)
		case r == '\u2028', r == '\u2029':
			b.WriteByte('\n')
		case text.IsJoiner(r) && text.Joins(before) && text.Joins(after):
			b.WriteRune(r)
		case !text.IsInvisible(r):
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// oneLine is clean with every run of white space as one space.
func oneLine(s string) string {
	return strings.Join(strings.Fields(clean(s)), " ")
}

// isHidden reports characters whose only use in chat is to hide or reorder text;
// a soft hyphen or a byte order mark comes along with honest copying.
func isHidden(r rune) bool {
	return r != '\u00AD' && r != '\uFEFF' && r != '\n' && r != '\r' && r != '\t' && !text.IsJoiner(r) && text.IsInvisible(r)
}

// plainSigns maps signs to the ASCII one that they stand for. For detection only.
var plainSigns = map[rune]rune{
	'ǃ': '!', '‹': '<', '›': '>', '∕': '/', '⁄': '/', '：': ':', '‐': '-', '‑': '-', '‒': '-', '–': '-', '—': '-', '−': '-',
	'’': '\'', '‘': '\'', '“': '"', '”': '"', '„': '"', '«': '"', '»': '"',
}

// unmask folds s for detection: NFKC, without invisible characters and combining
// marks, lower case, look-alikes as Latin letters.
func unmask(s string) string {
	s = norm.NFD.String(norm.NFKC.String(strings.ToValidUTF8(s, "\uFFFD")))
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		switch {
		case r == '\n', r == '\r', r == '\u2028', r == '\u2029':
			return '\n'
		case r == '\t':
			return ' '
		case text.IsInvisible(r), unicode.Is(unicode.Mn, r):
			return -1
		}
		if plain, found := plainSigns[r]; found {
			return plain
		}
		return text.Latin(r)
	}, s)
}

// foldScript is unmask without the folding of look-alikes: for words of scripts
// other than Latin.
func foldScript(s string) string {
	s = norm.NFD.String(norm.NFKC.String(strings.ToValidUTF8(s, "\uFFFD")))
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		switch {
		case r == '\r', r == '\u2028', r == '\u2029':
			return '\n'
		case r == '\t':
			return ' '
		case r != '\n' && text.IsInvisible(r), unicode.Is(unicode.Mn, r):
			return -1
		}
		return r
	}, s)
}
