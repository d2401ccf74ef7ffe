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
// probability 1-(1-j^bandRows)^bandCount, .98 for j = .74, which is the least
// that isDuplicate accepts, and .07 for j = .2.
const (
	bandCount = 8
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

// words returns what is compared of a text: the stems of its words in order,
// without stopwords, every negation as "not". It is never empty.
func words(s string) []string {
	var out []string
	for _, w := range text.Words(s) {
		switch {
		case negations[w]:
			out = append(out, "not")
		case w == "only" || w == "until":
			out = append(out, text.Stem(w))
		case !text.IsStopword(w):
			out = append(out, text.Stem(w))
		}
	}
	if len(out) == 0 {
		return []string{strings.ToLower(s)}
	}
	return out
}

// wordsOf returns the words by which an item's duplicates are found.
func wordsOf(it memory.Item) []string { return words(it.Content) }

// isDuplicate reports whether a and b say the same: the words of the one are
// those of the other, in the same order, with a few more that neither turn the
// meaning nor add a number. Short contents must have the same title as well.
// Both must be able to hold at the same time.
func isDuplicate(a, b memory.Item) bool {
	if !sameDays(a.ValidFrom, b.ValidFrom) || !sameDays(a.ValidTo, b.ValidTo) {
		return false
	}
	short, long := wordsOf(a), wordsOf(b)
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
		if turning[w] || strings.ContainsAny(w, "0123456789") {
			return false
		}
	}
	if at < len(short) {
		return false
	}
	return len(short) >= selfContained || slices.Equal(words(a.Title), words(b.Title))
}

// sameDays reports whether two bounds of validity agree, or one is open.
func sameDays(a, b *time.Time) bool {
	return a == nil || b == nil || a.Sub(*b).Abs() <= 24*time.Hour
}

// bandsOf returns the bands of a set of words.
func bandsOf(set []string) []int64 {
	var least [bandCount * bandRows]uint64
	for i := range least {
		least[i] = ^uint64(0)
	}
	for _, w := range set {
		h := fnv(w)
		for i := range least {
			least[i] = min(least[i], mix(h+uint64(i)*0x9E3779B97F4A7C15))
		}
	}
	bands := make([]int64, bandCount)
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
