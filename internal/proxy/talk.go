package proxy

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// message is one message of a conversation, as clients and providers write it.
type message struct {
	role   string
	name   string // of who speaks, or of the function
	text   string // text parts, joined by line breaks
	media  string // the parts that are no text, as they were written
	kinds  string // … what they are: "[image]", for people
	callID string // that a tool's result answers
	calls  []call
	start  int // offset of its first byte in the body
}

// call is a tool call of an assistant message.
type call struct{ id, name, arguments string }

// isUser reports whether a message is what a person said.
func (m message) isUser() bool { return m.role == "user" }

// isPrefix reports whether a message is an instruction of the client's.
func (m message) isPrefix() bool { return m.role == "system" || m.role == "developer" }

// talk is the body of a chat completion, with the places that are of interest. The
// bytes themselves are never encoded anew.
type talk struct {
	raw      string
	model    span // the value of the member model; empty where there is none
	named    string
	object   int // offset behind the object's opening brace
	user     string
	messages []message
	last     int // index of the message that begins the last user turn; -1 for none
}

// span is a part of a body, in bytes.
type span struct{ start, end int }

// parse reads a body. One that is no JSON object is an ErrInvalid; one without
// messages in their form has none.
func parse(body []byte) (*talk, error) {
	if !json.Valid(body) {
		return nil, memory.Errorf(memory.ErrInvalid, "the body is not JSON")
	}
	t := &talk{raw: string(body), last: -1}
	root := gjson.Parse(t.raw)
	if !root.IsObject() {
		return nil, memory.Errorf(memory.ErrInvalid, "the body must be a JSON object")
	}
	t.object = strings.IndexByte(t.raw, '{') + 1
	root.ForEach(func(key, value gjson.Result) bool {
		switch key.Str { // of a name that stands there twice, the last counts
		case "model":
			t.model, t.named = span{value.Index, value.Index + len(value.Raw)}, value.String()
		case "user":
			t.user = value.String()
		case "messages":
			t.messages = messagesIn(value)
		}
		return true
	})
	for i := len(t.messages) - 1; i >= 0; i-- {
		if t.messages[i].isUser() {
			t.last = i
		} else if t.last >= 0 {
			break
		}
	}
	return t, nil
}

func messagesIn(list gjson.Result) []message {
	var out []message
	if !list.IsArray() {
		return nil
	}
	whole := true
	list.ForEach(func(_, value gjson.Result) bool {
		whole = whole && value.IsObject()
		m := messageOf(value)
		m.start = value.Index
		out = append(out, m)
		return true
	})
	if !whole {
		return nil
	}
	return out
}

// messageOf reads a message of a request, or of an answer.
func messageOf(value gjson.Result) message {
	m := message{role: value.Get("role").String(), name: value.Get("name").String(), callID: value.Get("tool_call_id").String()}
	m.setContent(value.Get("content"))
	if refusal := value.Get("refusal"); m.text == "" && refusal.Type == gjson.String {
		m.text = refusal.Str
	}
	value.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
		m.calls = append(m.calls, callOf(c))
		return true
	})
	if f := value.Get("function_call"); f.IsObject() {
		m.calls = append(m.calls, call{name: f.Get("name").String(), arguments: f.Get("arguments").String()})
	}
	return m
}

// callOf reads a tool call: of a function, or of a tool that takes plain text.
func callOf(c gjson.Result) call {
	if custom := c.Get("custom"); custom.IsObject() {
		return call{c.Get("id").String(), custom.Get("name").String(), custom.Get("input").String()}
	}
	return call{c.Get("id").String(), c.Get("function.name").String(), c.Get("function.arguments").String()}
}

func (m *message) setContent(content gjson.Result) {
	if !content.IsArray() {
		if content.Type == gjson.String {
			m.text = content.Str
		}
		return
	}
	var texts, media, kinds []string
	content.ForEach(func(_, part gjson.Result) bool {
		switch kind := part.Get("type").String(); {
		case part.Type == gjson.String:
			texts = append(texts, part.Str)
		case part.Get("text").Type == gjson.String:
			texts = append(texts, part.Get("text").Str)
		case kind == "refusal":
			texts = append(texts, part.Get("refusal").String())
		default:
			media = append(media, part.Raw)
			kinds = append(kinds, "["+kindOf(kind)+"]")
		}
		return true
	})
	m.text, m.media, m.kinds = strings.Join(texts, "\n"), strings.Join(media, "\n"), strings.Join(kinds, " ")
}

// kindOf says in a word what a part is that is no text.
func kindOf(kind string) string {
	for _, known := range []string{"image", "audio", "file", "video"} {
		if strings.Contains(kind, known) {
			return known
		}
	}
	return "attachment"
}

// question is what the last user turn says.
func (t *talk) question() string {
	var texts []string
	for _, m := range t.messages[max(t.last, 0):] {
		if !m.isUser() {
			break
		}
		if text := strings.TrimSpace(m.text); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// with returns the body with a block of memory as a message of its own before the
// last user turn, and with the model that stands for none and for "openclawssy".
// Every other byte stays as it is.
func (t *talk) with(block, model string) []byte {
	type edit struct {
		span
		text string
	}
	var edits []edit
	switch asks := t.named == "" || t.named == ownModel; {
	case model == "" || !asks:
	case t.model.end > 0:
		edits = append(edits, edit{t.model, quote(model)})
	default:
		comma := ","
		if strings.HasPrefix(strings.TrimLeft(t.raw[t.object:], " \t\r\n"), "}") {
			comma = ""
		}
		edits = append(edits, edit{span{t.object, t.object}, `"model":` + quote(model) + comma})
	}
	if block != "" && t.last >= 0 {
		at := t.messages[t.last].start
		e := edit{span{at, at}, `{"role":"user","content":` + quote(block) + `},`}
		if len(edits) > 0 && edits[0].start > at {
			edits = []edit{e, edits[0]}
		} else {
			edits = append(edits, e)
		}
	}
	var out bytes.Buffer
	from := 0
	for _, e := range edits {
		out.WriteString(t.raw[from:e.start])
		out.WriteString(e.text)
		from = e.end
	}
	out.WriteString(t.raw[from:])
	return out.Bytes()
}

// quote writes a string as JSON.
func quote(s string) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""` // a string can always be written
	}
	return strings.TrimSuffix(buf.String(), "\n")
}
