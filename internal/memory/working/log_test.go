package working

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// memLog is an event log in memory that keeps events as the real one does: as
// JSON.
type memLog struct {
	mu    sync.Mutex
	lines [][]byte
	fail  error // what Write answers, if set
}

func (l *memLog) Write(_ context.Context, events ...memory.Event) ([]memory.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return nil, l.fail
	}
	for i := range events {
		events[i].Seq = int64(len(l.lines) + 1)
		if events[i].ID == "" {
			events[i].ID = fmt.Sprintf("evt_%026d", events[i].Seq)
		}
		line, err := json.Marshal(events[i])
		if err != nil {
			return nil, err
		}
		l.lines = append(l.lines, line)
	}
	return events, nil
}

func (l *memLog) Read(_ context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var events []memory.Event
	for _, line := range l.lines[min(int(after.Seq), len(l.lines)):] {
		if len(events) == limit {
			break
		}
		var e memory.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, after, err
		}
		events = append(events, e)
		after = memory.Cursor{Seq: e.Seq, File: "log", Offset: e.Seq * 100}
	}
	return events, after, nil
}

// say appends a turn of the user.
func (l *memLog) say(text string) memory.Event {
	events, err := l.Write(context.Background(), memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: text, Timestamp: epoch})
	if err != nil {
		panic(err)
	}
	return events[0]
}

var epoch = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

// mask is a redactor that knows one kind of secret.
type mask struct{}

var secret = regexp.MustCompile(`hunter[0-9]+`)

func (mask) Text(s string) string { return secret.ReplaceAllString(s, "[REDACTED:password#0000]") }

func (m mask) Value(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal([]byte(m.Text(string(raw))), &out); err != nil {
		panic(err)
	}
	return out
}
