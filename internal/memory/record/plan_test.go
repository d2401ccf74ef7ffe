package record

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// Lists by tags and pruning must read as much as they need and no more: in the
// order of an index, without sorting and without a pass over a whole table.
func TestStatementsUseTheirIndexes(t *testing.T) {
	s, ctx := openTest(t, filepath.Join(t.TempDir(), FileName), Options{}), context.Background()
	if _, err := s.Import(ctx, benchRecords(2000, 100)); err != nil {
		t.Fatal(err)
	}
	since, kind := "2026-01-01T00:00:00Z", "workflow.k1"
	statements := map[string]func(tx *sql.Tx) (string, []any, error){
		"prune": func(*sql.Tx) (string, []any, error) { return pruneQuery, []any{1, false, 0, 0, "", "[]", 10}, nil },
	}
	for name, q := range map[string]Query{
		"no tags":        {},
		"kind":           {Kind: &kind},
		"one of one":     {Filters: Filters{TagsAny: []string{"common"}}},
		"one of three":   {Filters: Filters{TagsAny: []string{"common", "billing", "t7"}}},
		"all of two":     {Filters: Filters{TagsAll: []string{"common", "billing"}}},
		"tag and window": {Filters: Filters{TagsAny: []string{"billing"}, CreatedAfter: &since}},
		"both":           {Kind: &kind, Filters: Filters{TagsAny: []string{"rare", "t10"}, TagsAll: []string{"billing"}}},
	} {
		statements[name] = func(tx *sql.Tx) (string, []any, error) {
			q.Namespace = workflow
			text, args, err := q.statement(ctx, tx)
			return text, append(args, 100, 0), err
		}
	}
	for name, make := range statements {
		t.Run(name, func(t *testing.T) {
			plan := explain(t, s, make)
			if strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") || strings.Contains(plan, "SCAN t\n") || strings.Contains(plan, "SCAN r\n") || strings.Contains(plan, "SCAN memory_records\n") {
				t.Errorf("plan:\n%s", plan)
			}
		})
	}
}

func explain(t *testing.T, s *Store, make func(tx *sql.Tx) (string, []any, error)) string {
	t.Helper()
	var b strings.Builder
	err := s.db.View(context.Background(), func(tx *sql.Tx) error {
		text, args, err := make(tx)
		if err != nil {
			return err
		}
		rows, err := tx.Query("EXPLAIN QUERY PLAN "+text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				return err
			}
			b.WriteString(step + "\n")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
