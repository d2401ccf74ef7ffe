package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// The reference's first schema, and what its later version adds.
const (
	referenceV1 = `CREATE TABLE memory_records (
	  id INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, record_kind TEXT NOT NULL, record_id TEXT NOT NULL,
	  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, ttl_seconds INTEGER NULL, payload_json TEXT NOT NULL);
	CREATE INDEX idx_memory_ns_kind_id ON memory_records(namespace, record_kind, record_id);`
	referenceV11 = referenceV1 + `ALTER TABLE memory_records ADD COLUMN metadata_json TEXT NULL;
	CREATE TABLE ainl_memory_patterns (name TEXT PRIMARY KEY, content_hash TEXT NOT NULL, ir_json TEXT NOT NULL, updated_at TEXT NOT NULL);`
	referenceInsert = `INSERT INTO memory_records (namespace, record_kind, record_id, created_at, updated_at, ttl_seconds, payload_json) VALUES `
)

// foreign runs SQL on a database as another program would: with a connection of
// its own and no settings of ours.
func foreign(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// foreignText reads one value as another program would.
func foreignText(t *testing.T, path, query string) string {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var s sql.NullString
	if err := db.QueryRow(query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s.String
}

func TestAdoptsADatabaseOfTheReference(t *testing.T) {
	for name, schema := range map[string]string{"without metadata": referenceV1, "with metadata": referenceV11} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ainl_memory.sqlite3")
			foreign(t, path, schema, referenceInsert+`
				('workflow', 'workflow.checkpoint', 'cp-1', '2026-03-01T00:00:00+00:00', '2026-03-01T00:00:00+00:00', 60, '{"step": 1, "nan": NaN, "text": "NaN \" -Infinity", "inf": [-Infinity]}'),
				('daily_log', 'daily_log.note', 'd', '2026-03-01T00:00:00.5Z', '2026-03-01T00:00:00Z', NULL, '{"entries": []}')`)
			if strings.Contains(schema, "metadata_json") {
				foreign(t, path, `UPDATE memory_records SET metadata_json = '{"tags": ["a", "b", "a", 5], "source": "s"}' WHERE record_id = 'd'`)
			}
			c := &clock{}
			c.set(t, "2026-03-01T00:00:30Z")
			f := fixture{openTest(t, path, Options{Now: c.now}), c, t}
			if got, want := f.payload(checkpoint), `{"step": 1, "nan": null, "text": "NaN \" -Infinity", "inf": [null]}`; got != want {
				t.Errorf("payload = %s, want %s", got, want)
			}
			f.append(Key{dailyLog, dailyNote, "d"}, `{"text":"x"}`, nil)
			if got := f.payload(Key{dailyLog, dailyNote, "d"}); got != `{"entries":[{"text":"x"}]}` {
				t.Errorf("payload = %s", got)
			}
			if strings.Contains(schema, "metadata_json") {
				if got := f.ids(Query{Namespace: dailyLog, Filters: Filters{TagsAll: []string{"a", "b"}}}); got != "d" {
					t.Errorf("the tags of before find %q", got)
				}
			}
			// The reference goes on working with it, and we see what it does.
			foreign(t, path, referenceInsert+`('ops', 'k', 'new', '2026-03-01T00:00:00+00:00', '2026-03-01T00:00:00+00:00', NULL, '{}')`,
				`UPDATE memory_records SET metadata_json = '{"tags": ["later"]}' WHERE record_id = 'new'`,
				`CREATE INDEX IF NOT EXISTS idx_memory_ns_kind_id ON memory_records(namespace, record_kind, record_id)`,
				`DELETE FROM memory_records WHERE record_id = 'd'`)
			if got := f.ids(Query{Namespace: ops, Filters: Filters{TagsAny: []string{"later"}}}); got != "new" {
				t.Errorf("the reference's new tag finds %q", got)
			}
			if n := foreignText(t, path, "SELECT count(*) FROM memory_record_tags WHERE record_id = 'd'"); n != "0" {
				t.Errorf("%s tags of a deleted record are left", n)
			}
			f.put(Key{ops, "k", "ours"}, `{"é":"<&>"}`, ref(int64(5)), `{"source":"us"}`)
			if got := foreignText(t, path, `SELECT namespace || record_kind || record_id || created_at || updated_at || ttl_seconds || payload_json || metadata_json FROM memory_records WHERE record_id = 'ours'`); got != `opskours2026-03-01T00:00:30+00:002026-03-01T00:00:30+00:005{"é":"<&>"}{"source":"us"}` {
				t.Errorf("the reference reads %s", got)
			}
		})
	}
}

func TestAdoptionSetsDuplicatesAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ainl_memory.sqlite3")
	foreign(t, path, referenceV1, referenceInsert+`
		('workflow', 'workflow.checkpoint', 'cp-1', '2026-03-01T00:00:00+00:00', '2026-03-01T00:00:02+00:00', NULL, '{"v": "newest"}'),
		('workflow', 'workflow.checkpoint', 'cp-1', '2026-03-01T00:00:01+00:00', '2026-03-01T00:00:01Z', NULL, '{"v": "older"}'),
		('workflow', 'workflow.checkpoint', 'cp-1', '2026-03-01T00:00:01+00:00', 'never', NULL, '{"v": "no time"}'),
		('workflow', 'workflow.checkpoint', 'cp-2', '2026-03-01T00:00:00+00:00', '2026-03-01T00:00:00+00:00', NULL, '{"v": "first"}'),
		('workflow', 'workflow.checkpoint', 'cp-2', '2026-03-01T00:00:00+00:00', '2026-03-01T00:00:00Z', NULL, '{"v": "second"}'),
		('workflow', 'workflow.checkpoint', 'alone', '2026-03-01T00:00:00+00:00', '2026-03-01T00:00:00+00:00', NULL, '{}')`)
	f := fixture{openTest(t, path, Options{}), nil, t}
	if got := f.payload(checkpoint); got != `{"v": "newest"}` {
		t.Errorf("kept %s, want the record that was changed last", got)
	}
	if got := f.payload(Key{workflow, "workflow.checkpoint", "cp-2"}); got != `{"v": "second"}` {
		t.Errorf("kept %s of two of one time, want the one written last", got)
	}
	r, err := f.Report(context.Background(), ReportQuery{})
	if err != nil || r.DuplicatesAside != 3 || r.Summary.Total != 3 || !strings.Contains(r.Text(), "duplicates set aside") {
		t.Errorf("report = %+v, %v, want 3 aside", r, err)
	}
	if got := foreignText(t, path, "SELECT group_concat(payload_json) FROM (SELECT payload_json FROM memory_record_duplicates ORDER BY id)"); got != `{"v": "older"},{"v": "no time"},{"v": "first"}` {
		t.Errorf("set aside: %s", got)
	}
}

func TestDefectNoUniqueKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	f := fixture{openTest(t, path, Options{}), nil, t}
	f.put(checkpoint, `{}`, nil, "")
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(referenceInsert + `('workflow', 'workflow.checkpoint', 'cp-1', 'x', 'x', NULL, '{}')`); err == nil || !strings.Contains(err.Error(), "UNIQUE") {
		t.Errorf("a second row of one key: %v, want a violation", err)
	}
}

func TestDamagedRowsAreReportedAndReplaceable(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), FileName)
	f := fixture{openTest(t, path, Options{}), nil, t}
	foreign(t, path, referenceInsert+`('workflow', 'workflow.checkpoint', 'cp-1', '2026-03-01T00:00:00+00:00', '2026-03-01T00:00:00+00:00', NULL, '{oops')`,
		`INSERT INTO memory_records (namespace, record_kind, record_id, created_at, updated_at, payload_json, metadata_json) VALUES ('ops', 'k', 'm', 'x', 'x', '{}', 'oops')`)
	if _, _, err := f.Get(ctx, checkpoint); !errors.Is(err, memory.ErrCorrupt) {
		t.Errorf("Get = %v", err)
	}
	if _, _, err := f.Get(ctx, Key{ops, "k", "m"}); !errors.Is(err, memory.ErrCorrupt) {
		t.Errorf("Get with damaged metadata = %v", err)
	}
	if got := f.ids(Query{Namespace: ops, Filters: Filters{Source: ref("s")}}); got != "" {
		t.Errorf("List = %q", got)
	}
	if _, err := f.Append(ctx, Write{Key: checkpoint, Value: json.RawMessage(`{}`)}); !errors.Is(err, memory.ErrCorrupt) {
		t.Errorf("Append = %v", err)
	}
	f.put(checkpoint, `{"v":1}`, nil, `{"tags":["a"]}`)
	f.put(Key{ops, "k", "m"}, `{"v":2}`, nil, `{"tags":["a"]}`)
	if f.payload(checkpoint) != `{"v":1}` || f.payload(Key{ops, "k", "m"}) != `{"v":2}` {
		t.Error("a put does not heal a damaged record")
	}
}
