package mirror

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Watch calls follow once, and again whenever the workspace's memory has changed
// and then been still for the time of settle, until ctx ends. An error of follow
// ends it.
//
// Files are watched through their directories: fsnotify, the field's own package
// for that, reports what the system tells about those.
func Watch(ctx context.Context, w *workspace.Workspace, settle time.Duration, follow func(context.Context) error) (err error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "watch %s: %w", w.Path(), err)
	}
	defer func() { err = errors.Join(err, watcher.Close()) }()
	if err := watchDirs(watcher, w.Path()); err != nil {
		return err
	}
	if err := follow(ctx); err != nil {
		return stopped(ctx, err)
	}
	timer := time.NewTimer(settle)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watcher.Events:
			if !open {
				return memory.Errorf(memory.ErrUnavailable, "the watch of %s has ended", w.Path())
			}
			if concerns(w.Path(), event) {
				timer.Reset(settle)
			}
		case err := <-watcher.Errors:
			// Some events were lost: look at everything.
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return memory.Errorf(memory.ErrUnavailable, "watch %s: %w", w.Path(), err)
			}
			timer.Reset(settle)
		case <-timer.C:
			if err := watchDirs(watcher, w.Path()); err != nil {
				return err
			}
			if err := follow(ctx); err != nil {
				return stopped(ctx, err)
			}
		}
	}
}

// stopped is nil where work ended because ctx did.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// concerns reports whether an event may change what records there are.
func concerns(root string, event fsnotify.Event) bool {
	if event.Op == fsnotify.Chmod {
		return false
	}
	name, err := filepath.Rel(root, event.Name)
	if err != nil {
		return false
	}
	name = filepath.ToSlash(name)
	return name == workspace.CuratedFile || name == workspace.MemoryDir ||
		strings.HasPrefix(name, workspace.MemoryDir+"/") && !strings.HasSuffix(name, tempSuffix)
}

// watchDirs watches the workspace and the directories below memory/. Those that
// are watched already stay so.
func watchDirs(watcher *fsnotify.Watcher, root string) error {
	if err := watcher.Add(root); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "watch %s: %w", root, err)
	}
	return filepath.WalkDir(filepath.Join(root, workspace.MemoryDir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil // it is reported when the workspace is read
		case err != nil:
			return memory.Errorf(memory.ErrUnavailable, "watch %s: %w", path, err)
		case !d.IsDir():
			return nil
		}
		if err := watcher.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "watch %s: %w", path, err)
		}
		return nil
	})
}
