package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/httpapi"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/proxy"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/runtime"
)

// How long a provider may take for a client's request. The client ends it by
// leaving, as clients do that are less patient; what waits for nobody ends here.
const (
	proxyBegin   = 10 * time.Minute // until the answer begins: one that is not streamed comes as a whole
	proxySilence = 5 * time.Minute  // within a stream
	proxyWhole   = time.Hour
)

// makeProxy returns the OpenAI-compatible face of all agents.
func (h *house) makeProxy() *proxy.Proxy {
	take := h.intake()
	return proxy.New(proxy.Options{
		Upstream: h.upstream,
		Remembers: func(agent memory.AgentID) (bool, error) {
			cfg, err := h.cfg.For(agent)
			return cfg.Memory.Enabled, err
		},
		Open: h.opened, Recall: h.recalls, Take: take.Take, Past: h.proxied, Written: func(agent memory.AgentID) { h.index(agent) }, Runs: h.writeRuns,
		Hold: h.hold(erasure.Turn), Flush: h.flushes,
		FlushAt: func(agent memory.AgentID) int {
			cfg, err := h.cfg.For(agent)
			if err != nil { // checked when it was loaded
				cfg = h.cfg
			}
			return runtime.FlushAt(cfg)
		},
		Redact: lateRedactor{h}, Key: made(h.proxyKey), Now: h.now, Log: h.log,
	})
}

// proxyMounts are the addresses of the proxy.
func proxyMounts(p *proxy.Proxy) []httpapi.Mount {
	return []httpapi.Mount{
		{Pattern: "POST /v1/chat/completions", Summary: "A chat completion of the OpenAI API, with memory.", Right: access.Write, Body: proxy.MaxBody, Handler: p,
			Answers: []string{"application/json", "text/event-stream"}, Takes: []httpapi.Header{agentHeader,
				{Name: proxy.HeaderSession, Description: "the conversation; follows from user and the conversation's beginning if absent"},
				{Name: proxy.HeaderMemory, Description: "both (if absent), read, write or off"}}},
		{Pattern: "POST /v1/embeddings", Summary: "Embeddings of the OpenAI API, passed on.", Right: access.Write, Body: proxy.MaxBody, Handler: p},
		{Pattern: "GET /v1/models", Summary: "The provider's models.", Right: access.Read, Handler: p},
		{Pattern: "GET /v1/models/{model...}", Summary: "One of the provider's models.", Right: access.Read, Handler: p},
	}
}

// agentHeader names the agent where the address does not.
var agentHeader = httpapi.Header{Name: access.AgentHeader, Description: "whose memory; else the one agent that the token is for, else default"}

// makeUpstream returns the configured provider for requests that are not ours; nil
// where there is none.
func (h *house) makeUpstream() (*proxy.Upstream, error) {
	m := h.cfg.Model
	if m.Provider == offline {
		return nil, nil
	}
	url, key, err := h.provider()
	if err != nil {
		return nil, err
	}
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: url, Private: m.AllowPrivate}}, Timeout: proxyWhole, HeaderTimeout: proxyBegin, IdleTimeout: proxySilence})
	if err != nil {
		return nil, err
	}
	return &proxy.Upstream{BaseURL: url, Key: key, Model: m.Name, Client: out}, nil
}

// proxyKey is a secret of the home's own, which follows from its redaction key.
func (h *house) proxyKey() ([]byte, error) {
	key, err := redact.LoadOrCreateKey(h.home.File("redact.key"))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte("ids of proxied messages "), key...))
	return sum[:], nil
}

// proxied returns what the proxy has written down of a session.
func (h *house) proxied(ctx context.Context, agent memory.AgentID, session string, most int) ([]proxy.Said, error) {
	a, rest, release, err := h.archiveAndRest(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	told, err := a.Told(ctx, session, most)
	var said []proxy.Said
	add := func(source string, seq int64, kind memory.EventType) {
		said = append(said, proxy.Said{Source: source, Seq: seq, Answer: kind == memory.AssistantOutput || kind == memory.ToolCall})
	}
	last := int64(0)
	for _, t := range told {
		add(t.SourceID, t.Seq, t.Type)
		last = t.Seq
	}
	for _, e := range rest {
		if source := e.Meta(memory.MetaSourceID); e.SessionID == session && source != "" && e.Type.IsTurn() && e.Seq > last {
			add(source, e.Seq, e.Type)
		}
	}
	return said[max(0, len(said)-most):], err
}

// forgetBlocks drops what the proxy keeps of an agent's memory.
func (h *house) forgetBlocks(agent memory.AgentID) {
	if p := h.proxy.Load(); p != nil {
		p.Forget(agent)
	}
}

// countProxied shows what the proxy counts.
func countProxied(registry *prometheus.Registry, p *proxy.Proxy) {
	for _, c := range []struct {
		name, help string
		value      func(proxy.Stats) int64
	}{
		{"openclawssy_proxy_requests_total", "Chat completions that clients asked for.", func(s proxy.Stats) int64 { return s.Requests }},
		{"openclawssy_proxy_recall_failed_total", "Of them, those that went on without a part of memory.", func(s proxy.Stats) int64 { return s.RecallFailed }},
		{"openclawssy_proxy_capture_failed_total", "Of them, those that were not written down.", func(s proxy.Stats) int64 { return s.CaptureFailed }},
		{"openclawssy_proxy_tokens_in_total", "Tokens of clients' requests, as the provider counts them.", func(s proxy.Stats) int64 { return s.TokensIn }},
		{"openclawssy_proxy_tokens_out_total", "Tokens of the answers, as the provider counts them.", func(s proxy.Stats) int64 { return s.TokensOut }},
	} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: c.name, Help: c.help}, func() float64 { return float64(c.value(p.Stats())) }))
	}
}
