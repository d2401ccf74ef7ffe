package events

import (
	"bytes"
	"context"
	"time"

	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Head is what is known of an event without reading the whole of its line. Its
// byte slices are the line's own: they are valid within the call that it is handed
// to, and are not changed.
type Head struct {
	Seq     int64
	Type    memory.EventType
	ID      []byte
	Session []byte
	Run     []byte
	Line    []byte // the whole, as it stands in the log

	timestamp []byte
}

// Time returns when the event happened; the zero time where that cannot be read.
func (h *Head) Time() time.Time {
	var t time.Time
	if err := t.UnmarshalText(h.timestamp); err != nil {
		return time.Time{}
	}
	return t
}

// Event reads the whole event.
func (h *Head) Event() (memory.Event, error) { return decode(h.Line) }

// Scan hands over every event of the log, in the order of seq, until visit fails.
// It reads no more of an event than its head, which is several times faster than
// Read. Damage is passed over, logged, and kept for Damage.
func (r *Reader) Scan(ctx context.Context, visit func(*Head) error) error {
	var h Head
	_, damage, err := r.journal.Read(ctx, memory.Cursor{}, func(line journal.Line) (bool, error) {
		if err := h.read(line); err != nil {
			r.note(Damage{File: line.File, Offset: line.Offset, Length: int64(len(line.Data)) + 1, Reason: err.Error()})
			return true, nil
		}
		return true, visit(&h)
	})
	r.note(damage...)
	return err
}

// read takes a line's head, in place where this package wrote the line and nothing
// in the head is escaped, else by decoding the whole.
func (h *Head) read(line journal.Line) error {
	*h = Head{Seq: line.Seq, Line: line.Data}
	l := layout{rest: line.Data, ok: true}
	h.ID = l.plain(`{"id":`)
	typ := l.plain(`,"type":`)
	l.pass(`,"text":`)
	h.Session = l.plain(`,"session_id":`)
	h.Run = l.plain(`,"run_id":`)
	h.timestamp = l.plain(`,"timestamp":`)
	if l.ok && len(h.ID) > 0 && len(typ) > 0 {
		h.Type = typeNamed(typ)
		return nil
	}
	e, err := decode(line.Data)
	if err != nil {
		return err
	}
	h.Type, h.ID, h.Session, h.Run = e.Type, []byte(e.ID), []byte(e.SessionID), []byte(e.RunID)
	h.timestamp, err = e.Timestamp.MarshalText()
	return err
}

// typeNamed makes a type of its name; the known ones without a copy.
func typeNamed(name []byte) memory.EventType {
	if t, known := typeNames[string(name)]; known {
		return t
	}
	return memory.EventType(name)
}

var typeNames = func() map[string]memory.EventType {
	names := map[string]memory.EventType{}
	for _, t := range []memory.EventType{memory.UserMessage, memory.AssistantOutput, memory.ToolCall, memory.ToolResult, memory.ErrorEvent,
		memory.SchedulerRun, memory.DecisionLog, memory.CheckpointEvent, memory.Maintenance, memory.MemoryChange} {
		names[string(t)] = t
	}
	return names
}()

// pass passes over a name with its colon and the string behind it, and returns what
// stands between the quotes, as it is written.
func (l *layout) pass(name string) []byte {
	if l.skip(name); !l.ok || len(l.rest) == 0 || l.rest[0] != '"' {
		l.ok = false
		return nil
	}
	for i := 1; ; i++ {
		quote := bytes.IndexByte(l.rest[i:], '"')
		if quote < 0 {
			l.ok = false
			return nil
		}
		i += quote
		escapes := 0
		for l.rest[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			within := l.rest[1:i]
			l.rest = l.rest[i+1:]
			return within
		}
	}
}

// plain is pass for a string in which nothing is escaped.
func (l *layout) plain(name string) []byte {
	within := l.pass(name)
	l.ok = l.ok && bytes.IndexByte(within, '\\') < 0
	return within
}
