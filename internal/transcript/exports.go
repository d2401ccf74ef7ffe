package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// maxConversation is the most bytes of one conversation of an export.
const maxConversation = 256 << 20

// conversations hands the conversations of an export to read, one after the
// other. One that cannot be read is refused, and the rest goes on.
func (h *history) conversations(in *bufio.Reader, read func(raw json.RawMessage) (reason string, err error)) error {
	left := &allowance{r: in}
	return entries(bufio.NewReaderSize(left, peekBytes), func(n int, raw json.RawMessage) error {
		left.used = 0
		reason, err := read(raw)
		if reason != "" {
			h.turns++
			h.refuse("conversation %d: %s", n, reason)
		}
		return err
	})
}

// allowance ends a reading that goes on for too long without a pause.
type allowance struct {
	r    io.Reader
	used int
}

func (a *allowance) Read(p []byte) (int, error) {
	if a.used > maxConversation {
		return 0, memory.Errorf(memory.ErrInvalid, "a conversation is longer than %d bytes", maxConversation)
	}
	n, err := a.r.Read(p)
	a.used += n
	return n, err
}

// chatGPTConversation is an element of conversations.json in an export of
// ChatGPT, as it was given from 2023 to 2026 (later ones are split into
// conversations-000.json and on). There is no published description; this is what
// github.com/mitkury/chatgpt-export-parser, github.com/mohamed-chs/convoviz and
// others read.
type chatGPTConversation struct {
	ID      string                     `json:"id"`
	OtherID string                     `json:"conversation_id"`
	Title   string                     `json:"title"`
	Created float64                    `json:"create_time"` // seconds since 1970
	Current string                     `json:"current_node"`
	Forget  bool                       `json:"is_do_not_remember"`
	Mapping map[string]json.RawMessage `json:"mapping"`
}

// chatGPTNode is a place in the tree of a conversation: where an answer was asked
// for again, or a question changed, it branches.
type chatGPTNode struct {
	Parent  string          `json:"parent"`
	Message *chatGPTMessage `json:"message"`
}

type chatGPTMessage struct {
	ID     string `json:"id"`
	Author struct {
		Role string `json:"role"`
		Name string `json:"name"`
	} `json:"author"`
	Created   float64 `json:"create_time"`
	Recipient string  `json:"recipient"` // all, or the tool that is called
	Channel   string  `json:"channel"`
	Content   struct {
		Type  string            `json:"content_type"`
		Parts []json.RawMessage `json:"parts"`
		Text  string            `json:"text"`
	} `json:"content"`
	Metadata struct {
		Hidden   bool `json:"is_visually_hidden_from_conversation"`
		OwnRules bool `json:"is_user_system_message"` // custom instructions
	} `json:"metadata"`
}

// chatGPT reads one conversation along the branch that was open last. One that
// its user wanted not to be remembered is left out.
func (h *history) chatGPT(raw json.RawMessage) (string, error) {
	var c chatGPTConversation
	if reason := readObject(raw, &c); reason != "" {
		return reason, nil
	}
	if c.ID == "" {
		c.ID = c.OtherID
	}
	if c.ID == "" || c.Mapping == nil {
		return "id or mapping is missing", nil
	}
	if c.Forget {
		return "", nil
	}
	t := h.talk()
	t.session, t.title = "chatgpt:"+c.ID, c.Title
	branch, broken := c.branch()
	for i, m := range branch {
		h.turns++
		r := remark{line: h.turns, source: m.ID, at: seconds(m.Created)}
		if r.source == "" {
			r.source = fmt.Sprint(i + 1)
		}
		if r.at.IsZero() {
			r.at = seconds(c.Created)
		}
		if err := t.chatGPTMessage(m, r); err != nil {
			return "", err
		}
	}
	if broken != "" {
		h.turns++
		h.refuse("conversation %s, %s", c.ID, broken)
	}
	return "", nil
}

// branch returns the messages from the root to the node that was open last; and
// what of it is broken.
func (c *chatGPTConversation) branch() (list []*chatGPTMessage, broken string) {
	at := c.Current
	if at == "" {
		at = c.newest()
	}
	for met := map[string]bool{}; at != "" && !met[at]; {
		met[at] = true
		raw, known := c.Mapping[at]
		if !known {
			broken = "node " + shorten(at, maxName) + " is missing: what stood before it is left out"
			break
		}
		var n chatGPTNode
		if reason := readObject(raw, &n); reason != "" {
			// Its parent may still be known.
			var up struct {
				Parent string `json:"parent"`
			}
			broken = "node " + shorten(at, maxName) + " " + reason
			if json.Unmarshal(raw, &up) != nil {
				break
			}
			n = chatGPTNode{Parent: up.Parent}
		}
		if n.Message != nil {
			list = append(list, n.Message)
		}
		at = n.Parent
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, broken
}

// newest returns the node of the newest message; of several the one whose name
// comes last.
func (c *chatGPTConversation) newest() string {
	best, when := "", math.Inf(-1)
	for name, raw := range c.Mapping {
		var n chatGPTNode
		if json.Unmarshal(raw, &n) != nil || n.Message == nil {
			continue
		}
		if at := n.Message.Created; at > when || at == when && name > best {
			best, when = name, at
		}
	}
	return best
}

func seconds(s float64) time.Time {
	if s <= 0 || s > 1e11 || math.IsNaN(s) {
		return time.Time{}
	}
	return time.UnixMilli(int64(s * 1000)).UTC()
}

func (t *talk) chatGPTMessage(m *chatGPTMessage, r remark) error {
	switch m.Content.Type {
	case "thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "system_error":
		return nil
	}
	if m.Metadata.Hidden || m.Metadata.OwnRules || m.Channel == "analysis" {
		return nil
	}
	r.text = m.text()
	switch m.Author.Role {
	case "user":
		r.kind, r.text = memory.UserMessage, typed(r.text)
	case "assistant":
		r.kind = memory.AssistantOutput
		if m.Recipient != "" && m.Recipient != "all" {
			r.kind, r.tool = memory.ToolCall, m.Recipient
		}
	case "tool":
		r.kind, r.tool = memory.ToolResult, m.Author.Name
	default: // system
		return nil
	}
	return t.say(r)
}

// text returns the words of a message: of images and files nothing, of speech
// what was understood.
func (m *chatGPTMessage) text() string {
	texts := []string{m.Content.Text}
	for _, raw := range m.Content.Parts {
		var part string
		var object struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &part) != nil && json.Unmarshal(raw, &object) == nil {
			part = object.Text
		}
		texts = append(texts, part)
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// claudeConversation is an element of conversations.json in an export of
// claude.ai, as it was given from 2024 to 2026. There is no published
// description; this is what github.com/Sinity/polylogue and others read.
type claudeConversation struct {
	UUID     string            `json:"uuid"`
	Name     string            `json:"name"`
	Created  string            `json:"created_at"`
	Leaf     string            `json:"current_leaf_message_uuid"`
	Messages []json.RawMessage `json:"chat_messages"`
}

type claudeMessage struct {
	UUID        string          `json:"uuid"`
	Parent      string          `json:"parent_message_uuid"`
	Sender      string          `json:"sender"` // human or assistant
	Text        string          `json:"text"`
	Created     string          `json:"created_at"`
	Content     json.RawMessage `json:"content"`
	Attachments []struct {
		Name string `json:"file_name"`
		Text string `json:"extracted_content"`
	} `json:"attachments"`
	line int
}

// claude reads one conversation, along the branch that was open last where it
// branches.
func (h *history) claude(raw json.RawMessage) (string, error) {
	var c claudeConversation
	if reason := readObject(raw, &c); reason != "" {
		return reason, nil
	}
	if c.UUID == "" {
		return "uuid is missing", nil
	}
	t := h.talk()
	t.session, t.title = "claude:"+c.UUID, c.Name
	var list []*claudeMessage
	for i, raw := range c.Messages {
		h.turns++
		m := &claudeMessage{line: h.turns}
		if reason := readObject(raw, m); reason != "" {
			h.refuse("conversation %s, message %d %s", c.UUID, i+1, reason)
			continue
		}
		if m.UUID == "" {
			m.UUID = fmt.Sprint(i + 1)
		}
		list = append(list, m)
	}
	for _, m := range c.branch(list) {
		if m.Created == "" {
			m.Created = c.Created
		}
		at, err := parseTime(m.Created)
		if err != nil {
			h.bad(Bad{Line: m.line, Reason: fmt.Sprintf("conversation %s, message %s: %v", c.UUID, m.UUID, err)})
			continue
		}
		if err := t.claudeMessage(m, remark{at: at, source: m.UUID, line: m.line}); err != nil {
			return "", err
		}
	}
	return "", nil
}

// branch returns the messages from the first to the one that was open last, and
// all where they do not say what they answer.
func (c *claudeConversation) branch(list []*claudeMessage) []*claudeMessage {
	if len(list) == 0 {
		return nil
	}
	byID, chained := map[string]*claudeMessage{}, true
	for i, m := range list {
		chained = chained && (i == 0 || m.Parent != "")
		byID[m.UUID] = m
	}
	if !chained {
		return list
	}
	at := byID[c.Leaf]
	if at == nil {
		at = list[len(list)-1]
	}
	on := map[*claudeMessage]bool{}
	for ; at != nil && !on[at]; at = byID[at.Parent] {
		on[at] = true
	}
	var branch []*claudeMessage
	for _, m := range list {
		if on[m] {
			branch = append(branch, m)
		}
	}
	return branch
}

func (t *talk) claudeMessage(m *claudeMessage, r remark) error {
	list, ok := blocks(m.Content)
	if !ok || plain(m.Content) == "" && len(bytes.TrimSpace([]byte(m.Text))) > 0 && !hasTools(list) {
		list = []block{{Type: "text", Text: m.Text}} // as of 2024
	}
	switch m.Sender {
	case "human", "user":
		if err := t.ask(list, r); err != nil {
			return err
		}
	case "assistant":
		for i, b := range list {
			part := r
			part.source = ordinal(m.UUID, i)
			var err error
			if b.Type == "tool_result" {
				part.kind, part.tool, part.text = memory.ToolResult, b.Name, plain(b.Content)
				err = t.say(part)
			} else {
				err = t.answer([]block{b}, part)
			}
			if err != nil {
				return err
			}
		}
	}
	// What a file says is not what the person says.
	for i, a := range m.Attachments {
		part := r
		part.kind, part.tool, part.text = memory.ToolResult, "attachment", a.Text
		part.source = fmt.Sprintf("%s:file:%d", shorten(m.UUID, maxName-20), i+1)
		if a.Name != "" && a.Text != "" {
			part.text = a.Name + "\n" + a.Text
		}
		if err := t.say(part); err != nil {
			return err
		}
	}
	return nil
}

func hasTools(list []block) bool {
	for _, b := range list {
		if b.Type == "tool_use" || b.Type == "tool_result" {
			return true
		}
	}
	return false
}
