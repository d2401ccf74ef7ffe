package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Echoes returns the ids of the events in which the assistant repeats one of the
// texts, to the letter, in the order of the log for each text. It reads the answers
// that have the text's rarest words, and every answer only for a text without words.
func (s *Store) Echoes(ctx context.Context, texts []string) ([]string, error) {
	seen, ids := map[string]bool{}, []string{}
	err := s.view(ctx, func(tx *sql.Tx) error {
		for _, t := range texts {
			if err := echoesOf(ctx, tx, t, func(id string) {
				if !seen[id] {
					seen[id] = true
					ids = append(ids, id)
				}
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for echoes: %w", err)
	}
	return ids, nil
}

func echoesOf(ctx context.Context, tx *sql.Tx, said string, found func(id string)) error {
	terms, err := rarest(ctx, tx, said)
	if err != nil {
		return err
	}
	query, args := `SELECT event_id FROM episodes WHERE type = ? AND instr(text, ?) > 0 ORDER BY n`, []any{memory.AssistantOutput, said}
	if terms != "" {
		query = `SELECT event_id FROM episodes WHERE n IN (SELECT rowid FROM m WHERE m MATCH ?) AND type = ? AND instr(text, ?) > 0 ORDER BY n`
		args = append([]any{terms}, args...)
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		found(id)
	}
	return rows.Err()
}

// askedTerms is how many of a text's terms are looked up in the index.
const askedTerms = 4

// rarest returns the full-text query for a text's rarest terms; "" where it has
// none. Its first and last word are left out where others remain: in an answer they
// may be parts of longer ones.
func rarest(ctx context.Context, tx *sql.Tx, said string) (string, error) {
	words := text.Words(said)
	if len(words) > 2 {
		words = words[1 : len(words)-1]
	}
	type term struct {
		name string
		rows int
	}
	var terms []term
	for _, name := range strings.Fields(text.Index(strings.Join(words, " ")).Main) {
		if slices.ContainsFunc(terms, func(t term) bool { return t.name == name }) {
			continue
		}
		t := term{name: name}
		err := tx.QueryRowContext(ctx, "SELECT doc FROM m_rows WHERE term = ?", name).Scan(&t.rows)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return "", err
		}
		terms = append(terms, t)
	}
	slices.SortStableFunc(terms, func(a, b term) int { return a.rows - b.rows })
	var query []string
	for _, t := range terms[:min(len(terms), askedTerms)] {
		query = append(query, `"`+strings.ReplaceAll(t.name, `"`, `""`)+`"`)
	}
	return strings.Join(query, " AND "), nil
}
