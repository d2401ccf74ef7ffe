package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/spend"
)

// offline is the provider that stands for no model.
const offline = "offline"

// makeModel returns the configured model's client; nil for none.
func (h *house) makeModel() (*llm.Client, error) { return h.modelNamed(h.cfg.Model.Name) }

// modelNamed returns the client of another model of the configured provider; nil
// where none is configured.
func (h *house) modelNamed(name string) (*llm.Client, error) {
	m := h.cfg.Model
	m.Name = name
	return h.modelOf(m)
}

// modelOf returns the client of a model; nil for the provider that stands for
// none.
func (h *house) modelOf(m config.Model) (*llm.Client, error) {
	if m.Provider == offline {
		return nil, nil
	}
	url, key, err := h.placeOf(m)
	if err != nil {
		return nil, err
	}
	timeout := time.Duration(m.Timeout)
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: url, Private: m.AllowPrivate}}, Timeout: timeout})
	if err != nil {
		return nil, fmt.Errorf("model.base_url: %w", err)
	}
	return llm.New(llm.Config{
		Provider: llm.Provider(m.Provider), BaseURL: m.BaseURL, Model: m.Name, Key: key, Timeout: timeout,
		MaxRetries: m.MaxRetries, ContextWindow: m.ContextWindow, Spend: h.ledger(),
	}, out, h.now, rand.Float64)
}

// provider returns where the configured model is asked, and the key.
func (h *house) provider() (url, key string, err error) { return h.placeOf(h.cfg.Model) }

func (h *house) placeOf(m config.Model) (url, key string, err error) {
	if key, err = llm.Secret(m.Key, h.getenv, h.home.Path()); err != nil {
		return "", "", fmt.Errorf("model.key: %w", err)
	}
	return llm.BaseURL(llm.Provider(m.Provider), m.BaseURL), key, nil
}

// tryModel asks a model for one word.
func (h *house) tryModel(ctx context.Context, agent memory.AgentID, m config.Model) (string, error) {
	m.MaxRetries = 0
	client, err := h.modelOf(m)
	if err != nil || client == nil {
		return "", err
	}
	defer client.Close()
	reply, err := client.Chat(ctx, llm.Request{Agent: agent, Messages: []llm.Message{{Role: llm.User, Content: "Answer with the word: ready"}}})
	return reply.Text, err
}

// ledger returns the account of what agents spend.
func (h *house) ledger() *spend.Ledger {
	return spend.New(h.home.File("spend.json"), func(agent memory.AgentID) spend.Limits {
		cfg, err := h.cfg.For(agent)
		if err != nil { // checked when it was loaded; the strictest is the safe answer
			return spend.Limits{DailyTokens: 1, DailyCalls: 1}
		}
		return spend.Limits{DailyTokens: cfg.Spend.DailyTokens, DailyCalls: cfg.Spend.DailyCalls,
			TotalTokens: h.cfg.Spend.TotalTokens, TotalCalls: h.cfg.Spend.TotalCalls}
	}, h.now)
}

// asking is a model's client as a distiller needs it.
type asking struct {
	completer llm.Completer
	model     string
}

func (a asking) Complete(ctx context.Context, system, user string, schema json.Marshaler) (string, distill.Usage, error) {
	text, u, err := a.completer.Complete(ctx, system, user, schema)
	return text, distill.Usage{Model: a.model, Calls: u.Calls, TokensIn: u.TokensIn, TokensOut: u.TokensOut}, err
}

// checkpointing lends what an agent's checkpoints work with.
func (h *house) checkpointing(ctx context.Context, agent memory.AgentID) (checkpoint.Agent, func(), error) {
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return checkpoint.Agent{}, nil, err
	}
	model, err := h.model()
	if err != nil {
		return checkpoint.Agent{}, nil, err
	}
	dir, err := h.home.Find(agent)
	if err != nil {
		return checkpoint.Agent{}, nil, err
	}
	sess, err := h.sessions(agent, dir)
	if err != nil {
		return checkpoint.Agent{}, nil, err
	}
	log, releaseLog, err := h.logs.write(ctx, agent)
	if err != nil {
		return checkpoint.Agent{}, nil, err
	}
	store, releaseStore, err := h.items.write(ctx, agent)
	if err != nil {
		releaseLog()
		return checkpoint.Agent{}, nil, err
	}
	a := checkpoint.Agent{Store: store, Log: log, Sessions: sess, Dir: dir.Path("memory", "checkpoints"),
		BatchTokens: cfg.Checkpoint.BatchTokens, OnFailure: cfg.Checkpoint.OnFailure}
	if model != nil {
		a.Model = distill.NewModel(asking{model.For(agent), model.Name()})
	}
	return a, func() { releaseStore(); releaseLog() }, nil
}

// process names this process to others that wait for its lease.
func process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// withheld stands where a text could not be made safe.
const withheld = "[withheld: the redaction key cannot be read]"

// lateRedactor is the home's redactor for rooms that are made before the home
// is known.
type lateRedactor struct{ h *house }

func (l lateRedactor) Text(s string) string {
	red, err := l.h.redactor()
	if err != nil {
		return withheld
	}
	return red.Text(s)
}

func (l lateRedactor) Value(v any) any {
	red, err := l.h.redactor()
	if err != nil {
		return withheld
	}
	return red.Value(v)
}
