package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// RetrievalOptions say how retrieval is measured.
type RetrievalOptions struct {
	Now      func() time.Time // measures latency
	TempDir  string           // where agents are made and removed again; the system's if empty
	Hops     int              // steps in the graph that recall as shipped may take; 0 for none
	Embedder Embedder         // what makes vectors; nil for words alone
	Rerank   recall.Reranker  // orders the best candidates of blocks as shipped anew; nil for none
	Control  bool             // measure against the evidence of other questions of the same conversation
	// Done is called after each conversation, with how many are done and how many
	// there are. It may be nil.
	Done func(done, all int)
}

// Metrics are means over questions, 0 to 1, and latencies of a block from the
// question to its last byte. Recall is the share of a question's evidence turns
// among the best k turns; sessions are ranked by the sum 1, .5, .25, .12, .06 of
// their five best passages.
type Metrics struct {
	Questions          int     `json:"questions"`
	RecallAt5          float64 `json:"recall_at_5"`
	RecallAt10         float64 `json:"recall_at_10"`
	RecallAt20         float64 `json:"recall_at_20"`
	HitAt10            float64 `json:"hit_at_10"`
	HitAt20            float64 `json:"hit_at_20"`
	MRR                float64 `json:"mrr"`
	NDCGAt10           float64 `json:"ndcg_at_10"`
	RecallAt1200Tokens float64 `json:"recall_at_1200_tokens"`
	RecallAt2400Tokens float64 `json:"recall_at_2400_tokens"`
	SessionHitAt1      float64 `json:"session_hit_at_1"`
	SessionHitAt5      float64 `json:"session_hit_at_5"`
	SessionHitAt10     float64 `json:"session_hit_at_10"`
	SessionMRR         float64 `json:"session_mrr"`
	// StandardError is that of the means of conversations, by the name of the
	// figure; absent for a single conversation.
	StandardError map[string]float64 `json:"standard_error,omitempty"`
	LatencyP50MS  float64            `json:"latency_p50_ms"`
	LatencyP95MS  float64            `json:"latency_p95_ms"`
}

// Shipped are the figures of an installation as it comes: items distilled by
// rules beside the passages, abstention, 24 lines; no block is cut short. They are taken on
// the first ten conversations.
type Shipped struct {
	Questions     int     `json:"questions"`
	RecallInBlock float64 `json:"recall_in_block"` // evidence turns shown, or cited by an item shown
	Abstained     float64 `json:"abstained"`       // share of blocks that are empty
	Foreign       float64 `json:"foreign_abstained"`
	Degraded      int     `json:"degraded"`
	Late          int     `json:"late"`   // blocks that took longer than a turn waits
	Tokens        float64 `json:"tokens"` // mean size of a block
	LatencyP50MS  float64 `json:"latency_p50_ms"`
	LatencyP95MS  float64 `json:"latency_p95_ms"`
}

// ConversationMetrics are those of one conversation.
type ConversationMetrics struct {
	ID       string `json:"id"`
	Turns    int    `json:"turns"`
	Sessions int    `json:"sessions"`
	Metrics
}

// question is one question about a conversation, and where its answer stands.
type question struct {
	text     string
	category string
	at       time.Time       // when it is asked; zero for not known
	turns    map[string]bool // source ids of the evidence; nil where only sessions are known
	sessions map[string]bool
}

// conversation is what a fresh agent is told and then asked.
type conversation struct {
	id        string
	turns     []memory.Event
	questions []question
}

// asked is what came of one question.
type asked struct {
	category     string
	conversation int
	figures      map[string]float64 // by the JSON name of the figure
	latency      time.Duration
	shipped      shippedAnswer
	sources      map[string]string // source ids of passages, by handle
}

type shippedAnswer struct {
	measured  bool
	recall    float64
	hasTurns  bool
	abstained bool
	foreign   int // foreign questions asked in its place, and …
	refused   int // … how many of those were answered by an empty block
	degraded  bool
	tokens    float64
	latency   time.Duration
}

// run tells each conversation to an agent of its own and asks its questions.
func run(ctx context.Context, all []conversation, opts RetrievalOptions) ([]asked, error) {
	var out []asked
	for i, c := range all {
		if opts.Control {
			rotateEvidence(c.questions)
		}
		answers, err := runOne(ctx, i, c, foreignTo(i, all), opts)
		if err != nil {
			return nil, fmt.Errorf("conversation %s: %w", c.id, err)
		}
		out = append(out, answers...)
		if opts.Done != nil {
			opts.Done(i+1, len(all))
		}
	}
	return out, nil
}

// foreignTo returns the questions that conversation i cannot answer: those of
// the others.
func foreignTo(i int, all []conversation) []question {
	var foreign []question
	for j, other := range all {
		if j != i {
			foreign = append(foreign, other.questions...)
		}
	}
	return foreign
}

// rotateEvidence gives each question the evidence of another one, half the list
// away: what is found by chance.
func rotateEvidence(questions []question) {
	old := slices.Clone(questions)
	for i := range questions {
		other := old[(i+max(1, len(old)/2))%len(old)]
		questions[i].turns, questions[i].sessions = other.turns, other.sessions
	}
}

func runOne(ctx context.Context, index int, c conversation, foreign []question, opts RetrievalOptions) (answers []asked, err error) {
	dir, err := os.MkdirTemp(opts.TempDir, "evaluate-")
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "make an agent: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	h, err := newHome(ctx, dir, opts.Now)
	if err != nil {
		return nil, err
	}
	h.rerank = opts.Rerank
	defer func() { err = errors.Join(err, h.close()) }()
	if err := h.tell(ctx, c.turns); err != nil {
		return nil, err
	}
	if err := h.understand(ctx, opts.Embedder); err != nil {
		return nil, err
	}
	h.settings = bare
	for _, q := range c.questions {
		a, err := ask(ctx, h, q)
		if err != nil {
			return nil, fmt.Errorf("question %q: %w", q.text, err)
		}
		a.conversation = index
		answers = append(answers, a)
	}
	if opts.Control || index >= maxShipped {
		return answers, nil
	}
	return answers, askAllShipped(ctx, h, opts.Hops, c, foreign, answers)
}

// maxShipped is the most conversations that are distilled and asked as shipped:
// the first ones.
const maxShipped = 10

// askAllShipped measures the product as it comes on every question, and on a
// foreign one in its place.
func askAllShipped(ctx context.Context, h *home, hops int, c conversation, foreign []question, answers []asked) (err error) {
	if err := h.distil(ctx); err != nil {
		return err
	}
	if err := h.understandItems(ctx); err != nil {
		return err
	}
	h.settings = shipped
	h.settings.Hops = hops
	if hops > 0 {
		if err := h.weave(ctx); err != nil {
			return err
		}
	}
	for i, q := range c.questions {
		if answers[i].shipped, err = askShipped(ctx, h, q, answers[i].sources); err != nil {
			return fmt.Errorf("question %q: %w", q.text, err)
		}
		if len(foreign) > 0 {
			other := foreign[i*len(foreign)/len(c.questions)]
			answers[i].shipped.foreign++
			if h.recall().Block(ctx, evaluated, recall.Request{Text: other.text, Now: other.at}).Text == "" {
				answers[i].shipped.refused++
			}
		}
		answers[i].sources = nil
	}
	return nil
}

// ask measures one question on passages alone.
func ask(ctx context.Context, h *home, q question) (asked, error) {
	service := h.recall()
	request := recall.Request{Text: q.text, Now: q.at}
	ranking, err := service.Rank(ctx, evaluated, request, math.MaxInt32)
	if err != nil {
		return asked{}, err
	}
	out := asked{category: q.category, figures: map[string]float64{}}
	out.sources = map[string]string{}
	for _, r := range ranking {
		out.sources[r.Episode.Handle] = r.Episode.SourceID
	}
	if len(q.turns) > 0 {
		turnFigures(out.figures, ranking, q.turns)
	}
	for _, budget := range []struct {
		figure string
		tokens int
	}{{"recall_at_1200_tokens", 1200}, {"recall_at_2400_tokens", 2400}} {
		request.Tokens = budget.tokens
		start := h.now()
		block := service.Block(ctx, evaluated, request)
		if budget.tokens == bare.Tokens {
			out.latency = h.now().Sub(start)
		}
		if block.Degraded != "" {
			return asked{}, memory.Errorf(memory.ErrInternal, "recall is degraded: %s", block.Degraded)
		}
		if len(q.turns) > 0 {
			out.figures[budget.figure] = shown(block, out.sources, q.turns)
		}
	}
	sessionFigures(out.figures, ranking, q.sessions)
	return out, nil
}

var handle = regexp.MustCompile(`^\[((?:EVT|MEM)-\d+)\]`)

// shown returns the share of the turns that stand in a block; sources are the
// source ids by handle.
func shown(block recall.Block, sources map[string]string, turns map[string]bool) float64 {
	seen := map[string]bool{}
	for _, line := range block.Lines {
		if m := handle.FindStringSubmatch(line); m != nil && turns[sources[m[1]]] {
			seen[sources[m[1]]] = true
		}
	}
	return float64(len(seen)) / float64(len(turns))
}

// turnFigures scores a ranking of passages against the evidence turns: a turn
// stands where its first passage does.
func turnFigures(figures map[string]float64, ranking []recall.Ranked, turns map[string]bool) {
	seen := map[string]bool{}
	var found, gain float64
	for _, r := range ranking {
		if source := r.Episode.SourceID; !seen[source] {
			seen[source] = true
			if turns[source] {
				found++
				rank := float64(len(seen))
				if found == 1 {
					figures["mrr"] = 1 / rank
				}
				if rank <= 10 {
					gain += 1 / math.Log2(1+rank)
				}
			}
			for _, k := range []int{5, 10, 20} {
				if len(seen) <= k {
					figures[fmt.Sprintf("recall_at_%d", k)] = found / float64(len(turns))
					figures[fmt.Sprintf("hit_at_%d", k)] = min(1, found)
				}
			}
		}
	}
	var ideal float64
	for rank := 1; rank <= min(10, len(turns)); rank++ {
		ideal += 1 / math.Log2(1+float64(rank))
	}
	figures["ndcg_at_10"] = gain / ideal
}

// sessionWeights are those of a session's best passages.
var sessionWeights = []float64{1, .5, .25, .12, .06}

// sessionFigures ranks sessions by their best passages.
func sessionFigures(figures map[string]float64, ranking []recall.Ranked, sessions map[string]bool) {
	score, counted := map[string]float64{}, map[string]int{}
	var order []string
	for _, r := range ranking {
		id := r.Episode.SessionID
		if counted[id] == 0 {
			order = append(order, id)
		}
		if counted[id] < len(sessionWeights) {
			score[id] += sessionWeights[counted[id]] * r.Score
			counted[id]++
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(score[b], score[a]) })
	for i, id := range order {
		if sessions[id] {
			figures["session_mrr"] = 1 / float64(i+1)
			for _, k := range []int{1, 5, 10} {
				if i < k {
					figures[fmt.Sprintf("session_hit_at_%d", k)] = 1
				}
			}
			return
		}
	}
}

// askShipped measures one question on the product as it comes.
func askShipped(ctx context.Context, h *home, q question, sources map[string]string) (shippedAnswer, error) {
	start := h.now()
	block := h.recall().Block(ctx, evaluated, recall.Request{Text: q.text, Now: q.at})
	out := shippedAnswer{measured: true, latency: h.now().Sub(start), abstained: block.Text == "", degraded: block.Degraded != "", tokens: float64(len(block.Text)) / 4, hasTurns: len(q.turns) > 0}
	if !out.hasTurns {
		return out, nil
	}
	seen := map[string]bool{}
	for _, line := range block.Lines {
		cited, err := h.cited(ctx, line, sources)
		if err != nil {
			return out, err
		}
		for _, source := range cited {
			if q.turns[source] {
				seen[source] = true
			}
		}
	}
	out.recall = float64(len(seen)) / float64(len(q.turns))
	return out, nil
}

// cited returns the source ids of the turns that a line shows or rests on.
func (h *home) cited(ctx context.Context, line string, sources map[string]string) ([]string, error) {
	m := handle.FindStringSubmatch(line)
	if m == nil {
		return nil, memory.Errorf(memory.ErrInternal, "a line of the block has no handle: %.80q", line)
	}
	if strings.HasPrefix(m[1], "EVT-") {
		return []string{sources[m[1]]}, nil
	}
	got, err := h.items.Get(ctx, working.GetRequest{Handle: m[1]})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ev := range got.Item.Evidence {
		out = append(out, ev.SourceID)
	}
	return out, nil
}
