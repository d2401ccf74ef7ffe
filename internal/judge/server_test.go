package judge_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestTableNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	classes := map[judge.Class]int{}
	for _, b := range judge.Behaviours() {
		if seen[b.Name] || b.Name == "" || b.Help == "" {
			t.Errorf("%q is there twice, or has no name or help", b.Name)
		}
		seen[b.Name] = true
		classes[b.Class]++
	}
	if len(classes) != 6 || len(seen) < 36 {
		t.Errorf("%d behaviours of %v", len(seen), classes)
	}
}

func TestMixFollowsItsSeed(t *testing.T) {
	run := func(seed uint64) []string {
		s := judge.NewServer(t)
		s.Mix(seed, "good", "400", "500", "null-content")
		client := connect(t, s.URL, 5*time.Second)
		for range 30 {
			if _, err := client.Chat(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Content: "x"}}}); errors.Is(err, memory.ErrInternal) {
				t.Fatal(err)
			}
		}
		var names []string
		for _, c := range s.Calls() {
			names = append(names, c.Behaviour)
		}
		return names
	}
	first := run(5)
	if again := run(5); !slices.Equal(first, again) {
		t.Errorf("one seed, two mixes:\n%v\n%v", first, again)
	}
	if other := run(6); slices.Equal(first, other) || len(slices.Compact(slices.Sorted(slices.Values(other)))) != 4 {
		t.Errorf("another seed: %v", other)
	}
}

func TestConversation(t *testing.T) {
	s := judge.NewServer(t)
	client := connect(t, s.URL, 5*time.Second)
	tools := []llm.ToolSpec{{Name: "memory_search", Parameters: json.RawMessage(`{"type":"object"}`)}}
	ask := func(messages ...llm.Message) llm.Reply {
		t.Helper()
		reply, err := client.Chat(t.Context(), llm.Request{Messages: messages, Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	user := func(s string) llm.Message { return llm.Message{Role: llm.User, Content: s} }
	if got := ask(llm.Message{Role: llm.System, Content: "--- RELEVANT MEMORY ---\n[MEM-1] (a) b\n[EVT-2] (c) d\n---"}, user("hello")).Text; got != `You said "hello". I was shown 2 memories.` {
		t.Errorf("plain: %q", got)
	}
	if calls := ask(user(`use memory_search {"text":"tea"}`)).ToolCalls; len(calls) != 1 || calls[0].Name != "memory_search" || calls[0].Arguments != `{"text":"tea"}` {
		t.Errorf("asked for a tool: %+v", calls)
	}
	if got := ask(user("use shell {}")).Text; got != "I am offered no tool shell." {
		t.Errorf("asked for another tool: %q", got)
	}
	if got := ask(user("x"), llm.Message{Role: llm.Tool, ToolCallID: "call_0", Content: "tea"}).Text; got != "The tool answers: tea" {
		t.Errorf("a tool's result: %q", got)
	}
	if n := len(s.Calls()); n != 4 {
		t.Errorf("%d calls", n)
	}
}

func TestEmbeddingsAndModels(t *testing.T) {
	s := judge.NewServer(t)
	embed := func(body string) (int, [][]float32) {
		t.Helper()
		resp, err := http.Post(s.URL+"/embeddings", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var out struct {
			Data []struct {
				Embedding []float32 `json:"embedding"`
			} `json:"data"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		vectors := make([][]float32, len(out.Data))
		for i, d := range out.Data {
			vectors[i] = d.Embedding
		}
		return resp.StatusCode, vectors
	}
	status, v := embed(`{"input":["green tea","green tea leaves","a red car"]}`)
	if status != http.StatusOK || len(v) != 3 {
		t.Fatalf("%d, %d vectors", status, len(v))
	}
	if dot(v[0], v[0]) < .99 || dot(v[0], v[1]) <= dot(v[0], v[2]) {
		t.Errorf("near %v, far %v", dot(v[0], v[1]), dot(v[0], v[2]))
	}
	if status, v := embed(`{"input":"one"}`); status != http.StatusOK || len(v) != 1 {
		t.Errorf("a single string: %d, %d vectors", status, len(v))
	}
	if status, _ := embed(`{"input":5}`); status != http.StatusBadRequest {
		t.Errorf("a number: %d", status)
	}
	resp, err := http.Get(s.URL + "/models")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if closing := resp.Body.Close(); err != nil || closing != nil || !strings.Contains(string(text), `"stub"`) {
		t.Errorf("%s, %v, %v", text, err, closing)
	}
	http.DefaultClient.CloseIdleConnections()
}

func dot(a, b []float32) (sum float32) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
