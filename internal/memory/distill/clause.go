package distill

import (
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// unit is one assertion of a statement, which can be corrected on its own.
type unit struct {
	text   string
	listed bool // is a part of an enumeration
	hangs  bool // is about what the unit before is about: "he's nine"
}

var (
	sentenceEnd = match(`[.!?;](?:\s+|$)`)
	clauseEnd   = match(`,\s+(?:(?:and|but)\s+)?`)
	consequence = match(`^so\s+`)
	questionEnd = match(`\?\s+—\s+`)
)

// unitsOf cuts a statement at its sentences, and those at the commas that a clause
// of its own follows. What has no verb stays with what it explains, except in an
// enumeration, where each part stands for itself.
func unitsOf(s string) []unit {
	var out []unit
	for _, sentence := range cutAfter(s, sentenceEnd, questionEnd) {
		parts := cutAfter(sentence, clauseEnd, nil)
		enumerates := !hasVerb(plainWords(sentence))
		for i, p := range parts {
			words := plainWords(p)
			if len(words) == 0 {
				continue
			}
			first := words[0].lower
			own := enumerates || consequence.MatchString(p) || hasVerb(words) && !statives[first] && !changes[first] && !auxiliaries[first]
			if i > 0 && !own && len(out) > 0 {
				out[len(out)-1].text += ", " + p
				continue
			}
			if _, answer, found := strings.Cut(p, "? — "); found && enumerates {
				p = answer
			}
			out = append(out, unit{listed: enumerates && len(parts) > 1, text: p, hangs: len(out) > 0 && (anaphors[first] || consequence.MatchString(p))})
		}
	}
	return out
}

// cutAfter cuts s at the matches of end that are not matches of except, and trims
// the pieces of the marks between them.
func cutAfter(s string, end, except *pattern) []string {
	var out []string
	at := 0
	for _, m := range end.FindAllStringIndex(s, -1) {
		if except != nil && except.MatchString(s[m[0]:]) && except.FindStringIndex(s[m[0]:])[0] == 0 || isAbbreviation(s[:m[0]]) {
			continue
		}
		if strings.Count(s[at:m[0]], "(") != strings.Count(s[at:m[0]], ")") {
			continue
		}
		out = append(out, s[at:m[0]])
		at = m[1]
	}
	out = append(out, s[at:])
	kept := out[:0]
	for _, piece := range out {
		if piece = strings.Trim(piece, " ,.;:!—"); piece != "" {
			kept = append(kept, piece)
		}
	}
	return kept
}

func plainWords(s string) []word { return wordsOf(s, make([]byte, len(s))) }

// corrected tells apart the units of an old statement that a change concerns, and
// those that it leaves as they are. The first is empty where none is about the same
// subject and attribute.
func (c *comparison) corrected(gone map[string]bool) (old, kept []string) {
	units := unitsOf(bodyOf(c.old.content))
	most := 0.0
	bond := make([]float64, len(units))
	for i, u := range units {
		bond[i] = c.bond(u.text, gone)
		most = max(most, bond[i])
	}
	switch {
	case most <= 0 && c.reverses():
		return []string{strings.TrimRight(bodyOf(c.old.content), ".!;: ")}, nil
	case most <= 0:
		return nil, nil
	}
	stands := false // the unit that the next one may hang on
	carries := c.old.kind != memory.KindIssue
	for i, u := range units {
		hit := bond[i] >= most
		stays := !hit && carries && (u.hangs && stands || !u.hangs && c.leaves(u))
		switch {
		case hit:
			old = append(old, consequence.ReplaceAllString(u.text, ""))
		case stays && u.hangs:
			kept[len(kept)-1] += ", " + u.text
		case stays:
			kept = append(kept, u.text)
		}
		stands = stays
	}
	if len(old) == len(units) {
		old = []string{strings.TrimRight(bodyOf(c.old.content), ".!;: ")}
	}
	return old, kept
}

// leaves reports a unit that holds whatever became of the corrected one: it names
// somebody or something, or is a part of an enumeration, and gives no value for an
// attribute that the change is about.
func (c *comparison) leaves(u unit) bool {
	s := sentence{text: u.text, words: slices.DeleteFunc(plainWords(u.text), func(w word) bool { return adverbs[w.lower] })}
	if has(s.words, issueWords) {
		return false
	}
	for slot, words := range slotsOf(u.text) {
		value := c.fresh.slots[slot]
		if value != "" && !slices.ContainsFunc(strings.Fields(words), func(w string) bool { return slices.Contains(strings.Fields(value), w) }) {
			return false
		}
	}
	named := slices.ContainsFunc(names(&s), func(n string) bool { return n != strings.ToLower(c.draft.turn.subject) })
	return u.listed || named
}

// bond measures how much one unit of the old statement is about what has changed.
func (c *comparison) bond(s string, gone map[string]bool) float64 {
	u := newKnown("", "", s, c.old.kind, c.draft.turn.at, -1)
	sum := 0.0
	for stem := range gone {
		if u.stems[stem] || len(stem) >= 5 && hasPrefix(u.stems, stem) {
			sum += 2
		}
	}
	for stem := range c.fresh.stems {
		if u.stems[stem] && !isFigure(stem) && !unitStems[stem] {
			sum++
		}
	}
	for slot, words := range c.fresh.slots {
		if u.slots[slot] != "" && u.slots[slot] != words {
			sum += .5
		}
	}
	if otherAmount(c.fresh, u) || c.fresh.age != "" && u.age != "" {
		sum += 1.5
	}
	if c.fresh.hasDay && u.hasDay || c.fresh.weekdays != "" && u.weekdays != "" {
		sum++
	}
	return sum
}

// bodyOf returns what a content says to hold: without the note of what it replaced.
func bodyOf(content string) string {
	before, note, found := strings.Cut(content, previously)
	if !found {
		return content
	}
	depth := 1
	for i, r := range note {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return before + "." + strings.TrimPrefix(note[i+1:], stillTrue)
		}
	}
	return before
}

// previously opens the note of what a statement replaces; stillTrue what it leaves
// standing of that.
const (
	previously = memory.NoteOpens
	stillTrue  = memory.NoteLeaves
)

// withOld adds to a statement what it corrects and what of the old item it leaves.
func withOld(content string, old, kept []string) string {
	const longest = 120
	content += previously + clip(strings.Join(old, "; "), longest) + ")"
	if len(kept) > 0 {
		content += stillTrue + " " + strings.Join(kept, "; ") + "."
	}
	return clipBytes(content, maxItemContent)
}
