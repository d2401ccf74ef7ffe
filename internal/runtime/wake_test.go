package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/vitals"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// home is a workspace that says how it was asked.
type home struct {
	woken []workspace.Waking
	slept []string
	fail  error
}

func (h *home) Wake(_ context.Context, _ memory.AgentID, _ config.Workspace, o workspace.Waking) (string, error) {
	h.woken = append(h.woken, o)
	return fmt.Sprintf("--- SOUL.md ---\nI am number %d, and know %s.\n", len(h.woken), secret), h.fail
}

func (h *home) Sleep(_ context.Context, _ memory.AgentID, _ config.Workspace, s memory.Session, turns []memory.Event, _ time.Time) error {
	for _, e := range turns {
		h.slept = append(h.slept, s.ID+" "+string(e.Type)+" "+e.Text)
	}
	return h.fail
}

func TestAgentsWakeAndSleepInTheirWorkspace(t *testing.T) {
	lives := &home{}
	g := newRig(t, t.TempDir(), func(g *rig, o *Options) {
		o.Lives = lives
		g.cfg.Workspace.Path = "ws"
	})
	say := func(session memory.Session, text string) Result {
		t.Helper()
		res, err := g.Run(context.Background(), Turn{Agent: "default", Session: session, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	system := func() string { return g.model.last().Messages[0].Content }
	say(memory.Session{ID: "s1", Channel: "cli"}, "hello")
	first := system()
	if !strings.Contains(first, "I am number 1, and know [REDACTED:") || strings.Contains(first, secret) {
		t.Errorf("system prompt: %q", first)
	}
	say(memory.Session{ID: "s1", Channel: "cli"}, "and again")
	if system() != first {
		t.Error("the beginning of the prompt has changed within a session")
	}
	say(memory.Session{ID: "g1", Channel: "chat", Kind: memory.SessionGroup}, "hello all")
	if len(lives.woken) != 2 || !lives.woken[0].Private || lives.woken[1].Private || lives.woken[0].File != 8000 {
		t.Errorf("woken: %+v", lives.woken)
	}
	next := say(memory.Session{ID: "s1", Channel: "cli"}, "/new")
	want := []string{"s1 user_message hello", "s1 assistant_output fine", "s1 user_message and again", "s1 assistant_output fine"}
	if fmt.Sprint(lives.slept) != fmt.Sprint(want) || len(next.Notes) > 1 {
		t.Errorf("slept: %q, %q", lives.slept, next.Notes)
	}
	// A workspace in trouble fails no turn.
	lives.fail = errors.New("gone")
	res := say(memory.Session{ID: next.Session, Channel: "cli"}, "still here?")
	if !strings.Contains(strings.Join(res.Notes, " "), "the workspace cannot be read: gone") || strings.Contains(system(), "number") {
		t.Errorf("%q, %q", res.Notes, system())
	}
	if res = say(memory.Session{ID: next.Session, Channel: "cli"}, "/new"); !strings.Contains(strings.Join(res.Notes, " "), "gone") {
		t.Errorf("%q", res.Notes)
	}
	if _, err := g.Sleep(context.Background(), "default", "g1", vitals.EdgeShutdown); err == nil {
		t.Error("the error of the workspace is lost")
	}
	g.cfg.Workspace.Sleep = false
	if _, err := g.Sleep(context.Background(), "default", "g1", vitals.EdgeShutdown); err != nil {
		t.Error(err)
	}
}

// TestSessionIsNotEndedFromWithin asks for the end of a session in one of its own turns,
// which would wait for itself.
func TestSessionIsNotEndedFromWithin(t *testing.T) {
	r := &Runtime{}
	ctx := memory.WithSession(context.Background(), memory.Session{ID: "s1"})
	if _, err := r.EndSession(ctx, "default", EndRequest{Session: "s1"}); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("err = %v", err)
	}
}
