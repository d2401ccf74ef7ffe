package mcpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a face over operations that say who called them, and what its audit kept.
type bench struct {
	*Face
	mu      sync.Mutex
	audited []string
}

type spoken struct {
	Text string `json:"text"`
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{}
	echo := func(name string, effect op.Effect) op.Op {
		return op.New(name, "Say "+name+".", effect, func(ctx context.Context, agent memory.AgentID, in spoken) (spoken, error) {
			if in.Text == "wait" {
				<-ctx.Done()
				return spoken{}, ctx.Err()
			}
			return spoken{fmt.Sprintf("%s of %s as %s: %s", name, agent, memory.Actor(ctx), in.Text)}, nil
		})
	}
	type handled struct {
		Handle string `json:"handle"`
	}
	type nothing struct{}
	var c op.Catalog
	c.Add(echo("memory.recall", op.Read), echo("memory.search", op.Read), echo("memory.write", op.Write), echo("memory.wipe", op.Destroy),
		op.New("memory.get", "Get a memory.", op.Read, func(_ context.Context, agent memory.AgentID, in handled) (handled, error) {
			if in.Handle != "MEM-1" {
				return handled{}, memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no memory %s", in.Handle), "look again")
			}
			return handled{string(agent) + "/" + in.Handle}, nil
		}),
		op.New("memory.checkpoint", "Distil.", op.Write, func(_ context.Context, agent memory.AgentID, _ nothing) (spoken, error) {
			return spoken{"distilled " + string(agent)}, nil
		}))
	b.Face = New(Options{Catalog: c.Freeze(), Version: "1",
		Report: func(context.Context, memory.AgentID) (string, error) { return "", memory.ErrNotFound },
		Audit: func(_ context.Context, agent memory.AgentID, e runlog.Entry) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.audited = append(b.audited, fmt.Sprintf("%s %s %s %s", agent, e.Op, e.Caller, e.Outcome))
			return nil
		}, Now: time.Now, Log: zerolog.Nop()})
	return b
}

// kept returns what the audit kept since it was asked last.
func (b *bench) kept() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.audited
	b.audited = nil
	return out
}

// tokenHeader stands for the server's own check of tokens: it names the right and the
// agents of who asks.
const tokenHeader = "X-Test-Token"

// overHTTP connects a client with a token of that right for those agents, which asks
// for one of them; "" for none.
func (b *bench) overHTTP(t *testing.T, right access.Right, agents, asks string) *mcp.ClientSession {
	t.Helper()
	server := httptest.NewServer(b.guarded())
	t.Cleanup(server.Close)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: server.URL,
		HTTPClient: &http.Client{Transport: with{tokenHeader: string(right) + " " + agents, access.AgentHeader: asks}}, DisableStandaloneSSE: true, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return session
}

func (b *bench) guarded() http.Handler {
	face := b.HTTP(b.Catalog.All())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		right, agents, _ := strings.Cut(r.Header.Get(tokenHeader), " ")
		face.ServeHTTP(w, r.WithContext(access.WithCaller(r.Context(), access.Token{ID: "tok", Right: access.Right(right), Agents: strings.Fields(agents)})))
	})
}

// with adds headers to requests.
type with map[string]string

func (h with) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

func toolsOf(t *testing.T, s *mcp.ClientSession) []string {
	t.Helper()
	list, err := s.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestARightIsNotWidened: neither a tool nor a prompt lets a token do what its right
// does not include, and what it is told speaks of no tool that it does not have.
func TestARightIsNotWidened(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		right   access.Right
		tools   string
		prompts []string
	}{
		{access.Read, "memory_get memory_recall memory_search", []string{"recall"}},
		{access.Write, "memory_checkpoint memory_get memory_recall memory_search memory_write", []string{"checkpoint", "recall"}},
		{access.Admin, "memory_checkpoint memory_get memory_recall memory_search memory_wipe memory_write", []string{"checkpoint", "recall"}},
	} {
		s := b.overHTTP(t, c.right, "studio", "")
		tools := toolsOf(t, s)
		if got := strings.Join(tools, " "); got != c.tools {
			t.Errorf("%s sees the tools %s", c.right, got)
		}
		prompts, err := s.ListPrompts(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range prompts.Prompts {
			names = append(names, p.Name)
		}
		if !slices.Equal(names, c.prompts) {
			t.Errorf("%s sees the prompts %v", c.right, names)
		}
		if told := s.InitializeResult().Instructions; strings.Contains(told, "memory_write") != slices.Contains(tools, "memory_write") || !strings.Contains(told, "agent studio") {
			t.Errorf("%s is told %q", c.right, told)
		}
		if c.right == access.Read {
			b.kept()
			if _, err := s.GetPrompt(context.Background(), &mcp.GetPromptParams{Name: "checkpoint"}); err == nil {
				t.Error("a token that may read had a checkpoint made")
			}
			if _, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "memory_wipe", Arguments: map[string]any{"text": "x"}}); err == nil {
				t.Error("a token that may read wiped")
			}
			if kept := b.kept(); len(kept) > 0 {
				t.Errorf("ran %v", kept)
			}
		}
	}
}

// TestTheAgentIsTheTokens: whose memory is asked follows from the token, and the header
// may only choose among its agents.
func TestTheAgentIsTheTokens(t *testing.T) {
	b := newBench(t)
	ask := func(s *mcp.ClientSession) string {
		got, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "memory_search", Arguments: map[string]any{"text": "x"}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(got.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if got := ask(b.overHTTP(t, access.Read, "studio", "")); got != `{"text":"memory.search of studio as assistant: x"}` {
		t.Error(got)
	}
	if got := ask(b.overHTTP(t, access.Read, "studio harbour", "harbour")); !strings.Contains(got, "of harbour") {
		t.Error(got)
	}
	if kept := b.kept(); !slices.Contains(kept, "studio memory.search mcp:tok ok") || !slices.Contains(kept, "harbour memory.search mcp:tok ok") {
		t.Errorf("audited %v", kept)
	}
	for asks, want := range map[string]int{"harbour": 403, "../studio": 400, "STUDIO": 400, "studio harbour": 400} {
		req := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		for name, value := range map[string]string{tokenHeader: "admin studio", access.AgentHeader: asks, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
			req.Header.Set(name, value)
		}
		rec := httptest.NewRecorder()
		b.guarded().ServeHTTP(rec, req)
		if rec.Code != want || !json.Valid(rec.Body.Bytes()) {
			t.Errorf("agent %q: %d %s", asks, rec.Code, rec.Body)
		}
	}
	s := b.overHTTP(t, access.Read, "studio", "")
	for _, uri := range []string{"memory://harbour/items/MEM-1", "memory://studio/items/MEM-2", "memory://studio/items/", "memory://studio/items/../../harbour/items/MEM-1", "file:///etc/passwd", "memory://studio/report"} {
		if got, err := s.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: %s", uri, got.Contents[0].Text)
		}
	}
	got, err := s.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: "memory://studio/items/MEM-1"})
	if err != nil || !strings.Contains(got.Contents[0].Text, `"studio/MEM-1"`) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPromptsAndResourcesAreAudited as tools are.
func TestPromptsAndResourcesAreAudited(t *testing.T) {
	b := newBench(t)
	s := b.overHTTP(t, access.Write, "studio", "")
	if _, err := s.GetPrompt(context.Background(), &mcp.GetPromptParams{Name: "checkpoint"}); err != nil {
		t.Fatal(err)
	}
	got, err := s.GetPrompt(context.Background(), &mcp.GetPromptParams{Name: "recall", Arguments: map[string]string{"question": "which tea?"}})
	if err != nil || len(got.Messages) != 2 || !strings.Contains(got.Messages[0].Content.(*mcp.TextContent).Text, "memory.recall of studio as assistant: which tea?") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: "memory://studio/block?q=tea"}); err != nil {
		t.Error(err)
	}
	if want := []string{"studio memory.checkpoint mcp:tok ok", "studio memory.recall mcp:tok ok", "studio memory.recall mcp:tok ok"}; !slices.Equal(b.kept(), want) {
		t.Errorf("audited other than %v", want)
	}
	for _, arguments := range []map[string]string{nil, {"question": " \n"}, {"text": "tea"}} {
		var refused *jsonrpc.Error
		if _, err := s.GetPrompt(context.Background(), &mcp.GetPromptParams{Name: "recall", Arguments: arguments}); !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("recall for %v: %v", arguments, err)
		}
	}
}

// TestAnErrorIsForTheModel: what an operation refuses is a result that a model can read,
// with the error object of every face.
func TestAnErrorIsForTheModel(t *testing.T) {
	b := newBench(t)
	s := b.overHTTP(t, access.Read, "studio", "")
	got, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "memory_get", Arguments: map[string]any{"handle": "MEM-9"}})
	if err != nil || !got.IsError || got.StructuredContent != nil || got.Content[0].(*mcp.TextContent).Text != "there is no memory MEM-9\nlook again" {
		t.Fatalf("%+v, %v", got, err)
	}
	if of, is := got.Meta[metaError].(map[string]any); !is || of["kind"] != "not_found" || of["hint"] != "look again" {
		t.Errorf("meta %v", got.Meta)
	}
	for name, arguments := range map[string]any{"unknown member": map[string]any{"handel": "MEM-1"}, "another type": map[string]any{"handle": 1}, "none": nil} {
		if got, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "memory_get", Arguments: arguments}); err != nil || !got.IsError {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestCheckTools: tools are chosen by either of their names, once each; one that does
// not exist is refused with the name that was meant.
func TestCheckTools(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ names, want string }{
		{"all", "memory.checkpoint memory.get memory.recall memory.search memory.wipe memory.write"},
		{"memory.search memory_search memory_get", "memory.search memory.get"}, {"memory.get all", "memory.checkpoint memory.get memory.recall memory.search memory.wipe memory.write"},
	} {
		ops, err := b.CheckTools(strings.Fields(c.names))
		var names []string
		for _, o := range ops {
			names = append(names, o.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.names, got, err)
		}
	}
	for _, wrong := range []string{"memory.serch", "memory_", "ALL", ""} {
		if ops, err := b.CheckTools([]string{wrong}); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("%q: %v, %v", wrong, ops, err)
		}
	}
}

// TestServersAreBounded: a token of all agents may name any number of them.
func TestServersAreBounded(t *testing.T) {
	b := newBench(t)
	ops := b.Catalog.All()
	for i := range maxServers + 50 {
		b.shared(serverOf{memory.AgentID(fmt.Sprint("a", i)), access.Read}, ops)
	}
	if n := len(b.servers); n != maxServers {
		t.Errorf("%d servers are kept", n)
	}
	last := serverOf{memory.AgentID(fmt.Sprint("a", maxServers+49)), access.Read}
	if once, again := b.shared(last, ops), b.shared(last, ops); once != again {
		t.Error("a server is made anew for each request")
	}
}

// TestStdioEndsWithItsInputOrItsContext, with an operation under way too, which ends.
func TestStdioEndsWithItsInputOrItsContext(t *testing.T) {
	b := newBench(t)
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	var out bytes.Buffer
	piped := hello
	for id := range 20 {
		piped += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory_search","arguments":{"text":"x"}}}`+"\n", 10+id)
	}
	if err := b.Stdio(context.Background(), "studio", b.Catalog.All(), strings.NewReader(piped), &out); err != nil || strings.Count(out.String(), `"result"`) != 21 {
		t.Errorf("%v: %d of 21 answers:\n%s", err, strings.Count(out.String(), `"result"`), out.String())
	}
	ctx, end := context.WithCancel(context.Background())
	in, feed := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- b.Stdio(ctx, "studio", b.Catalog.All(), in, io.Discard) }()
	for _, line := range []string{hello, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_search","arguments":{"text":"wait"}}}` + "\n", `{"jsonrpc":"2.0","id":3,"method":"ping"}` + "\n"} {
		if _, err := io.WriteString(feed, line); err != nil {
			t.Fatal(err)
		}
	}
	end()
	feed.Close()
	if err := <-ended; err != nil {
		t.Errorf("a server that was asked to end says %v", err)
	}
}

// TestStdioRefusesALineWithoutEnd: a client that sends no end of line takes no more
// memory than a line may have.
func TestStdioRefusesALineWithoutEnd(t *testing.T) {
	b := newBench(t)
	endless := &counted{Reader: io.LimitReader(forever('x'), 64<<20)}
	if err := b.Stdio(context.Background(), "studio", b.Catalog.All(), endless, io.Discard); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("a line of %d bytes: %v", endless.n, err)
	}
	if endless.n > 2*MaxLine {
		t.Errorf("read %d bytes of it", endless.n)
	}
}

type forever byte

func (f forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(f)
	}
	return len(p), nil
}

type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}
