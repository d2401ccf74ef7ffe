package meaning_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/meaning"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
)

const agent = memory.AgentID("default")

func TestMain(m *testing.M) {
	judge.MaybeChild(map[string]judge.Part{"embed": embedAsChild})
	goleak.VerifyTestMain(m)
}

// world is one agent's log, archive, items and vectors, as the program wires them.
type world struct {
	dir     string
	log     *events.Log
	archive *archive.Store
	items   *working.Store
	notes   *working.Service
	vectors *vectors.Store
	meaning *meaning.Service
	client  *embed.Client
	source  meaning.Source
	// alikeErr is why the last new item was held against no others by its vector.
	alikeErr error
}

// openWorld opens what is in dir. With no url the built-in model makes the
// vectors, else the model of that name at a stub.
func openWorld(ctx context.Context, dir, url, model string) (w *world, err error) {
	w = &world{dir: dir, source: meaning.Source{Provider: embed.LSA}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	red, err := redact.New([]byte("a key of the tests of this room."))
	if err != nil {
		return w, err
	}
	newID := func() string { return ulid.Make().String() }
	if w.log, err = events.Open(ctx, filepath.Join(dir, "events"), events.Options{Now: time.Now, NewID: newID, Redact: red, Log: zerolog.Nop()}); err != nil {
		return w, err
	}
	if w.archive, err = archive.Open(ctx, filepath.Join(dir, "archive.db"), archive.Options{Redact: red, Now: time.Now}); err != nil {
		return w, err
	}
	if w.items, err = working.Open(ctx, dir, working.Options{Agent: agent, Log: w.log, Redact: red, Now: time.Now, NewID: newID,
		Alike: func(ctx context.Context, it memory.Item) []string {
			var handles []string
			handles, w.alikeErr = w.meaning.AlikeTo(ctx, agent, it)
			return handles
		}}); err != nil {
		return w, err
	}
	if w.vectors, err = vectors.Open(ctx, filepath.Join(dir, vectors.FileName), vectors.Options{Now: time.Now}); err != nil {
		return w, err
	}
	w.notes = working.NewService(lend(w.items), lend(w.items), turns{w.archive})
	if url != "" {
		if err := w.use(url, model); err != nil {
			return w, err
		}
	}
	w.meaning = meaning.New(meaning.Options{
		Archives: func(ctx context.Context, _ memory.AgentID) (*archive.Store, func(), error) {
			_, err := w.archive.Follow(ctx, w.log)
			return w.archive, func() {}, err
		},
		Items: lend(w.items), Read: lend(w.vectors), Write: lend(w.vectors), Now: time.Now,
		Source: func(memory.AgentID, string) (meaning.Source, error) { return w.source, nil },
		Dir:    func(memory.AgentID) (string, error) { return dir, nil },
	})
	return w, nil
}

// use has another model make the vectors.
func (w *world) use(url, model string) error {
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: url}}})
	if err != nil {
		return err
	}
	if w.client != nil {
		w.client.Close()
	}
	w.client, err = embed.New(embed.Config{Provider: embed.Generic, BaseURL: url, Model: model, Timeout: 2 * time.Second, BatchTexts: 8}, out, time.Now, func() float64 { return 0 })
	if err != nil {
		return err
	}
	w.source = meaning.Source{Provider: "generic", Embedder: w.client.For(agent), Host: w.client.Host()}
	return nil
}

func (w *world) close() error {
	var errs []error
	if w.client != nil {
		w.client.Close()
	}
	if w.vectors != nil {
		errs = append(errs, w.vectors.Close())
	}
	if w.items != nil {
		errs = append(errs, w.items.Close())
	}
	if w.archive != nil {
		errs = append(errs, w.archive.Close())
	}
	if w.log != nil {
		errs = append(errs, w.log.Close())
	}
	return errors.Join(errs...)
}

// turns are those of the archive.
type turns struct{ *archive.Store }

func (t turns) ByEvent(ctx context.Context, _ memory.AgentID, id string) ([]memory.Episode, error) {
	return t.Store.ByEvent(ctx, id)
}

func (t turns) Echoes(ctx context.Context, _ memory.AgentID, texts []string) ([]string, error) {
	return t.Store.Echoes(ctx, texts)
}

func lend[T any](value T) memory.Borrow[T] {
	return func(context.Context, memory.AgentID) (T, func(), error) { return value, func() {}, nil }
}

func newWorld(t *testing.T, url, model string) *world {
	t.Helper()
	w, err := openWorld(t.Context(), t.TempDir(), url, model)
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

func (w *world) say(ctx context.Context, texts ...string) error {
	for _, s := range texts {
		if _, err := w.log.Write(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: s, SessionID: "s"}); err != nil {
			return err
		}
	}
	return nil
}

// numbered are n texts that differ.
func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("note %d says that box %d stands in room %d", i, i*7, i%5)
	}
	return out
}

// embedAsChild makes vectors until it is killed, or is done.
func embedAsChild(dir string, ack func(string) error) error {
	w, err := openWorld(context.Background(), dir, os.Getenv("STUB_URL"), "stub")
	if err != nil {
		return err
	}
	if err := ack("open"); err != nil {
		return err
	}
	r, err := w.meaning.CatchUp(context.Background(), agent, meaning.Asked{})
	switch {
	case errors.Is(err, memory.ErrConflict):
		err = ack("busy")
	case err == nil:
		err = ack(fmt.Sprintf("done %d", r.Coverage.Missing()))
	}
	return errors.Join(err, w.close())
}
