// Package mirror lets an OpenClaw workspace and an agent's memory follow each
// other. Sections of a workspace become items and its daily logs become events,
// and edits are followed; items become sections and notes of the workspace,
// between marks, and nothing outside of those is touched.
package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// items is an agent's working memory.
type items interface {
	Import(ctx context.Context, in working.Imported) (working.ImportResult, error)
	Get(ctx context.Context, in working.GetRequest) (working.GetResult, error)
	Suppressed(ctx context.Context, events []memory.Event) (map[string]bool, error)
}

// log is an agent's event log.
type log interface {
	Write(ctx context.Context, events ...memory.Event) ([]memory.Event, error)
	Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error)
}

// redactor takes secrets out of a text.
type redactor interface{ Text(string) string }

// Importer brings a workspace into one agent's memory.
type Importer struct {
	Items  items
	Log    log
	Redact redactor
	Now    func() time.Time
	Dir    string // the agent's memory directory, which exists: what was imported is noted there
	// MaxItems is the cap of active items; 0 for none. Of what is new no more becomes
	// active: sections beyond it are archived items, tagged lines of daily logs beyond
	// it stay in the log alone.
	MaxItems int
}

// manifest is what of a workspace has been imported. It holds no text: sums of
// sections are made after secrets were taken out.
type manifest struct {
	Workspace  string                `json:"workspace"`
	Unfinished bool                  `json:"unfinished,omitempty"` // an import was begun and has not ended
	Files      map[string]*fileState `json:"files"`
	Retired    map[string]bool       `json:"retired,omitempty"` // ids of events that the workspace says no more
	// Pending is what the imports that were broken off may have brought into memory,
	// or meant to take out of it.
	Pending pending `json:"pending,omitzero"`
}

// pending is a set of items, by the ids that they were to get, and of events.
type pending struct {
	Items  map[string]bool `json:"items,omitempty"`
	Events map[string]bool `json:"events,omitempty"`
}

type fileState struct {
	SHA256   string         `json:"sha256"` // of the file
	Sections []sectionState `json:"sections"`
}

// sectionState is what became of one section.
type sectionState struct {
	SHA256  string      `json:"sha256"`            // of its text, redacted and trimmed
	Heading string      `json:"heading,omitempty"` // the beginning of its sum
	Items   []itemState `json:"items,omitempty"`
	Daily   bool        `json:"daily,omitempty"` // of a daily log
	Events  []string    `json:"events,omitempty"`
	// Withheld: a person has forgotten what it said, so nothing was made of it.
	Withheld bool `json:"withheld,omitempty"`
}

type itemState struct {
	ID    string     `json:"id"`
	Until *time.Time `json:"until,omitempty"` // retention; nil for ever
	// Elsewhere: it did not come of the workspace but says the same, and stays as it
	// is whatever becomes of the section.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// manifestPath is the file of a workspace's manifest: agents may follow several.
func (im *Importer) manifestPath(w *workspace.Workspace) string {
	return filepath.Join(im.Dir, "workspace-"+sumOf(w.Path())[:12]+".json")
}

// load reads the manifest; where there is none, what the log has is looked up as
// after an import that was broken off.
func (im *Importer) load(w *workspace.Workspace) (*manifest, error) {
	fresh := &manifest{Workspace: w.Path(), Unfinished: true}
	fresh.complete()
	text, err := os.ReadFile(im.manifestPath(w))
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read what was imported before: %w", err)
	}
	have := &manifest{Workspace: w.Path()}
	if err := json.Unmarshal(text, have); err != nil {
		return fresh, nil // a torn note: everything is looked up again
	}
	have.complete()
	return have, nil
}

// complete makes the sets that a note does not have.
func (m *manifest) complete() {
	if m.Files == nil {
		m.Files = map[string]*fileState{}
	}
	for _, set := range []*map[string]bool{&m.Retired, &m.Pending.Items, &m.Pending.Events} {
		if *set == nil {
			*set = map[string]bool{}
		}
	}
	maps.DeleteFunc(m.Files, func(_ string, f *fileState) bool { return f == nil })
}

func (im *Importer) save(w *workspace.Workspace, m *manifest) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(im.manifestPath(w), text, 0o600); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "note what was imported: %w", err)
	}
	return nil
}

const lockPoll = 20 * time.Millisecond // between two tries for another process's lock

// lock keeps two imports into one agent apart.
func (im *Importer) lock(ctx context.Context) (unlock func() error, err error) {
	lock := flock.New(filepath.Join(im.Dir, "workspace.lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return nil, memory.WithHint(memory.Errorf(memory.ErrUnavailable, "wait for another import into the agent: %w", err), "try again when it is done")
	}
	return lock.Unlock, nil
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
