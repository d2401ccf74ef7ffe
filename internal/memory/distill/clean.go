package distill

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
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
		case isJoiner(r) && joins(before) && joins(after):
			b.WriteRune(r)
		case !isInvisible(r):
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
	return r != '\u00AD' && r != '\uFEFF' && r != '\n' && r != '\r' && r != '\t' && !isJoiner(r) && isInvisible(r)
}

func isInvisible(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7F && r <= 0x9F:
		return true
	case r == 0x00AD, r == 0x061C, r == 0x180E, r == 0x2060, r == 0xFEFF:
		return true
	case r >= 0x200B && r <= 0x200F, r == 0x2028, r == 0x2029, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return true
	case r >= 0xFFF9 && r <= 0xFFFB, r >= 0xE0000 && r <= 0xE007F, r >= 0xE0100 && r <= 0xE01EF:
		return true
	}
	return false
}

func isJoiner(r rune) bool { return r == '\u200C' || r == '\u200D' }

// joins reports whether a joiner next to r has a visible effect: between letters
// of scripts other than Latin, Greek and Cyrillic, and within emoji.
func joins(r rune) bool {
	switch {
	case unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic):
		return false
	case unicode.IsLetter(r), unicode.IsMark(r):
		return true
	}
	return unicode.Is(unicode.So, r) || r == '\uFE0F' || unicode.Is(unicode.Sk, r)
}

// lookalikes maps letters of other scripts to the Latin letter that they are
// mistaken for, after NFKC and lower case. For detection only.
var lookalikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'х': 'x', 'у': 'y', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'һ': 'h', 'к': 'k', 'м': 'm',
	'т': 't', 'в': 'b', 'н': 'h', 'ո': 'n', 'ս': 'u', 'ց': 'g', 'α': 'a', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u',
	'χ': 'x', 'ı': 'i', 'ɡ': 'g', 'ℓ': 'l', 'ǃ': '!', '‹': '<', '›': '>', '∕': '/', '⁄': '/', '：': ':', '‐': '-', '‑': '-', '‒': '-', '–': '-', '—': '-', '−': '-',
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
		case isInvisible(r), unicode.Is(unicode.Mn, r):
			return -1
		}
		if latin, found := lookalikes[r]; found {
			return latin
		}
		return r
	}, s)
}

// leet maps digits and signs that stand for letters.
var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s")
