package life

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Namespaces of ids: the bytes zeroclaw-alf-ns1 and alf-zclw-agent-1.
var (
	zeroclawSpace      = uuid.UUID([]byte("zeroclaw-alf-ns1"))
	zeroclawAgentSpace = uuid.UUID([]byte("alf-zclw-agent-1"))
)

// sqliteOrigin is the origin of records that were rows of ZeroClaw's database.
const sqliteOrigin = "sqlite"

// ExportZeroClaw writes a ZeroClaw workspace's archive: its Markdown, and the
// rows of its database, which is memory.db beside the workspace. config.toml
// holds keys and is left out.
func ExportZeroClaw(ctx context.Context, w *workspace.Workspace, o ExportOptions) (Exported, error) {
	e := exporting{ExportOptions: o, w: w, raw: map[string]workspace.File{}, done: Exported{Notices: []workspace.Notice{}}}
	id, found, err := agentID(w)
	if err != nil {
		return Exported{}, err
	}
	if !found {
		id = uuid.NewSHA1(zeroclawAgentSpace, []byte(filepath.ToSlash(w.Path())))
		if err := w.Root().WriteFile(agentFile, []byte(id.String()), fileMode); err != nil {
			e.notice(workspace.Notice{File: agentFile, Reason: "the agent's id cannot be written: " + err.Error()})
		}
	}
	e.agent = id
	last := o.Keep.last(id, func(reason string) { e.notice(workspace.Notice{Reason: reason}) })
	if last != nil {
		defer last.Close()
	}
	was, err := byContent(last)
	if err != nil {
		return Exported{}, err
	}
	if e.past, err = remember(last); err != nil {
		return Exported{}, err
	}
	e.done.Size, err = alf.WriteFile(o.Output, func(out io.Writer) (err error) {
		e.out = alf.NewWriter(out, o.TempDir)
		defer func() { err = errors.Join(err, e.out.Close()) }()
		return e.writeZeroClaw(ctx, was)
	})
	if err != nil {
		return Exported{}, err
	}
	if err := o.Keep.keep(id, w.Path(), o.Output); err != nil {
		e.notice(workspace.Notice{Reason: err.Error()})
	}
	return e.done, nil
}

// byContent returns the records of the last archive by their words: ZeroClaw's
// forms cannot say all that they were.
func byContent(last *alf.Reader) (map[string][]*alf.Record, error) {
	out := map[string][]*alf.Record{}
	if last == nil {
		return out, nil
	}
	for r, err := range last.Records() {
		if err != nil {
			return nil, err
		}
		words := strings.TrimSpace(r.Content)
		out[words] = append(out[words], r)
	}
	return out, nil
}

// writeZeroClaw writes the archive. A record that the last archive has, by its
// words, is that record again.
func (e *exporting) writeZeroClaw(ctx context.Context, was map[string][]*alf.Record) error {
	put := func(r *alf.Record) error {
		words := strings.TrimSpace(r.Content)
		if same := was[words]; len(same) > 0 && !e.Parity {
			at := max(0, slices.IndexFunc(same, func(old *alf.Record) bool { return old.ID == r.ID }))
			*r = *same[at]
			r.AgentID = e.agent
			was[words] = slices.Delete(same, at, at+1)
		}
		r.Content = e.text(r.Content)
		return e.out.Record(r)
	}
	files, err := e.w.Files(ctx, workspace.Markdown, e.notice)
	if err != nil {
		return err
	}
	var p prose
	for _, f := range files {
		text, now, err := e.w.Read(f)
		if err == nil {
			err = alf.CheckPath(f.Path)
		}
		if err != nil {
			e.skip(f.Origin(), err)
			continue
		}
		if err := e.out.Raw(zeroclaw, f.Path, strings.NewReader(e.inspect(text))); err != nil {
			return err
		}
		e.readProse(&p, f)
		if !f.HasRecords() || !utf8.ValidString(text) {
			continue
		}
		for r := range workspace.RecordsOf(now, text, workspace.SplitClient, func(workspace.Notice) {}) {
			if err := put(zeroclawRecord(e.agent, r)); err != nil {
				return err
			}
		}
	}
	if db := FindZeroClawDatabase(e.w.Path()); db != "" {
		if err := readMemories(ctx, db, e.agent, put); err != nil {
			e.notice(workspace.Notice{File: filepath.Base(db), Skipped: true, Reason: err.Error()})
		}
	}
	if _, err := e.persons(p); err != nil {
		return err
	}
	name := p.name()
	if name == "" {
		name = filepath.Base(e.w.Path())
	}
	m := alf.Manifest{RawSources: alf.List[string]{zeroclaw}, Agent: alf.Agent{ID: e.agent, Name: name, SourceRuntime: zeroclaw}}
	e.done.Manifest, err = e.out.Finish(m, alf.Form{Parity: e.Parity, CreatedAt: e.createdAt})
	return err
}

var strictDate = regexp.MustCompile(`^memory/(?:archive/)?(\d{4}-\d{2}-\d{2})\.md$`)

// zeroclawRecord is a section of a ZeroClaw file as a record.
func zeroclawRecord(agent uuid.UUID, r workspace.Record) *alf.Record {
	rec := recordOf(agent, r)
	rec.ID = uuid.NewSHA1(zeroclawSpace, []byte(r.IDName))
	rec.Source.Runtime, rec.Source.ExtractionMethod = zeroclaw, alf.AgentWritten
	rec.Temporal = alf.Temporal{CreatedAt: alf.At(r.UpdatedAt)}
	rec.Confidence = nil
	rec.Namespace, rec.MemoryType = fileNamespace(r.OriginFile)
	if day := strictDate.FindStringSubmatch(r.OriginFile); day != nil {
		if at, err := time.Parse(time.DateOnly, day[1]); err == nil {
			rec.Namespace, rec.MemoryType = "daily", alf.Episodic
			rec.Temporal.CreatedAt, rec.Temporal.ObservedAt = alf.At(at), alf.At(at)
		}
	}
	rec.Category, rec.Tags = rec.Namespace, alf.List[string]{rec.Namespace, zeroclaw}
	if strings.HasPrefix(r.OriginFile, "memory/archive/") {
		rec.Status = alf.Archived
	}
	return rec
}

// fileNamespace returns what the name of a file that is no day's log says of its
// records.
func fileNamespace(file string) (namespace, memoryType string) {
	stem := strings.TrimSuffix(path.Base(file), ".md")
	switch custom, isCustom := strings.CutPrefix(stem, "custom-"); {
	case file == workspace.CuratedFile, stem == "core":
		return "core", alf.Semantic
	case stem == "conversation":
		return "conversation", alf.Episodic
	case strings.HasPrefix(stem, "session_"):
		return "session", alf.Episodic
	case isCustom:
		return "custom:" + custom, alf.Semantic
	}
	return "workspace", alf.Semantic
}

// categoryType returns the namespace and type of a row's category.
func categoryType(category string) (namespace, memoryType string) {
	switch category {
	case "core":
		return category, alf.Semantic
	case "daily", "conversation":
		return category, alf.Episodic
	}
	return "custom:" + category, alf.Semantic
}

// FindZeroClawDatabase returns the database of a ZeroClaw workspace: memory.db
// beside it or in it, or memory/brain.db; "" for none.
func FindZeroClawDatabase(dir string) string {
	for _, name := range []string{filepath.Join(filepath.Dir(dir), "memory.db"), filepath.Join(dir, "memory.db"), filepath.Join(dir, "memory", "brain.db")} {
		if st, err := os.Lstat(name); err == nil && st.Mode().IsRegular() {
			return name
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // it cannot be opened either
		}
	}
	return ""
}

// memoryRow is a row of ZeroClaw's table memories, and what a record made of one
// keeps of it in raw_source_format.
type memoryRow struct {
	ID        string `json:"id"`
	Key       string `json:"key"`
	Content   string `json:"-"`
	Category  string `json:"category"`
	Timestamp string `json:"timestamp"`
	Embedding []byte `json:"-"`
}

// readMemories gives the rows of ZeroClaw's database as records.
func readMemories(ctx context.Context, name string, agent uuid.UUID, put func(*alf.Record) error) error {
	db, err := sqlite.Open(ctx, name, sqlite.Options{ReadOnly: true, Readers: 1})
	if err != nil {
		return err
	}
	err = db.View(ctx, func(tx *sql.Tx) error {
		have, err := columnsOf(ctx, tx, "memories")
		if err != nil {
			return err
		}
		if !have["key"] || !have["content"] {
			return memory.Errorf(memory.ErrInvalid, "it has no table memories of key and content")
		}
		at := column(have, "timestamp")
		if !have["timestamp"] {
			at = column(have, "created_at")
		}
		vector := "NULL"
		if have["embedding"] {
			vector = "embedding"
		}
		rows, err := tx.QueryContext(ctx, `SELECT coalesce(`+column(have, "id")+`, ''), coalesce(CAST("key" AS TEXT), ''), coalesce(CAST(content AS TEXT), ''), coalesce(`+
			column(have, "category")+`, 'core'), coalesce(`+at+`, ''), `+vector+` FROM memories ORDER BY rowid`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var m memoryRow
			if err := rows.Scan(&m.ID, &m.Key, &m.Content, &m.Category, &m.Timestamp, &m.Embedding); err != nil {
				return err
			}
			if strings.TrimSpace(m.Content) == "" {
				continue
			}
			if err := put(m.record(agent)); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return errors.Join(err, db.Close())
}

// times are the forms of a row's timestamp.
var times = []string{time.RFC3339Nano, time.DateTime, time.DateOnly}

func (m memoryRow) record(agent uuid.UUID) *alf.Record {
	id, err := uuid.Parse(m.ID)
	if err != nil {
		id = uuid.NewSHA1(zeroclawSpace, []byte("sqlite:"+m.ID+":"+m.Key))
	}
	at := time.Unix(0, 0)
	for _, layout := range times {
		if t, err := time.Parse(layout, m.Timestamp); err == nil {
			at = t
			break
		}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		raw = nil // only what is not UTF-8, which is replaced
	}
	category := strings.ToValidUTF8(m.Category, "\uFFFD")
	r := &alf.Record{ID: id, AgentID: agent, Content: strings.ToValidUTF8(m.Content, "\uFFFD"), Status: alf.Active, Category: category, RawSourceFormat: raw,
		Tags:     alf.List[string]{category, zeroclaw},
		Source:   alf.Source{Runtime: zeroclaw, Origin: sqliteOrigin, ExtractionMethod: alf.AgentWritten},
		Temporal: alf.Temporal{CreatedAt: alf.At(at)}}
	r.Namespace, r.MemoryType = categoryType(category)
	if strings.HasPrefix(m.Key, "auto_") {
		r.Tags = append(r.Tags, "auto_save")
	}
	if v := decodeVector(m.Embedding); len(v) > 0 {
		r.Embeddings = alf.List[alf.Embed]{{Model: "zeroclaw/unknown", Dimensions: len(v), Vector: v, ComputedAt: alf.At(at), Source: "runtime"}}
	}
	return r
}

// decodeVector reads a row's vector: little-endian floats of 32 bits where that
// gives 64 to 4096 of them, else of 64.
func decodeVector(blob []byte) alf.Vector {
	var out alf.Vector
	switch n := len(blob) / 4; {
	case len(blob)%4 != 0:
	case n >= 64 && n <= 4096:
		floats, err := scan.Floats(nil, blob)
		if err != nil {
			return nil // no vector, and nothing that JSON could say
		}
		for _, f := range floats {
			out = append(out, float64(f))
		}
	case len(blob)%8 == 0:
		for i := range len(blob) / 8 {
			x := math.Float64frombits(binary.LittleEndian.Uint64(blob[8*i:]))
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil
			}
			out = append(out, x)
		}
	}
	return out
}

func encodeVector(v []float64) []byte {
	var out []byte
	if len(v) < 64 || len(v) > 4096 {
		for _, x := range v {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
		}
		return out
	}
	floats := make([]float32, len(v))
	for i, x := range v {
		floats[i] = float32(x)
	}
	return scan.AppendFloats(nil, floats)
}
