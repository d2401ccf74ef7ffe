package life

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Form is the form that an import gives records.
type Form string

// The forms.
const (
	OpenClaw         Form = "openclaw"
	ZeroClaw         Form = "zeroclaw" // rows of a database stay rows, all else is Markdown
	ZeroClawMarkdown Form = "zeroclaw-markdown"
	ZeroClawSQLite   Form = "zeroclaw-sqlite"
)

// ParseForm checks s; "" is OpenClaw.
func ParseForm(s string) (Form, error) {
	switch f := Form(s); f {
	case "":
		return OpenClaw, nil
	case OpenClaw, ZeroClaw, ZeroClawMarkdown, ZeroClawSQLite:
		return f, nil
	}
	return "", &memory.FieldError{Field: "to", Reason: "must be openclaw, zeroclaw, zeroclaw-markdown or zeroclaw-sqlite, not " + s}
}

// isRow reports whether the form keeps a record in the database.
func (f Form) isRow(r *alf.Record) bool {
	return f == ZeroClawSQLite || f == ZeroClaw && r.Source.Origin == sqliteOrigin
}

// zeroclawFile returns the Markdown file of a record in ZeroClaw's layout, in
// which files say what their records are.
func zeroclawFile(r *alf.Record) string {
	switch {
	case r.Namespace == "core" && r.Source.OriginFile == "", r.Namespace == "curated":
		return "memory/core.md"
	case r.Source.OriginFile != "" && r.Source.Origin != sessionOrigin:
		return r.Source.OriginFile
	case r.Namespace == "session":
		return "memory/session_" + r.ID.String()[:8] + ".md"
	}
	return r.FileOf() // by day, or by namespace
}

// zeroclawTargets finds out which Markdown files an archive stands for in a
// ZeroClaw workspace. A verbatim file that does not hold all the records that
// belong in it is made from those.
func zeroclawTargets(r *alf.Reader, form Form) (*targets, error) {
	t := &targets{files: map[string]target{}, managed: map[string]bool{}}
	for _, f := range r.Raw(zeroclaw) {
		if form != ZeroClawSQLite && strings.HasSuffix(f.Path, ".md") && t.allowed(f.Path) {
			t.files[f.Path] = target{path: f.Path, file: &f}
		}
	}
	byFile := map[string]*fileRecords{}
	for rec, err := range r.Records() {
		if err != nil {
			return nil, err
		}
		t.records++
		if form.isRow(rec) || !rec.Live() {
			continue
		}
		file := zeroclawFile(rec)
		if !strings.HasSuffix(file, ".md") {
			file = "memory/" + alf.FileName(rec.Namespace) + ".md"
		}
		g := byFile[file]
		if g == nil {
			g = &fileRecords{modified: rec.Temporal.CreatedAt.Time}
			byFile[file] = g
		}
		g.sections = append(g.sections, alf.SectionOf(rec))
	}
	for file, g := range byFile {
		have, there := t.files[file]
		if there {
			text, err := have.file.Bytes()
			if err != nil {
				return nil, err
			}
			if !utf8.Valid(text) || agrees(file, string(text), g) {
				have.modified = g.modified
				t.files[file] = have
				continue
			}
		}
		if t.allowed(file) {
			t.files[file] = target{path: file, text: alf.Compose(g.sections), modified: g.modified}
		}
	}
	if err := t.layers(r); err != nil {
		return nil, err
	}
	for path := range t.files {
		t.managed[path] = true
	}
	return t, nil
}

// Rows says what an import did with the rows of ZeroClaw's database.
type Rows struct {
	Database  string   `json:"database"`
	Added     int      `json:"added"`
	Removed   int      `json:"removed"`
	Kept      int      `json:"kept"`
	Conflicts []string `json:"conflicts"` // ids of rows that differ and stay as they are
}

// rows writes the records that are rows, in one transaction.
func (i *importing) rows(ctx context.Context) (err error) {
	if i.Form != ZeroClaw && i.Form != ZeroClawSQLite {
		return nil
	}
	out := &Rows{Database: i.Database, Conflicts: []string{}}
	if out.Database == "" {
		out.Database = FindZeroClawDatabase(i.done.Workspace)
	}
	if out.Database == "" {
		out.Database = filepath.Join(filepath.Dir(i.done.Workspace), "memory.db")
	}
	i.done.Rows = out
	_, err = os.Lstat(out.Database)
	fresh := errors.Is(err, fs.ErrNotExist)
	if i.DryRun && fresh {
		return i.countRows(out)
	}
	db, err := sqlite.Open(ctx, out.Database, sqlite.Options{ReadOnly: i.DryRun})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if i.DryRun {
		return db.View(ctx, func(tx *sql.Tx) error { return i.writeRows(ctx, tx, out) })
	}
	if !fresh {
		if err := i.backUpRows(ctx, db); err != nil {
			return err
		}
	}
	return db.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS memories (id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL, category TEXT NOT NULL DEFAULT 'core', timestamp TEXT NOT NULL, embedding BLOB)`)
		if err != nil {
			return err
		}
		return i.writeRows(ctx, tx, out)
	})
}

// countRows counts what would be written into a database that is not there.
func (i *importing) countRows(out *Rows) error {
	for r, err := range i.r.Records() {
		if err != nil {
			return err
		}
		if i.Form.isRow(r) && r.Live() {
			out.Added++
		}
	}
	return nil
}

// backUpRows copies the database beside the backup of the files.
func (i *importing) backUpRows(ctx context.Context, db *sqlite.DB) error {
	dir := i.Keep.path(i.r.Manifest().Agent.ID, "backups", i.Now().UTC().Format("20060102T150405.000000000Z")+"-rows")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "make a backup: %w", err)
	}
	if i.done.Backup == "" {
		i.done.Backup = dir
	}
	return db.Backup(ctx, filepath.Join(dir, "memory.db"))
}

// writeRows decides on each row, and writes it unless this is a dry run.
func (i *importing) writeRows(ctx context.Context, tx *sql.Tx, out *Rows) error {
	have, err := columnsOf(ctx, tx, "memories")
	if err != nil {
		return err
	}
	for _, wanted := range []string{"id", "key", "content", "category", "timestamp", "embedding"} {
		if !have[wanted] {
			return memory.Errorf(memory.ErrInvalid, "the database's table memories has no %s: it is of a form that is not known here", wanted)
		}
	}
	if i.Mode == Replace {
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM memories").Scan(&out.Removed); err != nil {
			return err
		}
		if !i.DryRun {
			if _, err := tx.ExecContext(ctx, "DELETE FROM memories"); err != nil {
				return err
			}
		}
	}
	for r, err := range i.r.Records() {
		if err != nil {
			return err
		}
		if !i.Form.isRow(r) || !r.Live() {
			continue
		}
		if err := i.writeRow(ctx, tx, rowOf(r), out); err != nil {
			return err
		}
	}
	return nil
}

func (i *importing) writeRow(ctx context.Context, tx *sql.Tx, m memoryRow, out *Rows) error {
	var content, category string
	err := tx.QueryRowContext(ctx, "SELECT content, category FROM memories WHERE id = ?1 OR key = ?2", m.ID, m.Key).Scan(&content, &category)
	if i.DryRun && i.Mode == Replace {
		err = sql.ErrNoRows // its table would be empty by then
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		out.Added++
	case err != nil:
		return err
	case content == m.Content && category == m.Category:
		return nil
	default:
		out.Kept++
		if i.Mode == Merge {
			out.Conflicts = append(out.Conflicts, m.ID)
		}
		return nil
	}
	if i.DryRun {
		return nil
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO memories (id, key, content, category, timestamp, embedding) VALUES (?, ?, ?, ?, ?, ?)", m.ID, m.Key, m.Content, m.Category, m.Timestamp, m.Embedding)
	return err
}

// rowOf is a record as a row. One that was a row has its own key and time again.
func rowOf(r *alf.Record) memoryRow {
	m := memoryRow{ID: r.ID.String(), Key: r.ID.String(), Content: r.Content, Category: strings.TrimPrefix(r.Namespace, "custom:"), Timestamp: r.Temporal.CreatedAt.String()}
	if r.Source.Runtime == zeroclaw && r.Source.Origin == sqliteOrigin {
		var was memoryRow
		if json.Unmarshal(r.RawSourceFormat, &was) == nil && was.Key != "" {
			m.Key, m.Category, m.Timestamp = was.Key, was.Category, was.Timestamp
			if was.ID != "" {
				m.ID = was.ID
			}
		}
	}
	if len(r.Embeddings) > 0 {
		m.Embedding = encodeVector(r.Embeddings[0].Vector)
	}
	return m
}
