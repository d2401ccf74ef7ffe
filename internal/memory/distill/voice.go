package distill

import (
	"regexp"
	"strings"
)

// inThirdPerson rewrites English first-person pronouns, so that a memory reads
// the same to whoever recalls it: "I'm allergic" becomes "User is allergic". "We"
// and "our" stay: who else is meant is not known. Text in quotation marks stays.
func inThirdPerson(s, subject string) string {
	if !englishSelf.MatchString(s) {
		return s
	}
	var b strings.Builder
	for i, part := range quotedPart.Split(s, -1) {
		if i > 0 {
			b.WriteString(quotedPart.FindAllString(s, -1)[i-1])
		}
		b.WriteString(turnRound(part, subject))
	}
	return b.String()
}

var (
	englishSelf = regexp.MustCompile(`(?i)\b(?:i|i'm|i’m|i've|i’ve|i'd|i’d|i'll|i’ll|my|me|mine|myself)\b`)
	quotedPart  = regexp.MustCompile("\"[^\"]*\"|“[^”]*”|`[^`]*`")
	selfWord    = regexp.MustCompile(`(?i)\b(i['’]?m|i['’]?ve|i['’]d|i['’]ll|i|myself|my|mine|me)\b( [\pL'’]+)?( [\pL'’]+)?`)
)

func turnRound(s, subject string) string {
	return selfWord.ReplaceAllStringFunc(s, func(m string) string {
		parts := selfWord.FindStringSubmatch(m)
		self, rest := strings.ToLower(strings.ReplaceAll(parts[1], "’", "'")), parts[2]+parts[3]
		switch self {
		case "i'm", "im":
			return subject + " is" + rest
		case "i've", "ive":
			return subject + " has" + rest
		case "i'd":
			return subject + " would" + rest
		case "i'll":
			return subject + " will" + rest
		case "i":
			return subject + agree(parts[2], parts[3])
		case "my":
			return subject + "'s" + turnRound(rest, subject)
		case "mine":
			return subject + "'s" + turnRound(rest, subject)
		}
		return subject + turnRound(rest, subject)
	})
}

// agree puts the verb after "I" into the third person. An adverb may stand
// between them.
func agree(first, second string) string {
	verb := strings.ToLower(strings.TrimSpace(strings.ReplaceAll(first, "’", "'")))
	if (adverbs[verb] || strings.HasSuffix(verb, "ly")) && second != "" {
		return first + agree(second, "")
	}
	if form, irregular := thirdForms[verb]; irregular {
		return " " + form + second
	}
	if verb == "" || !presentVerbs[verb] {
		return first + second
	}
	return " " + withS(verb) + second
}

func withS(verb string) string {
	switch {
	case strings.HasSuffix(verb, "s"), strings.HasSuffix(verb, "sh"), strings.HasSuffix(verb, "ch"), strings.HasSuffix(verb, "x"), strings.HasSuffix(verb, "o"):
		return verb + "es"
	case strings.HasSuffix(verb, "y") && !strings.ContainsAny(verb[len(verb)-2:len(verb)-1], "aeiou"):
		return verb[:len(verb)-1] + "ies"
	}
	return verb + "s"
}

var (
	adverbs    = wordSet(`always never only usually also still just really often sometimes mostly even already generally normally now hardly almost both all`)
	thirdForms = map[string]string{"am": "is", "have": "has", "do": "does", "don't": "doesn't", "dont": "doesn't", "haven't": "hasn't", "was": "was", "were": "were"}
	// presentVerbs are the verbs that a statement about oneself is made with, in
	// the form that has no ending. One that is not listed stays as it is.
	presentVerbs = wordSet(`live work use own run speak study teach need prefer hate like love cost weigh drink eat drive cycle play train sleep suffer manage maintain deploy ship
		wear take want keep know think mean see feel go get make come stay rent pay earn owe fly leave meet start finish walk swim climb bake cook grow write read
		draw paint sing dance collect build sell buy order listen watch learn believe remember forget hope plan expect trust avoid enjoy miss call send bring
		belong depend help look work live carry carry travel commute volunteer smoke swim row sew knit brew garden teach follow support test commit push merge review`)
)
