// Package workspace reads OpenClaw workspaces: directories of Markdown files
// that are an agent's memory. It finds a workspace, lists its files without
// leaving it, and cuts the files into records just as the reference client
// does, so that both give the same records the same ids.
//
// It only reads. What memory and a workspace give each other is the business of
// the rooms above.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Names that have a meaning in a workspace.
const (
	CuratedFile = "MEMORY.md" // long-term memory, at the root
	MemoryDir   = "memory"    // all other memory
)

// MaxFileBytes is the size above which a file is skipped: its records are held
// in memory together.
const MaxFileBytes = 256 << 20

// Workspace is an open workspace directory. Nothing outside of it is read, also
// not through links. It is safe for concurrent use.
type Workspace struct {
	root *os.Root
	path string // absolute, links resolved
}

// Open opens the workspace at dir. ErrNotFound if there is no such directory.
func Open(dir string) (*Workspace, error) {
	full, err := filepath.Abs(dir)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no workspace %s", dir), "name its directory, or set workspace.path")
	}
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "open workspace: %w", err)
	}
	st, err := os.Stat(full)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "open workspace: %w", err)
	}
	if !st.IsDir() {
		return nil, memory.Errorf(memory.ErrInvalid, "%s is no directory, so no workspace", dir)
	}
	root, err := os.OpenRoot(full)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "open workspace: %w", err)
	}
	return &Workspace{root: root, path: full}, nil
}

// Close gives the directory back.
func (w *Workspace) Close() error { return w.root.Close() }

// Path returns the workspace's absolute path, links resolved.
func (w *Workspace) Path() string { return w.path }

// Root returns the directory as the root that every access goes through. It is
// closed with the workspace.
func (w *Workspace) Root() *os.Root { return w.root }

// Notice tells of something in a workspace that the reader should know.
type Notice struct {
	File    string `json:"file"`           // relative to the workspace, with slashes
	Line    int    `json:"line,omitempty"` // 1 for the first; 0 for the whole file
	Skipped bool   `json:"skipped"`        // true: the file or directory was left out
	Reason  string `json:"reason"`
}

func (n Notice) String() string {
	at := n.File
	if n.Line > 0 {
		at = fmt.Sprintf("%s:%d", n.File, n.Line)
	}
	if n.Skipped {
		return at + " left out: " + n.Reason
	}
	return at + ": " + n.Reason
}

// Scope says which files are listed.
type Scope int

// The scopes.
const (
	// Memory is MEMORY.md and every file under memory/, of any extension.
	Memory Scope = iota
	// Markdown is Memory and every other *.md file of the workspace; .git and
	// node_modules are not looked into.
	Markdown
	// All is every file; .git and node_modules are not looked into.
	All

	everything // below the listed directory
)

// File is a regular file of a workspace.
type File struct {
	Path    string // relative to the workspace, with slashes, as the disk has it
	Size    int64
	ModTime time.Time
	opens   string // what is opened: Path, or what a link leads to
}

// Origin returns the path as records name it: what is not UTF-8 is replaced.
func (f File) Origin() string { return lossy(f.Path) }

// HasRecords reports whether records are made of the file: it is MEMORY.md, or
// below memory/ with the extension md in lower case.
func (f File) HasRecords() bool {
	if f.Path == CuratedFile {
		return true
	}
	return strings.HasPrefix(f.Path, MemoryDir+"/") && strings.HasSuffix(f.Path, ".md") && path.Base(f.Path) != ".md"
}

// Files lists the regular files of a scope by path. Links to files are followed
// where they stay inside. What is left out is reported through notice, which may
// be nil.
func (w *Workspace) Files(ctx context.Context, scope Scope, notice func(Notice)) ([]File, error) {
	l := lister{w: w, scope: scope, notice: notice}
	if l.notice == nil {
		l.notice = func(Notice) {}
	}
	if err := l.dir(ctx, "."); err != nil {
		return nil, fmt.Errorf("list workspace: %w", err)
	}
	slices.SortFunc(l.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return l.files, nil
}

// Unlinked lists the regular files that want is true for, by path, and looks only
// into directories that it is true for. No link is followed; a wanted one is
// reported through notice.
func (w *Workspace) Unlinked(ctx context.Context, want func(name string, isDir bool) bool, notice func(Notice)) ([]File, error) {
	l := lister{w: w, want: want, notice: notice}
	if err := l.dir(ctx, "."); err != nil {
		return nil, fmt.Errorf("list workspace: %w", err)
	}
	slices.SortFunc(l.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return l.files, nil
}

// lister is one listing.
type lister struct {
	w      *Workspace
	scope  Scope
	want   func(name string, isDir bool) bool // in place of a scope, and no link is followed
	notice func(Notice)
	files  []File
}

func (l *lister) skip(name, format string, args ...any) {
	l.notice(Notice{File: lossy(name), Skipped: true, Reason: fmt.Sprintf(format, args...)})
}

func (l *lister) dir(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := l.w.readDir(dir)
	switch {
	case err != nil && dir == ".":
		return memory.Errorf(memory.ErrUnavailable, "%w", err)
	case err != nil:
		l.skip(dir, "%v", plain(err))
		return nil
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if err := l.entry(ctx, name, e); err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether a file, or something below a directory, may be in scope.
func (l *lister) wanted(name string, isDir bool) bool {
	switch {
	case l.want != nil:
		return l.want(name, isDir)
	case l.scope == everything, name == MemoryDir, name == CuratedFile, strings.HasPrefix(name, MemoryDir+"/"):
		return true
	case l.scope == Memory:
		return false
	}
	base := path.Base(name)
	if isDir {
		return base != ".git" && base != "node_modules"
	}
	return l.scope == All || strings.HasSuffix(base, ".md") && base != ".md"
}

func (l *lister) entry(ctx context.Context, name string, e fs.DirEntry) error {
	if !l.wanted(name, e.IsDir()) {
		return nil
	}
	if e.Type()&fs.ModeSymlink != 0 && l.want != nil {
		l.skip(name, "it is a link")
		return nil
	}
	if e.Type()&fs.ModeSymlink != 0 {
		return l.link(ctx, name)
	}
	if e.IsDir() {
		return l.dir(ctx, name)
	}
	info, err := e.Info()
	switch {
	case err != nil:
		l.skip(name, "%v", plain(err))
	case !info.Mode().IsRegular():
		l.skip(name, "it is no regular file")
	default:
		l.files = append(l.files, File{Path: name, Size: info.Size(), ModTime: info.ModTime(), opens: name})
	}
	return nil
}

// link follows a link to a file, and the link that memory/ may be itself.
func (l *lister) link(ctx context.Context, name string) error {
	target, err := l.w.resolve(name)
	if err != nil {
		l.skip(name, "it is a link that %v", err)
		return nil
	}
	info, err := l.w.root.Lstat(target)
	switch {
	case err != nil:
		l.skip(name, "%v", plain(err))
	case info.IsDir() && name == MemoryDir:
		return l.linkedDir(ctx, target)
	case info.IsDir():
		l.skip(name, "it is a link to a directory")
	case !info.Mode().IsRegular():
		l.skip(name, "it is a link to what is no regular file")
	default:
		l.files = append(l.files, File{Path: name, Size: info.Size(), ModTime: info.ModTime(), opens: target})
	}
	return nil
}

// linkedDir lists what memory/ leads to, under the name memory/.
func (l *lister) linkedDir(ctx context.Context, target string) error {
	if target == "." {
		l.skip(MemoryDir, "it is a link to the workspace itself")
		return nil
	}
	below := lister{w: l.w, scope: everything, notice: func(n Notice) {
		n.File = MemoryDir + strings.TrimPrefix(n.File, target)
		l.notice(n)
	}}
	if err := below.dir(ctx, target); err != nil {
		return err
	}
	for _, f := range below.files {
		f.Path = MemoryDir + strings.TrimPrefix(f.Path, target)
		l.files = append(l.files, f)
	}
	return nil
}

// resolve returns where a link leads, relative to the workspace.
func (w *Workspace) resolve(name string) (string, error) {
	full, err := filepath.EvalSymlinks(filepath.Join(w.path, filepath.FromSlash(name)))
	if err != nil {
		return "", errors.New("leads nowhere")
	}
	rel, err := filepath.Rel(w.path, full)
	if err != nil || !filepath.IsLocal(rel) {
		return "", errors.New("leads out of the workspace")
	}
	return filepath.ToSlash(rel), nil
}

func (w *Workspace) readDir(dir string) ([]fs.DirEntry, error) {
	d, err := w.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// readAttempts is how often a file that changes under the reader is read again.
const readAttempts = 3

// Read returns the bytes of a listed file, and the file as it was when they were
// read: it may have grown since. ErrNotFound if it is gone, ErrInvalid if it is
// too large or no regular file any more, ErrUnavailable if it cannot be read or
// keeps changing.
func (w *Workspace) Read(f File) (string, File, error) {
	for range readAttempts {
		text, now, steady, err := w.readOnce(f)
		if err != nil || steady {
			return text, now, err
		}
	}
	return "", f, memory.Errorf(memory.ErrUnavailable, "it changes while it is read")
}

// Copy writes the bytes of a listed file to out, however large it is.
func (w *Workspace) Copy(f File, out io.Writer) (err error) {
	in, err := w.root.OpenFile(filepath.FromSlash(f.opens), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "%w", plain(err))
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	st, err := in.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = memory.Errorf(memory.ErrInvalid, "it is no regular file")
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}

func (w *Workspace) readOnce(f File) (text string, now File, steady bool, err error) {
	// Without O_NONBLOCK a named pipe that took the file's place would block.
	in, err := w.root.OpenFile(filepath.FromSlash(f.opens), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		kind := memory.ErrUnavailable
		if errors.Is(err, fs.ErrNotExist) {
			kind = memory.ErrNotFound
		}
		return "", f, false, memory.Errorf(kind, "%w", plain(err))
	}
	defer func() {
		if closing := in.Close(); err == nil && closing != nil {
			err = memory.Errorf(memory.ErrUnavailable, "%w", plain(closing))
		}
	}()
	before, err := in.Stat()
	switch {
	case err != nil:
		return "", f, false, memory.Errorf(memory.ErrUnavailable, "%w", plain(err))
	case !before.Mode().IsRegular():
		return "", f, false, memory.Errorf(memory.ErrInvalid, "it is no regular file")
	case before.Size() > MaxFileBytes:
		return "", f, false, memory.Errorf(memory.ErrInvalid, "it is larger than %d MiB", MaxFileBytes>>20)
	}
	var sb strings.Builder
	sb.Grow(int(before.Size()))
	_, err = io.Copy(&sb, io.LimitReader(in, MaxFileBytes+1))
	if err != nil {
		return "", f, false, memory.Errorf(memory.ErrUnavailable, "%w", plain(err))
	}
	after, err := in.Stat()
	if err != nil {
		return "", f, false, memory.Errorf(memory.ErrUnavailable, "%w", plain(err))
	}
	now = f
	now.Size, now.ModTime = after.Size(), after.ModTime()
	return sb.String(), now, after.ModTime().Equal(before.ModTime()) && int64(sb.Len()) == after.Size(), nil
}

// plain takes the path out of a file error: it stands beside it.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
