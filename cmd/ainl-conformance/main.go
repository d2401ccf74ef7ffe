// Command ainl-conformance runs the AINL conformance vectors' requests against
// the product's own packages: one JSON request a line on standard input, one
// JSON answer a line on standard output. docs/RECORDS.md tells how to use it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// session is one opened case of a suite.
type session interface {
	// Do runs an operation; args and callContext are nil where absent.
	Do(ctx context.Context, op string, args, callContext json.RawMessage) (any, error)
	// Reopen closes what is open and opens it again from disk.
	Reopen(ctx context.Context) error
	Close() error
}

// opening is what $open asks for.
type opening struct {
	Suite     string             `json:"suite"`
	Workspace string             `json:"workspace"`
	Config    json.RawMessage    `json:"config"`
	Env       map[string]*string `json:"env"`
}

// suites are the engines that $open can start. The clock is the case's own.
var suites = map[string]func(ctx context.Context, o opening, now func() time.Time) (session, error){
	"records": openRecords, "graph": openGraph,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ainl-conformance:", err)
		os.Exit(1)
	}
}

// driver is the state between two requests.
type driver struct {
	now     time.Time
	current session
}

func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	d := &driver{}
	r, w := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			text, encodeErr := encode(d.answer(ctx, line))
			_, writeErr := w.Write(text)
			if err := errors.Join(encodeErr, writeErr, w.Flush()); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return d.close()
		}
		if err != nil {
			return errors.Join(err, d.close())
		}
	}
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// answer runs one request and returns its answer.
func (d *driver) answer(ctx context.Context, line []byte) map[string]any {
	result, err := d.run(ctx, line)
	if err != nil {
		return map[string]any{"error": map[string]string{"class": string(memory.KindOf(err)), "message": err.Error()}}
	}
	return map[string]any{"result": result}
}

func (d *driver) run(ctx context.Context, line []byte) (any, error) {
	var req struct {
		Op      string          `json:"op"`
		Now     string          `json:"now"`
		Args    json.RawMessage `json:"args"`
		Context json.RawMessage `json:"context"`
	}
	if err := json.Unmarshal(line, &req); err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "the request: %w", err)
	}
	if req.Now != "" {
		now, err := time.Parse(time.RFC3339, req.Now)
		if err != nil {
			return nil, &memory.FieldError{Field: "now", Reason: err.Error()}
		}
		d.now = now
	}
	switch req.Op {
	case "$open":
		return d.open(ctx, line)
	case "$reopen":
		if d.current == nil {
			return nil, memory.Errorf(memory.ErrInvalid, "nothing is open")
		}
		return done, d.current.Reopen(ctx)
	}
	if d.current == nil {
		return nil, memory.Errorf(memory.ErrInvalid, "nothing is open: the first request is $open")
	}
	return d.current.Do(ctx, req.Op, req.Args, req.Context)
}

var done = map[string]bool{"ok": true}

// open drops what was open and starts a suite in a workspace, which becomes the
// base of relative paths.
func (d *driver) open(ctx context.Context, line []byte) (any, error) {
	var o opening
	if err := json.Unmarshal(line, &o); err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "$open: %w", err)
	}
	if err := d.close(); err != nil {
		return nil, err
	}
	start, known := suites[o.Suite]
	if !known {
		return nil, &memory.FieldError{Field: "suite", Reason: fmt.Sprintf("is not known: %q", o.Suite), Hint: "the suites are " + strings.Join(suiteNames(), ", ")}
	}
	if err := os.Chdir(o.Workspace); err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "workspace: %w", err)
	}
	s, err := start(ctx, o, func() time.Time { return d.now })
	if err != nil {
		return nil, err
	}
	d.current = s
	return done, nil
}

func suiteNames() []string {
	var names []string
	for name := range suites {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// close ends the open case.
func (d *driver) close() error {
	if d.current == nil {
		return nil
	}
	err := d.current.Close()
	d.current = nil
	return err
}
