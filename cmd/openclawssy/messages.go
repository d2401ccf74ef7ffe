package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/message"
)

func (h *house) openLedger(ctx context.Context, agent memory.AgentID, dir agents.Dir) (*message.Store, []func(), error) {
	s, err := h.openLedgerAs(ctx, agent, dir, false)
	return s, nil, err
}

func (h *house) openLedgerReadOnly(ctx context.Context, agent memory.AgentID, dir agents.Dir) (*message.Store, []func(), error) {
	s, err := h.openLedgerAs(ctx, agent, dir, true)
	return s, nil, err
}

func (h *house) openLedgerAs(ctx context.Context, agent memory.AgentID, dir agents.Dir, readOnly bool) (*message.Store, error) {
	red, err := h.redactor()
	if err != nil {
		return nil, err
	}
	return message.Open(ctx, dir.Path("memory", message.FileName), message.Options{Agent: agent, Redact: red, Now: h.now, ReadOnly: readOnly})
}

// readLedger lends an agent's messages; ErrNotFound where it has none.
func (h *house) readLedger(ctx context.Context, agent memory.AgentID) (*message.Store, func(), error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(dir.Path("memory", message.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, memory.Errorf(memory.ErrNotFound, "agent %s has no messages", agent)
	}
	return h.ledgers.read(ctx, agent)
}

// makeDesk returns the messages of all agents.
func (h *house) makeDesk() *message.Service {
	return message.NewService(message.ServiceOptions{
		Read: h.readLedger, Write: h.ledgers.write, Memory: itemsOf{h}, Session: h.sessionOf,
		Has: func(agent memory.AgentID) error {
			_, err := h.home.Find(agent)
			return err
		},
		Settings: h.messageSettings, Route: h.messageRoute, OnSent: h.passed, Hold: h.hold(erasure.Follow),
		Now: h.now, Rand: rand.Float64, Log: h.log,
	})
}

// speaksUp reports whether an agent sends messages by itself.
func (h *house) speaksUp(agent memory.AgentID) bool {
	set, err := h.messageSettings(agent)
	return err == nil && set.Enabled && h.desk != nil
}

func (h *house) messageSettings(agent memory.AgentID) (message.Settings, error) {
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return message.Settings{}, err
	}
	p := cfg.Proactive
	from, to, err := config.ParseHours(p.QuietHours)
	var routes []string
	if p.WebhookURL != "" {
		routes = []string{message.WebhookRoute}
	}
	return message.Settings{Enabled: p.Enabled && cfg.Memory.Enabled, DailyCap: p.DailyCap, Cooldown: time.Duration(p.Cooldown), QuietFrom: from, QuietTo: to,
		Routes: routes, Agents: p.Agents, PrivateInGroups: cfg.Recall.PrivateInGroups}, err
}

// messageRoute returns where an agent's messages go besides its inbox.
func (h *house) messageRoute(agent memory.AgentID, name string) (message.Route, error) {
	cfg, err := h.cfg.For(agent)
	switch {
	case err != nil:
		return nil, err
	case name != message.WebhookRoute || cfg.Proactive.WebhookURL == "":
		return nil, memory.Errorf(memory.ErrNotFound, "it is not configured any more")
	}
	p := cfg.Proactive
	secret, err := llm.Secret(p.WebhookSecret, h.getenv, h.home.Path())
	if err != nil {
		return nil, fmt.Errorf("proactive.webhook_secret: %w", err)
	}
	to, err := url.Parse(p.WebhookURL)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "proactive.webhook_url: %w", err)
	}
	client, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: to.Scheme + "://" + to.Host, Private: p.WebhookPrivate}}, Timeout: webhookTimeout, MaxBytes: 1 << 20})
	if err != nil {
		return nil, fmt.Errorf("proactive.webhook_url: %w", err)
	}
	return message.Webhook{URL: p.WebhookURL, Client: client, Secret: secret, Now: h.now}, nil
}

const webhookTimeout = 20 * time.Second

// passed records a message between agents in the graphs of both.
func (h *house) passed(_ context.Context, m message.Message) {
	if h.recorder == nil {
		return
	}
	for _, agent := range []memory.AgentID{m.Agent, m.To} {
		h.recorder.MessagePassed(agent, graph.SwarmMessage{Sender: string(m.Agent), Receiver: string(m.To), Message: m.Text})
	}
}

// sessionOf looks up a session; it creates nothing.
func (h *house) sessionOf(ctx context.Context, agent memory.AgentID, id string) (memory.Session, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return memory.Session{}, err
	}
	s, err := h.sessions(agent, dir)
	if err != nil {
		return memory.Session{}, err
	}
	return s.Get(ctx, id)
}

// messagesSince is since when an agent has a message to send or to deliver; zero
// for none.
func (h *house) messagesSince(agent memory.AgentID) time.Time {
	if h.looking {
		return time.Time{} // opening the ledger would write
	}
	due, err := h.desk.Due(h.life, agent)
	if err != nil {
		h.log.Warn().Err(err).Str("agent", string(agent)).Msg("look for messages that are due")
	}
	if err != nil || due.After(h.now()) {
		return time.Time{}
	}
	return due
}

// news returns the messages that no chat has shown to a session's user yet.
func (h *house) news(ctx context.Context, agent memory.AgentID, s memory.Session) ([]string, error) {
	list, err := h.desk.Take(ctx, agent, message.Viewer{SessionID: s.ID, Channel: s.Channel, UserID: s.UserID, Private: s.Kind != memory.SessionGroup})
	lines := make([]string, len(list))
	for i, m := range list {
		lines[i] = m.Line()
	}
	return lines, err
}

// itemsOf is agents' working memory as messages follow it.
type itemsOf struct{ h *house }

func (x itemsOf) ChangedSince(ctx context.Context, agent memory.AgentID, since message.Mark, limit int) (message.Page, error) {
	store, release, err := x.h.items.read(ctx, agent)
	if err != nil {
		return message.Page{}, err
	}
	defer release()
	got, err := store.ChangedSince(ctx, working.Mark(since), limit)
	return message.Page{Items: sourced(got.Items), Last: message.Mark(got.Last), More: got.More}, err
}

func (x itemsOf) Find(ctx context.Context, agent memory.AgentID, names []string) ([]message.Sourced, error) {
	store, release, err := x.h.items.read(ctx, agent)
	if err != nil {
		return nil, err
	}
	defer release()
	var ids []string
	for _, name := range names {
		got, err := store.Get(ctx, working.GetRequest{Handle: name})
		switch {
		case errors.Is(err, memory.ErrNotFound), errors.Is(err, memory.ErrInvalid):
			continue
		case err != nil:
			return nil, err
		}
		ids = append(ids, got.Item.ID)
	}
	items, err := store.ByID(ctx, ids)
	return sourced(items), err
}

func sourced(items []working.Sourced) []message.Sourced {
	out := make([]message.Sourced, len(items))
	for i, it := range items {
		out[i] = message.Sourced(it)
	}
	return out
}

func (x itemsOf) Turns(ctx context.Context, agent memory.AgentID, eventIDs []string) (map[string]message.Turn, error) {
	if len(eventIDs) == 0 {
		return nil, nil
	}
	a, release, err := x.h.followed(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	turns, err := a.Turns(ctx, eventIDs)
	if err != nil {
		return nil, err
	}
	out := make(map[string]message.Turn, len(turns))
	for id, t := range turns {
		out[id] = message.Turn{Session: t.Session, Time: t.Time}
	}
	return out, nil
}
