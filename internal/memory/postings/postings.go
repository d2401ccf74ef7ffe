// Package postings holds in memory which texts of a store hold a term: packed lists,
// and a keeper of those that were asked for, so that the next question does not read
// them from the database.
package postings

import "encoding/binary"

// Posting is a text that holds a term, by its number, and how often.
type Posting struct{ N, Count uint32 }

// List is where a term stands: of each text the distance from the one before it, twice,
// plus one where a number follows that says how often more than once the term stands
// there. Most texts take a byte. The zero value is empty.
type List struct {
	Rows   int // texts that hold the term
	Tokens int // how often it stands in all of them
	// CountsOnly says that only Rows and Tokens are known.
	CountsOnly bool

	packed []byte
	last   uint32
}

// Add appends a text, which must be behind the last one.
func (l *List) Add(n uint32, count int) {
	l.Rows++
	l.Tokens += count
	if l.CountsOnly {
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

// Reader reads the postings of a list, in the order of the numbers. It is of the list as
// it was when it was asked for.
func (l *List) Reader() Reader { return Reader{rest: l.packed} }

// Reader reads postings. The zero value has none.
type Reader struct {
	rest []byte
	last uint32
}

// Next fills list with the next postings, and returns the part of it that it filled:
// none at the end.
func (r *Reader) Next(list []Posting) []Posting {
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
