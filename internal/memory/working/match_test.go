package working

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/postings"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// TestKeptRowsAreThoseOfTheDatabase holds stores that keep all, some and none of what
// they read of the full-text tables against each other, while one of them changes items.
func TestKeptRowsAreThoseOfTheDatabase(t *testing.T) {
	vocabulary := strings.Fields("lisbon boat boats sailing sailed ana tea teas green greener ДОМ 京都 Straße 2026 7")
	ctx, log, dir := context.Background(), &memLog{}, t.TempDir()
	writer := open(t, dir, log)
	stores := []*Store{writer}
	for _, most := range []int{0, 700, keptBytes} {
		s, err := OpenReader(ctx, dir, "ana", log)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // it was only read
		s.kept = postings.NewKeeper[stamp](int(termColumns), most)
		stores = append(stores, s)
	}
	var handles []string
	rapid.Check(t, func(t *rapid.T) { // from run to run items come in and change
		words := func(label string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 6).Draw(t, label), " ")
		}
		write := func() {
			wrote, err := writer.write(ctx, WriteRequest{Title: fmt.Sprint("no ", len(handles)), Content: fmt.Sprintf("%s number%d", words("content"), len(handles))}, "write", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, wrote.Item.Handle)
		}
		update := func() {
			content := words("other content")
			if _, err := writer.Update(ctx, UpdateRequest{Handle: rapid.SampledFrom(handles).Draw(t, "handle"), Content: &content}); err != nil && memory.KindOf(err) == memory.ErrInternal {
				t.Fatal(err)
			}
		}
		compare := func() {
			q := text.ParseQuery(words("question"), text.Options{})
			var first []Match
			for i, s := range stores {
				for round := range 2 { // the second time from what is kept
					got, err := s.Match(ctx, q, MatchOptions{})
					if err != nil {
						t.Fatal(err)
					}
					if i+round == 0 {
						first = got
					}
					if diff := cmp.Diff(first, got); diff != "" {
						t.Fatalf("store %d tells something else:\n%s", i, diff)
					}
				}
			}
			if stores[1].kept.Bytes() != 0 || stores[2].kept.Bytes() > 700 {
				t.Fatalf("%d and %d bytes are kept", stores[1].kept.Bytes(), stores[2].kept.Bytes())
			}
		}
		write()
		rapid.SampledFrom([]func(){write, write, update}).Draw(t, "step")()
		compare()
	})
	if stores[3].kept.Bytes() == 0 {
		t.Error("nothing is kept")
	}
}
