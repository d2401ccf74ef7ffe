package scheduler

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Job is something to do again and again for one agent: an operation with its
// input, or a message said to the agent.
type Job struct {
	Agent    memory.AgentID `json:"agent"`
	Name     string         `json:"name"` // unique among the agent's jobs
	Schedule string         `json:"schedule"`
	Timezone string         `json:"timezone"` // IANA name; "" for UTC
	Op       string         `json:"op,omitempty"`
	Input    map[string]any `json:"input,omitempty"`
	Message  string         `json:"message,omitempty"`
	Deadline string         `json:"deadline"`          // of one run, such as 10m
	By       memory.Origin  `json:"by"`                // who added it: its runs act in that name
	Default  bool           `json:"default,omitempty"` // kept as configured
	Paused   bool           `json:"paused"`
	// Since is when the schedule began to count: when the job was added or resumed.
	Since     time.Time  `json:"since"`
	LastStart *time.Time `json:"last_start"`
	Starts    int64      `json:"starts"`  // so often it was started; tells one start from another on any clock
	Running   *Run       `json:"running"` // started, and not known to have ended
	// Stuck says that the last run has passed its deadline and not returned. The
	// job is not started again before it does, or its process ends.
	Stuck   bool  `json:"stuck"`
	Skipped int   `json:"skipped"` // times that it was due while a run had not returned
	Runs    []Run `json:"runs"`    // newest first, at most RunsKept
}

// RunsKept is how many past runs of a job are kept.
const RunsKept = 10

// Run is one run of a job.
type Run struct {
	Due     time.Time  `json:"due"` // when it should have started
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended"`   // null while it runs, and where its process died
	Trigger string     `json:"trigger"` // schedule or hand
	Outcome Outcome    `json:"outcome"` // empty while it runs
	Detail  string     `json:"detail,omitempty"`
}

// What makes a job run.
const (
	BySchedule = "schedule"
	ByHand     = "hand"
)

// Outcome says how a run ended.
type Outcome string

// The outcomes.
const (
	Done        Outcome = "ok"
	Failed      Outcome = "failed"
	Panicked    Outcome = "panic"
	TimedOut    Outcome = "deadline"    // the job's own
	Stopped     Outcome = "stopped"     // the program was shutting down, or whoever ran it by hand went away
	Interrupted Outcome = "interrupted" // its process died
)

// Limits of a job.
const (
	maxMessage  = 8 << 10 // bytes
	maxDeadline = 24 * time.Hour
)

var jobName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// key tells a job apart from all others of the home.
func (j *Job) key() string { return string(j.Agent) + "/" + j.Name }

func (j *Job) deadline() (time.Duration, error) {
	d, err := time.ParseDuration(j.Deadline)
	if err != nil || d < time.Second || d > maxDeadline {
		return 0, &memory.FieldError{Field: "deadline", Reason: "must be a duration between 1s and 24h", Hint: "such as 10m"}
	}
	return d, nil
}

// input returns Input as JSON.
func (j *Job) input() (json.RawMessage, error) {
	if j.Input == nil {
		return json.RawMessage("{}"), nil
	}
	raw, err := json.Marshal(j.Input)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "input of %s: %w", j.Op, err)
	}
	return raw, nil
}

// check reports the first rule of form that the job breaks.
func (j *Job) check() error {
	if _, err := memory.ParseAgentID(string(j.Agent)); err != nil {
		return err
	}
	if !jobName.MatchString(j.Name) {
		return &memory.FieldError{Field: "name", Reason: "must be 1 to 63 of a-z, 0-9, - _ and ., and start with a letter or digit"}
	}
	if _, err := parseTiming(j.Schedule, j.Timezone); err != nil {
		return err
	}
	if _, err := j.deadline(); err != nil {
		return err
	}
	switch {
	case (j.Op == "") == (j.Message == ""):
		return &memory.FieldError{Field: "op", Reason: "must be given, or else message; not both", Hint: `such as --op memory.checkpoint or --message "/tool memory.checkpoint {}"`}
	case j.Message != "" && j.Input != nil:
		return &memory.FieldError{Field: "input", Reason: "goes with op, not with message"}
	case len(j.Message) > maxMessage:
		return &memory.FieldError{Field: "message", Reason: fmt.Sprintf("must be at most %d bytes", maxMessage)}
	case j.Message != "" && strings.TrimSpace(j.Message) == "":
		return &memory.FieldError{Field: "message", Reason: "must say something"}
	}
	return nil
}

// due returns when the job should start next, as seen at now: at once where the
// clock was set back to before its last start, since how long ago that was cannot
// be known; zero for never.
func (j *Job) due(now time.Time) (time.Time, error) {
	from := j.Since
	if j.LastStart != nil && j.LastStart.After(from) {
		from = *j.LastStart
	}
	if from.After(now) {
		return now, nil
	}
	tm, err := parseTiming(j.Schedule, j.Timezone)
	if err != nil {
		return time.Time{}, err
	}
	return tm.next(from), nil
}

// begin notes that a run starts now. A clock that was set back clamps what lies
// in its future.
func (j *Job) begin(r Run) {
	j.settle()
	if j.Since.After(r.Started) {
		j.Since = r.Started
	}
	j.LastStart, j.Running = &r.Started, &r
	j.Starts++
}

// end notes that the running run has ended, or passed its deadline without
// returning.
func (j *Job) end(r Run, stuck bool) {
	j.Running, j.Stuck = nil, stuck
	j.Runs = append([]Run{r}, j.Runs...)
	if len(j.Runs) > RunsKept {
		j.Runs = j.Runs[:RunsKept]
	}
}

// settle notes that whatever ran is gone with its process: the caller holds the
// job's lock. It reports whether anything changed.
func (j *Job) settle() bool {
	changed := j.Stuck
	j.Stuck = false
	if j.Running != nil {
		r := *j.Running
		r.Outcome, r.Detail = Interrupted, "its process ended before it did"
		j.end(r, false)
		changed = true
	}
	return changed
}

// shift moves the past of an interval job. It reports whether it did.
func (j *Job) shift(by time.Duration) bool {
	tm, err := parseTiming(j.Schedule, j.Timezone)
	if err != nil || tm.every == 0 {
		return false
	}
	j.Since = j.Since.Add(by)
	if j.LastStart != nil {
		at := j.LastStart.Add(by)
		j.LastStart = &at
	}
	return true
}

// work names what a job does: its operation, or that of a /tool message.
func (j Job) work() string {
	if j.Op != "" {
		return j.Op
	}
	if words := strings.Fields(j.Message); len(words) > 1 && words[0] == "/tool" {
		return words[1]
	}
	return "message"
}
