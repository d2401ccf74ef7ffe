package working

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// dump returns every row of every table, but for leases.
func dump(t fatalist, s *Store) map[string][]string {
	out := map[string][]string{}
	err := s.view(context.Background(), func(tx *sql.Tx) error {
		tables, err := column(tx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'leases' AND name NOT LIKE '%\_data' ESCAPE '\'
			AND name NOT LIKE '%\_idx' ESCAPE '\' ORDER BY name`)
		if err != nil {
			return err
		}
		for _, table := range tables {
			rows, err := tx.Query(`SELECT * FROM ` + table)
			if err != nil {
				return err
			}
			if out[table], err = lines(rows); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func column(tx *sql.Tx, query string) ([]string, error) {
	rows, err := tx.Query(query)
	if err != nil {
		return nil, err
	}
	return lines(rows)
}

func lines(rows *sql.Rows) ([]string, error) {
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out []string
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		line := make([]string, len(values))
		for i, v := range values {
			line[i] = fmt.Sprint(v)
		}
		out = append(out, strings.Join(line, "|"))
	}
	slices.Sort(out)
	return out, rows.Err()
}

type fatalist interface{ Fatal(...any) }

// integrity checks the database, the full-text tables against themselves, and the
// bands against the items.
func integrity(t fatalist, s *Store) {
	if err := s.db.Check(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"memory_fts", "memory_prefix"} {
		if err := s.db.Exec(context.Background(), `INSERT INTO `+table+` (`+table+`) VALUES ('integrity-check')`); err != nil {
			t.Fatal(table, err)
		}
	}
	items, err := loadItems(context.Background(), s.db.Reader(), "")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, it := range items {
		if it.Status == memory.Superseded || it.Status == memory.Forgotten {
			continue
		}
		for _, band := range LikenessOf(it).Bands() {
			want = append(want, fmt.Sprintf("%d|%s", band, strings.TrimPrefix(it.Handle, handlePrefix)))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), dump(t, s)["bands"]); diff != "" {
		t.Fatal("the bands are not those of the items (-items +bands):\n" + diff)
	}
}

// model is what a store should hold: contents by handle, "" for a tombstone.
type model struct {
	store    *Store
	log      *memLog
	contents map[string]string
	status   map[string]memory.Status
	turns    []memory.Event
	batches  int
}

var vocabulary = []string{"anna", "porto", "lisbon", "tea", "coffee", "not", "friday", "invoice", "seven", "moved", "loves", "the", "router", "茶", "北京", "41"}

func sentence(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 9).Draw(t, "words"), " ")
}

func (m *model) handle(t *rapid.T) string {
	if len(m.contents) == 0 {
		t.Skip("no items yet")
	}
	return handleOf(int64(rapid.IntRange(1, len(m.contents)).Draw(t, "number")))
}

// check compares the store with the model, item by item.
func (m *model) check(t *rapid.T) {
	res, err := m.store.List(context.Background(), ListRequest{Status: "all", Limit: ptr(0)})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Items) != len(m.contents) {
		t.Fatalf("%d items, want %d", len(res.Items), len(m.contents))
	}
	for _, it := range res.Items {
		if it.Content != m.contents[it.Handle] || it.Status != m.status[it.Handle] {
			t.Fatalf("%s is %q (%s), want %q (%s)", it.Handle, it.Content, it.Status, m.contents[it.Handle], m.status[it.Handle])
		}
	}
}

func (m *model) take(it memory.Item) {
	m.contents[it.Handle], m.status[it.Handle] = it.Content, it.Status
}

// TestReplayRebuildsTheStore does random changes, compares the store with a map
// after each, and at last with a store made by replaying the log.
func TestReplayRebuildsTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, dir := context.Background(), tempDir(t)
		m := &model{log: &memLog{}, contents: map[string]string{}, status: map[string]memory.Status{}}
		var err error
		if m.store, err = Open(ctx, dir, options(m.log)); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := m.store.Close(); err != nil {
				t.Fatal(err)
			}
		}()
		// Nothing is killed here, so nothing need wait for the disk.
		if err := m.store.db.Exec(ctx, "PRAGMA synchronous = OFF"); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":           m.check,
			"say":        func(t *rapid.T) { m.turns = append(m.turns, m.log.say(sentence(t))) },
			"write":      func(t *rapid.T) { m.write(t) },
			"update":     func(t *rapid.T) { m.update(t) },
			"forget":     func(t *rapid.T) { m.forget(t) },
			"revert":     func(t *rapid.T) { m.revert(t) },
			"checkpoint": func(t *rapid.T) { m.checkpoint(t) },
			"undo":       func(t *rapid.T) { m.undo(t) },
		})
		integrity(t, m.store)
		if _, err := m.store.Progress(ctx); err != nil {
			t.Fatal(err)
		}
		again, err := Open(ctx, tempDir(t), options(m.log))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}()
		want, got := dump(t, m.store), dump(t, again)
		// How far the log was read without finding a change need not be stored.
		delete(want, "state")
		delete(got, "state")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the rebuilt store differs (-live +rebuilt):\n%s", diff)
		}
		integrity(t, again)
	})
}

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "working")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	})
	return dir
}

func (m *model) write(t *rapid.T) {
	in := WriteRequest{Title: sentence(t), Content: sentence(t), Importance: ptr(rapid.IntRange(1, 5).Draw(t, "importance"))}
	if len(m.turns) > 0 && rapid.Bool().Draw(t, "cites") {
		ev := rapid.SampledFrom(m.turns).Draw(t, "turn")
		in.proven = []memory.Evidence{{EventID: ev.ID, Seq: ev.Seq, Quote: ev.Text}}
	}
	res, err := m.store.write(context.Background(), in, "write", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, known := m.contents[res.Item.Handle]
	if known != res.Merged {
		t.Fatalf("%s: merged %v, known %v", res.Item.Handle, res.Merged, known)
	}
	m.take(res.Item)
	if res.Superseded != "" {
		m.status[res.Superseded] = memory.Superseded
	}
}

func (m *model) update(t *rapid.T) {
	h := m.handle(t)
	res, err := m.store.Update(context.Background(), UpdateRequest{Handle: h, Content: ptr(sentence(t))})
	if s := m.status[h]; s == memory.Forgotten || s == memory.Superseded {
		if !errors.Is(err, memory.ErrConflict) {
			t.Fatalf("update of a %s item: %v", s, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.take(res.Item)
}

func (m *model) forget(t *rapid.T) {
	h := m.handle(t)
	if _, err := m.store.Forget(context.Background(), ForgetRequest{Handle: h}); err != nil {
		t.Fatal(err)
	}
	m.contents[h], m.status[h] = "", memory.Forgotten
}

func (m *model) revert(t *rapid.T) {
	h := m.handle(t)
	before, err := m.store.History(context.Background(), GetRequest{Handle: h})
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.store.Revert(context.Background(), RevertRequest{Handle: h})
	if len(before.Revisions) < 2 {
		if err == nil {
			t.Fatal("an item of one version was reverted")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := before.Revisions[len(before.Revisions)-2].Item.Content; res.Item.Content != want {
		t.Fatalf("reverted to %q, want %q", res.Item.Content, want)
	}
	m.take(res.Item)
}

// checkpoint distils everything new into one item a turn, some of which replace
// older ones.
func (m *model) checkpoint(t *rapid.T) {
	ctx := context.Background()
	lease, err := m.store.Acquire(ctx, "checkpoint", "test", 1e9)
	if err != nil {
		t.Fatal(err)
	}
	pr, err := m.store.Progress(ctx)
	if err != nil {
		t.Fatal(err)
	}
	events, next, err := m.log.Read(ctx, pr.Cursor, 1e6)
	if err != nil || len(events) == 0 {
		t.Skip("nothing new")
	}
	m.batches++
	b := Batch{Lease: lease, Record: memory.Checkpoint{Range: memory.Range{First: pr.Cursor.Seq + 1, Last: next.Seq}, Cursor: next, Mode: ModeModel}}
	for _, e := range events {
		if !e.Type.IsTurn() {
			continue
		}
		b.Record.Events++
		entry := Entry{At: e.Timestamp, Item: memory.Item{ID: fmt.Sprintf("mem_%d_%d", m.batches, e.Seq), Kind: "fact", Title: "turn", Content: e.Text, Importance: 3, Confidence: .8,
			Status: memory.Active, Trust: memory.TrustUser, Evidence: []memory.Evidence{{EventID: e.ID, Seq: e.Seq, Quote: e.Text}}}}
		if len(m.contents) > 0 && rapid.Bool().Draw(t, "replaces") {
			old, err := m.store.Get(ctx, GetRequest{Handle: m.handle(t)})
			if err != nil {
				t.Fatal(err)
			}
			entry.Replaces = old.Item.ID
		}
		b.Entries = append(b.Entries, entry)
	}
	if rapid.IntRange(0, 4).Draw(t, "park") == 0 {
		b.Entries, b.Record.Mode, b.Record.Parked = nil, ModeParked, &memory.ParkedNote{Range: b.Record.Range, Reason: "away", Attempts: 1}
	}
	if _, err := m.store.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	if err := m.store.Release(ctx, lease); err != nil {
		t.Fatal(err)
	}
	m.sync(t)
}

// undo reverts the last checkpoint.
func (m *model) undo(t *rapid.T) {
	list, err := m.store.Checkpoints(context.Background(), 1)
	if err != nil || len(list) == 0 {
		t.Skip("no checkpoint yet")
	}
	if _, err := m.store.RevertCheckpoint(context.Background(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	m.sync(t)
}

// sync takes the store's word for what a checkpoint did; that replay does the
// same is checked at the end.
func (m *model) sync(t *rapid.T) {
	res, err := m.store.List(context.Background(), ListRequest{Status: "all", Limit: ptr(0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range res.Items {
		m.take(it)
	}
}

func TestGapIsReplayedOnOpen(t *testing.T) {
	ctx, dir, l := context.Background(), t.TempDir(), &memLog{}
	s := open(t, dir, l)
	write(t, s, "one", "first thing")
	copied := filepath.Join(t.TempDir(), fileName)
	if err := s.db.Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
	write(t, s, "two", "second thing")
	older := open(t, filepath.Dir(copied), l)
	if got, want := dump(t, older), dump(t, s); !cmp.Equal(got, want) {
		t.Errorf("an older copy was not brought up to date:\n%s", cmp.Diff(want, got))
	}
}
