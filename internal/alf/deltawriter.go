package alf

import (
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// WriteDelta writes what leads from old to new, which Compare found, as a
// .alf-delta: whole records (for a deletion the one that goes), whole layers and
// whole files. Base and delta together are new.
func WriteDelta(out io.Writer, tempDir string, old, new *Reader, d *Difference, now time.Time) (m DeltaManifest, err error) {
	w := deltaWriter{packer: newPacker(out), old: old, new: new, d: d}
	if w.spool, err = newSpool(tempDir); err != nil {
		return m, err
	}
	defer func() {
		if closeErr := w.spool.close(); err == nil {
			err = closeErr
		}
	}()
	was, is := old.Manifest(), new.Manifest()
	if was.Agent.ID != is.Agent.ID {
		return m, memory.WithHint(memory.Errorf(memory.ErrConflict, "the archives are of two agents: %s and %s", was.Agent.ID, is.Agent.ID),
			"a delta leads from one state of an agent to another; openclawssy alf merge joins two agents")
	}
	m = DeltaManifest{ALFVersion: Version, CreatedAt: At(now), Agent: DeltaAgent{ID: is.Agent.ID, SourceRuntime: is.Agent.SourceRuntime, Exporter: exporter},
		Sync: DeltaSync{BaseTimestamp: was.CreatedAt, NewTimestamp: is.CreatedAt}}
	if was.Sync != nil {
		m.Sync.BaseSequence = was.Sync.LastSequence
	}
	m.Sync.NewSequence = m.Sync.BaseSequence + 1
	for _, step := range []func(*Changes) error{w.layers, w.files, w.records} {
		if err := step(&m.Changes); err != nil {
			return m, err
		}
	}
	m.Checksum = w.sums.checksum()
	if err := w.document(deltaManifestName, m); err != nil {
		return m, err
	}
	return m, w.zip.Close()
}

type deltaWriter struct {
	packer
	old, new *Reader
	d        *Difference
	spool    *spool
	pieces   []piece
}

// layers writes the layers that changed, whole.
func (w *deltaWriter) layers(c *Changes) error {
	for _, name := range w.d.Layers {
		var err error
		switch name {
		case "identity":
			err = w.identity(c)
		case "principals":
			err = w.principals(c)
		case "credentials":
			c.Credentials, err = layerChange(w.packer, credentialsName, w.new.Credentials)
		case "attachments":
			c.Attachments, err = layerChange(w.packer, attachmentsName, w.new.Attachments)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func layerChange[T any](p packer, name string, read func() (*T, error)) (*LayerChange, error) {
	layer, err := read()
	if err != nil || layer == nil {
		return &LayerChange{Removed: true}, err
	}
	return &LayerChange{File: name}, p.document(name, layer)
}

func (w *deltaWriter) identity(c *Changes) error {
	id, err := w.new.Identity()
	if err != nil {
		return err
	}
	if c.Identity = (&IdentityChange{Removed: true}); id == nil {
		return nil
	}
	c.Identity = &IdentityChange{File: identityName, NewVersion: id.Version}
	return w.document(identityName, id)
}

func (w *deltaWriter) principals(c *Changes) error {
	is, err := w.new.Principals()
	if err != nil {
		return err
	}
	if c.Principals = (&PrincipalsChange{Removed: true}); is == nil {
		return nil
	}
	was, err := w.old.Principals()
	if err != nil {
		return err
	}
	before := map[uuid.UUID]Principal{}
	if was != nil {
		for _, p := range was.Principals {
			before[p.ID] = p
		}
	}
	c.Principals = &PrincipalsChange{File: principalsName}
	for _, p := range is.Principals {
		same, err := SamePrincipal(before[p.ID], p)
		if err != nil {
			return err
		}
		if !same {
			c.Principals.ChangedIDs = append(c.Principals.ChangedIDs, p.ID)
		}
	}
	return w.document(principalsName, is)
}

// files writes the files that were added or changed, whole.
func (w *deltaWriter) files(c *Changes) error {
	c.Raw = &RawChange{} // said even if empty: the files of the base are those of the new state
	for _, change := range w.d.Files {
		f := RawFile{Path: change.Name, SHA256: w.d.newSums.hex(change.Name), BaseSHA256: w.d.oldSums.hex(change.Name)}
		if change.Kind == "removed" {
			c.Raw.Deleted = append(c.Raw.Deleted, f)
			continue
		}
		c.Raw.Changed = append(c.Raw.Changed, f)
		if err := copyFile(w.file, File{Path: change.Name, zip: w.new.entries[change.Name]}); err != nil {
			return err
		}
	}
	return nil
}

// copyFile writes a file of another archive under the name that its Path is.
func copyFile(write func(name string, from io.Reader) error, f File) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	return write(f.Path, in)
}

// records writes creations, updates and deletions, in this order.
func (w *deltaWriter) records(c *Changes) error {
	for _, part := range []struct {
		from      *Reader
		ids       map[uuid.UUID]bool
		operation string
	}{{w.new, w.d.created, Create}, {w.new, w.d.updated, Update}, {w.old, w.d.deleted, Delete}} {
		if err := w.changes(part.from, part.ids, part.operation); err != nil {
			return err
		}
	}
	if len(w.pieces) == 0 {
		return nil
	}
	c.Memory = &MemoryChange{File: deltaRecordsName, RecordCount: len(w.pieces), Moves: slices.Clone(w.d.Moved)}
	return w.lines(deltaRecordsName, w.spool, w.pieces)
}

func (w *deltaWriter) changes(from *Reader, ids map[uuid.UUID]bool, operation string) error {
	if len(ids) == 0 {
		return nil
	}
	for r, err := range from.Records() {
		if err != nil {
			return err
		}
		if !ids[r.ID] {
			continue
		}
		text, err := line(Change{operation, *r})
		if err != nil {
			return memory.Errorf(memory.ErrInternal, "encode record %s: %w", r.ID, err)
		}
		p, err := w.spool.add(append(text, '\n'))
		if err != nil {
			return err
		}
		w.pieces = append(w.pieces, p)
	}
	return nil
}
