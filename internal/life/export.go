package life

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Runtimes, as archives name them.
const (
	openclaw    = "openclaw"
	zeroclaw    = "zeroclaw"
	openclawssy = "openclawssy"
)

// agentFile holds the agent's id in a workspace.
const agentFile = ".alf-agent-id"

// agentSpace is the namespace of ids of agents that have none in their
// workspace: the bytes alf-agent-id-ns1.
var agentSpace = uuid.UUID([]byte("alf-agent-id-ns1"))

// ExportOptions say what goes into an archive.
type ExportOptions struct {
	Output   string
	Split    workspace.Split
	Parity   bool // just what the client alf writes
	Sessions bool // also the transcripts of sessions, a record for each message
	// Installation is OpenClaw's own directory, with credentials, sessions and the
	// search index; the zero value for none.
	Installation workspace.Installation
	// Redact, if not nil, is asked of each text what it is without secrets.
	Redact func(string) string
	// Clean writes what Redact answers in place of the text. Else secrets are
	// counted and stay.
	Clean bool
	Keep  Keep
	// Name is the agent's name where no file of the workspace tells one.
	Name string
	// Known are archives whose knowledge of records is carried on too, and whose
	// records that no file holds are taken over.
	Known   []string
	Now     func() time.Time
	TempDir string
}

// Exported says what an export wrote.
type Exported struct {
	Manifest    alf.Manifest
	Size        int64
	Secrets     int // texts in which Redact found one
	Credentials int
	Notices     []workspace.Notice
}

// exporting is one export of a workspace.
type exporting struct {
	ExportOptions
	w        *workspace.Workspace
	out      *alf.Writer
	agent    uuid.UUID
	past     *past
	raw      map[string]workspace.File // by path: what goes into raw/
	attached []workspace.File
	done     Exported
}

// ExportWorkspace writes a workspace's archive to o.Output. A file that cannot
// be read is named in a notice and left out; one that changes meanwhile is as
// it was at some moment. The same workspace gives the same bytes, also later,
// while its last archive is kept.
func ExportWorkspace(ctx context.Context, w *workspace.Workspace, o ExportOptions) (Exported, error) {
	e := exporting{ExportOptions: o, w: w, raw: map[string]workspace.File{}, done: Exported{Notices: []workspace.Notice{}}}
	if err := e.prepare(); err != nil {
		return Exported{}, err
	}
	var err error
	e.done.Size, err = alf.WriteFile(o.Output, func(out io.Writer) (err error) {
		e.out = alf.NewWriter(out, o.TempDir)
		defer func() { err = errors.Join(err, e.out.Close()) }()
		return e.write(ctx)
	})
	if err != nil {
		return Exported{}, err
	}
	if !o.Parity && !o.Clean {
		if err := o.Keep.keep(e.agent, w.Path(), o.Output); err != nil {
			e.notice(workspace.Notice{Reason: err.Error() + "; versions and merges know of the one before"})
		}
	}
	return e.done, nil
}

func (e *exporting) notice(n workspace.Notice) { e.done.Notices = append(e.done.Notices, n) }

func (e *exporting) skip(file string, err error) {
	e.notice(workspace.Notice{File: file, Skipped: true, Reason: err.Error()})
}

// prepare finds the agent's id and reads its last archive.
func (e *exporting) prepare() error {
	id, found, err := agentID(e.w)
	if err != nil {
		return err
	}
	if e.agent = id; !found {
		if err := e.w.Root().WriteFile(agentFile, []byte(id.String()), 0o600); err != nil {
			e.notice(workspace.Notice{File: agentFile, Reason: "the agent's id cannot be written: " + err.Error()})
		}
	}
	if e.Parity {
		e.past, err = remember(nil)
		return err
	}
	last := e.Keep.last(id, func(reason string) { e.notice(workspace.Notice{Reason: reason}) })
	if last != nil {
		defer last.Close()
	}
	if e.past, err = remember(last); err != nil {
		e.notice(workspace.Notice{Reason: "the last archive cannot be read, so versions start anew: " + err.Error()})
		if e.past, err = remember(nil); err != nil {
			return err
		}
	}
	for _, path := range e.Known {
		if err := e.past.learn(path); err != nil {
			return err
		}
	}
	return nil
}

// agentID reads the agent's id; where the workspace has none it makes the one
// that the client alf would.
func agentID(w *workspace.Workspace) (id uuid.UUID, found bool, err error) {
	text, err := w.Root().ReadFile(agentFile)
	if errors.Is(err, fs.ErrNotExist) {
		return uuid.NewSHA1(agentSpace, []byte(filepath.ToSlash(w.Path()))), false, nil
	}
	if err != nil {
		return id, false, memory.Errorf(memory.ErrUnavailable, "read %s: %w", agentFile, err)
	}
	id, err = uuid.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return id, false, memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s is not a UUID", agentFile), "write the agent's id into it again, or delete it for a new one")
	}
	return id, true, nil
}

// write writes the archive.
func (e *exporting) write(ctx context.Context) error {
	p, err := e.list(ctx)
	if err != nil {
		return err
	}
	version, err := e.layers(p)
	if err != nil {
		return err
	}
	if err := e.records(ctx, version); err != nil {
		return err
	}
	if err := e.files(ctx); err != nil {
		return err
	}
	m := alf.Manifest{RawSources: alf.List[string]{openclaw}, Agent: alf.Agent{ID: e.agent, Name: p.name(), SourceRuntime: openclaw, SourceRuntimeVersion: e.Installation.Version}}
	if m.Agent.Name == "" {
		m.Agent.Name = e.Name
	}
	if m.Agent.Name == "" {
		m.Agent.Name = filepath.Base(e.w.Path())
	}
	e.done.Manifest, err = e.out.Finish(m, alf.Form{Parity: e.Parity, CreatedAt: e.createdAt})
	return err
}

// createdAt is the time of the last archive where this one has the same
// contents.
func (e *exporting) createdAt(checksum string) time.Time {
	if checksum == e.past.checksum {
		return e.past.createdAt.Time
	}
	return e.Now()
}

// clientFiles are the files of the root that the client alf keeps verbatim.
var clientFiles = map[string]bool{"SOUL.md": true, "IDENTITY.md": true, "AGENTS.md": true, "USER.md": true, "TOOLS.md": true, "HEARTBEAT.md": true, "BOOTSTRAP.md": true, "MEMORY.md": true}

// list finds the files to keep, and reads those that tell who the agent is.
func (e *exporting) list(ctx context.Context) (prose, error) {
	files, err := e.w.Files(ctx, workspace.All, e.notice)
	if err != nil {
		return prose{}, err
	}
	self, err := outputPath(e.Output)
	if err != nil {
		return prose{}, err
	}
	var p prose
	for _, f := range files {
		dir, base := filepath.Split(filepath.Join(e.w.Path(), filepath.FromSlash(f.Path)))
		isOutput := filepath.Clean(dir) == filepath.Dir(self) && strings.HasPrefix(strings.TrimPrefix(base, "."), filepath.Base(self))
		if isOutput || f.Path == agentFile || strings.HasPrefix(f.Path, stageDir) {
			continue
		}
		if err := alf.CheckPath(f.Path); err != nil {
			e.skip(f.Origin(), err)
			continue
		}
		inMemory := strings.HasPrefix(f.Path, workspace.MemoryDir+"/")
		markdown := strings.HasSuffix(f.Path, ".md")
		switch {
		case inMemory || clientFiles[f.Path] || markdown && !e.Parity:
			e.raw[f.Path] = f
		case !e.Parity && !hidden(f.Path):
			e.attached = append(e.attached, f)
		}
		e.readProse(&p, f)
	}
	return p, nil
}

// outputPath returns where the output is, without links. Until it is whole, it is
// a file beside it that starts with a dot and its name.
func outputPath(output string) (string, error) {
	full, err := filepath.Abs(output)
	if err != nil {
		return "", memory.Errorf(memory.ErrInvalid, "output: %w", err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(full))
	if err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "output: %w", err)
	}
	return filepath.Join(dir, filepath.Base(full)), nil
}

// hidden reports whether a path has a segment that starts with a dot: settings
// and secrets of other programs.
func hidden(path string) bool { return strings.HasPrefix(path, ".") || strings.Contains(path, "/.") }

func (e *exporting) readProse(p *prose, f workspace.File) {
	to, changed := &p.user, &p.userChanged
	switch f.Path {
	case "SOUL.md":
		to, changed = &p.soul, &p.changed
	case "IDENTITY.md":
		to, changed = &p.identity, &p.changed
	case "AGENTS.md":
		to, changed = &p.agents, &p.changed
	case "USER.md":
	default:
		return
	}
	text, now, err := e.w.Read(f)
	if err == nil && !utf8.ValidString(text) {
		err = memory.Errorf(memory.ErrInvalid, "it is not UTF-8, so it is kept verbatim and tells nothing")
	}
	if err != nil {
		e.skip(f.Path, err)
		return
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	*to = e.text(text)
	if now.ModTime.After(*changed) {
		*changed = now.ModTime
	}
}

// text returns a text as it goes into the archive.
func (e *exporting) text(text string) string {
	if e.Clean && e.Redact != nil {
		return e.Redact(text)
	}
	return text
}

// layers writes identity, principals and credentials, and returns the version of
// the identity for records to bear; 0 for none.
func (e *exporting) layers(p prose) (version int64, err error) {
	if version, err = e.persons(p); err != nil {
		return 0, err
	}
	credentials := credentialsOf(e.Installation.Dir, e.agent, e.notice)
	if e.done.Credentials = len(credentials); len(credentials) == 0 {
		return version, nil
	}
	return version, e.out.Credentials(alf.Credentials{Credentials: credentials})
}

// persons writes identity and principals, and returns the version of the
// identity as layers does.
func (e *exporting) persons(p prose) (version int64, err error) {
	id, err := p.identityOf(e.agent, e.past.identity, e.Parity)
	if err != nil {
		return 0, err
	}
	if id != nil {
		if err := e.out.Identity(*id); err != nil {
			return 0, err
		}
		if !e.Parity {
			version = id.Version
		}
	}
	principals, err := p.principalsOf(e.agent, e.past.principals, e.Parity)
	if err != nil {
		return 0, err
	}
	if principals == nil {
		return version, nil
	}
	return version, e.out.Principals(*principals)
}

// records writes the workspace's records, those of facts.db and, if wanted, of
// the sessions.
func (e *exporting) records(ctx context.Context, version int64) error {
	var index *searchIndex
	if !e.Parity && e.Installation.Dir != "" {
		var err error
		if index, err = openIndex(ctx, e.Installation, e.w, e.raw); err != nil {
			e.notice(workspace.Notice{Reason: "no embeddings: " + err.Error()})
		}
	}
	if index != nil {
		defer func() {
			if err := index.close(); err != nil {
				e.notice(workspace.Notice{Reason: err.Error()})
			}
		}()
	}
	n := int64(0)
	for r, err := range e.w.Records(ctx, workspace.Options{Split: e.Split, Notice: e.notice}) {
		if err != nil {
			return err
		}
		rec := recordOf(e.agent, r)
		if rec.Content = e.text(rec.Content); !e.Parity {
			if index != nil {
				if rec.Embeddings, err = index.of(ctx, r); err != nil {
					e.notice(workspace.Notice{File: r.OriginFile, Reason: "no embeddings: " + err.Error()})
				}
			}
			e.past.carry(rec, version)
		}
		if err := e.out.Record(rec); err != nil {
			return err
		}
		if n++; n%1000 == 0 {
			op.Report(ctx, op.Progress{Done: n, Unit: "records"})
		}
	}
	if e.Parity {
		return nil
	}
	if err := e.facts(ctx); err != nil {
		return err
	}
	if err := e.loose(); err != nil || !e.Sessions {
		return err
	}
	return readSessions(ctx, e.Installation.Dir, e.agent, e.notice, func(r *alf.Record) error {
		r.Content = e.text(r.Content)
		return e.out.Record(r)
	})
}

// loose takes over the records of known archives that no file holds.
func (e *exporting) loose() error {
	written := map[uuid.UUID]bool{}
	for _, path := range e.Known {
		r, err := alf.Open(path, alf.DefaultLimits)
		if err != nil {
			return err
		}
		for rec, err := range r.Records() {
			if err == nil && rec.Source.Origin == sessionOrigin && !written[rec.ID] {
				written[rec.ID] = true
				rec.AgentID = e.agent
				err = e.out.Record(rec)
			}
			if err != nil {
				return errors.Join(err, r.Close())
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// recordOf is a workspace record in the form of an archive.
func recordOf(agent uuid.UUID, r workspace.Record) *alf.Record {
	rec := &alf.Record{
		ID: r.ID, AgentID: agent, Content: r.Content, MemoryType: r.MemoryType, Status: alf.Active, Namespace: r.Namespace,
		Category: r.Category, Confidence: r.Confidence, Tags: r.Tags,
		Source:          alf.Source{Runtime: openclaw, Origin: "workspace", OriginFile: r.OriginFile, ExtractionMethod: r.ExtractionMethod},
		Temporal:        alf.Temporal{CreatedAt: alf.At(r.CreatedAt), UpdatedAt: alf.At(r.UpdatedAt)},
		RawSourceFormat: alf.Lines{Heading: r.Heading, Start: r.LineStart, End: r.LineEnd}.Value(),
	}
	if r.ObservedAt != nil {
		rec.Temporal.ObservedAt = alf.At(*r.ObservedAt)
	}
	return rec
}

// facts writes the records of memory/facts.db.
func (e *exporting) facts(ctx context.Context) error {
	f, there := e.raw[factsFile]
	if !there {
		return nil
	}
	facts, err := readFacts(ctx, filepath.Join(e.w.Path(), filepath.FromSlash(factsFile)), e.agent, f.ModTime)
	if err != nil {
		e.notice(workspace.Notice{File: factsFile, Reason: "kept verbatim, and without records: " + err.Error()})
		return nil
	}
	for _, r := range facts {
		r.Content = e.text(r.Content)
		if err := e.out.Record(r); err != nil {
			return err
		}
	}
	return nil
}

// files writes the files that are kept verbatim, and the attachments.
func (e *exporting) files(ctx context.Context) error {
	for _, path := range sortedPaths(e.raw) {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, _, err := e.w.Read(e.raw[path])
		if err != nil {
			e.skip(path, err)
			continue
		}
		if err := e.out.Raw(openclaw, path, strings.NewReader(e.inspect(text))); err != nil {
			return err
		}
	}
	if len(e.attached) == 0 {
		return nil
	}
	return e.attachments(ctx)
}

// inspect counts a text that has a secret, and takes it out if that is wanted.
func (e *exporting) inspect(text string) string {
	if e.Redact == nil || !utf8.ValidString(text) {
		return text
	}
	clean := e.Redact(text)
	if clean == text {
		return text
	}
	if e.done.Secrets++; e.Clean {
		return clean
	}
	return text
}

// Text is what an export says to a person beside where it went.
func (x Exported) Text() string {
	var sb strings.Builder
	for _, n := range x.Notices {
		fmt.Fprintf(&sb, "  %s\n", strings.TrimPrefix(n.String(), ": "))
	}
	if x.Secrets > 0 {
		fmt.Fprintf(&sb, "  %d files have what looks like a secret; --redact takes it out\n", x.Secrets)
	}
	if x.Credentials > 0 {
		fmt.Fprintf(&sb, "  %d credentials are named, and none is in the archive: sign in again where you restore it\n", x.Credentials)
	}
	return sb.String()
}
