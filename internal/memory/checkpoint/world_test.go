package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(runChild(dir))
	}
	goleak.VerifyTestMain(m)
}

// world is one agent with everything that a checkpoint needs, on disk.
type world struct {
	dir     string
	log     *events.Log
	store   *working.Store
	service *Service
	agent   Agent
}

func newID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// openWorld opens an agent in dir; whoever opens the same dir again is another
// process of the same agent.
func openWorld(dir string, model distill.Distiller) (*world, error) {
	r, err := redact.New([]byte("a key of the tests, 32 bytes long"))
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	w := &world{dir: dir}
	if w.log, err = events.Open(ctx, filepath.Join(dir, "events"), events.Options{Now: time.Now, NewID: newID, Redact: r, Log: zerolog.Nop()}); err != nil {
		return nil, err
	}
	if w.store, err = working.Open(ctx, dir, working.Options{Agent: "a", Log: w.log, Redact: r, Now: time.Now, NewID: newID}); err != nil {
		return nil, errors.Join(err, w.log.Close())
	}
	w.agent = Agent{Store: w.store, Log: w.log, Sessions: noSessions{}, Dir: filepath.Join(dir, "checkpoints"), Model: model, BatchTokens: 50, OnFailure: Park}
	w.service = NewService(Options{
		Write:  func(context.Context, memory.AgentID) (Agent, func(), error) { return w.agent, func() {}, nil },
		Read:   func(context.Context, memory.AgentID) (*working.Store, func(), error) { return w.store, func() {}, nil },
		Redact: r, Now: time.Now, NewID: newID, Holder: fmt.Sprint("pid ", os.Getpid()),
	})
	return w, nil
}

func (w *world) close() error { return errors.Join(w.store.Close(), w.log.Close()) }

func newWorld(t testing.TB, model distill.Distiller) *world {
	t.Helper()
	return sameWorld(t, t.TempDir(), model)
}

func sameWorld(t testing.TB, dir string, model distill.Distiller) *world {
	t.Helper()
	w, err := openWorld(dir, model)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

type noSessions struct{}

func (noSessions) Get(context.Context, string) (memory.Session, error) {
	return memory.Session{}, memory.ErrNotFound
}

// say appends turns of the user, and returns their ids.
func (w *world) say(t testing.TB, texts ...string) []string {
	t.Helper()
	var ids []string
	for _, text := range texts {
		done, err := w.log.Write(context.Background(), memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: text, SessionID: "s1"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, done[0].ID)
	}
	return ids
}

func (w *world) checkpoint(t testing.TB) Result {
	t.Helper()
	res, err := w.service.Checkpoint(context.Background(), "a", Request{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (w *world) items(t testing.TB, status string) []memory.Item {
	t.Helper()
	all := 0
	res, err := w.store.List(context.Background(), working.ListRequest{Status: status, Limit: &all})
	if err != nil {
		t.Fatal(err)
	}
	return res.Items
}

func (w *world) health(t testing.TB) working.Health {
	t.Helper()
	h, err := w.store.Health(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// echo is a model that makes one item of each event, whose title is the event's
// id: so that what was distilled twice, or never, is seen.
type echo struct {
	mu    sync.Mutex
	calls int
	edit  func(b distill.Batch, r *distill.Reply) ([]byte, error) // what it answers instead, if not nil
}

func (m *echo) Distill(_ context.Context, b distill.Batch) ([]byte, distill.Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	var r distill.Reply
	for _, e := range b.Events {
		r.NewItems = append(r.NewItems, distill.NewItem{Kind: "fact", Title: e.ID, Content: "It was said: " + e.Text, Importance: 3, Confidence: .8,
			Evidence: []distill.Quote{{EventID: e.ID, Quote: e.Text}}})
	}
	usage := distill.Usage{Model: "echo", Calls: 1, TokensIn: 1_000_000, TokensOut: 7}
	if m.edit != nil {
		raw, err := m.edit(b, &r)
		if raw != nil || err != nil {
			return raw, usage, err
		}
	}
	raw, err := json.Marshal(r)
	return raw, usage, err
}
