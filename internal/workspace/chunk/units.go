package chunk

import (
	"strings"
	"unicode/utf8"
)

// SnippetUnits is the length of OpenClaw's snippets.
const SnippetUnits = 700

// Snippet returns the first n units of a text; a character of two units is not
// torn.
func Snippet(s string, n int) string {
	head, _ := cutSafe(s, n)
	return head
}

// Trim takes away the white space that JavaScript's trim does.
func Trim(s string) string { return strings.TrimFunc(s, isSpace) }

func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return r >= 0x2000 && r <= 0x200a
}

// units counts the UTF-16 code units of a text.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += unitsOf(r)
	}
	return n
}

func unitsOf(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// weight counts a text as OpenClaw's later versions do: four for a character that
// is about a token by itself, else its units.
func weight(s string) int {
	n := 0
	for _, r := range s {
		n += weightOf(r)
	}
	return n
}

func weightOf(r rune) int {
	switch {
	case r < 0x2e80:
		return 1
	case r <= 0x9fff, r >= 0xa000 && r <= 0xa4ff, r >= 0xac00 && r <= 0xd7af, r >= 0xf900 && r <= 0xfaff, r >= 0x20000 && r <= 0x2fa1f:
		return unitsPerToken
	}
	return unitsOf(r)
}

// cutUnits cuts after n units. A character of two units that lies across is torn
// apart as in JavaScript, and each half becomes U+FFFD, as it does where such a
// text is hashed or stored.
func cutUnits(s string, n int) (head, rest string) {
	at, torn := offsetOf(s, n)
	if !torn {
		return s[:at], s[at:]
	}
	_, width := utf8.DecodeRuneInString(s[at:])
	return s[:at] + string(utf8.RuneError), string(utf8.RuneError) + s[at+width:]
}

// cutSafe cuts after n units, or one before where that would tear a character.
// Something is always cut off.
func cutSafe(s string, n int) (head, rest string) {
	at, _ := offsetOf(s, n)
	return s[:at], s[at:]
}

// cutAfterPair cuts after n units, or one later where that would tear a
// character.
func cutAfterPair(s string, n int) (head, rest string) {
	at, torn := offsetOf(s, n)
	if torn {
		_, width := utf8.DecodeRuneInString(s[at:])
		at += width
	}
	return s[:at], s[at:]
}

// offsetOf returns the byte offset of unit n, or of the character that it is the
// second half of.
func offsetOf(s string, n int) (at int, torn bool) {
	seen := 0
	for i, r := range s {
		if seen == n {
			return i, false
		}
		seen += unitsOf(r)
		if seen > n {
			return i, true
		}
	}
	return len(s), false
}

// cutWeight cuts off as many characters as weigh n together.
func cutWeight(s string, n int) (head, rest string) {
	seen := 0
	for i, r := range s {
		seen += weightOf(r)
		if seen > n {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// endWeighing returns the longest end of a text that weighs n at most.
func endWeighing(s string, n int) string {
	from, seen := len(s), 0
	for from > 0 {
		r, width := utf8.DecodeLastRuneInString(s[:from])
		seen += weightOf(r)
		if seen > n {
			break
		}
		from -= width
	}
	return s[from:]
}
