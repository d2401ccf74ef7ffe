package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	vectorscan "github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/chunk"
	"github.com/openclawssy/openclawssy/internal/workspace/rank"
)

// Query is the input of a search. Its members are those of OpenClaw's tool
// memory_search, and the settings that OpenClaw has in its configuration.
type Query struct {
	Query        string   `json:"query" cli:"arg" jsonschema:"words, or a question"`
	MaxResults   int      `json:"maxResults,omitempty" jsonschema:"most results; 6 if absent"`
	MinScore     *float64 `json:"minScore,omitempty" jsonschema:"least score, 0 to 1; 0.35 if absent"`
	Multiplier   int      `json:"candidateMultiplier,omitempty" jsonschema:"candidates of each side for one result, 1 to 20; 4 if absent"`
	VectorWeight *float64 `json:"vectorWeight,omitempty" jsonschema:"share of meaning; 0.7 if absent"`
	TextWeight   *float64 `json:"textWeight,omitempty" jsonschema:"share of words; 0.3 if absent"`
	Decay        bool     `json:"temporalDecay,omitempty" jsonschema:"let the scores of daily logs decay with their age"`
	HalfLifeDays float64  `json:"halfLifeDays,omitempty" jsonschema:"age at which a score has halved; 30 if absent"`
	MMR          bool     `json:"mmr,omitempty" jsonschema:"rerank for diversity"`
	Lambda       *float64 `json:"lambda,omitempty" jsonschema:"with mmr: weight of relevance against diversity, 0 to 1; 0.7 if absent"`
	Scoring      string   `json:"scoring,omitempty" jsonschema:"whose arithmetic: seed (OpenClaw of January and February 2026) or later; later if absent"`
	AnyWord      bool     `json:"anyWord,omitempty" jsonschema:"look for any of the words, not all of them"`
	AsIs         bool     `json:"asIs,omitempty" jsonschema:"search the index as it is, without looking for changed files"`
}

// Result is a chunk that was found, as memory_search shows it.
type Result struct {
	Path      string  `json:"path"`
	StartLine int     `json:"startLine"`
	EndLine   int     `json:"endLine"`
	Score     float64 `json:"score"`
	Snippet   string  `json:"snippet" jsonschema:"the first 700 UTF-16 units of the chunk"`
	Source    string  `json:"source" jsonschema:"memory or sessions"`
	Citation  string  `json:"citation"`
}

// What a search went by.
const (
	modeHybrid = "hybrid"
	modeWords  = "fts-only"
)

// Answer is the output of a search.
type Answer struct {
	Results  []Result `json:"results"`
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Mode     string   `json:"mode" jsonschema:"hybrid, or fts-only for words alone"`
	AnyWord  bool     `json:"anyWord,omitempty" jsonschema:"no chunk had all words; these have some, or parts of them"`
	Warnings []string `json:"warnings,omitempty"`
}

// Text is the answer for a person.
func (a Answer) Text() string {
	var sb strings.Builder
	for _, r := range a.Results {
		fmt.Fprintf(&sb, "%.3f  %s\n", r.Score, r.Citation)
		for line := range strings.SplitSeq(strings.TrimRight(r.Snippet, "\n"), "\n") {
			fmt.Fprintf(&sb, "       %s\n", line)
		}
	}
	if len(a.Results) == 0 {
		sb.WriteString("nothing found\n")
	}
	for _, w := range a.Warnings {
		fmt.Fprintf(&sb, "note: %s\n", w)
	}
	return sb.String()
}

// OpenClaw's defaults and limits.
const (
	defaultResults    = 6
	defaultMinScore   = 0.35
	defaultMultiplier = 4
	mostMultiplier    = 20
	mostCandidates    = 200
	defaultHalfLife   = 30
)

// plan is a checked query.
type plan struct {
	text       string
	candidates int
	params     rank.Params
	anyWord    bool
}

func (q Query) plan(now time.Time) (plan, error) {
	era, err := rank.ParseEra(q.Scoring)
	if err != nil {
		return plan{}, err
	}
	if q.MaxResults < 0 {
		return plan{}, &memory.FieldError{Field: "maxResults", Reason: "must not be negative"}
	}
	if q.HalfLifeDays < 0 {
		return plan{}, &memory.FieldError{Field: "halfLifeDays", Reason: "must not be negative"}
	}
	p := rank.Params{Era: era, Max: cmp.Or(q.MaxResults, defaultResults), MinScore: min(max(value(q.MinScore, defaultMinScore), 0), 1),
		Weights: rank.Weights{Vector: value(q.VectorWeight, rank.DefaultWeights.Vector), Text: value(q.TextWeight, rank.DefaultWeights.Text)},
		Now:     now, Diverse: q.MMR, Lambda: value(q.Lambda, rank.DefaultLambda)}
	if q.Decay {
		p.HalfLife = max(1, int(min(cmp.Or(q.HalfLifeDays, defaultHalfLife), 1e6)))
	}
	multiplier := min(max(cmp.Or(q.Multiplier, defaultMultiplier), 1), mostMultiplier)
	return plan{text: chunk.Trim(q.Query), candidates: min(max(min(p.Max, mostCandidates)*multiplier, 1), mostCandidates), params: p, anyWord: q.AnyWord}, nil
}

func value(p *float64, other float64) float64 {
	if p == nil {
		return other
	}
	return *p
}

// vectorsOnSearch is how many missing vectors a search makes before it answers.
const vectorsOnSearch = 2 * batchTexts

// Search brings the index up to date with the workspace, as far as that is quick,
// and searches it. Where the index cannot be brought up to date because another
// process is at it, or the disk is full, it searches what is there and says so.
// Without an embedder, or while it does not answer, it searches by words only.
// ErrNotFound where there is no index and none can be made.
func (x *Index) Search(ctx context.Context, w *workspace.Workspace, q Query) (Answer, error) {
	a := Answer{Results: []Result{}, Mode: modeWords}
	p, err := q.plan(x.o.Now())
	if err != nil {
		return a, err
	}
	if !q.AsIs {
		if a.Warnings, err = x.freshen(ctx, w); err != nil {
			return a, err
		}
	}
	err = x.with(ctx, func(db *sqlite.DB) error { return x.answer(ctx, db, w, p, &a) })
	return a, err
}

// freshen brings the index up to date unless somebody else does.
func (x *Index) freshen(ctx context.Context, w *workspace.Workspace) ([]string, error) {
	if _, err := os.Stat(filepath.Dir(x.path)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a search makes no directory
	}
	var r Report
	ran, err := x.alone(ctx, false, func() (err error) {
		r, err = x.sync(ctx, w, Change{}, true, vectorsOnSearch)
		return err
	})
	switch {
	case errors.Is(err, memory.ErrUnavailable) && ctx.Err() == nil:
		return []string{fmt.Sprintf("the index may be out of date: %v", err)}, nil
	case err != nil:
		return nil, err
	case !ran:
		return []string{"the index may be out of date: it is being built by another process"}, nil
	}
	var warnings []string
	if r.Warning != "" {
		warnings = append(warnings, r.Warning)
	} else if r.Pending > 0 {
		warnings = append(warnings, fmt.Sprintf("%d chunks have no vector yet: openclawssy workspace index makes them", r.Pending))
	}
	for _, n := range r.Skipped {
		warnings = append(warnings, n.String())
	}
	return warnings, nil
}

// answer searches the open index.
func (x *Index) answer(ctx context.Context, db *sqlite.DB, w *workspace.Workspace, p plan, a *Answer) error {
	var have *meta
	err := db.View(ctx, func(tx *sql.Tx) (err error) {
		have, err = loadMeta(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	if have == nil || have.Workspace != w.Path() {
		return notIndexed(w)
	}
	a.Provider, a.Model = have.Provider, have.Model
	if p.text == "" {
		return nil
	}
	terms := p.params.Era.Terms(p.text)
	words, err := matching(ctx, db, rank.Expression(terms, p.anyWord), p)
	if err != nil {
		return err
	}
	vectors, hybrid, err := x.byMeaning(ctx, db, have, p, a)
	if err != nil {
		return err
	}
	if hybrid {
		a.Mode = modeHybrid
		a.Results = results(rank.Blend(vectors, words, p.params))
		return nil
	}
	if len(words) == 0 && p.params.Era != rank.Seed {
		words, err = loosely(ctx, db, terms, p)
		a.AnyWord = len(words) > 0
	}
	a.Results = results(rank.WordsOnly(words, p.params))
	return err
}

func results(hits []rank.Hit) []Result {
	out := []Result{}
	for _, h := range hits {
		r := Result{Path: h.Path, StartLine: h.StartLine, EndLine: h.EndLine, Score: h.Score, Snippet: h.Snippet, Source: h.Source,
			Citation: fmt.Sprintf("%s#L%d", h.Path, h.StartLine)}
		if h.EndLine != h.StartLine {
			r.Citation += fmt.Sprintf("-L%d", h.EndLine)
		}
		out = append(out, r)
	}
	return out
}

// matching returns the best chunks of a full-text expression.
func matching(ctx context.Context, db *sqlite.DB, expression string, p plan) (hits []rank.Hit, err error) {
	if expression == "" {
		return nil, nil
	}
	err = db.View(ctx, func(tx *sql.Tx) (err error) {
		found, err := tx.QueryContext(ctx, `
			SELECT f.id, f.path, f.source, f.start_line, f.end_line, f.text, f.rank, coalesce((SELECT mtime FROM files WHERE path = f.path), 0)
			FROM chunks_fts AS f WHERE chunks_fts MATCH ? ORDER BY f.rank LIMIT ?`, expression, p.candidates)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, found.Close()) }()
		for found.Next() {
			var h rank.Hit
			var bm25 float64
			var mtime int64
			if err := found.Scan(&h.ID, &h.Path, &h.Source, &h.StartLine, &h.EndLine, &h.Snippet, &bm25, &mtime); err != nil {
				return err
			}
			h.Text, h.Snippet, h.Changed = p.params.Era.TextScore(bm25), chunk.Snippet(h.Snippet, chunk.SnippetUnits), instant(mtime)
			hits = append(hits, h)
		}
		return found.Err()
	})
	return hits, err
}

// instant makes a time of milliseconds; 0 is the zero time.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// byMeaning finds the chunks nearest to the query's vector. hybrid is false where
// there are no vectors to compare with, or the embedder does not answer.
func (x *Index) byMeaning(ctx context.Context, db *sqlite.DB, have *meta, p plan, a *Answer) (hits []rank.Hit, hybrid bool, err error) {
	if x.o.Embedder == nil || have.VectorDims == 0 {
		return nil, false, nil
	}
	mine, err := x.vectors()
	if err != nil {
		return nil, false, err
	}
	if (vectorsOf{have.Provider, have.Model, have.ProviderKey}) != mine {
		a.Warnings = append(a.Warnings, fmt.Sprintf("the index has vectors of %s/%s: they are not compared with those of %s/%s", have.Provider, have.Model, mine.provider, mine.model))
		return nil, false, nil
	}
	vectors, err := x.embedTexts(ctx, []string{p.text})
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, err
		}
		a.Warnings = append(a.Warnings, fmt.Sprintf("searched by words only: %v", err))
		return nil, false, nil
	}
	if !slices.ContainsFunc(vectors[0], func(f float32) bool { return f != 0 }) {
		return nil, true, nil
	}
	hits, err = nearest(ctx, db, vectors[0], p.candidates)
	return hits, true, err
}

// near is a chunk's similarity to the query.
type near struct {
	id    string
	score float64
}

// nearest returns the chunks with the vectors most similar to v, by similarity,
// then id.
func nearest(ctx context.Context, db *sqlite.DB, v []float32, most int) (hits []rank.Hit, err error) {
	err = db.View(ctx, func(tx *sql.Tx) error {
		best, err := scanVectors(ctx, tx, v, most)
		if err != nil {
			return err
		}
		for _, n := range best {
			h := rank.Hit{ID: n.id, Vector: n.score}
			var mtime int64
			err := tx.QueryRowContext(ctx, `
				SELECT path, source, start_line, end_line, text, coalesce((SELECT mtime FROM files WHERE path = c.path), 0)
				FROM chunks AS c WHERE id = ?`, n.id).Scan(&h.Path, &h.Source, &h.StartLine, &h.EndLine, &h.Snippet, &mtime)
			if err != nil {
				return err
			}
			h.Snippet, h.Changed = chunk.Snippet(h.Snippet, chunk.SnippetUnits), instant(mtime)
			hits = append(hits, h)
		}
		return nil
	})
	return hits, err
}

// scanVectors compares every vector.
func scanVectors(ctx context.Context, tx *sql.Tx, v []float32, most int) (best []near, err error) {
	found, err := tx.QueryContext(ctx, "SELECT id, embedding FROM chunks_vec")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	order := func(a, b near) int { return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.id, b.id)) }
	var id, blob sql.RawBytes
	var stored []float32
	for found.Next() {
		if err := found.Scan(&id, &blob); err != nil {
			return nil, err
		}
		var n near
		// Others write this file too: what is no vector is near to nothing.
		if read, err := vectorscan.Floats(stored, blob); err == nil {
			stored, n.score = read, cosine(v, read)
		}
		if len(best) == most && n.score < best[most-1].score {
			continue
		}
		n.id = string(id)
		at, _ := slices.BinarySearchFunc(best, n, order)
		best = slices.Insert(best, at, n)
		best = best[:min(len(best), most)]
	}
	return best, found.Err()
}
