package memory

import (
	"time"
)

// EventType says what an event records.
type EventType string

// The event types. The set is closed: an unknown one is refused.
const (
	UserMessage     EventType = "user_message"
	AssistantOutput EventType = "assistant_output"
	ToolCall        EventType = "tool_call"
	ToolResult      EventType = "tool_result"
	ErrorEvent      EventType = "error"
	SchedulerRun    EventType = "scheduler_run"
	DecisionLog     EventType = "decision_log"
	CheckpointEvent EventType = "checkpoint"
	Maintenance     EventType = "maintenance"
	MemoryChange    EventType = "memory_change"
	Probe           EventType = "probe" // written to see whether it is recalled, and removed at once
)

var eventTypes = map[EventType]bool{
	UserMessage: true, AssistantOutput: true, ToolCall: true, ToolResult: true, ErrorEvent: true, SchedulerRun: true,
	DecisionLog: true, CheckpointEvent: true, Maintenance: true, MemoryChange: true, Probe: true,
}

// IsTurn reports whether events of this type are part of a conversation: what
// the archive indexes and the checkpoint distils. The others are the memory's
// own book-keeping and are never distilled.
func (t EventType) IsTurn() bool {
	switch t {
	case UserMessage, AssistantOutput, ToolCall, ToolResult, ErrorEvent:
		return true
	}
	return false
}

// Origin says who produced an event.
type Origin string

// The origins.
const (
	OriginUser      Origin = "user"
	OriginAssistant Origin = "assistant"
	OriginTool      Origin = "tool"
	OriginWeb       Origin = "web"
	OriginImport    Origin = "import"
	OriginAgent     Origin = "agent" // another agent's message
	OriginSystem    Origin = "system"
)

var origins = map[Origin]bool{
	OriginUser: true, OriginAssistant: true, OriginTool: true, OriginWeb: true, OriginImport: true, OriginAgent: true, OriginSystem: true,
}

// Names of event metadata that have a meaning of their own.
const (
	MetaSpeaker  = "speaker"   // name of who spoke, where it is neither user nor assistant
	MetaSourceID = "source_id" // the importer's own id of the turn
	MetaTool     = "tool"      // name of the tool called, or whose result this is
	MetaCaption  = "caption"   // what an image sent with the turn shows
	MetaChange   = "change"    // of memory_change and checkpoint events: the Change
	MetaTold     = "told"      // true: another program told of it as it happened, and no run has made it
	MetaPart     = "part"      // n/m of an event that was too long for one line
	MetaErased   = "erased"    // of an event whose content was erased: how many passages it had
)

// MaxEventText is the most bytes of text in one event; a longer text is split
// over several events, marked by MetaPart.
const MaxEventText = 64 << 10

// Event is one thing that happened. The event log sets ID where it is empty,
// Seq and, where it is zero, Timestamp. Order is Seq; Timestamp is for display
// and for resolving relative dates.
type Event struct {
	ID        string         `json:"id"` // "evt_" and a ULID
	Seq       int64          `json:"seq"`
	Type      EventType      `json:"type"`
	Text      string         `json:"text"`
	SessionID string         `json:"session_id"`
	RunID     string         `json:"run_id"`
	Timestamp time.Time      `json:"timestamp"` // keeps the zone it was given in
	Origin    Origin         `json:"origin"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// Validate reports the first rule that e breaks.
func (e Event) Validate() error {
	switch {
	case !eventTypes[e.Type]:
		return &FieldError{Field: "type", Reason: "must be a known event type, not " + quote(string(e.Type))}
	case !origins[e.Origin]:
		return &FieldError{Field: "origin", Reason: "must be user, assistant, tool, web, import, agent or system, not " + quote(string(e.Origin))}
	case len(e.Text) > MaxEventText:
		return &FieldError{Field: "text", Reason: "must be at most 65536 bytes"}
	}
	return nil
}

// Meta returns the metadata member of that name where it is a string, else "".
func (e Event) Meta(name string) string {
	s, isString := e.Metadata[name].(string)
	if !isString {
		return ""
	}
	return s
}

// Speaker returns who spoke: the name given with the event, or the role.
func (e Event) Speaker() string {
	if s := e.Meta(MetaSpeaker); s != "" {
		return s
	}
	switch e.Type {
	case UserMessage, Probe:
		return "user"
	case AssistantOutput:
		return "assistant"
	case ToolCall, ToolResult:
		return "tool"
	}
	return string(e.Origin)
}

// Tombstone returns what is left of an event whose content is erased: its place
// in the log, its type and time, and how many passages it had in the archive, whose
// handles stay taken.
func (e Event) Tombstone(passages int) Event {
	return Event{ID: e.ID, Seq: e.Seq, Type: e.Type, Timestamp: e.Timestamp, Origin: e.Origin, Metadata: map[string]any{MetaErased: passages}}
}

// Erased reports whether e is a tombstone, and how many passages the event had.
func (e Event) Erased() (passages int, is bool) {
	switch n := e.Metadata[MetaErased].(type) {
	case int:
		return n, e.Text == ""
	case float64: // as JSON reads it
		return int(n), e.Text == "" && n >= 0 && n <= MaxEventText
	}
	return 0, false
}

// Cursor is a position in the event log: everything up to and including Seq has
// been read. File and Offset are where the next line is expected, a hint that
// the reader checks; the zero Cursor is the beginning.
type Cursor struct {
	Seq    int64  `json:"seq"`
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset,omitempty"`
}

func quote(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return `"` + s + `"`
}
