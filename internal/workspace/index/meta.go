package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace/chunk"
	"github.com/openclawssy/openclawssy/internal/workspace/rank"
)

// metaKey is the row that says what an index is made of.
const metaKey = "memory_index_meta_v1"

// sourceSessions is the source of OpenClaw's session transcripts.
const sourceSessions = "sessions"

// meta is that row. Members with the names of OpenClaw's mean the same; chunking,
// extraPaths and workspace are ours.
type meta struct {
	Model        string   `json:"model"`
	Provider     string   `json:"provider"`
	ProviderKey  string   `json:"providerKey"`
	Sources      []string `json:"sources,omitempty"` // absent: memory only
	ChunkTokens  int      `json:"chunkTokens"`
	ChunkOverlap int      `json:"chunkOverlap"`
	VectorDims   int      `json:"vectorDims,omitempty"`

	Chunking  chunk.Variant `json:"chunking,omitempty"`
	Extra     []string      `json:"extraPaths,omitempty"`
	Workspace string        `json:"workspace,omitempty"`
}

func (m *meta) sources() []string {
	if len(m.Sources) == 0 {
		return []string{rank.SourceMemory}
	}
	return m.Sources
}

func (m *meta) sessions() bool { return slices.Contains(m.Sources, sourceSessions) }

func (m *meta) chunks() chunk.Options {
	return chunk.Options{Tokens: m.ChunkTokens, Overlap: m.ChunkOverlap, Variant: m.Chunking}.Normal()
}

// differs returns why an index that is as have says must be built anew to be as m
// says; "" where it need not. A changed set of extra paths or another workspace
// is only a matter of other files.
func (m *meta) differs(have *meta) string {
	switch {
	case have == nil:
		return "there is no index yet"
	case m.Provider != have.Provider || m.Model != have.Model:
		return "the model changed from " + have.Provider + "/" + have.Model + " to " + m.Provider + "/" + m.Model
	case m.ProviderKey != have.ProviderKey:
		return "the model's endpoint changed"
	case m.sessions() != have.sessions():
		return "the sources changed"
	case m.chunks() != have.chunks():
		return "the chunking changed"
	}
	return ""
}

// readMeta returns what the index is made of; nil where there is none, or one that
// is damaged or of another program.
func (x *Index) readMeta(ctx context.Context) (*meta, error) {
	var m *meta
	err := x.with(ctx, func(db *sqlite.DB) error {
		return db.View(ctx, func(tx *sql.Tx) (err error) {
			m, err = loadMeta(ctx, tx)
			return err
		})
	})
	switch memory.KindOf(err) {
	case "", memory.ErrNotFound:
		return m, nil
	case memory.ErrCorrupt:
		return nil, nil
	}
	return nil, err
}

// loadMeta returns the row, or nil.
func loadMeta(ctx context.Context, tx *sql.Tx) (*meta, error) {
	var text string
	err := tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", metaKey).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &meta{}
	if json.Unmarshal([]byte(text), m) != nil {
		return nil, nil // what nobody can read is built anew
	}
	if m.Chunking == "" {
		m.Chunking = chunk.Seed
	}
	return m, nil
}

func saveMeta(ctx context.Context, tx *sql.Tx, m *meta) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", metaKey, string(text))
	return err
}

// Change says how an index shall differ from what it is. What is nil stays, or
// is OpenClaw's default in a new index.
type Change struct {
	Tokens   *int           // of a chunk
	Overlap  *int           // tokens carried over from a chunk to the next
	Chunking *chunk.Variant // how lines are packed
	Extra    *[]string      // files and directories to index beside memory
	Sessions *bool          // whether session transcripts are a source
	Force    bool           // build it anew in any case
}

// applied returns what the index shall be made of.
func (c Change) applied(have *meta, v vectorsOf, workspace string) *meta {
	m := meta{ChunkTokens: chunk.Default.Tokens, ChunkOverlap: chunk.Default.Overlap, Chunking: chunk.Default.Variant}
	if have != nil {
		m = *have
	}
	if have == nil || m.Provider != v.provider || m.Model != v.model || m.ProviderKey != v.key {
		m.VectorDims = 0
	}
	m.Provider, m.Model, m.ProviderKey, m.Workspace = v.provider, v.model, v.key, workspace
	set(&m.ChunkTokens, c.Tokens)
	set(&m.ChunkOverlap, c.Overlap)
	set(&m.Chunking, c.Chunking)
	set(&m.Extra, c.Extra)
	if c.Sessions != nil {
		m.Sources = []string{rank.SourceMemory}
		if *c.Sessions {
			m.Sources = append(m.Sources, sourceSessions)
		}
	}
	o := m.chunks()
	m.ChunkTokens, m.ChunkOverlap = o.Tokens, o.Overlap
	return &m
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
