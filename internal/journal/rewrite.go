package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/rs/zerolog"
)

const rewritePrefix = ".rewrite-" // of the name of a segment that is being written anew

// Edits say what Rewrite changes.
type Edits struct {
	// Line returns the object that takes the place of a good line's, without seq and
	// crc; nil leaves the line as it is.
	Line func(Line) (object []byte, err error)
	// Drop reports whether damaged bytes go; others stay where they are. It may be nil.
	Drop func(raw []byte) bool
	// Seqs are the only lines that Line is asked about, in ascending order; nil for all.
	// They are found without reading what lies between them, and Drop is not asked.
	Seqs []int64
}

// Rewritten is what Rewrite did.
type Rewritten struct {
	Lines    int64    // replaced
	Dropped  int64    // bytes of damage taken out
	Segments []string // written anew
}

// Rewrite replaces lines of the journal in dir by others of the same seq, which
// get a checksum of their own; no line is added or removed. Each segment is
// replaced whole or not at all, while other goroutines and processes read and
// append. An interrupted Rewrite is completed by the next one with the same edits.
// A directory that does not exist is an empty journal.
func Rewrite(ctx context.Context, dir string, log zerolog.Logger, e Edits) (Rewritten, error) {
	var done Rewritten
	d, err := openDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	if err != nil {
		return done, unavailable(err)
	}
	w := &writer{sync: syncData, log: log, dir: d}
	err = w.rewrite(ctx, e, &done)
	return done, errors.Join(unavailableIf(err), w.close())
}

func unavailableIf(err error) error {
	if err == nil {
		return nil
	}
	return unavailable(err)
}

func (w *writer) rewrite(ctx context.Context, e Edits, done *Rewritten) error {
	// What was interrupted may hold what goes now.
	if err := errors.Join(w.removeHalf(rewritePrefix), w.removeHalf(packPrefix)); err != nil {
		return err
	}
	names, err := w.dir.segments()
	if err != nil {
		return err
	}
	if e.Seqs != nil {
		return w.rewriteSome(ctx, names, e, done)
	}
	for _, name := range names {
		// Most segments have nothing to change: only the others hold writers up.
		from, wants, err := w.firstEdit(ctx, name, e)
		if err != nil {
			return fmt.Errorf("look through %s: %w", name, err)
		}
		if !wants {
			continue
		}
		if err := w.rewriteLocked(ctx, name, from, e, done); err != nil {
			return fmt.Errorf("write %s anew: %w", name, err)
		}
	}
	return nil
}

// firstEdit returns the offset of the first piece of a segment that changes.
func (w *writer) firstEdit(ctx context.Context, name string, e Edits) (offset int64, wants bool, err error) {
	file, size, err := w.dir.openSegment(name)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for s := newScanner(file, 0, size); ; {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return 0, false, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, false, err
		}
		if p.reason != "" {
			if e.Drop != nil && !p.torn && p.length <= MaxLine {
				raw := make([]byte, p.length)
				if _, err := file.ReadAt(raw, p.offset); err != nil {
					return 0, false, err
				}
				if e.Drop(raw) {
					return p.offset, true, nil
				}
			}
			continue
		}
		object, err := e.Line(Line{Seq: p.seq, File: name, Offset: p.offset, Data: p.line})
		if err != nil || object != nil {
			return p.offset, err == nil, err
		}
	}
}

// rewriteSome is rewrite for some lines alone.
func (w *writer) rewriteSome(ctx context.Context, names []string, e Edits, done *Rewritten) error {
	v := &view{dir: w.dir}
	for rest := e.Seqs; len(names) > 0 && len(rest) > 0; {
		name, err := v.segmentOf(names, rest[0])
		if err != nil {
			return err
		}
		names = names[slices.Index(names, name)+1:]
		here := rest
		if len(names) > 0 { // those before the next segment's first line
			first, err := v.nextFirst(names)
			if err != nil {
				return err
			}
			if first > 0 {
				n, _ := slices.BinarySearch(rest, first)
				here = rest[:n]
			}
		}
		rest = rest[len(here):]
		some := e
		some.Seqs, some.Drop = here, nil
		from, wants, err := w.firstOfSome(ctx, name, some)
		if err != nil {
			return fmt.Errorf("look through %s: %w", name, err)
		}
		if !wants {
			continue
		}
		if err := w.rewriteLocked(ctx, name, from, some, done); err != nil {
			return fmt.Errorf("write %s anew: %w", name, err)
		}
	}
	return nil
}

// nextFirst returns the first seq in any of the segments, 0 for none.
func (v *view) nextFirst(names []string) (int64, error) {
	for _, name := range names {
		if first, err := v.firstSeq(name); err != nil || first > 0 {
			return first, err
		}
	}
	return 0, nil
}

// firstOfSome is firstEdit for some lines alone.
func (w *writer) firstOfSome(ctx context.Context, name string, e Edits) (offset int64, wants bool, err error) {
	file, size, err := w.dir.openSegment(name)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = eachOf(ctx, file, 0, size, e.Seqs, func(p piece) (more bool, err error) {
		object, err := e.Line(Line{Seq: p.seq, File: name, Offset: p.offset, Data: p.line})
		offset, wants = p.offset, object != nil
		return !wants, err
	})
	return offset, wants && err == nil, err
}

// eachOf hands over the lines of the seqs, as far as they are there, until visit
// returns false.
func eachOf(ctx context.Context, file io.ReaderAt, from, size int64, seqs []int64, visit func(piece) (more bool, err error)) error {
	for _, seq := range seqs {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		at, err := placeOf(file, from, size, seq-1)
		if err != nil {
			return err
		}
		for s := newScanner(file, at, size); ; {
			p, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if p.reason != "" || p.seq < seq {
				continue
			}
			if p.seq > seq {
				break
			}
			if more, err := visit(p); err != nil || !more {
				return err
			}
			from = p.end()
			break
		}
	}
	return nil
}

// rewriteLocked replaces a segment while nobody appends. What lies before from
// stays as it is.
func (w *writer) rewriteLocked(ctx context.Context, name string, from int64, e Edits, done *Rewritten) error {
	if err := w.lock(); err != nil {
		return err
	}
	defer w.unlock()
	if err := w.recover(); err != nil { // a torn tail is moved aside first
		return err
	}
	if err := w.unpack(name); err != nil {
		return err
	}
	size, err := w.copyEdited(ctx, name, from, e, done)
	if err != nil {
		if rmErr := w.dir.root.Remove(rewritePrefix + name); !errors.Is(rmErr, fs.ErrNotExist) {
			err = errors.Join(err, rmErr)
		}
		return err
	}
	if err := w.dir.root.Rename(rewritePrefix+name, name); err != nil {
		return err
	}
	done.Segments = append(done.Segments, name)
	if name == w.name {
		w.size = size
		if err := w.publish(); err != nil {
			return err
		}
	}
	return w.dir.sync()
}

// copyEdited writes the new form of a segment beside it, durably, and returns its
// size.
func (w *writer) copyEdited(ctx context.Context, name string, from int64, e Edits, done *Rewritten) (size int64, err error) {
	old, err := w.dir.open(name, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	info, err := old.Stat()
	if err != nil {
		return 0, err
	}
	next, err := w.dir.open(rewritePrefix+name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, next.Close()) }()
	if _, err := io.Copy(next, io.NewSectionReader(old, 0, from)); err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(next, groupBytes)
	if err := editPieces(ctx, out, old, name, from, info.Size(), e, done); err != nil {
		return 0, err
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	info, err = next.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), w.sync(next)
}

// editPieces writes the pieces of a segment from an offset on, edited. What stays
// between two edits is copied at once.
func editPieces(ctx context.Context, out *bufio.Writer, old *os.File, name string, from, size int64, e Edits, done *Rewritten) error {
	var sealed []byte
	edit := func(p piece, into []byte) error { // what lies before, and into in place of the piece
		if _, err := io.Copy(out, io.NewSectionReader(old, from, p.offset-from)); err != nil {
			return err
		}
		from = p.end()
		_, err := out.Write(into)
		return err
	}
	line := func(p piece) (more bool, err error) {
		object, err := e.Line(Line{Seq: p.seq, File: name, Offset: p.offset, Data: p.line})
		if err != nil || object == nil {
			return err == nil, err
		}
		done.Lines++
		sealed = appendSealed(sealed[:0], object, p.seq)
		return true, edit(p, sealed)
	}
	visit := func(p piece) error {
		if p.reason == "" {
			_, err := line(p)
			return err
		}
		if e.Drop == nil || p.length > MaxLine {
			return nil
		}
		raw := make([]byte, p.length)
		if _, err := old.ReadAt(raw, p.offset); err != nil || !e.Drop(raw) {
			return err
		}
		done.Dropped += p.length
		return edit(p, nil)
	}
	var err error
	if e.Seqs != nil {
		err = eachOf(ctx, old, from, size, e.Seqs, line)
	} else {
		err = eachPiece(ctx, old, from, size, visit)
	}
	if err != nil {
		return err
	}
	return edit(piece{offset: size}, nil)
}

// eachPiece hands over the pieces of a segment from an offset on.
func eachPiece(ctx context.Context, file io.ReaderAt, from, size int64, visit func(piece) error) error {
	for s := newScanner(file, from, size); ; {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = visit(p)
		}
		if err != nil {
			return err
		}
	}
}
