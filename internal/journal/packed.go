package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"

	"github.com/klauspost/compress/zstd"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// packedSuffix stands behind the name of a segment that is packed: its lines, in
// zstd frames (RFC 8878) of whole lines, each with its size and a checksum, so that
// any zstd program unpacks it, and a reader finds a place without reading all.
const packedSuffix = ".zst"

const (
	frameBytes = 256 << 10 // of lines in one frame, unless one line is longer
	// maxFrame is the most bytes believed of a frame: a line of MaxLine and what
	// stood before it.
	maxFrame = MaxLine + frameBytes
)

// segmentFile is an open segment, packed or not: its lines as they were written.
type segmentFile interface {
	io.ReaderAt
	io.Closer
}

// frame is a stretch of a packed segment.
type frame struct {
	at, length  int64 // in the file
	start, size int64 // of the lines in it
	damaged     bool  // it cannot be unpacked: its bytes stand for zeros and a newline
}

// packed reads a packed segment as if it were not. It belongs to one goroutine.
type packed struct {
	file   *os.File
	frames []frame
	size   int64 // of all lines
	dec    *zstd.Decoder
	held   int // frame in lines; -1 for none
	raw    []byte
	lines  []byte
}

// openPacked takes over an open file.
func openPacked(file *os.File) (*packed, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p := &packed{file: file, held: -1}
	if p.frames, err = findFrames(file, info.Size()); err != nil {
		return nil, errors.Join(fmt.Errorf("look through %s: %w", file.Name(), err), file.Close())
	}
	if n := len(p.frames); n > 0 {
		p.size = p.frames[n-1].start + p.frames[n-1].size
	}
	p.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// Close closes the file.
func (p *packed) Close() error {
	p.dec.Close()
	return p.file.Close()
}

// ReadAt implements io.ReaderAt over the lines. Damage shows as a line that no
// journal wrote.
func (p *packed) ReadAt(b []byte, offset int64) (n int, err error) {
	i := sort.Search(len(p.frames), func(i int) bool { return p.frames[i].start+p.frames[i].size > offset })
	for ; n < len(b); i++ {
		if i >= len(p.frames) {
			return n, io.EOF
		}
		if err := p.unpack(i); err != nil {
			return n, err
		}
		c := copy(b[n:], p.lines[offset-p.frames[i].start:])
		n, offset = n+c, offset+int64(c)
	}
	return n, nil
}

// unpack fills lines with those of a frame.
func (p *packed) unpack(i int) error {
	if p.held == i {
		return nil
	}
	f := &p.frames[i]
	p.held = -1
	if !f.damaged {
		p.raw = grown(p.raw, f.length)
		if _, err := p.file.ReadAt(p.raw, f.at); err != nil {
			return err
		}
		lines, err := p.dec.DecodeAll(p.raw, p.lines[:0])
		if p.lines = lines; err == nil && int64(len(lines)) == f.size {
			p.held = i
			return nil
		}
	}
	p.lines = grown(p.lines, f.size)
	clear(p.lines)
	p.lines[f.size-1] = '\n'
	p.held = i
	return nil
}

func grown(b []byte, size int64) []byte {
	if int64(cap(b)) < size {
		return make([]byte, size)
	}
	return b[:size]
}

// findFrames lists the frames of a packed segment. Bytes that are none are a
// damaged one, up to where the next begins.
func findFrames(file io.ReaderAt, size int64) ([]frame, error) {
	var frames []frame
	start := int64(0)
	for at := int64(0); at < size; {
		f, err := frameAt(file, at, size)
		if errors.Is(err, errNoFrame) {
			next, err := nextFrame(file, at+1, size)
			if err != nil {
				return nil, err
			}
			f = frame{at: at, length: next - at, size: next - at, damaged: true}
		} else if err != nil {
			return nil, err
		}
		f.start = start
		if f.size > 0 {
			frames = append(frames, f)
		}
		at, start = at+f.length, start+f.size
	}
	return frames, nil
}

var errNoFrame = errors.New("no zstd frame that a journal wrote")

// frameAt reads the extent of the frame at an offset from its headers.
func frameAt(file io.ReaderAt, at, size int64) (frame, error) {
	var buf [zstd.HeaderMaxSize]byte
	head := buf[:min(int64(len(buf)), size-at)]
	if _, err := file.ReadAt(head, at); err != nil {
		return frame{}, err
	}
	var h zstd.Header
	if err := h.Decode(head); err != nil || h.Skippable || !h.HasFCS || h.FrameContentSize == 0 || h.FrameContentSize > maxFrame {
		return frame{}, errNoFrame
	}
	end := at + int64(h.HeaderSize)
	for last := false; !last; {
		var block [3]byte
		if end+3 > size {
			return frame{}, errNoFrame
		}
		if _, err := file.ReadAt(block[:], end); err != nil {
			return frame{}, err
		}
		b := uint32(block[0]) | uint32(block[1])<<8 | uint32(block[2])<<16
		length := int64(b >> 3)
		if b>>1&3 == 1 { // one byte, many times
			length = 1
		}
		last = b&1 == 1
		end += 3 + length
	}
	if h.HasCheckSum {
		end += 4
	}
	if end > size {
		return frame{}, errNoFrame
	}
	return frame{at: at, length: end - at, size: int64(h.FrameContentSize)}, nil
}

// zstdMagic begins every frame.
const zstdMagic = 0xFD2FB528

// nextFrame returns where the next frame begins at or behind an offset, or size.
func nextFrame(file io.ReaderAt, from, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for from+4 <= size {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), size-from)], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := 0; i+4 <= n; i++ {
			if binary.LittleEndian.Uint32(buf[i:]) != zstdMagic {
				continue
			}
			if _, err := frameAt(file, from+int64(i), size); err == nil {
				return from + int64(i), nil
			}
		}
		from += int64(n - 3)
	}
	return size, nil
}

// openSegment opens a segment for reading, packed or not, and returns its size.
// Where there is both, the packed one is of a Pack that was interrupted.
func (d *directory) openSegment(name string) (segmentFile, int64, error) {
	for again := false; ; again = true {
		file, err := d.open(name, os.O_RDONLY)
		if err == nil {
			info, err := file.Stat()
			if err != nil {
				return nil, 0, errors.Join(err, file.Close())
			}
			return file, info.Size(), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
		file, packedErr := d.open(name+packedSuffix, os.O_RDONLY)
		switch {
		case packedErr == nil:
			p, err := openPacked(file)
			if err != nil {
				return nil, 0, err
			}
			return p, p.size, nil
		case !errors.Is(packedErr, fs.ErrNotExist):
			return nil, 0, packedErr
		case again:
			return nil, 0, err
		}
		// It may have been unpacked between the two looks.
	}
}

// Unpacked opens a packed segment for reading from its beginning to its end.
// Reading what is damaged is ErrCorrupt.
func Unpacked(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &unpacking{file, dec}, nil
}

type unpacking struct {
	file *os.File
	dec  *zstd.Decoder
}

// Read implements io.Reader.
func (u *unpacking) Read(b []byte) (int, error) {
	n, err := u.dec.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &memory.CorruptError{Path: u.file.Name(), Offset: -1, Reason: err.Error()}
	}
	return n, err
}

// Close closes the file.
func (u *unpacking) Close() error {
	u.dec.Close()
	return u.file.Close()
}
