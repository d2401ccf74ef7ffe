package distill

import (
	"context"
	"strings"
	"testing"
	"time"

	corpus "github.com/openclawssy/openclawssy/internal/judge/hostile"
	"github.com/openclawssy/openclawssy/internal/memory"
)

var turnChannels = []corpus.Channel{corpus.User, corpus.Assistant, corpus.Import, corpus.AgentMail, corpus.ToolResult, corpus.Web}

// corpusBatch is a text in a batch, beside an item that the user is sure of.
func corpusBatch(e memory.Event) Batch {
	e.ID, e.Seq, e.Timestamp = "evt_1", 1, gateDay
	return Batch{Agent: "a", Now: gateDay.Add(time.Hour), Events: []memory.Event{e},
		Related: []memory.Item{{ID: "mem_01", Title: "Allergy", Content: "User is allergic to nuts.", Kind: memory.KindFact, Importance: 5, Trust: memory.TrustUser}}}
}

// obedient is what a model answers that believes what it reads: a fact, a
// preference and an update that say it, with a true quote.
func obedient(text string) Reply {
	// A model reads and quotes the text as it is shown to it.
	shown := clean(text)
	if strings.TrimSpace(shown) == "" {
		return Reply{}
	}
	content, quote := clipBytes(shown, 2000), []Quote{{EventID: "evt_1", Quote: clip(shown, 60)}}
	quote[0].Quote = strings.TrimSuffix(quote[0].Quote, "…")
	title := clipBytes(oneLine(shown), 60)
	return Reply{
		NewItems: []NewItem{
			{Kind: memory.KindFact, Title: title, Content: content, Importance: 5, Confidence: 1, Evidence: quote},
			{Kind: memory.KindPreference, Title: title, Content: content, Importance: 5, Confidence: 1, Evidence: quote},
		},
		Updates: []Update{{ID: "mem_01", NewContent: content, Confidence: 1, Evidence: quote}},
	}
}

// accepted returns what the gate lets through of a reply: by the model's word as
// a fact, and by the rules.
func accepted(t *testing.T, b Batch, r Reply) []Entry {
	t.Helper()
	raw, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := Parse(raw, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return Gate(b, parsed).Accepted
}

func byRules(t *testing.T, b Batch) []Entry {
	t.Helper()
	raw, _, err := Rules{}.Distill(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Parse(raw, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return Gate(b, r).Accepted
}

// TestHostileCorpusIsNotDistilled gives every text to a model that believes all
// it reads, and to the rules, by its own channel and by all that are trusted no more.
func TestHostileCorpusIsNotDistilled(t *testing.T) {
	runs, refused, benign, spared := 0, 0, 0, 0
	for _, c := range corpus.Load(t, "../../../testdata/hostile") {
		if c.Channel == corpus.ModelReply {
			r, err := Parse([]byte(c.Text), DefaultLimits)
			if err != nil {
				continue
			}
			e, _ := corpus.User.Event("I like tea.")
			if v := Gate(corpusBatch(e), r); len(v.Accepted) > 0 {
				t.Errorf("%s: accepted %+v", c.ID, v.Accepted)
			}
			continue
		}
		own, isTurn := c.Channel.Event(c.Text)
		if !isTurn {
			own, _ = corpus.ToolResult.Event(c.Text)
		}
		trust := memory.TrustOf(own.Origin)
		if c.Class == corpus.Benign || c.Expect.Distil == corpus.Store {
			b := corpusBatch(own)
			reply := obedient(c.Text)
			reply.NewItems, reply.Updates = reply.NewItems[:1], nil
			benign++
			if len(accepted(t, b, reply)) == 1 {
				spared++
			} else {
				v := Gate(b, reply)
				t.Logf("%s (%s) is set aside: %v %v", c.ID, c.Channel, v.Refused, reasons(v.Quarantined))
			}
			continue
		}
		for _, channel := range turnChannels {
			e, _ := channel.Event(c.Text)
			if memory.TrustOf(e.Origin).Rank() > trust.Rank() {
				continue
			}
			b := corpusBatch(e)
			for _, entry := range append(accepted(t, b, obedient(c.Text)), byRules(t, b)...) {
				switch {
				case c.Expect.Distil == corpus.Reject:
					t.Errorf("%s by %s (%s): accepted %q", c.ID, channel, entry.Item.Trust, clip(entry.Item.Content, 90))
				case entry.Item.Trust != memory.TrustUser && (entry.Item.Kind == memory.KindPreference || entry.Replaces != ""):
					t.Errorf("%s by %s: %s made a %s, in the place of %q", c.ID, channel, entry.Item.Trust, entry.Item.Kind, entry.Replaces)
				case entry.Item.Trust.Rank() <= memory.TrustTool.Rank() && entry.Item.Importance > outsideImportance:
					t.Errorf("%s by %s: importance %d", c.ID, channel, entry.Item.Importance)
				}
			}
			runs++
			if c.Expect.Distil == corpus.Reject {
				refused++
			}
		}
	}
	t.Logf("%d runs, %d of them to be refused; %d of %d benign texts spared (%.1f %% set aside)", runs, refused, spared, benign, 100*float64(benign-spared)/float64(benign))
	if float64(benign-spared) > .02*float64(benign) {
		t.Errorf("%d of %d benign texts are set aside, want at most 2 %%", benign-spared, benign)
	}
}

func reasons(list []Entry) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Item.Reason)
	}
	return out
}
