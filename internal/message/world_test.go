package message

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// stars hides one word.
type stars struct{}

func (stars) Text(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }

// people is a memory of agents, as messages see it.
type people struct {
	items    map[memory.AgentID][]Sourced // in the order of their last change
	turns    map[string]Turn
	sessions map[string]memory.Session
}

func (p *people) ChangedSince(_ context.Context, agent memory.AgentID, since Mark, limit int) (Page, error) {
	all := p.items[agent]
	if since.Seq > int64(len(all)) {
		return Page{}, memory.Errorf(memory.ErrNotFound, "no such mark")
	}
	rest := all[since.Seq:]
	page := Page{Last: since, More: len(rest) > limit}
	seen := map[string]bool{}
	for _, it := range rest[:min(limit, len(rest))] {
		page.Last = Mark{Seq: page.Last.Seq + 1, Item: it.ID}
		if !seen[it.ID] {
			page.Items = append(page.Items, p.now(agent, it.ID))
		}
		seen[it.ID] = true
	}
	return page, nil
}

// now is an item as it is now.
func (p *people) now(agent memory.AgentID, name string) Sourced {
	for _, it := range slices.Backward(p.items[agent]) {
		if it.ID == name || it.Handle == name {
			return it
		}
	}
	return Sourced{}
}

func (p *people) Find(_ context.Context, agent memory.AgentID, names []string) ([]Sourced, error) {
	var out []Sourced
	for _, name := range names {
		if it := p.now(agent, name); it.ID != "" {
			out = append(out, it)
		}
	}
	return out, nil
}

func (p *people) Turns(_ context.Context, _ memory.AgentID, ids []string) (map[string]Turn, error) {
	out := map[string]Turn{}
	for _, id := range ids {
		if t, known := p.turns[id]; known {
			out[id] = t
		}
	}
	return out, nil
}

// room is a home with agents, on a clock of its own.
type room struct {
	*testing.T
	*people
	dir     string
	at      time.Time
	set     Settings
	route   Route
	service *Service
	stores  map[memory.AgentID]*Store
	passed  []Message
	last    int // number of the last item
}

func newRoom(t *testing.T) *room {
	r := &room{T: t, dir: t.TempDir(), at: time.Date(2026, 5, 12, 11, 0, 0, 0, time.UTC),
		people: &people{items: map[memory.AgentID][]Sourced{}, turns: map[string]Turn{}, sessions: map[string]memory.Session{
			"s1": {ID: "s1", Channel: "cli", UserID: "mara", Zone: "Europe/Lisbon", Kind: memory.SessionMain},
			"s2": {ID: "s2", Channel: "http", UserID: "noor", Zone: "Africa/Lagos", Kind: memory.SessionMain},
			"g":  {ID: "g", Channel: "http", UserID: "all", Kind: memory.SessionGroup},
			"x":  {ID: "x", Channel: "cli", Kind: memory.SessionMain}, // of nobody known
		}},
		set: Settings{Enabled: true, DailyCap: 5, Cooldown: 6 * time.Hour, QuietFrom: 22 * 60, QuietTo: 7 * 60}, stores: map[memory.AgentID]*Store{}}
	r.service = r.open()
	t.Cleanup(func() {
		for _, s := range r.stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return r
}

// open returns a service with stores of its own, as another process has.
func (r *room) open() *Service {
	stores := map[memory.AgentID]*Store{}
	write := func(ctx context.Context, agent memory.AgentID) (*Store, func(), error) {
		if s := stores[agent]; s != nil {
			return s, func() {}, nil
		}
		s, err := Open(ctx, filepath.Join(r.dir, string(agent)+".db"), Options{Agent: agent, Redact: stars{}, Now: func() time.Time { return r.at }})
		if err != nil {
			return nil, nil, err
		}
		stores[agent], r.stores[memory.AgentID(fmt.Sprint(agent, len(r.stores)))] = s, s
		return s, func() {}, nil
	}
	return NewService(ServiceOptions{Memory: r.people, Write: write,
		Read: func(ctx context.Context, agent memory.AgentID) (*Store, func(), error) {
			if _, err := os.Stat(filepath.Join(r.dir, string(agent)+".db")); errors.Is(err, fs.ErrNotExist) {
				return nil, nil, memory.ErrNotFound
			}
			return write(ctx, agent)
		},
		Has: func(agent memory.AgentID) error {
			if agent == "nobody" {
				return memory.Errorf(memory.ErrNotFound, "agent nobody has no memory yet")
			}
			return nil
		},
		Session: func(_ context.Context, _ memory.AgentID, id string) (memory.Session, error) {
			s, known := r.sessions[id]
			if !known {
				return s, memory.Errorf(memory.ErrNotFound, "there is no session %s", id)
			}
			return s, nil
		},
		Settings: func(memory.AgentID) (Settings, error) { return r.set, nil },
		Route: func(_ memory.AgentID, name string) (Route, error) {
			if r.route == nil {
				return nil, memory.Errorf(memory.ErrInvalid, "there is no route %s", name)
			}
			return r.route, nil
		},
		OnSent: func(_ context.Context, m Message) { r.passed = append(r.passed, m) },
		Now:    func() time.Time { return r.at }, Rand: func() float64 { return 0 }, Log: zerolog.Nop(),
	})
}

// hook sends messages on to a webhook.
func (r *room) hook(w Webhook) { r.route, r.set.Routes = w, []string{WebhookRoute} }

const agent memory.AgentID = "a"

// learn adds an item that a checkpoint made of a turn in a session.
func (r *room) learn(session, content string, edit ...func(*Sourced)) Sourced {
	r.last++
	it := Sourced{Checkpoint: "checkpoint-1", ChangedAt: r.at, Item: memory.Item{ID: fmt.Sprintf("mem_%d", r.last), Handle: fmt.Sprintf("MEM-%d", r.last), Kind: memory.KindFact, Title: content, Content: content,
		Importance: 4, Confidence: .9, Status: memory.Active, Trust: memory.TrustUser, CreatedAt: r.at, UpdatedAt: r.at, Version: 1,
		Evidence: []memory.Evidence{{EventID: fmt.Sprintf("evt_%d", r.last), Seq: int64(r.last)}}}}
	if session != "" {
		r.turns[it.Evidence[0].EventID] = Turn{Session: session, Time: r.at}
	}
	for _, e := range edit {
		e(&it)
	}
	r.items[agent] = append(r.items[agent], it)
	return it
}

// change adds a change of an item.
func (r *room) change(it Sourced, edit func(*Sourced)) Sourced {
	it.ChangedAt = r.at
	edit(&it)
	it.Version++
	r.items[agent] = append(r.items[agent], it)
	return it
}

func (r *room) update() []Message {
	r.Helper()
	sent, err := r.service.Update(context.Background(), agent)
	if err != nil {
		r.Fatal(err)
	}
	return sent
}

func (r *room) deliver() Delivered {
	r.Helper()
	res, err := r.service.deliver(context.Background(), agent)
	if err != nil {
		r.Fatal(err)
	}
	return res
}

func (r *room) inbox() []Message {
	r.Helper()
	none := 0
	res, err := r.service.Inbox(context.Background(), agent, InboxRequest{All: true, Limit: &none})
	if err != nil {
		r.Fatal(err)
	}
	return res.Messages
}

func (r *room) held() []HeldMessage {
	r.Helper()
	res, err := r.service.Held(context.Background(), agent, struct{}{})
	if err != nil {
		r.Fatal(err)
	}
	return res.Messages
}

func (r *room) reminders() []Reminder {
	r.Helper()
	res, err := r.service.Reminders(context.Background(), agent, struct{}{})
	if err != nil {
		r.Fatal(err)
	}
	return res.Reminders
}
