package proxy

import (
	"bytes"
	"mime"
	"strings"

	"github.com/tidwall/gjson"
)

// reply is what a provider answered, put together beside the bytes that pass.
type reply struct {
	message
	model     string
	tokensIn  int
	tokensOut int
	partial   bool // it broke off
	size      int  // bytes kept
}

// maxReply is the most bytes of an answer that are kept to be remembered.
const maxReply = 4 << 20

// isEmpty reports whether there is nothing in the answer to be remembered.
func (r *reply) isEmpty() bool { return strings.TrimSpace(r.text) == "" && len(r.calls) == 0 }

// replyOf reads an answer that came whole. Of several choices the first counts.
func replyOf(body []byte) *reply {
	r := &reply{}
	root := gjson.ParseBytes(body)
	r.about(root)
	r.message = messageOf(root.Get("choices.0.message"))
	r.role = "assistant"
	return r
}

// about reads what stands beside the choices.
func (r *reply) about(root gjson.Result) {
	if m := root.Get("model"); m.Type == gjson.String && m.Str != "" {
		r.model = m.Str
	}
	if u := root.Get("usage"); u.IsObject() {
		r.tokensIn, r.tokensOut = int(u.Get("prompt_tokens").Int()), int(u.Get("completion_tokens").Int())
	}
}

// isStream reports whether an answer of this type comes as server-sent events.
func isStream(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "text/event-stream"
}

// listener puts an answer together from server-sent events.
type listener struct {
	reply
	line  []byte // what of a line has come
	skip  bool   // the line is too long to be of use
	texts strings.Builder
	order []int64 // indices of calls
	parts map[int64]*callParts
	ended bool // the last event has come
	// finished says that the answer is whole; not every provider sends a last event.
	finished bool
}

type callParts struct {
	id, name  string
	arguments strings.Builder
}

// hear takes bytes of the stream and reports whether the answer's end is among them.
func (l *listener) hear(p []byte) bool {
	was := l.ended
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			l.keep(p)
			break
		}
		l.keep(p[:end])
		l.take()
		p = p[end+1:]
	}
	return l.ended && !was
}

func (l *listener) keep(p []byte) {
	if l.skip = l.skip || len(l.line)+len(p) > maxReply; !l.skip {
		l.line = append(l.line, p...)
	}
}

// take reads a line that is complete.
func (l *listener) take() {
	data, isData := bytes.CutPrefix(l.line, []byte("data:"))
	if isData && !l.skip {
		l.event(bytes.TrimSpace(data))
	}
	l.line, l.skip = l.line[:0], false
}

func (l *listener) event(data []byte) {
	if string(data) == "[DONE]" {
		l.ended = true
		return
	}
	if !gjson.ValidBytes(data) {
		return
	}
	root := gjson.ParseBytes(data)
	l.about(root)
	root.Get("choices").ForEach(func(_, choice gjson.Result) bool {
		if choice.Get("index").Int() == 0 {
			l.delta(choice)
		}
		return true
	})
}

func (l *listener) delta(choice gjson.Result) {
	if choice.Get("finish_reason").Type == gjson.String {
		l.finished = true
	}
	delta := choice.Get("delta")
	for _, name := range []string{"content", "refusal"} {
		if text := delta.Get(name); text.Type == gjson.String && l.room(text.Str) {
			l.texts.WriteString(text.Str)
		}
	}
	delta.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
		index := c.Get("index").Int()
		have := l.parts[index]
		if have == nil {
			if l.parts == nil {
				l.parts = map[int64]*callParts{}
			}
			have = &callParts{}
			l.parts[index] = have
			l.order = append(l.order, index)
		}
		got := callOf(c)
		if !l.room(got.id + got.name + got.arguments) {
			return true
		}
		have.id += got.id
		have.name += got.name
		have.arguments.WriteString(got.arguments)
		return true
	})
}

// room reports whether so much more may be kept.
func (l *listener) room(s string) bool {
	if l.size+len(s) > maxReply {
		l.partial = true
		return false
	}
	l.size += len(s)
	return true
}

// heard returns what the answer is by now.
func (l *listener) heard() *reply {
	r := l.reply
	r.role, r.text, r.calls = "assistant", l.texts.String(), nil
	for _, index := range l.order {
		c := l.parts[index]
		r.calls = append(r.calls, call{c.id, c.name, c.arguments.String()})
	}
	r.partial = r.partial || !l.ended && !l.finished
	return &r
}
