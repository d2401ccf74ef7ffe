package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// decode reads an event back from a line of the journal. Members that it does
// not know are ignored, and types it does not know are kept: a later version
// may have written them.
func decode(line []byte) (memory.Event, error) {
	if e, ok := decodeOwn(line); ok {
		return e, nil
	}
	var e memory.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return memory.Event{}, fmt.Errorf("the line is not an event: %w", err)
	}
	if e.ID == "" || e.Type == "" {
		return memory.Event{}, errors.New("the line is not an event: it has no id or no type")
	}
	return e, nil
}

// decodeOwn reads a line of exactly the form that appendEvent writes, several
// times faster than encoding/json; false for any other.
func decodeOwn(line []byte) (memory.Event, bool) {
	if !utf8.Valid(line) {
		return memory.Event{}, false
	}
	l := layout{rest: line, ok: true}
	e := memory.Event{
		ID:        l.member(`{"id":`),
		Type:      memory.EventType(l.member(`,"type":`)),
		Text:      l.member(`,"text":`),
		SessionID: l.member(`,"session_id":`),
		RunID:     l.member(`,"run_id":`),
	}
	e.Timestamp = l.time(l.member(`,"timestamp":`))
	e.Origin = memory.Origin(l.member(`,"origin":`))
	e.Metadata = l.metadata()
	e.Seq = l.seq()
	return e, l.ok && e.ID != "" && e.Type != ""
}

// layout reads a line from left to right, until it is not as expected.
type layout struct {
	rest []byte
	ok   bool
}

// skip passes over text.
func (l *layout) skip(text string) {
	if l.ok = l.ok && len(l.rest) >= len(text) && string(l.rest[:len(text)]) == text; l.ok {
		l.rest = l.rest[len(text):]
	}
}

// member reads a name with its colon, and the string behind it.
func (l *layout) member(name string) string {
	if l.skip(name); !l.ok || len(l.rest) == 0 || l.rest[0] != '"' {
		l.ok = false
		return ""
	}
	escaped := false
	for i := 1; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case c == '\\':
			escaped = true
			i++
		case c == '"':
			quoted := l.rest[:i+1]
			l.rest = l.rest[i+1:]
			if !escaped {
				return string(quoted[1:i])
			}
			var s string
			l.ok = json.Unmarshal(quoted, &s) == nil
			return s
		case c < ' ':
			l.ok = false
			return ""
		}
	}
	l.ok = false
	return ""
}

func (l *layout) time(s string) time.Time {
	var t time.Time
	err := t.UnmarshalText([]byte(s))
	l.ok = l.ok && err == nil
	return t
}

const seqMember = `,"seq":`

// metadata reads the member of that name, if it is there. It ends where the
// line's last seq begins.
func (l *layout) metadata() map[string]any {
	const name = `,"metadata":`
	if !l.ok || !bytes.HasPrefix(l.rest, []byte(name)) {
		return nil
	}
	end := bytes.LastIndex(l.rest, []byte(seqMember))
	if end < 0 {
		l.ok = false
		return nil
	}
	var object map[string]any
	l.ok = json.Unmarshal(l.rest[len(name):end], &object) == nil
	l.rest = l.rest[end:]
	return object
}

// seq reads the last two members, and the end of the line.
func (l *layout) seq() int64 {
	l.skip(seqMember)
	digits := 0
	for digits < len(l.rest) && '0' <= l.rest[digits] && l.rest[digits] <= '9' {
		digits++
	}
	seq, err := strconv.ParseInt(string(l.rest[:digits]), 10, 64)
	l.rest = l.rest[digits:]
	crc := l.member(`,"crc":`)
	l.skip("}")
	l.ok = l.ok && err == nil && len(crc) == 8 && len(l.rest) == 0
	return seq
}
