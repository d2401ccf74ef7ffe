package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// maxLine bounds one line of a JSONL file, and so what is held in memory.
const maxLine = 64 << 20

// ReadRecords reads records from a JSON file (an array, or a single record) or,
// with lines, from JSONL (one a line; blank lines are skipped), one at a time.
// After an error it ends.
func ReadRecords(r io.Reader, lines bool) iter.Seq2[json.RawMessage, error] {
	if lines {
		return func(yield func(json.RawMessage, error) bool) { readLines(r, yield) }
	}
	return func(yield func(json.RawMessage, error) bool) { readArray(r, yield) }
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
		if !json.Valid(line) {
			yield(nil, memory.Errorf(memory.ErrInvalid, "line %d is not JSON", n))
			return
		}
		if !yield(bytes.Clone(line), nil) {
			return
		}
	}
	if err := scanner.Err(); err != nil {
		yield(nil, memory.Errorf(memory.ErrInvalid, "read line %d: %w", n, err))
	}
}

func readArray(r io.Reader, yield func(json.RawMessage, error) bool) {
	in := bufio.NewReader(r)
	dec := json.NewDecoder(in)
	first, err := firstByte(in)
	if err != nil {
		yield(nil, err)
		return
	}
	if first != '[' {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			yield(nil, memory.Errorf(memory.ErrInvalid, "the file is not JSON: %w", err))
			return
		}
		if yield(raw, nil) {
			atEnd(dec, yield)
		}
		return
	}
	if _, err := dec.Token(); err != nil {
		yield(nil, memory.Errorf(memory.ErrInvalid, "the file is not JSON: %w", err))
		return
	}
	for n := 0; dec.More(); n++ {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			yield(nil, memory.Errorf(memory.ErrInvalid, "record [%d] is not JSON: %w", n, err))
			return
		}
		if !yield(raw, nil) {
			return
		}
	}
	if _, err := dec.Token(); err != nil {
		yield(nil, memory.Errorf(memory.ErrInvalid, "the file is not JSON: %w", err))
		return
	}
	atEnd(dec, yield)
}

// firstByte returns the first byte that is no blank, and leaves it unread.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, memory.Errorf(memory.ErrInvalid, "the file is empty")
		}
		if err != nil {
			return 0, memory.Errorf(memory.ErrUnavailable, "read records: %w", err)
		}
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			return c, in.UnreadByte()
		}
	}
}

// atEnd yields an error if anything follows.
func atEnd(dec *json.Decoder, yield func(json.RawMessage, error) bool) {
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		yield(nil, memory.Errorf(memory.ErrInvalid, "the file goes on after its JSON value"))
	}
}
