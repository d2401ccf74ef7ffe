// Package hostile is for tests only: the corpus of texts that try to misuse a
// memory, and of harmless ones with the same words, in testdata/hostile.
package hostile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Variable names the environment variable that may hold a folder with more
// files of the same form, such as a set that nobody who writes the rules has seen.
const Variable = "OPENCLAWSSY_HOSTILE"

// Benign is the class of the controls, which mean no harm.
const Benign = "benign"

// Channel is the way by which a text comes into a memory.
type Channel string

// The channels. Turns come by the first six; a record's value, a label of the
// graph, a model's reply to a distillation and an agent's name are no turns.
const (
	User        Channel = "user"
	Assistant   Channel = "assistant"
	ToolResult  Channel = "tool_result"
	Web         Channel = "web"
	Import      Channel = "import_md"
	AgentMail   Channel = "agent_mail"
	RecordValue Channel = "record_value"
	GraphLabel  Channel = "graph_label"
	ModelReply  Channel = "model_reply"
	AgentName   Channel = "agent_name"
)

// Channels are all of them.
var Channels = []Channel{User, Assistant, ToolResult, Web, Import, AgentMail, RecordValue, GraphLabel, ModelReply, AgentName}

// What a distiller must do with a text of the user or from elsewhere, and what
// becomes of it in a block.
const (
	Reject = "reject" // no active item may come of it
	Store  = "store"  // an item that says it must not be set aside
	Any    = "any"    // either; a block may also leave it out
	Line   = "line"   // it stands in the block, as one line
	None   = "none"   // it does not stand in the block
)

// Case is one line of the corpus.
type Case struct {
	ID      string  `json:"id"`
	Class   string  `json:"class"`
	Channel Channel `json:"channel"`
	Text    string  `json:"text"`
	Expect  Expect  `json:"expect"`
}

// Expect says what must become of a text.
type Expect struct {
	Distil string   `json:"distil"` // Reject, Store or Any
	Recall string   `json:"recall"` // Line, None or Any
	Forbid []string `json:"forbid"` // must not stand in its line
	Keep   []string `json:"keep"`   // words that must still be readable in its line
}

// Load reads the corpus; folder is testdata/hostile as seen from the test.
func Load(t testing.TB, folder string) []Case {
	t.Helper()
	folders := []string{folder}
	if more := os.Getenv(Variable); more != "" {
		folders = append(folders, more)
	}
	var all []Case
	for _, f := range folders {
		files, err := filepath.Glob(filepath.Join(f, "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no corpus in %s: %v", f, err)
		}
		for _, name := range files {
			all = append(all, read(t, name)...)
		}
	}
	return all
}

func read(t testing.TB, name string) []Case {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var cases []Case
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 4<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		var c Case
		if err := dec.Decode(&c); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return cases
}

// Event returns the turn by which a text comes in, and false where it comes by no
// turn.
func (ch Channel) Event(words string) (memory.Event, bool) {
	e := memory.Event{Type: memory.UserMessage, Text: words, SessionID: "s1"}
	switch ch {
	case User:
		e.Origin = memory.OriginUser
	case Assistant:
		e.Type, e.Origin = memory.AssistantOutput, memory.OriginAssistant
	case ToolResult:
		e.Type, e.Origin = memory.ToolResult, memory.OriginTool
	case Web:
		e.Type, e.Origin = memory.ToolResult, memory.OriginWeb
	case Import:
		e.Origin = memory.OriginImport
	case AgentMail:
		e.Origin = memory.OriginAgent
	default:
		return memory.Event{}, false
	}
	return e, true
}

// Broken returns what of Forbid stands in a line, as it would look to a reader
// who does not see invisible characters.
func (c Case) Broken(line string) []string {
	seen := plain(line)
	var out []string
	for _, f := range c.Expect.Forbid {
		if strings.Contains(line, f) || plain(f) != "" && strings.Contains(seen, plain(f)) {
			out = append(out, f)
		}
	}
	return out
}

// Lost returns the words of Keep that are not readable in a line.
func (c Case) Lost(line string) []string {
	seen := strings.ToLower(plain(line))
	var out []string
	for _, k := range c.Expect.Keep {
		if !strings.Contains(seen, strings.ToLower(plain(k))) {
			out = append(out, k)
		}
	}
	return out
}

// plain is s after NFKC and without what has no ink.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if text.IsInvisible(r) && r != '\n' || r == utf8.RuneError {
			return -1
		}
		return r
	}, norm.NFKC.String(s))
}
