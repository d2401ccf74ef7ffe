package text

import (
	"regexp"
	"strings"
	"unicode"
)

// Features are what a ranker wants to know of a passage besides its words. They
// depend on the text alone, so they are computed once, at write.
type Features struct {
	HasNumber   bool // a digit or a number word
	HasTimeCue  bool // says when: a date, a weekday, yesterday, ago …
	HasWhereCue bool // says where: "in Lisbon", "near the lake"
	Asks        bool // ends with a question mark
	FirstPerson bool // I, me, my, we, us, our
}

var (
	firstPerson = wordSet("i me my mine myself we us our ours ourselves")
	numberWords = wordSet("one two three four five six seven eight nine ten eleven twelve dozen twenty thirty forty fifty hundred thousand million once twice couple several")
	timeCues    = wordSet(`yesterday today tonight tomorrow ago week weeks weekend month months year years morning evening afternoon night
		january february april june july august september october november december
		monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter birthday anniversary recently`)
	whereCue = regexp.MustCompile(`(?:^|[^\pL])(?:[Ii]n|[Aa]t|[Tt]o|[Ff]rom|[Nn]ear) (?:the )?\p{Lu}\pL+`)
)

// FeaturesOf returns the features of a passage.
func FeaturesOf(s string) Features {
	f := Features{HasWhereCue: whereCue.MatchString(s), Asks: asks(s)}
	for _, w := range Words(s) {
		f.FirstPerson = f.FirstPerson || firstPerson[w]
		f.HasNumber = f.HasNumber || numberWords[w] || '0' <= w[0] && w[0] <= '9'
		f.HasTimeCue = f.HasTimeCue || timeCues[w] || isYear(w)
	}
	return f
}

// asks reports whether s ends with a question mark, quotes and brackets aside.
func asks(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.Pe, unicode.Pf, unicode.So, unicode.Sk) || r == '"' || r == '\''
	})
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// isYear reports whether a word is a year of the last or this century.
func isYear(w string) bool {
	return len(w) == 4 && (w[:2] == "19" || w[:2] == "20") && isDigit(w[2]) && isDigit(w[3])
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
