package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Change is what became of a client's configuration.
type Change struct {
	Client  Client `json:"client"`
	File    string `json:"file" jsonschema:"the client's file"`
	Changed bool   `json:"changed" jsonschema:"false: it was as it should be"`
	Created bool   `json:"created" jsonschema:"the file was not there before"`
	Removed bool   `json:"removed" jsonschema:"the file is gone, as before the setup"`
	Exact   bool   `json:"exact" jsonschema:"of an undo: the file is to the byte as before the setup"`
	Backup  string `json:"backup,omitempty" jsonschema:"copy of the file as it was before the setup"`
}

// record is what a setup leaves for its undo.
type record struct {
	File    string `json:"file"`
	Existed bool   `json:"existed"`
	Wrote   string `json:"wrote"` // SHA-256 of the file as the setup left it
}

// Setup sets up clients.
type Setup struct {
	Place Place
	// Dir is a directory for backups and what an undo needs; it is made when needed.
	Dir string
}

func (s Setup) recordFile(c Client) string { return filepath.Join(s.Dir, string(c)+".json") }

func (s Setup) backupFile(c Client) string { return filepath.Join(s.Dir, string(c)+".before") }

// Apply writes the server into a client's configuration. A second time it changes
// nothing. The file keeps its mode, a new one is 0600; a link is followed.
func (s Setup) Apply(c Client, server Server) (Change, error) {
	f, err := c.form(s.Place)
	if err != nil {
		return Change{}, err
	}
	change := Change{Client: c, File: f.file}
	text, existed, err := read(f.file)
	if err != nil {
		return change, err
	}
	out, err := f.with(text, server)
	if err != nil {
		return change, memory.WithHint(wrap(f.file, err), memory.HintOf(err))
	}
	out = withEndings(text, out)
	if existed && bytes.Equal(out, text) {
		return change, nil
	}
	change.Changed, change.Created = true, !existed
	kept, err := s.record(c)
	if err != nil {
		return change, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return change, memory.Errorf(memory.ErrUnavailable, "keep what was there: %w", err)
	}
	// What is kept is the file before the first setup, for as long as nobody else
	// changes it.
	if kept.File != f.file || kept.Wrote != sum(text) {
		kept = record{File: f.file, Existed: existed}
		if err := renameio.WriteFile(s.backupFile(c), text, 0o600); err != nil {
			return change, memory.Errorf(memory.ErrUnavailable, "keep what was there: %w", err)
		}
	}
	kept.Wrote = sum(out)
	if kept.Existed {
		change.Backup = s.backupFile(c)
	}
	raw, err := json.Marshal(kept)
	if err == nil {
		err = renameio.WriteFile(s.recordFile(c), raw, 0o600)
	}
	if err != nil {
		return change, memory.Errorf(memory.ErrUnavailable, "keep what was there: %w", err)
	}
	return change, write(f.file, text, out)
}

// withEndings returns out with the line ends of text, where all of those are CRLF.
func withEndings(text, out []byte) []byte {
	crlf := bytes.Count(text, []byte("\r\n"))
	if crlf == 0 || crlf != bytes.Count(text, []byte("\n")) {
		return out
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
}

// Undo takes the server out of a client's configuration. A file that nobody
// changed since is to the byte as before; of another one our entry alone goes.
func (s Setup) Undo(c Client) (Change, error) {
	f, err := c.form(s.Place)
	if err != nil {
		return Change{}, err
	}
	change := Change{Client: c, File: f.file}
	text, existed, err := read(f.file)
	if err != nil || !existed {
		return change, err
	}
	kept, err := s.record(c)
	if err != nil {
		return change, err
	}
	if kept.File == f.file && kept.Wrote == sum(text) {
		return s.restore(c, kept, change, text)
	}
	out, had, err := f.without(text)
	if err != nil {
		return change, memory.WithHint(wrap(f.file, err), memory.HintOf(err))
	}
	if !had {
		return change, nil
	}
	change.Changed = true
	return change, errors.Join(write(f.file, text, out), s.forget(c))
}

// restore puts back what was there before the setup.
func (s Setup) restore(c Client, kept record, change Change, text []byte) (Change, error) {
	change.Changed, change.Exact = true, true
	if !kept.Existed {
		change.Removed = true
		if err := os.Remove(change.File); err != nil {
			return change, memory.Errorf(memory.ErrUnavailable, "remove %s: %w", change.File, err)
		}
		return change, s.forget(c)
	}
	before, err := os.ReadFile(s.backupFile(c))
	if err != nil {
		return change, memory.Errorf(memory.ErrUnavailable, "read what was there: %w", err)
	}
	return change, errors.Join(write(change.File, text, before), s.forget(c))
}

// forget removes what was left for an undo.
func (s Setup) forget(c Client) error {
	for _, name := range []string{s.recordFile(c), s.backupFile(c)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "tidy up: %w", err)
		}
	}
	return nil
}

// record reads what a setup left; the zero record for nothing.
func (s Setup) record(c Client) (record, error) {
	raw, err := os.ReadFile(s.recordFile(c))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return record{}, memory.WithHint(memory.Errorf(memory.ErrCorrupt, "%s: %w", s.recordFile(c), err), "delete it; an undo then takes out our entry alone")
	}
	return r, nil
}

func sum(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

func wrap(file string, err error) error {
	return memory.Errorf(memory.KindOf(err), "%s: %w", file, err)
}

// read returns a file's text, and whether there is such a file.
func read(name string) ([]byte, bool, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	return text, true, nil
}

// write replaces a file that should still be as it was read.
func write(name string, was, text []byte) error {
	mode := fs.FileMode(0o600)
	target, err := filepath.EvalSymlinks(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target = name
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
		}
	case err != nil:
		return memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
	default:
		info, err := os.Stat(target)
		if err != nil {
			return memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
		}
		mode = info.Mode().Perm()
	}
	now, _, err := read(target)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, was) {
		return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s was changed by another program just now", name), "try again; nothing was changed")
	}
	if err := renameio.WriteFile(target, text, mode, renameio.WithStaticPermissions(mode)); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
	}
	return nil
}
