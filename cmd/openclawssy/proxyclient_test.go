package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// openaiVersion is the version of the official client that the proxy is tested with.
const openaiVersion = "7.57.0"

// TestProxyWithTheOfficialClient has the client from npm talk to the proxy.
func TestProxyWithTheOfficialClient(t *testing.T) {
	script := nodeProgram(t, "openai.mjs", "openai@"+openaiVersion)
	x := proxyHome(t)
	x.provider.will(actAsAsked)
	cmd := script("BASE_URL="+x.url+"/v1", "TOKEN="+x.token)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, raw, errs.String())
	}
	type failure struct {
		Error, Message, Retry string
		Status                int
	}
	var got struct {
		Plain, Session, Streamed, Tools string
		Models                          []string
		Vector                          []float64
		Busy, Page, Broken              failure
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if got.Plain != "Good to know." || got.Session != "js-1" || got.Streamed != "On Mondays." || got.Tools != "It is Monday, so no." ||
		!slices.Equal(got.Models, []string{"stub-1"}) || !slices.Equal(got.Vector, []float64{.5, .25}) {
		t.Errorf("the client got %s", raw)
	}
	if b := got.Busy; b.Error != "RateLimitError" || b.Status != 429 || b.Retry != "7" || !strings.Contains(b.Message, "too many") {
		t.Errorf("busy: %+v", b)
	}
	if p := got.Page; p.Status != 502 || !strings.Contains(p.Message, "Bad Gateway") {
		t.Errorf("page: %+v", p)
	}
	if got.Broken.Error == "" {
		t.Errorf("an answer that broke off looks whole: %s", raw)
	}
	x.wants("user_message: The studio closes on Mondays.", "assistant_output: Good to know.",
		"user_message: On which day is the studio closed?", "assistant_output: On Mondays.",
		"user_message: Is the studio open today?", "tool_call: weekday {}", "tool_result: Monday", "assistant_output: It is Monday, so no.",
		"user_message: be busy", "user_message: show a page", "user_message: break off", "assistant_output: half of ")
	if asked := x.provider.got()[1]; !strings.Contains(asked, "RELEVANT MEMORY") || !strings.Contains(asked, "closes on Mondays") {
		t.Errorf("memory was not in the prompt: %s", asked)
	}
}

// actAsAsked is a provider whose answers follow from what it is asked.
func actAsAsked(w http.ResponseWriter, r *http.Request, body []byte) {
	var req struct {
		Stream   bool
		Messages []struct {
			Role    string
			Content any
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/v1/models":
		fmt.Fprint(w, `{"object":"list","data":[{"id":"stub-1","object":"model"}]}`)
		return
	case "/v1/embeddings":
		fmt.Fprint(w, `{"object":"list","data":[{"index":0,"embedding":[0.5,0.25]}]}`)
		return
	}
	if err := json.Unmarshal(body, &req); err != nil || len(req.Messages) == 0 {
		http.Error(w, "no chat", http.StatusBadRequest)
		return
	}
	last := req.Messages[len(req.Messages)-1]
	stream := func(deltas ...string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range deltas {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"stub-1\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", d)
			w.(http.Flusher).Flush()
		}
	}
	finish := func(reason string) {
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", reason)
	}
	switch said := fmt.Sprint(last.Content); {
	case last.Role == "tool":
		stream(`{"role":"assistant","content":"It is `+said+`,"}`, `{"content":" so no."}`)
		finish("stop")
	case strings.Contains(said, "open today"):
		stream(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_9","type":"function","function":{"name":"weekday","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`)
		finish("tool_calls")
	case strings.Contains(said, "which day"):
		stream(`{"role":"assistant","content":"On "}`, `{"content":"Mondays."}`)
		finish("stop")
	case said == "be busy":
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"too many requests","type":"rate_limit"}}`)
	case said == "show a page":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "<html><h1>Bad Gateway</h1></html>")
	case said == "break off":
		stream(`{"role":"assistant","content":"half of "}`)
		panic(http.ErrAbortHandler)
	default:
		says("Good to know.")(w, r, body)
	}
}
