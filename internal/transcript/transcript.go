// Package transcript reads chat histories that other programs have written, and
// imports them into an agent's event log.
//
// Three forms are known:
//
//   - jsonl: one turn a line, {"role" or "speaker", "text", and optionally "n",
//     "time", "session", "tool", "channel", "user_id"};
//   - locomo: the LoCoMo benchmark's list of conversations between two named
//     people, in dated sessions;
//   - longmemeval: the LongMemEval benchmark's list of questions, each with the
//     sessions of a person and an assistant among which its answer is hidden.
//
// What a person or an assistant said keeps that origin, and with it its trust:
// the history is the person's own.
package transcript

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Format names a form of chat history.
type Format string

// The formats.
const (
	JSONL       Format = "jsonl"
	LoCoMo      Format = "locomo"
	LongMemEval Format = "longmemeval"
)

// Formats lists them all.
var Formats = []Format{JSONL, LoCoMo, LongMemEval}

const formsHint = "the forms are jsonl (one turn a line with role, text and time), locomo and longmemeval (the benchmarks' JSON)"

// ParseFormat checks a format's name. "" stands for any, to be found out.
func ParseFormat(s string) (Format, error) {
	if s == "" || slices.Contains(Formats, Format(s)) {
		return Format(s), nil
	}
	return "", &memory.FieldError{Field: "format", Reason: fmt.Sprintf("must be jsonl, locomo or longmemeval, not %q", s), Hint: formsHint}
}

// Turn is one turn of a history.
type Turn struct {
	// Event is complete but for its id and seq. Its metadata has the history's
	// own id of the turn as memory.MetaSourceID. Its time is zero where the
	// history gives none.
	Event   memory.Event
	Line    int    // as in Bad
	Channel string // where it was said; "" if the history does not tell
	UserID  string // who the user is; "" if the history does not tell
}

// Bad is a part of a history that could not be read.
type Bad struct {
	Line   int    `json:"line" jsonschema:"number, from 1, of the line of a jsonl file, or of the turn in the others"`
	Reason string `json:"reason"`
}

// Read hands the turns of a history to yield, in order, and what cannot be read
// of it to bad, and goes on. It reads as it goes and keeps one conversation in
// memory. format may be "". An empty history, one of no known form, and one
// whose JSON breaks off are ErrInvalid; an error of yield ends the reading.
func Read(r io.Reader, format Format, yield func(Turn) error, bad func(Bad)) error {
	in := bufio.NewReaderSize(r, peekBytes)
	if mark, err := in.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		if _, err := in.Discard(len(byteOrderMark)); err != nil {
			return err
		}
	}
	beginning, err := in.Peek(peekBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the history: %w", err)
	}
	found, err := detect(beginning)
	if err != nil {
		return err
	}
	if format == "" {
		format = found
	}
	h := history{yield: yield, bad: bad}
	switch format {
	case JSONL:
		return h.jsonl(in)
	case LoCoMo:
		return entries(in, h.locomo)
	case LongMemEval:
		return entries(in, h.longMemEval)
	}
	return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the file is not a chat history of a known form"), formsHint)
}

const (
	peekBytes     = 64 << 10
	byteOrderMark = "\xef\xbb\xbf"
)

// members tell the forms apart: no file of another form has them.
var members = []struct {
	name   string
	format Format
}{
	{`"haystack_sessions"`, LongMemEval}, {`"haystack_session_ids"`, LongMemEval}, {`"haystack_dates"`, LongMemEval},
	{`"dia_id"`, LoCoMo}, {`"qa"`, LoCoMo}, {`"conversation"`, LoCoMo},
}

// detect finds the format out from the beginning of a file; "" if it is none
// that is known. A file of nothing is an error.
func detect(beginning []byte) (Format, error) {
	text := bytes.TrimSpace(beginning)
	if len(text) == 0 {
		return "", memory.WithHint(memory.Errorf(memory.ErrInvalid, "the file is empty"), formsHint)
	}
	list := text[0] == '['
	lines := bytes.Split(text, []byte("\n"))
	if !list && isTurn(lines[0]) {
		return JSONL, nil
	}
	for _, m := range members {
		if (list || text[0] == '{') && bytes.Contains(text, []byte(m.name)) {
			return m.format, nil
		}
	}
	if !list && slices.ContainsFunc(lines, isTurn) || text[0] == '{' && len(lines) == 1 && bytes.Contains(text, []byte(`"role"`)) {
		return JSONL, nil
	}
	return "", nil
}

// isTurn reports whether a line is a turn of the jsonl form.
func isTurn(raw []byte) bool {
	var line jsonlLine
	return json.Unmarshal(raw, &line) == nil && line.who() != ""
}

// history is one reading of a file.
type history struct {
	yield func(Turn) error
	bad   func(Bad)
	turns int // met, good or bad
}

// refuse reports the turn met last as bad.
func (h *history) refuse(format string, args ...any) {
	h.bad(Bad{Line: h.turns, Reason: fmt.Sprintf(format, args...)})
}

// entries hands the elements of a JSON list to read, one after the other. A
// single object counts as a list of one.
func entries[E any](in *bufio.Reader, read func(n int, entry E) error) error {
	dec := json.NewDecoder(in)
	broken := func(err error) error {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return memory.Errorf(memory.ErrInvalid, "the file is not whole JSON, at byte %d: %w", dec.InputOffset(), err)
	}
	one := func(n int) error {
		var entry E
		if err := dec.Decode(&entry); err != nil {
			return broken(err)
		}
		return read(n, entry)
	}
	if c, err := firstByte(in); err != nil || c == '{' {
		return one(1)
	}
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the file is not a list of conversations"), formsHint)
	}
	for n := 1; dec.More(); n++ {
		if err := one(n); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return broken(err)
	}
	return nil
}

// firstByte returns the first byte that is not white space, and leaves it.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		c, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if strings.IndexByte(" \t\r\n", c) < 0 {
			return c, in.UnreadByte()
		}
	}
}

var notInSessionID = regexp.MustCompile(`[^A-Za-z0-9._:-]+`)

// sessionID makes a session's id of names from a history. Names that had to be
// changed for it are kept apart by a hash.
func sessionID(names ...string) string {
	whole := strings.Join(names, ":")
	id := strings.TrimLeft(notInSessionID.ReplaceAllString(whole, "-"), "._:-")
	if id == whole && len(id) <= maxSessionID {
		return id
	}
	sum := sha256.Sum256([]byte(whole))
	return fmt.Sprintf("%s%x", strings.TrimLeft(id[:min(len(id), maxSessionID-9)]+"-", "-"), sum[:4])
}

const maxSessionID = 128
