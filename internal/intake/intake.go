// Package intake writes down conversations that take place elsewhere: what other
// programs tell over HTTP, and what passes through the proxy. Telling the same
// twice adds nothing.
package intake

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/session"
)

// Limits of one call.
const (
	MaxEvents = 1000
	maxID     = 200 // bytes of a teller's id
	maxRun    = 256 // bytes of a run's id
	maxName   = 200 // bytes that are kept of a speaker's or a tool's name
	maxText   = 1 << 20
	maxMore   = 16 << 10 // of metadata, as JSON
)

// justNow is how long ago an event may be so that its conversation counts as one that
// is still going on: when it falls silent, it is distilled. Older ones are history.
const justNow = time.Hour

// Event is one event as another program tells it.
type Event struct {
	ID        string           `json:"id,omitempty" jsonschema:"the teller's own id, unique in the session: an event whose id is there already is skipped; without one it is always new"`
	Type      memory.EventType `json:"type" jsonschema:"user_message, assistant_output, tool_call, tool_result or error"`
	Text      string           `json:"text" jsonschema:"what was said, called or answered"`
	Origin    memory.Origin    `json:"origin,omitempty" jsonschema:"user, assistant, tool, web or agent; as the type says if absent"`
	Speaker   string           `json:"speaker,omitempty" jsonschema:"name of who speaks, where several do; kept as one line of at most 200 bytes"`
	Tool      string           `json:"tool,omitempty" jsonschema:"name of the tool, kept likewise"`
	RunID     string           `json:"run_id,omitempty" jsonschema:"what the teller calls the run that the event is of"`
	Timestamp *time.Time       `json:"timestamp,omitempty" jsonschema:"when it happened, RFC 3339; now if absent"`
	Metadata  map[string]any   `json:"metadata,omitempty" jsonschema:"more about it; strings and numbers"`
}

// Report is what came of a call.
type Report struct {
	Session  string `json:"session"`
	Written  int    `json:"written" jsonschema:"events that are new in the log"`
	Skipped  int    `json:"skipped" jsonschema:"events that were there already"`
	LastSeq  int64  `json:"last_seq" jsonschema:"of the last event written; 0 if none was"`
	FirstSeq int64  `json:"first_seq" jsonschema:"of the first event written; 0 if none was"`
}

// Service writes down events. All members are required.
type Service struct {
	Logs     memory.Borrow[*events.Log]
	Sessions memory.Borrow[*session.Store]
	// Present returns which of these events an agent's log holds.
	Present func(ctx context.Context, agent memory.AgentID, ids []string) (map[string]bool, error)
	// Lock returns the path of a file, in a directory that exists, that keeps two
	// tellers from writing the same event at once.
	Lock func(memory.AgentID) (string, error)
}

// Take writes events of one session to an agent's log, in their order, and
// returns when they are on disk. All of them are checked first: an event that
// breaks a rule is a FieldError (events[3].text …), and then none is written.
func (s *Service) Take(ctx context.Context, agent memory.AgentID, of memory.Session, told []Event) (Report, error) {
	report := Report{Session: of.ID}
	if len(told) == 0 || len(told) > MaxEvents {
		return report, &memory.FieldError{Field: "events", Reason: fmt.Sprintf("must be 1 to %d events", MaxEvents)}
	}
	list := make([]memory.Event, len(told))
	var ids []string
	for i, e := range told {
		var err error
		if list[i], err = e.event(of.ID); err != nil {
			return report, at(i, err)
		}
		if list[i].ID != "" {
			ids = append(ids, list[i].ID)
		}
	}
	sessions, release, err := s.Sessions(ctx, agent)
	if err != nil {
		return report, err
	}
	defer release()
	if _, err := sessions.Ensure(ctx, of); err != nil {
		return report, err
	}
	log, releaseLog, err := s.Logs(ctx, agent)
	if err != nil {
		return report, err
	}
	defer releaseLog()
	unlock, err := s.lock(ctx, agent)
	if err != nil {
		return report, err
	}
	present, err := s.Present(ctx, agent, ids)
	if err != nil {
		return report, errors.Join(fmt.Errorf("look for what is there already: %w", err), unlock())
	}
	present = maps.Clone(present)
	if present == nil {
		present = map[string]bool{}
	}
	var fresh []memory.Event
	for _, e := range list {
		if e.ID != "" && present[e.ID] {
			report.Skipped++
			continue
		}
		if e.ID != "" {
			present[e.ID] = true
		}
		report.Written++
		fresh = append(fresh, e)
	}
	var written []memory.Event
	if len(fresh) > 0 {
		written, err = log.Write(ctx, fresh...)
	}
	if err = errors.Join(err, unlock()); err != nil {
		report.Written = 0
		return report, err
	}
	if len(written) > 0 {
		report.FirstSeq, report.LastSeq = written[0].Seq, written[len(written)-1].Seq
	}
	return report, nil
}

// at says which event an error is about.
func at(i int, err error) error {
	var field *memory.FieldError
	if errors.As(err, &field) {
		return &memory.FieldError{Field: fmt.Sprintf("events[%d].%s", i, field.Field), Reason: field.Reason, Hint: field.Hint}
	}
	return fmt.Errorf("events[%d]: %w", i, err)
}

func (s *Service) lock(ctx context.Context, agent memory.AgentID) (unlock func() error, err error) {
	path, err := s.Lock(agent)
	if err != nil {
		return nil, err
	}
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, time.Millisecond); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "wait for another teller: %w", err)
	}
	return lock.Unlock, nil
}

// originOf is who stands behind an event whose teller does not say.
var originOf = map[memory.EventType]memory.Origin{
	memory.UserMessage: memory.OriginUser, memory.AssistantOutput: memory.OriginAssistant, memory.ToolCall: memory.OriginAssistant,
	memory.ToolResult: memory.OriginTool, memory.ErrorEvent: memory.OriginTool,
}

// allowed are the origins that an event of a type may have: what a tool brought
// must not pass for what a person said.
var allowed = map[memory.EventType][]memory.Origin{
	memory.UserMessage:     {memory.OriginUser, memory.OriginAgent},
	memory.AssistantOutput: {memory.OriginAssistant},
	memory.ToolCall:        {memory.OriginAssistant, memory.OriginUser},
	memory.ToolResult:      {memory.OriginTool, memory.OriginWeb},
	memory.ErrorEvent:      {memory.OriginTool, memory.OriginSystem},
}

// event returns e in the log's form.
func (e Event) event(session string) (memory.Event, error) {
	out := memory.Event{Type: e.Type, Text: e.Text, Origin: e.Origin, SessionID: session, RunID: e.RunID, Metadata: map[string]any{}}
	may, known := allowed[e.Type]
	if !known {
		return out, &memory.FieldError{Field: "type", Reason: "must be user_message, assistant_output, tool_call, tool_result or error"}
	}
	if out.Origin == "" {
		out.Origin = originOf[e.Type]
	}
	legal := false
	for _, o := range may {
		legal = legal || o == out.Origin
	}
	switch {
	case !legal:
		return out, &memory.FieldError{Field: "origin", Reason: fmt.Sprintf("of a %s must be one of %v", e.Type, may)}
	case strings.TrimSpace(e.Text) == "":
		return out, &memory.FieldError{Field: "text", Reason: "must say something"}
	case len(e.Text) > maxText:
		return out, &memory.FieldError{Field: "text", Reason: "must be at most 1 MiB"}
	}
	for _, id := range []struct {
		field, value string
		most         int
	}{{"id", e.ID, maxID}, {"run_id", e.RunID, maxRun}} {
		if len(id.value) > id.most || !utf8.ValidString(id.value) || strings.ContainsFunc(id.value, unicode.IsControl) {
			return out, &memory.FieldError{Field: id.field, Reason: fmt.Sprintf("must be at most %d bytes, without control characters", id.most)}
		}
	}
	if more, err := json.Marshal(e.Metadata); err != nil || len(more) > maxMore {
		return out, &memory.FieldError{Field: "metadata", Reason: "must be at most 16 KiB as JSON"}
	}
	maps.Copy(out.Metadata, e.Metadata)
	for _, reserved := range []string{memory.MetaChange, memory.MetaErased, memory.MetaPart, memory.MetaTold} {
		if _, claims := out.Metadata[reserved]; claims {
			return out, &memory.FieldError{Field: "metadata." + reserved, Reason: "is the log's own"}
		}
	}
	for name, value := range map[string]string{memory.MetaSpeaker: e.Speaker, memory.MetaTool: e.Tool, memory.MetaSourceID: e.ID} {
		if value != "" {
			out.Metadata[name] = value
		}
	}
	for _, name := range []string{memory.MetaSpeaker, memory.MetaTool} {
		if value := out.Meta(name); value != "" {
			out.Metadata[name] = oneLine(value)
		}
	}
	if e.Timestamp != nil {
		out.Timestamp = *e.Timestamp
	}
	if e.Timestamp == nil || time.Since(*e.Timestamp) < justNow {
		out.Metadata[memory.MetaTold] = true
	}
	if e.ID != "" {
		out.ID = eventID(session, e.ID)
	}
	return out, nil
}

// oneLine returns a name as it is kept: what passes for the name of a speaker must
// neither begin a line nor fill a page.
func oneLine(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	if len(name) <= maxName {
		return name
	}
	end := maxName
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// eventID follows from the session and the teller's id. Its time is zero: a
// teller may tell another one the second time.
func eventID(session, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", session, id))
	var u ulid.ULID
	copy(u[6:], sum[:])
	return "evt_" + u.String()
}
