package erasure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFinderFindsWhatItIsGiven(t *testing.T) {
	f := NewFinder([]string{`She said "no" <b>`, "a needle in the hay", "überraschend größer"}, "Straßburg")
	asJSON, err := json.Marshal(`x She said "no" <b> y`)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in   string
		want bool
	}{
		"as it is":            {`when She said "no" <b> to`, true},
		"JSON":                {string(asJSON), true},
		"JSON without HTML":   {`{"a":"She said \"no\" <b>"}`, true},
		"JSON in JSON":        {string(twice), true},
		"at the end":          {"a needle in the hay", true},
		"cut short":           {"a needle in the ha", false},
		"other letters":       {"sehr überraschend größer!", true},
		"any case":            {"in STRAßBURG", true},
		"beside odd letters":  {"\u212a\u0130 in STRAßBURG", true},
		"nothing of the sort": {"hay, hay, hay", false},
		"empty":               {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.In([]byte(tc.in)); got != tc.want {
				t.Errorf("In(%q) = %v", tc.in, got)
			}
		})
	}
}

// TestCountSeesEachNeedleOnce compares the streaming count with a plain one,
// whatever the reader's portions.
func TestCountSeesEachNeedleOnce(t *testing.T) {
	needle := "the golden fleece"
	f := NewFinder([]string{needle}, "")
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		want := rapid.IntRange(0, 5).Draw(t, "needles")
		for range want {
			b.WriteString(strings.Repeat("x", rapid.IntRange(0, 3*scanBuffer/2).Draw(t, "hay")))
			b.WriteString(needle)
		}
		b.WriteString(strings.Repeat("y", rapid.IntRange(0, 100).Draw(t, "rest")))
		got, err := f.Count(io.MultiReader(&b))
		if err != nil || got.Count != int64(want) {
			t.Fatalf("counted %d, %v; want %d", got.Count, err, want)
		}
	})
}

// TestFindSeesWhatPlainSearchDoes compares Find with a search for one needle after
// the other, in text that is made of their parts.
func TestFindSeesWhatPlainSearchDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 1, 6, -1)
		needles := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("ab")), anchorBytes, 20, -1), 1, 5).Draw(t, "needles")
		slices.Sort(needles)
		needles = slices.Compact(needles)
		var hay strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "whole") {
				hay.WriteString(rapid.SampledFrom(needles).Draw(t, "needle"))
			} else {
				hay.WriteString(part.Draw(t, "part"))
			}
		}
		text := hay.String()
		var want, got []Span
		for n, needle := range needles {
			for i := range text {
				if strings.HasPrefix(text[i:], needle) {
					want = append(want, Span{i, i + len(needle), n, false})
				}
			}
		}
		f := NewFinder(needles, "")
		f.Find([]byte(text), func(s Span) bool { got = append(got, s); return true })
		order := func(a, b Span) int { return (a.Start-b.Start)*100 + a.Needle - b.Needle }
		slices.SortFunc(want, order)
		slices.SortFunc(got, order)
		if !slices.Equal(got, want) {
			t.Fatalf("found %v in %q, want %v of %q", got, text, want, needles)
		}
		// In ranges, each is counted once.
		n := int64(0)
		at := int64(0)
		for at < int64(len(text)) {
			to := min(int64(len(text)), at+rapid.Int64Range(1, 30).Draw(t, "range"))
			c, err := f.CountIn(strings.NewReader(text), at, to)
			if err != nil {
				t.Fatal(err)
			}
			n, at = n+c.Count, to
		}
		if n != int64(len(want)) {
			t.Fatalf("counted %d in ranges, want %d", n, len(want))
		}
	})
}

func TestAnIDAtTheEndOfABufferIsFoundWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing in it runs at the same time, and it is long")
	}
	f := newFinder(nil, []string{"run_of_the_mill"}, "")
	for _, tc := range []struct {
		behind string
		want   int64
	}{{"2", 0}, {" ", 1}, {"", 1}} {
		for off := -3; off <= 3; off++ {
			hay := strings.Repeat("x ", scanBuffer/2+f.reach())
			hay = hay[:scanBuffer+f.reach()+off-len("run_of_the_mill")-1] + " run_of_the_mill" + tc.behind
			if tc.behind != "" {
				hay += " and more"
			}
			n, err := f.Count(strings.NewReader(hay))
			if err != nil || n.Count != tc.want {
				t.Errorf("with %q behind, %d off: %d, %v", tc.behind, off, n.Count, err)
			}
		}
	}
}

func TestNeedles(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"a line":     {"The word is quorvexil.", []string{"The word is quorvexil"}},
		"short":      {"quorvexil", nil},
		"controls":   {"a bell rings \a here and\u2028ends the line", []string{"a bell rings", "ends the line"}},
		"lines":      {"The first of two lines\n\nand the second", []string{"The first of two lines", "and the second"}},
		"JSON":       {`{"updated_at":"2026-05-08T10:00:00Z","a":{"content":"The word is \"quorvexil\"."},"id":"mem_01M80TR7YW19QHXW7GFY15TH66","n":[1,"another sentence"]}`, []string{`The word is "quorvexil`, "another sentence"}},
		"JSON twice": {`{"args":"{\"content\":\"The word is quorvexil.\"}"}`, []string{"The word is quorvexil"}},
		"JSON cut":   {`[{"content_of_it":"The word is quorve`, []string{"The word is quorve"}},
		"brackets":   {"[sighs] The word is quorvexil.", []string{"sighs] The word is quorvexil"}},
		"quoted":     {`He said: "The word is quorvexil."`, []string{`He said: "The word is quorvexil`}},
		"marks":      {"(quorvexil!!!)", []string{"(quorvexil!!!)"}},
		"short end":  {"We decided to call the whole garden project quorvexil.", []string{"We decided to call the whole garden project", "to call the whole garden project quorvexil"}},
		"its end":    {"We decided to call the whole garden project quorvexilian.", []string{"We decided to call the whole garden project", "quorvexilian"}},
		"no spaces":  {strings.Repeat("山", 17), []string{strings.Repeat("山", 16), strings.Repeat("山", 16)}},
		"an id":      {"evt_01M80TR7YW19QHXW7GFY15TH66", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Needles(tc.in); !slices.Equal(got, tc.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestIDsAreFoundWhole(t *testing.T) {
	target := &Target{Sessions: []string{"session-number-7"}}
	target.Prepare()
	for in, want := range map[string]bool{`{"session":"session-number-7"}`: true, `"session-number-70"`: false, "my-session-number-7": false, "session-number-7": true} {
		if got := target.Finder().In([]byte(in)); got != want {
			t.Errorf("In(%q) = %v", in, got)
		}
	}
}

func TestBlot(t *testing.T) {
	f := NewFinder([]string{"the secret garden"}, "")
	for name, tc := range map[string]struct {
		in, want string
		json     bool
	}{
		"a line":            {"one\nof the secret garden here\nthree\n", "one\n[erased]\nthree\n", false},
		"a JSON string":     {`{"a":"of the secret garden","b":"c"}`, `{"a":"[erased]","b":"c"}`, true},
		"a line in one":     {`{"a":"x\nof the secret garden\ny"}`, `{"a":"x\n[erased]\ny"}`, true},
		"an escaped quote":  {`{"a":"say \"the secret garden\" now"}`, `{"a":"[erased]"}`, true},
		"twice in one line": {"the secret garden, the secret garden", "[erased]", false},
		"nothing":           {"plain", "plain", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := f.Blot([]byte(tc.in), tc.json)
			if string(got) != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// FuzzBlot checks that what was JSON stays JSON and that nothing is left.
func FuzzBlot(f *testing.F) {
	f.Add("a", "b\n\"the secret garden\"\\")
	f.Fuzz(func(t *testing.T, a, b string) {
		raw, err := json.Marshal(map[string]string{"a": a, "b": b + "the secret garden" + a})
		if err != nil {
			t.Skip()
		}
		finder := NewFinder([]string{"the secret garden"}, "")
		out, n := finder.Blot(raw, true)
		if n == 0 || !json.Valid(out) || finder.In(out) {
			t.Fatalf("%s became %s", raw, out)
		}
	})
}

func TestNamesKnowsWholeHandles(t *testing.T) {
	target := &Target{Items: []Item{{"a", "MEM-3"}}, Episodes: []int64{41}}
	target.Prepare()
	for in, want := range map[string]bool{"[MEM-3] x": true, "MEM-31": false, `"EVT-41"`: true, "EVT-4": false, "": false, "MEM-": false, "ends MEM-3": true} {
		if got := target.Names([]byte(in)); got != want {
			t.Errorf("Names(%q) = %v", in, got)
		}
	}
}

func TestCitesKnowsHandlesAsTheyAreQuoted(t *testing.T) {
	handles, heirs := map[string]bool{"MEM-3": true, "EVT-41": true}, map[string]bool{"MEM-7": true}
	for in, want := range map[string]bool{"so it was [MEM-3] (fact)": true, `{\"handle\":\"EVT-41\"}`: true, `"EVT-41"`: true, "I forgot MEM-3": false, "so [MEM-7]": false, "so (previously: not) [MEM-7]": true, "[MEM-31]": false, "MEM-4] [EVT-41": false, "": false} {
		if got := Cites([]byte(in), handles, heirs); got != want {
			t.Errorf("Cites(%q) = %v", in, got)
		}
	}
}

func BenchmarkFinder(b *testing.B) {
	var texts []string
	for i := range 10000 {
		texts = append(texts, fmt.Sprintf("what was said as number %d of them all", i))
	}
	f := NewFinder(texts, "")
	hay := []byte(strings.Repeat("I moved to Lisbon last May and like the trams there, number 7. ", 1<<14))
	b.SetBytes(int64(len(hay)))
	for b.Loop() {
		if f.In(hay) {
			b.Fatal("found")
		}
	}
}
