package record

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// found returns the handles that a search finds, sorted.
func (f fixture) found(words string) string {
	f.t.Helper()
	matches, err := f.Match(context.Background(), text.ParseQuery(words, text.Options{}), 10)
	if err != nil {
		f.t.Fatal(err)
	}
	var ids []string
	for _, it := range matches {
		if err := it.Validate(); err != nil {
			f.t.Errorf("%+v: %v", it, err)
		}
		ids = append(ids, it.Title)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func TestRecordsCanBeRecalled(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	f.put(Key{longTerm, projectFact, "sky"}, `{"text":"The sky over Lisbon is blue."}`, nil, `{"confidence":0.4,"valid_at":"2026-01-01T00:00:00Z"}`)
	f.put(Key{longTerm, userPreference, "theme"}, `{"key":"theme","value":"dark","text":"In every editor.","_flags":{"authoritative":true}}`, nil, "")
	f.put(Key{longTerm, "long_term.other", "odd"}, `{"city":"Lisbon","rooms":3,"list":["hidden"],"_provenance":{"x":"hidden"}}`, nil, "")
	f.put(Key{session, "session.context", "s"}, `{"text":"Lisbon in a session"}`, nil, "")
	f.put(Key{longTerm, projectFact, "brief"}, `{"text":"Lisbon for a minute"}`, ref(int64(60)), "")
	for words, want := range map[string]string{"Lisbon": "brief odd sky", "dark theme": "theme", "editors": "theme", "rooms": "odd", "hidden": "", "session": "", "": ""} {
		if got := f.found(words); got != want {
			t.Errorf("%q finds %q, want %q", words, got, want)
		}
	}
	f.clock.set(t, "2026-03-01T00:02:00Z")
	if got := f.found("lisbon"); got != "odd sky" {
		t.Errorf("after expiry: %q", got)
	}
	f.put(Key{longTerm, projectFact, "sky"}, `{"text":"It rains in Porto."}`, nil, "")
	foreign(t, f.Path(), `DELETE FROM memory_records WHERE record_id = 'odd'`)
	if got := f.found("lisbon"); got != "" {
		t.Errorf("after a change and a deletion: %q", got)
	}
	if got := f.found("porto"); got != "sky" {
		t.Errorf("after a change: %q", got)
	}
	matches, err := f.Match(ctx, text.ParseQuery("dark", text.Options{}), 10)
	if err != nil || len(matches) != 1 {
		t.Fatal(matches, err)
	}
	it := matches[0]
	if it.Trust != memory.TrustImport || it.Kind != memory.KindPreference || it.Importance != 4 || it.Content != "theme: dark\nIn every editor." || it.Handle != "REC-2" || it.Status != memory.Active {
		t.Errorf("item = %+v", it)
	}
	lend := func(context.Context, memory.AgentID) (*Store, func(), error) { return f.Store, func() {}, nil }
	service := NewService(lend, lend, func(memory.AgentID) (string, Config) { return f.Path(), Config{} })
	if same, err := service.Match(ctx, memory.DefaultAgent, text.ParseQuery("dark", text.Options{}), 10); err != nil || len(same) != 1 {
		t.Errorf("Match = %+v, %v", same, err)
	}
	if r, found, err := f.ByHandle(ctx, it.Handle); err != nil || !found || r.ID != "theme" {
		t.Errorf("its handle finds %+v, %v, %v", r, found, err)
	}
}

func TestMatchPutsTheBestFirst(t *testing.T) {
	f := newFixture(t, Config{})
	for id, said := range map[string]string{"both": "green tea", "one": "green walls", "prefix": "greenery", "none": "coffee"} {
		f.put(Key{longTerm, projectFact, id}, `{"text":"`+said+`"}`, nil, "")
	}
	matches, err := f.Match(context.Background(), text.ParseQuery("green tea", text.Options{}), 2)
	if err != nil || len(matches) != 2 || matches[0].Title != "both" || matches[1].Title != "one" {
		t.Errorf("Match = %+v, %v", matches, err)
	}
}

func TestIndexCatchesUp(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	const n = 2*indexBatch + 10
	var b strings.Builder
	for i := range n {
		b.Write(mustJSON(map[string]any{"namespace": longTerm, "record_kind": projectFact, "record_id": string(rune('a'+i%26)) + strings.Repeat("x", i/26), "payload": map[string]any{"text": "tea"}}))
		b.WriteByte('\n')
	}
	if result, err := f.Import(ctx, ReadRecords(strings.NewReader(b.String()), true)); err != nil || result.Inserted != n {
		t.Fatal(result, err)
	}
	matched := func() int {
		m, err := f.Match(ctx, text.ParseQuery("tea", text.Options{}), 10000)
		if err != nil {
			t.Fatal(err)
		}
		return len(m)
	}
	if got := matched(); got != indexBatch {
		t.Errorf("the first call finds %d, want what one batch indexes", got)
	}
	if err := f.Index(ctx); err != nil {
		t.Fatal(err)
	}
	if got := matched(); got != n {
		t.Errorf("after Index it finds %d of %d", got, n)
	}
	// Someone else's long write does not hold up a search.
	f.put(Key{longTerm, projectFact, "late"}, `{"text":"tea"}`, nil, "")
	if err := f.update(ctx, func(*sql.Tx) error {
		if got := matched(); got != n {
			t.Errorf("while another writes it finds %d of %d", got, n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := matched(); got != n+1 {
		t.Errorf("after that it finds %d of %d", got, n+1)
	}
}
