package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// ReadOptions are what reading a backup needs.
type ReadOptions struct {
	Temp   string // directory for the files of the archive; as private as a home
	Secret Secret
	Keeper Keeper
}

// Verified is what Verify found.
type Verified struct {
	File      string    `json:"file"`
	Ok        bool      `json:"ok"`
	Encrypted bool      `json:"encrypted"`
	Manifest  Manifest  `json:"manifest"`
	Databases int       `json:"databases" jsonschema:"that pass SQLite's integrity check"`
	Log       LogReport `json:"log"`
}

// LogReport says how the event log in a backup is. Damage and gaps stood in the
// agent's own log when it was backed up.
type LogReport struct {
	Events  int64 `json:"events"`
	LastSeq int64 `json:"last_seq"`
	Damage  int   `json:"damage" jsonschema:"places that hold no event"`
	Gaps    int   `json:"gaps" jsonschema:"ranges of seq of which no event is there"`
}

// Text says what was found to a person.
func (v Verified) Text() string {
	var sb strings.Builder
	m := v.Manifest
	fmt.Fprintf(&sb, "%s: agent %s of %s, written by openclawssy %s\n", v.File, m.Agent, m.CreatedAt.Format("2006-01-02 15:04 UTC"), m.Program)
	fmt.Fprintf(&sb, "  %d files, %d bytes: every checksum is right; %d databases are whole; %d events up to %d\n", len(m.Files), m.Bytes(), v.Databases, v.Log.Events, v.Log.LastSeq)
	if v.Log.Damage+v.Log.Gaps > 0 {
		fmt.Fprintf(&sb, "  ! the agent's log was damaged in %d places and had %d gaps when it was backed up\n", v.Log.Damage, v.Log.Gaps)
	}
	return sb.String()
}

// Verify reads a whole backup and checks it: every checksum, every database, the
// event log. It leaves nothing behind.
func Verify(ctx context.Context, file string, o ReadOptions) (_ Verified, err error) {
	stage, err := NewStage(o.Temp, stagePrefix)
	if err != nil {
		return Verified{}, err
	}
	defer func() { err = errors.Join(err, stage.Remove()) }()
	v, err := unpack(ctx, file, stage.Dir(), o)
	if err != nil {
		return Verified{}, fmt.Errorf("verify %s: %w", file, err)
	}
	return v, nil
}

// unpack writes the files of a backup below dir and checks them all.
func unpack(ctx context.Context, file, dir string, o ReadOptions) (_ Verified, err error) {
	in, err := openBackup(file)
	if err != nil {
		return Verified{}, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	st, err := in.Stat()
	if err != nil {
		return Verified{}, unavailable(err)
	}
	var done int64
	plain, encrypted, err := unseal(io.TeeReader(in, &ticker{ctx: ctx, done: &done, total: st.Size()}), o.Keeper, o.Secret)
	if err != nil {
		return Verified{}, err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Verified{}, unavailable(err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	m, err := extract(plain, root)
	if ctx.Err() != nil {
		return Verified{}, ctx.Err()
	}
	if err != nil {
		return Verified{}, err
	}
	v := Verified{File: file, Ok: true, Encrypted: encrypted, Manifest: m}
	if err := v.databases(ctx, dir); err != nil {
		return Verified{}, err
	}
	return v, v.log(ctx, dir)
}

func openBackup(file string) (*os.File, error) {
	st, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, memory.Errorf(memory.ErrNotFound, "there is no file %s", file)
	case err != nil:
		return nil, memory.Errorf(memory.ErrUnavailable, "read the backup: %w", err)
	case !st.Mode().IsRegular():
		return nil, memory.Errorf(memory.ErrInvalid, "%s is not a regular file", file)
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read the backup: %w", err)
	}
	return in, nil
}

// extract writes the entries of a tar stream below root, and holds them against
// the manifest at its end.
func extract(in io.Reader, root *os.Root) (Manifest, error) {
	t := tar.NewReader(in)
	var found []File
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return Manifest{}, damaged("it ends too early")
		}
		if err != nil {
			return Manifest{}, broken(err)
		}
		if h.Typeflag != tar.TypeReg {
			return Manifest{}, damaged("%q is no regular file", h.Name)
		}
		if h.Name == manifestName {
			m, err := readManifest(h, t)
			if err != nil {
				return Manifest{}, err
			}
			if err := m.match(found); err != nil {
				return Manifest{}, err
			}
			return m, ended(t, in)
		}
		name, inside := strings.CutPrefix(h.Name, agentPrefix)
		if !inside {
			return Manifest{}, damaged("it holds a file %q", h.Name)
		}
		if err := checkPath(name); err != nil {
			return Manifest{}, err
		}
		f, err := extractFile(root, name, t)
		if err != nil {
			return Manifest{}, err
		}
		found = append(found, f)
	}
}

// ended reads to the end of the stream: what protects it from change may have its
// last word there.
func ended(t *tar.Reader, in io.Reader) error {
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return damaged("something stands behind its manifest")
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return broken(err)
	}
	return nil
}

func extractFile(root *os.Root, name string, in io.Reader) (_ File, err error) {
	path := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return File{}, unavailable(err)
	}
	out, err := root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return File{}, damaged("%q stands in it twice", name)
	}
	if err != nil {
		return File{}, unavailable(err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(out, sum), in)
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return File{}, unavailable(err)
	}
	if err != nil {
		return File{}, broken(err)
	}
	return File{Path: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// match holds the files that were read against those that the manifest promises.
func (m Manifest) match(found []File) error {
	if len(found) != len(m.Files) {
		return damaged("it holds %d files, and its manifest names %d", len(found), len(m.Files))
	}
	for i, want := range m.Files {
		if found[i] != want {
			return damaged("%s is not as its manifest says", want.Path)
		}
	}
	return nil
}

// databases runs SQLite's integrity check on every database below dir.
func (v *Verified) databases(ctx context.Context, dir string) error {
	for _, f := range v.Manifest.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		is, err := sqlite.IsDatabase(path)
		if err != nil {
			return unavailable(err)
		}
		if !is {
			continue
		}
		if err := check(ctx, path, true); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		v.Databases++
	}
	return nil
}

// log reads the event log below dir. It must reach the event at which it was cut.
func (v *Verified) log(ctx context.Context, dir string) (err error) {
	r := journal.NewReader(filepath.Join(dir, filepath.FromSlash(eventsDir)))
	defer func() { err = errors.Join(err, r.Close()) }()
	rep, err := r.Verify(ctx, nil)
	if err != nil {
		return fmt.Errorf("read the event log: %w", err)
	}
	v.Log = LogReport{Events: rep.Lines, LastSeq: rep.LastSeq, Damage: len(rep.Damage), Gaps: len(rep.Gaps)}
	return nil
}
