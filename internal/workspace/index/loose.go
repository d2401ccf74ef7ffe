package index

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"unicode"

	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace/chunk"
	"github.com/openclawssy/openclawssy/internal/workspace/rank"
)

// loosely is the search by words where no chunk has them all and there are no
// vectors: the chunks with any of the words or, in scripts without spaces, whose
// words the full-text table cannot tell apart, with pairs of their characters.
// Later versions of OpenClaw look for single words then, too.
func loosely(ctx context.Context, db *sqlite.DB, terms []string, p plan) ([]rank.Hit, error) {
	hits, err := matching(ctx, db, rank.Expression(terms, true), p)
	if err != nil || len(hits) > 0 {
		return hits, err
	}
	if pairs := pairsOf(terms); len(pairs) > 0 {
		return holding(ctx, db, pairs, p)
	}
	return nil, nil
}

// mostPairs bounds what one query looks for: each pair is looked for in each chunk.
const mostPairs = 16

// pairsOf cuts terms of scripts without spaces into pairs of neighbours.
func pairsOf(terms []string) []string {
	var pairs []string
	for _, t := range terms {
		runs := strings.FieldsFunc(t, func(r rune) bool {
			return !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
		})
		for _, run := range runs {
			c := []rune(run)
			for i := range max(1, len(c)-1) {
				pairs = append(pairs, string(c[i:min(i+2, len(c))]))
			}
		}
	}
	return pairs[:min(len(pairs), mostPairs)]
}

// holding returns the chunks that hold most of some strings. The score is half the
// share of those that a chunk holds.
func holding(ctx context.Context, db *sqlite.DB, parts []string, p plan) (hits []rank.Hit, err error) {
	held := strings.TrimSuffix(strings.Repeat("(instr(text, ?) > 0) + ", len(parts)), " + ")
	args := make([]any, 0, len(parts)+1)
	for _, part := range parts {
		args = append(args, part)
	}
	err = db.View(ctx, func(tx *sql.Tx) (err error) {
		found, err := tx.QueryContext(ctx, `
			SELECT id, path, source, start_line, end_line, text, held FROM (SELECT *, `+held+` AS held FROM chunks)
			WHERE held > 0 ORDER BY held DESC, path, start_line, id LIMIT ?`, append(args, p.candidates)...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, found.Close()) }()
		for found.Next() {
			var h rank.Hit
			var n int
			if err := found.Scan(&h.ID, &h.Path, &h.Source, &h.StartLine, &h.EndLine, &h.Snippet, &n); err != nil {
				return err
			}
			h.Text, h.Snippet = float64(n)/float64(len(parts))/2, chunk.Snippet(h.Snippet, chunk.SnippetUnits)
			hits = append(hits, h)
		}
		return found.Err()
	})
	return hits, err
}
