package life

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// target is a file that an archive wants to stand in a workspace.
type target struct {
	path     string
	file     *alf.File // its bytes, or
	text     string    // its text, where file is nil
	modified time.Time // zero where the archive does not tell
}

// open reads the target's bytes.
func (t target) open() (io.ReadCloser, error) {
	if t.file != nil {
		return t.file.Open()
	}
	return io.NopCloser(strings.NewReader(t.text)), nil
}

// targets are all of them, by path, and what was found on the way.
type targets struct {
	files    map[string]target
	records  int
	warnings []string
	managed  map[string]bool // paths that are memory or identity, and no attachment
}

// fileRecords are the records of one file.
type fileRecords struct {
	sections []alf.Section
	modified time.Time
}

// workspaceTargets finds out which files an archive stands for. Verbatim files
// are taken where the records and layers agree with them; where they do not, the
// files are older than the records and are made anew from those. Records that
// are deleted or superseded are not written.
func workspaceTargets(r *alf.Reader) (*targets, error) {
	t := &targets{files: map[string]target{}, managed: map[string]bool{}}
	byFile, err := t.group(r)
	if err != nil {
		return nil, err
	}
	if err := t.verbatim(r, byFile); err != nil {
		return nil, err
	}
	for path, f := range byFile {
		if f.sections == nil || !t.allowed(path) {
			continue
		}
		if _, there := t.files[path]; !there {
			t.files[path] = target{path: path, text: alf.Compose(f.sections), modified: f.modified}
		}
	}
	if err := t.layers(r); err != nil {
		return nil, err
	}
	for path := range t.files {
		t.managed[path] = true
	}
	return t, t.attachments(r)
}

func (t *targets) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// allowed reports whether a path may be written, and warns of it if not.
func (t *targets) allowed(path string) bool {
	err := alf.CheckPath(path)
	for segment := range strings.SplitSeq(strings.ToLower(path), "/") {
		if segment == ".git" {
			err = memory.Errorf(memory.ErrDenied, "path %q is git's own", path)
		}
	}
	if err != nil {
		t.warn("left out: %v", err)
	}
	return err == nil && path != agentFile && path != stageDir && !strings.HasPrefix(path, stageDir+"/")
}

// group gathers the records by the files that they belong in. A file all of
// whose records are gone is there without sections.
func (t *targets) group(r *alf.Reader) (map[string]*fileRecords, error) {
	out := map[string]*fileRecords{}
	for rec, err := range r.Records() {
		if err != nil {
			return nil, err
		}
		t.records++
		if rec.Source.Origin == sessionOrigin || rec.Source.Origin == "facts.db" {
			continue // their files are not Markdown, and not made from them
		}
		path := rec.FileOf()
		if !strings.HasSuffix(path, ".md") {
			path = "memory/" + alf.FileName(rec.Namespace) + ".md"
		}
		f := out[path]
		if f == nil {
			f = &fileRecords{}
			out[path] = f
		}
		if rec.Temporal.UpdatedAt.After(f.modified) {
			f.modified = rec.Temporal.UpdatedAt.Time
		}
		if rec.Live() {
			f.sections = append(f.sections, alf.SectionOf(rec))
		}
	}
	return out, nil
}

// verbatim takes the files that the archive holds as they were.
func (t *targets) verbatim(r *alf.Reader, byFile map[string]*fileRecords) error {
	hasRecords := r.Manifest().Layers.Memory != nil
	for _, f := range r.Raw(openclaw) {
		if !t.allowed(f.Path) {
			continue
		}
		w := target{path: f.Path, file: &f}
		records := byFile[f.Path]
		if records != nil {
			w.modified = records.modified
		}
		if hasRecords && (workspace.File{Path: f.Path}).HasRecords() {
			text, err := f.Bytes()
			if err != nil {
				return err
			}
			if utf8.Valid(text) && !agrees(f.Path, string(text), records) {
				t.warn("%s is made from its records: the archive's copy of it is older", f.Path)
				if records == nil || records.sections == nil {
					continue // every record of it is gone
				}
				w.file, w.text = nil, alf.Compose(records.sections)
			}
		}
		t.files[f.Path] = w
	}
	return nil
}

// agrees reports whether a text, cut in any of our ways, gives the records.
func agrees(path, text string, records *fileRecords) bool {
	want := map[string]int{}
	n := 0
	if records != nil {
		n = len(records.sections)
		for _, s := range records.sections {
			want[strings.TrimRight(s.Content, "\r\n")]++
		}
	}
	for _, split := range []workspace.Split{workspace.SplitClient, workspace.SplitFenceAware, workspace.SplitRows} {
		left, counts := n, maps.Clone(want)
		same := true
		for r := range workspace.RecordsOf(workspace.File{Path: path}, text, split, func(workspace.Notice) {}) {
			key := strings.TrimRight(r.Content, "\r\n")
			if counts[key] == 0 {
				same = false
				break
			}
			counts[key]--
			left--
		}
		if same && left == 0 {
			return true
		}
	}
	return false
}

// layers takes the files that identity and principals stand in. What a layer
// says wins over a verbatim file that says something else.
func (t *targets) layers(r *alf.Reader) error {
	id, err := r.Identity()
	if err != nil {
		return err
	}
	principals, err := r.Principals()
	if err != nil {
		return err
	}
	if id != nil {
		verbatim := id.Prose == nil
		if err := t.layer(alf.IdentityFiles(id), id.UpdatedAt.Time, verbatim); err != nil {
			return err
		}
	}
	if principals == nil || len(principals.Principals) == 0 {
		return nil
	}
	first := principals.Principals[0].Profile
	return t.layer(alf.PrincipalFiles(principals), first.UpdatedAt.Time, first.Prose == nil)
}

// layer takes the files of one layer. fallback: only where there is no verbatim
// one.
func (t *targets) layer(files map[string]string, modified time.Time, fallback bool) error {
	for path, text := range files {
		have, there := t.files[path]
		if there && have.file != nil {
			raw, err := have.file.Bytes()
			if err != nil {
				return err
			}
			if fallback || string(raw) == text {
				have.modified = modified
				t.files[path] = have
				continue
			}
			t.warn("%s is made from the layer that says it: the archive's copy of it is older", path)
		}
		t.files[path] = target{path: path, text: text, modified: modified}
	}
	return nil
}

// attachments takes the included attachments.
func (t *targets) attachments(r *alf.Reader) error {
	list, err := r.Attachments()
	if err != nil || list == nil {
		return err
	}
	artifacts := r.Artifacts()
	for _, a := range list.Attachments {
		if a.ArchivePath == nil || !t.allowed(a.SourcePath) || t.managed[a.SourcePath] {
			continue
		}
		at := slices.IndexFunc(artifacts, func(f alf.File) bool { return alf.ArtifactPath(f.Path) == *a.ArchivePath })
		if at < 0 {
			t.warn("%s is listed and not in the archive", a.SourcePath)
			continue
		}
		t.files[a.SourcePath] = target{path: a.SourcePath, file: &artifacts[at]}
	}
	return nil
}
