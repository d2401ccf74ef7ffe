package archive

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory/postings"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Postings are the passages that hold one term.
type Postings struct {
	Term string
	// Rows is how many passages hold the term.
	Rows int
	// Skipped says that the term was too common to be read: Each yields none of
	// its passages.
	Skipped bool

	read postings.Reader
}

// Reader reads the postings in the order of the passages' numbers.
func (p Postings) Reader() postings.Reader { return p.read }

// Each calls yield with the number of each passage that holds the term, in order,
// and how often it stands there.
func (p Postings) Each(yield func(n uint32, count int)) {
	var some [64]postings.Posting
	r := p.Reader()
	for list := r.Next(some[:]); len(list) > 0; list = r.Next(some[:]) {
		for _, x := range list {
			yield(x.N, int(x.Count))
		}
	}
}

// column is one of the two full-text columns.
type column int

const (
	mainColumn column = iota
	prefixColumn
	columns
)

// table is the full-text table of the column.
func (c column) table() string { return [columns]string{"m", "p"}[c] }

const (
	// keptBytes is what the lists that are kept of an archive take at most.
	keptBytes = 4 << 20
	// followedAtOnce is how many new passages kept lists are extended by. Behind
	// more of them reading a list anew costs less.
	followedAtOnce = 512
)

// arrivedOf counts the terms of a new passage. It reports false where the database may
// cut them in another way.
func arrivedOf(n uint32, said, caption string) (postings.Arrived, bool) {
	a := postings.Arrived{N: n, Terms: make([]map[string]int, columns)}
	cut := text.Index(strings.TrimSpace(said + "\n" + caption))
	for c, terms := range [columns]string{cut.Main, cut.Prefix} {
		if !keepsTerms(terms) {
			return a, false
		}
		a.Terms[c] = map[string]int{}
		for term := range strings.FieldsSeq(terms) {
			a.Terms[c][term]++
		}
	}
	return a, true
}

// keepsTerms reports whether the database's tokenizer keeps terms as they are. It
// knows the letters of an older Unicode than Go does, and takes others for spaces.
func keepsTerms(terms string) bool {
	for _, r := range terms {
		if r >= utf8.RuneSelf && !unicode.Is(keptRunes, r) {
			return false
		}
	}
	return true
}

// keptRunes are the letters beyond ASCII, of those that package text leaves in
// terms, that are known to be kept: what most people write with.
var keptRunes = &unicode.RangeTable{R16: []unicode.Range16{
	{0x00df, 0x00df, 1},
	{0x03b1, 0x03c1, 1}, // Greek, without accents
	{0x03c3, 0x03c9, 1},
	{0x0430, 0x044f, 1}, // Cyrillic
	{0x05d0, 0x05ea, 1}, // Hebrew
	{0x0621, 0x063a, 1}, // Arabic
	{0x0641, 0x064a, 1},
	{0x0905, 0x0939, 1}, // Devanagari
	{0x0e01, 0x0e30, 1}, // Thai
	{0x3041, 0x3096, 1}, // Kana
	{0x30a1, 0x30fa, 1},
	{0x30fc, 0x30fc, 1},
	{0x4e00, 0x9fcc, 1}, // Han
	{0xac00, 0xd7a3, 1}, // Hangul
}, LatinOffset: 1}
