// Package chunk cuts Markdown into the chunks that OpenClaw's search index is
// made of, so that an index of ours has the chunks, line ranges and hashes of
// OpenClaw's own. Lengths are UTF-16 code units, as in JavaScript.
package chunk

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Variant names one of the ways in which OpenClaw's versions cut.
type Variant string

// The variants.
const (
	// Seed is how the versions of January and February 2026 cut. The lines carried
	// over from the chunk before come on top, so a chunk may exceed its size by them.
	Seed Variant = "seed"
	// Capped carries over half a chunk at most, and cuts what is too long all the
	// same.
	Capped Variant = "capped"
	// Weighted is Seed with characters of Chinese, Japanese and Korean counted as a
	// token each.
	Weighted Variant = "weighted"
	// Bounded weighs as Weighted does, and gives what is carried over and what
	// follows one common size: no chunk exceeds it.
	Bounded Variant = "bounded"
)

// Variants are all of them.
var Variants = []Variant{Seed, Capped, Weighted, Bounded}

// ParseVariant returns the variant of that name; "" is Seed.
func ParseVariant(s string) (Variant, error) {
	if s == "" {
		return Seed, nil
	}
	for _, v := range Variants {
		if s == string(v) {
			return v, nil
		}
	}
	return "", &memory.FieldError{Field: "chunking", Reason: "must be seed, capped, weighted or bounded"}
}

// Options say how large chunks are, in tokens of four characters.
type Options struct {
	Tokens  int // of a chunk
	Overlap int // carried over from a chunk to the next
	Variant Variant
}

// Default is what OpenClaw cuts by where nothing else is configured.
var Default = Options{Tokens: 400, Overlap: 80, Variant: Seed}

// Normal returns o with Tokens at least 1 and Overlap within 0 and Tokens-1.
func (o Options) Normal() Options {
	o.Tokens = max(1, o.Tokens)
	o.Overlap = min(max(0, o.Overlap), o.Tokens-1)
	return o
}

// unitsPerToken is OpenClaw's estimate, and minBudget the least size of a chunk.
const (
	unitsPerToken = 4
	minBudget     = 32
)

// Chunk is a run of lines, or of parts of lines that are too long.
type Chunk struct {
	StartLine int // 1-based, inclusive
	EndLine   int
	Text      string // without the last line's end
}

// Hash returns the chunk's hash: SHA-256 of its text in hexadecimal.
func (c Chunk) Hash() string {
	sum := sha256.Sum256([]byte(c.Text))
	return hex.EncodeToString(sum[:])
}

// Split cuts a text at LF and packs its lines into chunks, in the order of the
// text. A line longer than a chunk is cut itself: its parts have its number, and
// stand on lines of their own. Blank chunks are left out.
func Split(text string, o Options) []Chunk {
	c := newCutter(o.Normal())
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		c.line(line, n)
	}
	c.emit()
	return c.chunks
}

// segment is a line, or a part of one.
type segment struct {
	text string
	line int
	cost int // its size and one for the line's end
}

// cutter packs segments into chunks.
type cutter struct {
	o      Options
	budget int // size of a chunk
	carry  int // size of what is carried over
	size   func(string) int

	open   []segment // of the chunk being packed
	used   int       // their cost
	chunks []Chunk
}

func newCutter(o Options) *cutter {
	c := &cutter{o: o, budget: max(minBudget, unitsPerToken*o.Tokens), carry: unitsPerToken * o.Overlap, size: units}
	if o.Variant == Weighted || o.Variant == Bounded {
		c.size = weight
	}
	return c
}

// line adds a line, in parts if it is too long.
func (c *cutter) line(line string, n int) {
	if len(line) <= c.budget && c.size(line) <= c.budget { // no text has more units than bytes
		c.add(line, n)
		return
	}
	cut := func(s string) (string, string) { return cutUnits(s, c.budget) }
	if c.o.Variant == Bounded {
		cut = func(s string) (string, string) { return cutSafe(s, c.budget) }
	}
	for line != "" {
		var part string
		part, line = cut(line)
		c.part(part, n)
	}
}

// part adds a part of a line that is not longer than a chunk, but may weigh more.
func (c *cutter) part(part string, n int) {
	if c.size(part) <= c.budget {
		c.add(part, n)
		return
	}
	for part != "" {
		var piece string
		if c.o.Variant == Bounded {
			piece, part = cutWeight(part, c.budget)
		} else {
			piece, part = cutAfterPair(part, c.o.Tokens)
		}
		c.add(piece, n)
	}
}

// add puts a segment into the open chunk, or ends that chunk first where it has
// no room left.
func (c *cutter) add(text string, n int) {
	s := segment{text: text, line: n, cost: c.size(text) + 1}
	if c.used+s.cost > c.budget && len(c.open) > 0 {
		c.emit()
		c.open = c.tail(s.cost)
		c.used = 0
		for _, kept := range c.open {
			c.used += kept.cost
		}
	}
	c.open = append(c.open, s)
	c.used += s.cost
}

// emit ends the open chunk, which it leaves open for its tail to be taken.
func (c *cutter) emit() {
	if len(c.open) == 0 {
		return
	}
	var sb strings.Builder
	for i, s := range c.open {
		if i > 0 {
			sb.WriteByte('\n')
		}
		sb.WriteString(s.text)
	}
	text := sb.String()
	if c.o.Variant == Capped {
		text, _ = cutUnits(text, c.budget)
	}
	if Trim(text) == "" {
		return
	}
	c.chunks = append(c.chunks, Chunk{StartLine: c.open[0].line, EndLine: c.open[len(c.open)-1].line, Text: text})
}

// tail returns what the open chunk hands on to the next, whose first new segment
// costs next.
func (c *cutter) tail(next int) []segment {
	switch c.o.Variant {
	case Capped:
		return c.tailWithin(min(c.carry, c.budget/2))
	case Bounded:
		return c.tailSliced(min(c.carry, max(0, c.budget-next)))
	}
	return c.tailAcross(c.carry)
}

// tailAcross keeps the last segments until they cost size; the one that crosses
// it is kept.
func (c *cutter) tailAcross(size int) []segment {
	from, cost := len(c.open), 0
	for from > 0 && cost < size {
		from--
		cost += c.open[from].cost
	}
	return append([]segment(nil), c.open[from:]...)
}

// tailWithin keeps the last segments that cost size together, and the very last
// one whatever it costs.
func (c *cutter) tailWithin(size int) []segment {
	if size == 0 {
		return nil
	}
	from := len(c.open) - 1
	cost := c.open[from].cost
	for from > 0 && cost+c.open[from-1].cost <= size {
		from--
		cost += c.open[from].cost
	}
	return append([]segment(nil), c.open[from:]...)
}

// tailSliced keeps the last segments that cost size together, or of the very last
// one as much of its end as fits.
func (c *cutter) tailSliced(size int) []segment {
	from, cost := len(c.open), 0
	for from > 0 && cost+c.open[from-1].cost <= size {
		from--
		cost += c.open[from].cost
	}
	if from < len(c.open) {
		return append([]segment(nil), c.open[from:]...)
	}
	last := c.open[from-1]
	end := endWeighing(last.text, size-1)
	if end == "" {
		return nil
	}
	return []segment{{text: end, line: last.line, cost: weight(end) + 1}}
}
