package llm

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// canned answers every request with the same body.
type canned []byte

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c))}, nil
}

// FuzzAnswer holds that whatever bytes an endpoint sends, whole or as a stream,
// the client ends with an answer of some use or an error of a kind, and that
// what was streamed is what is answered.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"message":{"content":"hi","tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}`,
		`{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":-9223372036854775808,"completion_tokens":9223372036854775807}}`,
		`{"choices":[{"message":{"content":[{"type":"text","text":"hi"}]}}]}`, `{"choices":null}`, `null`, `[]`, `{"error":{"message":["a","b"],"code":[1]}}`,
		"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1},{\"index\":7,\"id\":\"b\"},{\"function\":{\"arguments\":\"}\"}}]}}]}\n\n",
		"data: {\"error\":{\"message\":\"x\"}}\n\n", ": comment\n\n", "data:", "\xff\xfe",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		if len(body) > 4<<10 {
			t.Skip("longer than an endpoint's answer need be to be odd")
		}
		client, err := New(Config{Provider: Generic, BaseURL: "http://localhost/v1", Model: "m"}, &http.Client{Transport: canned(body)}, time.Now, func() float64 { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		req, shown := Request{Messages: []Message{{Role: User, Content: "x"}}}, ""
		if stream {
			req.Stream = func(delta string) { shown += delta }
		}
		reply, err := client.Chat(t.Context(), req)
		switch {
		case err == nil && reply.Text == "" && len(reply.ToolCalls) == 0:
			t.Error("an answer of nothing")
		case err != nil && memory.KindOf(err) != memory.ErrUnavailable:
			t.Errorf("%v is %s", err, memory.KindOf(err))
		case stream && reply.Text != shown:
			t.Errorf("answered %q, showed %q", reply.Text, shown)
		}
		if u := reply.Usage; u.Calls < 1 || u.TokensIn < 0 || u.TokensOut < 0 || u.TokensIn+u.TokensOut < 0 {
			t.Errorf("usage %+v", u)
		}
		for _, call := range reply.ToolCalls {
			if call.ID == "" {
				t.Errorf("a call without an id: %+v", call)
			}
		}
	})
}

// FuzzRetryAfter holds that no header makes the client wait less than nothing or
// for ever.
func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, seed := range []string{"", "5", "-1", "86400", "1e9", "99999999999999999999999", " 7 ", "soon", "Fri, 20 Nov 2026 12:00:05 GMT", "Fri, 20 Nov 1926 12:00:05 GMT", "Fri, 20 Nov 9026 12:00:05 GMT"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if wait := retryAfter(http.Header{"Retry-After": {value}}, now); wait < 0 || wait > maxRetryAfter {
			t.Errorf("%q: %s", value, wait)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, " 7 ": 7 * time.Second, "0": 0, "-1": 0, "1.5": 0, "soon": 0,
		"86400": 24 * time.Hour, "99999999999": maxRetryAfter, "99999999999999999999999": maxRetryAfter,
		"Fri, 20 Nov 2026 12:00:05 GMT": 5 * time.Second, "Fri, 20 Nov 2026 11:00:00 GMT": 0, "Sat, 20 Nov 3026 12:00:05 GMT": maxRetryAfter,
		"Friday, 20-Nov-26 12:01:00 GMT": time.Minute,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("Retry-After %q is %s, want %s", value, got, want)
		}
	}
}
