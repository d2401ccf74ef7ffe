package distill

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func shownMentions(kind, content string) string {
	var out []string
	for _, m := range Mentions(memory.Item{Kind: kind, Content: content}) {
		out = append(out, m.Kind+":"+m.Name)
	}
	return strings.Join(out, " ")
}

func TestMentions(t *testing.T) {
	for content, want := range map[string]string{
		"User's sister Anna lives in Lisbon.":                                     "person:Anna place:Lisbon",
		"User's brother Daan is organising it, User is responsible for the cake.": "person:Daan",
		"User's name's Noor, User is doing a master's in hydrology.":              "person:Noor",
		"Our security person is Ottoline, she signs off every auth change.":       "person:Ottoline",
		"Dr Okonjo is the second examiner.":                                       "person:Okonjo",
		"In practice it's Tomasz, her postdoc, who supervises.":                   "person:Tomasz",
		"It's Tomasz, our supervisor.":                                            "person:Tomasz",
		"User moved to Den Helder in March.":                                      "place:Den Helder",
		"We moved to Vonage from 1 March.":                                        ":Vonage",
		"User stayed in Rio de Janeiro for a week.":                               "place:Rio de Janeiro",
		"Meine Oma wohnt in Münster und spricht nur Deutsch.":                     "place:Münster :Deutsch",
		"Halyard is our patient messaging app for three hospitals.":               "project:Halyard",
		"Project Lighthouse ships in May.":                                        "project:Lighthouse",
		"We use Brackwater for the invoices.":                                     "tool:Brackwater",
		"In Redis, with a TTL of 6 hours.":                                        "tool:Redis :TTL",
		"the backend is in postgres now":                                          "tool:postgres",
		"Anna's birthday is on 4 May.":                                            "person:Anna",
		"User's dog is called Rex.":                                               ":Rex",
		"The deadline is in June, on a Monday.":                                   "",
		"Please use British spelling.":                                            ":British",
		"Prices were raised, so we're going to Vonage.":                           ":Vonage",
		"Anna leads the team.":                                                    "person:Anna",
		"When said and done, Who wants more?":                                     "",
		"She got a job in Ghent.":                                                 "place:Ghent",
		"User likes green tea.":                                                   "",
		"HAL-412 can be closed.":                                                  "",
		"We go with Corvid. (previously: We use Brightline)":                      ":Corvid",
		"": "",
	} {
		if got := shownMentions(memory.KindFact, content); got != want {
			t.Errorf("%q: %s, want %s", content, got, want)
		}
	}
	if got := shownMentions(memory.KindPerson, "Kim can help."); got != "person:Kim" {
		t.Errorf("an item about a person: %s", got)
	}
}

// TestMentionsStandInTheText: whatever the text, a mention is a part of it.
func TestMentionsStandInTheText(t *testing.T) {
	word := rapid.SampledFrom([]string{"User", "Anna", "lives", "in", "Lisbon", "of", "de", "Dr", "is", "our", "app", "called", "'s", "Kim's", "\"", "(", ")", ".", ",", "—", "Ørsted", "李雷", "Redis", "c++", "I’m"})
	rapid.Check(t, func(t *rapid.T) {
		content := strings.Join(rapid.SliceOfN(word, 0, 20).Draw(t, "words"), rapid.SampledFrom([]string{" ", ""}).Draw(t, "glue"))
		for _, m := range Mentions(memory.Item{Kind: "fact", Content: content}) {
			for _, part := range strings.Fields(m.Name) {
				if !strings.Contains(content, part) || part == "" {
					t.Fatalf("%q is not in %q", part, content)
				}
			}
			if m.Name == "" {
				t.Fatalf("a name without letters in %q", content)
			}
		}
	})
}

func FuzzMentions(f *testing.F) {
	f.Add("User's sister Anna lives in Lisbon. (previously: x)")
	f.Add("Dr ’s")
	f.Fuzz(func(t *testing.T, content string) {
		for _, m := range Mentions(memory.Item{Kind: "person", Content: content}) {
			if m.Name == "" {
				t.Errorf("a name without letters in %q", content)
			}
		}
	})
}
