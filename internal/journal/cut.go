package journal

// Cut is the durable part of a journal at one moment: its segments, oldest first,
// each up to a size. Later appends do not change those bytes; a segment that is
// written anew (Rewrite) is another file under the same name.
type Cut struct {
	LastSeq  int64
	Segments []CutSegment
}

// CutSegment is the part of one segment.
type CutSegment struct {
	Name string
	Size int64
}

// Cut returns where the journal ends now. It waits for nobody.
func (r *Reader) Cut() (Cut, error) {
	var c Cut
	v, err := r.view()
	if err != nil || v.last == "" {
		return c, err
	}
	names, err := v.segments()
	if err != nil {
		return c, err
	}
	for _, name := range names {
		size, err := v.sizeOf(name)
		if err != nil {
			return c, err
		}
		if name == v.last {
			size = min(size, v.size)
		}
		c.Segments = append(c.Segments, CutSegment{Name: name, Size: size})
	}
	if v.last == v.head.File && v.size == v.head.Size {
		c.LastSeq = v.head.Last
		return c, nil
	}
	seq, err := v.lastSeq(names)
	c.LastSeq = max(seq, v.head.Last)
	return c, err
}
