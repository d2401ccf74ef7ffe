package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// served is a server of a fresh home with everything behind it, over real HTTP.
type served struct {
	t      *testing.T
	url    string
	home   string
	tokens *access.Store
}

func serveHome(t *testing.T, set ...string) *served {
	t.Helper()
	s, end := serveAt(t, filepath.Join(t.TempDir(), "home"), set...)
	t.Cleanup(end)
	return s
}

// serveAt serves a home until end is called.
func serveAt(t *testing.T, home string, set ...string) (s *served, end func()) {
	t.Helper()
	s = &served{t: t, home: home}
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	app := h.app()
	if err := h.setup(cli.Options{Home: s.home, Set: append(set, "recall.deadline_ms=20000")}); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.tokens, err = h.tokens(); err != nil {
		t.Fatal(err)
	}
	face, err := h.httpServer(app.Catalog, s.tokens)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(face)
	s.url = server.URL
	return s, func() {
		server.Close()
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}
}

// token makes one.
func (s *served) token(right access.Right, agents ...string) string {
	s.t.Helper()
	_, text, err := s.tokens.Create(context.Background(), access.New{Name: "test", Right: right, Agents: agents})
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// ask asks and returns the status and the body.
func (s *served) ask(token, method, path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func TestServeTalksAndRemembers(t *testing.T) {
	s := serveHome(t)
	token := s.token(access.Write, "studio")
	status, body := s.ask(token, "POST", "/v1/agents/studio/runs", `{"text":"My green tea must never be sweetened.","session":"s1","user_id":"mara"}`)
	if status != 200 || !strings.Contains(body, `"session":"s1"`) {
		t.Fatalf("%d %s", status, body)
	}
	status, body = s.ask(token, "POST", "/v1/agents/studio/ops/memory.checkpoint", `{}`)
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	status, body = s.ask(token, "GET", "/v1/agents/studio/recall?q=how+do+I+like+green+tea%3F", "")
	if status != 200 || !strings.Contains(body, "RELEVANT MEMORY") || !strings.Contains(body, "never be sweetened") {
		t.Errorf("recall: %d %s", status, body)
	}
	status, body = s.ask(token, "GET", "/api/admin/memory/studio", "")
	var doc struct {
		Status struct {
			Events int
		}
		Health struct {
			Items      map[string]int
			Embeddings struct {
				Provider, Kernel string
				Texts            int
			}
		}
		Checkpoints, Recalls []any
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || status != 200 {
		t.Fatalf("admin: %d %v %s", status, err, body)
	}
	if e := doc.Health.Embeddings; e.Provider != "lsa" || e.Kernel == "" {
		t.Errorf("embeddings: %s", body)
	}
	if doc.Status.Events < 3 || doc.Health.Items["active"] < 1 || len(doc.Checkpoints) != 1 || len(doc.Recalls) != 1 {
		t.Errorf("admin: %s", body)
	}
}

func TestServeStreams(t *testing.T) {
	s := serveHome(t)
	req, err := http.NewRequestWithContext(context.Background(), "POST", s.url+"/v1/agents/studio/chat", strings.NewReader(`{"text":"I am allergic to walnuts."}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.token(access.Write))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("Content-Type %q", kind)
	}
	var events []string
	var last string
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
			events = append(events, name)
		}
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			last = data
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(events) < 2 || events[0] != "delta" || events[len(events)-1] != "answer" {
		t.Errorf("events %v", events)
	}
	var answer struct{ Agent, Session, Run, Text string }
	if err := json.Unmarshal([]byte(last), &answer); err != nil || answer.Agent != "studio" || answer.Session == "" || answer.Text == "" {
		t.Errorf("%v %s", err, last)
	}
}

func TestServeTakesEventsOnce(t *testing.T) {
	s := serveHome(t)
	token := s.token(access.Write, "studio")
	batch := `{"session":{"id":"thread-7","user_id":"mara","channel":"irc"},"events":[
		{"id":"1","type":"user_message","text":"The boiler was serviced in March.","timestamp":"2026-03-09T10:00:00+01:00"},
		{"id":"2","type":"tool_result","tool":"calendar","text":"next service: March"},
		{"id":"1","type":"user_message","text":"The boiler was serviced in March."}]}`
	for round, want := range []string{`"written":2,"skipped":1,"last_seq":2`, `"written":0,"skipped":3,"last_seq":0`} {
		if status, body := s.ask(token, "POST", "/v1/agents/studio/events", batch); status != 200 || !strings.Contains(body, want) {
			t.Errorf("round %d: %d %s", round, status, body)
		}
	}
	for bad, field := range map[string]string{
		`{"session":{},"events":[{"type":"user_message","text":"x"}]}`:                                                     "session.id",
		`{"session":{"id":"a"},"events":[]}`:                                                                               "events",
		`{"session":{"id":"a"},"events":[{"type":"user_message","text":"ok"},{"type":"checkpoint","text":"x"}]}`:           "events[1].type",
		`{"session":{"id":"a"},"events":[{"type":"tool_result","origin":"user","text":"I am the user"}]}`:                  "events[0].origin",
		`{"session":{"id":"a"},"events":[{"type":"user_message","text":"  "}]}`:                                            "events[0].text",
		`{"session":{"id":"a"},"events":[{"type":"user_message","text":"x","metadata":{"change":{"op":"forget"}}}]}`:       "events[0].metadata.change",
		`{"session":{"id":"thread-7","user_id":"otto"},"events":[{"type":"user_message","text":"another user's thread"}]}`: "",
	} {
		status, body := s.ask(token, "POST", "/v1/agents/studio/events", bad)
		if status != 400 && status != 409 || field != "" && !strings.Contains(body, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	if _, body := s.ask(token, "POST", "/v1/agents/studio/ops/events.tail", `{"limit":10}`); strings.Count(body, `"seq":`) != 2 {
		t.Errorf("refused batches left something: %s", body)
	}
}

func TestServeKeepsAgentsAndRightsApart(t *testing.T) {
	s := serveHome(t)
	writer, reader, stranger := s.token(access.Write, "studio"), s.token(access.Read, "studio"), s.token(access.Admin, "other")
	if status, body := s.ask(writer, "POST", "/v1/agents/studio/runs", `{"text":"The safe's place is behind the Vermeer."}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for _, c := range []struct {
		token, method, path, body string
		want                      int
	}{
		{reader, "POST", "/v1/agents/studio/ops/memory.search", `{"text":"safe"}`, 200},
		{reader, "POST", "/v1/agents/studio/ops/memory.write", `{"title":"x","content":"y"}`, 403},
		{reader, "POST", "/v1/agents/studio/runs", `{"text":"x"}`, 403},
		{reader, "POST", "/v1/agents/studio/events", `{"session":{"id":"a"},"events":[{"type":"user_message","text":"x"}]}`, 403},
		{writer, "POST", "/v1/agents/studio/ops/memory.erase", `{"match":"safe","yes":true}`, 403},
		{writer, "GET", "/metrics", "", 403},
		{stranger, "POST", "/v1/agents/studio/ops/memory.search", `{"text":"safe","scope":"all"}`, 403},
		{stranger, "GET", "/v1/agents/studio/recall?q=safe", "", 403},
		{stranger, "GET", "/api/admin/memory/studio", "", 403},
		{stranger, "POST", "/v1/agents/studio/chat", `{"text":"where is the safe?"}`, 403},
		{stranger, "POST", "/v1/agents/studio/ops/no.such", `{}`, 403},
		{writer, "POST", "/v1/agents/studio/ops/no.such", `{}`, 404},
		{writer, "POST", "/v1/agents/..%2fother/ops/memory.search", `{"text":"x"}`, 400},
		{writer, "GET", "/v1/none", "", 404},
	} {
		if status, body := s.ask(c.token, c.method, c.path, c.body); status != c.want || strings.Contains(body, "Vermeer") && c.want != 200 {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, status, c.want, body)
		}
	}
	if _, body := s.ask(stranger, "GET", "/v1/agents", ""); strings.Contains(body, "studio") {
		t.Errorf("a stranger sees %s", body)
	}
}

// TestServeDescribesEveryOperation reads the description as a client generator
// would.
func TestServeDescribesEveryOperation(t *testing.T) {
	s := serveHome(t)
	token := s.token(access.Read)
	_, listed := s.ask(token, "GET", "/v1/ops", "")
	var ops struct{ Ops []struct{ Name string } }
	if err := json.Unmarshal([]byte(listed), &ops); err != nil || len(ops.Ops) < 80 {
		t.Fatalf("%v: %d operations", err, len(ops.Ops))
	}
	_, described := s.ask(token, "GET", "/openapi.json", "")
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal([]byte(described), &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, m := range methods {
			if ids[m.OperationID] || m.OperationID == "" || m.Responses["200"] == nil {
				t.Errorf("%s %s: id %q", method, path, m.OperationID)
			}
			ids[m.OperationID] = true
		}
	}
	for _, at := range []string{"POST /v1/chat/completions", "POST /v1/embeddings", "GET /v1/models", "GET /v1/models/{model}", "POST /mcp", "GET /v1/agents/{agent}/graph", "GET /v1/agents/{agent}/recall",
		"POST /v1/agents/{agent}/runs", "POST /v1/agents/{agent}/chat", "POST /v1/agents/{agent}/events", "GET /api/admin/memory/{agent}", "GET /v1/agents", "GET /v1/ops", "GET /metrics", "GET /healthz", "GET /openapi.json"} {
		method, path, _ := strings.Cut(at, " ")
		m := doc.Paths[path][strings.ToLower(method)]
		if ok, is := m.Responses["200"].(map[string]any); !is || ok["content"] == nil {
			t.Errorf("%s does not say what it answers with: %v", at, m.Responses)
		}
	}
	for _, o := range ops.Ops {
		if doc.Paths["/v1/agents/{agent}/ops/"+o.Name]["post"].OperationID == "" {
			t.Errorf("%s is not described", o.Name)
		}
	}
}

func TestServeAnswersReadsWithTags(t *testing.T) {
	s := serveHome(t)
	req, err := http.NewRequestWithContext(context.Background(), "GET", s.url+"/v1/ops", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token(access.Read))
	first, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	req.Header.Set("If-None-Match", first.Header.Get("ETag"))
	again, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	raw, err := io.ReadAll(again.Body)
	if err != nil || again.StatusCode != http.StatusNotModified || len(bytes.TrimSpace(raw)) != 0 {
		t.Errorf("%d %d bytes %v", again.StatusCode, len(raw), err)
	}
}

// TestSessionsEndOverHTTP ends a conversation that another program told of, as it may
// over any face: what was said is queued to be distilled, once.
func TestSessionsEndOverHTTP(t *testing.T) {
	s := serveHome(t)
	token := s.token(access.Write, "studio")
	told := fmt.Sprintf(`{"session":{"id":"talk-1"},"events":[{"id":"1","type":"user_message","text":"The studio closes on Mondays.","timestamp":%q},{"id":"2","type":"assistant_output","text":"Noted."}]}`, time.Now().UTC().Format(time.RFC3339))
	if status, body := s.ask(token, "POST", "/v1/agents/studio/events", told); status != 200 {
		t.Fatal(status, body)
	}
	end := func(session string) (status int, queued bool, ended, body string) {
		status, body = s.ask(token, "POST", "/v1/agents/studio/ops/session.end", fmt.Sprintf(`{"session":%q}`, session))
		var got struct {
			Queued bool
			Ended  string
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return status, got.Queued, got.Ended, body
	}
	status, queued, first, body := end("talk-1")
	if status != 200 || !queued {
		t.Fatal(status, body)
	}
	if status, queued, again, body := end("talk-1"); status != 200 || queued || again != first {
		t.Error(status, body, first)
	}
	if status, body := s.ask(s.token(access.Write), "POST", "/v1/agents/ghost/ops/session.end", `{"session":"talk-1"}`); status != 404 {
		t.Error(status, body)
	}
	if _, err := os.Stat(filepath.Join(s.home, "agents", "ghost")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an agent was made by the end of its session: %v", err)
	}
	if status, _, _, body := end("nobody-knows"); status != 404 {
		t.Error(status, body)
	}
	state, err := vitals.Read(filepath.Join(s.home, "agents", "studio"))
	if err != nil || state.Flush == nil || state.Flush.Why != vitals.EdgeEnd || state.Flush.State != vitals.FlushQueued {
		t.Errorf("%v: %+v", err, state.Flush)
	}
}

// TestGraphIsServedBehindTheToken asks for the graph's page, which anybody may see, and
// for the graph, which needs a token of that agent.
func TestGraphIsServedBehindTheToken(t *testing.T) {
	s := serveHome(t)
	owner := s.token(access.Write, "studio")
	node := `{"node_type":"semantic","label":"Boat","payload":{"fact":"The boat is called Nautilus."},"tags":["boat"]}`
	if status, body := s.ask(owner, "POST", "/v1/agents/studio/ops/graph.add_node", node); status != 200 {
		t.Fatal(status, body)
	}
	for _, page := range []string{"/graph/?agent=studio", "/graph/main.js", "/graph/style.css"} {
		if status, body := s.ask("", "GET", page, ""); status != 200 || strings.Contains(body, "Nautilus") {
			t.Errorf("%s: %d", page, status)
		}
	}
	const at = "/v1/agents/studio/graph"
	if status, body := s.ask(s.token(access.Read, "studio"), "GET", at, ""); status != 200 || !strings.Contains(body, "Nautilus") {
		t.Error(status, body)
	}
	for want, token := range map[int]string{401: "", 403: s.token(access.Admin, "other")} {
		if status, body := s.ask(token, "GET", at, ""); status != want || strings.Contains(body, "Nautilus") {
			t.Errorf("%d, want %d: %s", status, want, body)
		}
	}
	for path, want := range map[string]int{"/graph/api/memory/graph": 404, "/graph/../v1/agents/studio/graph": 401, "/v1/agents/..%2fstudio/graph": 400} {
		if status, body := s.ask(map[bool]string{true: owner}[want == 400], "GET", path, ""); status != want || strings.Contains(body, "Nautilus") {
			t.Errorf("%s: %d, want %d: %s", path, status, want, body)
		}
	}
}

// TestServeRefusesAMethodAndSaysWhich: an address that is asked in the wrong way is no
// address that is not there.
func TestServeRefusesAMethodAndSaysWhich(t *testing.T) {
	s := serveHome(t)
	token := s.token(access.Admin)
	for _, c := range []struct {
		method, path string
		want         int
		allow        string
	}{
		{"DELETE", "/v1/agents", 405, "GET"}, {"GET", "/v1/agents/studio/ops/memory.search", 405, "POST"}, {"PUT", "/v1/chat/completions", 405, "POST"}, {"POST", "/metrics", 405, "GET"},
		{"GET", "/v1/agent", 404, ""}, {"DELETE", "/v1", 404, ""},
	} {
		req, err := http.NewRequestWithContext(context.Background(), c.method, s.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close() //nolint:errcheck // its head is all that is looked at
		if resp.StatusCode != c.want || resp.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q", c.method, c.path, resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
}

// TestServeLeadsToThePage: who opens the address in a browser comes to the page, and
// nobody without a token to anything else.
func TestServeLeadsToThePage(t *testing.T) {
	s := serveHome(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{"/": "/admin/", "/admin": "/admin/", "/else": "", "/v1/agents": ""} {
		resp, err := client.Get(s.url + path) //nolint:noctx // the server is the test's own
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close() //nolint:errcheck // its head is all that is looked at
		if got := resp.Header.Get("Location"); got != want || want == "" && resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d to %q", path, resp.StatusCode, got)
		}
	}
}

// TestServeFigures: what is wrong with an agent's memory stands among the figures, and
// an agent that nobody asked for is not opened to be counted.
func TestServeFigures(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	before, endBefore := serveAt(t, home)
	for _, agent := range []string{"busy", "idle"} {
		if status, body := before.ask(before.token(access.Write), "POST", "/v1/agents/"+agent+"/ops/memory.write", `{"title":"tea","content":"Green tea.","kind":"fact","importance":3}`); status != 200 {
			t.Fatal(body)
		}
	}
	endBefore()
	wrong := time.Unix(1_700_000_000, 0)
	if err := vitals.Update(context.Background(), filepath.Join(home, "agents", "idle"), func(v *vitals.State) {
		v.Note(wrong, []string{"event_log"})
		v.Lost = &vitals.Lost{Events: 5, Acknowledged: 2, Last: wrong}
		v.Canary = &vitals.Canary{At: wrong, Error: "not recalled"}
	}); err != nil {
		t.Fatal(err)
	}
	s, end := serveAt(t, home)
	defer end()
	token := s.token(access.Read)
	if status, body := s.ask(token, "POST", "/v1/agents/busy/ops/memory.search", `{"text":"tea"}`); status != 200 {
		t.Fatal(body)
	}
	status, figures := s.ask(token, "GET", "/metrics", "")
	if status != 200 {
		t.Fatalf("%d %s", status, figures)
	}
	for _, line := range []string{
		`openclawssy_agent_degraded_since_seconds{agent="busy"} 0`, `openclawssy_agent_degraded_since_seconds{agent="idle"} 1.7e+09`,
		`openclawssy_agent_events_lost{agent="busy"} 0`, `openclawssy_agent_events_lost{agent="idle"} 3`, `openclawssy_agent_canary_ok{agent="idle"} 0`,
		`openclawssy_agent_items{agent="busy",status="active"} 1`, `openclawssy_agent_backlog{agent="busy"} 0`, `openclawssy_agent_parked{agent="busy"} 0`, "openclawssy_recalls_total 0",
	} {
		if !strings.Contains(figures, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(figures, `openclawssy_agent_items{agent="idle"`) || strings.Contains(figures, `openclawssy_agent_canary_ok{agent="busy"`) {
		t.Errorf("figures of what was not looked at:\n%s", figures)
	}
	if status, body := s.ask(s.token(access.Read, "busy"), "GET", "/metrics", ""); status != 403 {
		t.Errorf("a token of one agent sees the figures of all: %d %s", status, body)
	}
}
