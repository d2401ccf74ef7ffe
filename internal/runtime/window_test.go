package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// TestHistoryKeepsToItsBudget talks until the session is many times as long as
// the model's window.
func TestHistoryKeepsToItsBudget(t *testing.T) {
	dir := t.TempDir()
	edges := &asks{Flusher: queue(dir, &atomic.Int64{})}
	small := func(g *rig, o *Options) {
		g.cfg.Flush.ContextWindow, g.cfg.Flush.ReserveTokens, g.cfg.Flush.SoftThresholdTokens = 4000, 1000, 300
		g.cfg.Memory.MaxPromptTokens = 100
		g.cfg.Runtime.Tools = []string{"test.echo"}
		o.Flush = edges
	}
	g := newRig(t, dir, small)
	const turns, words = 120, 60
	changes, prefix := 0, ""
	for i := range turns {
		if i%3 == 0 {
			g.model.replies = append(g.model.replies, calls("test_echo", fmt.Sprintf(`{"text":"call %d"}`, i)))
		}
		g.model.replies = append(g.model.replies, says(fmt.Sprintf("answer %d %s", i, strings.Repeat("word ", words))))
		if i == turns/2 {
			g.shut()
			model := g.model
			g = newRig(t, dir, func(g *rig, o *Options) { small(g, o); g.model = model })
		}
		g.say("s1", fmt.Sprintf("question %d %s", i, strings.Repeat("word ", words)))
		req := g.model.last()
		checkPrompt(t, req.Messages)
		if n := tokensOf(req.Messages); n > 3000 {
			t.Fatalf("turn %d: the prompt has about %d tokens, over window - reserve", i, n)
		}
		if first := req.Messages[1].Content; first != prefix && i > 0 {
			if !strings.HasPrefix(first, "question ") {
				t.Fatalf("turn %d: the history begins amid a turn: %+v", i, req.Messages[1])
			}
			prefix = first
			changes++
		}
		if i > 20 && tokensOf(req.Messages) < 1500 {
			t.Fatalf("turn %d: only %d tokens of the window are used", i, tokensOf(req.Messages))
		}
	}
	if changes > turns/4 {
		t.Errorf("the history began anew in %d of %d turns: nothing for a provider's cache to keep", changes, turns)
	}
	// About 80 tokens a question and as much an answer: 120 turns are some 20,000
	// tokens, and a cycle is less than 2,500.
	if n := len(edges.asked); n < 8 || n > 20 {
		t.Errorf("%d flushes were queued, want one for each time that the window fills", n)
	}
}

// TestNothingLeavesTheWindowUnasked checks, turn by turn, that what the window
// drops was asked to be distilled.
func TestNothingLeavesTheWindowUnasked(t *testing.T) {
	dir := t.TempDir()
	edges := &asks{Flusher: queue(dir, &atomic.Int64{})}
	g := newRig(t, dir, func(g *rig, o *Options) {
		g.cfg.Flush.ContextWindow, g.cfg.Flush.ReserveTokens, g.cfg.Flush.SoftThresholdTokens = 4000, 1000, 300
		g.cfg.Memory.MaxPromptTokens = 100
		o.Flush = edges
	})
	asked := 0
	for i := range 60 {
		res := g.say("s1", fmt.Sprintf("question %d %s", i, strings.Repeat("word ", 10+i%7*40)))
		asked += len(res.Notes)
		w := g.windows.all["default/s1"]
		if len(w.events) > 0 && w.flushed < w.events[0].Seq-1 {
			t.Fatalf("turn %d: the window begins at %d, and a flush was asked for up to %d", i, w.events[0].Seq, w.flushed)
		}
	}
	if asked == 0 || len(edges.asked) != asked {
		t.Errorf("%d notes, %d flushes queued", asked, len(edges.asked))
	}
	edges.fail = errors.New("no disk")
	for i := 0; g.Stats().FlushFailed == 0 && i < 60; i++ {
		g.say("s1", fmt.Sprintf("more %d %s", i, strings.Repeat("word ", 200)))
	}
	if g.Stats().FlushFailed != 1 {
		t.Errorf("%d failures counted", g.Stats().FlushFailed)
	}
}

// TestOneFlushForManyProcesses says every turn in a process of its own, as ask
// and run do: the window that is full is flushed once, not by each of them.
func TestOneFlushForManyProcesses(t *testing.T) {
	dir := t.TempDir()
	var asked []vitals.Edge
	for i := range 40 {
		edges := &asks{Flusher: queue(dir, &atomic.Int64{})}
		g := newRig(t, dir, func(g *rig, o *Options) {
			g.cfg.Flush.ContextWindow, g.cfg.Flush.ReserveTokens, g.cfg.Flush.SoftThresholdTokens = 4000, 1000, 300
			g.cfg.Memory.MaxPromptTokens = 100
			g.cfg.Runtime.Tools = []string{"test.echo"}
			o.Flush = edges
		})
		g.model.replies = append(g.model.replies, says(fmt.Sprintf("answer %d %s", i, strings.Repeat("word ", 60))))
		g.say("s1", fmt.Sprintf("question %d %s", i, strings.Repeat("word ", 60)))
		g.shut()
		asked = append(asked, edges.asked...)
	}
	// 40 turns of some 170 tokens, in cycles of less than 2,500.
	if n := len(asked); n < 2 || n > 6 {
		t.Errorf("%d flushes were queued in 40 turns: %v", n, asked)
	}
}

// TestDivide shows how windows of any size are divided.
func TestDivide(t *testing.T) {
	for window, want := range map[int]budget{
		128000: {prompt: 108000, results: 10000, flush: 104000},
		40000:  {prompt: 20000, results: 10000, flush: 16000},
		8000:   {prompt: 4000, results: 2000, flush: 2000},
		2000:   {prompt: 1000, results: 500, flush: 500},
	} {
		if got := divide(window, 20000, 4000); got != want {
			t.Errorf("divide(%d) = %+v, want %+v", window, got, want)
		}
	}
}

// TestSessionIsFoundAgain takes up a session that lies under many other events.
func TestSessionIsFoundAgain(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	g := newRig(t, dir, nil)
	g.say("s1", "the first words")
	var others []memory.Event
	for i := range 3*readBlock + 17 {
		others = append(others, memory.Event{Type: memory.UserMessage, Origin: memory.OriginImport, SessionID: "import", Text: fmt.Sprintf("line %d", i)})
	}
	for batch := range slices.Chunk(others, 200) {
		if _, err := g.log.Write(ctx, batch...); err != nil {
			t.Fatal(err)
		}
	}
	g.say("s1", "the second words")
	g.shut()
	g = newRig(t, dir, nil)
	g.say("s1", "what did I say?")
	got := render(g.model.last().Messages, nil)
	if !strings.Contains(got, "the first words") || !strings.Contains(got, "the second words") || strings.Contains(got, "line 3") {
		t.Errorf("the prompt:\n%s", got)
	}
}

func TestWindowsAreBounded(t *testing.T) {
	ws := &windows{all: map[string]*window{}}
	ctx := context.Background()
	_, leaveFirst, err := ws.enter(ctx, "a", "kept while in use")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * windowsKept {
		_, leave, err := ws.enter(ctx, "a", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	if _, there := ws.all["a/kept while in use"]; !there || len(ws.all) != windowsKept {
		t.Errorf("%d windows are kept; the one in use among them: %v", len(ws.all), there)
	}
	leaveFirst()
}

// drawTurns makes the events of some turns, some of them broken off anywhere.
func drawTurns(t *rapid.T) []memory.Event {
	var list []memory.Event
	seq := int64(0)
	add := func(run string, e memory.Event) {
		seq++
		e.Seq, e.ID, e.SessionID, e.RunID = seq, fmt.Sprintf("evt_%d", seq), "s", run
		list = append(list, e)
	}
	word := rapid.StringMatching(`[a-z]{0,8}`)
	for turn := range rapid.IntRange(0, 5).Draw(t, "turns") {
		run, from := fmt.Sprintf("run_%d", turn), len(list)
		origin := rapid.SampledFrom([]memory.Origin{memory.OriginUser, memory.OriginAgent, memory.OriginSystem}).Draw(t, "origin")
		add(run, memory.Event{Type: memory.UserMessage, Origin: origin, Text: word.Draw(t, "said")})
		for round := range rapid.IntRange(0, 3).Draw(t, "rounds") {
			n := fmt.Sprint(round + 1)
			if rapid.Bool().Draw(t, "talks") {
				add(run, memory.Event{Type: memory.AssistantOutput, Text: word.Draw(t, "aside"), Metadata: map[string]any{metaRound: n}})
			}
			calls := rapid.IntRange(1, 3).Draw(t, "calls")
			for i := range calls {
				add(run, memory.Event{Type: memory.ToolCall, Metadata: map[string]any{metaRound: n, metaCall: fmt.Sprintf("call_%d", i), memory.MetaTool: "test.echo", metaArguments: "{}"}})
			}
			for i := range calls {
				add(run, memory.Event{Type: memory.ToolResult, Text: word.Draw(t, "result"), Metadata: map[string]any{metaRound: n, metaCall: fmt.Sprintf("call_%d", i)}})
			}
		}
		add(run, memory.Event{Type: memory.AssistantOutput, Text: word.Draw(t, "answer"), Metadata: map[string]any{metaRound: "9"}})
		list = list[:rapid.IntRange(from, len(list)).Draw(t, "broken off at")]
		if len(list) > from {
			add(run, memory.Event{Type: memory.ErrorEvent, Text: "end"})
		}
	}
	return list
}

// TestMessagesAreWellFormed checks that whatever happened in a session, endpoints
// take the messages made of it, and that more events only add to them.
func TestMessagesAreWellFormed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := drawTurns(r)
		whole := messagesOf(list)
		checkPrompt(t, assemble("system", whole, contextMessage(time.Unix(0, 0), ""), []llm.Message{{Role: llm.User, Content: "hi"}}))
		for i := 1; i < len(list); i++ {
			if !startsTurn(list[i-1], list[i]) {
				continue
			}
			before := messagesOf(list[:i])
			if diff := cmp.Diff(before, whole[:len(before)], cmpopts.EquateEmpty()); diff != "" {
				r.Fatalf("the messages of the first %d events are no prefix of all:\n%s", i, diff)
			}
		}
		w := &window{hidden: map[string]bool{}, session: "s"}
		for _, e := range list {
			w.take(e)
		}
		budget := rapid.IntRange(0, 300).Draw(r, "budget")
		w.trim(budget)
		size := 0
		for _, e := range w.events {
			size += eventTokens(e)
		}
		if size != w.size || size > budget {
			r.Fatalf("after trim(%d) the window counts %d tokens and holds %d", budget, w.size, size)
		}
		if len(w.events) > 0 && w.events[0].Type != memory.UserMessage {
			r.Fatalf("after trim(%d) the window begins with %+v", budget, w.events[0])
		}
	})
}

// TestLongMessagesComeBackWhole says more than one event can hold.
func TestLongMessagesComeBackWhole(t *testing.T) {
	g := newRig(t, t.TempDir(), nil)
	long := strings.Repeat("a long story ", 3*memory.MaxEventText/2/13)
	g.say("s1", long)
	g.model.replies = append(g.model.replies, says(long))
	g.say("s1", "tell it")
	g.say("s1", "thanks")
	messages := g.model.last().Messages
	checkPrompt(t, messages)
	if n := len(g.logged()); n != 8 {
		t.Fatalf("%d events, want two of them in two parts", n)
	}
	if messages[1].Content != long || messages[4].Content != long {
		t.Errorf("the long texts came back with %d and %d bytes, want %d", len(messages[1].Content), len(messages[4].Content), len(long))
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"/tool memory.search {\"text\":\"x\"}", "/tool memory.get{}", "/new", " /help ", "/quit now", "/", "//", "/tool {", "hello /new"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, message string) {
		c, isCommand, err := ParseCommand(message)
		if err != nil && !isCommand {
			t.Fatalf("%q is no command and an error: %v", message, err)
		}
		if isCommand && err == nil && c.Name == "tool" && (c.Tool == "" || strings.ContainsAny(c.Tool, "{ ") || len(c.Input) == 0) {
			t.Fatalf("%q = %+v", message, c)
		}
		if isCommand && !strings.HasPrefix(strings.TrimSpace(message), "/") {
			t.Fatalf("%q was taken for a command", message)
		}
	})
}
