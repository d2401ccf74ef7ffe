package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestRefusalsOfTheSystem(t *testing.T) {
	for err, want := range map[error]Kind{
		&fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}:               ErrUnavailable,
		fmt.Errorf("read: %w", syscall.EIO):                                     ErrUnavailable,
		Errorf(ErrNotFound, "look for it: %w", syscall.ENOSPC):                  ErrNotFound,
		&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}:               ErrInternal,
		errors.Join(errors.New("first"), fmt.Errorf("then: %w", syscall.EROFS)): ErrUnavailable,
	} {
		if got := KindOf(err); got != want {
			t.Errorf("KindOf(%v) = %s, want %s", err, got, want)
		}
	}
}
