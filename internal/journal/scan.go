package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Damage is a range of bytes of a segment that holds no line a journal wrote.
type Damage struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Reason string `json:"reason"` // of its first line
}

// addDamage adds d to list, as one range with the one that it follows directly.
func addDamage(list []Damage, d Damage) []Damage {
	if n := len(list); n > 0 && list[n-1].File == d.File && list[n-1].Offset+list[n-1].Length == d.Offset {
		list[n-1].Length += d.Length
		return list
	}
	return append(list, d)
}

// piece is a stretch of a segment: a good line, or damage.
type piece struct {
	offset int64
	length int64  // with the newline
	seq    int64  // of a good line
	line   []byte // good: without the newline, valid until the next call
	reason string // damage: why; "" for a good line
	torn   bool   // damage: the last bytes of the file, without a newline
}

func (p piece) end() int64 { return p.offset + p.length }

// scanner cuts a segment into pieces. It needs memory for one line of at most
// MaxLine bytes, whatever the file holds.
type scanner struct {
	in     *bufio.Reader
	offset int64
	long   []byte  // a line longer than in's buffer
	queue  []piece // of a damaged line
}

// newScanner reads src from offset to end.
func newScanner(src io.ReaderAt, offset, end int64) *scanner {
	const buffer = 64 << 10
	size := max(16, min(buffer, int(min(end-offset, buffer))))
	return &scanner{in: bufio.NewReaderSize(io.NewSectionReader(src, offset, end-offset), size), offset: offset}
}

// next returns the next piece, or io.EOF.
func (s *scanner) next() (piece, error) {
	if len(s.queue) > 0 {
		p := s.queue[0]
		s.queue = s.queue[1:]
		return p, nil
	}
	raw, length, err := s.readLine()
	if err != nil {
		return piece{}, err
	}
	p := piece{offset: s.offset, length: length}
	s.offset += length
	switch {
	case raw == nil:
		p.reason = fmt.Sprintf("the line is longer than %d bytes", MaxLine)
	case raw[len(raw)-1] != '\n':
		p.reason, p.torn = "the last line is not complete", true
	default:
		p.line = raw[:len(raw)-1]
		pieces := cut(p)
		p, s.queue = pieces[0], pieces[1:]
	}
	return p, nil
}

// readLine returns the next line with its newline, if it has one, and its
// length; nil bytes for a line longer than MaxLine.
func (s *scanner) readLine() (raw []byte, length int64, err error) {
	raw, err = s.in.ReadSlice('\n')
	if err == nil || (errors.Is(err, io.EOF) && len(raw) > 0) {
		return raw, int64(len(raw)), nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, 0, err
	}
	s.long = append(s.long[:0], raw...)
	length = int64(len(raw))
	for {
		raw, err = s.in.ReadSlice('\n')
		length += int64(len(raw))
		if length <= MaxLine {
			s.long = append(s.long, raw...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if length > MaxLine {
			return nil, length, nil
		}
		return s.long, length, nil
	}
}

// cut returns the pieces of a line: itself where it is good. In one that is
// not, it looks for whole lines that only lack the newline between them.
func cut(p piece) []piece {
	if p.seq, p.reason = unseal(p.line); p.reason == "" {
		return []piece{p}
	}
	return salvage(p)
}

// salvage cuts a damaged line behind each checksum in it. Bytes are checked
// once, however many there are.
func salvage(bad piece) []piece {
	var pieces []piece
	start, line := 0, bad.line
	for at := 0; ; {
		i := bytes.Index(line[at:], []byte(sealStart))
		if i < 0 || at+i+sealLength >= len(line) {
			break
		}
		at += i
		if !sealAt(line, at) {
			at++
			continue
		}
		end := at + sealLength
		pieces = append(pieces, judge(bad.offset, line, start, end))
		pieces = append(pieces, piece{offset: bad.offset + int64(end), length: 1, reason: "a newline is missing"})
		start, at = end+1, end+1
	}
	if start == 0 {
		bad.line = nil
		return []piece{bad}
	}
	if start < len(line) {
		pieces = append(pieces, judge(bad.offset, line, start, len(line)))
	}
	pieces[len(pieces)-1].length++ // the newline
	return pieces
}

// judge makes a piece of line[start:end], where line stands at base.
func judge(base int64, line []byte, start, end int) piece {
	p := piece{offset: base + int64(start), length: int64(end - start)}
	if p.seq, p.reason = unseal(line[start:end]); p.reason == "" {
		p.line = line[start:end]
	}
	return p
}

// tail is where the good lines of a segment end.
type tail struct {
	end  int64 // offset after the last good line; 0 for none
	seq  int64 // of that line
	bare bool  // a damaged byte stands where its newline should be
}

func tailAt(p piece) tail {
	return tail{end: p.end(), seq: p.seq, bare: p.length == int64(len(p.line))}
}

// findTail returns the end of the good lines among the first size bytes of src.
// It reads backwards, and the whole only where no good line is near the end.
func findTail(src io.ReaderAt, size int64) (tail, error) {
	for _, window := range []int64{8 << 10, 256 << 10, 2 * MaxLine} {
		from := max(0, size-window)
		buf := make([]byte, size-from)
		if _, err := src.ReadAt(buf, from); err != nil && !errors.Is(err, io.EOF) {
			return tail{}, err
		}
		if t, found := lastLine(buf, from); found {
			return t, nil
		}
		if from == 0 {
			return tail{}, nil
		}
	}
	return scanTail(src, size)
}

// lastLine finds the last good line in buf, which stands at base. A line that
// begins before buf is not seen unless base is 0.
func lastLine(buf []byte, base int64) (tail, bool) {
	for end := bytes.LastIndexByte(buf, '\n'); end >= 0; {
		start := bytes.LastIndexByte(buf[:end], '\n') + 1
		if start == 0 && base > 0 {
			return tail{}, false
		}
		pieces := cut(piece{offset: base + int64(start), length: int64(end + 1 - start), line: buf[start:end]})
		for _, p := range slices.Backward(pieces) {
			if p.reason == "" {
				return tailAt(p), true
			}
		}
		end = start - 1
	}
	return tail{}, false
}

func scanTail(src io.ReaderAt, size int64) (tail, error) {
	var t tail
	for s := newScanner(src, 0, size); ; {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return tail{}, err
		}
		if p.reason == "" {
			t = tailAt(p)
		}
	}
}
