package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Run writes the bundle of one run. It belongs to one goroutine, and must be
// ended with Finish.
type Run struct {
	id     string
	store  *Store
	root   *os.Root
	in     Input
	synced []string // files that Finish makes durable
	calls  int
}

// Start opens the bundle of a new run and writes its input. Run, Agent and
// Started of in are set by the store.
func (s *Store) Start(in Input) (*Run, error) {
	in.Run, in.Agent, in.Started = "run_"+s.NewID(), s.Agent, s.Now().UTC()
	if !runID.MatchString(in.Run) {
		return nil, memory.Errorf(memory.ErrInternal, "start run: %q is not a run id", in.Run)
	}
	in.Text = s.Redact.Text(in.Text)
	dir := path.Join("runs", in.Run)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "start run: %w", err)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "start run: %w", err)
	}
	defer root.Close()
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "start run: %w", err)
	}
	own, err := root.OpenRoot(dir)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "start run: %w", err)
	}
	r := &Run{id: in.Run, store: s, root: own, in: in}
	if err := r.writeJSON(inputFile, in); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return r, nil
}

// ID returns the run's id.
func (r *Run) ID() string { return r.id }

// Prompt keeps the prompt of the run's first model call.
func (r *Run) Prompt(text string) error {
	return r.write(promptFile, []byte(r.store.Redact.Text(text)))
}

// Recall keeps what was recalled.
func (r *Run) Recall(rec Recall) error {
	trace, err := r.plain(rec.Trace)
	if err != nil {
		return fmt.Errorf("keep recall of %s: %w", r.id, err)
	}
	redact := r.store.Redact.Text
	return r.writeJSON(recallFile, Recall{Query: redact(rec.Query), Block: redact(rec.Block), Trace: trace, Degraded: redact(rec.Degraded), InPrompt: rec.InPrompt})
}

// Tool adds a call. Input that is not JSON is kept as a string.
func (r *Run) Tool(c ToolCall) error {
	var tree any
	if err := json.Unmarshal(c.Input, &tree); err != nil {
		tree = string(c.Input)
	}
	input, err := json.Marshal(r.store.Redact.Value(tree))
	if err != nil {
		return fmt.Errorf("keep call of %s: %w", c.Tool, err)
	}
	redact := r.store.Redact.Text
	c.Input, c.Result, c.Tool, c.ID = input, redact(c.Result), redact(c.Tool), redact(c.ID)
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("keep call of %s: %w", c.Tool, err)
	}
	if err := appendLine(r.root, callsFile, line); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "keep call of %s in %s: %w", c.Tool, r.id, err)
	}
	if r.calls == 0 {
		r.synced = append(r.synced, callsFile)
	}
	r.calls++
	return nil
}

// Finish writes the output and then, once everything else is on disk, the
// summary. Run, Agent, Session, Started, Ended and ToolCalls of m are set by the
// store. The Run must not be used afterwards.
func (r *Run) Finish(output string, m Meta) (err error) {
	defer func() { err = errors.Join(err, r.root.Close()) }()
	redact := r.store.Redact.Text
	if err := r.write(outputFile, []byte(redact(output))); err != nil {
		return err
	}
	m.Run, m.Agent, m.Session, m.Started = r.id, r.in.Agent, r.in.Session, r.in.Started
	m.Ended, m.ToolCalls, m.Error = r.store.Now().UTC(), r.calls, redact(m.Error)
	warnings := m.Warnings
	m.Warnings = nil
	for _, w := range warnings {
		m.Warnings = append(m.Warnings, redact(w))
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("finish %s: %w", r.id, err)
	}
	for _, name := range r.synced {
		if err := syncFile(r.root, name); err != nil {
			return memory.Errorf(memory.ErrUnavailable, "finish %s: %w", r.id, err)
		}
	}
	if err := writeMeta(r.root, append(text, '\n')); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "finish %s: %w", r.id, err)
	}
	return nil
}

// plain returns v as the tree of its JSON, redacted.
func (r *Run) plain(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	return r.store.Redact.Value(tree), nil
}

func (r *Run) writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s of %s: %w", name, r.id, err)
	}
	return r.write(name, append(text, '\n'))
}

// write creates a file of the bundle; Finish makes it durable.
func (r *Run) write(name string, text []byte) error {
	f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write %s of %s: %w", name, r.id, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write %s of %s: %w", name, r.id, err)
	}
	r.synced = append(r.synced, name)
	return nil
}

// appendLine adds a line to a file with one write, after closing off a line
// that a crash left torn.
func appendLine(root *os.Root, name string, line []byte) (err error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return memory.Errorf(memory.ErrDenied, "%s is not a regular file", name)
	}
	line = append(line, '\n')
	if size := st.Size(); size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	_, err = f.Write(line)
	return err
}
