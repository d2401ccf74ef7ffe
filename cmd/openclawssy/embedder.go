package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/spend"
)

// embedProvider resolves auto.
func embedProvider(e config.Embeddings, getenv func(string) string) string {
	if e.Provider != embed.Auto {
		return e.Provider
	}
	if first, found := embed.First(getenv); found {
		return string(first)
	}
	return embed.LSA
}

// embeddings returns the client of an agent's configured model, made on first
// use; nil where none is asked over the network.
func (h *house) embeddings(agent memory.AgentID) (*embed.Client, error) {
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return nil, err
	}
	return h.embeddingsOf(cfg.Embeddings, "")
}

// embeddingsOf is embeddings for a section of the configuration, and a model that
// stands in for the one in it unless it is empty.
func (h *house) embeddingsOf(e config.Embeddings, model string) (*embed.Client, error) {
	if model != "" {
		e.Model = model
		if err := e.Validate(); err != nil {
			return nil, err
		}
	}
	client, _ := h.embedders.LoadOrStore(e, made(func() (*embed.Client, error) { return h.makeEmbeddings(e) }))
	return client.(func() (*embed.Client, error))()
}

// named is an embedder under the name that its model has at the endpoint, which
// is what OpenClaw's index keeps.
type named struct {
	embed.Embedder
	name string
}

func (n named) ModelID() string { return n.name }

// makeEmbeddings returns the client of the configured model; nil where none is
// asked over the network.
func (h *house) makeEmbeddings(e config.Embeddings) (*embed.Client, error) {
	name := embedProvider(e, h.getenv)
	if name == embed.LSA || name == embed.Off {
		return nil, nil
	}
	usual, known := embed.UsualOf(embed.Provider(name))
	if !known {
		return nil, &memory.FieldError{Field: "embeddings.provider", Reason: fmt.Sprintf("%q is not known", name)}
	}
	key, err := h.embeddingsKey(e.Key, name, usual)
	if err != nil {
		return nil, err
	}
	url := e.BaseURL
	if url == "" {
		url = usual.BaseURL
	}
	timeout := time.Duration(e.Timeout)
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: url, Private: e.AllowPrivate}}, Timeout: timeout})
	if err != nil {
		return nil, fmt.Errorf("embeddings.base_url: %w", err)
	}
	return embed.New(embed.Config{
		Provider: embed.Provider(name), BaseURL: e.BaseURL, Model: e.Model, Key: key, Dimensions: e.Dimensions, MaxInputTokens: e.MaxInputTokens,
		BatchTexts: e.BatchTexts, PerMinute: e.RequestsPerMinute, Timeout: timeout, MaxRetries: e.MaxRetries,
		QueryPrefix: e.QueryPrefix, TextPrefix: e.TextPrefix, Spend: h.embeddingsLedger(),
	}, out, h.now, rand.Float64)
}

// embeddingsKey is the configured key, else that of the provider's variable.
func (h *house) embeddingsKey(ref, provider string, usual embed.Usual) (string, error) {
	if ref == "" {
		name := usual.KeyName(h.getenv)
		if name == "" && len(usual.KeyNames) > 0 {
			return "", &memory.FieldError{Field: "embeddings.key", Reason: fmt.Sprintf("is not set, nor is the variable %s", usual.KeyNames[0]), Hint: "export " + usual.KeyNames[0] + "=… for provider " + provider}
		}
		if name == "" {
			return "", nil
		}
		ref = "env:" + name
	}
	key, err := llm.Secret(ref, h.getenv, h.home.Path())
	if err != nil {
		return "", fmt.Errorf("embeddings.key: %w", err)
	}
	return key, nil
}

// embeddingsLedger is the account of what agents spend on embeddings. It is not
// that of the chat model: a long history to embed must not make an agent mute.
func (h *house) embeddingsLedger() *spend.Ledger {
	return spend.New(h.home.File("spend-embeddings.json"), func(agent memory.AgentID) spend.Limits {
		cfg, err := h.cfg.For(agent)
		if err != nil { // checked when it was loaded; the strictest is the safe answer
			return spend.Limits{DailyTokens: 1, DailyCalls: 1}
		}
		return spend.Limits{DailyTokens: cfg.Embeddings.DailyTokens}
	}, h.now).Section("embeddings")
}

// mmrLambda is how much relevance counts against variety.
const mmrLambda = .7

// reranker is what orders an agent's candidates anew; nil for nothing.
func (h *house) reranker(agent memory.AgentID) recall.Reranker {
	cfg, err := h.cfg.For(agent)
	if err != nil { // checked when it was loaded
		return nil
	}
	return h.rerankerOf(cfg.Recall)
}

func (h *house) rerankerOf(c config.Recall) recall.Reranker {
	switch c.Rerank {
	case "mmr":
		return recall.MMR{Lambda: mmrLambda}
	case "endpoint":
		made, _ := h.rerankers.LoadOrStore(c, sync.OnceValue(func() recall.Reranker { return h.makeReranker(c) }))
		return made.(func() recall.Reranker)()
	}
	return nil
}

func (h *house) makeReranker(c config.Recall) recall.Reranker {
	key, err := llm.Secret(c.RerankKey, h.getenv, h.home.Path())
	if err != nil {
		return unusable{fmt.Errorf("recall.rerank_key: %w", err)}
	}
	limit := time.Duration(c.DeadlineMS) * time.Millisecond
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: c.RerankURL, Private: c.RerankPrivate}}, Timeout: limit})
	if err != nil {
		return unusable{fmt.Errorf("recall.rerank_url: %w", err)}
	}
	r, err := embed.NewReranker(c.RerankURL, c.RerankModel, key, out, h.now, limit)
	if err != nil {
		return unusable{err}
	}
	return r
}

// unusable is a reranker that cannot be asked: each trace says why.
type unusable struct{ err error }

func (u unusable) Rerank(context.Context, memory.AgentID, string, []string, []float64) ([]int, error) {
	return nil, u.err
}
