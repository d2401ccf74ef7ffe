package embed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Reranker asks a cross-encoder's endpoint how well texts answer a question. It
// speaks the form that Cohere (https://docs.cohere.com/reference/rerank), Jina,
// vLLM and llama.cpp share, and takes Voyage's and TEI's answers too.
type Reranker struct {
	url, model, key string
	endpoint        *llm.Endpoint
}

// NewReranker returns a client of the endpoint at url, the whole address, asked by
// out, which allows it. Time bounds one call.
func NewReranker(address, model, key string, out *http.Client, now func() time.Time, limit time.Duration) (*Reranker, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, &memory.FieldError{Field: "recall.rerank_url", Reason: "must be the address of a rerank endpoint", Hint: "such as http://localhost:8012/v1/rerank"}
	}
	return &Reranker{url: address, model: model, key: key, endpoint: llm.NewEndpoint(llm.Endpoint{
		Host: u.Host, Key: key, Out: out, Now: now, Jitter: func() float64 { return 0 }, Timeout: limit,
		Keys: llm.Keys{Timeout: "recall.deadline_ms", Key: "recall.rerank_key"}})}, nil
}

// judged is one entry of an answer.
type judged struct {
	Index     *int     `json:"index"`
	Relevance *float64 `json:"relevance_score"`
	Score     *float64 `json:"score"`
}

// Rerank returns the indexes of texts, best first; those that the endpoint left out
// follow in their order. An answer that is none is an error.
func (r *Reranker) Rerank(ctx context.Context, agent memory.AgentID, question string, texts []string, _ []float64) ([]int, error) {
	body, err := json.Marshal(struct {
		Model     string   `json:"model,omitempty"`
		Query     string   `json:"query"`
		Documents []string `json:"documents"`
	}{r.model, question, texts})
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	var order []int
	_, err = r.endpoint.Ask(ctx, agent, llm.Exchange{
		Send: func(ctx context.Context, w *llm.Wire) error {
			w.MaxBytes = 1 << 20
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			if r.key != "" {
				req.Header.Set("Authorization", "Bearer "+r.key)
			}
			resp, err := w.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if _, err := raw.ReadFrom(resp.Body); err != nil {
				return err
			}
			if resp.StatusCode >= http.StatusMultipleChoices {
				return memory.Errorf(memory.ErrUnavailable, "%s answers %s", r.endpoint.Host, resp.Status)
			}
			return nil
		},
		Judge: func() error { order, err = orderOf(raw.Bytes(), len(texts)); return err },
		Used:  func(*llm.Wire) llm.Usage { return llm.Usage{Calls: 1} },
	})
	return order, err
}

// orderOf reads an answer about n texts.
func orderOf(raw []byte, n int) ([]int, error) {
	var doc struct {
		Results, Data []judged
	}
	list := []judged{}
	if strings.HasPrefix(strings.TrimSpace(string(raw)), "[") {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, memory.Errorf(memory.ErrUnavailable, "the reranker's answer: %w", err)
		}
	} else {
		if err := json.Unmarshal(raw, &doc); err != nil {
			return nil, memory.Errorf(memory.ErrUnavailable, "the reranker's answer: %w", err)
		}
		list = append(doc.Results, doc.Data...)
	}
	type scored struct {
		at    int
		value float64
	}
	found, seen := []scored{}, make([]bool, n)
	for _, j := range list {
		value := j.Relevance
		if value == nil {
			value = j.Score
		}
		if j.Index == nil || value == nil || *j.Index < 0 || *j.Index >= n || seen[*j.Index] || math.IsNaN(*value) {
			return nil, memory.Errorf(memory.ErrUnavailable, "the reranker's answer has an entry without a place of its own and a score")
		}
		seen[*j.Index] = true
		found = append(found, scored{*j.Index, *value})
	}
	if len(found) == 0 {
		return nil, memory.Errorf(memory.ErrUnavailable, "the reranker's answer orders nothing")
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.value, a.value) })
	order := make([]int, 0, n)
	for _, f := range found {
		order = append(order, f.at)
	}
	for i, had := range seen {
		if !had {
			order = append(order, i)
		}
	}
	return order, nil
}
