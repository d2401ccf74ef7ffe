package judge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"
)

// modelName is what the stub calls itself.
const modelName = "stub"

// ChatRequest is the part of a chat completion request that the stub looks at.
type ChatRequest struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Stream   bool      `json:"stream"`
	Tools    []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`
	MaxTokens           int      `json:"max_tokens"`
	MaxCompletionTokens int      `json:"max_completion_tokens"`
	Temperature         *float64 `json:"temperature"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// Message is a message of a ChatRequest.
type Message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Last returns the content of the last message of a role; "" if there is none.
func (r ChatRequest) Last(role string) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == role {
			return r.Messages[i].Content
		}
	}
	return ""
}

// Offered is what a distillation prompt shows the model.
type Offered struct {
	Events []struct {
		EventID string `json:"event_id"`
		Kind    string `json:"kind"`
		Text    string `json:"text"`
	} `json:"events"`
	Items []struct {
		ID      string `json:"id"`
		Content string `json:"content"`
	} `json:"items"`
}

var fence = regexp.MustCompile(`(?s)<<<([0-9a-f]+)\n(.*)\n([0-9a-f]+)>>>`)

// Offer reads the batch out of a distillation prompt: JSON between a pair of
// equal marks. It reports false where r is no such prompt.
func (r ChatRequest) Offer() (Offered, bool) {
	m := fence.FindStringSubmatch(r.Last("user"))
	var o Offered
	if m == nil || m[1] != m[3] || json.Unmarshal([]byte(m[2]), &o) != nil {
		return Offered{}, false
	}
	return o, o.Events != nil
}

// item and update are entries of a distiller's answer.
type item struct {
	Kind       string  `json:"kind"`
	Title      string  `json:"title"`
	Content    string  `json:"content"`
	Importance any     `json:"importance"`
	Confidence any     `json:"confidence"`
	Evidence   []quote `json:"evidence"`
	ValidFrom  *string `json:"valid_from"`
	ValidTo    *string `json:"valid_to"`
	Supersedes *string `json:"supersedes"`
}

type update struct {
	ID         string  `json:"id"`
	NewTitle   *string `json:"new_title"`
	NewContent string  `json:"new_content"`
	Confidence float64 `json:"confidence"`
	Evidence   []quote `json:"evidence"`
}

type quote struct {
	EventID string `json:"event_id"`
	Quote   string `json:"quote"`
}

// distillation is a distiller's answer.
type distillation struct {
	NewItems []item   `json:"new_items"`
	Updates  []update `json:"updates"`
}

func (d distillation) String() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("judge: %v", err))
	}
	return string(text)
}

// quoteLength is how many characters of an event the stub quotes.
const quoteLength = 60

// distil answers one item per event, which cites its event and quotes it truly.
// Its content names the event and the answer, so that no two items are alike: a
// memory that merges what is said twice would hide that it asked twice.
func distil(o Offered, answer int) distillation {
	d := distillation{NewItems: []item{}, Updates: []update{}}
	for _, e := range o.Events {
		if strings.TrimSpace(e.Text) == "" {
			continue
		}
		d.NewItems = append(d.NewItems, item{
			Kind: "fact", Title: "About " + e.EventID, Content: fmt.Sprintf("%s (%s, answer %d)", first(e.Text, 400), e.EventID, answer),
			Importance: 3, Confidence: .8,
			Evidence: []quote{{EventID: e.EventID, Quote: first(e.Text, quoteLength)}},
		})
	}
	return d
}

// first returns the first n characters of s.
func first(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

var wantsTool = regexp.MustCompile(`(?s)^use ([A-Za-z0-9_-]+) (\{.*\})$`)

// converse is the plain chat answer: it says what it was asked and how much
// memory it was shown. "use NAME {…}" makes it call that tool, if it is offered,
// and a tool's result is read back.
func converse(req ChatRequest) Answer {
	last := Message{}
	if len(req.Messages) > 0 {
		last = req.Messages[len(req.Messages)-1]
	}
	if last.Role == "tool" {
		return Answer{Text: "The tool answers: " + first(last.Content, 400)}
	}
	asked := strings.TrimSpace(req.Last("user"))
	if m := wantsTool.FindStringSubmatch(asked); m != nil {
		for _, t := range req.Tools {
			if t.Function.Name == m[1] {
				return Answer{ToolCalls: []ToolCall{{Name: m[1], Arguments: m[2]}}}
			}
		}
		return Answer{Text: "I am offered no tool " + m[1] + "."}
	}
	lines := 0
	for _, m := range req.Messages {
		lines += strings.Count(m.Content, "\n[MEM-") + strings.Count(m.Content, "\n[EVT-") + strings.Count(m.Content, "\n[REC-")
	}
	return Answer{Text: fmt.Sprintf("You said %q. I was shown %d memories.", first(asked, 200), lines)}
}

// exchange is one request and the way back.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	req    ChatRequest
	embed  EmbedRequest // of a request for embeddings
	gemini bool         // it has Gemini's form
	number int          // of the call, from 1
}

// good returns the answer of a model that works: a distillation where one is
// asked for, else the next of the script.
func (x *exchange) good() Answer {
	if o, asked := x.req.Offer(); asked {
		return Answer{Text: distil(o, x.number).String()}
	}
	return x.server.answerOf(x.req)
}

// offer returns what a distillation was offered; where there is nothing to
// distil, one event that never happened, so that every behaviour has something
// to distort.
func (x *exchange) offer() Offered {
	if o, asked := x.req.Offer(); asked && len(distil(o, x.number).NewItems) > 0 {
		return o
	}
	o := Offered{}
	if err := json.Unmarshal([]byte(`{"events":[{"event_id":"evt_none","kind":"user_message","text":"I like tea."}]}`), &o); err != nil {
		panic(fmt.Sprintf("judge: %v", err))
	}
	return o
}

// say answers as a working endpoint does, whole or as a stream.
func (x *exchange) say(a Answer) { x.finish(a, "") }

// finish answers with a finish reason; "" for the fitting one.
func (x *exchange) finish(a Answer, reason string) {
	if reason == "" {
		reason = "stop"
		if len(a.ToolCalls) > 0 {
			reason = "tool_calls"
		}
	}
	if x.req.Stream {
		x.stream(a, reason)
		return
	}
	message := map[string]any{"role": "assistant", "content": a.Text}
	if len(a.ToolCalls) > 0 {
		message["tool_calls"] = calls(a.ToolCalls)
	}
	x.choices([]any{map[string]any{"index": 0, "message": message, "finish_reason": reason}}, a)
}

// choices answers with these choices.
func (x *exchange) choices(choices []any, a Answer) {
	if x.req.Stream {
		x.frames(map[string]any{"id": "chatcmpl-stub", "object": "chat.completion.chunk", "model": modelName, "choices": choices})
		return
	}
	writeJSON(x.w, http.StatusOK, map[string]any{"id": "chatcmpl-stub", "object": "chat.completion", "model": modelName, "choices": choices, "usage": x.usage(a)})
}

func (x *exchange) usage(a Answer) map[string]int {
	in := 0
	for _, m := range x.req.Messages {
		in += tokens(m.Content)
	}
	out := tokens(a.Text)
	for _, c := range a.ToolCalls {
		out += tokens(c.Arguments)
	}
	return map[string]int{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

func tokens(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }

func calls(list []ToolCall) []any {
	out := make([]any, len(list))
	for i, c := range list {
		out[i] = map[string]any{"index": i, "id": fmt.Sprintf("call_%d", i), "type": "function", "function": map[string]string{"name": c.Name, "arguments": c.Arguments}}
	}
	return out
}

// A stream comes in pieces of so many characters, or in this many pieces.
const (
	pieceLength = 12
	mostPieces  = 500
)

// stream answers piece by piece.
func (x *exchange) stream(a Answer, reason string) {
	chunk := func(delta map[string]any, reason any) map[string]any {
		return map[string]any{"id": "chatcmpl-stub", "object": "chat.completion.chunk", "model": modelName,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}}}
	}
	frames := []map[string]any{chunk(map[string]any{"role": "assistant"}, nil)}
	length := max(pieceLength, len(a.Text)/mostPieces)
	for rest := a.Text; rest != ""; {
		piece := first(rest, length)
		rest = rest[len(piece):]
		frames = append(frames, chunk(map[string]any{"content": piece}, nil))
	}
	for i, c := range a.ToolCalls { // the name first, the arguments in two pieces
		half := len(first(c.Arguments, utf8.RuneCountInString(c.Arguments)/2))
		call := func(f map[string]string) map[string]any {
			return chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": fmt.Sprintf("call_%d", i), "type": "function", "function": f}}}, nil)
		}
		frames = append(frames, call(map[string]string{"name": c.Name}), call(map[string]string{"arguments": c.Arguments[:half]}), call(map[string]string{"arguments": c.Arguments[half:]}))
	}
	frames = append(frames, chunk(map[string]any{}, reason))
	if x.req.StreamOptions != nil && x.req.StreamOptions.IncludeUsage {
		frames = append(frames, map[string]any{"id": "chatcmpl-stub", "object": "chat.completion.chunk", "model": modelName, "choices": []any{}, "usage": x.usage(a)})
	}
	x.frames(frames...)
}

// frames writes server-sent events and the end mark.
func (x *exchange) frames(list ...map[string]any) {
	x.w.Header().Set("Content-Type", "text/event-stream")
	for _, f := range list {
		text, err := json.Marshal(f)
		if err != nil {
			panic(fmt.Sprintf("judge: %v", err))
		}
		if !send(x.w, "data: "+string(text)+"\n\n") {
			return
		}
		x.flush()
	}
	send(x.w, "data: [DONE]\n\n")
}
