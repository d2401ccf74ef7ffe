package working

import (
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Near-duplicates are found by MinHash (Broder 1997) with banding: items whose
// sets of words have Jaccard similarity j share at least one band with
// probability 1-(1-j^bandRows)^BandCount, .98 for j = .74, which is the least
// that Same accepts, and .07 for j = .2.
const (
	BandCount = 8 // bands of a likeness
	bandRows  = 3
	// maxCandidates bounds the items compared with a new one, newest first.
	maxCandidates = 64
	// minSimilar is the least similarity of two contents, as twice their common
	// words over the words of both.
	minSimilar = .85
	// selfContained is the number of words from which a content says what it is
	// about without its title.
	selfContained = 5
)

// negations turn what is said around; they are compared, stopwords or not.
var negations = map[string]bool{"not": true, "no": true, "nor": true, "never": true, "cannot": true, "don": true, "doesn": true, "didn": true,
	"isn": true, "aren": true, "wasn": true, "weren": true, "won": true, "wouldn": true, "couldn": true, "shouldn": true, "mustn": true,
	"hasn": true, "haven": true, "hadn": true, "ain": true, "without": true}

// turning words change what the rest says: a text with one is no duplicate of
// the same text without. They are stems, as Stem returns them.
var turning = map[string]bool{"not": true, "former": true, "previous": true, "use": true, "until": true, "stop": true, "quit": true, "mayb": true,
	"perhap": true, "almost": true, "instead": true, "anymor": true, "ex": true, "cancel": true, "unless": true, "except": true, "onli": true}

// termIn returns what is compared of a word: its stem, every negation as "not", and
// of stopwords nothing.
func termIn(word string) (of term, compared bool) {
	switch {
	case negations[word]:
		return termOf("not"), true
	case word == "only", word == "until", !text.IsStopword(word):
		return termOf(text.Stem(word)), true
	}
	return term{}, false
}

// addTerms adds to dst what is compared of a text, in order: one term at least.
func addTerms(dst []term, s string, in func(word []byte) (term, bool)) []term {
	before := len(dst)
	text.EachWord(s, func(word []byte) {
		if t, compared := in(word); compared {
			dst = append(dst, t)
		}
	})
	if len(dst) == before {
		return append(dst, termOf(strings.ToLower(s)))
	}
	return dst
}

// wordCount is how many words of a text are compared.
func wordCount(s string) int {
	return len(addTerms(nil, s, func(word []byte) (term, bool) { return termIn(string(word)) }))
}

// Likeness is what of an item tells whether another one says the same, or the
// contrary: hashes of its words in order, of its title, and when it holds. It
// holds no text.
type Likeness struct {
	words    []term // nil where Brief has dropped them
	count    int    // of the words
	sum      uint64 // of the words in order
	title    uint64 // of the title's words
	from, to *time.Time
}

// term is a word of a text: its hash, and what it does to the meaning.
type term struct {
	hash  uint64
	flags uint8
}

const (
	isTurning      = 1 << iota // a turning word
	isNumber                   // it holds a digit
	isFaint                    // another form of it is a stopword: "likes", where "like" is not compared
	changesMeaning = isTurning | isNumber
)

// LikenessOf returns the likeness of an item.
func LikenessOf(it memory.Item) Likeness {
	l, _ := likenessOf(it, nil, func(word []byte) (term, bool) { return termIn(string(word)) })
	return l
}

// mostWords is how many words a Likener remembers: those of a long life.
const mostWords = 50_000

// Likener makes the likenesses of many items. It remembers what is compared of a
// word, since finding its stem is most of the work. It is not safe for concurrent
// use; the zero Likener is ready.
type Likener struct {
	known   map[string]knownWord
	scratch []term
}

type knownWord struct {
	term
	compared bool
}

// Of returns the likeness of an item, as LikenessOf does.
func (l *Likener) Of(it memory.Item) (of Likeness) {
	of, l.scratch = likenessOf(it, l.scratch, l.termIn)
	return of
}

func (l *Likener) termIn(word []byte) (term, bool) {
	if k, known := l.known[string(word)]; known {
		return k.term, k.compared
	}
	of, compared := termIn(string(word))
	if l.known == nil {
		l.known = map[string]knownWord{}
	}
	if len(l.known) < mostWords {
		l.known[string(word)] = knownWord{of, compared}
	}
	return of, compared
}

// likenessOf returns the likeness of an item, and scratch for the next one.
func likenessOf(it memory.Item, scratch []term, in func(word []byte) (term, bool)) (Likeness, []term) {
	l := Likeness{from: it.ValidFrom, to: it.ValidTo}
	scratch = addTerms(scratch[:0], it.Title, in)
	for _, w := range scratch {
		l.title = mix(l.title ^ w.hash)
	}
	scratch = addTerms(scratch[:0], it.Content, in)
	for _, w := range scratch {
		l.sum = mix(l.sum ^ w.hash)
	}
	l.words, l.count = slices.Clone(scratch), len(scratch)
	return l, scratch
}

func termOf(word string) term {
	t := term{hash: fnv(word)}
	if turning[word] {
		t.flags |= isTurning
	}
	if strings.ContainsAny(word, "0123456789") {
		t.flags |= isNumber
	}
	if text.IsStopword(word) {
		t.flags |= isFaint
	}
	return t
}

// Words returns how many words the content has, stopwords aside.
func (a Likeness) Words() int { return a.count }

// Sum is the same for contents of the same words in the same order, and for
// hardly any others.
func (a Likeness) Sum() uint64 { return a.sum }

// Bands returns hashes of which likely duplicates share at least one.
func (a Likeness) Bands() []int64 { return bandsOf(a.words) }

// longest is the number of words that Brief keeps.
const longest = 64

// Brief drops the words of a long content: it is the same as an equal one then,
// and no other.
func (a Likeness) Brief() Likeness {
	if len(a.words) > longest {
		a.words = nil
	}
	return a
}

// Same reports whether a and b say the same: the words of the one are those of
// the other, in the same order, with a few more that neither turn the meaning
// nor add a number. Short contents must have the same title as well. Both must be
// able to hold at the same time.
func (a Likeness) Same(b Likeness) bool {
	if !a.together(b) {
		return false
	}
	if a.words == nil || b.words == nil {
		return a.sum == b.sum
	}
	short, long := a.words, b.words
	if len(short) > len(long) {
		short, long = long, short
	}
	if 2*float64(len(short)) < minSimilar*float64(len(short)+len(long)) {
		return false
	}
	at := 0
	for _, w := range long {
		if at < len(short) && short[at] == w {
			at++
			continue
		}
		if w.flags&changesMeaning != 0 {
			return false
		}
	}
	if at < len(short) {
		return false
	}
	return len(short) >= selfContained || a.title == b.title
}

// Contrary reports whether a and b cannot both be right, as far as their words
// tell: they are the same but for a word that turns the meaning, or have the same
// title and are the same but for a number.
func (a Likeness) Contrary(b Likeness) bool {
	if !a.together(b) || len(a.words) < 2 || len(b.words) < 2 {
		return false
	}
	if a.turns() != b.turns() && differOnlyBy(a.words, b.words, isTurning|isFaint) {
		return min(len(a.words), len(b.words)) >= selfContained || a.title == b.title
	}
	return a.title == b.title && len(a.words) == len(b.words) && differOnlyBy(a.words, b.words, isNumber)
}

// turns counts the words that turn the meaning.
func (a Likeness) turns() int {
	n := 0
	for _, w := range a.words {
		if w.flags&isTurning != 0 {
			n++
		}
	}
	return n
}

// together reports whether both can hold at the same time.
func (a Likeness) together(b Likeness) bool {
	return sameDays(a.from, b.from) && sameDays(a.to, b.to)
}

// differOnlyBy reports whether a and b differ, and are the same in order once the
// words with one of those flags are left out.
func differOnlyBy(a, b []term, flags uint8) bool {
	if slices.Equal(a, b) {
		return false
	}
	i, j := 0, 0
	for {
		for i < len(a) && a[i].flags&flags != 0 {
			i++
		}
		for j < len(b) && b[j].flags&flags != 0 {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if a[i] != b[j] {
			return false
		}
		i, j = i+1, j+1
	}
}

// sameDays reports whether two bounds of validity agree, or one is open.
func sameDays(a, b *time.Time) bool {
	return a == nil || b == nil || a.Sub(*b).Abs() <= 24*time.Hour
}

// bandsOf returns the bands of a set of words.
func bandsOf(set []term) []int64 {
	var least [BandCount * bandRows]uint64
	for i := range least {
		least[i] = ^uint64(0)
	}
	for _, w := range set {
		h := w.hash
		for i := range least {
			least[i] = min(least[i], mix(h+uint64(i)*0x9E3779B97F4A7C15))
		}
	}
	bands := make([]int64, BandCount)
	for b := range bands {
		h := uint64(b)
		for _, v := range least[b*bandRows : (b+1)*bandRows] {
			h = mix(h ^ v)
		}
		bands[b] = int64(h)
	}
	return bands
}

// fnv is the 64-bit FNV-1a hash: the bands are stored, so it must never change.
func fnv(s string) uint64 {
	h := uint64(0xCBF29CE484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001B3
	}
	return h
}

// mix is the finalizer of splitmix64.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>27) * 0x94D049BB133111EB
	return h ^ h>>31
}
