package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Names in an agent's directory that are treated in a way of their own.
const (
	eventsDir = "memory/events"
	graphFile = "memory/graph.json"
)

// Options are what a backup needs. All are required unless said otherwise.
type Options struct {
	Agent   memory.AgentID
	Dir     string // the agent's directory
	Temp    string // directory for copies of the databases; as private as Dir, and made where it is missing
	Program string // version
	Now     func() time.Time
	Secret  Secret // may be zero
	Keeper  Keeper
	// Find counts the secrets in a text; nil: none are looked for.
	Find func(string) int
	// Replace allows that File exists.
	Replace bool
}

// Written is what Write did.
type Written struct {
	File      string         `json:"file"`
	Agent     memory.AgentID `json:"agent"`
	Size      int64          `json:"size" jsonschema:"bytes of the backup"`
	Bytes     int64          `json:"bytes" jsonschema:"of the files in it"`
	Files     int            `json:"files"`
	LastSeq   int64          `json:"last_seq" jsonschema:"of the last event in it"`
	Encrypted bool           `json:"encrypted"`
	Secrets   int            `json:"secrets_detected" jsonschema:"in the files, which are verbatim"`
	LeftOut   []LeftOut      `json:"left_out"`
}

// Text says what was written to a person.
func (w Written) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %d files of agent %s, %d bytes (%d unpacked), events up to %d\n", w.File, w.Files, w.Agent, w.Size, w.Bytes, w.LastSeq)
	for _, l := range w.LeftOut {
		fmt.Fprintf(&sb, "  left out: %s (%s)\n", l.Path, l.Why)
	}
	switch {
	case w.Secrets > 0:
		fmt.Fprintf(&sb, "  ! about %d secrets were found in the files; a backup is verbatim: keep it as safe as they are\n", w.Secrets)
	case !w.Encrypted:
		sb.WriteString("  it is not encrypted: whoever reads it reads this memory (--passphrase, --key-file)\n")
	}
	return sb.String()
}

// Write writes the backup of an agent to file: whole, or not at all. The agent may
// be in use by any number of processes meanwhile.
func Write(ctx context.Context, file string, o Options) (_ Written, err error) {
	to, err := o.Keeper.recipients(o.Secret)
	if err != nil {
		return Written{}, err
	}
	if _, err := os.Lstat(file); err == nil && !o.Replace {
		return Written{}, memory.WithHint(memory.Errorf(memory.ErrConflict, "%s exists already", file), "choose another name, or say --replace")
	}
	out, err := renameio.NewPendingFile(file, renameio.WithStaticPermissions(0o600), renameio.WithTempDir(filepath.Dir(file)))
	if err != nil {
		return Written{}, memory.Errorf(memory.ErrUnavailable, "write %s: %w", file, err)
	}
	defer func() { err = errors.Join(err, out.Cleanup()) }()
	stage, err := NewStage(o.Temp, stagePrefix)
	if err != nil {
		return Written{}, err
	}
	defer func() { err = errors.Join(err, stage.Remove()) }()
	packed, err := seal(out, to)
	if err != nil {
		return Written{}, err
	}
	p := &packer{Options: o, stage: stage.Dir(), tar: tar.NewWriter(packed), snapshots: map[string]snapshot{}}
	m, err := p.pack(ctx)
	if err = errors.Join(err, p.tar.Close(), packed.Close()); err != nil {
		return Written{}, fmt.Errorf("back up agent %s: %w", o.Agent, unavailable(err))
	}
	st, err := out.Stat()
	if err == nil {
		err = out.CloseAtomicallyReplace()
	}
	if err != nil {
		return Written{}, memory.Errorf(memory.ErrUnavailable, "write %s: %w", file, err)
	}
	return Written{File: file, Agent: o.Agent, Size: st.Size(), Bytes: m.Bytes(), Files: len(m.Files), LastSeq: m.LastSeq, Encrypted: len(to) > 0,
		Secrets: m.Secrets, LeftOut: m.LeftOut}, nil
}

// unavailable gives a failure of the disk its kind.
func unavailable(err error) error {
	if memory.HasKind(err) {
		return err
	}
	return memory.Errorf(memory.ErrUnavailable, "%w", err)
}

// packer writes one archive.
type packer struct {
	Options
	stage     string
	tar       *tar.Writer
	snapshots map[string]snapshot // by path in the archive
	manifest  Manifest
	done      int64
}

// snapshot is where the bytes of one file of the archive come from.
type snapshot struct {
	from string      // path on disk
	size int64       // of the part; -1 for all that is there
	was  os.FileInfo // the very file; nil for whichever has that name
}

// pack takes the snapshots in the order that makes them consistent, and writes
// them in the order of their paths.
func (p *packer) pack(ctx context.Context) (Manifest, error) {
	p.manifest = Manifest{Format: format, Version: version, Program: p.Program, Agent: p.Agent, CreatedAt: p.Now().UTC(), Schemas: map[string]int{}, Files: []File{}, LeftOut: []LeftOut{}}
	names, err := p.list()
	if err != nil {
		return Manifest{}, err
	}
	for _, name := range names {
		if err := p.database(ctx, name); err != nil {
			return Manifest{}, err
		}
	}
	if err := p.graph(ctx); err != nil {
		return Manifest{}, err
	}
	if err := p.events(); err != nil {
		return Manifest{}, err
	}
	// Behind the cut, so that every session and run that the log names is there.
	if names, err = p.list(); err != nil {
		return Manifest{}, err
	}
	for _, name := range names {
		p.plain(name)
	}
	var total int64
	for _, s := range p.snapshots {
		total += max(s.size, 0)
	}
	for _, name := range slices.Sorted(keys(p.snapshots)) {
		if err := p.file(ctx, name, p.snapshots[name], total); err != nil {
			return Manifest{}, err
		}
	}
	return p.manifest, p.writeManifest()
}

func keys(m map[string]snapshot) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

// list returns the paths of the files of the agent's directory.
func (p *packer) list() ([]string, error) {
	var names []string
	p.manifest.LeftOut = p.manifest.LeftOut[:0]
	err := filepath.WalkDir(p.Dir, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && at != p.Dir {
			return nil // gone since its directory was read
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(p.Dir, at)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		switch {
		case d.IsDir():
		case !d.Type().IsRegular():
			p.leaveOut(name, "it is no regular file")
		case strings.Contains(path.Base(name), ".corrupt-"):
			p.leaveOut(name, "a damaged database that was rebuilt")
		case !transient(name):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read the directory of agent %s: %w", p.Agent, err)
	}
	return names, nil
}

func (p *packer) leaveOut(name, why string) {
	p.manifest.LeftOut = append(p.manifest.LeftOut, LeftOut{Path: name, Why: why})
}

// transient reports whether a file belongs to the processes that are at work, not
// to the memory: locks, half-written files, what SQLite keeps beside a database.
func transient(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") || name == "memory/memory.open" || name == eventsDir+"/journal.head" {
		return true
	}
	for _, suffix := range []string{".lock", ".db-wal", ".db-shm", ".db-journal", ".suspect"} {
		if strings.HasSuffix(base, suffix) {
			return true
		}
	}
	return false
}

// database copies a file that is a database. One that is damaged, and can be
// rebuilt, is left out.
func (p *packer) database(ctx context.Context, name string) error {
	from := filepath.Join(p.Dir, filepath.FromSlash(name))
	is, err := sqlite.IsDatabase(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !is {
		return err
	}
	to := filepath.Join(p.stage, fmt.Sprintf("%d.db", len(p.snapshots)))
	db, err := sqlite.Open(ctx, from, sqlite.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	v, err := db.Version(ctx)
	if err == nil {
		err = db.Backup(ctx, to)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	if err := check(ctx, to, false); err != nil {
		return memory.WithHint(fmt.Errorf("copy %s: %w", name, err), "openclawssy doctor --fix repairs what can be repaired")
	}
	p.manifest.Schemas[name] = v
	return p.snap(name, to)
}

func (p *packer) snap(name, from string) error {
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	p.snapshots[name] = snapshot{from: from, size: st.Size(), was: st}
	return nil
}

// check runs SQLite's check on the database at path.
func check(ctx context.Context, path string, whole bool) error {
	db, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(db.Check(ctx, whole), db.Close())
}

// graph copies the files of the graph while nobody writes them.
func (p *packer) graph(ctx context.Context) error {
	return graph.WhileStill(ctx, filepath.Join(p.Dir, filepath.FromSlash(graphFile)), func(files []string) error {
		for _, file := range files {
			name := path.Join(path.Dir(graphFile), filepath.Base(file))
			to := filepath.Join(p.stage, filepath.Base(file))
			if err := copyFile(file, to); err != nil {
				return fmt.Errorf("copy %s: %w", name, err)
			}
			if err := p.snap(name, to); err != nil {
				return err
			}
		}
		return nil
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// events cuts the event log.
func (p *packer) events() error {
	dir := filepath.Join(p.Dir, filepath.FromSlash(eventsDir))
	log := journal.NewReader(dir)
	cut, err := log.Cut()
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("cut the event log: %w", err)
	}
	p.manifest.LastSeq = cut.LastSeq
	for _, s := range cut.Segments {
		from := filepath.Join(dir, s.Name)
		st, err := os.Lstat(from)
		if err != nil {
			return rewritten(s.Name)
		}
		p.snapshots[eventsDir+"/"+s.Name] = snapshot{from: from, size: s.Size, was: st}
	}
	return nil
}

func rewritten(name string) error {
	return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s was written anew while it was backed up", name), "an erasure or a packing was under way: run the backup again")
}

// plain takes a file as it is, unless it is one of those treated before. What was
// added to the log since the cut stays out.
func (p *packer) plain(name string) {
	_, known := p.snapshots[name]
	dir := path.Dir(name)
	segment := dir == eventsDir && !strings.HasSuffix(name, ".torn")
	later := name == graphFile || strings.HasPrefix(name, graphFile+".journal")
	if known || segment || later {
		return
	}
	p.snapshots[name] = snapshot{from: filepath.Join(p.Dir, filepath.FromSlash(name)), size: -1}
}

// file writes one file.
func (p *packer) file(ctx context.Context, name string, s snapshot, total int64) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, err := os.Open(s.from)
	if errors.Is(err, fs.ErrNotExist) && s.was == nil {
		p.leaveOut(name, "it was deleted meanwhile")
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return rewritten(name)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if s.was != nil && !os.SameFile(s.was, st) {
		return rewritten(name)
	}
	size := s.size
	if size < 0 {
		size = st.Size()
	}
	return p.entry(ctx, name, size, in, total)
}

// entry writes exactly size bytes of in under a name.
func (p *packer) entry(ctx context.Context, name string, size int64, in io.Reader, total int64) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: agentPrefix + name, Size: size, Mode: 0o600, Format: tar.FormatPAX}
	if err := p.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.New()
	secrets := &counter{find: p.Find}
	to := []io.Writer{p.tar, sum, &ticker{ctx: ctx, done: &p.done, total: total}}
	if p.Find != nil && !derived[name] {
		to = append(to, secrets)
	}
	if _, err := io.CopyN(io.MultiWriter(to...), in, size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	secrets.flush()
	p.manifest.Secrets += secrets.count
	p.manifest.Files = append(p.manifest.Files, File{Path: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// derived databases repeat what stands elsewhere: secrets in them are not counted
// twice.
var derived = map[string]bool{"memory/archive.db": true, "memory/memory.db": true, "memory/workspace.db": true, "memory/vectors.db": true}

// ticker reports how far the work has come, and ends it with its context.
type ticker struct {
	ctx   context.Context
	done  *int64
	total int64
}

func (t *ticker) Write(p []byte) (int, error) {
	*t.done += int64(len(p))
	op.Report(t.ctx, op.Progress{Done: *t.done, Total: t.total, Unit: "bytes"})
	return len(p), t.ctx.Err()
}

func (p *packer) writeManifest() error {
	text, err := json.MarshalIndent(p.manifest, "", " ")
	if err != nil {
		return err
	}
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: int64(len(text)), Mode: 0o600, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(p.tar, bytes.NewReader(text))
	return err
}
