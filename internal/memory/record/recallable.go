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

// How a record stands among items: it was written by a program, and nobody has
// judged it.
const (
	recallImportance    = 3
	recallAuthoritative = 4 // where its flags say authoritative
	recallConfidence    = 0.8
)

// prefixWeight is what a first-letters match counts beside one of a word.
const prefixWeight = 0.5

// Match returns the long-term records that share words with q, as items: those
// that share the most weighty ones first, limit at most. Expired ones are left
// out. Records that were written since the last call are indexed first, a few
// hundred at a time and only while nobody else writes; Index does all.
func (s *Store) Match(ctx context.Context, q text.Query, limit int) ([]memory.Item, error) {
	expression := wordsOf(q)
	if s.db == nil || expression == "" {
		return nil, nil
	}
	if _, err := s.index(ctx, s.tryUpdate); err != nil && !errors.Is(err, memory.ErrUnavailable) {
		return nil, fmt.Errorf("match records: %w", err)
	}
	var found []memory.Item
	err := s.db.View(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT "+recordColumns+` FROM memory_record_words w CROSS JOIN memory_records r ON r.id = w.rowid
			WHERE memory_record_words MATCH ? AND r.namespace = ? ORDER BY bm25(memory_record_words, 1, ?), r.id DESC LIMIT ?`, expression, longTerm, prefixWeight, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			r, err := scanRecord(rows)
			if err != nil {
				return err
			}
			if !expired(r.CreatedAt, r.TTLSeconds, s.now()) {
				found = append(found, s.item(r))
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("match records: %w", sqlite.Classify(err))
	}
	return found, nil
}

// wordsOf is the FTS5 expression of a query; "" for one without words.
func wordsOf(q text.Query) string {
	var parts []string
	if main := q.MatchMain(); main != "" {
		parts = append(parts, "{main} : ("+main+")")
	}
	if prefix := q.MatchPrefix(); prefix != "" {
		parts = append(parts, "{prefix} : ("+prefix+")")
	}
	return strings.Join(parts, " OR ")
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
	for _, statement := range []string{"DELETE FROM memory_record_words WHERE rowid = ?", "DELETE FROM memory_record_pending WHERE number = ?"} {
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
	_, err = tx.ExecContext(ctx, "INSERT INTO memory_record_words (rowid, main, prefix) VALUES (?, ?, ?)", number, columns.Main, columns.Prefix)
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

// Match is Store.Match for an agent's records; none for an agent without any.
func (s *Service) Match(ctx context.Context, agent memory.AgentID, q text.Query, limit int) ([]memory.Item, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return nil, err
	}
	defer release()
	return store.Match(ctx, q, limit)
}
