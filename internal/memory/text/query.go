package text

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kind is what a question asks for; the kinds add up as bits.
type Kind uint8

// The kinds of question.
const (
	AsksWhen    Kind = 1 << iota // when, what day, how long ago
	AsksWhere                    // where, which city
	AsksHowMany                  // how many, how much, how often
	AsksPast                     // what used to be so: superseded memories may answer
)

// Options is what ParseQuery knows besides the words. The zero value is valid.
type Options struct {
	// Speakers are the names of those who speak in the history. Naming one
	// chooses whose turns are meant and is no search term.
	Speakers []string
	// Now resolves relative dates; they are ignored where it is zero.
	Now time.Time
}

// Query is a question made ready for search. All of its terms are words of
// letters and digits, so whatever the input was, its expressions are valid FTS5.
type Query struct {
	Text     string
	Terms    []string // of the main column, in order of first use, each once
	Prefixes []string // of the prefix column, likewise
	Speakers []string // the known speakers named, as given in Options, each once
	Dates    []Date
	Kind     Kind
}

// maxTerms bounds the terms of a query, however long its text: the first ones.
const maxTerms = 64

var (
	whenQuestion    = regexp.MustCompile(`(?i)\b(when|how long ago|(what|which) (\w+ )?(date|day|month|year|week|time)s?)\b`)
	whereQuestion   = regexp.MustCompile(`(?i)\b(where|(what|which) (\w+ )?(city|cities|country|countries|town|place|places|state|location|locations))\b`)
	howManyQuestion = regexp.MustCompile(`(?i)\bhow (many|much|often|long|old|far)\b`)
	pastQuestion    = regexp.MustCompile(`(?i)\b(used to|previous(ly)?|former(ly)?|original(ly)?|at first|back then|earlier|in the past|before|old|last time|no longer|changed?)\b`)
)

// ParseQuery makes a query of any string.
func ParseQuery(words string, opts Options) Query {
	q := Query{Text: words, Kind: kindOf(words), Dates: Dates(words, opts.Now)}
	tokens := Words(words)
	named := speakersNamed(words, tokens, opts.Speakers)
	for _, name := range opts.Speakers {
		if slices.Contains(named, name) && !slices.Contains(q.Speakers, name) {
			q.Speakers = append(q.Speakers, name)
		}
	}
	for i, w := range tokens {
		if named[i] == "" && !stopwords[w] {
			q.add(w)
		}
	}
	if len(q.Terms)+len(q.Prefixes) == 0 {
		for _, w := range tokens {
			q.add(w)
		}
	}
	return q
}

func kindOf(words string) Kind {
	if len(words) > 4096 {
		words = words[:4096]
	}
	var k Kind
	for pattern, bit := range map[*regexp.Regexp]Kind{whenQuestion: AsksWhen, whereQuestion: AsksWhere, howManyQuestion: AsksHowMany, pastQuestion: AsksPast} {
		if pattern.MatchString(words) {
			k |= bit
		}
	}
	return k
}

// add takes a word's terms into the query.
func (q *Query) add(word string) {
	eachTerm(word, func(t string) { q.Terms = addOnce(q.Terms, t) })
	eachPrefix(word, func(t string) { q.Prefixes = addOnce(q.Prefixes, t) })
}

func addOnce(terms []string, t string) []string {
	if len(terms) >= maxTerms || slices.Contains(terms, t) {
		return terms
	}
	return append(terms, t)
}

// roles are speakers that are no names: their words are searched for like any.
var roles = wordSet("user assistant tool system agent")

// speakersNamed returns for each token the speaker that it names, "" for none:
// a word of the name, or at least its first three letters where the text
// writes them with a capital ("Mel" for Melanie, but not "car" for Caroline).
func speakersNamed(text string, tokens, speakers []string) []string {
	named := make([]string, len(tokens))
	for _, speaker := range speakers {
		for _, part := range Words(speaker) {
			if roles[part] {
				continue
			}
			for i, w := range tokens {
				if w == part || len(w) >= 3 && strings.HasPrefix(part, w) && !stopwords[w] && strings.Contains(text, strings.ToUpper(w[:1])+w[1:]) {
					named[i] = speaker
				}
			}
		}
	}
	return named
}

// Match returns the FTS5 expression that finds rows with any of the terms; ""
// for no terms, which finds nothing and must not be run.
func Match(terms []string) string {
	var b strings.Builder
	for i, t := range terms {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString(`"` + strings.ReplaceAll(t, `"`, `""`) + `"`)
	}
	return b.String()
}

// MatchMain returns the FTS5 expression for the main column.
func (q Query) MatchMain() string { return Match(q.Terms) }

// MatchPrefix returns the FTS5 expression for the prefix column.
func (q Query) MatchPrefix() string { return Match(q.Prefixes) }

// Asks reports whether the question is of kind k.
func (q Query) Asks(k Kind) bool { return q.Kind&k != 0 }

// mayStem reports whether a word of no unspaced script may have a stem: stemming puts
// at most two letters of its own at the end (dying, die; possibility, possibl).
func mayStem(word, stem string) bool {
	return strings.HasPrefix(word, stem[:max(0, len(stem)-2)])
}

// Counts returns how often each of q's Terms and each of its Prefixes stands in
// s: what Index(s) holds of them, found without stemming all of s.
func (q Query) Counts(s string) (terms, prefixes []int) {
	terms, prefixes = make([]int, len(q.Terms)), make([]int, len(q.Prefixes))
	count := func(list []string, into []int) func(string) {
		return func(t string) {
			if i := slices.Index(list, t); i >= 0 {
				into[i]++
			}
		}
	}
	countTerm, countPrefix := count(q.Terms, terms), count(q.Prefixes, prefixes)
	for _, w := range Words(s) {
		eachPrefix(w, countPrefix)
		base := w
		if of, irregular := bases[w]; irregular {
			base = of
		}
		if isWide(w) || slices.ContainsFunc(q.Terms, func(term string) bool { return mayStem(base, term) }) {
			eachTerm(w, countTerm)
		}
	}
	return terms, prefixes
}
