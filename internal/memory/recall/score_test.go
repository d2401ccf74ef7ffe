package recall

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// bestOfAll scores every passage.
func bestOfAll(s *scorer, wide int, hidden func(uint32) bool) []pick {
	var all []pick
	for n := uint32(1); int(n) <= s.hits.Len(); n++ {
		p := s.hits.Passage(n)
		session := p.Session
		if p.Flags&(archive.Suppressed|archive.Probe) != s.only || hidden(session) {
			continue
		}
		if s.around(n) != 0 || s.prefix[n] > 0 || s.sessions[session] >= goodSession || len(s.query.Dates) > 0 && s.day(n) > 0 {
			all = append(all, pick{n, s.score(n).total})
		}
	}
	return firstOf(all, wide)
}

// TestBestAreThoseOfAll holds the best passages against those among all, whose scores
// are told without a bound.
func TestBestAreThoseOfAll(t *testing.T) {
	w := newWorld(t)
	v := newVocabulary()
	v.words = v.words[:300] // so that words meet
	draw := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = v.words[min(v.zipf.Uint64(), 299)]
		}
		return strings.Join(words, " ")
	}
	var log sliceSource
	for i := range 3000 {
		typ, session := memory.UserMessage, fmt.Sprint("s", i/31)
		if i%2 == 1 {
			typ = memory.AssistantOutput
		}
		if i%7 == 0 {
			session = "long" // among the others
		}
		said := "I " + draw(6+i%5)
		switch i % 5 {
		case 0:
			said += " on 3 May 2026?"
		case 1:
			said += " at the city of 12 gates, yesterday."
		}
		log = append(log, memory.Event{ID: fmt.Sprintf("evt_%d", i), Seq: int64(i + 1), Type: typ, Origin: memory.OriginUser, Text: said, SessionID: session,
			Timestamp: today.AddDate(0, 0, -i%90), Metadata: map[string]any{memory.MetaSpeaker: []string{"Ana", "Boris", "Cleo"}[i%3]}})
	}
	log = append(log, memory.Event{ID: "gone", Seq: 3001, Type: memory.MemoryChange, Metadata: map[string]any{memory.MetaChange: memory.Change{Suppress: []string{"evt_8", "evt_99"}}}})
	if _, err := w.archive.Follow(context.Background(), log); err != nil {
		t.Fatal(err)
	}
	speakers, err := w.archive.Speakers(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	short := 0
	rapid.Check(t, func(t *rapid.T) {
		indexes := rapid.SliceOfN(rapid.IntRange(0, 299), 1, 6).Draw(t, "words")
		words := []string{rapid.SampledFrom([]string{"", "When did", "Where", "How many", "What did Ana say of", "Did Boris and Cleo"}).Draw(t, "asks")}
		for _, i := range indexes {
			words = append(words, v.words[i])
		}
		words = append(words, rapid.SampledFrom([]string{"", "", "", "last week", "on 5 May 2026"}).Draw(t, "date"))
		q := text.ParseQuery(strings.Join(words, " "), text.Options{Now: today, Speakers: speakers})
		hits, err := w.archive.Search(context.Background(), q.Terms, q.Prefixes)
		if err != nil {
			t.Fatal(err)
		}
		s := newScorer(hits, q, rapid.Bool().Draw(t, "main only"))
		defer func() {
			memory := s.scratch
			s.release()
			for n := range memory.held {
				if memory.held[n]|memory.after[n] != 0 || memory.words[n] != 0 || memory.prefix[n] != 0 {
					t.Fatalf("the memory of passage %d is given back with something in it", n)
				}
			}
			for i := range memory.sessions {
				if memory.sessions[i] != 0 || memory.touched[i] || memory.counts[i] != 0 {
					t.Fatalf("the memory of session %d is given back with something in it", i)
				}
			}
		}()
		if rapid.Bool().Draw(t, "by meaning") {
			s.near = map[int64]float64{5: 1, 17: -2}
		}
		hidden := func(session uint32) bool { return session == 3 }
		wide := rapid.SampledFrom([]int{0, 1, 8, 256, 5000}).Draw(t, "wide")
		if s.near != nil {
			wide = 5000 // no bound is of use there
		}
		want, got := bestOfAll(s, wide, hidden), s.best(wide, hidden)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(pick{})); diff != "" && len(want)+len(got) > 0 {
			t.Fatalf("(-all +bounded)\n%s", diff)
		}
		if len(want) == wide {
			short++
		}
	})
	if short == 0 {
		t.Error("no question had more candidates than were wanted")
	}
}
