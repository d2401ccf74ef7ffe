package backup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// renameNew renames a directory to a name that must be free.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return memory.Errorf(memory.ErrConflict, "%s has appeared meanwhile", to)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system that cannot
		err = os.Rename(from, to) // refuses where a directory with something in it has that name
	}
	return unavailableOrNil(err)
}

// exchange lets two directories change their places, in one step.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return exchangeInSteps(a, b)
	}
	return unavailableOrNil(err)
}

// syncTree makes the files below a directory durable.
func syncTree(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("syncfs", unix.Syncfs(int(dir.Fd()))), dir.Close())
}
