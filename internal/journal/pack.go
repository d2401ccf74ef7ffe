package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const packPrefix = ".pack-" // of the name of a segment that is being packed or unpacked

// Packed says what Pack did to one segment.
type Packed struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes" jsonschema:"before"`
	Packed int64  `json:"packed" jsonschema:"and after"`
}

// Packable returns the segments that Pack would pack, with their sizes.
func Packable(dir string, before time.Time) ([]Packed, error) {
	d, err := openDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	list, err := d.packable(before)
	return list, errors.Join(unavailableIf(err), d.close())
}

// packable lists the segments of the days before a time that are not packed, but
// for the newest: that one is written to.
func (d *directory) packable(before time.Time) ([]Packed, error) {
	plain, err := d.list(isSegment)
	if err != nil || len(plain) == 0 {
		return nil, err
	}
	names, err := d.segments()
	if err != nil {
		return nil, err
	}
	newest := names[len(names)-1]
	var list []Packed
	for _, name := range plain {
		if name == newest || name >= segmentName(before) {
			continue
		}
		info, err := d.root.Lstat(name)
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			list = append(list, Packed{File: name, Bytes: info.Size()})
		}
	}
	return list, nil
}

// Pack packs the segments of the days before a time, while other goroutines and
// processes read and append: the packed form is written beside the segment,
// compared with it, and takes its place whole or not at all. Lines, seqs and
// offsets are as before to every reader. The newest segment is never packed. Only
// one Pack of a directory may run at a time.
func Pack(ctx context.Context, dir string, before time.Time, log zerolog.Logger) ([]Packed, error) {
	d, err := openDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	w := &writer{sync: syncData, log: log, dir: d}
	done, err := w.pack(ctx, before)
	return done, errors.Join(unavailableIf(err), w.close())
}

func (w *writer) pack(ctx context.Context, before time.Time) ([]Packed, error) {
	list, err := w.dir.packable(before)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if err := w.removeHalf(packPrefix); err != nil {
		return nil, err
	}
	var done []Packed
	for _, p := range list {
		was, err := w.packOne(ctx, p.File)
		if err != nil {
			return done, fmt.Errorf("pack %s: %w", filepath.Join(w.dir.path, p.File), err)
		}
		if was.File != "" {
			done = append(done, was)
		}
	}
	return done, nil
}

// removeHalf removes what an interrupted job left half done.
func (w *writer) removeHalf(prefix string) error {
	half, err := w.dir.list(func(name string) bool { return strings.HasPrefix(name, prefix) })
	if err != nil {
		return err
	}
	for _, name := range half {
		if err := w.dir.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// packOne packs one segment. The lock is held only while the files change places;
// a segment that was written anew meanwhile is left for the next time.
func (w *writer) packOne(ctx context.Context, name string) (Packed, error) {
	plain, err := w.dir.open(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Packed{}, nil
	}
	if err != nil {
		return Packed{}, err
	}
	done, err := w.packFile(ctx, name, plain)
	if err = errors.Join(err, plain.Close()); err != nil {
		if rmErr := w.dir.root.Remove(packPrefix + name); !errors.Is(rmErr, fs.ErrNotExist) {
			err = errors.Join(err, rmErr)
		}
		return Packed{}, err
	}
	return done, nil
}

func (w *writer) packFile(ctx context.Context, name string, plain *os.File) (Packed, error) {
	before, err := plain.Stat()
	if err != nil {
		return Packed{}, err
	}
	size, err := w.compress(ctx, name, plain)
	if err != nil {
		return Packed{}, err
	}
	if err := w.compare(ctx, packPrefix+name, plain, before.Size()); err != nil {
		return Packed{}, err
	}
	if err := w.lock(); err != nil {
		return Packed{}, err
	}
	defer w.unlock()
	now, err := w.dir.root.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Packed{}, err
	}
	if err != nil || !os.SameFile(before, now) || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
		return Packed{}, w.dir.root.Remove(packPrefix + name)
	}
	if err := w.dir.root.Rename(packPrefix+name, name+packedSuffix); err != nil {
		return Packed{}, err
	}
	// The packed form must have its name for good before the plain one loses its own.
	if err := w.dir.sync(); err != nil {
		return Packed{}, err
	}
	if err := w.dir.root.Remove(name); err != nil {
		return Packed{}, err
	}
	return Packed{File: name, Bytes: before.Size(), Packed: size}, w.dir.sync()
}

// compress writes the packed form of a segment, durably, and returns its size.
func (w *writer) compress(ctx context.Context, name string, plain *os.File) (size int64, err error) {
	out, err := w.dir.open(packPrefix+name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithSingleSegment(true))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, enc.Close()) }()
	in := io.NewSectionReader(plain, 0, 1<<62)
	var lines, rest, frame []byte
	for ended := false; !ended; {
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		if lines, rest, ended, err = nextLines(in, append(lines[:0], rest...)); err != nil {
			return 0, err
		}
		if len(lines) == 0 {
			continue
		}
		frame = enc.EncodeAll(lines, frame[:0])
		n, err := out.Write(frame)
		if size += int64(n); err != nil {
			return 0, err
		}
	}
	return size, w.sync(out)
}

// nextLines reads whole lines, frameBytes of them or more, behind those in have.
// What stands behind the last newline is the rest, unless it is too long for a
// line or the end: then it goes with the lines.
func nextLines(in io.Reader, have []byte) (lines, rest []byte, ended bool, err error) {
	for {
		have = append(have, make([]byte, frameBytes)...)
		n, err := io.ReadFull(in, have[len(have)-frameBytes:])
		have = have[:len(have)-frameBytes+n]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return have, nil, true, nil
		}
		if err != nil {
			return nil, nil, false, err
		}
		if end := bytes.LastIndexByte(have, '\n') + 1; end > 0 {
			return have[:end], bytes.Clone(have[end:]), false, nil
		}
		if len(have) >= MaxLine {
			return have, nil, false, nil
		}
	}
}

// compare makes sure that a packed form holds what the segment does.
func (w *writer) compare(ctx context.Context, name string, plain *os.File, size int64) (err error) {
	file, err := w.dir.open(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	p, err := openPacked(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	differs := memory.Errorf(memory.ErrInternal, "the packed form is not what the segment is")
	if p.size != size {
		return differs
	}
	var a, b [64 << 10]byte
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(int64(len(a)), size-at)
		if _, err := plain.ReadAt(a[:n], at); err != nil {
			return err
		}
		if _, err := p.ReadAt(b[:n], at); err != nil {
			return err
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return differs
		}
		at += n
	}
	return nil
}

// unpack makes a packed segment a plain one again. The lock is held. Of one that
// is plain it removes a packed form that an interruption has left.
func (w *writer) unpack(name string) error {
	switch _, err := w.dir.root.Lstat(name); {
	case err == nil:
		if err := w.dir.root.Remove(name + packedSuffix); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	from, size, err := w.dir.openSegment(name)
	if err != nil {
		return err
	}
	err = w.copyPlain(from, size, name)
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	if err := w.dir.sync(); err != nil {
		return err
	}
	if err := w.dir.root.Remove(name + packedSuffix); err != nil {
		return err
	}
	return w.dir.sync()
}

func (w *writer) copyPlain(from io.ReaderAt, size int64, name string) (err error) {
	if err := w.removeHalf(packPrefix + name); err != nil {
		return err
	}
	out, err := w.dir.open(packPrefix+name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(from, 0, size))
	if err == nil {
		err = w.sync(out)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return w.dir.root.Rename(packPrefix+name, name)
}
