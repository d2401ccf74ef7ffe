package life

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

const factsFile = "memory/facts.db"

// columnsOf returns the columns of a table or view; empty for none.
func columnsOf(ctx context.Context, tx *sql.Tx, table string) (map[string]bool, error) {
	rows, err := tx.QueryContext(ctx, "SELECT lower(name) FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out[name] = true
	}
	return out, rows.Err()
}

// column is the expression for a column that may be missing.
func column(have map[string]bool, name string) string {
	if have[name] {
		return `CAST("` + name + `" AS TEXT)`
	}
	return "NULL"
}

// readFacts reads the table facts of a database that some users keep: entity,
// key, value and, if there, category. Each is a preference.
func readFacts(ctx context.Context, path string, agent uuid.UUID, changed time.Time) ([]*alf.Record, error) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true, Readers: 1})
	if err != nil {
		return nil, err
	}
	var out []*alf.Record
	err = db.View(ctx, func(tx *sql.Tx) error {
		have, err := columnsOf(ctx, tx, "facts")
		if err != nil {
			return err
		}
		if !have["entity"] || !have["key"] || !have["value"] {
			return memory.Errorf(memory.ErrInvalid, "it has no table facts of entity, key and value")
		}
		rows, err := tx.QueryContext(ctx, fmt.Sprintf(`SELECT rowid, CAST(entity AS TEXT), CAST("key" AS TEXT), CAST(value AS TEXT), %s, %s FROM facts ORDER BY rowid`,
			column(have, "category"), column(have, "created_at")))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var f fact
			if err := rows.Scan(&f.Row, &f.entity, &f.key, &f.value, &f.category, &f.created); err != nil {
				return err
			}
			if r := f.record(agent, changed); r != nil {
				out = append(out, r)
			}
		}
		return rows.Err()
	})
	if closing := db.Close(); err == nil {
		err = closing
	}
	return out, err
}

// fact is a row of facts.db.
type fact struct {
	Row                                   int64
	entity, key, value, category, created sql.NullString
}

// record is the fact as a record; nil where the row says nothing.
func (f fact) record(agent uuid.UUID, changed time.Time) *alf.Record {
	content := strings.TrimSpace(strings.ToValidUTF8(strings.TrimSpace(f.entity.String+" "+f.key.String)+": "+f.value.String, "\uFFFD"))
	if content == ":" {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"rowid": f.Row, "entity": f.entity.String, "key": f.key.String, "value": f.value.String, "category": f.category.String})
	if err != nil {
		panic(err) // strings and a number always encode
	}
	made := changed
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, f.created.String); err == nil {
			made = t
			break
		}
	}
	r := &alf.Record{ID: workspace.RecordID(fmt.Sprintf("facts.db:%d", f.Row)), AgentID: agent, Content: content, MemoryType: alf.Preference, Status: alf.Active, Namespace: "facts",
		Category: strings.ToValidUTF8(f.category.String, "\uFFFD"), Tags: alf.List[string]{"facts"}, RawSourceFormat: raw,
		Source:   alf.Source{Runtime: openclaw, Origin: "facts.db", OriginFile: factsFile, ExtractionMethod: alf.AgentWritten},
		Temporal: alf.Temporal{CreatedAt: alf.At(made), UpdatedAt: alf.At(changed)}}
	if r.Category != "" {
		r.Tags = append(r.Tags, r.Category)
	}
	return r
}
