package alf

import (
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Applied says what Apply did.
type Applied struct {
	Created  int      `json:"created"`
	Updated  int      `json:"updated"`
	Deleted  int      `json:"deleted"`
	Files    int      `json:"files"`     // files written, rewritten or removed
	Rewrites []string `json:"rewritten"` // raw files made anew from records, since a delta changed those and carried no files
	Warnings []string `json:"warnings"`
}

// Apply writes to w the archive that base becomes by the deltas, in order.
//
// A delta of this package carries the files that changed. One of another program
// carries records only: the files that its records were cut from are then
// written anew from the records, so that the archive never holds a file that
// contradicts them. A change of a record that the base does not have is made all
// the same, with a warning.
func Apply(base *Reader, deltas []*DeltaReader, w *Writer, tempDir string, form Form) (m Manifest, done Applied, err error) {
	a := applying{base: base, w: w, final: map[uuid.UUID]finalRecord{}, files: map[string]*File{}, foreign: map[uuid.UUID]bool{}, stale: map[string]bool{}, parts: map[string][]Section{}}
	a.done = Applied{Rewrites: []string{}, Warnings: []string{}}
	if a.spool, err = newSpool(tempDir); err != nil {
		return m, done, err
	}
	defer func() { err = errors.Join(err, a.spool.close()) }()
	m = base.Manifest()
	if err := a.readBase(); err != nil {
		return m, done, err
	}
	for i, d := range deltas {
		if err := a.read(d, &m); err != nil {
			return m, done, memoryErrorOfDelta(i, err)
		}
	}
	for _, step := range []func() error{a.placeChanges, a.records, a.rewrite, a.layers, a.copyFiles} {
		if err := step(); err != nil {
			return m, done, err
		}
	}
	m, err = w.Finish(m, form)
	return m, a.done, err
}

func memoryErrorOfDelta(i int, err error) error {
	return memory.WithHint(memory.Errorf(memory.KindOf(err), "delta %d: %w", i+1, err), memory.HintOf(err))
}

type finalRecord struct {
	piece   piece
	deleted bool
	used    bool
}

type applying struct {
	base  *Reader
	w     *Writer
	spool *spool
	done  Applied

	identity    *Identity
	principals  *Principals
	credentials *Credentials
	attachments *Attachments
	files       map[string]*File // by entry name; nil for one that is gone

	final   map[uuid.UUID]finalRecord
	created []uuid.UUID          // in order, and with those that the base has
	foreign map[uuid.UUID]bool   // changed by a delta that carries no files
	stale   map[string]bool      // workspace files whose records changed and that no delta carried
	made    map[string]string    // workspace files made anew
	parts   map[string][]Section // sections of stale files
}

func (a *applying) readBase() (err error) {
	if a.identity, err = a.base.Identity(); err != nil {
		return err
	}
	if a.principals, err = a.base.Principals(); err != nil {
		return err
	}
	if a.credentials, err = a.base.Credentials(); err != nil {
		return err
	}
	if a.attachments, err = a.base.Attachments(); err != nil {
		return err
	}
	for _, f := range a.base.extra() {
		a.files[f.Path] = &f
	}
	a.made = map[string]string{}
	return nil
}

// read takes in one delta.
func (a *applying) read(d *DeltaReader, m *Manifest) error {
	if d.Manifest.Agent.ID != m.Agent.ID {
		return memory.Errorf(memory.ErrConflict, "it is of agent %s, and the base of %s", d.Manifest.Agent.ID, m.Agent.ID)
	}
	if _, err := d.Verify(); err != nil {
		return err
	}
	last := uint64(0)
	if m.Sync != nil {
		last = m.Sync.LastSequence
		if d.Manifest.Sync.BaseSequence > last {
			return memory.WithHint(memory.Errorf(memory.ErrConflict, "it starts from sequence %d, and the base ends at %d", d.Manifest.Sync.BaseSequence, last), "a delta between them is missing")
		}
	}
	sync := Sync{}
	if m.Sync != nil {
		sync = *m.Sync
	}
	sync.LastSequence = max(last, d.Manifest.Sync.NewSequence, d.Manifest.Sync.BaseSequence+1)
	sync.LastSyncAt = d.Manifest.CreatedAt
	m.Sync = &sync
	if err := a.readRecords(d); err != nil {
		return err
	}
	if err := a.readLayers(d); err != nil {
		return err
	}
	return a.readFiles(d)
}

func (a *applying) readRecords(d *DeltaReader) error {
	carries := d.Manifest.Changes.Raw != nil
	for c, err := range d.Records() {
		if err != nil {
			return err
		}
		was, before := a.final[c.ID]
		switch c.Operation {
		case Create, Update:
			text, err := line(&c.Record)
			if err != nil {
				return err
			}
			p, err := a.spool.add(text)
			if err != nil {
				return err
			}
			if !before {
				a.created = append(a.created, c.ID)
			}
			a.final[c.ID] = finalRecord{piece: p}
		case Delete:
			if !before {
				a.created = append(a.created, c.ID)
			}
			a.final[c.ID] = finalRecord{piece: was.piece, deleted: true}
		default:
			a.done.Warnings = append(a.done.Warnings, "operation "+c.Operation+" is not known: skipped")
			continue
		}
		if !carries {
			a.foreign[c.ID] = true
			if c.Operation != Delete {
				a.stale[c.FileOf()] = true
			}
		}
	}
	return nil
}

func (a *applying) readLayers(d *DeltaReader) error {
	c := d.Manifest.Changes
	stale := func(files map[string]string) {
		if c.Raw == nil {
			maps.Copy(a.made, files)
		}
	}
	if id, err := d.Identity(); err != nil {
		return err
	} else if id != nil || c.Identity != nil && c.Identity.Removed {
		a.identity = id
		stale(IdentityFiles(id))
	}
	if p, err := d.Principals(); err != nil {
		return err
	} else if p != nil || c.Principals != nil && c.Principals.Removed {
		a.principals = p
		stale(PrincipalFiles(p))
	}
	if l, err := d.Credentials(); err != nil {
		return err
	} else if l != nil || c.Credentials != nil && c.Credentials.Removed {
		a.credentials = l
	}
	if l, err := d.Attachments(); err != nil {
		return err
	} else if l != nil || c.Attachments != nil && c.Attachments.Removed {
		a.attachments = l
	}
	return nil
}

// readFiles takes in the files of a delta, and checks that it was made for the
// files that are there.
func (a *applying) readFiles(d *DeltaReader) error {
	raw := d.Manifest.Changes.Raw
	if raw == nil {
		return nil
	}
	prefix := rawPrefix + a.base.Manifest().Agent.SourceRuntime + "/"
	for _, f := range slices.Concat(raw.Changed, raw.Deleted) {
		if err := CheckPath(f.Path); err != nil {
			return err
		}
		if !strings.HasPrefix(f.Path, rawPrefix) && !strings.HasPrefix(f.Path, artifactPrefix) && a.base.layered(f.Path) {
			return memory.Errorf(memory.ErrInvalid, "%s is a layer, not a file", f.Path)
		}
		a.done.Files++
		delete(a.stale, strings.TrimPrefix(f.Path, prefix))
		delete(a.made, strings.TrimPrefix(f.Path, prefix))
	}
	for _, f := range raw.Changed {
		e := d.entries[f.Path]
		if e == nil {
			return memory.Errorf(memory.ErrInvalid, "it names %s and does not have it", f.Path)
		}
		a.files[f.Path] = &File{Path: f.Path, Size: int64(e.UncompressedSize64), zip: e}
	}
	for _, f := range raw.Deleted {
		if a.files[f.Path] == nil {
			a.done.Warnings = append(a.done.Warnings, f.Path+" is to be deleted and is not there")
		}
		a.files[f.Path] = nil
	}
	return nil
}

// records writes the records: those of the base in their order with what became
// of them, then the new ones.
func (a *applying) records() error {
	for r, err := range a.base.Records() {
		if err != nil {
			return err
		}
		if change, changed := a.final[r.ID]; changed {
			first := !change.used
			change.used = true
			a.final[r.ID] = change
			if change.deleted {
				a.done.Deleted++
				continue
			}
			if r, err = a.changed(change.piece); err != nil {
				return err
			}
			if first {
				a.done.Updated++
			}
		}
		if err := a.write(r); err != nil {
			return err
		}
	}
	for _, id := range a.created {
		change := a.final[id]
		if change.used || change.deleted {
			continue
		}
		r, err := a.changed(change.piece)
		if err != nil {
			return err
		}
		a.done.Created++
		if err := a.write(r); err != nil {
			return err
		}
	}
	return nil
}

func (a *applying) changed(p piece) (*Record, error) {
	text, err := a.spool.read(p)
	if err != nil {
		return nil, err
	}
	var r Record
	return &r, decode(text, &r)
}

func (a *applying) write(r *Record) error {
	if file := r.FileOf(); a.stale[file] && r.Live() {
		a.parts[file] = append(a.parts[file], SectionOf(r))
	}
	return a.w.Record(r)
}

// placeChanges finds the files of the base's records that a delta without files
// changed: they will not be what the archive holds verbatim.
func (a *applying) placeChanges() error {
	if len(a.foreign) == 0 {
		return nil
	}
	for r, err := range a.base.Records() {
		if err != nil {
			return err
		}
		if a.foreign[r.ID] {
			a.stale[r.FileOf()] = true
		}
	}
	return nil
}

// rewrite makes anew the files that would contradict their records. An archive
// without verbatim files has none to contradict.
func (a *applying) rewrite() error {
	prefix := rawPrefix + a.base.Manifest().Agent.SourceRuntime + "/"
	if len(a.base.Raw(a.base.Manifest().Agent.SourceRuntime)) == 0 {
		a.made = nil
		return nil
	}
	for file := range a.stale {
		if path.Ext(file) == ".md" && CheckPath(file) == nil {
			a.made[file] = Compose(a.parts[file])
		}
	}
	maps.DeleteFunc(a.made, func(file, text string) bool { return text == "" && a.files[prefix+file] == nil })
	a.done.Rewrites = slices.Sorted(maps.Keys(a.made))
	return nil
}

func (a *applying) layers() error {
	var errs []error
	if a.identity != nil {
		errs = append(errs, a.w.Identity(*a.identity))
	}
	if a.principals != nil {
		errs = append(errs, a.w.Principals(*a.principals))
	}
	if a.credentials != nil {
		errs = append(errs, a.w.Credentials(*a.credentials))
	}
	if a.attachments != nil {
		errs = append(errs, a.w.Attachments(*a.attachments))
	}
	return errors.Join(errs...)
}

// copyFiles writes the files: those made anew, those of deltas and the base's.
func (a *applying) copyFiles() error {
	runtime := a.base.Manifest().Agent.SourceRuntime
	for _, file := range a.done.Rewrites {
		a.done.Files++
		a.files[rawPrefix+runtime+"/"+file] = nil
		if a.made[file] == "" {
			continue // every record of it is gone
		}
		if err := a.w.Raw(runtime, file, strings.NewReader(a.made[file])); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		f := a.files[name]
		if f == nil {
			continue
		}
		if err := copyFile(a.w.File, *f); err != nil {
			return err
		}
	}
	return nil
}

// ApplyFiles is Apply for an archive and deltas in files.
func ApplyFiles(out io.Writer, base string, deltas []string, form Form) (m Manifest, done Applied, err error) {
	b, err := Open(base, DefaultLimits)
	if err != nil {
		return m, done, err
	}
	defer b.Close()
	var list []*DeltaReader
	for _, path := range deltas {
		d, err := OpenDelta(path, DefaultLimits)
		if err != nil {
			return m, done, err
		}
		defer d.Close()
		list = append(list, d)
	}
	w := NewWriter(out, "")
	defer func() { err = errors.Join(err, w.Close()) }()
	return Apply(b, list, w, "", form)
}
