package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPassage is the most characters (runes) in a passage.
const MaxPassage = 500

// Passages cuts a turn into passages of at most MaxPassage characters, at ends
// of lines or sentences where there are any, else between words, else anywhere
// between runes. Passages are trimmed and never empty; joined, they hold every
// word of s in order. The cut depends on s alone.
func Passages(s string) []string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "�"))
	if s == "" {
		return nil
	}
	if utf8.RuneCountInString(s) <= MaxPassage {
		return []string{s}
	}
	var out []string
	for s != "" {
		cut := cutAt(s)
		if p := strings.TrimSpace(s[:cut]); p != "" {
			out = append(out, p)
		}
		s = strings.TrimLeftFunc(s[cut:], unicode.IsSpace)
	}
	return out
}

// cutAt returns the byte length of the first passage of s: up to the last end
// of a line or sentence within the limit, but never less than a quarter of it
// while a space further on allows more.
func cutAt(s string) int {
	const least = MaxPassage / 4
	strong, weak, n := 0, 0, 0
	var before rune
	for i, r := range s {
		if n == MaxPassage {
			switch {
			case strong > 0:
				return strong
			case weak > 0:
				return weak
			}
			return i
		}
		switch {
		case n < least: // too short to stand alone
		case r == '\n' || wideStop(r):
			strong = i + utf8.RuneLen(r)
		case unicode.IsSpace(r):
			weak = i
			if before == '.' || before == '!' || before == '?' {
				strong = i
			}
		}
		before = r
		n++
	}
	return len(s)
}

// wideStop reports whether r ends a sentence in a script that writes no space
// after it.
func wideStop(r rune) bool { return r == '。' || r == '！' || r == '？' || r == '．' }
