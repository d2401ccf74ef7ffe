package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// codexLine is a line of a rollout of Codex: RolloutLine in
// codex-rs/protocol/src/protocol.rs of github.com/openai/codex, as versions 0.30
// to 0.150 write it to ~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl.
// Before, a line was the payload of a response_item by itself, and the first one
// that of a session_meta; these are read too.
type codexLine struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}

func isRollout(kind string) bool {
	switch kind {
	case "session_meta", "response_item", "event_msg", "turn_context", "compacted":
		return true
	}
	return false
}

// codexMeta is the payload of session_meta and, with cwd only, of turn_context.
type codexMeta struct {
	ID           string          `json:"id"`
	Cwd          string          `json:"cwd"`
	Source       json.RawMessage `json:"source"` // "cli", "vscode", "exec" or {"subagent": …}
	ThreadSource string          `json:"thread_source"`
	Git          struct {
		Branch string `json:"branch"`
	} `json:"git"`
}

// codexItem is the payload of response_item (ResponseItem in models.rs) and, with
// type and message, of event_msg.
type codexItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Name      string          `json:"name"`
	CallID    string          `json:"call_id"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Action    json.RawMessage `json:"action"`
	Output    json.RawMessage `json:"output"`
	Message   json.RawMessage `json:"message"`
}

// rollout is one rollout while it is read.
type rollout struct {
	talk
	begun bool
	// waiting are user messages as the model saw them, until the event comes that
	// tells which of them the person typed. eventful is set by the first such event:
	// from then on a message without one was the program's.
	waiting  []remark
	eventful bool
	typed    string // by the last event of that kind
}

// codex reads a rollout. Lines have no ids of their own: a turn's is its line's
// number, which stays, since files only grow.
func (h *history) codex(in *bufio.Reader) error {
	x := rollout{talk: h.talk()}
	err := h.lines(in, func(number int, raw []byte) (string, error) {
		var l codexLine
		if reason := readObject(raw, &l); reason != "" {
			return reason, nil
		}
		at, err := parseTime(l.Timestamp)
		if err != nil {
			return err.Error(), nil
		}
		if l.Payload == nil || !isRollout(l.Type) { // as of old
			l.Payload = raw
			if l.Type == "" {
				l.Type = "session_meta"
			} else {
				l.Type = "response_item"
			}
		}
		return x.line(l, number, at)
	})
	if err != nil {
		return err
	}
	return x.settle("")
}

func (x *rollout) line(l codexLine, number int, at time.Time) (string, error) {
	switch l.Type {
	case "session_meta", "turn_context":
		var m codexMeta
		if reason := readObject(l.Payload, &m); reason != "" {
			return "payload: " + reason, nil
		}
		x.about(m, l.Type == "session_meta")
	case "response_item", "event_msg":
		var item codexItem
		if reason := readObject(l.Payload, &item); reason != "" {
			return "payload: " + reason, nil
		}
		r := remark{at: at, source: "L" + strconv.Itoa(number), line: number}
		if l.Type == "event_msg" {
			return "", x.event(item, r)
		}
		return x.item(item, r)
	}
	return "", nil // what was compacted was said before
}

// about takes in what is said of the session. A session that goes on from another
// one has that one's description too: the first counts.
func (x *rollout) about(m codexMeta, session bool) {
	if m.Cwd != "" {
		x.cwd = m.Cwd
	}
	if !session || x.begun || m.ID == "" {
		return
	}
	x.begun = true
	x.session, x.branch = m.ID, m.Git.Branch
	if m.ThreadSource == "subagent" || bytes.HasPrefix(bytes.TrimSpace(m.Source), []byte("{")) && bytes.Contains(bytes.ToLower(m.Source), []byte(`"subagent"`)) {
		x.byAgent = true
	}
}

// event takes in what the person typed; all else of the events is in items too.
func (x *rollout) event(item codexItem, r remark) error {
	if item.Type != "user_message" {
		return nil
	}
	x.eventful = true
	said := typed(written(item.Message))
	waited := false
	for _, w := range x.waiting {
		waited = waited || same(w.text, said)
	}
	if err := x.settle(said); err != nil || waited || said == "" || said == x.typed {
		return err
	}
	x.typed = said
	r.kind, r.text = memory.UserMessage, said
	return x.say(r)
}

// same reports whether a message that the model saw is what was typed: it may
// have more to it, as the names of files.
func same(seen, said string) bool {
	return said != "" && (seen == said || strings.Contains(seen, said))
}

// settle says those of the waiting messages that were typed: those that are said,
// or all where no event tells.
func (x *rollout) settle(said string) error {
	waiting := x.waiting
	x.waiting = nil
	for _, r := range waiting {
		if said != "" && !same(r.text, said) || said == "" && x.eventful && !x.byAgent {
			continue
		}
		if said != "" {
			r.text, x.typed = said, said
		}
		if err := x.say(r); err != nil {
			return err
		}
	}
	return nil
}

func (x *rollout) item(item codexItem, r remark) (string, error) {
	if item.Type == "message" && item.Role == "user" {
		list, ok := blocks(item.Content)
		if !ok {
			return "content must be a string or a list", nil
		}
		var said []string
		for _, b := range list {
			if text := typed(b.Text); isText(b.Type) && text != "" {
				said = append(said, text)
			}
		}
		r.kind, r.text = memory.UserMessage, strings.Join(said, "\n")
		if r.text != "" && r.text != x.typed { // else its event stood before
			x.waiting = append(x.waiting, r)
		}
		return "", nil
	}
	switch item.Type {
	case "message":
		if item.Role != "assistant" { // developer and system: instructions
			return "", nil
		}
		list, ok := blocks(item.Content)
		if !ok {
			return "content must be a string or a list", nil
		}
		if err := x.moveOn(); err != nil {
			return "", err
		}
		return "", x.answer(list, r)
	case "function_call", "custom_tool_call", "local_shell_call", "web_search_call":
		r.kind, r.tool = memory.ToolCall, item.Name
		for _, input := range []json.RawMessage{item.Arguments, item.Input, item.Action} {
			if input != nil {
				r.text = written(input)
				break
			}
		}
		switch item.Type {
		case "local_shell_call":
			r.tool = "shell"
		case "web_search_call":
			r.tool = "web_search"
		}
		x.called(item.CallID, r.tool)
	case "function_call_output", "custom_tool_call_output":
		r.kind, r.tool, r.text = memory.ToolResult, x.tools[item.CallID], toolOutput(item.Output)
	default: // reasoning, snapshots
		return "", nil
	}
	if err := x.moveOn(); err != nil {
		return "", err
	}
	return "", x.say(r)
}

// moveOn ends the user's turn.
func (x *rollout) moveOn() error {
	x.typed = ""
	return x.settle("")
}

// toolOutput returns what a tool answered: a text, blocks, or an object with
// content or output, which may stand in the text as JSON.
func toolOutput(raw json.RawMessage) string {
	var object struct {
		Content json.RawMessage `json:"content"`
		Output  json.RawMessage `json:"output"`
	}
	text := written(raw)
	if json.Unmarshal([]byte(text), &object) == nil {
		for _, inner := range []json.RawMessage{object.Output, object.Content} {
			if out := plain(inner); inner != nil && out != "" {
				return out
			}
		}
	}
	if list, ok := blocks(raw); ok && len(list) > 0 {
		return plain(raw)
	}
	return text
}
