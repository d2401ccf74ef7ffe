package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/spend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-test-0123456789abcdef"

// never is a jitter that makes no wait longer than it must be.
func never() float64 { return 0 }

// connect returns a client of the endpoint at url, by way of egress.
func connect(t *testing.T, url string, edit func(*llm.Config), limits egress.Options) *llm.Client {
	t.Helper()
	limits.Allow = []egress.Endpoint{{URL: url}}
	out, err := egress.New(limits)
	if err != nil {
		t.Fatal(err)
	}
	c := llm.Config{Provider: llm.Generic, BaseURL: url, Model: "stub", Key: key, Timeout: 10 * time.Second, MaxRetries: 2}
	if edit != nil {
		edit(&c)
	}
	client, err := llm.New(c, out, time.Now, never)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func ask(text string) llm.Request {
	return llm.Request{Agent: "default", Messages: []llm.Message{{Role: llm.User, Content: text}}}
}

// outcome is what a client makes of an endpoint's behaviour.
type outcome struct {
	class  llm.ReplyClass // of a ReplyError
	status int            // of a StatusError
	kind   memory.Kind    // of the error; "" for an answer
	calls  int            // requests that the server sees
}

func (o outcome) String() string {
	return fmt.Sprintf("class %q, status %d, kind %q, %d calls", o.class, o.status, o.kind, o.calls)
}

func outcomeOf(err error, calls int) outcome {
	o := outcome{kind: memory.KindOf(err), calls: calls}
	var reply *llm.ReplyError
	if errors.As(err, &reply) {
		o.class = reply.Class
	}
	var status *llm.StatusError
	if errors.As(err, &status) {
		o.status = status.Status
	}
	return o
}

// expected gives every behaviour its outcome where two retries are allowed and
// the time for one call is short.
func expected(b judge.Behaviour) outcome {
	useless := func(c llm.ReplyClass) outcome { return outcome{class: c, kind: memory.ErrUnavailable, calls: 1} }
	broken := outcome{kind: memory.ErrUnavailable, calls: 3}
	slow := outcome{kind: memory.ErrUnavailable, calls: 1}
	busy := outcome{kind: memory.ErrUnavailable, status: http.StatusTooManyRequests, calls: 3}
	away := busy
	away.calls = 1 // it asks for a longer wait than there is time
	if o, special := map[string]outcome{
		"empty-body": useless(llm.NotJSON), "html": useless(llm.NotJSON),
		"empty-choices": useless(llm.NoChoices), "null-content": useless(llm.Empty),
		"refusal": useless(llm.Refused), "cut": useless(llm.Truncated),
		"item-2mb": useless(llm.TooLarge), "items-10k": useless(llm.TooLarge), "endless": useless(llm.TooLarge), "gzip-bomb": useless(llm.TooLarge),
		"400": {status: 400, kind: memory.ErrUnavailable, calls: 1}, "404": {status: 404, kind: memory.ErrUnavailable, calls: 1},
		"401": {status: 401, kind: memory.ErrDenied, calls: 1},
		"500": {status: 500, kind: memory.ErrUnavailable, calls: 3}, "503": {status: 503, kind: memory.ErrUnavailable, calls: 3},
		"429": busy, "429-negative": busy, "429-garbage": busy, "429-5s": away, "429-1d": away, "429-date": away,
		"hang": slow, "drip": slow, "headers-then-hang": slow, "continue-forever": slow,
		"reset": broken, "length-too-long": broken, "length-too-short": broken, "chunked-garbage": broken,
	}[b.Name]; special {
		return o
	}
	if b.Class == judge.Elsewhere {
		return outcome{kind: memory.ErrDenied, calls: 1}
	}
	return outcome{calls: 1} // whatever its text says, it is an answer
}

// TestEveryReply holds the client against every behaviour of the stub, whole
// and streamed, over real HTTP.
func TestEveryReply(t *testing.T) {
	var strayed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(other.Close)
	for _, b := range judge.Behaviours() {
		for _, streaming := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", b.Name, streaming), func(t *testing.T) {
				t.Parallel()
				s := judge.NewServer(t)
				s.RedirectTo(other.URL)
				s.Always(b.Name)
				client := connect(t, s.URL, func(c *llm.Config) { c.MaxReplyBytes, c.Timeout = 64<<10, time.Minute }, egress.Options{})
				want := expected(b)
				ctx := t.Context()
				if want.calls == 1 && want.kind == memory.ErrUnavailable && want.class == "" {
					short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
					defer cancel()
					ctx = short
				}
				req := ask("I like tea.")
				var streamed strings.Builder
				if streaming {
					req.Stream = func(delta string) { streamed.WriteString(delta) }
					want = streamedOutcome(b, want)
				}
				start := time.Now()
				reply, err := client.Chat(ctx, req)
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("took %s", took)
				}
				got := outcomeOf(err, len(s.Calls()))
				if got != want {
					t.Errorf("got  %v\nwant %v\n(%v)", got, want, err)
				}
				if reply.Usage.Calls != got.calls {
					t.Errorf("usage counts %d calls, the server %d", reply.Usage.Calls, got.calls)
				}
				if streaming && err == nil && streamed.String() != reply.Text {
					t.Errorf("streamed %q, answered %q", streamed.String(), reply.Text)
				}
				if err != nil && strings.Contains(err.Error()+memory.HintOf(err), key) {
					t.Errorf("the key stands in %q", err)
				}
			})
		}
	}
	t.Cleanup(func() {
		if n := strayed.Load(); n != 0 {
			t.Errorf("%d requests went to another host", n)
		}
	})
}

// streamedOutcome is the outcome where it differs for a stream.
func streamedOutcome(b judge.Behaviour, o outcome) outcome {
	if b.Name == "length-too-short" { // its end is the end that was announced, and no frame of a stream came
		return outcome{class: llm.NotJSON, kind: memory.ErrUnavailable, calls: 1}
	}
	return o
}

func TestAnswer(t *testing.T) {
	s := judge.NewServer(t)
	s.Script(judge.Answer{Text: "Lisbon, since May."}, judge.Answer{Text: "Porto — naïve 日本"})
	client := connect(t, s.URL, nil, egress.Options{})

	reply, err := client.Chat(t.Context(), ask("Where do I live?"))
	if err != nil {
		t.Fatal(err)
	}
	if reply.Text != "Lisbon, since May." || reply.Model != "stub" || reply.FinishReason != "stop" {
		t.Errorf("answer %+v", reply)
	}
	if want := (llm.Usage{Calls: 1, TokensIn: 4, TokensOut: 5}); reply.Usage != want {
		t.Errorf("usage %+v, want %+v", reply.Usage, want)
	}
	req := ask("And now?")
	var pieces []string
	req.Stream = func(delta string) { pieces = append(pieces, delta) }
	reply, err = client.Chat(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if joined := strings.Join(pieces, ""); len(pieces) < 2 || joined != reply.Text || joined != "Porto — naïve 日本" {
		t.Errorf("pieces %q, answer %q", pieces, reply.Text)
	}
	if reply.Usage.Estimated || reply.Usage.TokensOut == 0 {
		t.Errorf("usage of a stream: %+v", reply.Usage)
	}
	if auth := s.Calls()[0].Auth; auth != "Bearer "+key {
		t.Errorf("Authorization %q", auth)
	}
}

func TestTools(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", streaming), func(t *testing.T) {
			s := judge.NewServer(t)
			s.Script(judge.Answer{Text: "Let me look.", ToolCalls: []judge.ToolCall{
				{Name: "memory_search", Arguments: `{"text":"tea, grün"}`}, {Name: "memory_list", Arguments: `{}`}}})
			client := connect(t, s.URL, nil, egress.Options{})
			req := llm.Request{
				Messages: []llm.Message{
					{Role: llm.System, Content: "Be brief."},
					{Role: llm.Developer, Content: "--- RELEVANT MEMORY ---"},
					{Role: llm.User, Content: "What tea?"},
					{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "call_9", Name: "memory_get", Arguments: `{"handle":"MEM-1"}`}}},
					{Role: llm.Tool, ToolCallID: "call_9"},
				},
				Tools:     []llm.ToolSpec{{Name: "memory_search", Description: "Find.", Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}},
				MaxTokens: 77,
			}
			if streaming {
				req.Stream = func(string) {}
			}
			reply, err := client.Chat(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			want := []llm.ToolCall{{ID: "call_0", Name: "memory_search", Arguments: `{"text":"tea, grün"}`}, {ID: "call_1", Name: "memory_list", Arguments: `{}`}}
			if reply.Text != "Let me look." || reply.FinishReason != "tool_calls" || fmt.Sprint(reply.ToolCalls) != fmt.Sprint(want) {
				t.Errorf("reply %+v, want the calls %+v", reply, want)
			}
			sent := s.Calls()[0].Request
			if len(sent.Tools) != 1 || sent.Tools[0].Function.Name != "memory_search" || !strings.Contains(string(sent.Tools[0].Function.Parameters), `"text"`) {
				t.Errorf("tools sent: %+v", sent.Tools)
			}
			if sent.MaxTokens != 77 || sent.MaxCompletionTokens != 0 {
				t.Errorf("max_tokens %d, max_completion_tokens %d", sent.MaxTokens, sent.MaxCompletionTokens)
			}
			if m := sent.Messages; m[1].Role != "system" || m[3].ToolCalls[0].ID != "call_9" || m[4].ToolCallID != "call_9" || m[4].Content == "" {
				t.Errorf("messages sent: %+v", m)
			}
		})
	}
}

func TestOpenAISpeaksItsOwnDialect(t *testing.T) {
	s := judge.NewServer(t)
	for model, wantTemperature := range map[string]bool{"gpt-4o": true, "o3-mini": false, "gpt-5-mini": false} {
		client := connect(t, s.URL, func(c *llm.Config) { c.Provider, c.Model = llm.OpenAI, model }, egress.Options{})
		req := ask("hello")
		req.Messages = append(req.Messages, llm.Message{Role: llm.Developer, Content: "x"})
		zero := 0.0
		req.MaxTokens, req.Temperature = 50, &zero
		if _, err := client.Chat(t.Context(), req); err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		calls := s.Calls()
		sent := calls[len(calls)-1].Request
		if sent.MaxCompletionTokens != 50 || sent.MaxTokens != 0 || sent.Messages[1].Role != "developer" {
			t.Errorf("%s: sent %+v", model, sent)
		}
		if got := sent.Temperature != nil && *sent.Temperature < 1e-30; got != wantTemperature {
			t.Errorf("%s: temperature %v, want one: %v", model, sent.Temperature, wantTemperature)
		}
	}
}

// picky is an endpoint that answers 400 to what it does not know.
func picky(t *testing.T, objection func(body string) (status int, message string)) (url string, bodies func() []string) {
	var mu sync.Mutex
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
			t.Error(err)
		}
		mu.Lock()
		seen = append(seen, string(raw))
		mu.Unlock()
		if status, message := objection(string(raw)); status != 0 {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, message)
			return
		}
		if strings.Contains(string(raw), `"stream":true`) {
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, seen...)
	}
}

func formatOf(body string) string {
	switch {
	case strings.Contains(body, `"json_schema"`):
		return "schema"
	case strings.Contains(body, `"json_object"`):
		return "object"
	}
	return "plain"
}

func TestStepsDownAndRemembers(t *testing.T) {
	for name, tc := range map[string]struct {
		objection func(string) (int, string)
		want      []string // formats of the requests of two calls
		fails     bool
	}{
		"has everything": {func(string) (int, string) { return 0, "" }, []string{"schema", "schema"}, false},
		"no schema": {func(b string) (int, string) {
			if formatOf(b) == "schema" {
				return 400, "response_format json_schema is not supported"
			}
			return 0, ""
		}, []string{"schema", "object", "object"}, false},
		"no format at all, and no words": {func(b string) (int, string) {
			if formatOf(b) != "plain" {
				return 422, ""
			}
			return 0, ""
		}, []string{"schema", "object", "plain", "plain"}, false},
		"says so by 404": {func(b string) (int, string) {
			if formatOf(b) == "schema" {
				return 404, "No endpoints found that support structured outputs"
			}
			return 0, ""
		}, []string{"schema", "object", "object"}, false},
		"objects to something else": {func(string) (int, string) { return 400, "bad temperature" }, []string{"schema", "object", "plain", "schema", "object", "plain"}, true},
		"too long":                  {func(string) (int, string) { return 400, "This model's maximum context length is 10 tokens" }, []string{"schema", "schema"}, true},
		"no such model":             {func(string) (int, string) { return 404, "no such model" }, []string{"schema", "schema"}, true},
		"wrong key":                 {func(string) (int, string) { return 401, "response_format" }, []string{"schema", "schema"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			url, bodies := picky(t, tc.objection)
			client := connect(t, url, nil, egress.Options{})
			for range 2 {
				_, usage, err := client.For("default").Complete(t.Context(), "system", "user", json.RawMessage(`{"type":"object"}`))
				if (err != nil) != tc.fails {
					t.Errorf("%v, want a failure: %v", err, tc.fails)
				}
				if usage.Calls < 1 {
					t.Errorf("usage %+v", usage)
				}
			}
			var got []string
			for _, b := range bodies() {
				got = append(got, formatOf(b))
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("asked in the formats %v, want %v", got, tc.want)
			}
		})
	}
}

func TestEndpointWithoutStreamOptions(t *testing.T) {
	url, bodies := picky(t, func(b string) (int, string) {
		if strings.Contains(b, "stream_options") {
			return 422, "Extra inputs are not permitted: stream_options"
		}
		return 0, ""
	})
	client := connect(t, url, nil, egress.Options{})
	for range 2 {
		req := ask("hello")
		req.Stream = func(string) {}
		reply, err := client.Chat(t.Context(), req)
		if err != nil || reply.Text != "ok" || !reply.Usage.Estimated || reply.Usage.TokensIn != 2 || reply.Usage.TokensOut != 1 {
			t.Errorf("%+v, %v", reply, err)
		}
	}
	if n := len(bodies()); n != 3 {
		t.Errorf("%d requests, want 3: what helped is remembered", n)
	}
}

// scripted is an endpoint that answers with these bodies, one a request, the
// last one for ever.
func scripted(t *testing.T, bodies ...string) (url string, calls *atomic.Int32) {
	calls = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(calls.Add(1))
		fmt.Fprint(w, bodies[min(n, len(bodies))-1])
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", calls
}

func TestStreams(t *testing.T) {
	const piece, end = `data: {"choices":[{"delta":{"content":"Hello"}}]}` + "\n\n", `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	const done = "data: [DONE]\n\n"
	for name, tc := range map[string]struct {
		body  string
		text  string
		kind  memory.Kind
		class llm.ReplyClass
		calls int32
	}{
		"whole":                       {piece + end + done, "Hello", "", "", 1},
		"without the end mark":        {piece + end, "Hello", "", "", 1},
		"comments between":            {strings.Repeat(": keep-alive\n\n", 400) + piece + end + done, "Hello", "", "", 1},
		"ends in the middle":          {piece, "Hello", memory.ErrUnavailable, "", 1}, // part of it has been shown
		"ends before the first word":  {`data: {"choices":[{"delta":{"role":"assistant"}}]}` + "\n\n" + done, "", memory.ErrUnavailable, "", 3},
		"an error inside":             {`data: {"error":{"message":"overloaded","code":503}}` + "\n\n" + done, "", memory.ErrUnavailable, "", 3},
		"an error after a word":       {piece + `data: {"error":{"message":"overloaded"}}` + "\n\n" + done, "Hello", memory.ErrUnavailable, "", 1},
		"not a stream":                {`{"choices":[{"message":{"content":"Hello"}}]}`, "", memory.ErrUnavailable, llm.NotJSON, 1},
		"a broken frame":              {"data: {\"choices\":\n\n" + done, "", memory.ErrUnavailable, llm.NotJSON, 1},
		"filtered":                    {piece + `data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}` + "\n\n" + done, "Hello", memory.ErrUnavailable, llm.Refused, 1},
		"an answer over the limit":    {strings.Repeat(piece, 300) + end + done, "", memory.ErrUnavailable, llm.TooLarge, 1},
		"more bytes than any answer":  {strings.Repeat(`data: {"choices":[{"delta":{"reasoning_content":"`+strings.Repeat("hm ", 1000)+`"}}]}`+"\n\n", 100), "", memory.ErrUnavailable, llm.TooLarge, 1},
		"tool calls without an index": {`data: {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}}]}}]}` + "\n\n" + end + done, "", "", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			url, calls := scripted(t, tc.body)
			client := connect(t, url, func(c *llm.Config) { c.MaxReplyBytes = 1000 }, egress.Options{})
			req := ask("hello")
			var shown strings.Builder
			req.Stream = func(d string) { shown.WriteString(d) }
			reply, err := client.Chat(t.Context(), req)
			got := outcomeOf(err, int(calls.Load()))
			if want := (outcome{kind: tc.kind, class: tc.class, calls: int(tc.calls)}); got != want {
				t.Errorf("got %v, want %v (%v)", got, want, err)
			}
			if tc.text != "" && shown.String() != tc.text {
				t.Errorf("shown %q, want %q", shown.String(), tc.text)
			}
			if tc.class != llm.TooLarge && reply.Text != shown.String() {
				t.Errorf("reply %q, shown %q", reply.Text, shown.String())
			}
		})
	}
}

func TestContentAsParts(t *testing.T) {
	url, _ := scripted(t, `{"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]},"finish_reason":"stop"}]}`)
	reply, err := connect(t, url, nil, egress.Options{}).Chat(t.Context(), ask("hi"))
	if err != nil || reply.Text != "Hello" {
		t.Errorf("%q, %v", reply.Text, err)
	}
}

func TestUselessAnswerCarriesWhatThereIs(t *testing.T) {
	s := judge.NewServer(t)
	client := connect(t, s.URL, nil, egress.Options{})
	s.Next("cut", "refusal", "null-content")
	s.Script(judge.Answer{Text: "0123456789"})
	for _, want := range []string{"01234", "I'm sorry, I can't help with that.", ""} {
		_, err := client.Chat(t.Context(), ask("x"))
		var reply *llm.ReplyError
		if !errors.As(err, &reply) || reply.Text != want {
			t.Errorf("%v with %q, want %q", err, reply.Text, want)
		}
		if want != "" && strings.Contains(err.Error(), want) {
			t.Errorf("the model's words stand in the error: %q", err)
		}
	}
	s.Next("refusal", "cut", "html", "503", "503", "503")
	s.Script(judge.Answer{Text: "0123456789"})
	for _, want := range []string{"I'm sorry, I can't help with that.", "01234", ""} {
		text, usage, err := client.For("default").Complete(t.Context(), "s", "u", nil)
		if err != nil || text != want || usage.Calls != 1 {
			t.Errorf("Complete() = %q, %+v, %v, want %q for the parser to find", text, usage, err, want)
		}
	}
	if _, usage, err := client.For("default").Complete(t.Context(), "s", "u", nil); !errors.Is(err, memory.ErrUnavailable) || usage.Calls != 3 {
		t.Errorf("Complete of an endpoint that is down: %+v, %v", usage, err)
	}
}

func TestKeyStaysSecret(t *testing.T) {
	s := judge.NewServer(t)
	s.Always("401")
	client := connect(t, s.URL, nil, egress.Options{})
	_, err := client.Chat(t.Context(), ask("x"))
	if err == nil || !strings.Contains(err.Error(), "[key]") || strings.Contains(fmt.Sprintf("%v %+v %#v %s", err, err, err, memory.HintOf(err)), key) {
		t.Errorf("%#v", err)
	}
	if memory.HintOf(err) != "check model.key and that it may use model.name" {
		t.Errorf("hint %q", memory.HintOf(err))
	}
}

func TestEndpointsWordsAreCleaned(t *testing.T) {
	url, _ := picky(t, func(string) (int, string) {
		return 400, "bad\x1b[2J request\u202e \n\t" + strings.Repeat("x", 5000)
	})
	_, err := connect(t, url, nil, egress.Options{}).Chat(t.Context(), ask("x"))
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\n\u202e") || len(err.Error()) > 400 {
		t.Errorf("%q", err)
	}
}

func TestHints(t *testing.T) {
	s := judge.NewServer(t)
	s.RedirectTo("http://192.0.2.1/")
	client := connect(t, s.URL, func(c *llm.Config) { c.MaxRetries = 0 }, egress.Options{})
	for name, want := range map[string]string{
		"307": "if you trust the place that it leads to, put that into model.base_url", "html": "check model.base_url: it usually ends in /v1",
		"404": "check model.base_url (it usually ends in /v1) and model.name", "503": "try again later; the endpoint has trouble",
	} {
		s.Next(name)
		if _, err := client.Chat(t.Context(), ask("x")); memory.HintOf(err) != want {
			t.Errorf("%s: hint %q, want %q (%v)", name, memory.HintOf(err), want, err)
		}
	}
}

func TestCertificateThatDoesNotHold(t *testing.T) {
	for fault, want := range map[judge.TLSFault]outcome{
		judge.NoFault: {calls: 1}, judge.Untrusted: {kind: memory.ErrDenied}, judge.Expired: {kind: memory.ErrDenied}, judge.OtherName: {kind: memory.ErrDenied},
	} {
		s, roots := judge.NewTLSServer(t, fault)
		_, err := connect(t, s.URL, nil, egress.Options{RootCAs: roots}).Chat(t.Context(), ask("x"))
		if got := outcomeOf(err, len(s.Calls())); got != want {
			t.Errorf("%q: got %v, want %v (%v)", fault, got, want, err)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String() + "/v1"
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	reply, err := connect(t, url, nil, egress.Options{}).Chat(t.Context(), ask("x"))
	if !errors.Is(err, memory.ErrUnavailable) || memory.HintOf(err) != "is the endpoint running? check model.base_url" || reply.Usage.Calls != 3 {
		t.Errorf("%v (%q), %+v", err, memory.HintOf(err), reply.Usage)
	}
}

func TestCancel(t *testing.T) {
	s := judge.NewServer(t)
	s.Always("hang")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := connect(t, s.URL, nil, egress.Options{}).Chat(ctx, ask("x"))
	if !errors.Is(err, context.Canceled) || len(s.Calls()) != 1 {
		t.Errorf("%v after %d calls", err, len(s.Calls()))
	}
}

func TestRequestsThatAreNotSent(t *testing.T) {
	s := judge.NewServer(t)
	client := connect(t, s.URL, func(c *llm.Config) { c.ContextWindow = 100 }, egress.Options{})
	for name, req := range map[string]llm.Request{
		"no messages":   {},
		"empty message": {Messages: []llm.Message{{Role: llm.User}}},
		"too long":      ask(strings.Repeat("word ", 100)),
	} {
		if _, err := client.Chat(t.Context(), req); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
	old := connect(t, s.URL, func(c *llm.Config) { c.Model = "text-davinci-003" }, egress.Options{})
	if _, err := old.Chat(t.Context(), ask("x")); !errors.Is(err, memory.ErrInvalid) || memory.HintOf(err) == "" {
		t.Errorf("a model without chat: %v, want invalid with a hint", err)
	}
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestNewRefuses(t *testing.T) {
	valid := llm.Config{Provider: llm.Generic, BaseURL: "http://localhost:11434/v1", Model: "m"}
	for field, edit := range map[string]func(*llm.Config){
		"model.provider":    func(c *llm.Config) { c.Provider = "offline" },
		"model.base_url":    func(c *llm.Config) { c.BaseURL = "" },
		"model.name":        func(c *llm.Config) { c.Model = "" },
		"model.max_retries": func(c *llm.Config) { c.MaxRetries = -1 },
	} {
		c := valid
		edit(&c)
		if _, err := llm.New(c, http.DefaultClient, time.Now, never); memory.FieldOf(err) != field {
			t.Errorf("%v, want a complaint about %s", err, field)
		}
	}
	own, err := llm.New(llm.Config{Provider: llm.OpenAI, Model: "gpt-4o"}, http.DefaultClient, time.Now, never)
	if err != nil || own.Name() != "gpt-4o" {
		t.Errorf("OpenAI's own endpoint: %v", err)
	}
}

func TestBudget(t *testing.T) {
	s := judge.NewServer(t)
	ledger := spend.New(t.TempDir()+"/spend.json", func(a memory.AgentID) spend.Limits {
		return spend.Limits{DailyTokens: 2500, DailyCalls: 4}
	}, time.Now)
	client := connect(t, s.URL, func(c *llm.Config) { c.Spend = ledger }, egress.Options{})
	s.Next("503", "good")
	reply, err := client.Chat(t.Context(), ask("12345678"))
	if err != nil {
		t.Fatal(err)
	}
	day, err := ledger.Today("default")
	if err != nil {
		t.Fatal(err)
	}
	if want := (spend.Used{Calls: 2, TokensIn: reply.Usage.TokensIn, TokensOut: reply.Usage.TokensOut}); day.Used != want || day.Used.Tokens() == 0 {
		t.Errorf("the ledger says %+v, want %+v", day.Used, want)
	}
	big := ask("x")
	big.MaxTokens = 5000
	var over *spend.OverError
	if _, err := client.Chat(t.Context(), big); !errors.As(err, &over) || over.What != "tokens" {
		t.Errorf("over the tokens: %v", err)
	}
	s.Always("503")
	if _, err := client.Chat(t.Context(), ask("x")); !errors.As(err, &over) || over.What != "calls" {
		t.Errorf("over the calls in the middle of retries: %v", err)
	}
	if n := len(s.Calls()); n != 4 {
		t.Errorf("%d calls were made of 4", n)
	}
}

// TestMixLeavesNothingBehind throws random behaviours at many callers at once.
func TestMixLeavesNothingBehind(t *testing.T) {
	const callers, each, limit = 8, 25, 150 * time.Millisecond
	s := judge.NewServer(t)
	s.RedirectTo("http://192.0.2.1/")
	s.Mix(7)
	before := openFiles(t)
	client := connect(t, s.URL, func(c *llm.Config) { c.Timeout, c.MaxRetries = limit, 1 }, egress.Options{})
	var wg sync.WaitGroup
	var answered, failed atomic.Int32
	for i := range callers {
		wg.Go(func() {
			for n := range each {
				req := ask("I like tea.")
				if (i+n)%2 == 0 {
					req.Stream = func(string) {}
				}
				start := time.Now()
				_, err := client.Chat(t.Context(), req)
				if took := time.Since(start); took > limit+10*time.Second {
					t.Errorf("took %s, limit %s", took, limit)
				}
				if err == nil {
					answered.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	client.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after := openFiles(t); after > before+2 {
		t.Errorf("%d files are open, %d were before", after, before)
	}
	t.Logf("%d answered, %d failed, %d calls", answered.Load(), failed.Load(), len(s.Calls()))
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("cannot count open files here: %v", err)
	}
	return len(list)
}

// TestGarbageIsChargedWithinReason has an endpoint send megabytes and no count, or
// an absurd count: neither fills a day's account up.
func TestGarbageIsChargedWithinReason(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		most int
		want llm.ReplyClass
	}{
		"2 MB without a count": {`{"choices":[{"message":{"content":"` + strings.Repeat("garbage ", 2<<20/8) + `"},"finish_reason":"stop"}]}`, 16_000, llm.TooLarge},
		"an absurd count":      {`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":900000000}}`, 32_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if _, err := io.WriteString(w, tc.body); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(s.Close)
			client := connect(t, s.URL, func(c *llm.Config) { c.ContextWindow = 32_000 }, egress.Options{})
			reply, err := client.Chat(t.Context(), ask("I like tea."))
			var useless *llm.ReplyError
			if errors.As(err, &useless) != (tc.want != "") || useless != nil && useless.Class != tc.want {
				t.Errorf("Chat: %v", err)
			}
			if reply.Usage.TokensOut > tc.most || reply.Usage.TokensOut == 0 {
				t.Errorf("charged %+v, want at most %d", reply.Usage, tc.most)
			}
		})
	}
}
