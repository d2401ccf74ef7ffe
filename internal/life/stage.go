package life

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// stageDir holds, in the workspace, what an import is about to put in place, and
// the journal by which the next import takes back one that was cut off.
const stageDir = ".alf-import"

const journalName = stageDir + "/journal.json"

// fileMode is the mode of every file that is written into a workspace.
const fileMode = os.FileMode(0o600)

// journal is what is needed to take an import back.
type journal struct {
	Backup string  `json:"backup"` // below the directory of what is kept; "" for none
	Moves  []moved `json:"moves"`
}

// moved is one file that an import puts in place or takes away.
type moved struct {
	Path    string `json:"path"`
	Staged  string `json:"staged,omitempty"` // "" for a removal
	Existed bool   `json:"existed"`
}

// apply does what is planned: stage, back up, then put in place. On an error
// everything is as it was.
func (i *importing) apply(ctx context.Context) (err error) {
	root := i.w.Root()
	if err := root.Mkdir(stageDir, 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "make a place for the new files: %w", err)
	}
	cleanUp := func() error { return root.RemoveAll(stageDir) }
	j, err := i.stage(ctx)
	if err == nil {
		err = i.backUp(&j)
	}
	if err == nil {
		err = i.unchanged()
	}
	if err != nil {
		return errors.Join(err, cleanUp())
	}
	if len(j.Moves) == 0 {
		return errors.Join(i.rows(ctx), cleanUp())
	}
	if err := i.journal(j); err != nil {
		return errors.Join(err, cleanUp())
	}
	err = i.swap(j)
	if err == nil {
		err = i.rows(ctx)
	}
	if err != nil {
		if back := i.takeBack(j); back != nil {
			return memory.WithHint(errors.Join(err, back), "the files as they were are in "+i.done.Backup)
		}
		return errors.Join(err, cleanUp())
	}
	return cleanUp()
}

// journal writes down what is about to be put in place. It is whole or not
// there: half a journal would keep the next import from taking this one back.
func (i *importing) journal(j journal) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	name := journalName + ".new"
	if err := i.stageFile(name, target{text: string(text)}); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if err := i.w.Root().Rename(name, journalName); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write the journal: %w", err)
	}
	return nil
}

// stage writes all new files beside their places.
func (i *importing) stage(ctx context.Context) (journal, error) {
	j := journal{}
	put := func(t target, existed bool) error {
		name := fmt.Sprintf("%s/%d", stageDir, len(j.Moves))
		if err := i.stageFile(name, t); err != nil {
			return fmt.Errorf("write %s: %w", t.path, err)
		}
		j.Moves = append(j.Moves, moved{t.path, name, existed})
		return nil
	}
	for _, s := range i.done.Files {
		if err := ctx.Err(); err != nil {
			return j, err
		}
		if s.Action == Removed {
			j.Moves = append(j.Moves, moved{Path: s.Path, Existed: true})
			continue
		}
		if s.write {
			if err := put(s.content, s.was.exists); err != nil {
				return j, err
			}
		}
		if s.Beside != "" {
			if err := put(s.beside, false); err != nil {
				return j, err
			}
		}
	}
	return j, i.stageAgent(&j)
}

// stageAgent gives the workspace the agent's id, unless it has one and keeps it.
func (i *importing) stageAgent(j *journal) error {
	id := i.r.Manifest().Agent.ID
	mine, found, err := agentID(i.w)
	if found && (mine == id || i.Mode != Replace) {
		return nil
	}
	if err != nil && i.Mode != Replace {
		return err
	}
	_, statErr := i.w.Root().Lstat(agentFile)
	name := fmt.Sprintf("%s/%d", stageDir, len(j.Moves))
	if err := i.stageFile(name, target{text: id.String()}); err != nil {
		return err
	}
	j.Moves = append(j.Moves, moved{agentFile, name, statErr == nil})
	return nil
}

func (i *importing) stageFile(name string, t target) (err error) {
	in, err := t.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := i.w.Root().OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	if t.modified.IsZero() {
		return nil
	}
	return i.w.Root().Chtimes(name, t.modified, t.modified)
}

// backUp copies what is about to be replaced or taken away.
func (i *importing) backUp(j *journal) error {
	if !slices.ContainsFunc(j.Moves, func(m moved) bool { return m.Existed }) {
		return nil
	}
	j.Backup = filepath.Join(i.r.Manifest().Agent.ID.String(), "backups", i.Now().UTC().Format("20060102T150405.000000000Z"))
	i.done.Backup = filepath.Join(i.Keep.Dir, j.Backup)
	if err := os.MkdirAll(i.done.Backup, 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "make a backup: %w", err)
	}
	backup, err := os.OpenRoot(i.done.Backup)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "make a backup: %w", err)
	}
	for _, m := range j.Moves {
		if m.Existed && err == nil {
			err = copyBetween(i.w.Root(), m.Path, backup, m.Path)
		}
	}
	return errors.Join(err, backup.Close())
}

// copyBetween copies a file with its times, making directories on the way.
func copyBetween(from *os.Root, src string, to *os.Root, dst string) (err error) {
	in, err := from.Open(filepath.FromSlash(src))
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "copy %s: %w", src, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	st, err := in.Stat()
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "copy %s: %w", src, err)
	}
	name := filepath.FromSlash(dst)
	if err := to.MkdirAll(filepath.FromSlash(path.Dir(dst)), 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "copy %s: %w", src, err)
	}
	out, err := to.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "copy %s: %w", src, err)
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = to.Chtimes(name, st.ModTime(), st.ModTime())
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "copy %s: %w", src, err)
	}
	return nil
}

// unchanged checks that the workspace is still as it was when it was planned
// for.
func (i *importing) unchanged() error {
	for _, s := range i.done.Files {
		now, err := i.look(s.Path)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
		if now.exists != s.was.exists || now.sum != s.was.sum {
			return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s changed while the import was prepared", s.Path), "nothing was imported: run it again")
		}
	}
	return nil
}

// swap puts the staged files in place.
func (i *importing) swap(j journal) error {
	root := i.w.Root()
	for _, m := range j.Moves {
		name := filepath.FromSlash(m.Path)
		var err error
		switch {
		case m.Staged == "":
			err = root.Remove(name)
		default:
			if err = root.MkdirAll(filepath.FromSlash(path.Dir(m.Path)), 0o700); err == nil {
				err = root.Rename(m.Staged, name)
			}
		}
		if err != nil {
			return memory.Errorf(memory.ErrUnavailable, "put %s in place: %w", m.Path, err)
		}
	}
	return nil
}

// takeBack makes the workspace what it was before an import. It may be run again.
func (i *importing) takeBack(j journal) error {
	root := i.w.Root()
	var backup *os.Root
	if j.Backup != "" {
		if !filepath.IsLocal(j.Backup) {
			return memory.Errorf(memory.ErrDenied, "the journal names a backup elsewhere: %s", j.Backup)
		}
		var err error
		if backup, err = os.OpenRoot(filepath.Join(i.Keep.Dir, j.Backup)); err != nil {
			return memory.Errorf(memory.ErrUnavailable, "open the backup: %w", err)
		}
		defer backup.Close()
	}
	var errs []error
	for _, m := range j.Moves {
		if m.Existed {
			if backup == nil {
				return memory.Errorf(memory.ErrCorrupt, "the journal names no backup")
			}
			errs = append(errs, copyBetween(backup, m.Path, root, m.Path))
			continue
		}
		if _, err := root.Lstat(m.Staged); err == nil {
			continue // it never came to its place
		}
		if err := root.Remove(filepath.FromSlash(m.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, memory.Errorf(memory.ErrUnavailable, "take %s back: %w", m.Path, err))
		}
	}
	return errors.Join(errs...)
}

// recover takes back an import that was cut off.
func (i *importing) recover() error {
	root := i.w.Root()
	text, err := root.ReadFile(journalName)
	if errors.Is(err, fs.ErrNotExist) {
		return root.RemoveAll(stageDir) // cut off before anything was put in place
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err == nil {
		err = i.takeBack(j)
	}
	if err != nil {
		return memory.WithHint(fmt.Errorf("take back an import that was cut off: %w", err), "what it replaced is in "+filepath.Join(i.Keep.Dir, j.Backup)+"; put it back by hand and remove "+stageDir)
	}
	i.want.warn("an earlier import had been cut off, and was taken back first")
	return root.RemoveAll(stageDir)
}
