package text

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"Don't stop, Zoë!":       "don t stop zoe",
		"ＦＵＬＬ width ﬁne":         "full width fine",
		"naïve café ÅNGSTRÖM":    "naive cafe angstrom",
		"e\u0301te\u0301":        "ete",
		"我喜欢tea和咖啡":              "我喜欢 tea 和咖啡",
		"ガラス ばし はし":              "ガラス ばし はし",
		"한국어 말":                  "한국어 말",
		"a\x00b\xffc":            "a b c",
		"3.14 C++ #1":            "3 14 c 1",
		"":                       "",
		"Ёлка Мир":               "елка мир",
		strings.Repeat("x", 100): strings.Repeat("x", maxWord),
	} {
		if got := strings.Join(Words(in), " "); got != want {
			t.Errorf("Words(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestStem(t *testing.T) {
	for in, want := range map[string]string{"went": "go", "running": "run", "ran": "run", "hobbies": "hobbi", "children": "child", "2023": "2023", "found": "find", "café": "café", "lay": "lay"} {
		if got := Stem(in); got != want {
			t.Errorf("Stem(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestIndex(t *testing.T) {
	got := Index("We went hiking in 上海市, twice")
	want := Columns{Main: "we go hike in 上海 海市 twice", Prefix: "went hiki 上 海 市 twic"}
	if got != want {
		t.Errorf("Index = %+v, want %+v", got, want)
	}
}

// What is indexed can be found: each term of a text used as a query stands in
// the text's columns.
func TestQueryTermsAreIndexed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		cols, q := Index(s), ParseQuery(s, Options{})
		main, pre := strings.Fields(cols.Main), strings.Fields(cols.Prefix)
		for _, term := range q.Terms {
			if !slices.Contains(main, term) {
				t.Fatalf("term %q of %q is not in %q", term, s, cols.Main)
			}
		}
		for _, term := range q.Prefixes {
			if !slices.Contains(pre, term) {
				t.Fatalf("prefix %q of %q is not in %q", term, s, cols.Prefix)
			}
		}
	})
}

// Counts counts what the columns hold.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom([]string{"went", "going", "dying", "lies", "skies", "early", "the", "上海市", "海市", "Café", "ran", "lying", "lie", "skis", "idly"}), rapid.StringMatching(`[a-z]{1,9}`)))
		s := strings.Join(words.Draw(t, "text"), " ")
		q := ParseQuery(strings.Join(words.Draw(t, "query"), " "), Options{})
		cols := Index(s)
		terms, prefixes := q.Counts(s)
		check := func(list []string, got []int, column string) {
			for i, term := range list {
				want := 0
				for _, f := range strings.Fields(column) {
					if f == term {
						want++
					}
				}
				if got[i] != want {
					t.Fatalf("%q stands %d times in %q, counted %d", term, want, column, got[i])
				}
			}
		}
		check(q.Terms, terms, cols.Main)
		check(q.Prefixes, prefixes, cols.Prefix)
	})
}

func TestPassages(t *testing.T) {
	sentence := "This is a sentence of some length that says nothing. "
	got := Passages(strings.Repeat(sentence, 20))
	if len(got) != 3 {
		t.Fatalf("%d passages, want 3: %q", len(got), got)
	}
	for _, p := range got {
		if !strings.HasSuffix(p, "nothing.") {
			t.Errorf("passage does not end with a sentence: %q", p)
		}
	}
	if got := Passages(" \n\t "); got != nil {
		t.Errorf("Passages of white space = %q", got)
	}
}

func TestPassagesKeepEveryWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.StringMatching(`[a-zé日。]{0,30}[.?!\n ]{1,3}`)).Draw(t, "parts"), "")
		passages := Passages(s)
		for _, p := range passages {
			if n := utf8.RuneCountInString(p); n == 0 || n > MaxPassage || strings.TrimSpace(p) != p {
				t.Fatalf("passage of %d runes: %q", n, p)
			}
		}
		if got, want := strings.Join(strings.Fields(strings.Join(passages, " ")), " "), strings.Join(strings.Fields(s), " "); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Fatalf("passages hold %q, want %q", got, want)
		}
	})
}

func TestDates(t *testing.T) {
	at := time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC) // a Monday
	day := func(y, m, d int) Date { return Date{Year: y, Month: time.Month(m), Day: d} }
	for in, want := range map[string][]Date{
		"yesterday and tomorrow":                 {day(2023, 5, 7), day(2023, 5, 9)},
		"the day before yesterday":               {day(2023, 5, 6)},
		"last Friday":                            {day(2023, 5, 5)},
		"last Monday":                            {day(2023, 5, 1)},
		"next Monday":                            {day(2023, 5, 15)},
		"this Sunday":                            {day(2023, 5, 14)},
		"2 weeks ago":                            {day(2023, 4, 24)},
		"a couple of days ago":                   {day(2023, 5, 6)},
		"three years ago":                        {day(2020, 0, 0)},
		"in two months":                          {day(2023, 7, 0)},
		"five months ago":                        {day(2022, 12, 0)},
		"last week, last month, last year":       {day(2023, 5, 1), day(2023, 4, 0), day(2022, 0, 0)},
		"last weekend":                           {day(2023, 5, 6)},
		"last June":                              {day(2022, 6, 0)},
		"I may march in May":                     {day(0, 5, 0)},
		"8 May, 2023; May 8th, 2023; 8th of May": {day(2023, 5, 8), day(2023, 5, 8), day(0, 5, 8)},
		"2023-05-08 and 5/9/2023 and 25/12/2022": {day(2023, 5, 8), day(2023, 5, 9), day(2022, 12, 25)},
		"August 2022, Sep 3":                     {day(2022, 8, 0), day(0, 9, 3)},
		"since 2016":                             {day(2016, 0, 0)},
		"12 apples, 300 pears, in a jam":         nil,
		"2023-99-99":                             {day(2023, 0, 0)},
	} {
		got := Dates(in, at)
		for i, d := range got {
			if d.Start >= d.End || d.End > len(in) {
				t.Errorf("Dates(%q)[%d] has span %d to %d", in, i, d.Start, d.End)
			}
			got[i].Start, got[i].End = 0, 0
		}
		if !slices.Equal(got, want) {
			t.Errorf("Dates(%q) = %v, want %v", in, got, want)
		}
	}
	if got := Dates("yesterday, in June", time.Time{}); len(got) != 1 || got[0].Month != 6 {
		t.Errorf("without a day to count from: %v", got)
	}
}

func TestDateMatch(t *testing.T) {
	day := func(y, m, d int) Date { return Date{Year: y, Month: time.Month(m), Day: d} }
	for _, tc := range []struct {
		asked, known Date
		want         float64
	}{
		{day(2023, 5, 8), day(2023, 5, 9), 1},
		{day(0, 5, 8), day(2023, 5, 3), .8},
		{day(2023, 5, 1), day(2023, 5, 30), .4},
		{day(2023, 5, 0), day(2023, 5, 30), .7},
		{day(2023, 5, 30), day(2023, 6, 2), .6},
		{day(2023, 0, 0), day(2023, 6, 2), .3},
		{day(2022, 5, 8), day(2023, 5, 8), 0},
		{day(0, 5, 8), day(0, 7, 8), 0},
	} {
		if got := tc.asked.Match(tc.known); got != tc.want {
			t.Errorf("%v fits %v by %v, want %v", tc.asked, tc.known, got, tc.want)
		}
	}
}

func TestParseQuery(t *testing.T) {
	speakers := []string{"Caroline", "Melanie (Mel)", "user"}
	for _, tc := range []struct {
		in, terms, prefixes, named string
		kind                       Kind
	}{
		{"When did Caroline go to the support group?", "go support group", "go supp grou", "Caroline", AsksWhen},
		{"What car did Mel's sister buy?", "car sister buy", "car sist buy", "Melanie (Mel)", 0},
		{"Where did the user live before?", "user live", "user live", "", AsksWhere | AsksPast},
		{"how many dogs", "dog", "dogs", "", AsksHowMany},
		{"who is he?", "who be he", "", "", 0},
		{"上海", "上海", "上 海", "", 0},
		{"茶", "", "茶", "", 0},
		{`"a* NEAR(b) col:x` + "\x00 -", "near b col x", "near b col x", "", 0},
		{"!?", "", "", "", 0},
	} {
		q := ParseQuery(tc.in, Options{Speakers: speakers})
		if got := strings.Join(q.Terms, " "); got != tc.terms {
			t.Errorf("%q: terms %q, want %q", tc.in, got, tc.terms)
		}
		if got := strings.Join(q.Prefixes, " "); got != tc.prefixes {
			t.Errorf("%q: prefixes %q, want %q", tc.in, got, tc.prefixes)
		}
		if got := strings.Join(q.Speakers, " "); got != tc.named {
			t.Errorf("%q: speakers %q, want %q", tc.in, got, tc.named)
		}
		if q.Kind != tc.kind {
			t.Errorf("%q: kind %b, want %b", tc.in, q.Kind, tc.kind)
		}
	}
	if got := ParseQuery("red car", Options{}).MatchMain(); got != `"red" OR "car"` {
		t.Errorf("MatchMain = %s", got)
	}
}

func TestFeaturesOf(t *testing.T) {
	f := FeaturesOf(`I saw three dogs in Lisbon last Friday, dogs! "Did you?"`)
	if !f.HasNumber || !f.HasTimeCue || !f.HasWhereCue || !f.Asks || !f.FirstPerson {
		t.Errorf("features missing: %+v", f)
	}
	if f := FeaturesOf("She likes tea."); f.HasNumber || f.HasTimeCue || f.HasWhereCue || f.Asks || f.FirstPerson {
		t.Errorf("features invented: %+v", f)
	}
}

func TestContent(t *testing.T) {
	got := Content("Who went with the dogs, and which dog? お茶です")
	want := []string{"go", "dog", "dog", "お茶", "茶で", "です"}
	if !slices.Equal(got, want) {
		t.Errorf("Content() = %q, want %q", got, want)
	}
}
