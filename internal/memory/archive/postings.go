package archive

import (
	"container/list"
	"encoding/binary"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

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

	packed []byte
}

// Posting is a passage that holds a term, and how often.
type Posting struct{ N, Count uint32 }

// PostingReader reads the postings of a term. The zero value has none.
type PostingReader struct {
	rest []byte
	last uint32
}

// Reader reads the postings in the order of the passages' numbers.
func (p Postings) Reader() PostingReader { return PostingReader{rest: p.packed} }

// Next fills list with the next postings, and returns the part of it that it filled:
// none at the end.
func (r *PostingReader) Next(list []Posting) []Posting {
	b, n, i := r.rest, r.last, 0
	for ; i < len(list) && len(b) > 0; i++ {
		step, size := uint64(b[0]), 1
		if step >= 0x80 {
			step, size = binary.Uvarint(b)
		}
		b = b[size:]
		n += uint32(step >> 1)
		list[i] = Posting{n, 1}
		if step&1 != 0 {
			more, size := binary.Uvarint(b)
			b = b[size:]
			list[i].Count += uint32(more)
		}
	}
	r.rest, r.last = b, n
	return list[:i]
}

// Each calls yield with the number of each passage that holds the term, in order,
// and how often it stands there.
func (p Postings) Each(yield func(n uint32, count int)) {
	var some [64]Posting
	r := p.Reader()
	for list := r.Next(some[:]); len(list) > 0; list = r.Next(some[:]) {
		for _, x := range list {
			yield(x.N, int(x.Count))
		}
	}
}

// postingList is a list of postings as it is kept in memory: of each passage the
// distance from the one before it, twice, plus one where a number follows that says
// how often more than once the term stands there. Most passages take a byte.
type postingList struct {
	packed       []byte
	last         uint32
	rows, tokens int
	countsOnly   bool // packed is not known
}

// add appends a passage, which must be behind the last one.
func (l *postingList) add(n uint32, count int) {
	l.rows++
	l.tokens += count
	if l.countsOnly {
		return
	}
	step := uint64(n-l.last) << 1
	l.last = n
	if count == 1 {
		l.packed = binary.AppendUvarint(l.packed, step)
		return
	}
	l.packed = binary.AppendUvarint(l.packed, step|1)
	l.packed = binary.AppendUvarint(l.packed, uint64(count-1))
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
	// listCost is what a list takes besides its term and bytes: an estimate.
	listCost = 200
	// followedAtOnce is how many new passages kept lists are extended by. Behind
	// more of them reading a list anew costs less.
	followedAtOnce = 512
)

// keeper keeps the lists of postings that were asked for, the latest used ones, so
// that the next question does not read them from the database. They are of one
// state of it, that of a snapshot: lists grow as passages come in, and are dropped
// where passages that were in already have changed.
type keeper struct {
	most int // bytes

	mu    sync.Mutex
	of    *snapshot // the state; nil before the first
	terms [columns]map[string]*list.Element
	order list.List // of *keptList, the latest used first
	bytes int
}

// keptList is a list with its place in a keeper.
type keptList struct {
	column column
	term   string
	postingList
}

func (k *keptList) cost() int { return listCost + len(k.term) + cap(k.packed) }

// isEmpty reports whether nothing is kept.
func (k *keeper) isEmpty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.order.Len() == 0
}

// reset empties the keeper, which is of the state of a snapshot from then on.
func (k *keeper) reset(of *snapshot) {
	k.of, k.bytes = of, 0
	k.order.Init()
	for c := range k.terms {
		k.terms[c] = map[string]*list.Element{}
	}
}

// get returns the lists of those terms that are kept; nil for others. Reports false
// where the keeper is not of that state.
func (k *keeper) get(of *snapshot, c column, terms []string) (lists []*postingList, same bool) {
	lists = make([]*postingList, len(terms))
	if k.of != of {
		return lists, false
	}
	for i, t := range terms {
		if e, kept := k.terms[c][t]; kept {
			k.order.MoveToFront(e)
			l := e.Value.(*keptList).postingList // a copy: the kept one grows
			lists[i] = &l
		}
	}
	return lists, true
}

// put keeps the list of a term that was read at the state of a snapshot, unless the
// keeper has moved on.
func (k *keeper) put(of *snapshot, c column, term string, l postingList) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of != of {
		return
	}
	if e, kept := k.terms[c][term]; kept {
		if !e.Value.(*keptList).countsOnly || l.countsOnly {
			return
		}
		k.drop(e)
	}
	kept := &keptList{c, term, l}
	k.terms[c][term] = k.order.PushFront(kept)
	k.bytes += kept.cost()
	k.trim()
}

// trim drops the lists that were not used for longest until the rest has room.
func (k *keeper) trim() {
	for k.bytes > k.most {
		k.drop(k.order.Back())
	}
}

func (k *keeper) drop(e *list.Element) {
	l := k.order.Remove(e).(*keptList)
	delete(k.terms[l.column], l.term)
	k.bytes -= l.cost()
}

// arrived is what a new passage holds of one column: how often each term.
type arrived struct {
	n     uint32
	terms [columns]map[string]int
}

// arrivedOf counts the terms of a passage. It reports false where the database may
// cut them in another way.
func arrivedOf(n uint32, said, caption string) (arrived, bool) {
	a := arrived{n: n}
	cut := text.Index(strings.TrimSpace(said + "\n" + caption))
	for c, terms := range [columns]string{cut.Main, cut.Prefix} {
		if !keepsTerms(terms) {
			return a, false
		}
		a.terms[c] = map[string]int{}
		for term := range strings.FieldsSeq(terms) {
			a.terms[c][term]++
		}
	}
	return a, true
}

// follow extends the lists by passages that are behind all that they hold, and is
// of the state of next then.
func (k *keeper) follow(next *snapshot, passages []arrived) {
	k.of = next
	for _, p := range passages {
		for c, terms := range p.terms {
			for term, count := range terms {
				e, kept := k.terms[c][term]
				if !kept {
					continue
				}
				l := e.Value.(*keptList)
				k.bytes -= l.cost()
				l.add(p.n, count)
				k.bytes += l.cost()
			}
		}
	}
	k.trim()
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
