// Package fault is the frame of the fault matrix: the rows of `make fault`, what
// each needs, and how it tells what it found. It is for tests only.
//
// A row is two things: an entry in Matrix, and a test named TestFault<ID> in the
// package that the entry names, in a file with the build tag fault, so that
// `go test ./...` does not run it. The test begins with Begin, scales its work
// with N, and says what it found with Count (a figure), Zero, AtMost, AtLeast
// (a figure that must hold) and, of a part that could not be done, Without:
//
//	func TestFaultF4(t *testing.T) {
//		r := fault.Begin(t, "F4")
//		panics := 0
//		for range r.N(1200) { … }
//		r.Count("mutants", r.N(1200))
//		r.Zero("panics", panics)
//	}
//
// `make fault ROWS=F4 SCALE=5` runs one row with a twentieth of its work; so does
// FAULT_SCALE=5 go test -tags=sqlite_fts5,fault -run TestFaultF4 in the package.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Lane says beside what a row may run. Rows of one lane run one after another,
// the two lanes CPU and Disk beside each other, and Alone after both.
type Lane string

// The lanes.
const (
	CPU   Lane = "cpu"   // computes most of the time
	Disk  Lane = "disk"  // waits for the disk, a lock or a timer most of the time
	Alone Lane = "alone" // measures time, and wants the machine for itself
)

// Need is something that a row cannot do without.
type Need string

// The needs.
const (
	Root   Need = "root"   // may mount and shut down file systems
	Loop   Need = "loop"   // loop devices and mkfs.ext4
	Strace Need = "strace" // puts faults into system calls
)

// Row is a row of the matrix.
type Row struct {
	ID      string `json:"id"`    // F1, F2, …
	Title   string `json:"title"` // what goes wrong
	Package string `json:"-"`     // whose TestFault<ID> it is, from the module's root
	Lane    Lane   `json:"lane"`
	Needs   []Need `json:"-"` // without which nothing of it can be done
}

// Outcome is how a row ended.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Partly  Outcome = "partly"  // all that could be done passed, but not all could be done
	Skipped Outcome = "skipped" // nothing of it could be done
	Missing Outcome = "missing" // it said nothing: it was killed, or there is no such test
)

// Figure is one thing that a row counted or measured.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Must  string `json:"must,omitempty"` // what it had to be; "" where it is told only
	Broke bool   `json:"broke,omitempty"`
}

func (f Figure) String() string {
	if f.Broke {
		return fmt.Sprintf("%s %s (must be %s)", f.Name, f.Value, f.Must)
	}
	return f.Name + " " + f.Value
}

// Result is what became of a row.
type Result struct {
	Row
	Outcome Outcome  `json:"outcome"`
	Scale   int      `json:"scale"` // per cent of the whole work
	Figures []Figure `json:"figures"`
	Without []string `json:"without,omitempty"` // what could not be done, and why
	Seconds float64  `json:"seconds"`
	CPU     float64  `json:"cpu_seconds"` // of cores, by the row's process and those that it started
}

// Line is the row's one line.
func (r Result) Line() string {
	parts := make([]string, len(r.Figures))
	for i, f := range r.Figures {
		parts[i] = f.String()
	}
	line := strings.Join(parts, ", ")
	if len(r.Without) > 0 {
		line = strings.TrimPrefix(line+"; WITHOUT "+strings.Join(r.Without, "; "), "; ")
	}
	return line
}

// Names of the environment that the matrix tells its rows with.
const (
	ScaleVar   = "FAULT_SCALE"   // per cent of the whole work; 100 if unset
	ResultsVar = "FAULT_RESULTS" // directory in which a row leaves <ID>.json; none if unset
)

// Run is a row that is being run. It is not safe for concurrent use.
type Run struct {
	t      *testing.T
	result Result
	began  time.Time
}

// Begin begins the row of this ID. Where something is missing that it needs, the
// test is skipped, with a line that cannot be overlooked. What the row found is
// told at the test's end.
func Begin(t *testing.T, id string) *Run {
	t.Helper()
	at := slices.IndexFunc(Matrix(), func(r Row) bool { return r.ID == id })
	if at < 0 {
		t.Fatalf("there is no row %s in the matrix", id)
	}
	scale := 100
	if text := os.Getenv(ScaleVar); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q, not a number of per cent from 1", ScaleVar, text)
		}
		scale = n
	}
	r := &Run{t: t, result: Result{Row: Matrix()[at], Scale: scale, Figures: []Figure{}}, began: time.Now()}
	t.Cleanup(r.end)
	for _, need := range r.result.Needs {
		if why := Lacks(need); why != "" {
			r.Without("%s", why)
		}
	}
	if len(r.result.Without) > 0 {
		r.result.Outcome = Skipped
		t.SkipNow()
	}
	return r
}

// N is how many of the whole are to be done at this scale; one at least.
func (r *Run) N(whole int) int { return max(1, whole*r.result.Scale/100) }

// For is how long of the whole time is to be gone on at this scale; a second at
// least.
func (r *Run) For(whole time.Duration) time.Duration {
	return max(time.Second, whole*time.Duration(r.result.Scale)/100)
}

// Count tells a figure.
func (r *Run) Count(name string, value any) { r.figure(name, value, "", false) }

// Zero tells a figure that must be 0.
func (r *Run) Zero(name string, n int) {
	r.t.Helper()
	r.figure(name, n, "0", n != 0)
}

// AtMost tells a figure that must not be above a limit.
func (r *Run) AtMost(name string, got, limit float64, unit string) {
	r.t.Helper()
	r.figure(name, number(got)+unit, "at most "+number(limit)+unit, !(got <= limit))
}

// AtLeast tells a figure that must not be below a limit.
func (r *Run) AtLeast(name string, got, limit float64, unit string) {
	r.t.Helper()
	r.figure(name, number(got)+unit, "at least "+number(limit)+unit, !(got >= limit))
}

// number writes at most three decimals.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func (r *Run) figure(name string, value any, must string, broke bool) {
	r.t.Helper()
	f := Figure{Name: name, Value: fmt.Sprint(value), Must: must, Broke: broke}
	r.result.Figures = append(r.result.Figures, f)
	if broke {
		r.t.Errorf("%s: %s", r.result.ID, f)
	}
}

// Without tells of a part that could not be done here, and why. The row has not
// passed then, but has not failed either.
func (r *Run) Without(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	r.result.Without = append(r.result.Without, what)
	fmt.Fprintf(os.Stderr, "!!! %s NOT DONE: %s\n", r.result.ID, what)
}

// Has reports whether a need is met. Where it is not, the part that is meant is
// told as not done.
func (r *Run) Has(need Need, part string) bool {
	why := Lacks(need)
	if why != "" {
		r.Without("%s: %s", part, why)
	}
	return why == ""
}

func (r *Run) end() {
	r.result.Seconds = time.Since(r.began).Seconds()
	switch {
	case r.t.Failed():
		r.result.Outcome = Failed
	case r.result.Outcome == Skipped:
	case len(r.result.Figures) == 0: // it would have told something
		r.t.Errorf("%s ended without a figure", r.result.ID)
		r.result.Outcome = Failed
	case len(r.result.Without) > 0:
		r.result.Outcome = Partly
	default:
		r.result.Outcome = Passed
	}
	fmt.Printf("%s %s: %s\n", r.result.ID, r.result.Outcome, r.result.Line())
	dir := os.Getenv(ResultsVar)
	if dir == "" {
		return
	}
	text, err := json.MarshalIndent(r.result, "", "  ")
	if err != nil {
		r.t.Error(err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, r.result.ID+".json"), append(text, '\n'), 0o600); err != nil {
		r.t.Error(err)
	}
}

// Dir is t.TempDir on a file system in memory, where there is one: neither kill -9
// nor a cut of a Volume's power asks for a real disk, and rows that share one
// would wait for each other.
func Dir(t testing.TB) string {
	t.Helper()
	const memory = "/dev/shm"
	if st, err := os.Stat(memory); err != nil || !st.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "fault-")
	if errors.Is(err, fs.ErrPermission) {
		return t.TempDir()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Lacks says what is missing to a need, and how to get it; "" for nothing.
func Lacks(need Need) string {
	lookFor := func(tool, from string) string {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Sprintf("needs %s (apt-get install -y %s)", tool, from)
		}
		return ""
	}
	switch need {
	case Root:
		if os.Geteuid() != 0 {
			return "needs root"
		}
	case Loop:
		if _, err := os.Stat("/dev/loop-control"); err != nil {
			return "needs loop devices"
		}
		return lookFor("mkfs.ext4", "e2fsprogs")
	case Strace:
		return lookFor("strace", "strace")
	}
	return ""
}
