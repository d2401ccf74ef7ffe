package index

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
	vectorscan "github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace/chunk"
)

// rows writes an index's rows in one transaction.
type rows struct {
	tx *sql.Tx
	*pass
}

func indexedFiles(ctx context.Context, tx *sql.Tx) (known map[string]indexed, err error) {
	found, err := tx.QueryContext(ctx, "SELECT path, source, hash, mtime, size FROM files")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	known = map[string]indexed{}
	for found.Next() {
		var path string
		var f indexed
		if err := found.Scan(&path, &f.source, &f.hash, &f.mtime, &f.size); err != nil {
			return nil, err
		}
		known[path] = f
	}
	return known, found.Err()
}

func (r *rows) putFile(ctx context.Context, path string, f indexed) error {
	_, err := r.tx.ExecContext(ctx, `
		INSERT INTO files (path, source, hash, mtime, size) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (path) DO UPDATE SET source = excluded.source, hash = excluded.hash, mtime = excluded.mtime, size = excluded.size`,
		path, f.source, f.hash, f.mtime, f.size)
	return err
}

// remove takes a file out of the index. A chunk and its text in the full-text
// table have one rowid.
func (r *rows) remove(ctx context.Context, path, source string) error {
	for _, statement := range []string{
		"DELETE FROM chunks_fts WHERE rowid IN (SELECT rowid FROM chunks WHERE path = ?1 AND source = ?2)",
		"DELETE FROM chunks_vec WHERE id IN (SELECT id FROM chunks WHERE path = ?1 AND source = ?2)",
		"DELETE FROM chunks WHERE path = ?1 AND source = ?2",
		"DELETE FROM files WHERE path = ?1 AND source = ?2",
	} {
		if _, err := r.tx.ExecContext(ctx, statement, path, source); err != nil {
			return err
		}
	}
	return nil
}

// add indexes a file that is not in the index.
func (r *rows) add(ctx context.Context, path string, f indexed, text string) error {
	if err := r.putFile(ctx, path, f); err != nil {
		return err
	}
	for _, c := range chunk.Split(text, r.want.chunks()) {
		if err := r.addChunk(ctx, path, f.source, c); err != nil {
			return err
		}
	}
	return nil
}

// chunkID is OpenClaw's id of a chunk.
func chunkID(source, path string, c chunk.Chunk, hash, model string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s:%s:%d:%d:%s:%s", source, path, c.StartLine, c.EndLine, hash, model))
	return hex.EncodeToString(sum[:])
}

// addChunk writes a chunk, with its vector if that is known. Parts of one long
// line that are alike have one id, and one row.
func (r *rows) addChunk(ctx context.Context, path, source string, c chunk.Chunk) error {
	hash := c.Hash()
	id := chunkID(source, path, c, hash, r.want.Model)
	vector, err := r.cached(ctx, hash)
	if err != nil {
		return err
	}
	text := r.o.Redact.Text(c.Text)
	res, err := r.tx.ExecContext(ctx, `
		INSERT INTO chunks (id, path, source, start_line, end_line, hash, model, text, embedding, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		id, path, source, c.StartLine, c.EndLine, hash, r.want.Model, text, vectorText(vector), r.o.Now().UnixMilli())
	if err != nil {
		return err
	}
	if added, err := res.RowsAffected(); err != nil || added == 0 {
		return err
	}
	row, err := res.LastInsertId()
	if err != nil {
		return err
	}
	_, err = r.tx.ExecContext(ctx, `
		INSERT INTO chunks_fts (rowid, text, id, path, source, model, start_line, end_line) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		row, text, id, path, source, r.want.Model, c.StartLine, c.EndLine)
	if err != nil || vector == nil {
		return err
	}
	_, err = r.tx.ExecContext(ctx, "INSERT INTO chunks_vec (id, embedding) VALUES (?, ?)", id, vectorscan.AppendFloats(nil, vector))
	return err
}

// cached returns the vector of a text that was embedded before; nil where there
// is none that fits.
func (r *rows) cached(ctx context.Context, hash string) ([]float32, error) {
	if r.o.Embedder == nil {
		return nil, nil
	}
	var text string
	err := r.tx.QueryRowContext(ctx, "SELECT embedding FROM embedding_cache WHERE provider = ? AND model = ? AND provider_key = ? AND hash = ?",
		r.want.Provider, r.want.Model, r.want.ProviderKey, hash).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := parseVector(text)
	switch {
	case len(v) == 0:
		return nil, nil
	case r.want.VectorDims == 0:
		r.want.VectorDims = len(v)
	case r.want.VectorDims != len(v):
		return nil, nil
	}
	return v, nil
}

// trimCache drops the oldest vectors over the limit.
func (r *rows) trimCache(ctx context.Context) error {
	_, err := r.tx.ExecContext(ctx, `
		DELETE FROM embedding_cache WHERE rowid IN (
			SELECT rowid FROM embedding_cache ORDER BY updated_at, rowid
			LIMIT max(0, (SELECT count(*) FROM embedding_cache) - ?))`, r.o.CacheEntries)
	return err
}

// keepCache copies the cached vectors of the index in use into a new one. A
// damaged index has none to keep.
func (p *pass) keepCache(ctx context.Context, db *sqlite.DB) error {
	err := p.with(ctx, func(old *sqlite.DB) error {
		return old.View(ctx, func(from *sql.Tx) error {
			return db.Update(ctx, func(to *sql.Tx) error { return copyCache(ctx, from, to) })
		})
	})
	if errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrCorrupt) {
		return nil
	}
	return err
}

func copyCache(ctx context.Context, from, to *sql.Tx) (err error) {
	found, err := from.QueryContext(ctx, "SELECT provider, model, provider_key, hash, embedding, dims, updated_at FROM embedding_cache ORDER BY rowid")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var provider, model, key, hash, embedding string
		var dims sql.NullInt64
		var updated int64
		if err := found.Scan(&provider, &model, &key, &hash, &embedding, &dims, &updated); err != nil {
			return err
		}
		if err := putCache(ctx, to, provider, model, key, hash, embedding, dims, updated); err != nil {
			return err
		}
	}
	return found.Err()
}

func putCache(ctx context.Context, tx *sql.Tx, provider, model, key, hash, embedding string, dims sql.NullInt64, updated int64) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO embedding_cache (provider, model, provider_key, hash, embedding, dims, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (provider, model, provider_key, hash) DO UPDATE SET
			embedding = excluded.embedding, dims = excluded.dims, updated_at = excluded.updated_at`,
		provider, model, key, hash, embedding, dims, updated)
	return err
}
