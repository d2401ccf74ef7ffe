package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Report tells what a Sync has done and what the index is made of.
type Report struct {
	Workspace string             `json:"workspace"`
	Index     string             `json:"index"` // the file
	Provider  string             `json:"provider"`
	Model     string             `json:"model"`
	Rebuilt   string             `json:"rebuilt,omitempty" jsonschema:"why the index was built anew"`
	Tokens    int                `json:"tokens"`
	Overlap   int                `json:"overlap"`
	Chunking  string             `json:"chunking"`
	Sources   []string           `json:"sources"`
	Indexed   int                `json:"indexed" jsonschema:"files that were new or had changed"`
	Unchanged int                `json:"unchanged"`
	Removed   int                `json:"removed" jsonschema:"files that are gone"`
	Chunks    int                `json:"chunks"`
	Pending   int                `json:"pending" jsonschema:"chunks that have no vector yet"`
	Skipped   []workspace.Notice `json:"skipped"`
	Warning   string             `json:"warning,omitempty"`
}

// Failed reports whether vectors are missing that should be there.
func (r Report) Failed() bool { return r.Warning != "" }

// Text is the report for a person.
func (r Report) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %d files indexed, %d unchanged, %d removed; %d chunks\n", r.Workspace, r.Indexed, r.Unchanged, r.Removed, r.Chunks)
	if r.Rebuilt != "" {
		fmt.Fprintf(&sb, "  built anew: %s\n", r.Rebuilt)
	}
	if r.Provider != noProvider {
		fmt.Fprintf(&sb, "  vectors of %s/%s; %d pending\n", r.Provider, r.Model, r.Pending)
	}
	for _, n := range r.Skipped {
		fmt.Fprintf(&sb, "  %s\n", n)
	}
	if r.Warning != "" {
		fmt.Fprintf(&sb, "  %s\n", r.Warning)
	}
	return sb.String()
}

// pass is one bringing up to date.
type pass struct {
	*Index
	w     *workspace.Workspace
	want  *meta
	quick bool // a file of the same time and size counts as unchanged
	r     *Report
}

// allVectors is the limit of a pass that makes every vector that is missing.
const allVectors = math.MaxInt

// Sync brings the index up to date with a workspace. Files are told apart by the
// hashes of their text. If the model, its endpoint, the sources or the chunking
// changed, it is built anew beside the one in use and takes its place when it is
// complete: whatever fails before leaves the old one. Vectors are made last, and
// what cannot be embedded is found by its words and tried again at the next Sync.
// A file that cannot be read, or changes meanwhile, is listed and keeps what is
// indexed of it.
func (x *Index) Sync(ctx context.Context, w *workspace.Workspace, c Change) (Report, error) {
	var r Report
	if err := os.MkdirAll(filepath.Dir(x.path), 0o700); err != nil {
		return r, memory.Errorf(memory.ErrUnavailable, "make the index's directory: %w", err)
	}
	_, err := x.alone(ctx, true, func() (err error) {
		r, err = x.sync(ctx, w, c, false, allVectors)
		return err
	})
	return r, err
}

func (x *Index) sync(ctx context.Context, w *workspace.Workspace, c Change, quick bool, vectors int) (Report, error) {
	r := Report{Workspace: w.Path(), Index: x.path, Skipped: []workspace.Notice{}}
	if err := x.tidy(); err != nil {
		return r, err
	}
	have, err := x.readMeta(ctx)
	if err != nil {
		return r, err
	}
	v, err := x.vectors()
	if err != nil {
		return r, err
	}
	if c.Extra != nil {
		extra, err := cleanExtra(*c.Extra)
		if err != nil {
			return r, err
		}
		c.Extra = &extra
	}
	p := &pass{Index: x, w: w, want: c.applied(have, v, w.Path()), quick: quick, r: &r}
	r.Provider, r.Model = v.provider, v.model
	if r.Rebuilt = p.want.differs(have); c.Force && have != nil {
		r.Rebuilt = "it was asked for"
	}
	if err := p.run(ctx, vectors); err != nil {
		return r, fmt.Errorf("index %s: %w", w.Path(), err)
	}
	p.tell()
	return r, nil
}

// run follows the files, or builds the index anew, and then makes vectors.
func (p *pass) run(ctx context.Context, vectors int) error {
	if p.r.Rebuilt == "" {
		err := p.with(ctx, func(db *sqlite.DB) error {
			if err := p.fill(ctx, db); err != nil {
				return err
			}
			return p.vectorise(ctx, db, vectors)
		})
		if !errors.Is(err, memory.ErrCorrupt) {
			return err
		}
		*p.r = Report{Workspace: p.r.Workspace, Index: p.r.Index, Provider: p.r.Provider, Model: p.r.Model, Skipped: []workspace.Notice{}, Rebuilt: "it was damaged"}
	}
	if err := p.rebuild(ctx); err != nil {
		return err
	}
	return p.with(ctx, func(db *sqlite.DB) error { return p.vectorise(ctx, db, vectors) })
}

// tell puts into the report what the index is made of.
func (p *pass) tell() {
	p.r.Tokens, p.r.Overlap, p.r.Chunking = p.want.ChunkTokens, p.want.ChunkOverlap, string(p.want.Chunking)
	p.r.Sources = p.want.sources()
}

// rebuild builds the index beside the one in use and swaps.
func (p *pass) rebuild(ctx context.Context) (err error) {
	built := p.building(p.o.NewID())
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(built))
		}
	}()
	db, err := open(ctx, built, false)
	if err != nil {
		return err
	}
	err = p.keepCache(ctx, db)
	if err == nil {
		err = p.fill(ctx, db)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return p.swap(ctx, built)
}

// indexed is a file as the index knows it.
type indexed struct {
	source, hash string
	mtime, size  int64
}

// fill makes the index's files and chunks those of the workspace.
func (p *pass) fill(ctx context.Context, db *sqlite.DB) error {
	docs, err := p.documents(ctx)
	if err != nil {
		return err
	}
	return db.Update(ctx, func(tx *sql.Tx) error {
		known, err := indexedFiles(ctx, tx)
		if err != nil {
			return err
		}
		rows := &rows{tx: tx, pass: p}
		for i, d := range docs {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := p.file(ctx, rows, d, known); err != nil {
				return fmt.Errorf("%s: %w", d.path, err)
			}
			op.Report(ctx, op.Progress{Done: int64(i + 1), Total: int64(len(docs)), Unit: "files"})
		}
		for path, f := range known { // what is left is gone
			if err := rows.remove(ctx, path, f.source); err != nil {
				return err
			}
			p.r.Removed++
		}
		if err := rows.trimCache(ctx); err != nil {
			return err
		}
		return saveMeta(ctx, tx, p.want)
	})
}

// documents lists what there is to index, each path once.
func (p *pass) documents(ctx context.Context) ([]document, error) {
	docs, err := scan(ctx, p.w, p.want.Extra, p.skip)
	if err != nil || !p.want.sessions() {
		return docs, err
	}
	if p.o.Sessions == nil {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "it is not known where session transcripts are"), "index without sessions")
	}
	dir, err := p.o.Sessions()
	if err != nil {
		return nil, err
	}
	talks, err := sessions(dir, p.skip)
	return append(docs, talks...), err
}

func (p *pass) skip(n workspace.Notice) {
	n.Skipped = true
	p.r.Skipped = append(p.r.Skipped, n)
}

// file brings one file up to date and takes it out of known.
func (p *pass) file(ctx context.Context, rows *rows, d document, known map[string]indexed) error {
	have, isKnown := known[d.path]
	delete(known, d.path)
	if p.quick && isKnown && have.mtime == d.changed.UnixMilli() && have.size == d.size {
		p.r.Unchanged++
		return nil
	}
	text, now, err := d.read()
	switch {
	case errors.Is(err, memory.ErrNotFound): // gone since it was listed
		if isKnown {
			p.r.Removed++
			return rows.remove(ctx, d.path, have.source)
		}
		return nil
	case err != nil:
		p.skip(workspace.Notice{File: d.path, Reason: err.Error()})
		return nil
	}
	as := indexed{source: d.source, hash: hashText(text), mtime: now.changed.UnixMilli(), size: now.size}
	switch {
	case as == have:
		p.r.Unchanged++
		return nil
	case isKnown && as.hash == have.hash && as.source == have.source:
		p.r.Unchanged++
		return rows.putFile(ctx, d.path, as)
	}
	p.r.Indexed++
	if isKnown {
		if err := rows.remove(ctx, d.path, have.source); err != nil {
			return err
		}
	}
	return rows.add(ctx, d.path, as, text)
}
