package life

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// MergeOptions name the archives of a merge. Base is the common ground, "" for
// none.
type MergeOptions struct {
	Ours, Theirs, Base, Output string
	Now                        func() time.Time
}

// MergeArchives writes an archive of two of OpenClaw workspaces: ours with what
// theirs changed since base. Where both changed, it is done as an import in mode
// merge does it; conflicts stand beside their files in the archive. Records that
// no file holds (of sessions) are those of both.
func MergeArchives(ctx context.Context, o MergeOptions) (x Exported, in Imported, err error) {
	dir, err := os.MkdirTemp("", "alf-merge-*")
	if err != nil {
		return x, in, memory.Errorf(memory.ErrUnavailable, "make a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ids := map[string]alf.Manifest{}
	for _, path := range []string{o.Ours, o.Theirs, o.Base} {
		if path == "" {
			continue
		}
		r, err := alf.Open(path, alf.DefaultLimits)
		if err != nil {
			return x, in, err
		}
		ids[path] = r.Manifest()
		if err := r.Close(); err != nil {
			return x, in, err
		}
		if ids[path].Agent.SourceRuntime != openclaw {
			return x, in, memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s is of %s, and only archives of OpenClaw workspaces are merged", path, ids[path].Agent.SourceRuntime),
				"import both into one workspace, and export that")
		}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return x, in, memory.Errorf(memory.ErrUnavailable, "prepare the merge: %w", err)
	}
	place, keep := filepath.Join(dir, "workspace"), Keep{filepath.Join(dir, "kept")}
	if _, err := ImportWorkspace(ctx, o.Ours, place, ImportOptions{Mode: Replace, Keep: keep, Now: o.Now}); err != nil {
		return x, in, err
	}
	if err := os.RemoveAll(keep.Dir); err != nil {
		return x, in, memory.Errorf(memory.ErrUnavailable, "prepare the merge: %w", err)
	}
	if o.Base != "" {
		if err := keep.keep(ids[o.Theirs].Agent.ID, place, o.Base); err != nil {
			return x, in, err
		}
	}
	if in, err = ImportWorkspace(ctx, o.Theirs, place, ImportOptions{Mode: Merge, Keep: keep, Now: o.Now}); err != nil {
		return x, in, err
	}
	if err := keep.keep(ids[o.Ours].Agent.ID, place, o.Ours); err != nil {
		return x, in, err
	}
	w, err := workspace.Open(place)
	if err != nil {
		return x, in, err
	}
	x, err = ExportWorkspace(ctx, w, ExportOptions{Output: o.Output, Keep: keep, Now: o.Now, Name: ids[o.Ours].Agent.Name, Known: []string{o.Ours, o.Theirs}})
	return x, in, errors.Join(err, w.Close())
}
