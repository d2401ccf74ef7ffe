package journal

import (
	"errors"
	"io"
	"slices"
	"sort"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// find returns where to start reading for the lines behind a cursor: its own
// position where that is right, else a place at or before the first such line.
func (v *view) find(after memory.Cursor) (memory.Cursor, error) {
	right, err := v.proves(after)
	if err != nil || right {
		return after, err
	}
	names, err := v.segments()
	if err != nil || len(names) == 0 {
		return after, err
	}
	name, err := v.segmentOf(names, after.Seq)
	if err != nil {
		return after, err
	}
	offset, err := v.offsetOf(name, after.Seq)
	return memory.Cursor{Seq: after.Seq, File: name, Offset: offset}, err
}

// proves reports whether the line that stands at the cursor's position is the
// next one, or the line that ends there the last one read.
func (v *view) proves(c memory.Cursor) (right bool, err error) {
	if !isSegment(c.File) || c.File > v.last || c.Offset < 0 {
		return false, nil
	}
	file, size, err := v.segment(c.File)
	if err != nil {
		return false, nil // the hint names what is not there; reading will tell if it should be
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if c.Offset > size {
		return false, nil
	}
	if c.Offset < size {
		p, err := newScanner(file, c.Offset, size).next()
		return err == nil && p.reason == "" && p.seq == c.Seq+1, err
	}
	t, err := findTail(file, size)
	return t.end == c.Offset && t.seq == c.Seq && c.Seq > 0, err
}

// segmentOf returns the last segment whose first line is not behind seq, or the
// first segment of all. Segments without a good line are passed over.
func (v *view) segmentOf(names []string, seq int64) (string, error) {
	var failed error
	i := sort.Search(len(names), func(i int) bool {
		for ; i < len(names); i++ {
			first, err := v.firstSeq(names[i])
			if err != nil {
				failed = err
				return true
			}
			if first > 0 {
				return first > seq
			}
		}
		return true
	})
	return names[max(0, i-1)], failed
}

// firstSeq returns the seq of the first good line of a segment, 0 for none.
func (v *view) firstSeq(name string) (seq int64, err error) {
	file, size, err := v.segment(name)
	if err != nil {
		if errors.Is(err, memory.ErrCorrupt) {
			return 0, nil
		}
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p, err := firstGood(file, 0, size)
	return p.seq, err
}

// firstGood returns the first good line at or behind offset; the zero piece for
// none.
func firstGood(file io.ReaderAt, offset, size int64) (piece, error) {
	for s := newScanner(file, offset, size); ; {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return piece{}, nil
		}
		if err != nil || p.reason == "" {
			return p, err
		}
	}
}

// offsetOf is placeOf in a segment.
func (v *view) offsetOf(name string, seq int64) (offset int64, err error) {
	file, size, err := v.segment(name)
	if err != nil {
		if errors.Is(err, memory.ErrCorrupt) {
			return 0, nil
		}
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return placeOf(file, 0, size, seq)
}

// placeOf returns an offset between low and high at which a line begins, not behind
// the first line with a higher seq and not far before it. It halves the range that
// the place may be in.
func placeOf(file io.ReaderAt, low, high, seq int64) (offset int64, err error) {
	const near = 32 << 10
	for high-low > near {
		middle := low + (high-low)/2
		p, err := firstGood(file, middle, high)
		switch {
		case err != nil:
			return 0, err
		case p.seq == 0 || p.seq > seq:
			high = middle
		default:
			low = p.offset
		}
	}
	return low, nil
}

// lastSeq returns the seq of the last good line of the segments; 0 for none.
func (v *view) lastSeq(names []string) (int64, error) {
	for _, name := range slices.Backward(names) {
		file, size, err := v.segment(name)
		if err != nil {
			if errors.Is(err, memory.ErrCorrupt) {
				continue
			}
			return 0, err
		}
		t, err := findTail(file, size)
		if err = errors.Join(err, file.Close()); err != nil || t.seq > 0 {
			return t.seq, err
		}
	}
	return 0, nil
}
