package alf

import (
	"bufio"
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// WriteFile makes a file (0600) of what write writes, and returns its size. It
// is there whole or not at all; one of that name is replaced.
func WriteFile(path string, write func(io.Writer) error) (size int64, err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o600))
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "write %s: %w", path, err)
	}
	defer func() {
		if cleanErr := f.Cleanup(); err == nil {
			err = cleanErr
		}
	}()
	out := bufio.NewWriterSize(f, 256<<10)
	if err := write(out); err != nil {
		return 0, err
	}
	if err := out.Flush(); err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "write %s: %w", path, err)
	}
	if size, err = f.Seek(0, io.SeekEnd); err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "write %s: %w", path, err)
	}
	return size, nil
}
