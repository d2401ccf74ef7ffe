package working

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Vectors propose what may say the same, and are no proof of it: "Anna lives in
// Porto" and "Bob lives in Porto" lie closer than most that do mean the same. What
// they propose is held against each other word by word, and counts only where the
// one text is the other with words that say nothing, or with an afterthought.

// Settled reports whether two items of a kind that differ in a time or number can
// both be right, as they are about different times or things.
func Settled(kind string) bool { return settled[kind] }

var settled = map[string]bool{memory.KindEvent: true, memory.KindDecision: true, memory.KindLesson: true, memory.KindIssue: true,
	memory.KindCommitment: true, memory.KindReminder: true}

const (
	minShared = 3  // words, stopwords aside, that two texts must have in common
	minShare  = .5 // and their share in all words of the longer
)

// silent words say nothing: a text means the same without them.
var silent = setOf("a an the also really very currently now still already indeed actually")

// openers begin an afterthought that adds to what was said before. Behind others,
// such as "if", "when" or "according to", it can hold less than it says.
var openers = setOf("above along and at because by called especially her his in its mainly mostly my near on our particularly their together where which who whose with")

// unsaying words can take back, bind to a time or weaken what is said before them.
// With one of them an afterthought is no mere addition.
var unsaying = setOf(`
not no nor never neither none nothing nobody cannot don doesn didn isn aren wasn weren won wouldn couldn shouldn mustn hasn haven hadn ain without
former formerly previous previously used until till stop stops stopped quit quits instead anymore longer ex cancel cancels cancelled canceled
unless except exception excluding only just but yet though although however otherwise rather than or if whether when whenever while once
almost nearly hardly barely rarely seldom sometimes occasionally partly part
maybe perhaps possibly probably presumably apparently allegedly supposedly reportedly seemingly seem seems seemed likely unlikely
may might could would should hope hopes hoped hopefully wish wishes want wants wanted plan plans planned intend intends
think thinks thought believe believes guess suppose supposes suspect doubt doubts claim claims claimed say says said rumour rumours rumor rumors
pretend pretends imagine imagines dream dreams joke jokes joking lie lies lied false untrue wrong mistake mistaken theory fiction novel game case
was were had been did would past future ago before after during since later soon again first last next
today tonight tomorrow yesterday morning mornings noon afternoon afternoons evening evenings night nights midnight
second minute minutes hour hours hourly day days daily week weeks weekly weekday weekdays weekend weekends month months monthly year years yearly
season spring summer autumn fall winter holiday holidays time times date dates childhood youth
one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand million dozen couple several few half twice
many much more most less least fewer both each every any some other another
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
january february march april june july august september october november december
`)

// english words show that the lists above fit the text.
var english = setOf("the and with his their they from which who where because this")

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// Wording is what an item says, word by word. Unlike a Likeness it holds the text.
type Wording struct {
	words    []spoken
	beside   []string // words of the title that the content does not have
	english  bool
	kind     string
	trust    memory.Trust
	status   memory.Status
	from, to *time.Time
}

// spoken is a word of a text, or a sign that is neither letter, digit nor
// punctuation.
type spoken struct {
	word   string // as text.Words has it
	bound  bool   // punctuation stands before it
	marked bool   // it is a name, a number or a sign: what has one more says something else
}

// WordingOf returns what an item says.
func WordingOf(it memory.Item) Wording {
	w := Wording{words: spokenIn(it.Content), kind: it.Kind, trust: it.Trust, status: it.Status, from: it.ValidFrom, to: it.ValidTo,
		english: slices.ContainsFunc(text.Words(it.Content), func(w string) bool { return english[w] })}
	for _, s := range spokenIn(it.Title) {
		if !slices.ContainsFunc(w.words, func(c spoken) bool { return c.word == s.word }) {
			w.beside = append(w.beside, s.word)
		}
	}
	slices.Sort(w.beside)
	return w
}

// punctuation stands between words and says nothing itself; of it, pauses set what
// follows apart.
const (
	punctuation = pauses + "'’‘\"“”„«».!-/…"
	pauses      = ",;:()[]–—"
)

// spokenIn cuts a text into what is compared. Silent words are left out.
func spokenIn(s string) []spoken {
	var out []spoken
	bound := false
	for _, field := range strings.Fields(s) {
		for field != "" {
			r, size := utf8.DecodeRuneInString(field)
			end := size
			if isLetter(r) {
				end = strings.IndexFunc(field, func(r rune) bool { return !isLetter(r) })
				if end < 0 {
					end = len(field)
				}
				name := strings.ContainsFunc(field[:end], func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) })
				for _, w := range text.Words(field[:end]) {
					if !silent[w] {
						out = append(out, spoken{word: w, bound: bound, marked: name})
						bound = false
					}
				}
			} else if strings.ContainsRune(punctuation, r) && !(r == '-' && startsNumber(field[size:])) {
				bound = bound || strings.ContainsRune(pauses, r) || r == '.' && len(field) == size
			} else {
				out = append(out, spoken{word: string(r), bound: bound, marked: true})
				bound = false
			}
			field = field[end:]
		}
	}
	return out
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func startsNumber(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsDigit(r)
}

// Covers reports whether a says all that b says, and nothing that changes it: it is
// b, but for words that say nothing, or b and an afterthought set apart by
// punctuation, in English, without a name, number, time, negation or doubt. Both
// are active, of one kind that has no times of its own, equally trusted, and can
// hold at the same time; the titles name the same things beside the contents.
func (a Wording) Covers(b Wording) bool {
	if a.kind != b.kind || settled[a.kind] || a.trust != b.trust || a.status != memory.Active || b.status != memory.Active ||
		!sameDays(a.from, b.from) || !sameDays(a.to, b.to) || !slices.Equal(a.beside, b.beside) {
		return false
	}
	n := len(b.words)
	if len(a.words) < n || float64(n) < minShare*float64(len(a.words)) || content(b.words) < minShared {
		return false
	}
	for i, s := range b.words {
		if a.words[i].word != s.word || i > 0 && a.words[i].marked != s.marked { // a sentence begins with a capital
			return false
		}
	}
	return len(a.words) == n || a.english && isAfterthought(a.words[n:])
}

func isAfterthought(words []spoken) bool {
	return words[0].bound && openers[words[0].word] && content(words) > 0 &&
		!slices.ContainsFunc(words, func(s spoken) bool { return s.marked || unsaying[s.word] })
}

// content counts the words that are no stopwords.
func content(words []spoken) (n int) {
	for _, s := range words {
		if !text.IsStopword(s.word) {
			n++
		}
	}
	return n
}
