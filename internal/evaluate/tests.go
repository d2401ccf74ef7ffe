package evaluate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Tests is a file of memory tests: what agents were told, and what they must and
// must not recall of it. The form is described in docs/TESTING.md.
type Tests struct {
	Now    time.Time                    `json:"now"` // when the questions are asked; zero for the real time
	Agents map[memory.AgentID]ToldAgent `json:"agents"`
	Tests  []MemoryTest                 `json:"tests"`
}

// ToldAgent is an agent, and what it is told.
type ToldAgent struct {
	Events       []map[string]any `json:"events"`        // turns, with the members of import's jsonl lines
	File         string           `json:"file"`          // a history beside the tests' file, of any form that import reads
	NoCheckpoint bool             `json:"no_checkpoint"` // leave the turns undistilled
}

// MemoryTest is one question.
type MemoryTest struct {
	Name    string         `json:"name"`
	Agent   memory.AgentID `json:"agent"` // may be left out where there is one
	Ask     string         `json:"ask"`
	Session string         `json:"session"`  // that the question is asked in
	Tokens  int            `json:"tokens"`   // cap of the block; the configured one if 0
	Must    []string       `json:"must"`     // each must stand in the block, whatever its case
	MustNot []string       `json:"must_not"` // none may
	Nothing bool           `json:"nothing"`  // the block must be empty
}

// ReadTests reads and checks a file of memory tests. Unknown members are errors.
func ReadTests(in io.Reader) (Tests, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return Tests{}, memory.Errorf(memory.ErrUnavailable, "read the tests: %w", err)
	}
	var t Tests
	if err := config.ReadYAML(text, &t); err != nil {
		return Tests{}, memory.WithHint(fmt.Errorf("the tests: %w", err), "docs/TESTING.md describes the form")
	}
	return t, t.check()
}

func (t *Tests) check() error {
	if len(t.Agents) == 0 {
		return &memory.FieldError{Field: "agents", Reason: "must name an agent and what it is told"}
	}
	if len(t.Tests) == 0 {
		return &memory.FieldError{Field: "tests", Reason: "must hold a test"}
	}
	names := slices.Sorted(maps.Keys(t.Agents))
	for _, name := range names {
		if _, err := memory.ParseAgentID(string(name)); err != nil {
			return err
		}
		if told := t.Agents[name]; len(told.Events) > 0 == (told.File != "") {
			return &memory.FieldError{Field: "agents." + string(name), Reason: "must have either events or a file"}
		} else if told.File != "" && !fs.ValidPath(told.File) {
			return &memory.FieldError{Field: "agents." + string(name) + ".file", Reason: "must be a path below the folder of the tests' file"}
		}
	}
	for i := range t.Tests {
		test, at := &t.Tests[i], fmt.Sprintf("tests[%d]", i)
		if test.Agent == "" && len(names) == 1 {
			test.Agent = names[0]
		}
		if test.Name == "" {
			test.Name = test.Ask
		}
		switch {
		case test.Ask == "":
			return &memory.FieldError{Field: at + ".ask", Reason: "must not be empty"}
		case !slices.Contains(names, test.Agent):
			return &memory.FieldError{Field: at + ".agent", Reason: fmt.Sprintf("must be one of the file's agents, not %q", test.Agent)}
		case test.Tokens < 0:
			return &memory.FieldError{Field: at + ".tokens", Reason: "must not be negative"}
		case len(test.Must)+len(test.MustNot) == 0 && !test.Nothing:
			return &memory.FieldError{Field: at, Reason: "must say what must or must_not be recalled, or nothing: true"}
		case len(test.Must) > 0 && test.Nothing:
			return &memory.FieldError{Field: at + ".nothing", Reason: "must not stand beside must"}
		}
	}
	return nil
}

// World is the fresh home that tests run in.
type World interface {
	// Tell imports a history into an agent, and distils it if so asked.
	Tell(ctx context.Context, agent memory.AgentID, history io.Reader, distil bool) error
	Recall(ctx context.Context, agent memory.AgentID, req recall.Request) recall.Block
}

// TestResult is the outcome of one test.
type TestResult struct {
	Name   string         `json:"name"`
	Agent  memory.AgentID `json:"agent"`
	Passed bool           `json:"passed"`
	Why    []string       `json:"why"`   // it failed; empty if it passed
	Block  string         `json:"block"` // what was recalled
}

// TestReport is the outcome of a file of tests.
type TestReport struct {
	Passed int          `json:"passed"`
	Wrong  int          `json:"failed"`
	Tests  []TestResult `json:"tests"`
}

// Failed reports whether a test did.
func (r TestReport) Failed() bool { return r.Wrong > 0 }

// Run tells the agents their histories and asks the questions. dir holds the
// files that the tests name. Beside what a test asks for, its block must not hold
// a line that only another agent was told.
func (t Tests) Run(ctx context.Context, w World, dir fs.FS) (TestReport, error) {
	told := map[memory.AgentID]string{} // all that an agent was told, folded
	for i, agent := range slices.Sorted(maps.Keys(t.Agents)) {
		op.Report(ctx, op.Progress{Done: int64(i), Total: int64(len(t.Agents)), Unit: "agents"})
		history, err := t.Agents[agent].history(dir)
		if err != nil {
			return TestReport{}, fmt.Errorf("agents.%s: %w", agent, err)
		}
		if err := w.Tell(ctx, agent, bytes.NewReader(history), !t.Agents[agent].NoCheckpoint); err != nil {
			return TestReport{}, fmt.Errorf("agents.%s: %w", agent, err)
		}
		told[agent] = fold(string(history))
	}
	rep := TestReport{Tests: make([]TestResult, 0, len(t.Tests))}
	for _, test := range t.Tests {
		block := w.Recall(ctx, test.Agent, recall.Request{Text: test.Ask, Session: test.Session, Tokens: test.Tokens})
		why := append(test.complaints(block), foreign(block, test.Agent, told)...)
		rep.Tests = append(rep.Tests, TestResult{Name: test.Name, Agent: test.Agent, Passed: len(why) == 0, Why: why, Block: block.Text})
		if len(why) == 0 {
			rep.Passed++
		} else {
			rep.Wrong++
		}
	}
	return rep, nil
}

// history returns what an agent is told, in a form that import reads.
func (a ToldAgent) history(dir fs.FS) ([]byte, error) {
	if a.File != "" {
		text, err := fs.ReadFile(dir, a.File)
		if err != nil {
			return nil, memory.Errorf(memory.ErrNotFound, "%w", err)
		}
		return text, nil
	}
	var b bytes.Buffer
	for i, event := range a.Events {
		line, err := json.Marshal(event)
		if err != nil {
			return nil, &memory.FieldError{Field: fmt.Sprintf("events[%d]", i), Reason: "must be a mapping of texts: " + err.Error()}
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// complaints says what is wrong with a block.
func (t MemoryTest) complaints(block recall.Block) []string {
	why := []string{}
	if block.Degraded != "" {
		why = append(why, "recall was degraded: "+block.Degraded)
	}
	if t.Nothing && block.Text != "" {
		why = append(why, "something was recalled")
	}
	shown := fold(strings.Join(block.Lines, "\n"))
	for _, want := range t.Must {
		if !strings.Contains(shown, fold(want)) {
			why = append(why, fmt.Sprintf("%q is missing", want))
		}
	}
	for _, unwanted := range t.MustNot {
		if strings.Contains(shown, fold(unwanted)) {
			why = append(why, fmt.Sprintf("%q was recalled", unwanted))
		}
	}
	return why
}

// foreign says which lines of a block only other agents can have been told.
func foreign(block recall.Block, agent memory.AgentID, told map[memory.AgentID]string) []string {
	var why []string
	for _, line := range block.Lines {
		_, content, _ := strings.Cut(line, ") ")
		content = fold(content)
		if content == "" || strings.Contains(told[agent], content) {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(told)) {
			if other != agent && strings.Contains(told[other], content) {
				why = append(why, fmt.Sprintf("agent %s was told this, and not %s: %s", other, agent, line))
			}
		}
	}
	return why
}

// fold makes texts comparable: lower case, runs of white space as one space.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
