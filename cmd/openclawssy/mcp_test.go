package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/mcpapi"
)

// bearer adds a token, and whose memory is meant, to every request.
type bearer struct{ token, agent string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	if b.agent != "" {
		r.Header.Set(access.AgentHeader, b.agent)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect returns a client's session; the test ends it.
func connect(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}

// exercise does what a coding agent does with its memory.
func exercise(t *testing.T, session *mcp.ClientSession, agent string) {
	t.Helper()
	ctx := context.Background()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.Annotations == nil || tool.Annotations.ReadOnlyHint == (tool.Name == "memory_write" || tool.Name == "memory_update" || tool.Name == "memory_forget" || tool.Name == "decision_log") {
			t.Errorf("%s: annotations %+v", tool.Name, tool.Annotations)
		}
	}
	want := []string{"decision_log", "memory_explain", "memory_forget", "memory_get", "memory_recall", "memory_search", "memory_update", "memory_write"}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("tools %v", names)
	}
	call := func(name string, in map[string]any) *mcp.CallToolResult {
		t.Helper()
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: in})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return res
	}
	text := func(res *mcp.CallToolResult) string { return res.Content[0].(*mcp.TextContent).Text }
	written := call("memory_write", map[string]any{"title": "Deployment", "content": "The staging cluster is called Heron.", "kind": "fact", "importance": 4})
	if written.IsError {
		t.Fatal(text(written))
	}
	if found := call("memory_search", map[string]any{"text": "staging cluster"}); !strings.Contains(text(found), "Heron") || !strings.Contains(text(found), "MEM-1") {
		t.Errorf("search: %s", text(found))
	}
	if block := call("memory_recall", map[string]any{"text": "Which is the staging cluster?"}); !strings.Contains(text(block), "RELEVANT MEMORY") {
		t.Errorf("recall: %s", text(block))
	}
	for _, bad := range []map[string]any{{}, {"handle": 7}, {"handle": "MEM-999"}, {"handle": "MEM-1", "agent": "other"}} {
		if res := call("memory_get", bad); !res.IsError || text(res) == "" {
			t.Errorf("memory_get %v: %+v", bad, res)
		}
	}
	item, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "memory://" + agent + "/items/MEM-1"})
	if err != nil || !strings.Contains(item.Contents[0].Text, "Heron") {
		t.Errorf("item: %v", err)
	}
	block, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "memory://" + agent + "/block?q=staging%20cluster"})
	if err != nil || !strings.Contains(block.Contents[0].Text, "Heron") {
		t.Errorf("block: %v %+v", err, block)
	}
	for _, uri := range []string{"memory://" + agent + "/report", "memory://" + agent + "/items/MEM-77", "memory://other/items/MEM-1"} {
		if _, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s was found", uri)
		}
	}
	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "recall", Arguments: map[string]string{"question": "What is staging called?"}})
	if err != nil || len(prompt.Messages) != 2 || !strings.Contains(prompt.Messages[0].Content.(*mcp.TextContent).Text, "Heron") {
		t.Errorf("recall prompt: %v %+v", err, prompt)
	}
	if done, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "checkpoint"}); err != nil || len(done.Messages) != 1 {
		t.Errorf("checkpoint prompt: %v %+v", err, done)
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "memory_erase", Arguments: map[string]any{"match": "Heron"}}); err == nil {
		t.Error("an operation that is no tool was called")
	}
}

func TestMCPOverStdio(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is the program when it is called by its name.
	program := filepath.Join(t.TempDir(), "openclawssy")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "mcp", "--agent", "studio", "--home", filepath.Join(t.TempDir(), "home"), "--set", "recall.deadline_ms=20000")
	cmd.Stderr = os.Stderr
	exercise(t, connect(t, &mcp.CommandTransport{Command: cmd}), "studio")
}

func TestMCPOverHTTP(t *testing.T) {
	s := serveHome(t)
	over := func(token, agent string) mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token, agent}}, DisableStandaloneSSE: true}
	}
	exercise(t, connect(t, over(s.token(access.Admin, "studio"), "")), "studio")

	// A token that may only read has only tools that read, and no other agent's.
	reader := connect(t, over(s.token(access.Read, "studio"), ""))
	tools, err := reader.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("a reader is shown %s", tool.Name)
		}
	}
	if _, err := reader.CallTool(context.Background(), &mcp.CallToolParams{Name: "memory_write", Arguments: map[string]any{"title": "x", "content": "y"}}); err == nil {
		t.Error("a reader wrote")
	}
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(), over(s.token(access.Admin, "other"), "studio"), nil); err == nil {
		t.Error("another agent's token was let in")
	}
	for _, token := range []string{"", "ocsy_wrong_token"} {
		if status, body := s.ask(token, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != 401 || strings.Contains(body, "memory_") {
			t.Errorf("token %q: %d %s", token, status, body)
		}
	}
}

// TestEveryDefaultToolIsAnOperation is a guard against a name that moved.
func TestEveryDefaultToolIsAnOperation(t *testing.T) {
	s := serveHome(t)
	_, listed := s.ask(s.token(access.Read), "GET", "/v1/ops", "")
	var ops struct{ Ops []struct{ Name string } }
	if err := json.Unmarshal([]byte(listed), &ops); err != nil {
		t.Fatal(err)
	}
	for _, name := range mcpapi.DefaultTools {
		if !slices.ContainsFunc(ops.Ops, func(o struct{ Name string }) bool { return o.Name == name }) {
			t.Errorf("there is no %s", name)
		}
	}
	if len(mcpapi.DefaultTools) > 8 {
		t.Error("more than eight tools by default")
	}
}
