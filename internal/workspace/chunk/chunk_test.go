package chunk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// twelve is a text of twelve lines, each of 28 characters.
func twelve() string {
	var lines []string
	for i := 1; i <= 12; i++ {
		lines = append(lines, fmt.Sprintf("line %02d %s", i, strings.Repeat("x", 20)))
	}
	return strings.Join(lines, "\n")
}

// shape tells of chunks where they start and end and how long they are.
func shape(chunks []Chunk) string {
	var parts []string
	for _, c := range chunks {
		parts = append(parts, fmt.Sprintf("%d-%d:%d", c.StartLine, c.EndLine, units(c.Text)))
	}
	return strings.Join(parts, " ")
}

func TestSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		o    Options
		want string
	}{
		"no overlap":        {twelve(), Options{16, 0, Seed}, "1-2:57 3-4:57 5-6:57 7-8:57 9-10:57 11-12:57"},
		"overlap on top":    {twelve(), Options{16, 8, Seed}, "1-2:57 1-3:86 2-4:86 3-5:86 4-6:86 5-7:86 6-8:86 7-9:86 8-10:86 9-11:86 10-12:86"},
		"overlap capped":    {twelve(), Options{16, 8, Capped}, "1-2:57 2-3:57 3-4:57 4-5:57 5-6:57 6-7:57 7-8:57 8-9:57 9-10:57 10-11:57 11-12:57"},
		"overlap bounded":   {twelve(), Options{16, 8, Bounded}, "1-2:57 2-3:57 3-4:57 4-5:57 5-6:57 6-7:57 7-8:57 8-9:57 9-10:57 10-11:57 11-12:57"},
		"much overlap":      {twelve(), Options{16, 15, Seed}, "1-2:57 1-3:86 1-4:115 2-5:115 3-6:115 4-7:115 5-8:115 6-9:115 7-10:115 8-11:115 9-12:115"},
		"overlap clamped":   {twelve(), Options{16, 99, Seed}, "1-2:57 1-3:86 1-4:115 2-5:115 3-6:115 4-7:115 5-8:115 6-9:115 7-10:115 8-11:115 9-12:115"},
		"negative overlap":  {twelve(), Options{16, -1, Seed}, "1-2:57 3-4:57 5-6:57 7-8:57 9-10:57 11-12:57"},
		"long line":         {strings.Repeat("z", 80) + "\nend", Options{1, 0, Seed}, "1-1:32 1-1:32 1-2:20"},
		"no tokens":         {strings.Repeat("z", 80) + "\nend", Options{-3, 0, Seed}, "1-1:32 1-1:32 1-2:20"},
		"long line capped":  {strings.Repeat("z", 80), Options{9, 4, Capped}, "1-1:36 1-1:36 1-1:36"},
		"long line bounded": {strings.Repeat("z", 80), Options{9, 4, Bounded}, "1-1:36 1-1:36 1-1:24"},
		"blank":             {"\n\n\n", Options{16, 4, Seed}, ""},
		"empty":             {"", Default, ""},
		"short":             {"short\nfile\n", Default, "1-3:11"},
		"CR stays":          {"a\r\nb\r\n", Default, "1-3:6"},
		"CJK by units":      {strings.Repeat("港", 40) + "\n", Options{10, 0, Seed}, "1-1:40"},
		"CJK by weight":     {strings.Repeat("港", 40) + "\n", Options{10, 0, Weighted}, "1-1:10 1-1:10 1-1:10 1-1:10"},
		"CJK bounded":       {strings.Repeat("港", 40) + "\n", Options{10, 0, Bounded}, "1-1:10 1-1:10 1-1:10 1-1:10"},
		"rare CJK bounded":  {strings.Repeat("𠀀", 20), Options{10, 0, Bounded}, "1-1:20 1-1:20"},
		"rare CJK weighted": {strings.Repeat("𠀀", 20), Options{9, 0, Weighted}, "1-1:10 1-1:10 1-1:17 1-1:4"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shape(Split(tc.text, tc.o)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestLongLineGoesOnWithTheNext(t *testing.T) {
	chunks := Split(strings.Repeat("z", 80)+"\nend", Options{Tokens: 1, Variant: Seed})
	if last := chunks[len(chunks)-1]; last.Text != strings.Repeat("z", 16)+"\nend" {
		t.Errorf("the last chunk is %q", last.Text)
	}
	if got := chunks[0].Hash(); got != "a677edf4f4749ee1acf3ce6e0b40edc21a75e1d5d9ef7f7ccb55b7e4ff2d2ef8"[:12]+got[12:] {
		t.Errorf("hash %s", got)
	}
}

func TestTornCharacters(t *testing.T) {
	// 31 units, then a character of two: the first chunk gets its first half.
	text := strings.Repeat("a", 31) + "🚀tail"
	got := Split(text, Options{Tokens: 8, Variant: Seed})
	if len(got) != 2 || got[0].Text != strings.Repeat("a", 31)+"\uFFFD" || got[1].Text != "\uFFFDtail" {
		t.Errorf("seed: %q", texts(got))
	}
	got = Split(text, Options{Tokens: 8, Variant: Bounded})
	if len(got) != 2 || got[0].Text != strings.Repeat("a", 31) || got[1].Text != "🚀tail" {
		t.Errorf("bounded: %q", texts(got))
	}
}

func TestSnippet(t *testing.T) {
	for _, tc := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 700, "short"}, {"abc", 2, "ab"}, {"a🚀b", 2, "a"}, {"a🚀b", 3, "a🚀"}, {"港口", 1, "港"}, {"", 5, ""}, {"x", 0, ""},
	} {
		if got := Snippet(tc.text, tc.n); got != tc.want {
			t.Errorf("Snippet(%q, %d) = %q, want %q", tc.text, tc.n, got, tc.want)
		}
	}
}

func TestTrim(t *testing.T) {
	if got := Trim("\ufeff\u00a0 x\u0085 \u3000"); got != "x\u0085" {
		t.Errorf("Trim = %q: JavaScript trims U+FEFF, and not U+0085", got)
	}
}

func options(t *rapid.T) Options {
	return Options{Tokens: rapid.IntRange(-1, 40).Draw(t, "tokens"), Overlap: rapid.IntRange(-1, 50).Draw(t, "overlap"),
		Variant: rapid.SampledFrom(Variants).Draw(t, "variant")}
}

func TestChunksCoverTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringOf(rapid.SampledFrom([]rune("ab \t港𠀀🚀é\r\ufeff")))
		lines := rapid.SliceOf(line).Draw(t, "lines")
		o := options(t)
		check(t, strings.Join(lines, "\n"), o)
	})
}

type failing interface {
	Fatalf(format string, args ...any)
}

// check holds the chunks of a text to what is true of all.
func check(t failing, text string, o Options) {
	chunks := Split(text, o)
	lines := strings.Split(text, "\n")
	o = o.Normal()
	budget := max(minBudget, unitsPerToken*o.Tokens)
	covered := make([]bool, len(lines)+1)
	start, end := 0, 0
	for _, c := range chunks {
		if c.StartLine < start || c.EndLine < end || c.StartLine > c.EndLine || c.EndLine > len(lines) {
			t.Fatalf("%d-%d after %d-%d of %d lines", c.StartLine, c.EndLine, start, end, len(lines))
		}
		start, end = c.StartLine, c.EndLine
		for n := start; n <= end; n++ {
			covered[n] = true
		}
		if Trim(c.Text) == "" || utf8.ValidString(text) && !utf8.ValidString(c.Text) {
			t.Fatalf("a chunk of %q", c.Text)
		}
		if o.Variant == Capped && units(c.Text) > budget || o.Variant == Bounded && weight(c.Text) > budget {
			t.Fatalf("%s: a chunk of %d units and weight %d is larger than %d", o.Variant, units(c.Text), weight(c.Text), budget)
		}
	}
	for i, l := range lines {
		// What a capped chunk cuts off is lost to it.
		if Trim(l) != "" && !covered[i+1] && o.Variant != Capped {
			t.Fatalf("line %d, %q, is in no chunk", i+1, l)
		}
	}
	if o.Variant == Bounded && o.Overlap == 0 && utf8.ValidString(text) {
		whole := strings.Join(texts(chunks), "")
		squeeze := func(s string) string { return strings.Join(strings.FieldsFunc(s, isSpace), "") }
		if squeeze(whole) != squeeze(text) {
			t.Fatalf("chunks without overlap hold %q of %q", whole, text)
		}
	}
}

func texts(chunks []Chunk) []string {
	var out []string
	for _, c := range chunks {
		out = append(out, c.Text)
	}
	return out
}

func FuzzSplit(f *testing.F) {
	f.Add(twelve(), 16, 8, uint8(0))
	f.Add("港𠀀🚀\xff\r\n", 1, 0, uint8(3))
	f.Fuzz(func(t *testing.T, text string, tokens, overlap int, variant uint8) {
		if tokens > 1<<20 || overlap > 1<<20 || tokens < -1<<20 || overlap < -1<<20 {
			return
		}
		check(t, text, Options{tokens, overlap, Variants[int(variant)%len(Variants)]})
	})
}

func TestParseVariant(t *testing.T) {
	for _, v := range Variants {
		if got, err := ParseVariant(string(v)); got != v || err != nil {
			t.Errorf("ParseVariant(%s) = %s, %v", v, got, err)
		}
	}
	if _, err := ParseVariant("new"); err == nil {
		t.Error("an unknown variant was taken")
	}
	if !slices.Contains(Variants, Default.Variant) {
		t.Error("the default is no variant")
	}
}
