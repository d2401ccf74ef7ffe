package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/openclawssy/openclawssy/internal/memory"
	vectorscan "github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// batchTexts is how many texts are embedded in one call.
const batchTexts = 64

// waiting is a text that has no vector yet.
type waiting struct{ hash, text string }

// vectorise makes missing vectors, at most so many, and counts what the index
// has. What the embedder refuses becomes the report's warning; the text is found
// by its words all the same.
func (p *pass) vectorise(ctx context.Context, db *sqlite.DB, most int) error {
	total, err := p.count(ctx, db)
	if err != nil || p.o.Embedder == nil {
		return err
	}
	for done := 0; done < most; {
		batch, err := pending(ctx, db, min(batchTexts, most-done))
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			break
		}
		vectors, err := p.embed(ctx, batch)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			p.r.Warning = fmt.Sprintf("vectors are missing: %v", err)
			break
		}
		if err := p.keep(ctx, db, batch, vectors); err != nil {
			return err
		}
		done += len(batch)
		op.Report(ctx, op.Progress{Done: int64(done), Total: int64(total), Unit: "texts"})
	}
	_, err = p.count(ctx, db)
	return err
}

// count puts into the report how many chunks there are, and returns how many
// texts wait for a vector.
func (p *pass) count(ctx context.Context, db *sqlite.DB) (texts int, err error) {
	err = db.View(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM chunks").Scan(&p.r.Chunks); err != nil || p.o.Embedder == nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT count(*), count(DISTINCT hash) FROM chunks WHERE embedding = '[]'").Scan(&p.r.Pending, &texts)
	})
	return texts, err
}

func pending(ctx context.Context, db *sqlite.DB, most int) (batch []waiting, err error) {
	err = db.View(ctx, func(tx *sql.Tx) (err error) {
		found, err := tx.QueryContext(ctx, "SELECT hash, min(text) FROM chunks WHERE embedding = '[]' GROUP BY hash LIMIT ?", most)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, found.Close()) }()
		for found.Next() {
			var w waiting
			if err := found.Scan(&w.hash, &w.text); err != nil {
				return err
			}
			batch = append(batch, w)
		}
		return found.Err()
	})
	return batch, err
}

// embed asks for the vectors of a batch and checks them.
func (p *pass) embed(ctx context.Context, batch []waiting) ([][]float32, error) {
	texts := make([]string, len(batch))
	for i, w := range batch {
		texts[i] = w.text
	}
	vectors, err := p.embedTexts(ctx, texts)
	if err != nil {
		return nil, err
	}
	for _, v := range vectors {
		if p.want.VectorDims == 0 {
			p.want.VectorDims = len(v)
		}
		if len(v) != p.want.VectorDims {
			return nil, memory.WithHint(memory.Errorf(memory.ErrUnavailable, "%s answered a vector of %d numbers where it has %d", p.want.Model, len(v), p.want.VectorDims),
				"build the index anew with --force")
		}
	}
	return vectors, nil
}

// embedTexts asks the embedder and checks that there is a vector for each text.
func (x *Index) embedTexts(ctx context.Context, texts []string) ([][]float32, error) {
	model := x.o.Embedder.ModelID()
	vectors, err := x.o.Embedder.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embed with %s: %w", model, err)
	}
	if len(vectors) != len(texts) {
		return nil, memory.Errorf(memory.ErrUnavailable, "%s answered %d vectors for %d texts", model, len(vectors), len(texts))
	}
	for _, v := range vectors {
		if len(v) == 0 {
			return nil, memory.Errorf(memory.ErrUnavailable, "%s answered an empty vector", model)
		}
		for _, f := range v {
			if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
				return nil, memory.Errorf(memory.ErrUnavailable, "%s answered a vector with %v in it", model, f)
			}
		}
	}
	return vectors, nil
}

// keep writes the vectors of a batch to the chunks that wait for them, and to the
// cache.
func (p *pass) keep(ctx context.Context, db *sqlite.DB, batch []waiting, vectors [][]float32) error {
	return db.Update(ctx, func(tx *sql.Tx) error {
		for i, w := range batch {
			text, dims := vectorText(vectors[i]), sql.NullInt64{Int64: int64(len(vectors[i])), Valid: true}
			if err := putCache(ctx, tx, p.want.Provider, p.want.Model, p.want.ProviderKey, w.hash, text, dims, p.o.Now().UnixMilli()); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO chunks_vec (id, embedding) SELECT id, ? FROM chunks WHERE hash = ? AND embedding = '[]'",
				vectorscan.AppendFloats(nil, vectors[i]), w.hash)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "UPDATE chunks SET embedding = ? WHERE hash = ? AND embedding = '[]'", text, w.hash); err != nil {
				return err
			}
		}
		return saveMeta(ctx, tx, p.want)
	})
}

// vectorText writes a vector as a JSON array, as short as float32 allows.
func vectorText(v []float32) string {
	out := make([]byte, 0, 2+12*len(v))
	out = append(out, '[')
	for i, f := range v {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendFloat(out, float64(f), 'g', -1, 32)
	}
	return string(append(out, ']'))
}

// parseVector reads a JSON array; nil if it is none.
func parseVector(text string) []float32 {
	var v []float32
	if json.Unmarshal([]byte(text), &v) != nil {
		return nil
	}
	return v
}

// cosine is the similarity of two vectors, over the shorter length; 0 where one is
// zero.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / (math.Sqrt(aa) * math.Sqrt(bb))
}
