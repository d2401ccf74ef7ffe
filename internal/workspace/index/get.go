package index

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/chunk"
)

// Lines is the input of Get, as of OpenClaw's tool memory_get.
type Lines struct {
	Path  string `json:"path" cli:"arg" jsonschema:"a file that a search has named, such as memory/2026-01-15.md"`
	From  int    `json:"from,omitempty" jsonschema:"first line; 1 if absent"`
	Lines int    `json:"lines,omitempty" jsonschema:"how many lines; all if absent"`
}

// Passage is a part of a file.
type Passage struct {
	Path string `json:"path"`
	From int    `json:"from"`
	// Lines counts those of Text, the last of which may be empty: the text behind
	// the last line's end.
	Lines     int    `json:"lines"`
	Content   string `json:"text"`
	Truncated bool   `json:"truncated,omitempty" jsonschema:"the file goes on, but the answer would have been too long"`
	NextFrom  int    `json:"nextFrom,omitempty" jsonschema:"where to go on"`
}

// Text is the passage for a person.
func (p Passage) Text() string { return strings.TrimSuffix(p.Content, "\n") + "\n" }

// mostUnits is the length of a passage above which it is cut, at a line's end
// where it has one.
const mostUnits = 256 << 10

// Get returns lines of a file of the workspace's memory, or of the extra paths:
// only of Markdown that is indexed, and never through a link. Lines end at LF.
// ErrNotFound where there is no such file.
func Get(ctx context.Context, w *workspace.Workspace, extra []string, in Lines) (Passage, error) {
	name := path.Clean(strings.ReplaceAll(strings.TrimSpace(in.Path), `\`, "/"))
	switch {
	case in.Path == "":
		return Passage{}, &memory.FieldError{Field: "path", Reason: "must not be empty"}
	case in.From < 0:
		return Passage{}, &memory.FieldError{Field: "from", Reason: "must be 1 or more"}
	case in.Lines < 0:
		return Passage{}, &memory.FieldError{Field: "lines", Reason: "must be 1 or more"}
	case !strings.HasSuffix(name, ".md") || !wanted(extra)(name, false) || path.IsAbs(name):
		return Passage{}, &memory.FieldError{Field: "path", Reason: "must be MEMORY.md, memory.md, a .md file under memory/, or of the extra paths"}
	}
	doc, err := find(ctx, w, name)
	if err != nil {
		return Passage{}, err
	}
	text, _, err := doc.read()
	if err != nil {
		return Passage{}, memory.Errorf(memory.KindOf(err), "read %s: %w", name, err)
	}
	return cut(name, text, in), nil
}

// find returns a file of the workspace that no link is on the way to.
func find(ctx context.Context, w *workspace.Workspace, name string) (document, error) {
	onTheWay := func(at string, isDir bool) bool {
		return at == name || strings.HasPrefix(name, at+"/")
	}
	reason := ""
	files, err := w.Unlinked(ctx, onTheWay, func(n workspace.Notice) { reason = n.File + ": " + n.Reason })
	if err != nil {
		return document{}, err
	}
	at := slices.IndexFunc(files, func(f workspace.File) bool { return f.Path == name })
	if at < 0 && reason != "" {
		return document{}, memory.Errorf(memory.ErrDenied, "%s is not read: %s", name, reason)
	}
	if at < 0 {
		return document{}, memory.Errorf(memory.ErrNotFound, "there is no %s in the workspace", name)
	}
	return fileDocument(w, files[at]), nil
}

// cut takes the lines that were asked for.
func cut(name, text string, in Lines) Passage {
	p := Passage{Path: name, From: max(1, in.From)}
	all := strings.Split(text, "\n")
	from := min(p.From-1, len(all))
	to := len(all)
	if in.Lines > 0 {
		to = min(from+in.Lines, len(all))
	}
	end, units := from, 0
	for end < to && (end == from || units+len(all[end]) < mostUnits) {
		units += len(all[end]) + 1
		end++
	}
	p.Lines, p.Content = end-from, strings.Join(all[from:end], "\n")
	if short := chunk.Snippet(p.Content, mostUnits); short != p.Content {
		p.Content, p.Truncated = short, true
	}
	if end < to {
		p.Truncated = true
	}
	if p.Truncated && end < len(all) {
		p.NextFrom = end + 1
	}
	return p
}
