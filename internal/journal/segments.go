package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	segmentDay    = "2006-01-02"
	segmentSuffix = ".jsonl"
	tornSuffix    = ".torn"
)

// segmentName names the segment of t's UTC day. Names sort in the order of days.
func segmentName(t time.Time) string { return t.UTC().Format(segmentDay) + segmentSuffix }

func isSegment(name string) bool {
	day, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok {
		return false
	}
	_, err := time.Parse(segmentDay, day)
	return err == nil
}

// directory is an open journal directory. Nothing outside of it can be reached
// through it, and only regular files are opened.
type directory struct {
	root *os.Root
	path string // for messages
}

// openDirectory opens a directory that exists.
func openDirectory(path string) (*directory, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &directory{root: root, path: path}, nil
}

// makeDirectory creates path and what is missing above it, readable by the
// owner only, so that it survives a power cut.
func makeDirectory(path string) error {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	above := filepath.Dir(path)
	if err := makeDirectory(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncPath(above)
}

func syncPath(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d *directory) close() error { return d.root.Close() }

// sync makes the directory's own entries durable.
func (d *directory) sync() error {
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// open opens a file of the directory; every file of a journal is opened here.
// A symbolic link, device, directory or pipe is refused.
func (d *directory) open(name string, flag int) (*os.File, error) {
	file, err := d.root.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		if info, statErr := d.root.Lstat(name); statErr == nil && !info.Mode().IsRegular() {
			return nil, d.irregular(name)
		}
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = d.irregular(name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (d *directory) irregular(name string) error {
	return &memory.CorruptError{Path: filepath.Join(d.path, name), Offset: -1, Reason: "it is not a regular file"}
}

// list returns the names of the files with that property, in order.
func (d *directory) list(keep func(name string) bool) ([]string, error) {
	dir, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !keep(name) })
	slices.Sort(names)
	return names, nil
}

// segments returns the names of the segments in order, packed ones by the name
// that they had before.
func (d *directory) segments() ([]string, error) {
	names, err := d.list(func(name string) bool { return isSegment(strings.TrimSuffix(name, packedSuffix)) })
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], packedSuffix)
	}
	return slices.Compact(names), err
}

func isTorn(name string) bool { return strings.HasSuffix(name, tornSuffix) }

// setAside copies the bytes of a segment from an offset on into a new .torn
// file, makes it durable and returns its name.
func (d *directory) setAside(segment string, file *os.File, from, size int64) (string, error) {
	torn, err := d.createTorn(segment, from)
	if err != nil {
		return "", err
	}
	name := filepath.Base(torn.Name())
	_, err = io.Copy(torn, io.NewSectionReader(file, from, size-from))
	if err = errors.Join(err, torn.Sync(), torn.Close()); err != nil {
		return "", errors.Join(err, d.root.Remove(name))
	}
	return name, d.sync()
}

// createTorn creates a file for bytes that stood in segment at that offset. A
// second tear in the same place gets a number.
func (d *directory) createTorn(segment string, offset int64) (*os.File, error) {
	name := fmt.Sprintf("%s.%d", segment, offset)
	for n := 2; ; n++ {
		file, err := d.open(name+tornSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
		name = fmt.Sprintf("%s.%d-%d", segment, offset, n)
	}
}
