package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// sayings returns n turns of about 15 tokens that have no words in common.
func sayings(from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("word%da word%db word%dc word%dd word%de word%df", from+i, from+i, from+i, from+i, from+i, from+i)
	}
	return out
}

// distilledOnce checks that each event is the evidence of exactly one item, and
// that nothing else is.
func distilledOnce(t *testing.T, w *world, ids []string) {
	t.Helper()
	count := map[string]int{}
	for _, it := range w.items(t, "all") {
		count[it.Title]++
	}
	for _, id := range ids {
		if count[id] != 1 {
			t.Errorf("%s was distilled %d times", id, count[id])
		}
		delete(count, id)
	}
	if len(count) > 0 {
		t.Errorf("items of no event: %v", count)
	}
}

func TestBacklogIsDistilledWholeAndOnce(t *testing.T) {
	model := &echo{}
	w := newWorld(t, model)
	ids := w.say(t, sayings(0, 40)...)
	res := w.checkpoint(t)
	if res.Events != 40 || len(res.Created) != 40 || res.BacklogLeft != 0 || res.Mode != working.ModeModel || res.Model != "echo" {
		t.Errorf("result %+v", res)
	}
	if res.Batches < 10 || model.calls != res.Batches {
		t.Errorf("%d batches, %d calls: batches should hold about 50 tokens", res.Batches, model.calls)
	}
	distilledOnce(t, w, ids)
	files, err := filepath.Glob(filepath.Join(w.agent.Dir, "checkpoint-*.json"))
	if err != nil || len(files) != res.Batches {
		t.Errorf("%d files, %v", len(files), err)
	}
	list, err := w.service.List(context.Background(), "a", ListRequest{})
	if err != nil || len(list.Checkpoints) != min(20, res.Batches) || list.Checkpoints[0].TokensIn != 1_000_000 {
		t.Errorf("list: %+v, %v", list, err)
	}
}

func TestIdleAgentLeavesNoTrace(t *testing.T) {
	model := &echo{}
	w := newWorld(t, model)
	w.say(t, sayings(0, 3)...)
	w.checkpoint(t)
	calls, before := model.calls, w.health(t).LastSeq
	for range 8 {
		if res := w.checkpoint(t); res.Batches != 0 || res.Mode != "" {
			t.Errorf("result %+v", res)
		}
	}
	if after := w.health(t).LastSeq; after != before || model.calls != calls {
		t.Errorf("8 idle runs: %d events, %d model calls", after-before, model.calls-calls)
	}
}

func TestLongTurnIsCutNotSkipped(t *testing.T) {
	var shown []int
	w := newWorld(t, &echo{edit: func(b distill.Batch, _ *distill.Reply) ([]byte, error) {
		for _, e := range b.Events {
			shown = append(shown, len(e.Text))
		}
		return nil, nil
	}})
	ids := w.say(t, "short one", strings.Repeat("many words ", 500), "short two")
	w.checkpoint(t)
	distilledOnce(t, w, ids)
	if !slices.Equal(shown, []int{9, 200, 9}) {
		t.Errorf("texts shown to the model have %v bytes", shown)
	}
}

// TestReplies tries what a model may answer: nothing is invented, nothing lost.
func TestReplies(t *testing.T) {
	entry := func(change string, value any) func(distill.Batch, *distill.Reply) ([]byte, error) {
		return func(_ distill.Batch, r *distill.Reply) ([]byte, error) {
			raw, err := json.Marshal(r)
			if err != nil {
				return nil, err
			}
			var whole map[string][]map[string]any
			if err := json.Unmarshal(raw, &whole); err != nil {
				return nil, err
			}
			whole["new_items"][0][change] = value
			return json.Marshal(whole)
		}
	}
	text := func(s string) func(distill.Batch, *distill.Reply) ([]byte, error) {
		return func(distill.Batch, *distill.Reply) ([]byte, error) { return []byte(s), nil }
	}
	for name, tc := range map[string]struct {
		edit func(distill.Batch, *distill.Reply) ([]byte, error)
		want string // created/quarantined/refused/parked
	}{
		"good":                            {nil, "2/0/0/0"},
		"prose":                           {text("Here you are: {}"), "0/0/0/1"},
		"fence":                           {text("```json\n{\"new_items\":[],\"updates\":[]}\n```"), "0/0/0/1"},
		"empty object":                    {text("{}"), "0/0/0/1"},
		"null":                            {text("null"), "0/0/0/1"},
		"nothing":                         {text(""), "0/0/0/1"},
		"two objects":                     {text(`{"new_items":[],"updates":[]}{"new_items":[],"updates":[]}`), "0/0/0/1"},
		"doubled key":                     {text(`{"new_items":[],"new_items":[],"updates":[]}`), "0/0/0/1"},
		"nothing to keep":                 {text(`{"new_items":[],"updates":[]}`), "0/0/0/0"},
		"unknown key":                     {entry("mood", "good"), "0/0/0/1"},
		"importance 6":                    {entry("importance", 6), "1/0/1/0"},
		"importance text":                 {entry("importance", "5"), "0/0/0/1"},
		"confidence 2":                    {entry("confidence", 2), "1/0/1/0"},
		"no evidence":                     {entry("evidence", []any{}), "1/0/1/0"},
		"foreign event":                   {entry("evidence", []any{map[string]string{"event_id": "evt_x", "quote": "x"}}), "1/0/1/0"},
		"supersedes what was not offered": {entry("supersedes", "mem_other"), "1/0/1/0"},
		"invented quote": {func(b distill.Batch, r *distill.Reply) ([]byte, error) {
			r.NewItems[0].Evidence[0].Quote = "never said"
			return nil, nil
		}, "1/1/0/0"},
		"control characters": {entry("title", "x\x1b[2Jy\x00"), "1/1/0/0"},
		"secret":             {entry("content", "The token is ghp_"+strings.Repeat("a1B2", 9)), "2/0/0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			model := &echo{edit: tc.edit}
			w := newWorld(t, model)
			w.say(t, sayings(0, 2)...)
			res := w.checkpoint(t)
			if got := fmt.Sprintf("%d/%d/%d/%d", len(res.Created), len(res.Quarantined), len(res.Refused), len(res.Parked)); got != tc.want {
				t.Errorf("created/quarantined/refused/parked %s, want %s: %+v", got, tc.want, res)
			}
			if res.BacklogLeft != 0 {
				t.Errorf("%d turns left", res.BacklogLeft)
			}
			// What was parked is distilled once the model is itself again.
			model.edit = nil
			if res := w.checkpoint(t); len(res.Parked) != 0 {
				t.Errorf("still parked: %+v", res.Parked)
			}
			for _, it := range w.items(t, "all") {
				if strings.Contains(it.Content, "ghp_a1B2") || strings.ContainsAny(it.Title, "\x1b\x00") {
					t.Errorf("stored %q: %q", it.Title, it.Content)
				}
			}
		})
	}
}

func TestParkedRangeIsBisected(t *testing.T) {
	poison := ""
	model := &echo{edit: func(b distill.Batch, _ *distill.Reply) ([]byte, error) {
		for _, e := range b.Events {
			if e.ID == poison {
				return []byte("no"), nil
			}
		}
		return nil, nil
	}}
	w := newWorld(t, model)
	w.agent.BatchTokens = 1000
	ids := w.say(t, sayings(0, 9)...)
	poison = ids[5]
	if res := w.checkpoint(t); len(res.Parked) != 1 || res.Parked[0].Range != (memory.Range{First: 1, Last: 9}) {
		t.Fatalf("parked %+v", res.Parked)
	}
	more := w.say(t, sayings(20, 1)...)
	res := w.checkpoint(t)
	if len(res.Parked) != 1 || res.Parked[0].Range.First != res.Parked[0].Range.Last {
		t.Fatalf("parked %+v, want the one turn that is to blame", res.Parked)
	}
	distilledOnce(t, w, append(slices.Delete(slices.Clone(ids), 5, 6), more...))
	// An idle agent's log stops growing, however often the turn is tried.
	for range 6 {
		w.checkpoint(t)
	}
	before := w.health(t).LastSeq
	w.checkpoint(t)
	if after := w.health(t).LastSeq; after != before {
		t.Errorf("an idle agent wrote %d events", after-before)
	}
	poison = ""
	if res := w.checkpoint(t); len(res.Parked) != 0 {
		t.Fatalf("parked %+v", res.Parked)
	}
	distilledOnce(t, w, append(ids, more...))
}

func TestModelAway(t *testing.T) {
	down := true
	model := &echo{edit: func(distill.Batch, *distill.Reply) ([]byte, error) {
		if down {
			return nil, memory.Errorf(memory.ErrUnavailable, "connection refused")
		}
		return nil, nil
	}}
	w := newWorld(t, model)
	ids := w.say(t, sayings(0, 12)...)
	res := w.checkpoint(t)
	if len(res.Parked) != 1 || res.BacklogLeft == 0 || !strings.Contains(res.Stopped, "connection refused") || model.calls != 1 {
		t.Errorf("model away: %+v after %d calls", res, model.calls)
	}
	if len(w.items(t, "all")) != 0 {
		t.Error("items were invented")
	}
	down = false
	if res := w.checkpoint(t); len(res.Parked) != 0 || res.BacklogLeft != 0 {
		t.Errorf("model back: %+v", res)
	}
	distilledOnce(t, w, ids)
}

func TestOneRangeWithoutAnswerDoesNotHoldUpTheRest(t *testing.T) {
	poison := ""
	model := &echo{edit: func(b distill.Batch, _ *distill.Reply) ([]byte, error) {
		for _, e := range b.Events {
			if e.ID == poison {
				return nil, memory.Errorf(memory.ErrUnavailable, "400 too much")
			}
		}
		return nil, nil
	}}
	w := newWorld(t, model)
	ids := w.say(t, sayings(0, 12)...)
	poison = ids[1]
	w.checkpoint(t) // parks the first batch, and stops
	for range 4 {
		w.checkpoint(t)
	}
	h := w.health(t)
	if h.Backlog != 0 || len(h.Parked) != 1 || h.Parked[0].Range != (memory.Range{First: 2, Last: 2}) {
		t.Errorf("backlog %d, parked %+v, want the one turn that finds no answer", h.Backlog, h.Parked)
	}
	distilledOnce(t, w, slices.Delete(ids, 1, 2))
}

func TestBudgetSpent(t *testing.T) {
	w := newWorld(t, &echo{edit: func(distill.Batch, *distill.Reply) ([]byte, error) {
		return nil, memory.Errorf(memory.ErrDenied, "all tokens of today are spent")
	}})
	w.say(t, sayings(0, 3)...)
	if res := w.checkpoint(t); len(res.Parked) != 0 || res.BacklogLeft != 3 || !strings.Contains(res.Stopped, "spent") {
		t.Errorf("result %+v", res)
	}
}

func TestOfflineItemsAreProvisional(t *testing.T) {
	down := true
	model := &echo{edit: func(distill.Batch, *distill.Reply) ([]byte, error) {
		if down {
			return nil, memory.Errorf(memory.ErrUnavailable, "connection refused")
		}
		return nil, nil
	}}
	w := newWorld(t, model)
	w.agent.OnFailure = Offline
	ids := w.say(t, "I am allergic to peanuts.", "My sister Anna lives in Porto.", "We decided to use SQLite for storage.")
	res := w.checkpoint(t)
	if res.Mode != working.ModeOffline || len(res.Created) == 0 || len(res.Parked) == 0 || res.BacklogLeft != 0 {
		t.Fatalf("offline: %+v", res)
	}
	for _, it := range w.items(t, "active") {
		if !it.Provisional {
			t.Errorf("%s is not provisional", it.Handle)
		}
	}
	down = false
	if res := w.checkpoint(t); len(res.Parked) != 0 || res.Mode != working.ModeModel {
		t.Fatalf("model back: %+v", res)
	}
	var titles []string
	for _, it := range w.items(t, "active") {
		if it.Provisional {
			t.Errorf("%s is still provisional", it.Handle)
		}
		titles = append(titles, it.Title)
	}
	for _, id := range ids {
		if !slices.Contains(titles, id) {
			t.Errorf("the model's item of %s is missing from %q", id, titles)
		}
	}
}

func TestUpdatesSupersedeAndRevertUndoes(t *testing.T) {
	ctx := context.Background()
	model := &echo{}
	w := newWorld(t, model)
	w.say(t, "I live in Porto")
	w.checkpoint(t)
	old := w.items(t, "active")[0]
	model.edit = func(b distill.Batch, r *distill.Reply) ([]byte, error) {
		r.NewItems = nil
		r.Updates = []distill.Update{{ID: old.ID, NewContent: "The user lives in Lisbon.", Confidence: .9,
			Evidence: []distill.Quote{{EventID: b.Events[0].ID, Quote: "moved to Lisbon"}}}}
		return nil, nil
	}
	w.say(t, "I moved to Lisbon last week")
	res := w.checkpoint(t)
	if !slices.Equal(res.Updated, []string{old.Handle}) || len(res.Created) != 1 {
		t.Fatalf("result %+v", res)
	}
	now, before := w.items(t, "active")[0], w.items(t, "superseded")[0]
	if now.Supersedes != old.ID || before.SupersededBy != now.ID || before.ValidTo == nil || now.ValidFrom == nil || before.Content != old.Content {
		t.Errorf("now %+v, before %+v", now, before)
	}
	list, err := w.service.List(ctx, "a", ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	undone, err := w.service.Revert(ctx, "a", IDRequest{ID: list.Checkpoints[0].ID})
	if err != nil || !slices.Equal(undone.Withdrawn, []string{now.Handle}) || !slices.Equal(undone.Restored, []string{old.Handle}) {
		t.Errorf("undone %+v, %v", undone, err)
	}
	if active := w.items(t, "active"); len(active) != 1 || active[0].ID != old.ID || active[0].ValidTo != nil {
		t.Errorf("active after undoing: %+v", active)
	}
	if _, err := w.service.Revert(ctx, "a", IDRequest{ID: "checkpoint-x"}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("revert of no checkpoint: %v", err)
	}
}

func TestForgottenTurnsAreNotDistilledAgain(t *testing.T) {
	model := &echo{edit: func(distill.Batch, *distill.Reply) ([]byte, error) { return []byte("no"), nil }}
	w := newWorld(t, model)
	ids := w.say(t, sayings(0, 2)...)
	w.checkpoint(t) // parked
	if _, err := w.log.Write(context.Background(), memory.Event{Type: memory.MemoryChange, Origin: memory.OriginSystem,
		Metadata: map[string]any{memory.MetaChange: map[string]any{"action": "forget", "by": "user", "at": "2026-05-08T12:00:00Z", "suppress": []any{ids[0]}}}}); err != nil {
		t.Fatal(err)
	}
	model.edit = nil
	w.checkpoint(t)
	distilledOnce(t, w, ids[1:])
}

func TestKeptReplyIsNotPaidTwice(t *testing.T) {
	ctx := context.Background()
	model := &echo{}
	w := newWorld(t, model)
	w.say(t, sayings(0, 2)...)
	// A run that dies between the model's answer and the commit.
	r := &run{service: w.service, agent: "a", Agent: w.agent, res: emptyResult()}
	b, err := r.collect(ctx, memory.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.complete(ctx, &b); err != nil {
		t.Fatal(err)
	}
	if r.lease, err = r.Store.Acquire(ctx, "checkpoint", "one that dies", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.ask(ctx, model, b); err != nil {
		t.Fatal(err)
	}
	if err := r.Store.Release(ctx, r.lease); err != nil {
		t.Fatal(err)
	}
	if res := w.checkpoint(t); len(res.Created) != 2 || model.calls != 1 || res.TokensOut != 7 {
		t.Errorf("created %d after %d calls, %d tokens", len(res.Created), model.calls, res.TokensOut)
	}
}

func TestMissingFilesAreWrittenAgain(t *testing.T) {
	w := newWorld(t, &echo{})
	w.say(t, sayings(0, 1)...)
	w.checkpoint(t)
	files, err := filepath.Glob(filepath.Join(w.agent.Dir, "checkpoint-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(files[0]), os.WriteFile(filepath.Join(w.agent.Dir, ".checkpoint-half.json123"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.say(t, sayings(5, 1)...)
	w.checkpoint(t)
	again, err := os.ReadFile(files[0])
	if err != nil || string(again) != string(text) {
		t.Errorf("file again: %s, %v, want %s", again, err, text)
	}
	if half, err := filepath.Glob(filepath.Join(w.agent.Dir, ".*")); err != nil || len(half) != 0 {
		t.Errorf("half files left: %v, %v", half, err)
	}
}

func TestOneRunAtATime(t *testing.T) {
	ctx := context.Background()
	inside, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	model := &echo{edit: func(distill.Batch, *distill.Reply) ([]byte, error) {
		once.Do(func() { close(inside); <-goOn })
		return nil, nil
	}}
	w := newWorld(t, model)
	other := sameWorld(t, w.dir, &echo{})
	ids := w.say(t, sayings(0, 4)...)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := w.service.Checkpoint(ctx, "a", Request{}); err != nil {
			t.Error(err)
		}
	})
	<-inside
	_, err := other.service.Checkpoint(ctx, "a", Request{})
	if !errors.Is(err, memory.ErrConflict) || !strings.Contains(err.Error(), "already running") {
		t.Errorf("a second run: %v", err)
	}
	close(goOn)
	wg.Wait()
	distilledOnce(t, other, ids)
}

func TestRulesWithoutModel(t *testing.T) {
	w := newWorld(t, nil)
	w.say(t, "I am allergic to peanuts.", "What time is it?")
	res := w.checkpoint(t)
	if res.Mode != working.ModeRules || res.BacklogLeft != 0 || len(res.Created) == 0 {
		t.Errorf("result %+v", res)
	}
	for _, it := range w.items(t, "active") {
		if it.Provisional || len(it.Evidence) == 0 {
			t.Errorf("item %+v", it)
		}
	}
}

// TestUselessModelIsNotPaidForEver has a model answer garbage to every batch: a run
// gives up, and comes to what is new all the same when the model is well again.
func TestUselessModelIsNotPaidForEver(t *testing.T) {
	garbage := true
	model := &echo{edit: func(distill.Batch, *distill.Reply) ([]byte, error) {
		if garbage {
			return []byte("garbage"), nil
		}
		return nil, nil
	}}
	w := newWorld(t, model)
	ids := w.say(t, sayings(0, 200)...)
	res := w.checkpoint(t)
	if model.calls != mayBeUseless || res.StoppedBy != ByModel || !strings.Contains(res.Stopped, "12 answers of the model in a row") || res.BacklogLeft == 0 || !res.Failed() {
		t.Errorf("first run: %d calls, %+v", model.calls, res)
	}
	model.calls = 0
	if w.checkpoint(t); model.calls > 2*mayBeUseless {
		t.Errorf("second run: %d calls", model.calls)
	}
	garbage = false
	if res := w.checkpoint(t); res.BacklogLeft != 0 || len(res.Parked) != 0 || res.Failed() {
		t.Errorf("with the model well again: %+v", res)
	}
	distilledOnce(t, w, ids)
}

func TestEstimateAsksNobody(t *testing.T) {
	model := &echo{}
	w := newWorld(t, model)
	ids := w.say(t, sayings(0, 40)...)
	estimate := func() Estimate {
		t.Helper()
		res, err := w.service.Checkpoint(t.Context(), "a", Request{Estimate: true})
		if err != nil || res.Estimate == nil || res.Failed() || res.Batches != 0 {
			t.Fatalf("estimate: %+v, %v", res, err)
		}
		return *res.Estimate
	}
	before := w.health(t).LastSeq
	first := estimate()
	if model.calls != 0 || w.health(t).LastSeq != before {
		t.Errorf("the estimate made %d calls and %d events", model.calls, w.health(t).LastSeq-before)
	}
	res := w.checkpoint(t)
	if first.Batches != res.Batches || first.Events != res.Events || first.Calls != model.calls || first.TokensIn < 100*first.Calls || !strings.Contains(first.How, "none is known yet") {
		t.Errorf("estimated %+v, done %+v with %d calls", first, res, model.calls)
	}
	if e := estimate(); e.Calls != 0 || e.Tokens() != 0 {
		t.Errorf("nothing is left, and the estimate is %+v", e)
	}
	again, err := w.service.Estimate(t.Context(), "a", 0)
	if err != nil || again.Events != len(ids) || !strings.Contains(again.How, "last") {
		t.Errorf("from the beginning: %+v, %v", again, err)
	}
	free := sameWorld(t, w.dir, nil)
	if e, err := free.service.Estimate(t.Context(), "a", 0); err != nil || e.Calls != 0 || e.Events != len(ids) {
		t.Errorf("without a model: %+v, %v", e, err)
	}
}

func TestCostOfItems(t *testing.T) {
	w := newWorld(t, &echo{})
	begin := time.Now()
	if c, err := w.store.Cost(t.Context(), begin, begin.Add(time.Hour)); err != nil || c != (working.Cost{}) {
		t.Errorf("before anything: %+v, %v", c, err)
	}
	w.say(t, sayings(0, 6)...)
	res := w.checkpoint(t)
	c, err := w.store.Cost(t.Context(), begin.Add(-time.Second), begin.Add(time.Hour))
	want := working.Cost{Checkpoints: res.Batches, Items: 6, TokensIn: res.TokensIn, TokensOut: res.TokensOut, PerItem: float64(res.TokensIn+res.TokensOut) / 6}
	if err != nil || c != want {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
	if c, err := w.store.Cost(t.Context(), begin.Add(-time.Hour), begin.Add(-time.Second)); err != nil || c.Checkpoints != 0 {
		t.Errorf("an hour before: %+v, %v", c, err)
	}
}

// TestAnswersThatSayNothingAreNotDistilled has the offline answerer not know
// something: a model is not shown that as news.
func TestAnswersThatSayNothingAreNotDistilled(t *testing.T) {
	w := newWorld(t, &echo{})
	ids := w.say(t, sayings(0, 1)...)
	nothing, err := llm.Offline{}.Chat(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Content: "Where do I live?"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.log.Write(t.Context(), memory.Event{Type: memory.AssistantOutput, Origin: memory.OriginAssistant, Text: nothing.Text, SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	w.checkpoint(t)
	distilledOnce(t, w, ids)
	if h := w.health(t); h.Backlog != 0 {
		t.Errorf("%d turns are left", h.Backlog)
	}
}
