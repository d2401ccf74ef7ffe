package recall

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestMMRMovesBackWhatWasSaidAlready(t *testing.T) {
	texts := []string{"Mara drinks green tea every morning", "every morning Mara drinks green tea", "the kiln costs 480 euros"}
	order, err := MMR{Lambda: .5}.Rerank(context.Background(), "a", "", texts, []float64{9, 8.9, 7})
	if err != nil || !slices.Equal(order, []int{0, 2, 1}) {
		t.Errorf("%v %v", order, err)
	}
	if order, _ = (MMR{Lambda: 1}).Rerank(context.Background(), "a", "", texts, []float64{9, 8.9, 7}); !slices.Equal(order, []int{0, 1, 2}) {
		t.Errorf("relevance alone: %v", order)
	}
}

func TestMMROrdersEveryCandidateOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[a-d ]{0,12}`), 1, 20).Draw(t, "texts")
		relevance := rapid.SliceOfN(rapid.Float64Range(-5, 20), len(texts), len(texts)).Draw(t, "relevance")
		order, err := MMR{Lambda: rapid.Float64Range(0, 1).Draw(t, "lambda")}.Rerank(context.Background(), "a", "", texts, relevance)
		if err != nil {
			t.Fatal(err)
		}
		sorted := slices.Sorted(slices.Values(order))
		for i, at := range sorted {
			if at != i || len(sorted) != len(texts) {
				t.Fatalf("%v", order)
			}
		}
	})
}

type ordering func(texts []string) ([]int, error)

func (o ordering) Rerank(_ context.Context, _ memory.AgentID, _ string, texts []string, _ []float64) ([]int, error) {
	return o(texts)
}

// found of items alone, best first.
func foundItems(contents ...string) *found {
	f := &found{}
	for i, c := range contents {
		f.items = append(f.items, rankedItem{item: memory.Item{Content: c}, scores: scores{total: float64(10 - i)}})
	}
	return f
}

func contentsOf(f *found) (list []string) {
	for _, it := range f.items {
		list = append(list, it.item.Content)
	}
	return list
}

func TestRerankReordersOrLeavesTheOrder(t *testing.T) {
	for name, c := range map[string]struct {
		by   ordering
		want []string
		fine bool
	}{
		"reversed":      {func(t []string) ([]int, error) { return []int{2, 1, 0}, nil }, []string{"c", "b", "a"}, true},
		"fails":         {func([]string) ([]int, error) { return nil, errors.New("down") }, []string{"a", "b", "c"}, false},
		"leaves some":   {func([]string) ([]int, error) { return []int{2}, nil }, []string{"a", "b", "c"}, false},
		"names one two": {func([]string) ([]int, error) { return []int{2, 2, 0}, nil }, []string{"a", "b", "c"}, false},
		"names another": {func([]string) ([]int, error) { return []int{0, 1, 9}, nil }, []string{"a", "b", "c"}, false},
	} {
		s := New(Options{Rerank: func(memory.AgentID) Reranker { return c.by }})
		f := foundItems("a", "b", "c")
		s.rerank(context.Background(), f)
		if got := contentsOf(f); !slices.Equal(got, c.want) || (f.unranked == nil) != c.fine {
			t.Errorf("%s: %v, %v", name, got, f.unranked)
		}
		if f.items[0].scores.total != 10 {
			t.Errorf("%s: the best has %v", name, f.items[0].scores.total)
		}
	}
}
