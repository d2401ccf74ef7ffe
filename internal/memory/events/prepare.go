package events

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	idPrefix  = "evt_"
	maxNameID = 256 // bytes of a session or run id
)

// prepare returns e as it will stand in the log, but for its seq: checked, with
// id and time, valid UTF-8, redacted, and in parts where its text is too long
// for one event.
func (l *Log) prepare(e memory.Event) ([]memory.Event, error) {
	if e.ID == "" {
		e.ID = idPrefix + l.newID()
	}
	if err := check(e); err != nil {
		return nil, err
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = l.now()
	}
	e.Timestamp = storable(e.Timestamp)
	e.Seq = 0
	e.Text = strings.ToValidUTF8(e.Text, "\uFFFD")
	if e.SessionID != "" && (e.Type == memory.UserMessage || e.Type == memory.AssistantOutput) {
		e.Text = l.redact.Answer(l.questions.take(e.SessionID), e.Text)
		l.questions.put(e.SessionID, l.redact.Asks(e.Text))
	} else {
		e.Text = l.redact.Text(e.Text)
	}
	if len(e.Metadata) > 0 {
		clean, ok := l.redact.Value(e.Metadata).(map[string]any)
		if !ok {
			return nil, memory.Errorf(memory.ErrInternal, "redaction of metadata did not give an object")
		}
		e.Metadata = clean
	}
	return Split(e), nil
}

// check reports the first rule that e breaks. Texts of any length pass.
func check(e memory.Event) error {
	short := e
	short.Text = ""
	if err := short.Validate(); err != nil {
		return err
	}
	if _, err := ulid.ParseStrict(strings.TrimPrefix(e.ID, idPrefix)); err != nil || !strings.HasPrefix(e.ID, idPrefix) {
		return &memory.FieldError{Field: "id", Reason: "must be evt_ and a ULID", Hint: "leave it out and the log chooses one"}
	}
	if err := checkName("session_id", e.SessionID); err != nil {
		return err
	}
	if err := checkName("run_id", e.RunID); err != nil {
		return err
	}
	if y := e.Timestamp.Year(); !e.Timestamp.IsZero() && (y < 1 || y > 9999) {
		return &memory.FieldError{Field: "timestamp", Reason: "must be in the years 1 to 9999"}
	}
	return nil
}

func checkName(field, name string) error {
	switch {
	case len(name) > maxNameID:
		return &memory.FieldError{Field: field, Reason: fmt.Sprintf("must be at most %d bytes", maxNameID)}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return &memory.FieldError{Field: field, Reason: "must be text without control characters"}
	}
	return nil
}

// storable returns t as RFC 3339 can write it: without a monotonic reading, and
// in a zone of whole minutes less than a day from UTC.
func storable(t time.Time) time.Time {
	t = t.Round(0)
	_, offset := t.Zone()
	switch {
	case offset <= -24*60*60 || offset >= 24*60*60:
		t = t.UTC()
	case offset%60 != 0:
		t = t.In(time.FixedZone("", offset/60*60))
	}
	if y := t.Year(); y < 1 || y > 9999 {
		return t.UTC()
	}
	return t
}

// Split cuts an event whose text is longer than MaxEventText into parts that
// together are its text. The first keeps its id, the others have ids that follow
// from it; each says in MetaPart which one it is. Log splits what it is given;
// who needs to know the ids beforehand calls Split himself, with a valid id.
func Split(e memory.Event) []memory.Event {
	if len(e.Text) <= memory.MaxEventText {
		return []memory.Event{e}
	}
	var texts []string
	for rest := e.Text; rest != ""; {
		n := cutAt(rest, memory.MaxEventText)
		texts = append(texts, rest[:n])
		rest = rest[n:]
	}
	parts := make([]memory.Event, len(texts))
	for i, text := range texts {
		part := e
		part.Text = text
		if i > 0 {
			part.ID = partID(e.ID, i+1)
		}
		part.Metadata = maps.Clone(e.Metadata)
		if part.Metadata == nil {
			part.Metadata = map[string]any{}
		}
		part.Metadata[memory.MetaPart] = fmt.Sprintf("%d/%d", i+1, len(texts))
		parts[i] = part
	}
	return parts
}

// cutAt returns how much of s fits into limit bytes: up to the last white space
// of the last 256 bytes, so that no word is cut, or up to the last whole rune.
func cutAt(s string, limit int) int {
	if len(s) <= limit {
		return len(s)
	}
	if space := strings.LastIndexAny(s[limit-256:limit], " \n\t"); space >= 0 {
		return limit - 256 + space + 1
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return limit
}

// partID derives the id of the n-th part from that of the first. It keeps the
// time in the id.
func partID(id string, n int) string {
	first := ulid.MustParse(strings.TrimPrefix(id, idPrefix))
	sum := sha256.Sum256(fmt.Appendf(nil, "%s part %d", id, n))
	copy(first[6:], sum[:])
	return idPrefix + first.String()
}
