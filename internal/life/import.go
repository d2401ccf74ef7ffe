package life

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Mode says what an import does with files that are there already.
type Mode string

// The modes.
const (
	// Merge takes what changed in the archive since the last one, and leaves what
	// changed here. Where both did, section by section; what does not go together
	// stays as it is here, and the archive's form is written beside it.
	Merge Mode = "merge"
	// Replace makes the workspace's memory and identity those of the archive.
	// Files that it does not have are taken away. Attachments are added.
	Replace Mode = "replace"
	// Keep adds what is missing and touches nothing else.
	KeepMine Mode = "keep"
)

// ParseMode checks s; "" is the given default.
func ParseMode(s string, otherwise Mode) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return otherwise, nil
	case Merge, Replace, KeepMine:
		return m, nil
	}
	return "", &memory.FieldError{Field: "mode", Reason: "must be merge, replace or keep, not " + s}
}

// ImportOptions say how an archive is imported.
type ImportOptions struct {
	Mode     Mode
	Form     Form   // "" is OpenClaw
	Database string // of the ZeroClaw forms; "" for the workspace's own
	DryRun   bool   // say what would be done, and do nothing
	Keep     Keep
	Now      func() time.Time
}

// The actions of an import on a file.
const (
	Added      = "added"
	Changed    = "changed"
	Removed    = "removed"
	Merged     = "merged"
	Conflicted = "conflict" // stays as it is, or merged where it can be; the archive's form is beside it
	Kept       = "kept"     // differs, and stays as it is
)

// Step is what an import does with one file. Files that are the same already
// are not told.
type Step struct {
	Path   string `json:"path"`
	Action string `json:"action"`
	Beside string `json:"beside,omitempty"` // where the archive's form of a conflict is written
	Diff   string `json:"diff,omitempty"`   // of a dry run: what would change, in unified form

	was     seen
	write   bool
	content target
	beside  target
}

// Imported says what an import did, or would do.
type Imported struct {
	OK          bool     `json:"ok"`
	Workspace   string   `json:"workspace"`
	AgentName   string   `json:"agent_name"`
	Records     int      `json:"memory_records"`
	Identity    bool     `json:"identity_imported"`
	Principals  int      `json:"principals_count"`
	Credentials int      `json:"credentials_count"`
	Mode        Mode     `json:"mode"`
	DryRun      bool     `json:"dry_run"`
	Files       []Step   `json:"files"`
	Conflicts   []string `json:"conflicts"`
	Rows        *Rows    `json:"rows,omitempty"`   // of ZeroClaw's database
	Backup      string   `json:"backup,omitempty"` // directory with what was replaced or taken away
	Warnings    []string `json:"warnings,omitempty"`
}

// Text is the report for a person.
func (i Imported) Text() string {
	var sb strings.Builder
	verb := "imported into"
	if i.DryRun {
		verb = "would be imported into"
	}
	fmt.Fprintf(&sb, "%s: %d records %s %s (%s)\n", i.AgentName, i.Records, verb, i.Workspace, i.Mode)
	if len(i.Files) == 0 {
		sb.WriteString("  nothing changes\n")
	}
	for _, f := range i.Files {
		fmt.Fprintf(&sb, "  %-8s %s\n", f.Action, f.Path)
		if f.Beside != "" {
			fmt.Fprintf(&sb, "           the archive's form: %s\n", f.Beside)
		}
		for l := range strings.Lines(f.Diff) {
			sb.WriteString("    " + strings.TrimRight(l, "\n") + "\n")
		}
	}
	if r := i.Rows; r != nil {
		fmt.Fprintf(&sb, "  %s: %d rows added, %d removed, %d kept, %d conflicts\n", r.Database, r.Added, r.Removed, r.Kept, len(r.Conflicts))
	}
	if i.Backup != "" {
		fmt.Fprintf(&sb, "  what was there before: %s\n", i.Backup)
	}
	for _, w := range i.Warnings {
		fmt.Fprintf(&sb, "  warning: %s\n", w)
	}
	return sb.String()
}

// seen is a file of the workspace as the plan saw it.
type seen struct {
	exists   bool
	sum      [sha256.Size]byte
	size     int64
	modified time.Time
}

// importing is one import.
type importing struct {
	ImportOptions
	w    *workspace.Workspace
	r    *alf.Reader
	base map[string][sha256.Size]byte // of the last archive's files; nil for no last archive
	last *alf.Reader
	want *targets
	done Imported
}

// ImportWorkspace brings an archive into the workspace in dir, which is made if
// it is not there. Everything is written beside its place first and then put in
// place together: after an error the workspace is as it was. What is replaced or
// taken away is kept as a backup. Nothing outside of the workspace is written,
// whatever the archive names, also not through links.
func ImportWorkspace(ctx context.Context, archive, dir string, o ImportOptions) (Imported, error) {
	r, err := alf.Open(archive, alf.DefaultLimits)
	if err != nil {
		return Imported{}, err
	}
	defer r.Close()
	if _, err := r.Verify(); err != nil {
		return Imported{}, err
	}
	i := importing{ImportOptions: o, r: r}
	if i.Form == OpenClaw || i.Form == "" {
		i.want, err = workspaceTargets(r)
	} else {
		i.want, err = zeroclawTargets(r, i.Form)
	}
	if err != nil {
		return Imported{}, err
	}
	if i.w, err = i.open(dir); err != nil {
		return Imported{}, err
	}
	if i.w == nil {
		return i.planned(ctx, dir)
	}
	defer i.w.Close()
	if !o.DryRun {
		if err := i.recover(); err != nil {
			return Imported{}, err
		}
	}
	if _, err := i.planned(ctx, i.w.Path()); err != nil {
		return Imported{}, err
	}
	if o.DryRun {
		return i.done, i.rows(ctx)
	}
	if err := i.apply(ctx); err != nil {
		return Imported{}, err
	}
	if o.Mode == KeepMine {
		return i.done, nil // not taken whole: no common ground
	}
	if err := o.Keep.keep(r.Manifest().Agent.ID, i.w.Path(), archive); err != nil {
		i.done.Warnings = append(i.done.Warnings, err.Error())
	}
	return i.done, nil
}

// open opens the workspace, making it unless this is a dry run; nil for one that
// is not there.
func (i *importing) open(dir string) (*workspace.Workspace, error) {
	w, err := workspace.Open(dir)
	if !errors.Is(err, memory.ErrNotFound) || i.DryRun {
		if errors.Is(err, memory.ErrNotFound) {
			return nil, nil
		}
		return w, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "make the workspace: %w", err)
	}
	return workspace.Open(dir)
}

// planned makes the plan and the report.
func (i *importing) planned(ctx context.Context, dir string) (Imported, error) {
	m := i.r.Manifest()
	i.done = Imported{OK: true, Workspace: dir, AgentName: m.Agent.Name, Records: i.want.records, Identity: m.Layers.Identity != nil, Mode: i.Mode, DryRun: i.DryRun,
		Files: []Step{}, Conflicts: []string{}, Warnings: i.want.warnings}
	if m.Layers.Principals != nil {
		i.done.Principals = m.Layers.Principals.Count
	}
	if m.Layers.Credentials != nil {
		i.done.Credentials = m.Layers.Credentials.Count
		i.done.Warnings = append(i.done.Warnings, fmt.Sprintf("%d credentials are named and not in the archive: sign in again", i.done.Credentials))
	}
	if err := i.readBase(m.Agent.ID); err != nil {
		return Imported{}, err
	}
	if i.last != nil {
		defer i.last.Close()
	}
	for _, path := range sortedPaths(i.want.files) {
		if err := ctx.Err(); err != nil {
			return Imported{}, err
		}
		if err := i.plan(i.want.files[path]); err != nil {
			return Imported{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	if i.w != nil {
		if err := i.planRemovals(ctx); err != nil {
			return Imported{}, err
		}
	}
	return i.done, nil
}

// runtime is whose files the workspace has.
func (i *importing) runtime() string {
	if i.Form == OpenClaw || i.Form == "" {
		return openclaw
	}
	return zeroclaw
}

// readBase reads what the last archive that the workspace gave or took had.
func (i *importing) readBase(agent uuid.UUID) error {
	if i.Mode != Merge || i.w == nil {
		return nil
	}
	if mine, found, err := agentID(i.w); err != nil || !found || mine != agent {
		return err // another agent's, or begun anew: they have nothing in common
	}
	i.last = i.Keep.common(agent, i.w.Path(), func(reason string) { i.done.Warnings = append(i.done.Warnings, reason) })
	if i.last == nil {
		return nil
	}
	i.base = map[string][sha256.Size]byte{}
	for _, f := range i.last.Raw(i.runtime()) {
		sum, err := sumOf(func() (io.ReadCloser, error) { return f.Open() })
		if err != nil {
			return err
		}
		i.base[f.Path] = sum
	}
	return nil
}

func sumOf(open func() (io.ReadCloser, error)) (sum [sha256.Size]byte, err error) {
	in, err := open()
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, in)
	return [sha256.Size]byte(h.Sum(nil)), errors.Join(err, in.Close())
}

// plan decides on one file of the archive.
func (i *importing) plan(t target) error {
	mine, err := i.look(t.path)
	if err != nil {
		return err
	}
	theirs, err := sumOf(t.open)
	if err != nil {
		return err
	}
	was, known := i.base[t.path]
	step := Step{Path: t.path, Action: Changed, write: true, content: t, was: mine}
	switch {
	case mine.exists && mine.sum == theirs:
		return nil
	case !mine.exists && i.Mode == Merge && known && was == theirs:
		step.Action, step.write = Kept, false // taken away here, and not changed there
	case !mine.exists:
		step.Action = Added
	case i.Mode == Replace, i.Mode == Merge && known && was == mine.sum:
	case i.Mode == KeepMine, i.Mode == Merge && known && was == theirs:
		step.Action, step.write = Kept, false
	default:
		if err := i.merge(&step); err != nil {
			return err
		}
	}
	return i.add(step)
}

// add takes a step into the plan, with its diff if somebody is to read it.
func (i *importing) add(s Step) error {
	if s.Action == Conflicted {
		i.done.Conflicts = append(i.done.Conflicts, s.Path)
	}
	if i.DryRun && s.Action != Kept {
		var err error
		if s.Diff, err = i.difference(s); err != nil {
			return err
		}
	}
	i.done.Files = append(i.done.Files, s)
	return nil
}

// maxDiff bounds the texts that are compared or merged line by line.
const maxDiff = 4 << 20

// merge merges a file that changed here and in the archive.
func (i *importing) merge(s *Step) error {
	theirs, err := readTarget(s.content)
	if err != nil {
		return err
	}
	mine, err := i.w.Root().ReadFile(filepath.FromSlash(s.Path))
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "read: %w", err)
	}
	beside := s.content
	beside.path = s.Path + ".conflict-" + i.Now().UTC().Format("20060102T150405Z")
	s.Action, s.write = Conflicted, false
	if strings.HasSuffix(s.Path, ".md") && len(mine)+len(theirs) < maxDiff && utf8.Valid(mine) && utf8.Valid(theirs) {
		base := i.baseText(s.Path)
		text, conflicts := merge3(base, string(mine), string(theirs))
		s.content = target{path: s.Path, text: text}
		s.write = text != string(mine)
		if conflicts == 0 {
			s.Action = Merged
			if !s.write {
				s.Action = Kept
			}
			return nil
		}
	}
	s.Beside, s.beside = beside.path, beside
	return nil
}

// baseText is a file as the last archive had it; "" where it had none.
func (i *importing) baseText(path string) string {
	if i.last == nil {
		return ""
	}
	for _, f := range i.last.Raw(i.runtime()) {
		if f.Path == path {
			if text, err := f.Bytes(); err == nil {
				return string(text)
			}
		}
	}
	return ""
}

func readTarget(t target) ([]byte, error) {
	in, err := t.open()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(in)
	return text, errors.Join(err, in.Close())
}

// difference shows what a step changes, in unified form.
func (i *importing) difference(s Step) (string, error) {
	var mine, theirs []byte
	var err error
	if s.was.exists {
		if s.was.size > maxDiff {
			return "", nil
		}
		if mine, err = i.w.Root().ReadFile(filepath.FromSlash(s.Path)); err != nil {
			return "", memory.Errorf(memory.ErrUnavailable, "read: %w", err)
		}
	}
	shown := s.content
	if s.Action == Conflicted {
		shown = s.beside
	}
	if s.Action != Removed {
		if theirs, err = readTarget(shown); err != nil {
			return "", err
		}
	}
	if !utf8.Valid(mine) || !utf8.Valid(theirs) || len(theirs) > maxDiff {
		return fmt.Sprintf("binary: %d bytes, then %d\n", len(mine), len(theirs)), nil
	}
	return string(diff.Diff("workspace/"+s.Path, mine, "archive/"+s.Path, theirs)), nil
}

// planRemovals decides on the files that the archive does not have.
func (i *importing) planRemovals(ctx context.Context) error {
	if i.Mode == KeepMine || i.Mode == Merge && i.base == nil {
		return nil
	}
	files, err := i.w.Files(ctx, workspace.Markdown, nil)
	if err != nil {
		return err
	}
	for _, f := range files {
		was, known := i.base[f.Path]
		if _, wanted := i.want.files[f.Path]; wanted || i.Mode == Merge && !known || strings.HasPrefix(f.Path, stageDir+"/") {
			continue
		}
		mine, err := i.look(f.Path)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		s := Step{Path: f.Path, Action: Removed, was: mine}
		if i.Mode == Merge && was != mine.sum {
			s.Action = Kept // changed here, taken away there
			i.done.Warnings = append(i.done.Warnings, f.Path+" was taken away in the archive and changed here: it stays")
		}
		if err := i.add(s); err != nil {
			return err
		}
	}
	return nil
}

// look finds what stands at a path. It refuses a path through a link or through
// a file, and one where a directory stands.
func (i *importing) look(path string) (seen, error) {
	if i.w == nil {
		return seen{}, nil
	}
	root := i.w.Root()
	for end := 0; end < len(path); {
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			break
		}
		end += 1 + next
		st, err := root.Lstat(filepath.FromSlash(path[:end]))
		if errors.Is(err, fs.ErrNotExist) {
			return seen{}, nil
		}
		if err != nil {
			return seen{}, memory.Errorf(memory.ErrUnavailable, "look at %s: %w", path[:end], err)
		}
		if !st.IsDir() {
			return seen{}, memory.Errorf(memory.ErrDenied, "%s is no directory, or a link to one", path[:end])
		}
	}
	st, err := root.Lstat(filepath.FromSlash(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return seen{}, nil
	case err != nil:
		return seen{}, memory.Errorf(memory.ErrUnavailable, "look at it: %w", err)
	case !st.Mode().IsRegular():
		return seen{}, memory.Errorf(memory.ErrDenied, "a link, a directory or a device stands in its place")
	}
	sum, err := sumOf(func() (io.ReadCloser, error) { return root.Open(filepath.FromSlash(path)) })
	if err != nil {
		return seen{}, memory.Errorf(memory.ErrUnavailable, "read it: %w", err)
	}
	return seen{exists: true, sum: sum, size: st.Size(), modified: st.ModTime()}, nil
}
