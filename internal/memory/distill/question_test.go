package distill

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	corpus "github.com/openclawssy/openclawssy/internal/judge/hostile"
	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestQuestionsStateNothing(t *testing.T) {
	for content, want := range map[string]bool{
		"How do I like my green tea?":                                 true,
		"How do I like my green tea":                                  true,
		"Does the user drink coffee?":                                 true,
		"User prefers oolong or sencha?":                              true,
		"Green tea?":                                                  true,
		"What is the gate code? And who has the key?":                 true,
		"did we pay the deposit":                                      true,
		"¿Dónde vive mi hermana?":                                     true,
		"私の妹はどこに住んでいますか？":                                             true,
		"\"Where is the spare key?\"":                                 true,
		"How many eggs does the cake need":                            true,
		"Asked whether the user smokes; said no, since 2012.":         false,
		"Asked whether the user likes tea? The user said yes.":        false,
		"User asked how to prune the roses.":                          false,
		"User wants to know: is the pool heated?":                     false,
		"What is the gate code? It is on the fridge.":                 false,
		"What matters to the user is honesty.":                        false,
		"What is good for Ana is good for Ben too.":                   false,
		"When's the release: Monday":                                  false,
		"Had the flu in May.":                                         false,
		"Has the spare key of the studio.":                            false,
		"Will is the user's brother.":                                 false,
		"May is when the user's mother visits.":                       false,
		"The review is at nine, right?":                               false,
		"User's favourite show is \"Who wants to be a millionaire?\"": false,
		"User's favourite film is Who Framed Roger Rabbit?":           false,
		"Who pays for the hosting: Ben.":                              false,
		"How the user takes tea: two minutes at 75 degrees.":          false,
		"User likes green tea.":                                       false,
		"User is wondering if the move to Oslo is worth it.":          false,
		"": false,
	} {
		if got := onlyAsks(content); got != want {
			t.Errorf("onlyAsks(%q) = %t", content, got)
		}
	}
}

// A statement beside a question is enough, whatever the question.
func TestStatementAmongQuestions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		questions := rapid.SliceOfN(rapid.SampledFrom([]string{"How do I like my tea?", "Who has the key?", "Is the pool heated?", "Did we pay?"}), 1, 4).Draw(t, "questions")
		if asked := strings.Join(questions, " "); !onlyAsks(asked) {
			t.Fatalf("%q states something", asked)
		}
		at := rapid.IntRange(0, len(questions)).Draw(t, "at")
		told := append(append(append([]string{}, questions[:at]...), "The tea stands for two minutes."), questions[at:]...)
		if text := strings.Join(told, " "); onlyAsks(text) {
			t.Fatalf("%q states nothing", text)
		}
	})
}

// The gate refuses a question for a statement, with its field and a reason, and
// lets it pass where a kind states nothing.
func TestGateRefusesQuestions(t *testing.T) {
	e, _ := corpus.User.Event("How do I like my green tea? Never mind, I'll find the note.")
	for kind, want := range map[string]bool{memory.KindFact: true, memory.KindPreference: true, memory.KindPerson: true, memory.KindDecision: true, memory.KindEvent: true,
		memory.KindNote: false, memory.KindIssue: false} {
		v := Gate(corpusBatch(e), Reply{NewItems: []NewItem{{Kind: kind, Title: "Green tea", Content: "How does the user like green tea?", Importance: 3, Confidence: .9,
			Evidence: []Quote{{EventID: "evt_1", Quote: "How do I like my green tea?"}}}}})
		if refused := len(v.Refused) == 1 && v.Refused[0].Reason == "content is a question, and states nothing"; refused != want || want == (len(v.Accepted) == 1) {
			t.Errorf("%s: %+v", kind, v)
		}
	}
}
