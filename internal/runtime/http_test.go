package runtime

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
)

// overHTTP makes the rig's model the stub server, and its memory a real archive
// of what was said.
func overHTTP(t *testing.T, server *judge.Server) func(*rig, *Options) {
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: server.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := llm.New(llm.Config{Provider: llm.Generic, BaseURL: server.URL, Model: "stub", Timeout: 5 * time.Second}, out, time.Now, func() float64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return func(g *rig, o *Options) {
		o.Model = func(memory.AgentID) (llm.Chatter, error) { return client, nil }
		store, err := archive.Open(context.Background(), filepath.Join(g.dir, "archive.db"), archive.Options{Redact: o.Redact, Now: o.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		borrow := func(ctx context.Context, _ memory.AgentID) (*archive.Store, func(), error) {
			_, err := store.Follow(ctx, g.log)
			return store, func() {}, err
		}
		o.Recall = recall.New(recall.Options{Archive: borrow, Redact: o.Redact, Now: o.Now,
			Settings:    func(memory.AgentID) recall.Settings { return recall.Settings{Tokens: 400, Threshold: -1} },
			SessionKind: func(memory.AgentID, string) string { return memory.SessionMain }})
	}
}

// TestConversationOverHTTP talks to the stub server with the real client, and has
// what was said in one session recalled in another.
func TestConversationOverHTTP(t *testing.T) {
	server := judge.NewServer(t)
	g := newRig(t, t.TempDir(), overHTTP(t, server))
	first := g.say("", "I moved to Lisbon with my cat Mia in May")
	if want := `You said "I moved to Lisbon with my cat Mia in May". I was shown 0 memories.`; first.Text != want {
		t.Errorf("answer %q, want %q", first.Text, want)
	}
	if again := g.say(first.Session, "Where did I move with my cat?"); again.Block != "" {
		t.Errorf("what stands in the prompt was recalled again:\n%s", again.Block)
	}
	second := g.say("", "Where did I move with my cat?")
	if !strings.Contains(second.Block, "Lisbon with my cat Mia") || strings.Contains(second.Text, "shown 0") {
		t.Errorf("answer %q with the block:\n%s", second.Text, second.Block)
	}
	calls := server.Calls()
	messages := calls[len(calls)-1].Request.Messages
	roles := make([]string, len(messages))
	for i, m := range messages {
		roles[i] = m.Role
	}
	if got := strings.Join(roles, " "); got != "system user user" || !strings.Contains(messages[1].Content, second.Block) || strings.Contains(messages[0].Content, "Mia") {
		t.Errorf("the server got %s: %+v", got, messages)
	}
	if b := g.bundle(second.Run); b.Recall.Block != second.Block || b.Meta.Model != "stub" || b.Meta.TokensIn == 0 {
		t.Errorf("bundle = %+v", b)
	}
}

func TestToolsAndStreamsOverHTTP(t *testing.T) {
	server := judge.NewServer(t)
	g := newRig(t, t.TempDir(), overHTTP(t, server))
	var heard strings.Builder
	turn := turnOf("s1", `use test_echo {"text":"tea"}`)
	turn.Stream = func(delta string) { heard.WriteString(delta) }
	res, err := g.Run(context.Background(), turn)
	if want := `The tool answers: {"text":"tea"}`; err != nil || res.Text != want || heard.String() != want || res.ToolCalls != 1 {
		t.Errorf("Run = %+v, %v; streamed %q, want %q", res, err, heard.String(), want)
	}
	for _, broken := range []string{"500", "empty-body", "html", "reset", "refusal", "401"} {
		server.Next(broken)
		if _, err := g.Run(context.Background(), turnOf("s1", "hello")); err == nil || errors.Is(err, memory.ErrInternal) || !strings.HasPrefix(err.Error(), "ask the model: ") {
			t.Errorf("a server that answers %s: Run = %v", broken, err)
		}
	}
	if res := g.say("s1", "and now?"); !strings.HasPrefix(res.Text, `You said "and now?"`) {
		t.Errorf("after the failures: %+v", res)
	}
}
