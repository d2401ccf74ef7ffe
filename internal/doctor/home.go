package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/backup"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/record"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/spend"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Free space that is little, and so little that writes fail soon, in bytes.
const (
	littleSpace = 512 << 20
	noSpace     = 32 << 20
)

// home examines what the agents share.
func (x *examination) home(ctx context.Context, req Request) {
	if _, err := os.Stat(x.Home.Path()); errors.Is(err, fs.ErrNotExist) {
		x.add(Finding{Severity: Info, Check: "home", What: "it does not exist yet", Do: "openclawssy chat makes it"})
		return
	}
	x.check("configuration", func() error {
		if x.Config != nil {
			x.add(Finding{Severity: Error, Check: "configuration", What: x.Config.Error(), Why: "every other command refuses to run", Do: "edit " + x.Home.File("config.yaml") + ", then: openclawssy config validate"})
		}
		return nil
	})
	x.check("redaction key", x.key)
	x.check("modes", x.modes)
	x.check("leftovers", x.leftovers)
	x.check("disk", x.disk)
	x.check("spend", x.spend)
	x.check("tokens", x.tokens)
	x.check("environment", func() error { return x.environment(ctx) })
	x.check("SQLite", func() error {
		if err := sqlite.HasFullText(ctx); err != nil {
			x.add(Finding{Severity: Error, Check: "SQLite", What: err.Error(), Why: "nothing can be searched", Do: "build with -tags=sqlite_fts5, as the Makefile does"})
		}
		return nil
	})
	if req.Network {
		x.check("model", func() error {
			err := x.Reach(ctx)
			switch {
			case errors.Is(err, memory.ErrNotFound):
				x.add(Finding{Severity: Info, Check: "model", What: "none is configured: answers quote memory, and rules distil"})
			case err != nil:
				x.add(Finding{Severity: Error, Check: "model", What: "its endpoint cannot be used: " + err.Error(), Why: "turns fail, and what is said waits to be distilled", Do: "look at model.base_url and model.key: openclawssy config show"})
			}
			return nil
		})
	}
}

// key examines the key of redaction.
func (x *examination) key() error {
	path := x.Home.File("redact.key")
	err := redact.CheckKey(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		ids, listErr := x.Home.List()
		if listErr != nil {
			return listErr
		}
		if len(ids) > 0 {
			x.add(Finding{Severity: Warning, Check: "redaction key", What: path + " is missing", Do: "put it back from a copy, if there is one; else the next write makes a new one",
				Why: "with another key a secret gets another mark than before, so that the two no longer look the same"})
		}
	case errors.Is(err, memory.ErrCorrupt):
		x.add(Finding{Severity: Error, Check: "redaction key", What: err.Error(), Why: "nothing is written, since nothing could be made safe", Do: memory.HintOf(err)})
	case err != nil:
		return err
	}
	return nil
}

// modes examines who may read the files: only their owner.
func (x *examination) modes() error {
	type wrong struct {
		path string
		mode fs.FileMode
	}
	var open []wrong
	err := filepath.WalkDir(x.Home.Path(), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went away meanwhile
		}
		if err != nil {
			return err
		}
		if (e.IsDir() || st.Mode().IsRegular()) && st.Mode().Perm()&0o077 != 0 {
			open = append(open, wrong{path, st.Mode().Perm() &^ 0o077})
		}
		return nil
	})
	if err != nil || len(open) == 0 {
		return err
	}
	x.add(Finding{Severity: Warning, Check: "modes", What: fmt.Sprintf("%d files and directories are open to others, first %s", len(open), open[0].path),
		Why: "other users of this machine can read or change what was said", Do: "openclawssy doctor --fix",
		mend: func(context.Context) (string, error) {
			for _, o := range open {
				if err := os.Chmod(o.path, o.mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return "", err
				}
			}
			return fmt.Sprintf("%d files and directories are for their owner only now", len(open)), nil
		}})
	return nil
}

// temporary is the name of a file that is written beside the one that it is to
// replace: a dot, that one's name, and a number.
var temporary = regexp.MustCompile(`^\.(redact-key-\d+|.+\.(json|jsonl|yaml|db|key|alf|zst|md|lock|txt)\d+)$`)

// forgotten is how long nobody has written a temporary file that is a leftover.
const forgotten = time.Hour

// leftovers examines what killed commands have left behind.
func (x *examination) leftovers() error {
	var files []string
	err := filepath.WalkDir(x.Home.Path(), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !e.Type().IsRegular() || !temporary.MatchString(e.Name()) {
			return nil
		}
		st, err := e.Info()
		if err == nil && x.Now().Sub(st.ModTime()) > forgotten {
			files = append(files, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	places := []string{x.Home.Path(), x.Home.File("agents")}
	for _, place := range places {
		stages, err := backup.ClearStages(place, true)
		if err != nil {
			return err
		}
		files = append(files, stages...)
	}
	if len(files) == 0 {
		return nil
	}
	x.add(Finding{Severity: Warning, Check: "leftovers", What: fmt.Sprintf("%d files of commands that were killed, first %s", len(files), files[0]), Why: "they take room, and may hold what was said", Do: "openclawssy doctor --fix",
		mend: func(context.Context) (string, error) {
			for _, place := range places {
				if _, err := backup.ClearStages(place, false); err != nil {
					return "", err
				}
			}
			for _, path := range files {
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return "", err
				}
			}
			return fmt.Sprintf("%d removed: %s", len(files), strings.Join(files, ", ")), nil
		}})
	return nil
}

// disk examines how much room there is.
func (x *examination) disk() error {
	var st unix.Statfs_t
	if err := unix.Statfs(x.Home.Path(), &st); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "ask for the free space of %s: %w", x.Home.Path(), err)
	}
	if f := ofDisk(st.Bavail*uint64(st.Bsize), st.Flags&unix.ST_RDONLY != 0); f != nil {
		x.add(*f)
	}
	return nil
}

// ofDisk judges a disk by its free bytes; nil where it is well.
func ofDisk(free uint64, readOnly bool) *Finding {
	f := &Finding{Severity: Warning, Check: "disk", What: fmt.Sprintf("%d MiB are free", free>>20), Why: "on a full disk nothing new is remembered", Do: "free some space, or move the home with --home"}
	switch {
	case readOnly:
		f.Severity, f.What, f.Why = Error, "it is read-only", "nothing new is remembered"
		f.Do = "mount it for writing"
	case free < noSpace:
		f.Severity = Error
	case free >= littleSpace:
		return nil
	}
	return f
}

// ledgers are the accounts of what models have cost.
var ledgers = []string{"spend.json", "spend-embeddings.json"}

// spend examines the accounts of what was spent.
func (x *examination) spend() error {
	found := false
	for _, name := range ledgers {
		path := x.Home.File(name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found = true
		aside, err := spend.Check(path)
		switch {
		case errors.Is(err, memory.ErrCorrupt):
			x.add(Finding{Severity: Warning, Check: "spend", What: err.Error(), Why: "what was spent today is not known, and counting begins anew", Do: "nothing; the next call of a model sets it aside. Look at it then, and delete it"})
		case err != nil:
			return err
		case len(aside) > 0:
			x.add(Finding{Severity: Warning, Check: "spend", What: name + " was damaged, and counting began anew", Why: "more may be spent that day than is allowed", Do: "look at " + strings.Join(aside, ", ") + ", then delete it"})
		}
	}
	if !found {
		return errNothing
	}
	return nil
}

// takenWithin is how long the first token may wait to be taken.
const takenWithin = 24 * time.Hour

// tokens examines the file of those who may ask a server, and whether one's text still
// lies beside it.
func (x *examination) tokens() error {
	list, err := access.Open(x.Home.File("tokens.json"), x.Now).List()
	if errors.Is(err, memory.ErrCorrupt) {
		x.add(Finding{Severity: Error, Check: "tokens", What: err.Error(), Why: "no server lets anybody in", Do: "bring " + x.Home.File("tokens.json") + " back from a copy; or delete it, and make tokens anew: openclawssy token create"})
		return nil
	}
	if err != nil {
		return err
	}
	path := x.Home.File("first.token")
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if len(list) == 0 {
			return errNothing
		}
		return nil
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "look at %s: %w", path, err)
	}
	if x.Now().Sub(st.ModTime()) > takenWithin {
		x.add(Finding{Severity: Warning, Check: "tokens", What: path + " still holds a token in the clear", Why: "whoever reads it may do what its owner may", Do: "put the token where it is used, then delete the file"})
	}
	return nil
}

// environment examines the paths that the environment puts in the place of an
// agent's own.
func (x *examination) environment(ctx context.Context) error {
	db := x.Getenv(record.PathVariable)
	path, named := graph.PathFrom(x.Getenv)
	if db == "" && !named {
		return errNothing
	}
	if db != "" {
		err := checkDatabase(ctx, db)
		x.elsewhere(record.PathVariable, db, err)
	}
	if named {
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = memory.Errorf(memory.ErrNotFound, "%s does not exist", path)
		case err == nil && !json.Valid(text):
			err = &memory.CorruptError{Path: path, Offset: -1, Reason: "is no JSON"}
		}
		x.elsewhere(graph.PathVariable, path, err)
	}
	return nil
}

// elsewhere tells of a file that a variable names, and what reading it came to.
func (x *examination) elsewhere(variable, path string, err error) {
	switch st, dirErr := os.Stat(filepath.Dir(path)); {
	case errors.Is(err, memory.ErrNotFound) && (dirErr != nil || !st.IsDir()):
		x.add(Finding{Severity: Error, Check: "environment", What: fmt.Sprintf("%s names %s, and there is no such directory", variable, path), Why: "what works on one agent by name, and the bridge, would fail", Do: "make the directory, or unset " + variable})
	case err != nil && !errors.Is(err, memory.ErrNotFound):
		x.add(Finding{Severity: Error, Check: "environment", What: fmt.Sprintf("%s names a file that cannot be used: %v", variable, err), Why: "the bridge, and what works on one agent by name, would fail", Do: "bring it back from a copy, or unset " + variable})
	}
	if ids, listErr := x.Home.List(); listErr == nil && len(ids) > 1 {
		x.add(Finding{Severity: Warning, Check: "environment", What: fmt.Sprintf("%s is set, and there are %d agents", variable, len(ids)), Why: "several agents cannot share one file: openclawssy serve refuses to start", Do: "unset it where several agents are served; the bridge and --agent NAME take it"})
	}
}
