package erasure

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// codes write a text as others do.
var codes = map[string]func(string) string{
	"base64":                 func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, not filled":     func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 of a URL":        func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"a query":                url.QueryEscape,
	"a path":                 url.PathEscape,
	"a query within a query": func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"every byte": func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02x", s[i])
		}
		return b.String()
	},
	"UTF-16, little": func(s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	},
	"UTF-16, big": func(s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u>>8), byte(u))
		}
		return string(b)
	},
}

var secrets = []string{"the golden fleece of Colchis", "Ana's cat is called Möhre", "я живу в старом городе", "我住在里斯本的老城区里面", "she said \"no\" <twice>", "naïve café, 100 % + 1"}

// TestCodesAreSeenThrough writes a text in every code, as it is and within JSON, with
// anything before it, and looks for it: it is found where it stands, and taken out.
func TestCodesAreSeenThrough(t *testing.T) {
	f := NewFinder(secrets, "")
	for name, code := range codes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				needle := rapid.IntRange(0, len(secrets)-1).Draw(t, "needle")
				said := rapid.SampledFrom([]string{"", "I know: ", "a", "ab", "№ 7 "}).Draw(t, "before") + secrets[needle] + rapid.SampledFrom([]string{"", ".", " and so on", "!!"}).Draw(t, "behind")
				if rapid.Bool().Draw(t, "in JSON") {
					raw, err := json.Marshal(map[string]string{"text": said})
					if err != nil {
						t.Fatal(err)
					}
					said = string(raw)
				}
				before := rapid.SampledFrom([]string{"", "\"", " ", "https://example.org/?q=", "data:text/plain;base64,", "\x00\x07\x13", "some words first, "}).Draw(t, "around")
				b := before + code(said) + rapid.SampledFrom([]string{"", "\"", " ", "&x=1", "\n"}).Draw(t, "end")
				found := 0
				f.Find([]byte(b), func(s Span) bool {
					if s.Needle == needle {
						found++
						if s.Start < 0 || s.End > len(b) || s.Start >= s.End {
							t.Fatalf("it stands at %+v of %d bytes", s, len(b))
						}
						if cut := b[:s.Start] + b[s.End:]; len(codes) > 0 && NewFinder(secrets[needle:needle+1], "").In([]byte(cut)) {
							t.Fatalf("without %q it is still in %q", b[s.Start:s.End], cut)
						}
					}
					return true
				})
				if found == 0 {
					t.Fatalf("%q is not found in %q", secrets[needle], b)
				}
			})
		})
	}
}

// TestCodesAreCountedAcrossPortions lets what is written in a code stand anywhere
// about the end of a portion.
func TestCodesAreCountedAcrossPortions(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing in it runs at the same time, and it is long")
	}
	f := NewFinder(secrets[:1], "")
	for name, code := range codes {
		t.Run(name, func(t *testing.T) {
			coded := code(secrets[0])
			for _, off := range []int{-200, -90, -41, -20, -3, -2, -1, 0, 1, 2, 3, 20, 41, 90} {
				hay := (strings.Repeat("hay and straw, ", scanBuffer/15+300))[:scanBuffer+f.reach()+off] + " " + coded + strings.Repeat(" .", 300)
				p, err := f.Count(strings.NewReader(hay))
				if err != nil || p.Count != 1 || p.Coded != 1 {
					t.Errorf("%d off: %+v, %v", off, p, err)
				}
				middle := int64(len(hay) - 600 - len(coded)/2)
				var both Places
				for _, r := range [][2]int64{{0, middle}, {middle, int64(len(hay))}} {
					p, err := f.CountIn(strings.NewReader(hay), r[0], r[1])
					if err != nil {
						t.Fatal(err)
					}
					both.Add(p)
				}
				if both != p {
					t.Errorf("%d off: in two ranges %+v, in one %+v", off, both, p)
				}
			}
		})
	}
}

// A text of three letters is not looked for in codes, where it would be found by
// chance.
func TestShortTextsAreNotSeenInCodes(t *testing.T) {
	hay := strings.Repeat(base64.StdEncoding.EncodeToString([]byte("Any long text that holds no such thing, whatever is made of it.")), 50)
	for _, short := range []string{"abc", "xyz", "Ana"} {
		if NewFinder(nil, short).In([]byte(hay)) {
			t.Errorf("%s is found", short)
		}
	}
}

func FuzzUnveil(f *testing.F) {
	for _, code := range codes {
		f.Add([]byte(code(secrets[0])))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			return
		}
		unveil(b, anchorBytes, func(s stretch) bool {
			if s.index != nil && len(s.index) != len(s.text)+1 {
				t.Fatalf("%d places of %d bytes", len(s.index), len(s.text))
			}
			for i := range s.text {
				if from, to := s.span(i, i+1); from < 0 || from >= to || to > len(b) {
					t.Fatalf("byte %d of %q stands at %d to %d of %d", i, s.text, from, to, len(b))
				}
			}
			return true
		})
	})
}
