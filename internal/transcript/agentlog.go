package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Names of event metadata that tell where a turn of an agent's session was made.
const (
	MetaClient = "client" // the program, as the Format names it
	MetaCwd    = "cwd"    // the directory it worked in
	MetaBranch = "branch" // the branch that was checked out there
	MetaTitle  = "title"  // what the conversation is called
	MetaCut    = "cut"    // bytes of a tool's text that were left out
)

const (
	// maxToolText is how many bytes are taken of what a tool was called with, or
	// answered: whole files pass through an agent's tools, and the memory is of what
	// was said.
	maxToolText  = 16 << 10
	maxToolNames = 4096 // of calls that wait for their results
)

// agentLine finds out which agent wrote a line; "" if none that is known did.
func agentLine(raw []byte) Format {
	var l struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		UUID      string          `json:"uuid"`
		SessionID string          `json:"sessionId"`
		LeafUUID  string          `json:"leafUuid"`
		Payload   json.RawMessage `json:"payload"`
		Content   json.RawMessage `json:"content"`
		Message   *struct {
			Role string `json:"role"`
		} `json:"message"`
		Instructions json.RawMessage `json:"instructions"`
		Timestamp    json.RawMessage `json:"timestamp"`
	}
	if json.Unmarshal(raw, &l) != nil {
		// The line may be longer than what is looked at.
		switch {
		case bytes.HasPrefix(raw, []byte("{")) && bytes.Contains(raw, []byte(`"type":"session_meta"`)):
			return Codex
		case bytes.HasPrefix(raw, []byte("{")) && bytes.Contains(raw, []byte(`"isSidechain":`)):
			return ClaudeCode
		}
		return ""
	}
	switch {
	case l.Payload != nil && isRollout(l.Type):
		return Codex
	case l.Type == "" && l.ID != "" && l.Timestamp != nil && l.Instructions != nil, l.Type == "message" && bytes.HasPrefix(l.Content, []byte("[")):
		return Codex // as of before the lines had a payload
	case l.SessionID != "" && l.Type != "", l.Type == "summary" && l.LeafUUID != "":
		return ClaudeCode
	case l.Type == "session" && l.ID != "", l.Type == "message" && l.Message != nil && l.Message.Role != "":
		return OpenClaw
	}
	return ""
}

// block is a part of a message, as the agents write it: text, thinking, a call
// of a tool, its result, an image.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Arguments json.RawMessage `json:"arguments"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// blocks reads a message's content: a string, or a list of blocks. A block that
// cannot be read is none; ok is false for other content.
func blocks(content json.RawMessage) (list []block, ok bool) {
	content = bytes.TrimSpace(content)
	if len(content) == 0 || string(content) == "null" {
		return nil, true
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}, true
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return nil, false
	}
	for _, raw := range parts {
		var b block
		if json.Unmarshal(raw, &text) == nil {
			b = block{Type: "text", Text: text}
		} else if json.Unmarshal(raw, &b) != nil {
			continue
		}
		list = append(list, b)
	}
	return list, true
}

// plain returns the text of a content, its blocks a line each.
func plain(content json.RawMessage) string {
	list, ok := blocks(content)
	if !ok {
		return string(content) // an object: as it stands
	}
	var texts []string
	for _, b := range list {
		if b.Text != "" && isText(b.Type) {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func isText(kind string) bool {
	return kind == "text" || kind == "input_text" || kind == "output_text"
}

// written returns a value as text: a string as it is, all else as JSON.
func written(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// talk is one session of an agent while it is read.
type talk struct {
	*history
	session string
	byAgent bool // the user's side is another agent
	cwd     string
	branch  string
	title   string
	channel string
	userID  string
	unique  bool
	tools   map[string]string // names by the id of the call
}

func (h *history) talk() talk {
	return talk{history: h, session: h.Session, byAgent: h.ByAgent, channel: h.Channel, tools: map[string]string{}}
}

// called remembers the name of a tool by the id of its call.
func (t *talk) called(id, name string) {
	if id == "" {
		return
	}
	if len(t.tools) >= maxToolNames {
		clear(t.tools) // of calls that never ended
	}
	t.tools[id] = name
}

// remark is one event to be.
type remark struct {
	kind    memory.EventType
	text    string
	tool    string
	speaker string
	at      time.Time
	source  string // the history's own id of it
	line    int
	typed   bool // a tool_call that the person made
	byAgent bool
}

// say hands a turn on, unless it is of nothing but white space.
func (t *talk) say(r remark) error {
	r.text = strings.TrimSpace(r.text)
	if r.text == "" {
		return nil
	}
	role := map[memory.EventType]string{memory.UserMessage: "user", memory.AssistantOutput: "assistant", memory.ToolCall: "assistant", memory.ToolResult: "tool"}[r.kind]
	e := speak(role, "", shorten(r.tool, maxName))
	e.Type = r.kind
	switch {
	case r.kind == memory.ToolResult:
	case t.byAgent || r.byAgent:
		e.Origin = memory.OriginAgent
	case r.typed:
		e.Origin = memory.OriginUser
	}
	if r.kind == memory.ToolCall || r.kind == memory.ToolResult {
		whole := len(r.text)
		if r.text = shorten(r.text, maxToolText); len(r.text) < whole {
			e.Metadata[MetaCut] = whole - len(r.text)
		}
	}
	session := t.session
	if session == "" {
		session = noSession
	}
	e.Text, e.SessionID, e.Timestamp = r.text, sessionID(session), r.at
	e.Metadata[memory.MetaSourceID] = shorten(r.source, maxName)
	for name, value := range map[string]string{memory.MetaSpeaker: r.speaker, MetaClient: string(t.Format), MetaCwd: t.cwd, MetaBranch: t.branch, MetaTitle: t.title} {
		if value != "" {
			e.Metadata[name] = shorten(value, maxPlace)
		}
	}
	channel := t.channel
	if channel == "" {
		channel = string(t.Format)
	}
	return t.yield(Turn{Event: e, Line: r.line, Channel: channel, UserID: t.userID, Group: t.Group, Unique: t.unique})
}

const maxPlace = 1000 // bytes of a path or a title

// ordinal makes an id for the i-th part of a message.
func ordinal(id string, i int) string {
	if i == 0 {
		return id
	}
	return fmt.Sprintf("%s:%d", shorten(id, maxName-20), i+1)
}
