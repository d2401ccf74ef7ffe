package recall

import (
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestEcho(t *testing.T) {
	p := &packer{found: &found{search: search{request: Request{Text: "When does the ferry leave?"}}}}
	p.remember("The ferry leaves at nine from pier four.")
	for name, tc := range map[string]struct {
		kind memory.EventType
		text string
		want string
	}{
		"the same question":            {memory.UserMessage, "when does the ferry leave?", "asks the same"},
		"another question":             {memory.UserMessage, "When does the ferry arrive?", ""},
		"a statement of those words":   {memory.UserMessage, "The ferry leaves.", ""},
		"an answer that quotes":        {memory.AssistantOutput, "From memory: the boat. [MEM-3]", "repeats a block of memory"},
		"an answer with nothing new":   {memory.AssistantOutput, "The ferry leaves at nine, pier four.", "says nothing that a line before it does not say"},
		"an answer with something new": {memory.AssistantOutput, "The ferry needs forty minutes, bring a coat.", ""},
	} {
		if got := p.echo(memory.Episode{Type: tc.kind, Text: tc.text}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
