package distill

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSentences(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string // pasted ones start with "P:"
	}{
		{"ok. see you at 9.30! bye", []string{"ok.", "see you at 9.30!", "bye"}},
		{"Dr. Huber lives in St. Gallen, e.g. near the lake. Nice.", []string{"Dr. Huber lives in St. Gallen, e.g. near the lake.", "Nice."}},
		{"one line\nanother line", []string{"one line", "another line"}},
		{"我住在成都。她住在北京！", []string{"我住在成都。", "她住在北京！"}},
		{`He said "Go home. It is late." and left.`, []string{`He said "Go home. It is late."`, "and left."}},
		{`The note says: "Water the plants on Monday." So that's our week.`, []string{`P:The note says: "Water the plants on Monday."`, "So that's our week."}},
		{"> quoted line here\nmy own words", []string{"P:> quoted line here", "my own words"}},
		{"```\ncode. here.\n```\nafter", []string{"P:code. here.", "after"}},
		{"From the landlord: The lift is out. Use the stairs.\n\nI hate stairs.", []string{"P:From the landlord: The lift is out.", "P:Use the stairs.", "I hate stairs."}},
		{"Decision from the meeting: we rent the barn.", []string{"Decision from the meeting: we rent the barn."}},
		{"她写道：我们用蓝色。 So blue it is.", []string{"P:她写道：我们用蓝色。", "So blue it is."}},
		{"!!! ...", nil},
	} {
		var got []string
		for _, s := range sentences(tc.text) {
			mark := ""
			if s.pasted || len(s.quotes) > 0 && classify(&s, &turn{}) == quoting && s.quotes[0] != "" && introducesPaste.MatchString(s.text) {
				mark = "P:"
			}
			if tc.text[s.start:s.end] != s.text {
				t.Errorf("%q: span does not match", s.text)
			}
			got = append(got, mark+s.text)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: %s", tc.text, diff)
		}
	}
}

func TestWordsOf(t *testing.T) {
	s := sentences(`Ana's flat — the "big" one: costs 1,200€/month, see app/main.go and "the long quoted part here" too`)[0]
	var got []string
	for _, w := range s.words {
		text := w.text
		if w.code {
			text = "`" + text
		}
		got = append(got, text)
	}
	want := []string{"Ana's", "flat", "the", "big", "one", "costs", "1,200€/month", "see", "`app/main.go", "and", "«»", "too"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzSentences(f *testing.F) {
	f.Add("a. \"b. c\" d\n> e\n```x")
	f.Add("她写道：“好。” So …")
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for _, s := range sentences(text) {
			if s.start < last || s.end < s.start || text[s.start:s.end] != s.text {
				t.Fatalf("%q: sentence at %d-%d is no span in order", text, s.start, s.end)
			}
			last = s.end
		}
	})
}
