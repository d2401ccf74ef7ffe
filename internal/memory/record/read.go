package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// maxLine bounds one record of a file, and so what is held in memory.
const maxLine = 64 << 20

// ReadRecords reads records from a JSON file (an array, or a single record) or,
// with lines, from JSONL (one a line; blank lines are skipped), one at a time.
// Its errors name the line. After an error it ends.
func ReadRecords(r io.Reader, lines bool) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		if lines {
			readLines(r, yield)
		} else {
			newJSONFile(r).each(yield)
		}
	}
}

func readLines(r io.Reader, yield func(json.RawMessage, error) bool) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	n := 1
	for ; scanner.Scan(); n++ {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		var raw json.RawMessage
		if err := json.Unmarshal(line, &raw); err != nil {
			err = memory.Errorf(memory.ErrInvalid, "line %d is not JSON: %w", n, err)
			if n == 1 && line[0] == '[' {
				err = memory.WithHint(err, "if the file is one JSON array, leave out --jsonl")
			}
			yield(nil, err)
			return
		}
		if !yield(raw, nil) {
			return
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		yield(nil, memory.Errorf(memory.ErrInvalid, "line %d is longer than %d MiB", n, maxLine>>20))
	case err != nil:
		yield(nil, memory.Errorf(memory.ErrUnavailable, "read line %d: %w", n, err))
	}
}

// jsonFile reads a JSON array, or a single value, one element at a time.
type jsonFile struct {
	text    *lineReader
	in      *bufio.Reader
	skipped int64 // blanks before the first byte that the decoder sees
}

func newJSONFile(r io.Reader) *jsonFile {
	text := &lineReader{in: r}
	return &jsonFile{text: text, in: bufio.NewReader(text)}
}

// isArray tells an array from a single value, and leaves both unread.
func (f *jsonFile) isArray() (bool, error) {
	for {
		c, err := f.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, memory.Errorf(memory.ErrInvalid, "the file is empty")
		}
		if err != nil {
			return false, memory.Errorf(memory.ErrUnavailable, "read records: %w", err)
		}
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			return c == '[', f.in.UnreadByte()
		}
		f.skipped++
	}
}

func (f *jsonFile) each(yield func(json.RawMessage, error) bool) {
	isArray, err := f.isArray()
	if err != nil {
		yield(nil, err)
		return
	}
	dec := json.NewDecoder(f.in)
	if isArray {
		if _, err := dec.Token(); err != nil {
			yield(nil, f.failure(dec, err))
			return
		}
	}
	for !isArray || dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			yield(nil, f.failure(dec, err))
			return
		}
		f.text.line(f.skipped + dec.InputOffset()) // lets go of the lines that are done
		if !yield(raw, nil) {
			return
		}
		if !isArray {
			break
		}
	}
	if isArray {
		if _, err := dec.Token(); err != nil {
			yield(nil, f.failure(dec, err))
			return
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		at := f.skipped + dec.InputOffset()
		if err == nil {
			at-- // from behind the token into it
		}
		err := memory.Errorf(memory.ErrInvalid, "line %d: the file goes on after its JSON value", f.text.line(at))
		yield(nil, memory.WithHint(err, "for a file of one record a line, give --jsonl"))
	}
}

// failure says in which line of the file dec met err.
func (f *jsonFile) failure(dec *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	at := f.skipped + dec.InputOffset()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return memory.Errorf(memory.ErrInvalid, "line %d: the file ends within its JSON", f.text.line(f.text.read-1))
	case !errors.As(err, &syntax):
		return err // of reading: see lineReader
	}
	// The decoder counts only what it scanned; the rest of its text says where in
	// the value the error is.
	rest, readErr := io.ReadAll(dec.Buffered())
	var raw json.RawMessage
	if again := (*json.SyntaxError)(nil); readErr == nil && errors.As(json.Unmarshal(rest, &raw), &again) {
		at += again.Offset - 1
	}
	return memory.Errorf(memory.ErrInvalid, "line %d is not JSON: %w", f.text.line(at), err)
}

// lineReader counts the lines of what is read through it, and bounds how much is
// read ahead of what is done.
type lineReader struct {
	in     io.Reader
	read   int64   // bytes
	done   int64   // of them
	breaks []int64 // places of the line breaks behind done
	before int     // line breaks before done
}

func (l *lineReader) Read(p []byte) (int, error) {
	if l.read-l.done > maxLine {
		return 0, memory.Errorf(memory.ErrInvalid, "a record from line %d on is larger than %d MiB", l.before+1, maxLine>>20)
	}
	n, err := l.in.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.breaks = append(l.breaks, l.read+int64(i))
		}
	}
	l.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = memory.Errorf(memory.ErrUnavailable, "read records: %w", err)
	}
	return n, err
}

// line returns the number of the line that a byte is in, from 1. What stands
// before it is done.
func (l *lineReader) line(at int64) int {
	n, _ := slices.BinarySearch(l.breaks, at)
	l.breaks = slices.Delete(l.breaks, 0, n)
	l.before += n
	l.done = at
	return l.before + 1
}

// position is the path of the nth record of a list.
func position(n int) string { return fmt.Sprintf("[%d]", n) }
