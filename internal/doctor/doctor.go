// Package doctor examines a home and what its agents have in it, file by file, and
// mends what can be mended safely: modes, what killed commands left behind, and
// files that can be made anew from the event log.
//
// An examination reads and creates nothing. What could not be looked at is unknown,
// never well. A mend removes nothing that is known nowhere else: a damaged file is
// kept under another name.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // something is lost, or will be
	Warning Severity = "warning" // something does not work as it should
	Unknown Severity = "unknown" // it could not be looked at
	Info    Severity = "info"    // worth knowing; nothing needs to be done
)

// Finding is one thing that was found.
type Finding struct {
	Severity Severity       `json:"severity"`
	Agent    memory.AgentID `json:"agent,omitempty"` // empty for the home itself
	Check    string         `json:"check"`           // what was looked at, such as "event log"
	What     string         `json:"what"`
	Why      string         `json:"why"`              // it matters
	Do       string         `json:"do"`               // the command to type, or what else to do
	Fixed    string         `json:"fixed,omitempty"`  // what --fix did
	Failed   string         `json:"failed,omitempty"` // why --fix could not

	// acknowledge takes note of what cannot be mended; nil where there is no such thing.
	acknowledge func(context.Context) (did string, err error)

	mend func(context.Context) (did string, err error) // nil: there is no safe way
	then func(context.Context) error                   // after all mends: what opens files again; may be nil
}

// Report is what an examination found.
type Report struct {
	Home     string    `json:"home"`
	Well     []Well    `json:"well"`     // what was looked at, and is well; never null
	Findings []Finding `json:"findings"` // in the order of the looking; never null
}

// Well names what is well.
type Well struct {
	Agent memory.AgentID `json:"agent,omitempty"`
	Check string         `json:"check"`
}

// left reports whether a finding still needs somebody.
func (f Finding) left() bool { return f.Severity != Info && f.Fixed == "" }

// Unwell reports whether anything needs somebody.
func (r Report) Unwell() bool {
	for _, f := range r.Findings {
		if f.left() {
			return true
		}
	}
	return false
}

// Failed is Unwell, for the exit status.
func (r Report) Failed() bool { return r.Unwell() }

// Text shows the report to a person.
func (r Report) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "home %s\n", r.Home)
	owner, first := memory.AgentID(""), true
	for _, w := range r.Well {
		switch {
		case first:
			fmt.Fprintf(&sb, "  well: %s", w.Check)
		case w.Agent != owner:
			fmt.Fprintf(&sb, "\n%s\n  well: %s", w.Agent, w.Check)
		default:
			fmt.Fprintf(&sb, ", %s", w.Check)
		}
		owner, first = w.Agent, false
	}
	if !first {
		sb.WriteString("\n")
	}
	count := map[Severity]int{}
	for _, f := range r.Findings {
		if f.left() {
			count[f.Severity]++
		}
		sb.WriteString(f.text())
	}
	if !r.Unwell() {
		sb.WriteString("nothing needs to be done\n")
		return sb.String()
	}
	fmt.Fprintf(&sb, "%d errors, %d warnings, %d could not be looked at\n", count[Error], count[Warning], count[Unknown])
	return sb.String()
}

func (f Finding) text() string {
	var sb strings.Builder
	whose := "home"
	if f.Agent != "" {
		whose = string(f.Agent)
	}
	fmt.Fprintf(&sb, "%s: %s: %s: %s\n", f.Severity, whose, f.Check, f.What)
	if f.Why != "" && f.Fixed == "" {
		fmt.Fprintf(&sb, "    why it matters: %s\n", f.Why)
	}
	switch {
	case f.Fixed != "":
		fmt.Fprintf(&sb, "    mended: %s\n", f.Fixed)
	case f.Failed != "":
		fmt.Fprintf(&sb, "    not mended: %s\n", f.Failed)
		fallthrough
	default:
		if f.Do != "" {
			fmt.Fprintf(&sb, "    what to do: %s\n", f.Do)
		}
	}
	return sb.String()
}

// Parts are what a Doctor works with. All are required.
type Parts struct {
	Home agents.Home
	// Config is what is wrong with the configuration; nil where nothing is.
	Config error
	// Getenv reads the environment.
	Getenv func(string) string
	// Schedule tells of an agent's jobs.
	Schedule func(context.Context, memory.AgentID) (Schedule, error)
	// Lag counts the events of an agent that are not searchable yet; ErrNotFound where
	// it has none.
	Lag func(context.Context, memory.AgentID) (int64, error)
	// Reach asks the model's endpoint for its models; ErrNotFound where none is
	// configured.
	Reach func(context.Context) error
	// Reopen opens an agent's stores for writing and closes them again: it moves a
	// torn end of the log aside, applies what the log has, indexes it, and makes
	// anew what is missing.
	Reopen func(context.Context, memory.AgentID) error
	// Sessions makes a session's file anew.
	Sessions func(context.Context, memory.AgentID, memory.Session) error
	// Canary writes a probe, sees whether it is recalled, and removes it, as well as
	// what others have left; ErrNotFound for an agent that remembers nothing.
	Canary func(context.Context, memory.AgentID) (vitals.Canary, error)
	// Acknowledge takes note of the events that an agent lost, keeps a record of it, and
	// returns how many those were.
	Acknowledge func(context.Context, memory.AgentID) (int64, error)
	Now         func() time.Time
	// BackupDays is how old the last backup may be; 0 for any age.
	BackupDays int
}

// Schedule is where an agent's jobs stand.
type Schedule struct {
	Serving bool     // a process runs them
	Trouble []string // with the file of the jobs
	Jobs    []Job
}

// Job is a scheduled job.
type Job struct {
	Name    string
	Overdue bool
	Stuck   bool      // its last run has passed its deadline and not returned
	Failed  int       // runs that failed since one ended well
	Last    time.Time // when the last of them started
	Detail  string    // what it said
}

// Request says what to examine.
type Request struct {
	Only    memory.AgentID // empty: all agents
	Fix     bool
	Network bool // the model's endpoint too
	// Acknowledge takes note of the events that were lost: they stay counted, and are
	// no longer wrong.
	Acknowledge bool
	Canary      bool // write a probe and recall it; this alone writes without Fix
}

// examination is one under way.
type examination struct {
	Parts
	agent memory.AgentID // whose turn it is; empty for the home
	dir   agents.Dir
	rep   Report
}

// Examine looks at everything, and mends what it may where that is asked for.
func Examine(ctx context.Context, p Parts, req Request) (Report, error) {
	x := &examination{Parts: p, rep: Report{Home: p.Home.Path(), Well: []Well{}, Findings: []Finding{}}}
	x.home(ctx, req)
	ids, err := p.Home.List()
	if err != nil {
		x.unknown("agents", err)
	}
	if req.Only != "" {
		if _, err := p.Home.Find(req.Only); err != nil {
			return x.rep, err
		}
		ids = []memory.AgentID{req.Only}
	}
	for i, id := range ids {
		op.Report(ctx, op.Progress{Done: int64(i), Total: int64(len(ids)), Unit: "agents"})
		x.agent = id
		if x.dir, err = p.Home.Find(id); err != nil {
			x.unknown("directory", err)
			continue
		}
		x.ofAgent(ctx)
		x.check("canary", func() error { return x.canary(ctx, req.Canary) })
		if ctx.Err() != nil {
			return x.rep, ctx.Err()
		}
	}
	if req.Fix {
		x.mend(ctx)
	}
	if req.Acknowledge {
		x.takeNote(ctx)
	}
	return x.rep, ctx.Err()
}

// mend does what the findings offer, in their order.
func (x *examination) mend(ctx context.Context) {
	for i := range x.rep.Findings {
		f := &x.rep.Findings[i]
		if f.mend == nil || ctx.Err() != nil {
			continue
		}
		did, err := f.mend(ctx)
		if err != nil {
			f.Failed = err.Error()
			continue
		}
		f.Fixed = did
	}
	for i := range x.rep.Findings {
		f := &x.rep.Findings[i]
		if f.Fixed == "" || f.then == nil || ctx.Err() != nil {
			continue
		}
		if err := f.then(ctx); err != nil {
			f.Fixed, f.Failed = "", f.Fixed+"; but then: "+err.Error()
		}
	}
}

// takeNote acknowledges what offers that.
func (x *examination) takeNote(ctx context.Context) {
	for i := range x.rep.Findings {
		f := &x.rep.Findings[i]
		if f.acknowledge == nil || ctx.Err() != nil {
			continue
		}
		did, err := f.acknowledge(ctx)
		if err != nil {
			f.Failed = err.Error()
			continue
		}
		f.Fixed = did
	}
}

func (x *examination) add(f Finding) {
	f.Agent = x.agent
	x.rep.Findings = append(x.rep.Findings, f)
}

func (x *examination) well(check string) {
	x.rep.Well = append(x.rep.Well, Well{x.agent, check})
}

func (x *examination) unknown(check string, err error) {
	do := memory.HintOf(err)
	if errors.Is(err, memory.ErrUnavailable) && do == "" {
		do = "look at the disk and the rights of who runs this, and run doctor again"
	}
	x.add(Finding{Severity: Unknown, Check: check, What: "it could not be looked at: " + err.Error(), Why: "nobody knows whether it is well", Do: do})
}

// errNothing says that there was nothing to look at: it is neither well nor unwell.
var errNothing = errors.New("there is nothing to look at")

// check runs one check: it is well where look adds no finding, and unknown where it
// could not look.
func (x *examination) check(name string, look func() error) {
	before := len(x.rep.Findings)
	err := look()
	switch {
	case errors.Is(err, errNothing):
	case err != nil:
		x.unknown(name, err)
	case len(x.rep.Findings) == before:
		x.well(name)
	}
}
