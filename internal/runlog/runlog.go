// Package runlog keeps what happened in each run of an agent: a bundle of files
// per run (runs/<run>/), and one audit line per operation called
// (audit/YYYY-MM-DD.jsonl). Both are for people; nothing in them is ever put
// into a prompt again.
package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Redactor removes secrets from text, and from the strings and keys of a JSON
// value.
type Redactor interface {
	Text(string) string
	Value(any) any
}

// Options are what a Store needs besides its directory. All are required.
type Options struct {
	Agent  memory.AgentID
	Now    func() time.Time
	NewID  func() string // a fresh ULID: 26 characters that sort by time
	Redact Redactor
}

// Store keeps the runs and the audit log of one agent. It is safe for concurrent
// use, by several processes too.
type Store struct {
	dir string
	Options

	audit sync.Mutex // one audit line at a time
}

// Open returns the store under dir, the agent's own directory. What it needs
// below (0700, files 0600) is created by the first write.
func Open(dir string, o Options) *Store { return &Store{dir: dir, Options: o} }

// The files of a bundle.
const (
	inputFile  = "input.json"
	promptFile = "prompt.md"
	callsFile  = "toolcalls.jsonl"
	outputFile = "output.md"
	recallFile = "recall.json"
	metaFile   = "meta.json" // written last: a bundle without it is of a run that did not end
)

var runID = regexp.MustCompile(`^run_[0-9A-HJKMNP-TV-Z]{26}$`)

// Input is what started a run.
type Input struct {
	Run     string         `json:"run"` // set by the store: "run_" and a ULID
	Agent   memory.AgentID `json:"agent"`
	Session string         `json:"session"`
	Channel string         `json:"channel"`
	Text    string         `json:"text"`
	Started time.Time      `json:"started"`
}

// Recall is what was recalled for a run's prompt.
type Recall struct {
	Query    string `json:"query"`
	Block    string `json:"block"`              // the bytes injected; empty where nothing was
	Trace    any    `json:"trace,omitempty"`    // the candidates, their scores, and why each is in or out
	Degraded string `json:"degraded,omitempty"` // what went wrong
	// InPrompt is the seq of the first event of the session that stood in the prompt
	// already, so that it was not recalled again; 0 where none did.
	InPrompt int64 `json:"in_prompt,omitempty"`
}

// ToolCall is one operation that was asked for in a run.
type ToolCall struct {
	At       time.Time       `json:"at"`
	Round    int             `json:"round"` // of the model, from 1; 0 for a call that the user typed
	ID       string          `json:"id"`
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input"`
	Decision string          `json:"decision"` // Allow or Deny
	Outcome  string          `json:"outcome"`  // OK or the kind of the error
	Result   string          `json:"result"`   // as it was given to the model
	Millis   int64           `json:"ms"`
}

// Meta is the summary of a run.
type Meta struct {
	Run       string         `json:"run"`
	Agent     memory.AgentID `json:"agent"`
	Session   string         `json:"session"`
	Status    string         `json:"status"` // OK, Failed, or Unfinished
	Error     string         `json:"error,omitempty"`
	Model     string         `json:"model"`
	Started   time.Time      `json:"started"`
	Ended     time.Time      `json:"ended"` // zero while unfinished
	Rounds    int            `json:"rounds"`
	ToolCalls int            `json:"tool_calls"`
	TokensIn  int            `json:"tokens_in"`
	TokensOut int            `json:"tokens_out"`
	FirstSeq  int64          `json:"first_seq,omitempty"` // of the run's first event; 0 where that is not known
	Warnings  []string       `json:"warnings,omitempty"`
}

// How a run or a call ended.
const (
	OK         = "ok"
	Failed     = "failed"
	Unfinished = "unfinished" // it still runs, or its process died
)

// Bundle is everything kept of a run. Of an unfinished run the parts that were
// not reached are empty.
type Bundle struct {
	Input     Input      `json:"input"`
	Prompt    string     `json:"prompt"`
	ToolCalls []ToolCall `json:"tool_calls"` // never nil
	Output    string     `json:"output"`
	Recall    Recall     `json:"recall"`
	Meta      Meta       `json:"meta"`
}

// Get returns the bundle of one run; ErrNotFound where there is none.
func (s *Store) Get(run string) (Bundle, error) {
	b := Bundle{ToolCalls: []ToolCall{}}
	if !runID.MatchString(run) {
		return b, &memory.FieldError{Field: "run", Reason: "must be run_ and 26 capital letters and digits", Hint: "leave it out for the latest run"}
	}
	root, err := s.openRun(run)
	if errors.Is(err, fs.ErrNotExist) {
		return b, memory.Errorf(memory.ErrNotFound, "there is no run %s", run)
	}
	if err != nil {
		return b, fmt.Errorf("read run %s: %w", run, err)
	}
	defer root.Close()
	for name, into := range map[string]any{inputFile: &b.Input, recallFile: &b.Recall} {
		if _, err := readJSON(root, name, into); err != nil {
			return b, fmt.Errorf("read run %s: %w", run, err)
		}
	}
	for name, into := range map[string]*string{promptFile: &b.Prompt, outputFile: &b.Output} {
		text, err := readRegular(root, name)
		if err != nil {
			return b, fmt.Errorf("read run %s: %w", run, err)
		}
		*into = string(text)
	}
	if b.Meta, err = readMeta(root, run); err != nil {
		return b, err
	}
	b.ToolCalls, err = readCalls(root, b.Meta.Status == Unfinished)
	if err != nil {
		return b, fmt.Errorf("read run %s: %w", run, err)
	}
	return b, nil
}

// List returns the summaries of the latest runs, newest first, at most limit of
// them (0 for all); never nil. Where one is damaged the others are returned with
// the error.
func (s *Store) List(limit int) ([]Meta, error) {
	list := []Meta{}
	entries, err := os.ReadDir(filepath.Join(s.dir, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return list, fmt.Errorf("list runs: %w", err)
	}
	slices.Reverse(entries) // names sort by time
	var damaged []error
	for _, e := range entries {
		if !runID.MatchString(e.Name()) {
			continue
		}
		if limit > 0 && len(list) == limit {
			break
		}
		m, err := s.meta(e.Name())
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		list = append(list, m)
	}
	return list, errors.Join(damaged...)
}

func (s *Store) meta(run string) (Meta, error) {
	root, err := s.openRun(run)
	if err != nil {
		return Meta{}, fmt.Errorf("read run %s: %w", run, err)
	}
	defer root.Close()
	return readMeta(root, run)
}

// readMeta reads the summary of a run, or makes one of its input where the run
// has not ended.
func readMeta(root *os.Root, run string) (Meta, error) {
	var m Meta
	ended, err := readJSON(root, metaFile, &m)
	if err != nil || ended {
		return m, err
	}
	var in Input
	if _, err := readJSON(root, inputFile, &in); err != nil {
		return m, err
	}
	return Meta{Run: run, Agent: in.Agent, Session: in.Session, Status: Unfinished, Started: in.Started}, nil
}

// openRun opens a run's directory. None of the way to it may lead elsewhere.
func (s *Store) openRun(run string) (*os.Root, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenRoot(path.Join("runs", run))
}

// readRegular returns a file's text; nothing for one that is missing.
func readRegular(root *os.Root, name string) ([]byte, error) {
	st, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, memory.Errorf(memory.ErrDenied, "%s is not a regular file", name)
	}
	return root.ReadFile(name)
}

// readJSON fills into from a file, and reports whether there is one.
func readJSON(root *os.Root, name string, into any) (bool, error) {
	text, err := readRegular(root, name)
	if err != nil || text == nil {
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, &memory.CorruptError{Path: path.Join(root.Name(), name), Offset: -1, Reason: err.Error()}
	}
	return true, nil
}

// readCalls reads the lines of tool calls. The last line of an unfinished run
// may be torn; it is left out.
func readCalls(root *os.Root, unfinished bool) ([]ToolCall, error) {
	calls := []ToolCall{}
	text, err := readRegular(root, callsFile)
	if err != nil {
		return calls, err
	}
	offset := int64(0)
	for line := range strings.Lines(string(text)) {
		var c ToolCall
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			if unfinished && !strings.HasSuffix(line, "\n") {
				break
			}
			return calls, &memory.CorruptError{Path: path.Join(root.Name(), callsFile), Offset: offset, Reason: err.Error()}
		}
		calls = append(calls, c)
		offset += int64(len(line))
	}
	return calls, nil
}

// writeMeta replaces meta.json whole, durably.
func writeMeta(root *os.Root, text []byte) error {
	if err := renameio.WriteFile(metaFile, text, 0o600, renameio.WithRoot(root), renameio.WithStaticPermissions(0o600)); err != nil {
		return err
	}
	return syncFile(root, ".")
}

// syncFile makes what is written to a file or directory durable.
func syncFile(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
