package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const headName = "journal.head"

// head says where the durable log ends. Writers keep it in the file that they
// lock, and trust it as far as it fits the segment: a writer that was killed
// leaves a segment longer than its head, a power cut may leave an old head.
// Only one thing always holds: no segment is newer than the head's, since a
// head is written and made durable before a new segment is created.
type head struct {
	File string `json:"file"` // newest segment; "" for none
	Size int64  `json:"size"` // of its durable part
	Last int64  `json:"last"` // seq of the last durable line; 0 for none
}

// readHead reads the head from an open head file; false if there is none that
// is whole.
func readHead(file *os.File) (head, bool, error) {
	var buf [256]byte
	n, err := file.ReadAt(buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return head{}, false, err
	}
	line, _, whole := bytes.Cut(buf[:n], []byte("\n"))
	if !whole {
		return head{}, false, nil
	}
	var h head
	if _, reason := unseal(line); reason != "" || json.Unmarshal(line, &h) != nil {
		return head{}, false, nil
	}
	return h, true, nil
}

// write replaces the head. It is shorter than a disk's block and checked when
// read, so it needs no second file.
func (h head) write(file *os.File) error {
	object, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(appendSealed(nil, object, 1), 0)
	return err
}

// lock takes the exclusive lock of a head file and waits for it as long as it
// takes. Locks are held for the length of one group, and the system frees the
// lock of a process that dies.
func lock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("flock", err)
		}
	}
}

// tryLock takes the lock without waiting; false where another has it.
func tryLock(file *os.File, how int) (bool, error) {
	for {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return err == nil, os.NewSyscallError("flock", err)
		}
	}
}

func unlock(file *os.File) error {
	return os.NewSyscallError("flock", unix.Flock(int(file.Fd()), unix.LOCK_UN))
}

// lockContext takes the exclusive lock, or gives up when ctx is done.
func lockContext(ctx context.Context, file *os.File) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		got, err := tryLock(file, unix.LOCK_EX)
		if got || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// removed reports whether the open file has lost its name.
func removed(file *os.File) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return false, os.NewSyscallError("fstat", err)
	}
	return st.Nlink == 0, nil
}
