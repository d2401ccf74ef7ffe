package transcript

import (
	"bufio"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// openClawLine is a line of a session of OpenClaw, version 3 of the format of
// github.com/badlogic/pi-mono (packages/coding-agent/docs/session.md), which
// OpenClaw 2026.1 to 2026.5 writes to ~/.openclaw/agents/<agent>/sessions: a
// header, then messages and marks. Versions 1 and 2 differ in what is not read.
type openClawLine struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Timestamp json.RawMessage `json:"timestamp"` // RFC 3339, or milliseconds
	Cwd       string          `json:"cwd"`
	Message   struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolName   string          `json:"toolName"`
		ToolCallID string          `json:"toolCallId"`
		Command    string          `json:"command"` // of bashExecution: what the person ran
		Output     string          `json:"output"`
		Timestamp  json.RawMessage `json:"timestamp"`
		Provenance origin          `json:"provenance"`
	} `json:"message"`
}

// openClaw reads a session. Ids of messages are unique in their session only.
func (h *history) openClaw(in *bufio.Reader) error {
	t := h.talk()
	return h.lines(in, func(number int, raw []byte) (string, error) {
		var l openClawLine
		if reason := readObject(raw, &l); reason != "" {
			return reason, nil
		}
		switch l.Type {
		case "session":
			t.cwd = l.Cwd
			if l.ID != "" {
				t.session = l.ID
			}
			return "", nil
		case "message":
		default: // changes of the model, summaries, what extensions note
			return "", nil
		}
		at, err := openClawTime(l.Timestamp, l.Message.Timestamp)
		if err != nil {
			return err.Error(), nil
		}
		if l.ID == "" {
			l.ID = "L" + strconv.Itoa(number)
		}
		return t.openClawMessage(&l, remark{at: at, source: l.ID, line: number})
	})
}

// openClawTime reads the first of the times that is there.
func openClawTime(times ...json.RawMessage) (time.Time, error) {
	for _, raw := range times {
		var ms int64
		switch text := written(raw); {
		case text == "":
		case json.Unmarshal(raw, &ms) == nil:
			return time.UnixMilli(ms).UTC(), nil
		default:
			return parseTime(text)
		}
	}
	return time.Time{}, nil
}

func (t *talk) openClawMessage(l *openClawLine, r remark) (string, error) {
	m := &l.Message
	if m.Role == "bashExecution" {
		r.kind, r.tool, r.text, r.typed = memory.ToolCall, "shell", m.Command, true
		if err := t.say(r); err != nil {
			return "", err
		}
		r.kind, r.text, r.source, r.typed = memory.ToolResult, m.Output, ordinal(l.ID, 1), false
		return "", t.say(r)
	}
	list, ok := blocks(m.Content)
	if !ok {
		return "message.content must be a string or a list", nil
	}
	switch m.Role {
	case "toolResult":
		r.kind, r.text, r.tool = memory.ToolResult, plain(m.Content), m.ToolName
		if r.tool == "" {
			r.tool = t.tools[m.ToolCallID]
		}
		return "", t.say(r)
	case "assistant":
		for i := range list {
			list[i].Text = openClawReply(list[i].Text)
		}
		return "", t.answer(list, r)
	case "user":
		return "", t.openClawUser(plain(m.Content), m.Provenance, r)
	}
	return "", nil
}

func (t *talk) openClawUser(text string, from origin, r remark) error {
	switch from {
	case "", "external_user", "human", "user":
	case "inter_session":
		r.byAgent = true
	default: // the program's own
		return nil
	}
	text, who := openClawTyped(text)
	if strings.HasPrefix(text, "[Inter-session message") || strings.HasPrefix(text, "[Subagent ") || strings.HasPrefix(text, "[cron:") {
		r.byAgent = true
	}
	switch {
	case t.Group || who.Group:
		r.speaker = shorten(who.name(), maxName)
	case t.userID == "" && !r.byAgent && !t.byAgent:
		t.userID = shorten(who.ID, maxName)
	}
	r.kind, r.text = memory.UserMessage, text
	return t.say(r)
}

// openClawSender is what OpenClaw tells its model of who wrote.
type openClawSender struct {
	ID     string `json:"sender_id"`
	Sender string `json:"sender"`
	Group  bool   `json:"is_group_chat"`
}

func (s openClawSender) name() string {
	if s.Sender != "" {
		return s.Sender
	}
	return s.ID
}

var (
	// metadata is a frame in front of what was written: "Sender (untrusted
	// metadata):" and a fenced object.
	metadata = regexp.MustCompile("(?s)^[A-Z][^\\n(]{0,80}\\(untrusted[^\\n)]*\\):?\\s*\\n```(?:json)?\\s*\\n(.*?)\\n```\\s*")
	// stamp is a time or the number of a message in front of it.
	stamp = regexp.MustCompile(`^\[(?:message_id:[^\]\n]*|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]*)\]\s*`)
	// envelope is the older form of both: [Telegram Ana id:5 +2m 2026-01-05 10:00 UTC].
	envelope = regexp.MustCompile(`^\[[A-Z][A-Za-z]+ [^\]\n]*\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\]\n]*\]\s*`)
	// notice is a line of the program.
	notice    = regexp.MustCompile(`^System(?: \(untrusted\))?: [^\n]*(?:\n|$)`)
	directive = regexp.MustCompile(`\[\[[a-z_]+(?::[^\]\n]*)?\]\]\s*`)
	internal  = regexp.MustCompile(`(?s)<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?(?:<<<END_OPENCLAW_INTERNAL_CONTEXT>>>|$)`)
)

// prompts are the beginnings of what OpenClaw says in the user's place.
var prompts = []string{
	"A new session was started via /new or /reset", "Read HEARTBEAT.md if it exists", "Pre-compaction memory flush", "Continue where you left off. The previous model attempt failed",
	"[OpenClaw heartbeat", "An async command you ran earlier has completed",
}

// openClawTyped returns what a person wrote of a user's message, and who that
// was as far as it tells.
func openClawTyped(text string) (string, openClawSender) {
	var who openClawSender
	text = strings.TrimSpace(internal.ReplaceAllString(text, ""))
	for before := ""; before != text; {
		before = text
		if m := metadata.FindStringSubmatch(text); m != nil {
			var told openClawSender
			if json.Unmarshal([]byte(m[1]), &told) == nil && who.ID == "" && (told.ID != "" || told.Group) {
				who = told
			}
			text = text[len(m[0]):]
		}
		for _, frame := range []*regexp.Regexp{notice, stamp, envelope} {
			text = strings.TrimLeft(strings.TrimPrefix(text, frame.FindString(text)), " \n")
		}
	}
	for _, p := range prompts {
		if strings.HasPrefix(text, p) {
			return "", who
		}
	}
	return typed(text), who
}

// openClawReply returns what an assistant said without the marks by which
// OpenClaw is told how to send it.
func openClawReply(text string) string {
	text = strings.TrimSpace(directive.ReplaceAllString(text, ""))
	if text == "NO_REPLY" || text == "HEARTBEAT_OK" {
		return ""
	}
	return text
}
