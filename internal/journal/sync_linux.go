package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the contents of a file durable, and of its metadata what is
// needed to read them.
func syncData(file *os.File) error {
	for {
		err := unix.Fdatasync(int(file.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// dropCache asks the system to forget what it holds of a file in memory, so
// that the next read shows what is on the disk.
func dropCache(file *os.File) error {
	return os.NewSyscallError("fadvise", unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED))
}
