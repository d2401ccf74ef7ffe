package recall

import (
	"testing"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
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

// TestAnswersThatSayNothing has the offline answerer not know something: neither a
// new archive nor one that indexed such answers as any other finds them again.
func TestAnswersThatSayNothing(t *testing.T) {
	nothing, err := llm.Offline{}.Chat(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Content: "Where do I live?"}}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.settings.Threshold = -1
	w.say("s1", memory.OriginUser, "The offline answerer runs on the old laptop.")
	w.say("s1", memory.OriginAssistant, nothing.Text)
	if hits, err := w.archive.Search(t.Context(), nil, nil); err != nil || hits.Len() != 2 || !hits.Passage(2).Is(archive.Suppressed) {
		t.Fatalf("the answer is indexed as any other: %+v, %v", hits, err)
	}
	textsOf := func(r *reader) []string {
		var texts []string
		for {
			e, _, more, err := r.peek(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				return texts
			}
			texts = append(texts, e.Text)
			r.next()
		}
	}
	// What an archive of before has ranked.
	old := &reader{found: &found{store: w.archive, episodes: []ranked{{n: 2}, {n: 1}}}}
	if got := textsOf(old); len(got) != 1 || got[0] == nothing.Text {
		t.Errorf("read %q", got)
	}
	if b := w.block("s2", "What do you know of memory and the offline answerer?"); len(b.Lines) != 1 {
		t.Errorf("recalled %q", b.Lines)
	}
	res, err := w.service.Search(t.Context(), agent, Query{Text: "offline answerer memory", Scope: "episodes"})
	if err != nil || len(res.Episodes) != 1 {
		t.Errorf("found %+v, %v", res.Episodes, err)
	}
}
