// Package report writes down, for a person, what became of an agent's memory in a
// span of time: what was learned, changed, merged, archived and quarantined, what
// needs a decision and the command to type for it, what it cost, and what is wrong.
// A report is a Markdown file that reads well in a terminal, and the same as JSON
// beside it.
package report

import (
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/spend"
)

// Report is the output of memory.report, and the content of its JSON file.
type Report struct {
	Agent     memory.AgentID `json:"agent"`
	Scheduled bool           `json:"scheduled" jsonschema:"made by the schedule: it begins where the scheduled one before ended"`
	From      time.Time      `json:"from"`
	Until     time.Time      `json:"until"`
	Seq       int64          `json:"seq" jsonschema:"the last event of the log that changed a memory and is told of here"`
	Quiet     bool           `json:"quiet" jsonschema:"nothing was learned, changed or found to be wrong in that time"`
	Counts    Counts         `json:"counts"`
	Decide    []Decision     `json:"decide" jsonschema:"what needs a person, most important first; at most 10"`
	Waiting   Waiting        `json:"waiting" jsonschema:"how much there is of it"`

	// What happened, each the most important 10 at most; Counts has all.
	Learned     []Line `json:"learned"`
	Superseded  []Line `json:"superseded"`
	Changed     []Line `json:"changed"`
	Merged      []Line `json:"merged"`
	Archived    []Line `json:"archived"`
	Restored    []Line `json:"restored"`
	Quarantined []Line `json:"quarantined"`

	Cost      Cost      `json:"cost"`
	Condition Condition `json:"condition"`
	Growth    []Point   `json:"growth" jsonschema:"active memories at the end of each of the last 8 weeks, as far as there were any"`
	Bytes     int64     `json:"bytes" jsonschema:"size of the agent's directory"`
	File      string    `json:"file,omitempty" jsonschema:"where the report stands as Markdown; the same as .json is beside it"`
}

// Counts says how many memories came to what.
type Counts struct {
	Learned     int `json:"learned" jsonschema:"new, and in use"`
	Confirmed   int `json:"confirmed" jsonschema:"said again or found to be right, with nothing else changed"`
	Changed     int `json:"changed" jsonschema:"say something else, or are of another importance"`
	Superseded  int `json:"superseded" jsonschema:"replaced by a newer one"`
	Merged      int `json:"merged" jsonschema:"became part of one that says the same"`
	Archived    int `json:"archived"`
	Restored    int `json:"restored" jsonschema:"brought back into use"`
	Quarantined int `json:"quarantined"`
	Approved    int `json:"approved" jsonschema:"out of quarantine into use"`
	Rejected    int `json:"rejected"`
	Forgotten   int `json:"forgotten"`
}

// Total is how many memories anything became of.
func (c Counts) Total() int {
	return c.Learned + c.Confirmed + c.Changed + c.Superseded + c.Merged + c.Archived + c.Restored + c.Quarantined + c.Approved + c.Rejected + c.Forgotten
}

// Line is one memory in a report.
type Line struct {
	Handle     string `json:"handle"`
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	Importance int    `json:"importance"`
	Text       string `json:"text" jsonschema:"what it says, shortened"`
	Before     string `json:"before,omitempty" jsonschema:"what it said before, where that differs"`
	// By is the memory that took its place.
	By     string `json:"by,omitempty" jsonschema:"handle of the memory that took its place"`
	ByID   string `json:"by_id,omitempty"`
	ByText string `json:"by_text,omitempty" jsonschema:"what that one says"`
	Why    string `json:"why,omitempty"`
}

// Decision is something that only a person can settle.
type Decision struct {
	Question string   `json:"question"`
	About    []Line   `json:"about" jsonschema:"the memories that it is about"`
	Choices  []Choice `json:"choices"`
}

// Choice is one answer to a Decision.
type Choice struct {
	Says    string `json:"says" jsonschema:"the answer"`
	Command string `json:"command" jsonschema:"what to type"`
}

// Waiting counts what needs a person.
type Waiting struct {
	Quarantine int `json:"quarantine" jsonschema:"memories in quarantine"`
	Verify     int `json:"verify" jsonschema:"memories that are marked to be verified"`
	Messages   int `json:"messages" jsonschema:"messages that are held or could not be delivered"`
}

// Cost is what the agent's models have cost.
type Cost struct {
	Distilling working.Cost `json:"distilling" jsonschema:"the checkpoints of that time"`
	Model      spend.Used   `json:"model" jsonschema:"all model calls of the agent, chats too, in the whole UTC days of that time, 35 at most"`
}

// Condition is how the agent's memory is at the end of the report's time.
type Condition struct {
	Events   int64     `json:"events" jsonschema:"in the log"`
	Backlog  int64     `json:"backlog" jsonschema:"turns not yet distilled"`
	Parked   int       `json:"parked" jsonschema:"ranges of events that could not be distilled yet"`
	Gaps     int64     `json:"gaps" jsonschema:"sequence numbers of which no event is there"`
	Dropped  int64     `json:"dropped" jsonschema:"events that could not be taken"`
	Overdue  []string  `json:"overdue" jsonschema:"jobs that should have run"`
	Problems []Problem `json:"problems"`
}

// Problem is something that is wrong.
type Problem struct {
	Text  string    `json:"text" jsonschema:"what is wrong, and what to do"`
	Since time.Time `json:"since" jsonschema:"when it was noticed first"`
}

// Point is how many memories were active at a time.
type Point struct {
	At     time.Time `json:"at"`
	Active int       `json:"active"`
}
