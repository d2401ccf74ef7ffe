package mirror

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// editAttempts is how often a file that others change meanwhile is tried again.
const editAttempts = 5

// tempSuffix ends the names of files that are not yet in their place.
const tempSuffix = ".tmp"

// largestEdited bounds the files that are changed in their middle.
const largestEdited = 16 << 20

// folder is a directory whose files are written, never outside of it.
type folder struct {
	root *os.Root
	// target finds what a path leads to; ErrNotFound if there is nothing.
	target func(name string) (string, error)
	newID  func() string
}

// edit replaces a file's text by what change makes of it, at once: others see the
// old text or the new one. Where the file was changed meanwhile it is tried again
// on the new text. It reports whether anything changed. A missing file has the
// text "", and is made unless it stays so.
func (f folder) edit(name string, change func(text string) (string, error)) (bool, error) {
	for range editAttempts {
		place, text, mode, err := f.read(name)
		if err != nil {
			return false, err
		}
		next, err := change(text)
		if err != nil || next == text {
			return false, err
		}
		done, err := f.replace(place, text, next, mode)
		if err != nil {
			return false, memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
		}
		if done {
			return true, nil
		}
	}
	return false, memory.WithHint(memory.Errorf(memory.ErrConflict, "%s keeps changing while it is written", name), "nothing was written; try again")
}

// read returns a file's place, text and mode.
func (f folder) read(name string) (place, text string, mode fs.FileMode, err error) {
	place, err = f.target(name)
	if errors.Is(err, memory.ErrNotFound) {
		return name, "", 0o600, nil
	}
	if err != nil {
		return "", "", 0, err
	}
	in, err := f.root.OpenFile(place, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", "", 0, memory.Errorf(memory.ErrUnavailable, "read %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	st, err := in.Stat()
	switch {
	case err != nil:
		return "", "", 0, memory.Errorf(memory.ErrUnavailable, "read %s: %w", name, err)
	case !st.Mode().IsRegular() || st.Size() > largestEdited:
		return "", "", 0, memory.Errorf(memory.ErrInvalid, "%s is no file that can be written into", name)
	}
	raw, err := io.ReadAll(io.LimitReader(in, largestEdited+1))
	if err != nil {
		return "", "", 0, memory.Errorf(memory.ErrUnavailable, "read %s: %w", name, err)
	}
	if !utf8.Valid(raw) {
		return "", "", 0, memory.Errorf(memory.ErrInvalid, "%s is not UTF-8", name)
	}
	return place, string(raw), st.Mode().Perm(), nil
}

// replace puts a new file in the place of the one that says before. false: it says
// something else by now, and was left alone.
func (f folder) replace(place, before, after string, mode fs.FileMode) (done bool, err error) {
	if err := f.root.MkdirAll(path.Dir(place), 0o700); err != nil {
		return false, err
	}
	temp := path.Join(path.Dir(place), "."+path.Base(place)+"."+f.newID()+tempSuffix)
	defer func() {
		if !done {
			err = errors.Join(err, ignoreMissing(f.root.Remove(temp)))
		}
	}()
	if err := f.create(temp, after, mode); err != nil {
		return false, err
	}
	now, err := f.root.ReadFile(place)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || before != "") || string(now) != before {
		return false, ignoreMissing(err)
	}
	if err := f.root.Rename(temp, place); err != nil {
		return false, err
	}
	return true, f.sync(path.Dir(place))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// create makes a file that must not exist, on disk when it returns.
func (f folder) create(name, text string, mode fs.FileMode) (err error) {
	out, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	return out.Sync()
}

func (f folder) sync(dir string) (err error) {
	d, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}

// add appends lines to a file in one write, so that what others append meanwhile
// stays whole. The lines that left out says are there already are not added again.
func (f folder) add(name string, lines []string, leftOut func(text, line string) bool) (added int, err error) {
	place, text, _, err := f.read(name)
	if err != nil {
		return 0, err
	}
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return leftOut(text, l) })
	if len(lines) == 0 {
		return 0, nil
	}
	if err := f.root.MkdirAll(path.Dir(place), 0o700); err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
	}
	out, err := f.root.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	eol := lineBreak(text)
	block := strings.Join(lines, eol) + eol
	if text != "" && !strings.HasSuffix(text, "\n") {
		block = eol + block
	}
	if _, err := io.WriteString(out, block); err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
	}
	if err := out.Sync(); err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "write %s: %w", name, err)
	}
	return len(lines), nil
}

// lineBreak is how the lines of a text end.
func lineBreak(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// withBlock returns a text with other lines between its marks; the marks are added
// at its end where there are none and there is something to say. Every other byte
// stays. Marks that do not match are ErrConflict.
func withBlock(text string, lines []string) (string, error) {
	begin, end, err := findBlock(text)
	if err != nil {
		return "", err
	}
	eol := lineBreak(text)
	if begin < 0 {
		if len(lines) == 0 {
			return text, nil
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += eol
		}
		if text != "" {
			text += eol
		}
		return text + strings.Join(slices.Concat([]string{workspace.BeginMark}, lines, []string{workspace.EndMark}), eol) + eol, nil
	}
	if eol = "\n"; strings.HasSuffix(text[:begin], "\r\n") {
		eol = "\r\n"
	}
	var block strings.Builder
	for _, l := range lines {
		block.WriteString(l + eol)
	}
	return text[:begin] + block.String() + text[end:], nil
}

// findBlock returns where the lines between the marks begin and end; -1 where there
// are no marks.
func findBlock(text string) (begin, end int, err error) {
	begin, end = -1, -1
	broken := func(why string) (int, int, error) {
		return 0, 0, memory.WithHint(memory.Errorf(memory.ErrConflict, "its marks do not match: %s", why),
			fmt.Sprintf("keep one line %s and after it one line %s, or neither", workspace.BeginMark, workspace.EndMark))
	}
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		switch strings.TrimSpace(line) {
		case workspace.BeginMark:
			if begin >= 0 {
				return broken("two beginnings")
			}
			begin = at + len(line)
		case workspace.EndMark:
			if begin < 0 || end >= 0 {
				return broken("an end without a beginning")
			}
			end = at
		}
		at += len(line)
	}
	if begin >= 0 && end < 0 {
		return broken("a beginning without an end")
	}
	return begin, end, nil
}
