package workspace

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// marks is what the lines of a section say of it.
type marks struct {
	category   string   // word of the first importance tag; "" for none
	confidence *float64 // the greatest score within 0 and 1; nil for none
	tags       []string // the namespace first
	outside    []int    // lines, 0 for the section's first, with a score outside 0 and 1

	known map[string]bool // tags, once there are many
}

// readMarks reads the importance tags and hashtags of a section.
func readMarks(text, namespace string) marks {
	m := marks{tags: []string{namespace}}
	for n := 0; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		m.importance(line, n)
		m.hashtags(line)
	}
	return m
}

// fewTags is how many tags are faster searched than looked up.
const fewTags = 16

func (m *marks) add(tag string) {
	if len(m.tags) < fewTags && slices.Contains(m.tags, tag) || m.known[tag] {
		return
	}
	m.tags = append(m.tags, tag)
	switch {
	case len(m.tags) == fewTags:
		m.known = make(map[string]bool, 2*fewTags)
		for _, t := range m.tags {
			m.known[t] = true
		}
	case len(m.tags) > fewTags:
		m.known[tag] = true
	}
}

func (m *marks) importance(line string, n int) {
	word, score, found := importanceTag(line)
	if !found {
		return
	}
	if m.category == "" {
		m.category = word
	}
	m.add(word)
	switch {
	case score < 0 || score > 1:
		m.outside = append(m.outside, n)
	case m.confidence == nil || score > *m.confidence:
		m.confidence = &score
	}
}

// importanceTag finds the first [word|i=score] of a line. Where its score is no
// number, the line has none: a later tag is not looked at.
func importanceTag(line string) (word string, score float64, found bool) {
	for from := 0; ; {
		at := strings.Index(line[from:], "|i=")
		if at < 0 {
			return "", 0, false
		}
		at += from
		from = at + len("|i=")
		word := wordBefore(line[:at])
		digits, closed := scoreAfter(line[from:])
		if word == "" || digits == "" || !closed {
			continue
		}
		score, err := strconv.ParseFloat(digits, 64)
		if err != nil && score == 0 { // a score too large for a float is infinite, and a number
			return "", 0, false
		}
		return word, score, true
	}
}

// wordBefore returns the word characters at the end of s where [ stands before
// them.
func wordBefore(s string) string {
	rest := strings.TrimRightFunc(s, isWord)
	if !strings.HasSuffix(rest, "[") {
		return ""
	}
	return s[len(rest):]
}

// scoreAfter returns the digits and dots at the start of s, and whether ] closes
// them.
func scoreAfter(s string) (string, bool) {
	rest := strings.TrimLeftFunc(s, func(r rune) bool { return r == '.' || unicode.Is(unicode.Nd, r) })
	return s[:len(s)-len(rest)], strings.HasPrefix(rest, "]")
}

// isWord is the class \w of Unicode regular expressions.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return isAlphabetic(r) || unicode.In(r, unicode.M, unicode.Nd, unicode.Pc) || r == 0x200c || r == 0x200d
}

// isAlphabetic is the Unicode property Alphabetic.
func isAlphabetic(r rune) bool {
	return unicode.IsLetter(r) || unicode.In(r, unicode.Nl, unicode.Other_Alphabetic)
}

func (m *marks) hashtags(line string) {
	for at := strings.IndexByte(line, '#'); at >= 0; {
		if at == 0 || endsInSpace(line[:at]) {
			piece := line[at:]
			if end := strings.IndexFunc(piece, unicode.IsSpace); end >= 0 {
				piece = piece[:end]
			}
			tag := strings.TrimLeft(piece, "#")
			tag = strings.TrimRightFunc(tag, func(r rune) bool { return !isAlphabetic(r) && !unicode.IsNumber(r) })
			if tag != "" {
				m.add(tag)
			}
			at += len(piece)
		} else {
			at++
		}
		next := strings.IndexByte(line[at:], '#')
		if next < 0 {
			return
		}
		at += next
	}
}

func endsInSpace(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsSpace(r)
}
