package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/rank"
)

// document is a file to index.
type document struct {
	path    string // as the index names it
	source  string
	size    int64
	changed time.Time
	read    func() (text string, now document, err error)
}

// curatedOld is the other name that OpenClaw reads long-term memory under.
const curatedOld = "memory.md"

// isMemory reports whether a path is of a workspace's memory.
func isMemory(name string) bool {
	return name == workspace.CuratedFile || name == curatedOld || strings.HasPrefix(name, workspace.MemoryDir+"/")
}

// below reports whether name is one of the paths, or lies in one.
func below(name string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return p == "." || name == p || strings.HasPrefix(name, p+"/") })
}

// leadsTo reports whether one of the paths lies in a directory.
func leadsTo(dir string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, dir+"/") })
}

// wanted returns which files and directories of a workspace are looked at.
func wanted(extra []string) func(name string, isDir bool) bool {
	return func(name string, isDir bool) bool {
		switch {
		case name == workspace.MemoryDir:
			return true
		case isDir:
			return isMemory(name) || below(name, extra) || leadsTo(name, extra)
		}
		return strings.HasSuffix(name, ".md") && (isMemory(name) || below(name, extra))
	}
}

// cleanExtra checks extra paths and brings them into the form that they are
// compared in.
func cleanExtra(extra []string) ([]string, error) {
	var out []string
	for _, p := range extra {
		p = strings.TrimSpace(p)
		if p == "" {
			continue
		}
		name := path.Clean(strings.ReplaceAll(p, `\`, "/"))
		if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") || strings.Contains(name, ":") {
			return nil, &memory.FieldError{Field: "extra", Reason: "must lie in the workspace", Hint: "give it relative to the workspace, such as docs/notes"}
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// scan lists a workspace's files to index. What is passed over is told to notice.
func scan(ctx context.Context, w *workspace.Workspace, extra []string, notice func(workspace.Notice)) ([]document, error) {
	files, err := w.Unlinked(ctx, wanted(extra), notice)
	if err != nil {
		return nil, err
	}
	docs := make([]document, 0, len(files))
	for _, f := range files {
		docs = append(docs, fileDocument(w, f))
	}
	return docs, nil
}

func fileDocument(w *workspace.Workspace, f workspace.File) document {
	d := document{path: f.Origin(), source: rank.SourceMemory, size: f.Size, changed: f.ModTime}
	d.read = func() (string, document, error) {
		text, now, err := w.Read(f)
		if err != nil {
			return "", d, err
		}
		if !utf8.ValidString(text) {
			return "", d, memory.Errorf(memory.ErrInvalid, "it is not UTF-8")
		}
		as := d
		as.size, as.changed = now.Size, now.ModTime
		return text, as, nil
	}
	return d
}

// hashText is OpenClaw's hash of a file.
func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
