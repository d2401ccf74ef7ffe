package journal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Line is one good line of a journal.
type Line struct {
	Seq    int64
	File   string
	Offset int64
	Data   []byte // the object with seq and crc, without the newline; valid during the call that hands it over
}

// Reader reads a journal that other goroutines and processes may be writing. It
// returns only what is durable, creates nothing, and takes a directory that does
// not exist for an empty journal. Its methods are safe for concurrent use.
type Reader struct {
	path string

	mu   sync.Mutex
	dir  *directory // nil until the directory is there
	head *os.File   // nil until the head is there
}

// NewReader returns a reader of the journal in that directory. Close it.
func NewReader(dir string) *Reader { return &Reader{path: dir} }

// Close closes the reader's files. Reading on opens them anew.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	if r.head != nil {
		errs = append(errs, r.head.Close())
	}
	if r.dir != nil {
		errs = append(errs, r.dir.close())
	}
	r.head, r.dir = nil, nil
	return errors.Join(errs...)
}

// view is the durable part of a journal at one moment.
type view struct {
	dir   *directory
	names []string // segments in order; nil until needed
	last  string   // newest segment; "" where the journal is empty
	size  int64    // of its durable part
	head  head     // zero if there is none
}

// view looks at where the journal ends. What lies beyond the head is durable
// only if nobody is writing: a group under way is left out.
func (r *Reader) view() (*view, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, err := r.open()
	if v == nil || err != nil {
		return &view{}, err
	}
	if r.head == nil {
		return v, v.measure()
	}
	whole := false
	if v.head, whole, err = readHead(r.head); err != nil {
		return nil, err
	}
	if whole {
		size, err := v.sizeOf(v.head.File)
		if err == nil && size == v.head.Size {
			v.last, v.size = v.head.File, size
			return v, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return v, r.settle(v, whole)
}

// settle takes the end of the journal from the head while a group is being
// written, and from the files while none is.
func (r *Reader) settle(v *view, whole bool) error {
	free, err := tryLock(r.head, unix.LOCK_SH)
	switch {
	case err != nil:
		return err
	case free:
		return errors.Join(v.measure(), unlock(r.head))
	case whole:
		v.last, v.size = v.head.File, v.head.Size
		return nil
	}
	return v.measure()
}

// open opens what is there; a nil view where nothing is.
func (r *Reader) open() (*view, error) {
	if r.dir == nil {
		dir, err := openDirectory(r.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		r.dir = dir
	}
	if r.head != nil {
		gone, err := removed(r.head)
		if err != nil {
			return nil, err
		}
		if gone {
			if err := r.head.Close(); err != nil {
				return nil, err
			}
			r.head = nil
		}
	}
	if r.head == nil {
		head, err := r.dir.open(headName, os.O_RDONLY)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			r.head = head
		}
	}
	return &view{dir: r.dir}, nil
}

func (v *view) sizeOf(name string) (int64, error) {
	if name == "" {
		return 0, nil
	}
	info, err := v.dir.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && isSegment(name) { // packed
		file, size, err := v.dir.openSegment(name)
		if err != nil {
			return 0, err
		}
		return size, file.Close()
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// measure takes the whole of what is there.
func (v *view) measure() error {
	names, err := v.segments()
	if err != nil || len(names) == 0 {
		return err
	}
	v.last = names[len(names)-1]
	v.size, err = v.sizeOf(v.last)
	return err
}

// segments lists the segments of the view.
func (v *view) segments() ([]string, error) {
	if v.names != nil || v.dir == nil {
		return v.names, nil
	}
	names, err := v.dir.segments()
	if err != nil {
		return nil, err
	}
	if v.last != "" {
		names = slices.DeleteFunc(names, func(name string) bool { return name > v.last })
	}
	v.names = names
	return names, nil
}

// segment opens a segment and returns it with the size of its durable part.
func (v *view) segment(name string) (segmentFile, int64, error) {
	file, size, err := v.dir.openSegment(name)
	if err != nil {
		return nil, 0, err
	}
	if name == v.last {
		size = min(size, v.size)
	}
	return file, size, nil
}

// Read hands to visit, in the order of seq, the lines behind a cursor, until
// visit returns false or the journal ends. It returns the cursor behind the last
// line handed over, and the damage that it met. The cursor's file and offset are
// used only where they prove right.
func (r *Reader) Read(ctx context.Context, after memory.Cursor, visit func(Line) (more bool, err error)) (memory.Cursor, []Damage, error) {
	v, err := r.view()
	if err != nil || v.last == "" {
		return after, nil, err
	}
	start, err := v.find(after)
	if err != nil {
		return after, nil, err
	}
	walk := &walk{view: v, at: start, after: after.Seq, seen: after.Seq, visit: visit}
	err = walk.run(ctx)
	return walk.at, walk.damage, err
}

// reasonDouble is why a line whose checksum is right is not a good one.
const reasonDouble = "the line stands behind one with the same or a higher seq"

// walk is one pass over the lines of a view.
type walk struct {
	view   *view
	at     memory.Cursor // behind the last line handed over; at first where to start
	after  int64         // lines up to this seq are passed over
	seen   int64         // highest seq met
	visit  func(Line) (bool, error)
	damage []Damage
}

func (w *walk) run(ctx context.Context) error {
	for name := w.at.File; name != ""; {
		more, err := w.file(ctx, name)
		if err != nil || !more {
			return err
		}
		if name, err = w.view.following(name); err != nil {
			return err
		}
	}
	return nil
}

// following returns the segment after name, "" if name is the last.
func (v *view) following(name string) (string, error) {
	if name >= v.last {
		return "", nil
	}
	names, err := v.segments()
	if err != nil {
		return "", err
	}
	if i := sort.SearchStrings(names, name+"\x00"); i < len(names) {
		return names[i], nil
	}
	return "", nil
}

// file goes through one segment; from the cursor where it is in this one.
func (w *walk) file(ctx context.Context, name string) (more bool, err error) {
	file, size, err := w.view.segment(name)
	if err != nil {
		if errors.Is(err, memory.ErrCorrupt) { // not a regular file: the others can be read
			w.damage = append(w.damage, Damage{File: name, Reason: "it is not a regular file"})
			return true, nil
		}
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var offset int64
	if name == w.at.File {
		offset = w.at.Offset
	}
	for s := newScanner(file, offset, size); ; {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if more, err := w.piece(ctx, name, p); err != nil || !more {
			return false, err
		}
	}
}

func (w *walk) piece(ctx context.Context, name string, p piece) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, context.Cause(ctx)
	}
	switch {
	case p.torn && name == w.view.last: // the next writer moves it aside
		return true, nil
	case p.reason == "" && p.seq <= w.after && w.seen == w.after: // read before
		return true, nil
	case p.reason == "" && p.seq <= w.seen:
		p.reason = reasonDouble
	}
	if p.reason != "" {
		w.damage = addDamage(w.damage, Damage{File: name, Offset: p.offset, Length: p.length, Reason: p.reason})
		return true, nil
	}
	w.seen = p.seq
	more, err = w.visit(Line{Seq: p.seq, File: name, Offset: p.offset, Data: p.line})
	if err == nil {
		w.at = memory.Cursor{Seq: p.seq, File: name, Offset: p.end()}
	}
	return more, err
}

// LastSeq returns the highest seq that a durable line has been given, 0 for an
// empty journal.
func (r *Reader) LastSeq() (int64, error) {
	v, err := r.view()
	if err != nil || v.last == "" {
		return 0, err
	}
	if v.last == v.head.File && v.size == v.head.Size {
		return v.head.Last, nil
	}
	names, err := v.segments()
	if err != nil {
		return 0, err
	}
	seq, err := v.lastSeq(names)
	return max(seq, v.head.Last), err
}

// FirstDay returns the UTC day of the first segment; the zero time for an empty
// journal.
func (r *Reader) FirstDay() (time.Time, error) {
	v, err := r.view()
	if err != nil {
		return time.Time{}, err
	}
	names, err := v.segments()
	if err != nil || len(names) == 0 {
		return time.Time{}, err
	}
	day, _, _ := strings.Cut(names[0], ".")
	at, err := time.Parse(segmentDay, day)
	if err != nil {
		err = memory.Errorf(memory.ErrInternal, "segment %s: %w", names[0], err)
	}
	return at, err
}

// Path returns the path of a segment, for messages.
func (r *Reader) Path(segment string) string { return filepath.Join(r.path, segment) }
