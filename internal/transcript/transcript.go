// Package transcript reads chat histories that other programs have written, and
// imports them into an agent's event log.
//
// The forms that are known:
//
//   - jsonl: one turn a line, {"role" or "speaker", "text", and optionally "n",
//     "time", "session", "tool", "channel", "user_id"};
//   - locomo: the LoCoMo benchmark's list of conversations between two named
//     people, in dated sessions;
//   - longmemeval: the LongMemEval benchmark's list of questions, each with the
//     sessions of a person and an assistant among which its answer is hidden;
//   - openclaw, claude-code, codex: what these agents write down of a session,
//     one JSON object a line;
//   - chatgpt, claude: conversations.json of the archives that the two services
//     give their users.
//
// Of an agent's session comes in what was said, what tools were called with and
// what they answered. Thinking does not, nor do system prompts, summaries and
// what a program put into the user's turn: none of it is anybody's word. What an
// agent said to another one is marked as an agent's.
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
	OpenClaw    Format = "openclaw"
	ClaudeCode  Format = "claude-code"
	Codex       Format = "codex"
	ChatGPT     Format = "chatgpt"
	Claude      Format = "claude"
)

// Formats lists them all.
var Formats = []Format{JSONL, LoCoMo, LongMemEval, OpenClaw, ClaudeCode, Codex, ChatGPT, Claude}

// FormatNames lists their names for a person.
func FormatNames() string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

const formsHint = "the forms are jsonl (one turn a line with role, text and time), sessions of openclaw, claude-code and codex, exports of chatgpt and claude, locomo and longmemeval (the benchmarks' JSON)"

// ParseFormat checks a format's name. "" stands for any, to be found out.
func ParseFormat(s string) (Format, error) {
	if s == "" || slices.Contains(Formats, Format(s)) {
		return Format(s), nil
	}
	return "", &memory.FieldError{Field: "format", Reason: fmt.Sprintf("must be %s, not %q", FormatNames(), s), Hint: formsHint}
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
	Group   bool   // it was said among several people
	// Unique says that the history's own id of the turn is so in all its sessions: a
	// turn that another file repeats, as that of a session taken up again, is known.
	Unique bool
}

// Bad is a part of a history that could not be read.
type Bad struct {
	Line   int    `json:"line" jsonschema:"number, from 1, of the line of a jsonl file, or of the turn in the others"`
	Reason string `json:"reason"`
	File   string `json:"file,omitempty" jsonschema:"the file, where there are several"`
}

// Source is what is known of a history besides its text. The zero value is a
// history of which nothing is known.
type Source struct {
	Format  Format // "" to be found out
	Session string // of turns that name none
	Channel string // where it was said, if the text does not tell
	Group   bool   // among several people
	// ByAgent says that what stands as the user's word is another agent's, or a
	// schedule's.
	ByAgent bool
}

// Read hands the turns of a history to yield, in order, and what cannot be read
// of it to bad, and goes on. It reads as it goes and keeps one conversation in
// memory. format may be "". An empty history, one of no known form, and one
// whose JSON breaks off are ErrInvalid; an error of yield ends the reading.
func Read(r io.Reader, format Format, yield func(Turn) error, bad func(Bad)) error {
	return Source{Format: format}.Read(r, yield, bad)
}

// Read is the function Read for a history of which something is known.
func (s Source) Read(r io.Reader, yield func(Turn) error, bad func(Bad)) error {
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
	if s.Format == "" {
		s.Format = found
	}
	h := history{Source: s, yield: yield, bad: bad}
	switch s.Format {
	case JSONL:
		return h.jsonl(in)
	case LoCoMo:
		return entries(in, h.locomo)
	case LongMemEval:
		return entries(in, h.longMemEval)
	case OpenClaw:
		return h.openClaw(in)
	case ClaudeCode:
		return h.claudeCode(in)
	case Codex:
		return h.codex(in)
	case ChatGPT:
		return h.conversations(in, h.chatGPT)
	case Claude:
		return h.conversations(in, h.claude)
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
	{`"chat_messages"`, Claude}, {`"mapping"`, ChatGPT},
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
	if !list {
		for _, line := range lines {
			if f := agentLine(line); f != "" {
				return f, nil
			}
		}
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
	Source
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
