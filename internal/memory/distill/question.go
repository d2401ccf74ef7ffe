package distill

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// statedKinds are those whose items say how something is: a question is none.
var statedKinds = []string{memory.KindFact, memory.KindPreference, memory.KindPerson, memory.KindDecision, memory.KindEvent}

// onlyAsks reports a text of which every sentence is a question, so that it says
// nothing of how things are.
func onlyAsks(content string) bool {
	all := sentences(strings.ReplaceAll(content, "; ", ". "))
	return len(all) > 0 && !slices.ContainsFunc(all, func(s sentence) bool { return !asksIt(s) })
}

// asksIt reports a question: it ends in its mark, or begins as questions do. A
// mark that belongs to a name or a quotation makes none, nor one behind a
// statement ("at nine, right?"), nor a wish ("could you always …?") or a report that
// somebody asked.
func asksIt(s sentence) bool {
	lower := strings.ToLower(strings.ReplaceAll(s.text, "’", "'"))
	core := afterLead(s.words)
	bare := strings.TrimRight(lower, " )*_")
	last, _ := utf8.DecodeLastRuneInString(bare)
	switch {
	case requested.MatchString(lower): // "could you always answer in French?"
		return false
	case strings.HasPrefix(lower, "¿"):
		return true
	case last == '?' || last == '？' || last == '؟':
		return opensQuestion(core) || !questionTag.MatchString(bare) && !asksReported.MatchString(lower) && !endsInName(s.words) && !tellsFirst(s.text)
	case strings.Contains(s.text, ":"): // "When's the release: Monday" answers itself
		return false
	case s.pasted: // wholly in quotation marks
		return strings.HasSuffix(strings.TrimRight(bare, `"'”“»`), "?")
	}
	return opensQuestion(core)
}

// tellsFirst reports a question behind a statement: "The key is here, can you come?"
func tellsFirst(s string) bool {
	at := strings.LastIndex(s, ", ")
	if at < 0 || !opensQuestion(afterLead(plainWords(s[at+2:]))) {
		return false
	}
	told := plainWords(s[:at])
	return len(told) > 2 && hasVerb(told)
}

// requested is a wish in the form of a question.
var requested = match(`^\W*(?:and |so |but |also )?(?:can|could|will|would) you\b|^\W*(?:kannst|könntest|würdest|könnten|puedes|podrías|peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|puoi|potresti|você pode|kun je|možeš|możesz|можешь|можете)\b|\b(?:please|bitte|por favor|per favore|s'il (?:te|vous) plaît|alsjeblieft|пожалуйста)\b|お願い|ください|请|請`)

// asksReported is a report of a question, or of not knowing.
var asksReported = match(`\b(?:asked|asks|asking|wonders?|wondered|wondering|wants? to know|wanted to know|unsure|not sure|undecided|question)\b`)

// opensQuestion reports words that only a question begins with: "how do I", "did
// we". "What is good is this" and "Had the flu" are statements.
func opensQuestion(core []word) bool {
	if len(core) < 3 {
		return false
	}
	first, second := core[0].lower, core[1].lower
	switch {
	case auxiliaries[first]:
		return askedOf[second]
	case !questionWords[first]:
		return false
	case auxiliaries[second] || strings.Contains(first, "'"):
		return !slices.ContainsFunc(core[2:], func(w word) bool { return auxiliaries[w.lower] })
	}
	return first == "how" && (second == "many" || second == "much" || second == "long" || second == "come") &&
		slices.ContainsFunc(core[2:], func(w word) bool { return auxiliaries[w.lower] })
}

var askedOf = wordSet(`i you we he she they`)

// endsInName reports that the last two words are written as names are, and are not
// all there is.
func endsInName(words []word) bool {
	if len(words) < 4 {
		return false
	}
	for _, w := range words[len(words)-2:] {
		if r, _ := utf8.DecodeRuneInString(w.text); !unicode.IsUpper(r) || w.lower == "i" {
			return false
		}
	}
	return true
}
