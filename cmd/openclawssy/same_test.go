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
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/op"
)

// inputs are what operations are called with whose own example does not fit the
// home of the test, or that have none. Every other is called with its example, or with
// nothing. CHECKPOINT stands for the id of the checkpoint that the home has.
var inputs = map[string]string{
	"agent.message.ack":        `{"id":"MSG-1"}`,
	"agent.message.explain":    `{"id":"MSG-1"}`,
	"agent.message.snooze":     `{"id":"MSG-1","for":"1h"}`,
	"agent.message.retry":      `{"id":"MSG-9"}`,
	"agent.message.send":       `{"text":"The report is due today.","session_id":"s-ask"}`,
	"cron.pause":               `{"name":"memory.checkpoint"}`,
	"cron.resume":              `{"name":"memory.checkpoint"}`,
	"cron.delete":              `{"name":"nothing"}`,
	"cron.run":                 `{"name":"nothing"}`,
	"memory.checkpoint.show":   `{"id":"CHECKPOINT"}`,
	"memory.checkpoint.revert": `{"id":"CHECKPOINT"}`,
	"memory.erase":             `{"match":"Albatross"}`,
	"memory.revert":            `{"handle":"MEM-1","to":1}`,
	"memory.search":            `{"text":"gloves for glazing","scope":"all"}`,
	"memory.recall":            `{"text":"Which gloves may I use?"}`,
	"memory.rebuild":           `{"rules":true}`,
	"record.touch":             `{"namespace":"long_term","record_kind":"fact.note","record_id":"r1"}`,
	"record.validate":          `{}`,
	"record.export_markdown":   `{}`,
	"record.import_markdown":   `{"files":[{"path":"n.md","text":"---\nkind: fact.note\n---\nThe glaze is blue."}]}`,
	"session.end":              `{"session":"s-ask"}`,
	"workspace.get":            `{"path":"MEMORY.md"}`,
	"workspace.save":           `{"session":"s-ask","slug":"gloves"}`,
}

// refused are the operations that the test's home has nothing for: their answer is an
// error of that kind, and the same everywhere. Every other operation has to do its work
// here, so that a new one that nobody gave an input for fails.
var refused = map[string]string{
	"agent.message.retry": "not_found", // nothing has failed
	"cron.delete":         "not_found", // the jobs there are cannot be deleted
	"cron.run":            "not_found",
	"memory.approve":      "conflict", // nothing waits for review
	"memory.reject":       "conflict",
}

// furnished is what the home holds besides the demo: operations and their inputs.
var furnished = [][2]string{
	{"record.put", `{"namespace":"long_term","record_kind":"fact.note","record_id":"r1","payload":{"text":"the kiln is red"}}`},
	{"memory.update", `{"handle":"MEM-1","importance":4}`},
	{"graph.add_node", `{"id":"ann","node_type":"semantic","label":"Ann"}`},
	{"graph.add_node", `{"id":"lisbon","node_type":"semantic","label":"Lisbon"}`},
	{"graph.add_edge", `{"src":"ann","dst":"lisbon","edge_type":"knows"}`},
	{"graph.store_pattern", `{"pattern_name":"greet","steps":[{"op":"Set","name":"x","ref":1},{"op":"J","var":"x"}]}`},
	{"graph.patch", `{"pattern_name":"greet","label_name":"L_greet","source_episode_ids":["ep1"]}`},
	{"persona.update", `{"trait_name":"curiosity","strength":0.8,"learned_from":["ep1"]}`},
	{"agent.message.send", `{"text":"The kiln is ready.","session_id":"s-ask"}`},
	{"agent.message.mute", `{"what":"checkpoint","for":"48h"}`},
}

// TestSameAnswerEverywhere runs each operation over the command line, HTTP and the
// Model Context Protocol, on copies of one home, and compares the documents.
func TestSameAnswerEverywhere(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base")
	demo, err := filepath.Glob("../../testdata/demo/*.jsonl")
	if err != nil || len(demo) != 1 {
		t.Fatalf("%v %v", demo, err)
	}
	for _, args := range [][]string{
		{"import", "chat", demo[0], "--checkpoint"},
		{"ask", "--session", "s-ask", "--user", "mara", "Which gloves may I use for glazing?"},
	} {
		if status, out := runCLI(t, base, args...); status != 0 {
			t.Fatalf("%v: %d %s", args, status, out)
		}
	}
	if err := os.Mkdir(filepath.Join(base, "workspace"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "workspace", "MEMORY.md"), []byte("# Memory\n\n- The third berth has the deepest water.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	catalog := newHouse(time.Now, func(string) string { return "" }, nil).app().Catalog
	for _, f := range furnished {
		o, err := catalog.Get(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if kind := kindOf(overCLI(t, base, o, f[1])); kind != "" {
			t.Fatalf("%s %s: %s", f[0], f[1], kind)
		}
	}
	_, listed := runCLI(t, base, "memory", "checkpoint", "list", "--json")
	checkpoint := regexp.MustCompile(`"id": "([^"]+)"`).FindStringSubmatch(listed)
	if checkpoint == nil {
		t.Fatalf("no checkpoint in %s", listed)
	}
	for name := range inputs {
		if _, err := catalog.Get(name); err != nil {
			t.Errorf("inputs: %v", err)
		}
	}
	for name := range refused {
		if _, err := catalog.Get(name); err != nil {
			t.Errorf("refused: %v", err)
		}
	}
	for _, o := range catalog.All() {
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			input, given := inputs[o.Name]
			if !given {
				input = o.Example
			}
			if input == "" {
				input = "{}"
			}
			input = strings.ReplaceAll(input, "CHECKPOINT", checkpoint[1])
			typed := overCLI(t, copyHome(t, base), o, input)
			if kind := kindOf(typed); kind != refused[o.Name] {
				t.Errorf("with %s the answer's kind of error is %q, want %q: give it an input in this test, or an example: %v", input, kind, refused[o.Name], typed)
			}
			asked := overHTTP(t, copyHome(t, base), o, input, "user")
			if diff := cmp.Diff(typed, asked); diff != "" {
				t.Errorf("command line and HTTP differ with %s:\n%s", input, diff)
			}
			if o.Effect != op.Read {
				asked = overHTTP(t, copyHome(t, base), o, input, "assistant") // a tool's caller is a model
			}
			called := overMCP(t, copyHome(t, base), o, input)
			if diff := cmp.Diff(asked, called); diff != "" {
				t.Errorf("HTTP and MCP differ with %s:\n%s", input, diff)
			}
		})
	}
}

// kindOf returns the kind of error that an answer is; "" for none.
func kindOf(doc any) string {
	m, is := doc.(map[string]any)
	if !is {
		return ""
	}
	failure, is := m["error"].(map[string]any)
	if !is {
		return ""
	}
	kind, _ := failure["kind"].(string)
	return kind
}

// copyHome copies a home that nobody uses, with a workspace of its own.
func copyHome(t *testing.T, base string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "home")
	if err := os.CopyFS(to, os.DirFS(base)); err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"redact.key", "tokens.json"} {
		if err := os.Chmod(filepath.Join(to, private), 0o600); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(to, "config.yaml"), fmt.Appendf(nil, "workspace:\n  path: %q\n", filepath.Join(to, "workspace")), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func runCLI(t *testing.T, home string, args ...string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	app := h.app()
	app.LookupEnv = func(string) (string, bool) { return "", false }
	args = append(args, "--home", home, "--agent", "default", "--set", "recall.deadline_ms=20000")
	status := cli.Run(context.Background(), app, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if err := h.close(); err != nil {
		t.Error(err)
	}
	return status, out.String() + errs.String()
}

func overCLI(t *testing.T, home string, o op.Op, input string) any {
	t.Helper()
	var out, errs bytes.Buffer
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	app := h.app()
	app.LookupEnv = func(string) (string, bool) { return "", false }
	// The operation alone: some have a command of the same name that works on files.
	app.Commands = nil
	args := append(strings.Split(o.Name, "."), "--params", input, "--json", "--home", home, "--agent", "default", "--set", "recall.deadline_ms=20000")
	cli.Run(context.Background(), app, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if err := h.close(); err != nil {
		t.Error(err)
	}
	return document(t, home, out.Bytes())
}

func overHTTP(t *testing.T, home string, o op.Op, input, actor string) any {
	t.Helper()
	h, server, _, tokens := openServer(t, home)
	defer closeHouse(t, h)
	defer server.Close()
	_, token, err := tokens.Create(context.Background(), access.New{Name: "test", Right: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), "POST", server.URL+"/v1/agents/default/ops/"+o.Name, strings.NewReader(input))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("X-Openclawssy-Actor", actor)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	doc := document(t, home, raw)
	if resp.StatusCode >= 400 {
		return map[string]any{"error": doc.(map[string]any)["error"]}
	}
	return doc
}

func overMCP(t *testing.T, home string, o op.Op, input string) any {
	t.Helper()
	h, server, c, _ := openServer(t, home)
	defer closeHouse(t, h)
	defer server.Close()
	near, far := mcp.NewInMemoryTransports()
	ctx := context.Background()
	mine, err := c.Get(o.Name)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := h.mcpFace(c).Server("default", []op.Op{mine}).Connect(ctx, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer serving.Close() //nolint:errcheck // ends with its client
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, far, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // nothing is read from it any more
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: strings.ReplaceAll(o.Name, ".", "_"), Arguments: json.RawMessage(input)})
	if err != nil {
		t.Fatal(err)
	}
	answer := res.StructuredContent
	if res.IsError {
		answer = map[string]any{"error": res.Meta["openclawssy/error"]}
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return document(t, home, raw)
}

func openServer(t *testing.T, home string) (*house, *httptest.Server, *op.Catalog, *access.Store) {
	t.Helper()
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	app := h.app()
	if err := h.setup(cli.Options{Home: home, Agent: "default", Set: []string{"recall.deadline_ms=20000"}}); err != nil {
		t.Fatal(err)
	}
	tokens, err := h.tokens()
	if err != nil {
		t.Fatal(err)
	}
	face, err := h.httpServer(app.Catalog, tokens)
	if err != nil {
		t.Fatal(err)
	}
	return h, httptest.NewServer(face), app.Catalog, tokens
}

func closeHouse(t *testing.T, h *house) {
	t.Helper()
	if err := h.close(); err != nil {
		t.Error(err)
	}
}

// What no two calls share: ids, moments, how long it took, where the home is.
var unlike = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f]{24,64}`), "HEX"},
	{regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`), "ULID"},
	{regexp.MustCompile(`[0-9a-z]{26}`), "ulid"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`\d{8}T\d{6}Z`), "TIME"},
	{regexp.MustCompile(`:1[789]\d{8}(\.\d+)?\b`), ":0"}, // seconds since 1970
	{regexp.MustCompile(`"(ms|millis|took|bytes|size|duration_ms|freed)":\d+`), `"$1":0`},
	{regexp.MustCompile(`reference data [0-9a-f]{6}`), "reference data TAG"},
	{regexp.MustCompile(`"trace_id":"[0-9a-f]+"`), `"trace_id":"TAG"`},
}

// document reads one JSON document, without what no two calls share.
func document(t *testing.T, home string, raw []byte) any {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	text := strings.ReplaceAll(compact.String(), home, "HOME")
	for _, u := range unlike {
		text = u.pattern.ReplaceAllString(text, u.with)
	}
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return doc
}
