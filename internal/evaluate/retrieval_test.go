package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
)

const smallLoCoMo = `[
 {"sample_id": "boats", "conversation": {
   "speaker_a": "Ines", "speaker_b": "Otto",
   "session_1_date_time": "1:56 pm on 8 May, 2025",
   "session_1": [
     {"speaker": "Ines", "dia_id": "D1:1", "text": "I bought a sailing boat yesterday!"},
     {"speaker": "Otto", "dia_id": "D1:2", "text": "How big is it?"},
     {"speaker": "Ines", "dia_id": "D1:3", "text": "Nine metres, with a red hull.", "blip_caption": "a boat at a pier"}],
   "session_2_date_time": "9:10 am on 2 June, 2025",
   "session_2": [
     {"speaker": "Otto", "dia_id": "D2:1", "text": "My bakery in Graz opens next week."},
     {"speaker": "Ines", "dia_id": "D2:2", "text": "Wonderful, I love rye bread."}]},
  "qa": [
   {"question": "What colour is the hull of the boat?", "answer": "red", "evidence": ["D1:3"], "category": 4},
   {"question": "When did Ines buy the boat?", "answer": "7 May 2025", "evidence": ["D1:1"], "category": 2},
   {"question": "Where is Otto's bakery, and what bread does Ines love?", "evidence": ["D2:1; D2:2"], "category": 1},
   {"question": "What bread does Otto love?", "adversarial_answer": "rye", "evidence": ["D:2:2"], "category": 5},
   {"question": "Nothing is known of this", "evidence": ["D"], "category": 4},
   {"question": "Nor of this", "evidence": [], "category": 3}]},
 {"conversation": {
   "session_1_date_time": "12:00 am on 1 January, 2025",
   "session_1": [
     {"speaker": "Ada", "dia_id": "D1:1", "text": "My telescope needs a new mirror."},
     {"speaker": "Bo", "dia_id": "D1:2", "text": "The observatory sells mirrors."}]},
  "qa": [{"question": "What does the telescope need?", "evidence": ["D1:1"], "category": 4}]}
]`

func options(t *testing.T) RetrievalOptions {
	return RetrievalOptions{Now: time.Now, TempDir: t.TempDir()}
}

func TestLoCoMo(t *testing.T) {
	var steps []int
	opts := options(t)
	opts.Done = func(done, all int) { steps = append(steps, done, all) }
	r, err := LoCoMo(context.Background(), strings.NewReader(smallLoCoMo), opts)
	if err != nil {
		t.Fatal(err)
	}
	if r.Overall.Questions != 5 || r.Categories1To4.Questions != 4 || r.ByCategory["5"].Questions != 1 || r.Skipped != 2 {
		t.Errorf("questions %d, %d, %d, skipped %d", r.Overall.Questions, r.Categories1To4.Questions, r.ByCategory["5"].Questions, r.Skipped)
	}
	m := r.Categories1To4
	for name, got := range map[string]float64{"recall@5": m.RecallAt5, "recall@10": m.RecallAt10, "hit@20": m.HitAt20, "mrr": m.MRR, "ndcg": m.NDCGAt10,
		"1200": m.RecallAt1200Tokens, "2400": m.RecallAt2400Tokens, "session@1": m.SessionHitAt1, "session mrr": m.SessionMRR} {
		if got < .99 {
			t.Errorf("%s = %v on questions that any search answers", name, got)
		}
	}
	if c := r.Conversations; len(c) != 2 || c[0].ID != "boats" || c[0].Turns != 5 || c[0].Sessions != 2 || c[1].ID != "1" {
		t.Errorf("conversations %+v", r.Conversations)
	}
	if m.StandardError == nil || r.Conversations[0].StandardError != nil {
		t.Error("the standard error is one over conversations")
	}
	if r.AsShipped == nil || r.AsShipped.Questions != 4 || r.AsShipped.RecallInBlock == 0 {
		t.Errorf("as shipped: %+v", r.AsShipped)
	}
	if !slices.Equal(steps, []int{1, 2, 2, 2}) {
		t.Errorf("progress %v", steps)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"overall":{"questions":5,"recall_at_5":`, `"categories_1_4":{`, `"by_category":{"1":{`, `"recall_at_1200_tokens":`, `"session_hit_at_1":`, `"latency_p95_ms":`} {
		if !strings.Contains(string(raw), key) {
			t.Errorf("%s is not in %s", key, raw)
		}
	}
}

// Two runs give the same figures, latencies and what keeps to a deadline aside.
func TestLoCoMoIsDeterministic(t *testing.T) {
	var runs [2]string
	for i := range runs {
		r, err := LoCoMo(context.Background(), strings.NewReader(smallLoCoMo), RetrievalOptions{Now: func() time.Time { return time.Unix(1.7e9, 0) }, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		r.AsShipped = nil
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = string(raw)
	}
	if runs[0] != runs[1] {
		t.Errorf("one run gives\n%s\nand another\n%s", runs[0], runs[1])
	}
}

// counting orders nothing, and counts how often it was asked to.
type counting struct{ asked *atomic.Int64 }

func (c counting) Rerank(_ context.Context, _ memory.AgentID, _ string, texts []string, _ []float64) ([]int, error) {
	c.asked.Add(1)
	order := make([]int, len(texts))
	for i := range order {
		order[i] = i
	}
	return order, nil
}

func TestARerankerIsMeasured(t *testing.T) {
	opts := options(t)
	var asked atomic.Int64
	opts.Rerank = counting{&asked}
	r, err := LoCoMo(context.Background(), strings.NewReader(smallLoCoMo), opts)
	if err != nil {
		t.Fatal(err)
	}
	if asked.Load() == 0 || r.AsShipped == nil {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestLoCoMoControl(t *testing.T) {
	opts := options(t)
	opts.Control = true
	r, err := LoCoMo(context.Background(), strings.NewReader(smallLoCoMo), opts)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Control || r.AsShipped != nil || r.Categories1To4.MRR > .9 {
		t.Errorf("evidence of other questions is found first: %+v", r.Categories1To4)
	}
}

const smallLongMemEval = `[
 {"question_id": "q1", "question_type": "single-session-user", "question": "What is my cat called?", "answer": "Miso", "question_date": "2025/06/20 (Fri) 10:00",
  "haystack_dates": ["2025/06/01 (Sun) 09:00", "2025/06/02 (Mon) 09:00"], "haystack_session_ids": ["cats", "cars"],
  "haystack_sessions": [
    [{"role": "user", "content": "My cat is called Miso."}, {"role": "assistant", "content": "A fine name for a cat."}],
    [{"role": "user", "content": "Which tyres suit snow?"}, {"role": "assistant", "content": "Winter tyres with studs."}]],
  "answer_session_ids": ["cats"]},
 {"question_id": "q2", "question_type": "single-session-assistant", "question": "Which tyres did you recommend for snow?", "answer": "studs", "question_date": "2025/06/20 (Fri) 10:00",
  "haystack_dates": ["2025/06/01 (Sun) 09:00", "2025/06/02 (Mon) 09:00"], "haystack_session_ids": ["cats", "cars"],
  "haystack_sessions": [
    [{"role": "user", "content": "My cat is called Miso."}, {"role": "assistant", "content": "A fine name for a cat."}],
    [{"role": "user", "content": "Which tyres suit snow?"}, {"role": "assistant", "content": "Winter tyres with studs."}]],
  "answer_session_ids": ["cars"]}
]`

func TestLongMemEval(t *testing.T) {
	r, err := LongMemEval(context.Background(), strings.NewReader(smallLongMemEval), options(t))
	if err != nil {
		t.Fatal(err)
	}
	if r.Overall.Questions != 2 || r.Overall.SessionHitAt1 != 1 || r.Overall.SessionHitAt5 != 1 || r.Overall.SessionHitAt10 != 1 || r.Overall.SessionMRR != 1 {
		t.Errorf("overall %+v", r.Overall)
	}
	if r.Overall.LatencyP50MS == 0 {
		t.Error("no latency")
	}
	if len(r.ByQuestionType) != 2 || r.ByQuestionType["single-session-user"].Questions != 1 {
		t.Errorf("by type %+v", r.ByQuestionType)
	}
}

func TestBadFiles(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "{", "an object": `{"a": 1}`, "a date": strings.Replace(smallLoCoMo, "8 May, 2025", "8.5.25", 1), "no date": strings.Replace(smallLoCoMo, "session_1_date_time", "x", 1)} {
		if _, err := LoCoMo(context.Background(), strings.NewReader(text), options(t)); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("LoCoMo, %s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"no JSON": "[{", "an object": `{"a": 1}`, "a date": strings.Replace(smallLongMemEval, "2025/06/01 (Sun)", "June", 1), "lists differ": strings.Replace(smallLongMemEval, `["cats", "cars"]`, `["cats"]`, 1)} {
		if _, err := LongMemEval(context.Background(), strings.NewReader(text), options(t)); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("LongMemEval, %s: %v", name, err)
		}
	}
}

func ranking(turns ...string) []recall.Ranked {
	var out []recall.Ranked
	for i, turn := range turns {
		session, _, _ := strings.Cut(turn, ":")
		out = append(out, recall.Ranked{Episode: memory.Episode{SourceID: turn, SessionID: session}, Score: 10 - float64(i)})
	}
	return out
}

func TestTurnFigures(t *testing.T) {
	got := map[string]float64{}
	// b:2 has two passages, of which the second counts for nothing.
	turnFigures(got, ranking("a:1", "b:2", "b:2", "c:1", "d:1", "e:1", "f:1"), map[string]bool{"b:2": true, "e:1": true, "missing": true})
	gain := 1/math.Log2(3) + 1/math.Log2(6)
	ideal := 1 + 1/math.Log2(3) + 1/math.Log2(4)
	for name, want := range map[string]float64{"mrr": .5, "recall_at_5": 2. / 3, "recall_at_10": 2. / 3, "hit_at_10": 1, "ndcg_at_10": gain / ideal} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

func TestSessionFigures(t *testing.T) {
	got := map[string]float64{}
	// a: 10; b: 9 + .5·8 + .25·7 = 14.75; c: 6
	sessionFigures(got, ranking("a:1", "b:1", "b:2", "b:3", "c:1"), map[string]bool{"a": true})
	for name, want := range map[string]float64{"session_mrr": .5, "session_hit_at_1": 0, "session_hit_at_5": 1, "session_hit_at_10": 1} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

func TestPercentileAndStandardError(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	if got := percentile([]time.Duration{ms(4), ms(1), ms(3), ms(2)}, .5); got != 2 {
		t.Errorf("median %v", got)
	}
	if got := percentile([]time.Duration{ms(4), ms(1), ms(3), ms(2)}, .95); got != 4 {
		t.Errorf("p95 %v", got)
	}
	if got := standardError([]float64{.7, .8, .9}); math.Abs(got-.1/math.Sqrt(3)) > 1e-9 {
		t.Errorf("standard error %v", got)
	}
}
