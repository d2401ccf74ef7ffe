package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/proxy"
)

// provider is a stub of a model provider that keeps the very bytes that it is sent.
type provider struct {
	url string

	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	answer func(w http.ResponseWriter, r *http.Request, body []byte)
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.bodies, p.heads = append(p.bodies, string(body)), append(p.heads, r.Header.Clone())
		answer := p.answer
		p.mu.Unlock()
		if answer == nil {
			answer = says("Noted.")
		}
		answer(w, r, body)
	}))
	p.url = server.URL + "/v1"
	t.Cleanup(server.Close)
	return p
}

// will sets how requests are answered from now on.
func (p *provider) will(answer func(http.ResponseWriter, *http.Request, []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// got returns the bodies so far.
func (p *provider) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.bodies...)
}

func (p *provider) last() string {
	all := p.got()
	return all[len(all)-1]
}

// says answers with a text, whole.
func says(text string) func(http.ResponseWriter, *http.Request, []byte) {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return answers(fmt.Sprintf(`{"role":"assistant","content":%s}`, raw))
}

func answers(message string) func(http.ResponseWriter, *http.Request, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","model":"stub-1","choices":[{"index":0,"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":3}}`, message)
	}
}

// proxied is a house with a provider behind it.
type proxied struct {
	*served
	provider *provider
	token    string
}

func proxyHome(t *testing.T, set ...string) *proxied {
	t.Helper()
	p := newProvider(t)
	x := &proxied{provider: p, served: serveHome(t, append([]string{"model.provider=generic", "model.base_url=" + p.url, "model.name=stub-1"}, set...)...)}
	x.token = x.served.token(access.Write, "studio")
	return x
}

// complete asks for a chat completion, and returns the answer with its body read.
func (x *proxied) complete(body string, headers ...string) (*http.Response, string) {
	x.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), "POST", x.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+x.token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp, string(raw)
}

// event is what is looked at of an event.
type event struct {
	Type      string
	Text      string
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	Metadata  map[string]any
}

// told returns the turns in the log, each as its type and text.
func (x *proxied) told() []string {
	x.t.Helper()
	status, body := x.ask(x.token, "POST", "/v1/agents/studio/ops/events.tail", `{"limit":1000}`)
	var doc struct{ Events []event }
	if err := json.Unmarshal([]byte(body), &doc); err != nil || status != 200 {
		x.t.Fatalf("events: %d %v %s", status, err, body)
	}
	var out []string
	for _, e := range doc.Events {
		switch e.Type {
		case "user_message", "assistant_output", "tool_call", "tool_result":
			out = append(out, e.Type+": "+e.Text)
		}
	}
	return out
}

func (x *proxied) wants(want ...string) {
	x.t.Helper()
	if got := x.told(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		x.t.Errorf("the log holds\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestProxyRemembersAndRecalls(t *testing.T) {
	x := proxyHome(t)
	resp, body := x.complete(`{"model":"openclawssy","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"My green tea must never be sweetened."}]}`)
	if resp.StatusCode != 200 || !strings.Contains(body, "Noted.") || resp.Header.Get(proxy.HeaderError) != "" {
		t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	if first := x.provider.last(); first != `{"model":"stub-1","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"My green tea must never be sweetened."}]}` {
		t.Errorf("the provider got %s", first)
	}
	x.wants("user_message: My green tea must never be sweetened.", "assistant_output: Noted.")

	resp, _ = x.complete("{\"x\": 1.50e+3,\n\"messages\" : [ {\"role\":\"user\",\"content\":\"How do I like my green tea?\"} ] , \"model\":\"other\\u002d2\",\"seed\":10000000000000000000001}", proxy.HeaderSession, "s2")
	got := x.provider.last()
	head, tail, found := strings.Cut(got, `{"role":"user","content":"--- RELEVANT MEMORY ---`)
	block, rest, ended := strings.Cut(tail, `"},`)
	if !found || !ended || head != "{\"x\": 1.50e+3,\n\"messages\" : [ " || rest != "{\"role\":\"user\",\"content\":\"How do I like my green tea?\"} ] , \"model\":\"other\\u002d2\",\"seed\":10000000000000000000001}" || !strings.Contains(block, "never be sweetened") {
		t.Fatalf("the provider got %s", got)
	}
	run := resp.Header.Get(proxy.HeaderRun)
	status, why := x.ask(x.token, "POST", "/v1/agents/studio/ops/memory.why", `{"run":"`+run+`"}`)
	var doc struct {
		Query, Block, Status, Session string
		Today                         struct{ Same bool }
	}
	if err := json.Unmarshal([]byte(why), &doc); err != nil || status != 200 || doc.Query != "How do I like my green tea?" || !strings.Contains(doc.Block, "never be sweetened") || !doc.Today.Same || doc.Status != "ok" || doc.Session != "s2" {
		t.Errorf("why %s: %d %v %s", run, status, err, why)
	}
	if got := resp.Header.Get(proxy.HeaderSession); got != "s2" {
		t.Errorf("session %q", got)
	}
}

func TestProxyToolLoopKeepsItsBlock(t *testing.T) {
	x := proxyHome(t)
	x.complete(`{"messages":[{"role":"user","content":"The kiln in Lisbon is called Vulcan."}]}`)
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"temperature","arguments":"{\"kiln\": \"Vulcan\"}"}}]}`
	x.provider.will(answers(call))
	const start = `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"How hot is the kiln in Lisbon?"}`
	first, _ := x.complete(start+`]}`, proxy.HeaderSession, "loop")
	x.provider.will(says("It is at 900 degrees."))
	second, _ := x.complete(start+`,`+call+`,{"role":"tool","tool_call_id":"call_1","content":"900"}]}`, proxy.HeaderSession, "loop")
	bodies := x.provider.got()
	a, b := bodies[1], bodies[2]
	if !strings.Contains(a, "RELEVANT MEMORY") || !strings.HasPrefix(b, strings.TrimSuffix(a, `]}`)) {
		t.Errorf("the loop's prompts differ:\n%s\n%s", a, b)
	}
	if first.Header.Get(proxy.HeaderRun) == "" || first.Header.Get(proxy.HeaderRun) != second.Header.Get(proxy.HeaderRun) {
		t.Errorf("runs %q and %q", first.Header.Get(proxy.HeaderRun), second.Header.Get(proxy.HeaderRun))
	}
	x.wants("user_message: The kiln in Lisbon is called Vulcan.", "assistant_output: Noted.",
		"user_message: How hot is the kiln in Lisbon?", `tool_call: temperature {"kiln": "Vulcan"}`, "tool_result: 900", "assistant_output: It is at 900 degrees.")
}

func TestProxyStreams(t *testing.T) {
	x := proxyHome(t)
	next := make(chan struct{})
	x.provider.will(func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, part := range []string{"Sour", "dough ", "it is."} {
			if i > 0 {
				<-next
			}
			fmt.Fprintf(w, "data: {\"model\":\"stub-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", part)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	req, err := http.NewRequestWithContext(context.Background(), "POST", x.url+"/v1/chat/completions", strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"Which bread do I bake?"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+x.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var all bytes.Buffer
	buf := make([]byte, 4096)
	for _, want := range []string{"Sour", "dough "} { // each part is here before the next is made
		for !strings.Contains(all.String(), want) {
			n, err := resp.Body.Read(buf)
			if all.Write(buf[:n]); err != nil {
				t.Fatal(err)
			}
		}
		next <- struct{}{}
	}
	if _, err := io.Copy(&all, resp.Body); err != nil || !strings.HasSuffix(all.String(), "data: [DONE]\n\n") {
		t.Fatalf("%v %s", err, all.String())
	}
	x.wants("user_message: Which bread do I bake?", "assistant_output: Sourdough it is.")
}

func TestProxyWithoutProvider(t *testing.T) {
	s := serveHome(t)
	status, body := s.ask(s.token(access.Write, "studio"), "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hello"}]}`)
	if status != 503 || !strings.Contains(body, `"no_model_configured"`) || !strings.Contains(body, "model.base_url") {
		t.Errorf("%d %s", status, body)
	}
}

func TestProxyKnowsWhatWasSaidBeforeItStarted(t *testing.T) {
	p, home := newProvider(t), filepath.Join(t.TempDir(), "home")
	set := []string{"model.provider=generic", "model.base_url=" + p.url, "model.name=stub-1"}
	const history = `{"role":"user","content":"I moved to Lisbon."},{"role":"assistant","content":"Noted."}`
	for i, body := range []string{
		`{"messages":[{"role":"user","content":"I moved to Lisbon."}]}`,
		`{"messages":[` + history + `,{"role":"user","content":"And I bake."}]}`,
		`{"messages":[{"role":"assistant","content":"Noted."},{"role":"user","content":"And I bake."},{"role":"assistant","content":"Noted."},{"role":"user","content":"And I swim."}]}`,
	} {
		s, end := serveAt(t, home, set...)
		x := &proxied{served: s, provider: p}
		x.token = s.token(access.Write, "studio")
		if resp, body := x.complete(body, proxy.HeaderSession, "s1"); resp.StatusCode != 200 || resp.Header.Get(proxy.HeaderError) != "" {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
		if i == 2 {
			x.wants("user_message: I moved to Lisbon.", "assistant_output: Noted.", "user_message: And I bake.", "assistant_output: Noted.",
				"user_message: And I swim.", "assistant_output: Noted.")
		}
		end()
	}
}

func TestProxyModes(t *testing.T) {
	x := proxyHome(t)
	ask := func(mode, text string) (*http.Response, string) {
		resp, _ := x.complete(`{"messages":[{"role":"user","content":"`+text+`"}]}`, proxy.HeaderMemory, mode)
		return resp, x.provider.last()
	}
	ask("write", "The glaze is called Tenmoku.")
	if resp, sent := ask("read", "What is the glaze called?"); !strings.Contains(sent, "Tenmoku") || resp.Header.Get(proxy.HeaderRun) == "" {
		t.Errorf("read: %v %s", resp.Header, sent)
	}
	for _, mode := range []string{"off", "write"} {
		if resp, sent := ask(mode, "And what was the glaze called?"); strings.Contains(sent, "RELEVANT MEMORY") || resp.Header.Get(proxy.HeaderRun) != "" {
			t.Errorf("%s: %v %s", mode, resp.Header, sent)
		}
	}
	if resp, body := x.complete(`{"messages":[]}`, proxy.HeaderMemory, "sometimes"); resp.StatusCode != 400 || !strings.Contains(body, "must be off, read, write or both") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	x.wants("user_message: The glaze is called Tenmoku.", "assistant_output: Noted.", "user_message: And what was the glaze called?", "assistant_output: Noted.")
}

func TestProxyAgentsAndRights(t *testing.T) {
	x := proxyHome(t)
	const body = `{"messages":[{"role":"user","content":"hello"}]}`
	if resp, got := x.complete(body, proxy.HeaderAgent, "other"); resp.StatusCode != 403 || !strings.Contains(got, "not for agent other") {
		t.Errorf("another agent: %d %s", resp.StatusCode, got)
	}
	x.token = x.served.token(access.Read, "studio")
	if resp, got := x.complete(body); resp.StatusCode != 403 {
		t.Errorf("a token that may only read: %d %s", resp.StatusCode, got)
	}
	if len(x.provider.got()) != 0 {
		t.Errorf("the provider was asked")
	}
	x.token = x.served.token(access.Write, "studio")
	x.complete(body)
	for _, h := range x.provider.heads {
		if got := h.Get("Authorization"); got != "" {
			t.Errorf("the provider was shown %q", got)
		}
	}
}

func TestProxyGoesOnWithoutMemory(t *testing.T) {
	x := proxyHome(t)
	dir := filepath.Join(x.home, "agents", "studio", "memory")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events"), []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	resp, body := x.complete(`{"messages":[{"role":"user","content":"Are you there?"}]}`)
	if resp.StatusCode != 200 || !strings.Contains(body, "Noted.") || resp.Header.Get(proxy.HeaderError) == "" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}

// A client that leaves ends the provider's work, and what came is kept.
func TestProxyClientLeaves(t *testing.T) {
	x := proxyHome(t)
	left := make(chan struct{})
	x.provider.will(func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It begins\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	})
	ctx, leave := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", x.url+"/v1/chat/completions", strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"Tell me a long story."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+x.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	leave()
	<-left
	for { // the answer is written once the provider's work has ended
		if told := x.told(); len(told) == 2 {
			if told[1] != "assistant_output: It begins" {
				t.Errorf("written: %q", told)
			}
			return
		}
		runtime.Gosched()
	}
}

// Many requests of the same conversation at once: each message is written once.
func TestProxyParallelRetries(t *testing.T) {
	x := proxyHome(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			req, err := http.NewRequestWithContext(context.Background(), "POST", x.url+"/v1/chat/completions",
				strings.NewReader(`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"}]}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+x.token)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Header.Get(proxy.HeaderError) != "" {
				t.Errorf("%v %v", err, resp.Header)
			}
			resp.Body.Close() //nolint:errcheck // read to its end
		})
	}
	all.Wait()
	x.complete(`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"},{"role":"assistant","content":"Noted."},{"role":"user","content":"four"}]}`)
	x.wants("user_message: one", "assistant_output: two", "user_message: three", "assistant_output: Noted.", "user_message: four", "assistant_output: Noted.")
}

// What is erased while a conversation goes on leaves its prompts too.
func TestProxyForgetsWhatIsErased(t *testing.T) {
	x := proxyHome(t)
	x.complete(`{"messages":[{"role":"user","content":"The kiln in Lisbon is called Vulcan."}]}`, proxy.HeaderSession, "first")
	const again = `{"messages":[{"role":"user","content":"What is the kiln in Lisbon called?"}]}`
	x.complete(again)
	if sent := x.provider.last(); !strings.Contains(sent, "Vulcan") {
		t.Fatalf("nothing was recalled: %s", sent)
	}
	admin := x.served.token(access.Admin, "studio")
	if status, body := x.ask(admin, "POST", "/v1/agents/studio/ops/memory.erase", `{"session":"first","yes":true}`); status != 200 {
		t.Fatalf("erase: %d %s", status, body)
	}
	x.complete(again)
	if sent := x.provider.last(); strings.Contains(sent, "Vulcan") {
		t.Errorf("what was erased is sent on: %s", sent)
	}
}

// A session that fills the model's window is queued to be distilled.
func TestProxyQueuesAFullSession(t *testing.T) {
	x := proxyHome(t, "flush.context_window=4000", "flush.reserve_tokens=1000", "flush.soft_threshold_tokens=500")
	x.complete(`{"messages":[{"role":"user","content":"short"}]}`, proxy.HeaderSession, "long")
	queued := func() bool {
		raw, err := os.ReadFile(filepath.Join(x.home, "agents", "studio", "vitals.json"))
		return err == nil && strings.Contains(string(raw), `"window"`)
	}
	if queued() {
		t.Fatal("queued at once")
	}
	x.complete(`{"messages":[{"role":"user","content":"`+strings.Repeat("many words ", 2000)+`"}]}`, proxy.HeaderSession, "long")
	if !queued() {
		t.Error("a full session is not queued")
	}
}
