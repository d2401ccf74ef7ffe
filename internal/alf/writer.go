package alf

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// entryTime is the time of every entry, so that the same contents are the same
// bytes.
var entryTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// packer writes the entries of a ZIP file and adds up their sums.
type packer struct {
	zip  *zip.Writer
	sums sums
}

func newPacker(out io.Writer) packer { return packer{zip.NewWriter(out), sums{}} }

// file writes one entry.
func (p packer) file(name string, from io.Reader) error {
	if err := CheckPath(name); err != nil {
		return err
	}
	if _, twice := p.sums[name]; twice {
		return memory.Errorf(memory.ErrInternal, "entry %s would stand twice in the archive", name)
	}
	w, err := p.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: entryTime})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, h), from); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	p.sums[name] = [sha256.Size]byte(h.Sum(nil))
	return nil
}

// document writes one JSON document.
func (p packer) document(name string, v any) error {
	text, err := document(v)
	if err != nil {
		return memory.Errorf(memory.ErrInternal, "encode %s: %w", name, err)
	}
	return p.file(name, bytes.NewReader(text))
}

// lines writes one entry of pieces.
func (p packer) lines(name string, s *spool, pieces []piece) error {
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.copyTo(w, pieces)
		done <- errors.Join(err, w.CloseWithError(err))
	}()
	err := p.file(name, r)
	return errors.Join(err, r.CloseWithError(err), <-done)
}

// Writer writes an archive as a stream: layers and files go out as they come,
// records wait in a temporary file until Finish, since a partition is written
// whole. It is not safe for concurrent use.
type Writer struct {
	packer
	tempDir    string
	spool      *spool
	quarters   map[Quarter][]piece
	embeddings bool
	layers     Layers
	raw        map[string]bool // runtimes
}

// NewWriter writes to out. The temporary file is made in tempDir, "" for the
// system's.
func NewWriter(out io.Writer, tempDir string) *Writer {
	return &Writer{packer: newPacker(out), tempDir: tempDir, quarters: map[Quarter][]piece{}, raw: map[string]bool{}}
}

// Identity writes the identity layer.
func (w *Writer) Identity(id Identity) error {
	w.layers.Identity = &IdentityLayer{Version: id.Version, File: identityName}
	return w.document(identityName, id)
}

// Principals writes the principals layer.
func (w *Writer) Principals(p Principals) error {
	w.layers.Principals = &CountedLayer{Count: len(p.Principals), File: principalsName}
	return w.document(principalsName, p)
}

// Credentials writes the credentials layer.
func (w *Writer) Credentials(c Credentials) error {
	w.layers.Credentials = &CountedLayer{Count: len(c.Credentials), File: credentialsName}
	return w.document(credentialsName, c)
}

// Attachments writes the list of attachments. The bytes of those that have an
// ArchivePath are written with File.
func (w *Writer) Attachments(a Attachments) error {
	l := &AttachmentLayer{Count: len(a.Attachments), File: attachmentsName}
	for _, x := range a.Attachments {
		if x.ArchivePath == nil {
			l.ReferencedCount++
			l.ReferencedSizeBytes += x.SizeBytes
		} else {
			l.IncludedCount++
			l.IncludedSizeBytes += x.SizeBytes
		}
	}
	w.layers.Attachments = l
	return w.document(attachmentsName, a)
}

// Raw writes a file of a runtime verbatim.
func (w *Writer) Raw(runtime, path string, from io.Reader) error {
	return w.File(rawPrefix+runtime+"/"+path, from)
}

// File writes an entry of the given name, such as raw/openclaw/SOUL.md.
func (w *Writer) File(name string, from io.Reader) error {
	if rest, raw := strings.CutPrefix(name, rawPrefix); raw {
		runtime, _, _ := strings.Cut(rest, "/")
		w.raw[runtime] = true
	}
	return w.file(name, from)
}

// Record adds a record to its quarter, in which records keep the order in which
// they are added.
func (w *Writer) Record(r *Record) error {
	text, err := line(r)
	if err != nil {
		return memory.Errorf(memory.ErrInternal, "encode record %s: %w", r.ID, err)
	}
	if w.spool == nil {
		if w.spool, err = newSpool(w.tempDir); err != nil {
			return err
		}
	}
	p, err := w.spool.add(append(text, '\n'))
	if err != nil {
		return err
	}
	q := r.Quarter()
	w.quarters[q] = append(w.quarters[q], p)
	w.embeddings = w.embeddings || len(r.Embeddings) > 0
	return nil
}

// Form says what the manifest tells beside what was written.
type Form struct {
	Parity bool // the members that the client alf writes, and no others: no checksum
	// CreatedAt is called with the checksum of the contents and returns the
	// manifest's time.
	CreatedAt func(checksum string) time.Time
}

// Finish writes the partitions and the manifest, and returns the manifest.
// Agent, Sync, RuntimeHints, RawSources and Unknown are the caller's; the rest is
// filled in. Members of its layers that the format does not know are kept.
func (w *Writer) Finish(m Manifest, form Form) (Manifest, error) {
	known := m.Layers
	m.ALFVersion = Version
	if err := w.partitions(form); err != nil {
		return Manifest{}, err
	}
	m.Layers = w.layers
	m.Layers.Unknown = known.Unknown
	if m.RawSources == nil {
		m.RawSources = slices.Sorted(maps.Keys(w.raw))
	}
	sum := w.sums.checksum()
	m.CreatedAt = At(form.CreatedAt(sum))
	m.Checksum, m.Agent.Exporter = sum, exporter
	if form.Parity {
		m.Checksum, m.Agent.Exporter = "", ""
	}
	if err := w.document(manifestName, m); err != nil {
		return Manifest{}, err
	}
	return m, w.zip.Close()
}

func (w *Writer) partitions(form Form) error {
	if len(w.quarters) == 0 {
		return nil
	}
	l := &MemoryLayer{IndexFile: indexName}
	if !form.Parity || w.embeddings {
		raw := len(w.raw) > 0
		l.HasEmbeddings, l.HasRawSource = &w.embeddings, &raw
	}
	for _, q := range slices.SortedFunc(maps.Keys(w.quarters), Quarter.compare) {
		if err := w.lines(q.File(), w.spool, w.quarters[q]); err != nil {
			return err
		}
		first, last := q.Days()
		l.Partitions = append(l.Partitions, Partition{File: q.File(), From: first, To: last, RecordCount: len(w.quarters[q])})
		l.RecordCount += len(w.quarters[q])
	}
	w.layers.Memory = l
	return nil
}

// Close gives the temporary file back. It is called once, after Finish or in
// place of it.
func (w *Writer) Close() error {
	if w.spool == nil {
		return nil
	}
	return w.spool.close()
}
