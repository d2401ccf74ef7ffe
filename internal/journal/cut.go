package journal

import (
	"errors"
	"io/fs"
)

// Cut is the durable part of a journal at one moment: its segments, oldest first,
// each up to a size. Later appends do not change those bytes; a segment that is
// written anew (Rewrite) is another file under the same name.
type Cut struct {
	LastSeq  int64
	Segments []CutSegment
}

// CutSegment is the part of one segment's file; a packed one goes whole.
type CutSegment struct {
	Name string // of the file
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
		s, err := v.cut(name)
		if err != nil {
			return c, err
		}
		c.Segments = append(c.Segments, s)
	}
	if v.last == v.head.File && v.size == v.head.Size {
		c.LastSeq = v.head.Last
		return c, nil
	}
	seq, err := v.lastSeq(names)
	c.LastSeq = max(seq, v.head.Last)
	return c, err
}

func (v *view) cut(name string) (CutSegment, error) {
	info, err := v.dir.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		name += packedSuffix
		info, err = v.dir.root.Lstat(name)
	}
	if err != nil {
		return CutSegment{}, err
	}
	if name == v.last {
		return CutSegment{Name: name, Size: min(info.Size(), v.size)}, nil
	}
	return CutSegment{Name: name, Size: info.Size()}, nil
}
