//go:build !linux

package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// renameNew renames a directory to a name that must be free.
func renameNew(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return memory.Errorf(memory.ErrConflict, "%s has appeared meanwhile", to)
	}
	return unavailableOrNil(os.Rename(from, to))
}

// exchange lets two directories change their places.
func exchange(a, b string) error { return exchangeInSteps(a, b) }

// syncTree makes the files below a directory durable.
func syncTree(path string) error {
	return filepath.WalkDir(path, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(at)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
