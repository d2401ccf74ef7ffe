package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// modelRecord is a record of the model: what the contract says, in plain Go.
type modelRecord struct {
	created, updated time.Time
	ttl              *int64
	payload          map[string]any
	tags             []string // nil: no metadata
	source           string
}

// model is a map that must behave as a Store.
type model struct {
	records map[Key]modelRecord
	now     time.Time
}

func (m *model) gone(r modelRecord) bool {
	return r.ttl != nil && m.now.Sub(r.created) > time.Duration(*r.ttl)*time.Second
}

func (m *model) put(k Key, r modelRecord) (created bool) {
	have, found := m.records[k]
	r.created, r.updated = m.now, m.now
	if found && !m.gone(have) {
		r.created = have.created
	}
	m.records[k] = r
	return !found || m.gone(have)
}

func (m *model) append(k Key, entry any, ttl *int64) error {
	have, found := m.records[k]
	if !found || m.gone(have) {
		m.records[k] = modelRecord{created: m.now, updated: m.now, ttl: ttl, payload: map[string]any{"entries": []any{entry}}}
		return nil
	}
	entries, isList := have.payload["entries"].([]any)
	if !isList {
		return memory.ErrConflict
	}
	have.payload = map[string]any{"entries": append(slices.Clone(entries), entry)}
	have.updated = m.now
	if ttl != nil {
		have.ttl = ttl
	}
	m.records[k] = have
	return nil
}

// list returns the ids of a namespace that pass, as List orders them.
func (m *model) list(namespace string, pass func(Key, modelRecord) bool) []string {
	var keys []Key
	for k, r := range m.records {
		if k.Namespace == namespace && pass(k, r) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Kind+"\x00"+a.ID, b.Kind+"\x00"+b.ID) })
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.Kind + "/" + k.ID
	}
	return ids
}

var (
	drawNamespace = rapid.SampledFrom([]string{session, workflow, ops})
	drawKind      = rapid.SampledFrom([]string{"k", "K", "k.1", "é"})
	drawID        = rapid.SampledFrom([]string{"a", "A", "ab", "a_b", "a%b", "漢", " "})
	drawTag       = rapid.SampledFrom([]string{"x", "X", "y", "z"})
	drawTTL       = rapid.OneOf(rapid.Just[*int64](nil), rapid.Map(rapid.Int64Range(-2, 5), func(n int64) *int64 { return &n }))
)

func drawKey(t *rapid.T) Key {
	return Key{drawNamespace.Draw(t, "namespace"), drawKind.Draw(t, "kind"), drawID.Draw(t, "id")}
}

func drawRecord(t *rapid.T) modelRecord {
	r := modelRecord{ttl: drawTTL.Draw(t, "ttl"), payload: map[string]any{"n": json.Number(fmt.Sprint(rapid.Int64().Draw(t, "n")))}}
	if rapid.Bool().Draw(t, "log") {
		r.payload = map[string]any{"entries": []any{}}
	}
	if rapid.Bool().Draw(t, "metadata") {
		r.tags = rapid.SliceOfN(drawTag, 0, 3).Draw(t, "tags")
		r.source = rapid.SampledFrom([]string{"s", "S"}).Draw(t, "source")
	}
	return r
}

func (r modelRecord) write(k Key) Write {
	w := Write{Key: k, TTL: r.ttl, Value: mustJSON(r.payload)}
	if r.tags != nil {
		w.Metadata = mustJSON(map[string]any{"tags": r.tags, "source": r.source})
	}
	return w
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// TestStoreAgainstModel runs random operations on a store and on a map.
func TestStoreAgainstModel(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		m := &model{records: map[Key]modelRecord{}, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
		path := filepath.Join(dir, fmt.Sprint(runs), FileName)
		options := Options{Config: Config{PruneStrategy: map[string]string{ops: PruneNone}}, Now: func() time.Time { return m.now }}
		s, err := Open(ctx, path, options)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(s.Close(), os.RemoveAll(filepath.Dir(path))); err != nil {
				t.Fatal(err)
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { compareAll(ctx, t, s, m) },
			"put": func(t *rapid.T) {
				k, r := drawKey(t), drawRecord(t)
				created, at, err := s.Put(ctx, r.write(k))
				if want := m.put(k, r); err != nil || created != want || at != formatTime(m.now) {
					t.Fatalf("Put = %v, %v, %v, want created %v", created, at, err, want)
				}
			},
			"append": func(t *rapid.T) {
				k, ttl := drawKey(t), drawTTL.Draw(t, "ttl")
				entry := map[string]any{"e": json.Number(fmt.Sprint(rapid.Int64().Draw(t, "entry")))}
				_, err := s.Append(ctx, Write{Key: k, Value: mustJSON(entry), TTL: ttl})
				if want := m.append(k, entry, ttl); !errors.Is(err, want) {
					t.Fatalf("Append = %v, want %v", err, want)
				}
			},
			"delete": func(t *rapid.T) {
				k := drawKey(t)
				_, want := m.records[k]
				deleted, err := s.Delete(ctx, k)
				if err != nil || deleted != want {
					t.Fatalf("Delete = %v, %v, want %v", deleted, err, want)
				}
				delete(m.records, k)
			},
			"prune": func(t *rapid.T) {
				namespace := rapid.SampledFrom([]string{"", session, workflow, ops}).Draw(t, "namespace")
				var want int64
				for k, r := range m.records {
					if m.gone(r) && k.Namespace != ops && (namespace == "" || namespace == k.Namespace) {
						delete(m.records, k)
						want++
					}
				}
				if n, err := s.Prune(ctx, namespace); err != nil || n != want {
					t.Fatalf("Prune = %d, %v, want %d", n, err, want)
				}
			},
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.Int64Range(1, 3_000_000).Draw(t, "µs")) * time.Microsecond)
			},
			"list": func(t *rapid.T) { compareLists(ctx, t, s, m) },
			"reopen": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if s, err = Open(ctx, path, options); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

func compareAll(ctx context.Context, t *rapid.T, s *Store, m *model) {
	for k, want := range m.records {
		r, found, err := s.Get(ctx, k)
		if err != nil || found == m.gone(want) {
			t.Fatalf("Get(%v) = %v, %v, want %v", k, found, err, !m.gone(want))
		}
		if !found {
			continue
		}
		if r.CreatedAt != formatTime(want.created) || r.UpdatedAt != formatTime(want.updated) || string(r.Payload) != string(mustJSON(want.payload)) {
			t.Fatalf("Get(%v) = %+v, want %+v", k, r, want)
		}
	}
	n := 0
	if err := s.Export(ctx, Selection{}, func(Envelope) error { n++; return nil }); err != nil || n != len(m.records) {
		t.Fatalf("%d records stored, %v, want %d", n, err, len(m.records))
	}
}

// compareLists asks for a random list, whole and in pages.
func compareLists(ctx context.Context, t *rapid.T, s *Store, m *model) {
	q := Query{Namespace: drawNamespace.Draw(t, "namespace")}
	if rapid.Bool().Draw(t, "by kind") {
		q.Kind = ref(drawKind.Draw(t, "kind"))
	}
	if rapid.Bool().Draw(t, "by prefix") {
		q.Prefix = ref(rapid.SampledFrom([]string{"a", "a_", "a%", "A", "漢"}).Draw(t, "prefix"))
	}
	if rapid.Bool().Draw(t, "by source") {
		q.Source = ref("s")
	}
	if rapid.Bool().Draw(t, "by time") {
		q.UpdatedAfter = ref(m.now.Add(-time.Second).Format(time.RFC3339Nano))
		q.CreatedBefore = ref(m.now.Add(-time.Second).Format("2006-01-02T15:04:05.999999-07:00"))
	}
	q.TagsAny = rapid.SliceOfN(drawTag, 0, 3).Draw(t, "any")
	q.TagsAll = rapid.SliceOfN(drawTag, 0, 2).Draw(t, "all")
	want := m.list(q.Namespace, func(k Key, r modelRecord) bool {
		hasTag := func(tag string) bool { return slices.Contains(r.tags, tag) }
		edge := m.now.Add(-time.Second)
		return (q.Kind == nil || *q.Kind == k.Kind) && (q.Prefix == nil || strings.HasPrefix(k.ID, *q.Prefix)) && (q.Source == nil || r.tags != nil && r.source == *q.Source) &&
			(q.UpdatedAfter == nil || !r.updated.Before(edge) && !r.created.After(edge)) &&
			(len(q.TagsAny) == 0 || slices.ContainsFunc(q.TagsAny, hasTag)) && !slices.ContainsFunc(q.TagsAll, func(tag string) bool { return !hasTag(tag) })
	})
	if got := listed(ctx, t, s, q); !slices.Equal(got, want) {
		t.Fatalf("list %+v = %q, want %q", q, got, want)
	}
	var pages []string
	size := rapid.Int64Range(1, 4).Draw(t, "page")
	for offset := int64(0); ; offset += size {
		q.Limit, q.Offset = &size, ref(offset)
		page := listed(ctx, t, s, q)
		pages = append(pages, page...)
		if int64(len(page)) < size {
			break
		}
	}
	if !slices.Equal(pages, want) {
		t.Fatalf("pages of %d = %q, want %q", size, pages, want)
	}
}

func listed(ctx context.Context, t *rapid.T, s *Store, q Query) []string {
	entries, _, err := s.List(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.Kind + "/" + e.ID
	}
	return ids
}

// TestInstantOfSQLIsThatOfGo compares the two readers of times.
func TestInstantOfSQLIsThatOfGo(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), FileName), Options{})
	query := "SELECT " + instantSQL("x") + " FROM (SELECT ? AS x)"
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		var got *int64
		if err := s.db.Reader().QueryRow(query, text).Scan(&got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		at, _, ok := parseTime(text)
		if ok != (got != nil) || ok && at.UnixMicro() != *got {
			t.Fatalf("%q: SQL reads %v, Go %v %v", text, got, at.UnixMicro(), ok)
		}
	}
	// Not the same, and written by nothing: "2026-03-01T" and "2026-03-01T24:00:00Z", which SQLite reads.
	for _, text := range []string{"", "now", "2026-03-01", "2026-02-29", "2024-02-29", "2026-03-01T23:59:60Z", "12:00", "2461100.5", "-4713-11-24"} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(-2e15, 2e17).Draw(t, "µs")).In(time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "zone")))
		layout := rapid.SampledFrom([]string{time.RFC3339, time.RFC3339Nano, "2006-01-02T15:04:05.000000Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04Z07:00",
			"2006-01-02T15:04:05-0700", "2006-01-02T15:04:05.000-0700", "2006-01-02", "2006-01-02t15:04:05z"}).Draw(t, "layout")
		check(t, at.Format(layout))
	})
}
