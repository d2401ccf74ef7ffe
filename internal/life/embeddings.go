package life

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// searchIndex is OpenClaw's search index of a workspace, for the vectors that it
// computed. Those of a file are used only while the file is as it was indexed.
type searchIndex struct {
	db       *sqlite.DB
	w        *workspace.Workspace
	files    map[string]workspace.File
	provider string

	path   string // whose chunks are held
	chunks []chunk
}

type chunk struct {
	start, end int
	embed      alf.Embed
}

// openIndex opens the index of the installation's default agent; nil where
// there is none. The schema is looked at, never assumed.
func openIndex(ctx context.Context, in workspace.Installation, w *workspace.Workspace, files map[string]workspace.File) (*searchIndex, error) {
	name := filepath.Join(in.Dir, "memory", in.Agent+".sqlite")
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := sqlite.Open(ctx, name, sqlite.Options{ReadOnly: true, Readers: 1})
	if err != nil {
		return nil, err
	}
	x := &searchIndex{db: db, w: w, files: files}
	if err := db.View(ctx, x.probe(ctx)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return x, nil
}

// probe checks that the tables are those that are known here.
func (x *searchIndex) probe(ctx context.Context) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		for table, wanted := range map[string][]string{
			"chunks": {"path", "source", "start_line", "end_line", "model", "embedding", "updated_at"}, "files": {"path", "source", "hash"},
		} {
			have, err := columnsOf(ctx, tx, table)
			if err != nil {
				return err
			}
			for _, column := range wanted {
				if !have[column] {
					return memory.Errorf(memory.ErrInvalid, "the search index is of a form that is not known here: %s has no %s", table, column)
				}
			}
		}
		var text string
		err := tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = 'memory_index_meta_v1'").Scan(&text)
		if err != nil {
			return nil // without it the model's own name has to do
		}
		var meta struct {
			Provider string `json:"provider"`
		}
		if json.Unmarshal([]byte(text), &meta) == nil {
			x.provider = meta.Provider
		}
		return nil
	}
}

func (x *searchIndex) close() error { return x.db.Close() }

// of returns the vectors of the chunks that overlap with a record.
func (x *searchIndex) of(ctx context.Context, r workspace.Record) (alf.List[alf.Embed], error) {
	if r.OriginFile != x.path {
		x.path, x.chunks = r.OriginFile, nil
		if err := x.load(ctx); err != nil {
			return nil, err
		}
	}
	var out alf.List[alf.Embed]
	for _, c := range x.chunks {
		if c.start <= r.LineEnd && c.end >= r.LineStart {
			out = append(out, c.embed)
		}
	}
	return out, nil
}

// load reads the chunks of x.path, none where the file has changed since.
func (x *searchIndex) load(ctx context.Context) error {
	return x.db.View(ctx, func(tx *sql.Tx) error {
		var hash string
		err := tx.QueryRowContext(ctx, "SELECT hash FROM files WHERE path = ? AND source = 'memory'", x.path).Scan(&hash)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		text, _, err := x.w.Read(x.files[x.path])
		if err != nil {
			return err
		}
		if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != strings.ToLower(hash) {
			return nil
		}
		rows, err := tx.QueryContext(ctx, "SELECT start_line, end_line, model, embedding, updated_at FROM chunks WHERE path = ? AND source = 'memory' ORDER BY start_line, end_line, id", x.path)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var c chunk
			var vector string
			var updated float64
			if err := rows.Scan(&c.start, &c.end, &c.embed.Model, &vector, &updated); err != nil {
				return err
			}
			if json.Unmarshal([]byte(vector), &c.embed.Vector) != nil || len(c.embed.Vector) == 0 {
				continue // a chunk that is not embedded yet
			}
			c.embed.Dimensions, c.embed.ComputedAt, c.embed.Source = len(c.embed.Vector), alf.At(time.UnixMilli(int64(updated))), "runtime"
			if x.provider != "" && !strings.HasPrefix(c.embed.Model, x.provider+"/") {
				c.embed.Model = x.provider + "/" + c.embed.Model
			}
			x.chunks = append(x.chunks, c)
		}
		return rows.Err()
	})
}
