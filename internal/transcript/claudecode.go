package transcript

import (
	"bufio"
	"encoding/json"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// claudeCodeLine is a line of a session of Claude Code, as versions 1.0 to 2.1
// write it to ~/.claude/projects/<directory>/<session>.jsonl (and, of subagents,
// to agent-<id>.jsonl there or in <session>/subagents). There is no published
// description; these are the members on which github.com/oneryalcin/agent-schemas
// (2.1.144), github.com/simonw/claude-code-transcripts and others agree.
type claudeCodeLine struct {
	Type        string `json:"type"`
	UUID        string `json:"uuid"`
	SessionID   string `json:"sessionId"`
	AgentID     string `json:"agentId"`
	Timestamp   string `json:"timestamp"`
	Cwd         string `json:"cwd"`
	Branch      string `json:"gitBranch"`
	Sidechain   bool   `json:"isSidechain"` // of a subagent
	Meta        bool   `json:"isMeta"`      // put in by the program
	Summary     bool   `json:"isCompactSummary"`
	Shown       bool   `json:"isVisibleInTranscriptOnly"`
	APIError    bool   `json:"isApiErrorMessage"`
	Origin      origin `json:"origin"`
	Interrupted string `json:"interruptedMessageId"`
	Message     struct {
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	Attachment struct {
		Type   string          `json:"type"`
		Mode   string          `json:"commandMode"`
		Prompt json.RawMessage `json:"prompt"`
		Origin origin          `json:"origin"`
	} `json:"attachment"`
}

// origin says who stands behind a message: a string, or an object with a kind.
type origin string

// UnmarshalJSON reads either form; another one is none.
func (o *origin) UnmarshalJSON(raw []byte) error {
	var text string
	var object struct {
		Kind string `json:"kind"`
	}
	switch {
	case json.Unmarshal(raw, &text) == nil:
		*o = origin(text)
	case json.Unmarshal(raw, &object) == nil:
		*o = origin(object.Kind)
	}
	return nil
}

// foreign reports whether somebody else than the person is named.
func (o origin) foreign() bool { return o != "" && o != "human" && o != "user" && o != "keyboard" }

// claudeCode reads a session, or that of a subagent. A message's own id is
// unique: a session that was taken up again repeats those of the first one.
func (h *history) claudeCode(in *bufio.Reader) error {
	t := h.talk()
	t.unique = true
	return h.lines(in, func(number int, raw []byte) (string, error) {
		var l claudeCodeLine
		if reason := readObject(raw, &l); reason != "" {
			return reason, nil
		}
		if l.Type != "user" && l.Type != "assistant" && l.Type != "attachment" {
			return "", nil // summaries, snapshots, progress and the like
		}
		at, err := parseTime(l.Timestamp)
		if err != nil {
			return err.Error(), nil
		}
		if l.UUID == "" {
			return "uuid is missing", nil
		}
		t.session, t.cwd, t.branch, t.byAgent = l.SessionID, l.Cwd, l.Branch, h.ByAgent
		if t.session == "" {
			t.session = h.Session
		}
		if l.Sidechain {
			t.byAgent = true
			t.session += ":agent:" + l.AgentID
		}
		return t.claudeCodeMessage(&l, number, at)
	})
}

func (t *talk) claudeCodeMessage(l *claudeCodeLine, number int, at time.Time) (string, error) {
	r := remark{at: at, source: l.UUID, line: number}
	if l.Type == "attachment" { // what was typed while the agent was at work
		if l.Attachment.Type == "queued_command" && l.Attachment.Mode == "prompt" && !l.Attachment.Origin.foreign() && !l.Origin.foreign() {
			r.kind, r.text = memory.UserMessage, typed(plain(l.Attachment.Prompt))
		}
		return "", t.say(r)
	}
	list, ok := blocks(l.Message.Content)
	if !ok {
		return "message.content must be a string or a list", nil
	}
	if l.Type == "assistant" {
		if l.APIError || l.Message.Model == "<synthetic>" {
			return "", nil // the program's own words
		}
		return "", t.answer(list, r)
	}
	results := false
	for i, b := range list {
		if b.Type == "tool_result" {
			results = true
			r.kind, r.text, r.tool, r.source = memory.ToolResult, plain(b.Content), t.tools[b.ToolUseID], ordinal(l.UUID, i)
			if err := t.say(r); err != nil {
				return "", err
			}
		}
	}
	// What stands beside a tool's result was put there by the program.
	if results || l.Meta || l.Summary || l.Shown || l.Interrupted != "" || l.Origin.foreign() {
		return "", nil
	}
	return "", t.ask(list, r)
}

// ask says what a user typed of a message's blocks.
func (t *talk) ask(list []block, r remark) error {
	var said []string
	for _, b := range list {
		if isText(b.Type) {
			if text := typed(b.Text); text != "" {
				said = append(said, text)
			}
		}
	}
	r.kind, r.tool, r.text = memory.UserMessage, "", strings.Join(said, "\n")
	return t.say(r)
}

// answer says an assistant's blocks: its words, and its calls of tools.
func (t *talk) answer(list []block, r remark) error {
	id := r.source
	for i, b := range list {
		r.source = ordinal(id, i)
		switch {
		case isText(b.Type):
			r.kind, r.tool, r.text = memory.AssistantOutput, "", b.Text
		case b.Type == "tool_use" || b.Type == "toolCall" || b.Type == "server_tool_use":
			input := b.Input
			if input == nil {
				input = b.Arguments
			}
			t.called(b.ID, b.Name)
			r.kind, r.tool, r.text = memory.ToolCall, b.Name, written(input)
		default: // thinking, images
			continue
		}
		if err := t.say(r); err != nil {
			return err
		}
	}
	return nil
}
