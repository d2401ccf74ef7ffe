package working

import (
	"slices"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestHeirs(t *testing.T) {
	said := func(id, supersedes, content string) memory.Item {
		return memory.Item{ID: id, Title: "of " + id, Content: content, Supersedes: supersedes}
	}
	a := said("a", "", "User lives in Lisbon.")
	b := said("b", "a", "User lives in Porto. (previously: User lives in Lisbon)")
	c := said("c", "b", "User lives in Faro. (previously: User lives in Porto)")
	for name, tc := range map[string]struct {
		items []memory.Item
		goes  []string
		want  []string
	}{
		"what quotes it":                  {[]memory.Item{a, b, c}, []string{"a"}, []string{"b"}},
		"also where it has gone":          {[]memory.Item{{ID: "a"}, b, c}, []string{"a"}, []string{"b"}},
		"the last":                        {[]memory.Item{a, b, c}, []string{"c"}, nil},
		"both":                            {[]memory.Item{a, b, c}, []string{"a", "b"}, []string{"c"}},
		"what was left standing":          {[]memory.Item{a, b, said("c", "b", "User works in Faro. (previously: User works in Porto) Unchanged: User lives in Lisbon.")}, []string{"a"}, []string{"b", "c"}},
		"one before the last":             {[]memory.Item{a, b, said("c", "b", "User lives in Faro. (previously: User lives in Lisbon)")}, []string{"a"}, []string{"b", "c"}},
		"what is between has gone":        {[]memory.Item{a, {ID: "b", Supersedes: "a"}, c}, []string{"a"}, []string{"c"}},
		"known from the older alone":      {[]memory.Item{{ID: "a", SupersededBy: "b"}, said("b", "z", "User lives in Porto. (previously: User lives in Lisbon)")}, []string{"a"}, []string{"b"}},
		"no note":                         {[]memory.Item{a, said("b", "a", "User lives in Porto.")}, []string{"a"}, nil},
		"a note in an earlier version":    {[]memory.Item{a, b, said("b", "a", "User lives in Porto.")}, []string{"a"}, []string{"b"}},
		"each took the place of another":  {[]memory.Item{a, b, said("a", "b", "User lives in Lisbon. (previously: User lives in Porto)")}, []string{"b"}, []string{"a"}},
		"its words were taken away":       {[]memory.Item{{ID: "a"}, said("b", "a", "[erased]"), said("b", "a", "User lives in Porto."), c}, []string{"a"}, []string{"b"}},
		"nothing goes that anybody knows": {[]memory.Item{a, b}, []string{"z"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLineage()
			for _, it := range tc.items {
				l.Add(it)
			}
			if got := l.Heirs(tc.goes); !slices.Equal(got, tc.want) {
				t.Errorf("Heirs(%q) = %q, want %q", tc.goes, got, tc.want)
			}
		})
	}
}
