package runlog

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Entry is one line of the audit log: that an operation was asked for, by whom,
// and what came of it. It holds no input and no result.
type Entry struct {
	At       time.Time      `json:"at"` // set by the store
	Agent    memory.AgentID `json:"agent"`
	Op       string         `json:"op"`
	Effect   op.Effect      `json:"effect"` // empty for an operation that does not exist
	Caller   string         `json:"caller"` // CallerModel, CallerUser, CallerCron, or the name of a face
	Session  string         `json:"session"`
	Run      string         `json:"run"`
	Decision string         `json:"decision"`        // Allow or Deny
	Outcome  string         `json:"outcome"`         // OK or the kind of the error; empty where denied
	Error    string         `json:"error,omitempty"` // redacted
	Millis   int64          `json:"ms"`
}

// What policy said.
const (
	Allow = "allow"
	Deny  = "deny"
)

// Who asked for an operation.
const (
	CallerModel = "model"
	CallerUser  = "user"
	CallerCron  = "cron"
)

// Outcome names how a call ended: OK, or the kind of its error.
func Outcome(err error) string {
	if err == nil {
		return OK
	}
	return string(memory.KindOf(err))
}

// Audit adds a line to the log of the day (UTC). Lines of operations that change
// something, and of refusals, are on disk when it returns; those of reads reach
// it with the next such line or when the system writes them.
func (s *Store) Audit(e Entry) error {
	e.At, e.Agent = s.Now().UTC(), s.Agent
	e.Op, e.Error = s.Redact.Text(e.Op), s.Redact.Text(e.Error)
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit %s: %w", e.Op, err)
	}
	s.audit.Lock()
	defer s.audit.Unlock()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "audit %s: %w", e.Op, err)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "audit %s: %w", e.Op, err)
	}
	defer root.Close()
	if err := root.MkdirAll("audit", 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "audit %s: %w", e.Op, err)
	}
	name := path.Join("audit", e.At.Format(time.DateOnly)+".jsonl")
	if err := appendLine(root, name, line); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "audit %s: %w", e.Op, err)
	}
	if e.Effect == op.Read && e.Decision == Allow {
		return nil
	}
	if err := syncFile(root, name); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "audit %s: %w", e.Op, err)
	}
	return nil
}
