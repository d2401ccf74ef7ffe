package distill

import (
	"strings"
)

var (
	englishSelf = match(`(?i)\b(?:i|i['’]m|i['’]ve|i['’]d|i['’]ll|my|me|mine|myself)\b`)
	quotedPart  = match("\"[^\"]*\"|“[^”]*”|`[^`]*`")
	voiceWord   = match(`[\pL\d]+(?:['’][\pL]+)?`)
)

// inThirdPerson rewrites English first-person pronouns, so that a memory reads
// the same to whoever recalls it: "I'm allergic" becomes "User is allergic". "We"
// and "our" stay: who else is meant is not known. Text in quotation marks stays.
func inThirdPerson(s, subject string) string {
	if !englishSelf.MatchString(s) {
		return s
	}
	var b strings.Builder
	at := 0
	for _, quote := range quotedPart.FindAllStringIndex(s, -1) {
		b.WriteString(turnRound(s[at:quote[0]], subject))
		b.WriteString(s[quote[0]:quote[1]])
		at = quote[1]
	}
	b.WriteString(turnRound(s[at:], subject))
	return b.String()
}

// turnRound rewrites the words of one stretch. After "I" the next verb takes the
// ending of the third person; adverbs between the two are passed over.
func turnRound(s, subject string) string {
	var b strings.Builder
	at := 0
	verbNext, inverted := false, false // inverted: "can I use"
	for _, place := range voiceWord.FindAllStringIndex(s, -1) {
		b.WriteString(s[at:place[0]])
		verbNext = verbNext && strings.TrimSpace(s[at:place[0]]) == ""
		at = place[1]
		written := s[place[0]:place[1]]
		lower := strings.ToLower(strings.ReplaceAll(written, "’", "'"))
		form, isSelf := selfForms[lower]
		switch {
		case isSelf:
			b.WriteString(subject + form)
			verbNext = lower == "i" && !inverted
		case verbNext && (adverbs[lower] || strings.HasSuffix(lower, "ly")):
			b.WriteString(written)
		case verbNext:
			b.WriteString(thirdForm(written, lower))
			verbNext = false
		default:
			b.WriteString(written)
		}
		inverted = auxiliaries[lower]
	}
	return b.String() + s[at:]
}

// selfForms is what follows the subject's name for each word of the first person.
var selfForms = map[string]string{
	"i": "", "i'm": " is", "i've": " has", "i'd": " would", "i'll": " will",
	"me": "", "myself": "", "my": "'s", "mine": "'s",
}

func thirdForm(written, lower string) string {
	if form, irregular := thirdForms[lower]; irregular {
		return form
	}
	if !presentVerbs[lower] && !looksPresent(lower) {
		return written
	}
	switch last := lower[len(lower)-1]; {
	case last == 's', last == 'x', last == 'o', strings.HasSuffix(lower, "sh"), strings.HasSuffix(lower, "ch"):
		return lower + "es"
	case last == 'y' && !strings.ContainsRune("aeiou", rune(lower[len(lower)-2])):
		return lower[:len(lower)-1] + "ies"
	}
	return lower + "s"
}

// looksPresent reports a word that must be a verb of the present where it follows
// "I": no form of the past, and none of the closed classes. Verbs that look the
// same in both tenses stay as they are.
func looksPresent(w string) bool {
	ascii := !strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' })
	return ascii && len(w) > 2 && !functionWords[w] && !auxiliaries[w] && !pastForms[w] && !sameForms[w] && !leadIns[w] && !strings.HasSuffix(w, "ed") && !strings.HasSuffix(w, "ing")
}

var (
	// sameForms are verbs whose past is written like their present.
	sameForms  = wordSet(`put cut set hit let cost quit shut hurt split spread bet beat cast burst upset become overcome come run`)
	adverbs    = wordSet(`always never only usually also still just really often sometimes mostly even already now hardly almost both all`)
	thirdForms = map[string]string{"am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't"}
	// presentVerbs are the verbs that a statement about oneself is made with, in
	// the form without an ending. One that is not listed stays as it is.
	presentVerbs = wordSet(`live work use own run speak study teach need prefer hate like love weigh drink eat drive cycle play train sleep suffer manage maintain deploy ship
		wear take want keep know think mean see feel go get make come stay rent pay earn owe fly leave meet start finish walk swim climb bake cook grow write
		draw paint sing dance collect build sell buy order listen watch learn believe remember forget hope plan expect trust avoid enjoy miss call send bring
		belong depend help look carry travel commute volunteer smoke row sew knit brew garden follow support test commit push merge review`)
)
