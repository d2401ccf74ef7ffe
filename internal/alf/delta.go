package alf

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// The operations of a delta's records. Others are skipped.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
)

// DeltaManifest is delta-manifest.json: between which states a delta leads.
type DeltaManifest struct {
	ALFVersion string         `json:"alf_version"`
	CreatedAt  Time           `json:"created_at"`
	Agent      DeltaAgent     `json:"agent"`
	Sync       DeltaSync      `json:"sync"`
	Changes    Changes        `json:"changes"`
	Checksum   string         `json:"checksum,omitzero"`
	Unknown    jsontext.Value `json:",embed"`
}

// DeltaAgent says whose delta it is.
type DeltaAgent struct {
	ID            uuid.UUID      `json:"id"`
	SourceRuntime string         `json:"source_runtime,omitzero"`
	Exporter      string         `json:"exporter,omitzero"`
	Unknown       jsontext.Value `json:",embed"`
}

// DeltaSync is the place of a delta in a chain.
type DeltaSync struct {
	BaseSequence  uint64         `json:"base_sequence"`
	NewSequence   uint64         `json:"new_sequence"` // 0 where a server gives it
	BaseTimestamp Time           `json:"base_timestamp,omitzero"`
	NewTimestamp  Time           `json:"new_timestamp,omitzero"`
	Unknown       jsontext.Value `json:",embed"`
}

// Changes are the layers that a delta has; nil for one that did not change.
// Raw and Attachments are ours: other readers leave them out.
type Changes struct {
	Identity    *IdentityChange   `json:"identity,omitzero"`
	Principals  *PrincipalsChange `json:"principals,omitzero"`
	Credentials *LayerChange      `json:"credentials,omitzero"`
	Attachments *LayerChange      `json:"attachments,omitzero"`
	Memory      *MemoryChange     `json:"memory,omitzero"`
	Raw         *RawChange        `json:"raw,omitzero"`
	Unknown     jsontext.Value    `json:",embed"`
}

// IdentityChange names the entry of the new identity. Without File the layer
// did not change; Removed says that it is gone.
type IdentityChange struct {
	File       string         `json:"file,omitzero"`
	NewVersion int64          `json:"new_version,omitzero"`
	Removed    bool           `json:"removed,omitzero"`
	Unknown    jsontext.Value `json:",embed"`
}

// PrincipalsChange names the entry of the new principals.
type PrincipalsChange struct {
	File       string          `json:"file,omitzero"`
	ChangedIDs List[uuid.UUID] `json:"changed_ids,omitzero"`
	Removed    bool            `json:"removed,omitzero"`
	Unknown    jsontext.Value  `json:",embed"`
}

// LayerChange names the entry of another new layer.
type LayerChange struct {
	File    string         `json:"file,omitzero"`
	Removed bool           `json:"removed,omitzero"`
	Unknown jsontext.Value `json:",embed"`
}

// MemoryChange names the entry of the changed records. Moves tells which of
// them are known under another id: it is for people, the operations are whole
// without it.
type MemoryChange struct {
	File        string         `json:"file,omitzero"`
	RecordCount int            `json:"record_count,omitzero"`
	Moves       List[Move]     `json:"moves,omitzero"`
	Unknown     jsontext.Value `json:",embed"`
}

// RawChange lists the files of raw/ and artifacts/ that a delta carries whole
// under their own names, and those that are gone.
type RawChange struct {
	Changed List[RawFile]  `json:"changed,omitzero"`
	Deleted List[RawFile]  `json:"deleted,omitzero"`
	Unknown jsontext.Value `json:",embed"`
}

// RawFile is a file in the state that a delta starts from and in the one that it
// leads to: sums are SHA-256 in hex, "" where it is not there.
type RawFile struct {
	Path       string         `json:"path"` // the entry's name
	SHA256     string         `json:"sha256,omitzero"`
	BaseSHA256 string         `json:"base_sha256,omitzero"`
	Unknown    jsontext.Value `json:",embed"`
}

// Change is one line of a delta: an operation and the record that it leaves, or
// that it removes.
type Change struct {
	Operation string `json:"operation"`
	Record
}

var deltaRequired = []string{"alf_version", "created_at", "agent", "agent.id", "sync", "sync.base_sequence", "sync.new_sequence", "changes"}

// DeltaReader reads a delta.
type DeltaReader struct {
	Manifest DeltaManifest
	name     string // of the manifest
	lim      Limits
	entries  map[string]*zip.File
	close    func() error
}

// isDelta reports whether files are those of a delta: it has the client's
// manifest, or the specification's, which has no layers but changes.
func isDelta(files map[string]*zip.File) bool {
	if files[deltaManifestName] != nil {
		return true
	}
	m := files[manifestName]
	if m == nil {
		return false
	}
	text, err := readDocument(m, DefaultLimits)
	if err != nil {
		return false
	}
	var top map[string]jsontext.Value
	if err := decode(text, &top); err != nil {
		return false
	}
	return top["changes"] != nil && top["layers"] == nil
}

// OpenDelta opens the delta in a file, as Open does an archive.
func OpenDelta(path string, lim Limits) (*DeltaReader, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	d, err := NewDeltaReader(f, size, lim)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), f.Close())
	}
	d.close = f.Close
	return d, nil
}

// NewDeltaReader reads a delta of the given size in bytes.
func NewDeltaReader(in io.ReaderAt, size int64, lim Limits) (*DeltaReader, error) {
	var f findings
	files, err := unzip(in, size, lim, &f)
	if err != nil {
		return nil, err
	}
	if err := f.first(); err != nil {
		return nil, err
	}
	if !isDelta(files) {
		return nil, memory.Errorf(memory.ErrInvalid, "it is no delta: it has no %s", deltaManifestName)
	}
	d := &DeltaReader{name: deltaManifestName, lim: lim, entries: files, close: func() error { return nil }}
	if files[d.name] == nil {
		d.name = manifestName
	}
	return d, d.document(d.name, &d.Manifest, deltaRequired...)
}

// Close closes the file that OpenDelta opened.
func (d *DeltaReader) Close() error { return d.close() }

func (d *DeltaReader) document(name string, v any, required ...string) error {
	r := Reader{lim: d.lim, entries: d.entries}
	return r.document(name, v, required...)
}

// Identity returns the new identity; nil where it did not change or is gone.
func (d *DeltaReader) Identity() (*Identity, error) {
	c := d.Manifest.Changes.Identity
	if c == nil || c.File == "" {
		return nil, nil
	}
	var id Identity
	return &id, d.document(c.File, &id)
}

// Principals returns the new principals; nil where they did not change or are
// gone.
func (d *DeltaReader) Principals() (*Principals, error) {
	c := d.Manifest.Changes.Principals
	if c == nil || c.File == "" {
		return nil, nil
	}
	var p Principals
	return &p, d.document(c.File, &p, "principals")
}

// Credentials returns the new credentials; nil where they did not change or are
// gone.
func (d *DeltaReader) Credentials() (*Credentials, error) {
	c := d.Manifest.Changes.Credentials
	if c == nil || c.File == "" {
		return nil, nil
	}
	var l Credentials
	return &l, d.document(c.File, &l, "credentials")
}

// Attachments returns the new list of attachments; nil where it did not change
// or is gone.
func (d *DeltaReader) Attachments() (*Attachments, error) {
	c := d.Manifest.Changes.Attachments
	if c == nil || c.File == "" {
		return nil, nil
	}
	var l Attachments
	return &l, d.document(c.File, &l, "attachments")
}

// Records yields the changes of records in order. After an error it ends. A
// deletion may have nothing but an id.
func (d *DeltaReader) Records() iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		c := d.Manifest.Changes.Memory
		if c == nil || c.File == "" {
			return
		}
		for at, text := range lines(d.entries[c.File], c.File, d.lim) {
			change, err := readChange(at, text)
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

func readChange(at lineAt, text []byte) (*Change, error) {
	if at.err != nil {
		return nil, at.err
	}
	var c Change
	if err := decode(text, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	whole := c.Operation == Create || c.Operation == Update
	if c.ID == uuid.Nil || whole && (c.AgentID == uuid.Nil || c.Temporal.CreatedAt.IsZero()) {
		return nil, memory.Errorf(memory.ErrInvalid, "%s: a change must have an id, and the whole record unless it deletes", at)
	}
	return &c, nil
}

// Verify is Reader.Verify for a delta.
func (d *DeltaReader) Verify() (ours bool, err error) {
	return verify(d.entries, d.name, d.Manifest.Checksum, d.Manifest.Agent.Exporter)
}
