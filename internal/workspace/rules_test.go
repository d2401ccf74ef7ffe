package workspace

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// line is a section in short: lines, heading and text.
func short(s section) string {
	heading := "-"
	if s.headed {
		heading = fmt.Sprintf("%q", s.heading)
	}
	return fmt.Sprintf("%d-%d %s %q", s.start, s.end, heading, s.text)
}

func TestSections(t *testing.T) {
	for name, tc := range map[string]struct {
		text   string
		fenced bool
		want   []string
	}{
		"empty":                      {"", false, nil},
		"blank":                      {" \n\t\u2003\n\n", false, nil},
		"no heading":                 {"a\nb\n", false, []string{`1-2 - "a\nb"`}},
		"blank lines stay":           {"## A\n\nx\n\n## B\n", false, []string{`1-4 "A" "## A\n\nx\n"`, `5-5 "B" "## B"`}},
		"leading blank lines go":     {"\n\n## A\nx", false, []string{`3-4 "A" "## A\nx"`}},
		"text before":                {"\nhello\n## A", false, []string{`1-2 - "\nhello"`, `3-3 "A" "## A"`}},
		"not headings":               {"##x\n##\tx\n##\u00a0x\n ## x\n### x\n##", false, []string{`1-6 - "##x\n##\tx\n##\u00a0x\n ## x\n### x\n##"`}},
		"heading without words":      {"## \n", false, []string{`1-1 "" "## "`}},
		"repeated marks":             {"## ## T ## \n", false, []string{`1-1 "T ##" "## ## T ## "`}},
		"carriage returns":           {"## A\r\nx\r\r\ny\rz\r\n## B\r", false, []string{`1-3 "A" "## A\nx\r\ny\rz"`, `4-4 "B" "## B\r"`}},
		"byte order mark":            {"\ufeff## A\n## B", false, []string{`1-1 - "\ufeff## A"`, `2-2 "B" "## B"`}},
		"only other line ends":       {"a\u2028## b\u0085## c\v## d", false, []string{`1-1 - "a\u2028## b\u0085## c\v## d"`}},
		"last line feeds":            {"## A\n\n\n", false, []string{`1-3 "A" "## A\n\n"`}},
		"fence, as the client":       {"```\n## A\n```\n", false, []string{"1-1 - \"```\"", "2-3 \"A\" \"## A\\n```\""}},
		"fence":                      {"```\n## A\n```\n## B", true, []string{"1-3 - \"```\\n## A\\n```\"", `4-4 "B" "## B"`}},
		"fence of tildes":            {"~~~ x`y`\n## A\n```\n~~~~\n## B", true, []string{"1-4 - \"~~~ x`y`\\n## A\\n```\\n~~~~\"", `5-5 "B" "## B"`}},
		"fence never closed":         {"```sh\n## A\n", true, []string{"1-2 - \"```sh\\n## A\""}},
		"shorter fence closes not":   {"````\n```\n## A\n````\n## B", true, []string{"1-4 - \"````\\n```\\n## A\\n````\"", `5-5 "B" "## B"`}},
		"words close no fence":       {"```\n``` x\n## A\n```", true, []string{"1-4 - \"```\\n``` x\\n## A\\n```\""}},
		"code span is no fence":      {"```x```\n## A", true, []string{"1-1 - \"```x```\"", `2-2 "A" "## A"`}},
		"four spaces open no fence":  {"    ```\n## A", true, []string{"1-1 - \"    ```\"", `2-2 "A" "## A"`}},
		"three spaces open and shut": {"   ```\n## A\n   ```  \n## B", true, []string{"1-3 - \"   ```\\n## A\\n   ```  \"", `4-4 "B" "## B"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for s := range sections(tc.text, tc.fenced) {
				got = append(got, short(s))
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	for text, want := range map[string][]string{
		"":               nil,
		" \r\n":          nil,
		"a":              {`1-1 - "a"`},
		"## a\r\nb\r\n":  {`1-2 - "## a\r\nb\r\n"`},
		"a\n\n## b\n\n ": {`1-5 - "a\n\n## b\n\n "`},
	} {
		var got []string
		for s := range whole(text) {
			got = append(got, short(s))
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestRows(t *testing.T) {
	text := "# P\n\n| a | b |\n|:--|:-:|\n| 1 | x \\| y |\n  | 2 | - |\n|---|---|\nafter\n| no | table |\n\n## Empty\n| h |\n|---|\n"
	want := []string{
		`1-10 - "# P\n\nafter\n| no | table |\n"`,
		`5-5 - "| 1 | x \\| y |"`,
		`6-6 - "  | 2 | - |"`,
		`11-13 "Empty" "## Empty"`,
	}
	var got []string
	for s := range rows(text) {
		got = append(got, short(s))
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMarks(t *testing.T) {
	for name, tc := range map[string]struct {
		text       string
		category   string
		confidence float64 // negative for none
		tags       string  // joined by spaces, without the namespace
		outside    int
	}{
		"none":                     {"plain text", "", -1, "", 0},
		"decision":                 {"- [decision|i=0.9] x", "decision", .9, "decision", 0},
		"first word, greatest":     {"[a|i=0.2]\n[b|i=.8]\n[a|i=0.5]", "a", .8, "a b", 0},
		"one a line":               {"[a|i=0.2] [b|i=0.9]", "a", .2, "a", 0},
		"number forms":             {"[a|i=0.]\n[b|i=1]", "a", 1, "a b", 0},
		"dot is no number":         {"[a|i=.] [b|i=0.5]", "", -1, "", 0},
		"two dots":                 {"[a|i=1.2.3] [b|i=0.5]\n[c|i=0.1]", "c", .1, "c", 0},
		"other digits":             {"[a|i=٣] [b|i=0.5]", "", -1, "", 0},
		"no match, then one":       {"[a|i=-1] [b c|i=0.1] [d|I=0.1] [|i=0.1] [e|i=0,5] [x-y|i=0.3] [f|i=0.5", "", -1, "", 0},
		"later on the line":        {"[a|i=] x|i=0.3] [b|i=0.4]", "b", .4, "b", 0},
		"words of any script":      {"[日本_ग़9‿|i=0.4]", "日本_ग़9‿", .4, "日本_ग़9‿", 0},
		"outside":                  {"[a|i=9]", "a", -1, "a", 1},
		"outside and inside":       {"[a|i=1.01]\n[b|i=0.5]", "a", .5, "a b", 1},
		"beyond all floats":        {"[a|i=" + strings.Repeat("9", 400) + "]", "a", -1, "a", 1},
		"in a heading and a fence": {"## x [a|i=0.1]\n```\n[b|i=0.2]\n```", "a", .2, "a b", 0},
		"nested brackets":          {"[[a|i=0.5]]", "a", .5, "a", 0},
		"hashtags":                 {"#one two#three (#four) #five;#six #1 #c++ #!/bin/sh #-x ##x ### # #🚀 #go🚀 https://x/#y", "", -1, "one five;#six 1 c !/bin/sh -x x go", 0},
		"hashtags, other spaces":   {"a\u00a0#b\u3000#c\u200b#d\t#e", "", -1, "b c\u200b#d e", 0},
		"hashtags, other letters":  {"#日本語。 #Ⅷ! #½ #é́x #ह। #ि", "", -1, "日本語 Ⅷ ½ é́x ह ि", 0},
		"case counts":              {"#A #a #A", "", -1, "A a", 0},
		"word before hashtags":     {"#z [a|i=0.3]\n#b", "a", .3, "a z b", 0},
		"tag like the namespace":   {"#daily [daily|i=0.3]", "daily", .3, "", 0},
		"heading is no hashtag":    {"## A\n#include <x>", "", -1, "include", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := readMarks(tc.text, Daily)
			confidence := -1.
			if m.confidence != nil {
				confidence = *m.confidence
			}
			if m.category != tc.category || math.Abs(confidence-tc.confidence) > 1e-12 || strings.Join(m.tags[1:], " ") != tc.tags || len(m.outside) != tc.outside {
				t.Errorf("category %q, confidence %v, tags %q, %d outside", m.category, confidence, m.tags, len(m.outside))
			}
		})
	}
}

func TestManyTags(t *testing.T) {
	var text strings.Builder
	for range 2 {
		for i := range 1000 {
			fmt.Fprintf(&text, "#t%d ", i)
		}
	}
	if m := readMarks(text.String(), Daily); len(m.tags) != 1001 || m.tags[1000] != "t999" {
		t.Errorf("%d tags", len(m.tags))
	}
}

func TestClassify(t *testing.T) {
	for path, want := range map[string]string{
		"MEMORY.md":                           "curated semantic user_authored",
		"memory/2026-01-15.md":                "daily episodic agent_written 2026-01-15",
		"memory/2026-1-5.md":                  "daily episodic agent_written 2026-01-05 odd",
		"memory/26-03-04.md":                  "daily episodic agent_written 0026-03-04 odd",
		"memory/ 2026- 1-\u20035.md":          "daily episodic agent_written 2026-01-05 odd",
		"memory/+12026-01-02.md":              "daily episodic agent_written +12026-01-02 odd",
		"memory/-5-01-02.md":                  "daily episodic agent_written -0005-01-02 odd",
		"memory/0000-01-01.md":                "daily episodic agent_written 0000-01-01 odd",
		"memory/2024-02-29.md":                "daily episodic agent_written 2024-02-29",
		"memory/2026-02-29.md":                "workspace semantic agent_written",
		"memory/2026-02-30.md":                "workspace semantic agent_written",
		"memory/2026-13-01.md":                "workspace semantic agent_written",
		"memory/12026-01-02.md":               "workspace semantic agent_written",
		"memory/2026-01-15 .md":               "workspace semantic agent_written",
		"memory/2026 -01-15.md":               "workspace semantic agent_written",
		"memory/2026-01-15-slug.md":           "workspace semantic agent_written",
		"memory/2026-001-15.md":               "workspace semantic agent_written",
		"memory/+999999-01-01.md":             "workspace semantic agent_written",
		"memory/2026-01/2026-01-15.md":        "workspace semantic agent_written",
		"memory/٢٠٢٦-01-15.md":                "workspace semantic agent_written",
		"memory/Active-Context.md":            "active-context summary agent_written",
		"memory/inactive-context.md":          "active-context summary agent_written",
		"memory/active-context/2026-03-01.md": "active-context summary agent_written",
		"memory/ACTİVE-CONTEXT.md":            "workspace semantic agent_written",
		"memory/PROJECT-Atlas.md":             "project semantic agent_written",
		"memory/sub/project-x.md":             "workspace semantic agent_written",
		"memory/project-gating-policies.md":   "project procedural user_authored",
		"memory/Gating-Policies.md":           "procedural procedural user_authored",
		"memory/a/gating_policies_old.md":     "procedural procedural agent_written",
		"memory/memory.md":                    "workspace semantic agent_written",
		"memory/日誌.md":                        "workspace semantic agent_written",
	} {
		c := classify(path)
		got := c.namespace + " " + c.memoryType + " " + c.method
		if c.dated {
			got += " " + FormatDay(c.day)
			if !c.exact {
				got += " odd"
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	for name, want := range map[string]string{
		"MEMORY.md:0":                 "4f4c0ec1-f54d-5d2a-aeea-876c1faf2882",
		"memory/2026-01-15.md:1":      "7e383f98-d3e4-5f92-9529-fe7f6165fedb",
		"memory/プロジェクト.md:0":          "a0bc89b2-fbbd-5a40-97f3-aede6132c47e",
		"memory/gating-policies.md:0": "1189e1d4-5cc3-53da-bf9e-4af19813e73d",
	} {
		origin, _, _ := strings.Cut(name, ":")
		got := map[string]string{}
		for r := range RecordsOf(File{Path: origin}, "## a\n## b\n", SplitClient, func(Notice) {}) {
			got[r.IDName] = r.ID.String()
		}
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
}

func TestFormatTime(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600))
	for want, t0 := range map[string]time.Time{
		"2026-03-04T04:06:07Z":           at,
		"2026-03-04T04:06:07.120Z":       at.Add(120 * time.Millisecond),
		"2026-03-04T04:06:07.000120Z":    at.Add(120 * time.Microsecond),
		"2026-03-04T04:06:07.000000001Z": at.Add(1),
		"+12026-01-02T00:00:00Z":         time.Date(12026, 1, 2, 0, 0, 0, 0, time.UTC),
		"-0005-01-02T00:00:00Z":          time.Date(-5, 1, 2, 0, 0, 0, 0, time.UTC),
	} {
		if got := FormatTime(t0); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPartition(t *testing.T) {
	at := func(y int, m time.Month) *time.Time { d := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC); return &d }
	for want, r := range map[string]Record{
		"memory/2026-Q1.jsonl": {CreatedAt: *at(2026, 3)},
		"memory/2026-Q4.jsonl": {CreatedAt: *at(2026, 10)},
		"memory/26-Q2.jsonl":   {CreatedAt: *at(2026, 1), ObservedAt: at(26, 4)},
	} {
		if got := r.Partition(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestLossy(t *testing.T) {
	for name, want := range map[string]string{
		"plain":                "plain",
		"a\xff\xfeb":           "a\ufffd\ufffdb",
		"a\xe2\x82b":           "a\ufffdb", // the beginning of one character
		"\xed\xa0\x80":         "\ufffd\ufffd\ufffd",
		"end \xf0\x9f\x98":     "end \ufffd",
		"日\xe6\x97 本 \xc0\xaf": "日\ufffd 本 \ufffd\ufffd",
	} {
		if got := lossy(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
