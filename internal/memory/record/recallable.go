package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Match is a long-term record that shares words with a query, as an item.
type Match struct {
	Item memory.Item // trust import, handle REC-n
	BM   float64     // -bm25 of the query's terms over its text; 0 where it is not among the best of that column
	Pre  float64     // -bm25 of its prefixes, likewise
}

// How a record stands among items: it was written by a program, and nobody has
// judged it.
const (
	recallImportance    = 3
	recallAuthoritative = 4 // where its flags say authoritative
	recallConfidence    = 0.8
)

// Match returns the long-term records that share words with q, in no order of
// merit: the best limit by their words, and the best by the first letters of
// their words. Expired ones are left out. Records that were written since the
// last call are indexed first, a few hundred at a time and only while nobody
// else writes; Index does all.
func (s *Store) Match(ctx context.Context, q text.Query, limit int) ([]Match, error) {
	if s.db == nil {
		return nil, nil
	}
	if _, err := s.index(ctx, s.tryUpdate); err != nil && !errors.Is(err, memory.ErrUnavailable) {
		return nil, fmt.Errorf("match records: %w", err)
	}
	var matches []Match
	err := s.db.View(ctx, func(tx *sql.Tx) error {
		found := map[int64]*Match{}
		for _, column := range []struct {
			table, query string
			set          func(*Match, float64)
		}{
			{"memory_record_fts", q.MatchMain(), func(m *Match, v float64) { m.BM = v }},
			{"memory_record_prefix", q.MatchPrefix(), func(m *Match, v float64) { m.Pre = v }},
		} {
			if column.query == "" {
				continue
			}
			if err := best(ctx, tx, column.table, column.query, limit, func(number int64, score float64) {
				if found[number] == nil {
					found[number] = &Match{}
				}
				column.set(found[number], score)
			}); err != nil {
				return err
			}
		}
		for number, m := range found {
			r, err := scanRecord(tx.QueryRowContext(ctx, "SELECT "+recordColumns+" FROM memory_records WHERE id = ?", number))
			switch {
			case errors.Is(err, sql.ErrNoRows): // deleted, and not yet out of the index
				continue
			case err != nil:
				return err
			case r.Namespace != longTerm || expired(r.CreatedAt, r.TTLSeconds, s.now()):
				continue
			}
			m.Item = s.item(r)
			matches = append(matches, *m)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("match records: %w", sqlite.Classify(err))
	}
	return matches, nil
}

func best(ctx context.Context, tx *sql.Tx, table, query string, limit int, yield func(number int64, score float64)) error {
	rows, err := tx.QueryContext(ctx, "SELECT rowid, -bm25("+table+") AS score FROM "+table+" WHERE "+table+" MATCH ? ORDER BY score DESC, rowid DESC LIMIT ?", query, limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var score float64
		if err := rows.Scan(&number, &score); err != nil {
			return err
		}
		yield(number, score)
	}
	return rows.Err()
}

// indexBatch is how many records one transaction of Index takes.
const indexBatch = 256

// Index brings the words of the long-term records up to date for Match. It
// reports progress.
func (s *Store) Index(ctx context.Context) error {
	for total := int64(0); ; {
		n, err := s.index(ctx, s.update)
		if err != nil || n == 0 {
			return err
		}
		total += n
		op.Report(ctx, op.Progress{Done: total, Unit: "records"})
	}
}

// index takes one batch of changed records and returns how many it was.
func (s *Store) index(ctx context.Context, update func(context.Context, func(*sql.Tx) error) error) (n int64, err error) {
	var waiting bool
	err = s.db.Reader().QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM memory_record_pending)").Scan(&waiting)
	if err != nil || !waiting {
		return 0, sqlite.Classify(err)
	}
	err = update(ctx, func(tx *sql.Tx) error {
		numbers, err := pending(ctx, tx)
		if err != nil {
			return err
		}
		n = int64(len(numbers))
		for _, number := range numbers {
			if err := indexOne(ctx, tx, number); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

func pending(ctx context.Context, tx *sql.Tx) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, "SELECT number FROM memory_record_pending LIMIT ?", indexBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var numbers []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, rows.Err()
}

// indexOne replaces the words of one record.
func indexOne(ctx context.Context, tx *sql.Tx, number int64) error {
	for _, statement := range []string{"DELETE FROM memory_record_fts WHERE rowid = ?", "DELETE FROM memory_record_prefix WHERE rowid = ?", "DELETE FROM memory_record_pending WHERE number = ?"} {
		if _, err := tx.ExecContext(ctx, statement, number); err != nil {
			return err
		}
	}
	r, err := scanRecord(tx.QueryRowContext(ctx, "SELECT "+recordColumns+" FROM memory_records WHERE id = ?", number))
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, memory.ErrCorrupt) {
		return nil // nothing that could be recalled
	}
	if err != nil {
		return err
	}
	if r.Namespace != longTerm {
		return nil
	}
	columns := text.Index(recallText(r))
	if _, err := tx.ExecContext(ctx, "INSERT INTO memory_record_fts (rowid, main) VALUES (?, ?)", number, columns.Main); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO memory_record_prefix (rowid, prefix) VALUES (?, ?)", number, columns.Prefix)
	return err
}

// item shows a record as an item of memory.
func (s *Store) item(r Record) memory.Item {
	content := recallText(r)
	if s.redact != nil { // another program may have written it
		content = s.redact.Text(content)
	}
	it := memory.Item{ID: "rec_" + strings.TrimPrefix(r.Handle(), handlePrefix), Handle: r.Handle(), Kind: itemKind(r.Kind),
		Title: cut(r.ID, memory.MaxTitle), Content: cut(content, memory.MaxContent), Importance: recallImportance, Confidence: recallConfidence,
		Status: memory.Active, Trust: memory.TrustImport, Version: 1, Evidence: []memory.Evidence{}, Metadata: r.Key}
	it.CreatedAt, _, _ = parseTime(r.CreatedAt)
	it.UpdatedAt, _, _ = parseTime(r.UpdatedAt)
	if authoritative(r) {
		it.Importance = recallAuthoritative
	}
	metadata, err := parseObject("metadata", r.Metadata)
	if err != nil {
		return it // no metadata
	}
	raw, _ := metadata.get(metaConfidence)
	if x, err := floatOf(raw); err == nil && 0 <= x && x <= 1 {
		it.Confidence = x
	}
	raw, _ = metadata.get(metaValidAt)
	if at, err := decodeText(raw); err == nil {
		if t, _, ok := parseTime(at); ok {
			it.ValidFrom = &t
		}
	}
	return it
}

func itemKind(kind string) string {
	switch kind {
	case userPreference:
		return memory.KindPreference
	case projectFact:
		return memory.KindFact
	}
	return memory.KindNote
}

// authoritative reports whether a record was imported with that flag.
func authoritative(r Record) bool {
	payload, err := parseObject("payload", r.Payload)
	if err != nil {
		return false
	}
	raw, _ := payload.get(payloadFlags)
	flags, err := parseObject(payloadFlags, raw)
	if err != nil {
		return false
	}
	value, _ := flags.get("authoritative")
	return string(value) == "true"
}

// recallText is what a record says: its key and value where it has them, and
// its text or fact; else all of its scalar members.
func recallText(r Record) string {
	payload, err := parseObject("payload", r.Payload)
	if err != nil {
		return ""
	}
	said := func(name string) string { value, _ := payload.get(name); return printedScalar(value) }
	var parts []string
	name, value := orElse(said("key"), said("name")), said("value")
	switch {
	case name != "" && value != "":
		parts = append(parts, name+": "+value)
	case name != "":
		parts = append(parts, name)
	}
	for _, member := range []string{"text", "fact"} {
		if s := said(member); s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		for _, m := range payload {
			if s := printedScalar(m.value); s != "" && !strings.HasPrefix(m.name, "_") {
				parts = append(parts, m.name+": "+s)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// printedScalar writes a text, number or truth value; nothing for others.
func printedScalar(raw []byte) string {
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' {
		return ""
	}
	return strings.TrimFunc(printed(raw), isSpace)
}

// cut shortens s to at most most bytes, at the border of a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
