package text

import "unicode"

// IsInvisible reports whether a character has no ink: control and format
// characters, line and paragraph separators, fillers, variation selectors and
// tag characters. Blanks, tabs and joiners are for the caller: tabs and line
// breaks count as control characters, joiners as format characters.
func IsInvisible(r rune) bool {
	switch {
	case ' ' <= r && r < 0x7F:
		return false
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
		return true
	case 0xE0000 <= r && r <= 0xE0FFF: // tags and variation selectors
		return true
	case r == 0x034F || r == 0x115F || r == 0x1160 || r == 0x17B4 || r == 0x17B5 || r == 0x3164 || r == 0xFFA0:
		return true
	}
	return false
}

// IsJoiner reports the zero-width joiner and non-joiner.
func IsJoiner(r rune) bool { return r == '\u200C' || r == '\u200D' }

// Joins reports whether a joiner beside r has a meaning: in the scripts of India
// and Arabia, and in emoji.
func Joins(r rune) bool {
	if r < 0x300 {
		return false
	}
	return unicode.In(r, unicode.So, unicode.Sk) || r == '\uFE0F' ||
		unicode.In(r, unicode.L, unicode.M) && !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}
