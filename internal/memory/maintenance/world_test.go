package maintenance

import (
	"context"
	"crypto/rand"
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

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
)

func TestMain(m *testing.M) {
	judge.MaybeChild(map[string]judge.Part{"maintain": maintainUntilKilled})
	goleak.VerifyTestMain(m)
}

// clock is a settable clock.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

var monday = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// world is one agent on disk and its maintenance.
type world struct {
	dir     string
	clock   *clock
	log     *events.Log
	store   *working.Store
	items   *working.Service
	service *Service
	agent   Agent
	used    map[string]time.Time
	near    []Pair
}

func newID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// openWorld opens an agent in dir; whoever opens the same dir again is another
// process of the same agent.
func openWorld(dir string, c *clock) (*world, error) {
	r, err := redact.New([]byte("a key of the tests, 32 bytes long"))
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	w := &world{dir: dir, clock: c}
	if w.log, err = events.Open(ctx, filepath.Join(dir, "events"), events.Options{Now: c.now, NewID: newID, Redact: r, Log: zerolog.Nop()}); err != nil {
		return nil, err
	}
	if w.store, err = working.Open(ctx, dir, working.Options{Agent: "a", Log: w.log, Redact: r, Now: c.now, NewID: newID}); err != nil {
		return nil, errors.Join(err, w.log.Close())
	}
	lend := func(context.Context, memory.AgentID) (*working.Store, func(), error) { return w.store, func() {}, nil }
	w.items = working.NewService(lend, lend, nil)
	w.agent = Agent{Store: w.store, Log: w.log, Write: w.log, Settings: Settings{StaleDays: 45, VerifyDays: 30, Retention: Stale, MaxItems: 5000, PackAfter: 30}}
	agent := func(context.Context, memory.AgentID) (Agent, func(), error) { return w.agent, func() {}, nil }
	w.service = NewService(Options{Read: agent, Write: agent, Now: c.now, NewID: newID, Holder: fmt.Sprint("pid ", os.Getpid()),
		Uses: func(context.Context, memory.AgentID, time.Time) (map[string]time.Time, error) { return w.used, nil },
		Near: func(context.Context, memory.AgentID) ([]Pair, error) { return w.near, nil },
		Compact: func(ctx context.Context, _ memory.AgentID) (int64, error) {
			done, err := w.store.Compact(ctx)
			return done.Freed, err
		}})
	return w, nil
}

func (w *world) close() error { return errors.Join(w.store.Close(), w.log.Close()) }

func newWorld(t testing.TB) *world {
	t.Helper()
	return sameWorld(t, t.TempDir(), &clock{t: monday})
}

func sameWorld(t testing.TB, dir string, c *clock) *world {
	t.Helper()
	w, err := openWorld(dir, c)
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

// put stores items as an importer does: each under its id, whatever else says the
// same.
func (w *world) put(t testing.TB, items ...memory.Item) {
	t.Helper()
	if err := w.store1(items...); err != nil {
		t.Fatal(err)
	}
}

func (w *world) store1(items ...memory.Item) error {
	in := working.Imported{Why: "test"}
	for _, it := range items {
		in.Put = append(in.Put, working.Entry{Item: it})
	}
	res, err := w.store.Import(context.Background(), in)
	if err == nil && len(res.Refused) > 0 {
		err = fmt.Errorf("refused: %+v", res.Refused)
	}
	return err
}

// item is an active fact of importance 3; edit changes what a test is about.
func item(id, content string, edit ...func(*memory.Item)) memory.Item {
	it := memory.Item{ID: "mem_" + id, Kind: memory.KindFact, Title: "about " + id, Content: content, Importance: 3, Confidence: .9,
		Status: memory.Active, Trust: memory.TrustUser}
	for _, e := range edit {
		e(&it)
	}
	return it
}

func (w *world) maintain(t testing.TB, ctx context.Context, dry bool) Result {
	t.Helper()
	res, err := w.service.Maintain(ctx, "a", Request{DryRun: dry})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (w *world) all(t testing.TB) map[string]memory.Item {
	t.Helper()
	zero := 0
	res, err := w.store.List(context.Background(), working.ListRequest{Status: "all", Limit: &zero})
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]memory.Item{}
	for _, it := range res.Items {
		byID[it.ID] = it
	}
	return byID
}
