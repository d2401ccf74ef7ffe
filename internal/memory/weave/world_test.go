package weave

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
)

const agent memory.AgentID = "ann"

// fatal is testing.TB and rapid.T.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is one agent's log, items and graph, with the product's redactor.
type world struct {
	fatal
	dir      string
	mu       sync.Mutex // over clock and ids
	clock    time.Time
	ids      int
	red      *redact.Redactor
	log      *events.Log
	items    *working.Store
	graph    *graph.Store
	follower *Follower
	made     int // items
}

func newWorld(t fatal, dir string) *world {
	t.Helper()
	red, err := redact.New([]byte("a key of the tests of this room."))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{fatal: t, dir: dir, clock: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), red: red}
	w.open()
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(time.Second)
	return w.clock
}

func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("%026d", w.ids)
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) open() {
	w.Helper()
	ctx := context.Background()
	var err error
	w.log, err = events.Open(ctx, filepath.Join(w.dir, "events"), events.Options{Now: w.now, NewID: w.newID, Redact: w.red, Log: zerolog.Nop()})
	w.ok(err)
	w.items, err = working.Open(ctx, w.dir, working.Options{Agent: agent, Log: w.log, Redact: w.red, Now: w.now, NewID: w.newID})
	w.ok(err)
	w.graph = w.openGraph(w.path())
	w.follower = w.followerOf(w.graph)
}

func (w *world) path() string { return filepath.Join(w.dir, graph.FileName) }

func (w *world) openGraph(path string) *graph.Store {
	w.Helper()
	s, err := graph.Open(context.Background(), path, graph.Options{Now: w.now, NewID: func() string { return fmt.Sprintf("%032x", w.newID()) }, Redact: w.red, Log: zerolog.Nop()})
	w.ok(err)
	return s
}

func (w *world) followerOf(s *graph.Store) *Follower {
	return &Follower{Items: lend(w.items), Read: lend(s), Write: lend(s), Speakers: w.speakers}
}

func lend[T any](value T) memory.Borrow[T] {
	return func(context.Context, memory.AgentID) (T, func(), error) { return value, func() {}, nil }
}

// speakers reads who said what from the log.
func (w *world) speakers(ctx context.Context, _ memory.AgentID, ids []string) (map[string]string, error) {
	out := map[string]string{}
	all, _, err := w.log.Read(ctx, memory.Cursor{}, 1e6)
	for _, e := range all {
		if slices.Contains(ids, e.ID) {
			out[e.ID] = e.Speaker()
		}
	}
	return out, err
}

func (w *world) close() {
	w.Helper()
	w.ok(w.graph.Close())
	w.ok(w.items.Close())
	w.ok(w.log.Close())
}

// learn makes a checkpoint of one turn that says an item, which replaces another
// if it is given, and returns it.
func (w *world) learn(speaker, kind, content, replaces string) memory.Item {
	w.Helper()
	w.checkpoint(speaker, kind, []string{content}, replaces)
	return w.list()[0]
}

// learnMany makes a checkpoint of many items.
func (w *world) learnMany(n int, content string) {
	w.Helper()
	contents := make([]string, n)
	for i := range contents {
		contents[i] = content + w.newID() + "."
	}
	w.checkpoint("", "fact", contents, "")
}

func (w *world) checkpoint(speaker, kind string, contents []string, replaces string) {
	w.Helper()
	ctx := context.Background()
	meta := map[string]any{}
	if speaker != "" {
		meta[memory.MetaSpeaker] = speaker
	}
	lease, err := w.items.Acquire(ctx, "checkpoint", "test", time.Hour)
	w.ok(err)
	pr, err := w.items.Progress(ctx)
	w.ok(err)
	b := working.Batch{Lease: lease, Record: memory.Checkpoint{Events: len(contents), Mode: working.ModeRules}}
	for _, content := range contents {
		said, err := w.log.Write(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: content, SessionID: "s", Metadata: meta})
		w.ok(err)
		w.made++
		it := memory.Item{ID: fmt.Sprintf("mem_%026d", w.made), Kind: kind, Title: content[:min(len(content), 60)], Content: content, Importance: 3, Confidence: .8, Status: memory.Active,
			Trust: memory.TrustUser, Evidence: []memory.Evidence{{EventID: said[0].ID, Seq: said[0].Seq, Quote: said[0].Text}}}
		b.Entries = append(b.Entries, working.Entry{Item: it, Replaces: replaces, At: said[0].Timestamp})
		replaces = ""
	}
	_, next, err := w.log.Read(ctx, pr.Cursor, 1e6)
	w.ok(err)
	b.Record.Range, b.Record.Cursor = memory.Range{First: pr.Cursor.Seq + 1, Last: next.Seq}, next
	_, err = w.items.Apply(ctx, b)
	w.ok(err)
	w.ok(w.items.Release(ctx, lease))
}

// list returns all items, newest first.
func (w *world) list() []memory.Item {
	w.Helper()
	all := 0
	got, err := w.items.List(context.Background(), working.ListRequest{Status: "all", Limit: &all})
	w.ok(err)
	return got.Items
}

func (w *world) follow() Followed {
	w.Helper()
	done, err := w.follower.Follow(context.Background(), agent)
	w.ok(err)
	return done
}

// shown shows a graph without the cursor: nodes and edges, sorted, as they are
// written.
func (w *world) shown(s *graph.Store) string {
	w.Helper()
	var lines []string
	w.ok(s.View(context.Background(), func(v *graph.View) error {
		for n := range v.Nodes() {
			if n.ID == cursorID(agent) {
				continue
			}
			c := *n
			slices.Sort(c.ContradictedBy)
			line, err := c.MarshalJSON()
			w.ok(err)
			lines = append(lines, string(line))
		}
		for e := range v.Edges() {
			line, err := e.MarshalJSON()
			w.ok(err)
			lines = append(lines, string(line))
		}
		return nil
	}))
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// brief shows the entities and what they are joined to.
func (w *world) brief() string {
	w.Helper()
	var lines []string
	w.ok(w.graph.View(context.Background(), func(v *graph.View) error {
		for e := range v.Edges() {
			lines = append(lines, fmt.Sprintf("%s %s %s", nameOf(v, e.Src), e.Type, nameOf(v, e.Dst)))
		}
		return nil
	}))
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func nameOf(v *graph.View, id string) string {
	n := v.Node(id)
	if n == nil {
		return "?"
	}
	var p itemPayload
	if unmarshal(n.Payload, &p) != nil || p.Kind == kindItem {
		return p.Handle
	}
	return p.Kind + ":" + n.Label
}

func (w *world) bytes() string {
	w.Helper()
	var all []byte
	for _, path := range []string{w.path(), w.path() + graph.JournalSuffix} {
		text, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			w.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(all)
}

var _ fatal = (testing.TB)(nil)
