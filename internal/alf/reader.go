package alf

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Reader reads an archive. It is safe for concurrent use.
type Reader struct {
	manifest Manifest
	lim      Limits
	size     int64
	entries  map[string]*zip.File
	close    func() error
}

// Open opens the archive in a file. It refuses what is no archive (ErrCorrupt,
// ErrInvalid), what is over the limits and what names unsafe paths, and a
// .alf-delta. Layers are read, and checked, when they are asked for.
func Open(path string, lim Limits) (*Reader, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f, size, lim)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), f.Close())
	}
	r.close = f.Close
	return r, nil
}

func openFile(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, memory.Errorf(memory.ErrNotFound, "there is no file %s", path)
	}
	if err != nil {
		return nil, 0, memory.Errorf(memory.ErrUnavailable, "open archive: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = memory.Errorf(memory.ErrInvalid, "%s is not a regular file", path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}

// NewReader reads an archive of the given size in bytes from in, as Open does.
func NewReader(in io.ReaderAt, size int64, lim Limits) (*Reader, error) {
	var f findings
	files, err := unzip(in, size, lim, &f)
	if err != nil {
		return nil, err
	}
	if err := f.first(); err != nil {
		return nil, err
	}
	if isDelta(files) {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "it is a delta, not an archive"), "apply it to its base with openclawssy alf apply BASE DELTA --output NEW")
	}
	r := &Reader{lim: lim, size: size, entries: files, close: func() error { return nil }}
	if err := r.document(manifestName, &r.manifest, manifestRequired...); err != nil {
		return nil, err
	}
	return r, nil
}

// unzip reads the directory of a ZIP file and checks its entries.
func unzip(in io.ReaderAt, size int64, lim Limits, f *findings) (map[string]*zip.File, error) {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return nil, memory.WithHint(memory.Errorf(memory.ErrCorrupt, "not a whole ZIP archive: %s", plain(err)), "the file may be cut off: copy it again")
	}
	return entries(z, size, lim, f), nil
}

// Close closes the file that Open opened.
func (r *Reader) Close() error { return r.close() }

// Manifest returns the manifest.
func (r *Reader) Manifest() Manifest { return r.manifest }

// document decodes one entry, whose required members must be there.
func (r *Reader) document(name string, v any, required ...string) error {
	e := r.entries[name]
	if e == nil {
		return memory.Errorf(memory.ErrInvalid, "the archive has no %s", name)
	}
	text, err := readDocument(e, r.lim)
	if err != nil {
		return err
	}
	var f findings
	f.required(name, text, required)
	if err := f.first(); err != nil {
		return err
	}
	if err := decode(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Identity returns the identity; nil where the archive has none.
func (r *Reader) Identity() (*Identity, error) {
	l := r.manifest.Layers.Identity
	if l == nil {
		return nil, nil
	}
	var id Identity
	return &id, r.document(l.File, &id)
}

// Principals returns the principals; nil where the archive has none.
func (r *Reader) Principals() (*Principals, error) {
	l := r.manifest.Layers.Principals
	if l == nil {
		return nil, nil
	}
	var p Principals
	return &p, r.document(l.File, &p, "principals")
}

// Credentials returns the credentials; nil where the archive has none.
func (r *Reader) Credentials() (*Credentials, error) {
	l := r.manifest.Layers.Credentials
	if l == nil {
		return nil, nil
	}
	var c Credentials
	return &c, r.document(l.File, &c, "credentials")
}

// Attachments returns the list of attachments; nil where the archive has none.
func (r *Reader) Attachments() (*Attachments, error) {
	l := r.manifest.Layers.Attachments
	if l == nil {
		return nil, nil
	}
	var a Attachments
	return &a, r.document(l.File, &a, "attachments")
}

// Records yields the records in the order of the partitions. After an error it
// ends.
func (r *Reader) Records() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		if r.manifest.Layers.Memory == nil {
			return
		}
		for _, p := range r.manifest.Layers.Memory.Partitions {
			for at, text := range lines(r.entries[p.File], p.File, r.lim) {
				rec, err := readRecord(at, text)
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}
	}
}

// readRecord decodes one line and refuses a record that nobody could place.
func readRecord(at lineAt, text []byte) (*Record, error) {
	if at.err != nil {
		return nil, at.err
	}
	var rec Record
	if err := decode(text, &rec); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if rec.ID == uuid.Nil || rec.AgentID == uuid.Nil || rec.Temporal.CreatedAt.IsZero() {
		return nil, memory.Errorf(memory.ErrInvalid, "%s: a record must have id, agent_id and temporal.created_at", at)
	}
	return &rec, nil
}

// lineAt is a line of an entry, or why there is none.
type lineAt struct {
	entry  string
	number int
	err    error
}

func (l lineAt) String() string { return fmt.Sprintf("%s:%d", l.entry, l.number) }

// lines yields the lines of an entry that are not blank, without their breaks.
// The text is good until the next line. e is nil for an entry that is not there.
func lines(e *zip.File, name string, lim Limits) iter.Seq2[lineAt, []byte] {
	return func(yield func(lineAt, []byte) bool) {
		if e == nil {
			yield(lineAt{entry: name, err: memory.Errorf(memory.ErrInvalid, "the archive has no %s", name)}, nil)
			return
		}
		in, err := e.Open()
		if err != nil {
			yield(lineAt{entry: name, err: damaged(name, err)}, nil)
			return
		}
		defer in.Close()
		scan := bufio.NewScanner(in)
		scan.Buffer(make([]byte, 0, 64<<10), lim.Line)
		number := 0
		for scan.Scan() {
			number++
			if text := bytes.TrimSpace(scan.Bytes()); len(text) > 0 && !yield(lineAt{entry: name, number: number}, text) {
				return
			}
		}
		switch err := scan.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(lineAt{entry: name, err: memory.Errorf(memory.ErrInvalid, "%s:%d: a record is longer than %d bytes", name, number+1, lim.Line)}, nil)
		case err != nil:
			yield(lineAt{entry: name, err: damaged(name, err)}, nil)
		}
	}
}

// File is one file that an archive holds verbatim.
type File struct {
	Path string // below its prefix, with slashes
	Size int64
	zip  *zip.File
}

// Open reads the file. Its bytes are checked against the archive's CRC at the
// end.
func (f File) Open() (io.ReadCloser, error) {
	in, err := f.zip.Open()
	if err != nil {
		return nil, damaged(f.zip.Name, err)
	}
	return in, nil
}

// Bytes reads the whole file.
func (f File) Bytes() ([]byte, error) {
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, errors.Join(damaged(f.zip.Name, err), in.Close())
	}
	return text, in.Close()
}

// Raw returns the files that came from a runtime ("openclaw"), by path.
func (r *Reader) Raw(runtime string) []File { return filesBelow(r.entries, rawPrefix+runtime+"/") }

// Artifacts returns the included attachments, by path.
func (r *Reader) Artifacts() []File { return filesBelow(r.entries, artifactPrefix) }

// extra returns the entries that no layer names, so that a copy keeps them.
func (r *Reader) extra() []File {
	var out []File
	for _, f := range filesBelow(r.entries, "") {
		if !r.layered(f.Path) {
			out = append(out, f)
		}
	}
	return out
}

// layered reports whether an entry is the manifest or one that it names.
func (r *Reader) layered(name string) bool {
	l := r.manifest.Layers
	switch {
	case name == manifestName, l.Identity != nil && l.Identity.File == name, l.Principals != nil && l.Principals.File == name,
		l.Credentials != nil && l.Credentials.File == name, l.Attachments != nil && l.Attachments.File == name:
		return true
	}
	return l.Memory != nil && (l.Memory.IndexFile == name || slices.ContainsFunc(l.Memory.Partitions, func(p Partition) bool { return p.File == name }))
}

func filesBelow(entries map[string]*zip.File, prefix string) []File {
	var out []File
	for name, e := range entries {
		if path, below := strings.CutPrefix(name, prefix); below {
			out = append(out, File{Path: path, Size: int64(e.UncompressedSize64), zip: e})
		}
	}
	slices.SortFunc(out, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return out
}
