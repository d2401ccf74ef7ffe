package distill

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// content writes the item's sentence: the user's own words in the third person,
// with dates resolved, after what they answer where they say little without it.
func (d *draft) content() string {
	var b strings.Builder
	for i, p := range d.parts {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(d.say(p, i))
	}
	return clipBytes(strings.TrimSpace(b.String()), maxItemContent)
}

const maxItemContent = 1200 // bytes; a draft is far shorter, quotations in it may not be

// say renders one sentence.
func (d *draft) say(v *view, i int) string {
	s := v.text
	if i == 0 {
		s = s[leadLength(v):]
		if d.context != "" {
			s = d.context + " — " + s
		}
	}
	s = withoutSecrets(s)
	s = dated(oneLine(s), d.turn.at)
	if !speaksForeign(v.sentence) {
		s = inThirdPerson(s, d.turn.subject)
	}
	if v.explains {
		s = adoptedText(d.turn.sentences, v) + s
	}
	switch {
	case d.mood == ruling && i == 0:
		return "Standing instruction: " + s
	case d.mood == reminding && i == 0:
		return d.turn.subject + " asked for a reminder: " + s
	case i == 0:
		return capitalise(s)
	}
	return s
}

// adoptedText returns the quotation just before v, which v explains.
func adoptedText(all []sentence, v *view) string {
	for i := range all {
		if all[i].end > v.start {
			break
		}
		if i+1 < len(all) && all[i+1].start == v.start && (len(all[i].quotes) > 0 || all[i].pasted) && !steers(all[i].text) {
			return oneLine(all[i].text) + " "
		}
	}
	return ""
}

// leadLength returns how many bytes of discourse markers open the sentence.
func leadLength(v *view) int {
	if len(v.core) == 0 || len(v.words) == len(v.core) || v.words[0].text == "«»" {
		return 0
	}
	return v.core[0].start
}

// withoutSecrets drops the clauses of s that hold a redaction tag.
func withoutSecrets(s string) string {
	if !strings.Contains(s, "[REDACTED:") {
		return s
	}
	var kept []string
	for _, clause := range strings.Split(s, ", ") {
		if !strings.Contains(clause, "[REDACTED:") {
			kept = append(kept, clause)
		}
	}
	return strings.Join(kept, ", ")
}

func capitalise(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if first, _, _ := strings.Cut(s, " "); looksLikeCode(first) {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// title is the beginning of the content, cut at a clause and without what only
// explains.
func title(content string) string {
	for _, prefix := range []string{"Standing instruction: ", " asked for a reminder: "} {
		if _, rest, found := strings.Cut(content, prefix); found {
			content = rest
		}
	}
	content, _, _ = strings.Cut(content, previously)
	const most, least = 72, 24
	if len(content) <= most {
		return capitalise(strings.TrimRight(content, ".!,;: "))
	}
	cut := 0
	for i, r := range content {
		if i > most {
			break
		}
		if strings.ContainsRune(",.;:!?—(", r) && i >= least && !digitsAround(content, i) {
			cut = i
		}
	}
	if cut == 0 {
		cut = strings.LastIndexByte(content[:most], ' ')
	}
	if cut <= 0 {
		return clipBytes(content, most)
	}
	return capitalise(strings.TrimRight(content[:cut], ".!,;:—( "))
}

func digitsAround(s string, i int) bool {
	return i > 0 && i+1 < len(s) && s[i-1] >= '0' && s[i-1] <= '9' && s[i+1] >= '0' && s[i+1] <= '9'
}

// clipBytes cuts s to at most n bytes between runes.
func clipBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
