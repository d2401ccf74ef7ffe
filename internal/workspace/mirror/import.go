package mirror

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Report is what came of an import.
type Report struct {
	Workspace string             `json:"workspace"`
	Files     int                `json:"files" jsonschema:"that hold records"`
	Unchanged int                `json:"unchanged_files" jsonschema:"the same as at the import before"`
	Created   int                `json:"created" jsonschema:"items that are new or taken up again"`
	Replaced  int                `json:"replaced" jsonschema:"sections that say something else now"`
	Moved     int                `json:"moved" jsonschema:"sections found elsewhere, with the same text"`
	Events    int                `json:"events" jsonschema:"sections of daily logs that are new in the event log"`
	Removed   int                `json:"removed" jsonschema:"sections that are gone; their items are archived, their events no longer recalled"`
	Expired   int                `json:"expired" jsonschema:"items whose retention is over: archived, or not made"`
	Withheld  int                `json:"withheld" jsonschema:"sections left out because what they said was forgotten"`
	Overfull  int                `json:"overfull" jsonschema:"items archived or not made, to keep under the cap of active items"`
	Refused   []memory.Refusal   `json:"refused" jsonschema:"sections that can be no item"`
	Notices   []workspace.Notice `json:"notices" jsonschema:"files left out, and what is odd"`
}

// News reports whether the import changed or left out anything.
func (r Report) News() bool {
	return r.Created+r.Replaced+r.Moved+r.Events+r.Removed+r.Expired+r.Withheld+r.Overfull+len(r.Refused)+len(r.Notices) > 0
}

// Import brings the workspace's state into memory: what is new is added, what has
// changed replaces what it was, what is gone is archived. What could not be read
// stays as it was. Importing an unchanged workspace changes nothing.
func (im *Importer) Import(ctx context.Context, w *workspace.Workspace) (report Report, err error) {
	report = Report{Workspace: w.Path(), Refused: []memory.Refusal{}, Notices: []workspace.Notice{}}
	unlock, err := im.lock(ctx)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m, err := im.load(w)
	if err != nil {
		return report, err
	}
	x := &pass{Importer: im, w: w, manifest: m, report: &report, now: im.Now(), known: map[string]int64{}, expired: map[string]bool{}}
	if err := x.read(ctx); err != nil {
		return report, err
	}
	x.expire()
	x.match()
	if len(x.changed)+len(x.expired)+len(x.removed) == 0 && !m.Unfinished {
		return report, nil
	}
	if err := x.apply(ctx); err != nil {
		return report, memory.WithHint(err, "import it again: it goes on where it ended")
	}
	m.Unfinished, m.Pending = false, pending{}
	return report, im.save(w, m)
}

// Look returns how many files Import would read: those that are new, different, gone,
// or hold what is no longer kept. It changes and creates nothing.
func (im *Importer) Look(ctx context.Context, w *workspace.Workspace) (files int, err error) {
	m, err := im.load(w)
	if err != nil {
		return 0, err
	}
	x := &pass{Importer: im, w: w, manifest: m, report: &Report{}, now: im.Now(), expired: map[string]bool{}}
	if err := x.read(ctx); err != nil {
		return 0, err
	}
	differs := map[string]bool{}
	for _, c := range x.changed {
		differs[c.name] = true
	}
	for name, f := range x.Files {
		if !differs[name] && f.expires(x.now) {
			files++
		}
	}
	return files + len(x.changed) + len(x.removed), nil
}

// pass is one import under way.
type pass struct {
	*Importer
	*manifest
	w      *workspace.Workspace
	report *Report
	now    time.Time

	changed []*changedFile
	removed []string         // files
	known   map[string]int64 // seqs of events that are in the log, by id; filled after an import that was broken off
	gone    []*oldSection    // sections that are nowhere any more
	expired map[string]bool  // items whose retention is over for some section, by baseID
	held    holding          // what the workspace says after the import
}

// changedFile is a file that is new or different.
type changedFile struct {
	name    string
	sum     string
	created time.Time
	pieces  []*newSection
}

// newSection is a section of a changed file, and what it was before.
type newSection struct {
	piece
	was      *oldSection
	same     bool // was says the same
	state    sectionState
	events   []memory.Event // of a daily section: one, or its parts
	expected []memory.Item
}

type oldSection struct {
	file  string
	index int
	state sectionState
	taken bool
}

// read finds the files that differ from the manifest.
func (x *pass) read(ctx context.Context) error {
	skipped := map[string]bool{}
	notice := func(n workspace.Notice) {
		if n.Skipped {
			skipped[n.File] = true
		}
		x.report.Notices = append(x.report.Notices, n)
	}
	files, err := x.w.Files(ctx, workspace.Memory, notice)
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !f.HasRecords() {
			continue
		}
		here[f.Origin()] = true
		x.report.Files++
		if err := x.readFile(f, notice); err != nil {
			notice(workspace.Notice{File: f.Origin(), Skipped: true, Reason: err.Error()})
		}
		op.Report(ctx, op.Progress{Done: int64(i + 1), Total: int64(len(files)), Unit: "files"})
	}
	for name := range x.Files {
		if !here[name] && !within(name, skipped) {
			x.removed = append(x.removed, name)
		}
	}
	slices.Sort(x.removed)
	slices.SortFunc(x.changed, func(a, b *changedFile) int {
		if c := a.created.Compare(b.created); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	return nil
}

// within reports whether a file, or a directory that it is in, is in set.
func within(name string, set map[string]bool) bool {
	for ; name != ""; name = name[:max(0, strings.LastIndexByte(name, '/'))] {
		if set[name] {
			return true
		}
	}
	return false
}

func (x *pass) readFile(f workspace.File, notice func(workspace.Notice)) error {
	text, now, err := x.w.Read(f)
	if err != nil {
		return err
	}
	if !utf8.ValidString(text) {
		return memory.Errorf(memory.ErrInvalid, "it is not UTF-8")
	}
	sum := sumOf(text)
	if have := x.Files[f.Origin()]; have != nil && have.SHA256 == sum && !slices.ContainsFunc(have.Sections, x.doubtful) {
		x.report.Unchanged++
		return nil
	}
	c := &changedFile{name: f.Origin(), sum: sum, created: now.ModTime}
	for _, p := range piecesOf(now, text, x.Redact, notice) {
		c.created = p.record.CreatedAt
		c.pieces = append(c.pieces, &newSection{piece: p, state: sectionState{SHA256: p.sum, Heading: p.heading, Daily: p.isDaily()}})
	}
	x.changed = append(x.changed, c)
	return nil
}
