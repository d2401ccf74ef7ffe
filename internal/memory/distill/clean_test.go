package distill

import (
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                      "plain text",
		"a\r\nb\rc":                       "a\nb\nc",
		"tab\tstays":                      "tab\tstays",
		"nul\x00 bell\x07 esc\x1b[31m":    "nul bell esc[31m",
		"zero\u200bwidth and \u202ebidi":  "zerowidth and bidi",
		"tags \U000E0041 and \ufeffbom":   "tags  and bom",
		"line\u2028separator":             "line\nseparator",
		"bad \xff byte":                   "bad \uFFFD byte",
		"latin a\u200db":                  "latin ab",
		"emoji 👩\u200d🚀 stays":            "emoji 👩\u200d🚀 stays",
		"Persian می\u200cخواهم":           "Persian می\u200cخواهم",
		"Hindi क्\u200dष":                 "Hindi क्\u200dष",
		"trailing joiner\u200d":           "trailing joiner",
		"soft\u00adhyphen and c1 \u0085.": "softhyphen and c1 .",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\u200db \xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if !utf8.ValidString(got) || clean(got) != got {
			t.Errorf("clean(%q) = %q is not clean", s, got)
		}
	})
}

func TestSpan(t *testing.T) {
	text := "He said: “it’s  fine”,\n– mostly. ﬁve ﬁsh"
	for quote, want := range map[string]string{
		`"it's fine", - mostly`:  "“it’s  fine”,\n– mostly",
		"He said":                "He said",
		"five fish":              "ﬁve ﬁsh",
		"  mostly.  ":            "mostly.",
		"it\u200b's fine":        "it’s  fine",
		"\u201cit\u2019s  fine”": "“it’s  fine”",
	} {
		if got, found := span(text, quote); !found || got != want {
			t.Errorf("span(%q) = %q, %v, want %q", quote, got, found, want)
		}
	}
	for _, quote := range []string{"", "  ", "—", "“”", "he said", "it is fine", "fine mostly"} {
		if got, found := span(text, quote); found {
			t.Errorf("span(%q) = %q, want none", quote, got)
		}
	}
}

func FuzzSpan(f *testing.F) {
	f.Add("some “text” ﬁ – here", "\"text\" fi - here")
	f.Fuzz(func(t *testing.T, text, quote string) {
		got, found := span(text, quote)
		if !found {
			return
		}
		if _, again := span(text, got); !again {
			t.Errorf("span(%q, %q) = %q, which is not found itself", text, quote, got)
		}
	})
}
