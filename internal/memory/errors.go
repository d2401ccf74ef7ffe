package memory

import (
	"errors"
	"fmt"
	"syscall"
)

// Kind is the class of an error, the only thing that a face needs to know to
// choose an exit status, an HTTP status or an MCP answer. It is itself an
// error, so that errors.Is(err, ErrNotFound) works on whatever wraps it.
type Kind string

// The kinds of error. Anything that wraps none of them is Internal.
const (
	ErrInvalid     Kind = "invalid"     // the caller's input breaks a rule
	ErrNotFound    Kind = "not_found"   // what the input names is not there
	ErrConflict    Kind = "conflict"    // the state changed, or forbids the request
	ErrDenied      Kind = "denied"      // a policy forbids the request
	ErrUnavailable Kind = "unavailable" // a model, disk or lock is not to be had now; trying again may work
	ErrCorrupt     Kind = "corrupt"     // stored data is damaged
	ErrInternal    Kind = "internal"    // a defect
)

// Error returns the kind's name.
func (k Kind) Error() string { return string(k) }

var kinds = []Kind{ErrInvalid, ErrNotFound, ErrConflict, ErrDenied, ErrUnavailable, ErrCorrupt, ErrInternal}

// refusals are what a system says when it is out of something, or broken, which
// is nobody's mistake.
var refusals = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO}

// HasKind reports whether err wraps a kind, so that errors.Is finds it.
func HasKind(err error) bool {
	_, has := wrapped(err)
	return has
}

func wrapped(err error) (Kind, bool) {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return k, true
		}
	}
	return "", false
}

// KindOf returns the kind that err wraps, and "" for nil. Of those that wrap none,
// a refusal of the system is ErrUnavailable, and all others are ErrInternal.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if k, has := wrapped(err); has {
		return k
	}
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return ErrUnavailable
		}
	}
	return ErrInternal
}

// FieldError names the input field at fault and the rule that it breaks.
type FieldError struct {
	Field  string // JSON name of the field; for nested input a path such as items[2].kind
	Reason string // reads on from the field: "must be between 1 and 5"
	Hint   string // what to do about it; may be empty
}

func (e *FieldError) Error() string { return e.Field + " " + e.Reason }

// Unwrap makes every FieldError an ErrInvalid.
func (e *FieldError) Unwrap() error { return ErrInvalid }

// CorruptError says which file is damaged, and where.
type CorruptError struct {
	Path   string
	Offset int64 // byte offset of the first damaged byte; -1 if not known
	Reason string
}

func (e *CorruptError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s is damaged: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s is damaged at byte %d: %s", e.Path, e.Offset, e.Reason)
}

// Unwrap makes every CorruptError an ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// hinted is an error with a line for the user on what to do next.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// WithHint adds to err a line for the user on what to do next.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &hinted{err: err, hint: hint}
}

// HintOf returns the outermost hint of err, or "".
func HintOf(err error) string {
	var h *hinted
	if errors.As(err, &h) {
		return h.hint
	}
	var f *FieldError
	if errors.As(err, &f) {
		return f.Hint
	}
	return ""
}

// FieldOf returns the input field that err names, or "".
func FieldOf(err error) string {
	var f *FieldError
	if errors.As(err, &f) {
		return f.Field
	}
	return ""
}

// Errorf formats an error of the given kind. The kind's name is not part of the
// text; use %w for a cause whose own kind should be seen as well.
func Errorf(kind Kind, format string, args ...any) error {
	return &kinded{kind: kind, err: fmt.Errorf(format, args...)}
}

type kinded struct {
	kind Kind
	err  error
}

func (k *kinded) Error() string   { return k.err.Error() }
func (k *kinded) Unwrap() []error { return []error{k.kind, k.err} }
