package workspace

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// linesOf cuts a text into its lines, plainly.
func linesOf(text string) []string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// plainSections is the rule for sections, said with lists.
func plainSections(text string) []section {
	lines := linesOf(text)
	var out []section
	cut := func(from, to int, headed bool) {
		s := section{headed: headed, text: strings.Join(lines[from:to], "\n"), start: from + 1, end: to}
		if headed {
			s.heading = strings.TrimSpace(regexp.MustCompile(`^(## )+`).ReplaceAllString(lines[from], ""))
		} else if strings.TrimSpace(s.text) == "" {
			return
		}
		out = append(out, s)
	}
	from, headed := 0, false
	for i, line := range lines {
		if strings.HasPrefix(line, "## ") {
			if i > from || headed {
				cut(from, i, headed)
			}
			from, headed = i, true
		}
	}
	if len(lines) > 0 {
		cut(from, len(lines), headed)
	}
	return out
}

var wordTag = regexp.MustCompile(`\[([\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+)\|i=([\p{Nd}.]+)\]`)

// plainMarks is the rule for tags, said with a pattern. It knows the letters of
// Other_Alphabetic only where they are marks.
func plainMarks(text, namespace string) marks {
	m := marks{tags: []string{namespace}}
	add := func(tag string) {
		if !slices.Contains(m.tags, tag) {
			m.tags = append(m.tags, tag)
		}
	}
	for n, line := range strings.Split(text, "\n") {
		if found := wordTag.FindStringSubmatch(line); found != nil {
			score, err := strconv.ParseFloat(found[2], 64)
			if err == nil || score > 0 {
				if m.category == "" {
					m.category = found[1]
				}
				add(found[1])
				if score > 1 {
					m.outside = append(m.outside, n)
				} else if m.confidence == nil || *m.confidence < score {
					m.confidence = &score
				}
			}
		}
		for _, piece := range strings.FieldsFunc(line, unicode.IsSpace) {
			if !strings.HasPrefix(piece, "#") {
				continue
			}
			runes := []rune(strings.TrimLeft(piece, "#"))
			for len(runes) > 0 {
				last := runes[len(runes)-1]
				if unicode.IsLetter(last) || unicode.IsNumber(last) || unicode.Is(unicode.Other_Alphabetic, last) {
					break
				}
				runes = runes[:len(runes)-1]
			}
			if len(runes) > 0 {
				add(string(runes))
			}
		}
	}
	return m
}

func showMarks(m marks) string {
	score := "none"
	if m.confidence != nil {
		score = fmt.Sprint(*m.confidence)
	}
	return fmt.Sprintf("%q %s %q %v", m.category, score, m.tags, m.outside)
}

func checkText(t interface{ Errorf(string, ...any) }, text string) {
	got := slices.Collect(sections(text, false))
	if want := plainSections(text); !slices.Equal(got, want) {
		t.Errorf("sections of %q: %+v, want %+v", text, got, want)
	}
	lines := linesOf(text)
	for _, mode := range []Split{SplitClient, SplitFenceAware, SplitRows} {
		last := 0
		for s := range cut(class{memoryType: Procedure}, text, mode) {
			if s.start < last || s.end < s.start || s.end > len(lines) {
				t.Errorf("%s, %q: a section of lines %d to %d after line %d", mode, text, s.start, s.end, last)
			}
			last = s.start
			if mode != SplitRows && s.text != strings.Join(lines[s.start-1:s.end], "\n") {
				t.Errorf("%s, %q: lines %d to %d are not %q", mode, text, s.start, s.end, s.text)
			}
		}
	}
	for s := range sections(text, false) {
		if got, want := showMarks(readMarks(s.text, Daily)), showMarks(plainMarks(s.text, Daily)); got != want {
			t.Errorf("marks of %q: %s, want %s", s.text, got, want)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{"## A\r\n\r\nx\n## ## B", "\ufeff## x\n```\n## y\n```\n~~~", "[a|i=0.5] #b! [c|i=٣]", "|a|\n|-|\n|b\\|c|\n", "\n\n#one##two ##\u2003#ह।", "## \r\r\n[ग़|i=.]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) {
			checkText(t, text)
		}
	})
}

func TestTextsAgainstTheRules(t *testing.T) {
	piece := rapid.SampledFrom([]string{"## ", "##", "#", "# ", "\n", "\n\n", "\r\n", "\r", " ", "\u2003", "\u2028", "\ufeff", "a", "É", "日本", "ह।", "!", "```", "~~~~", "|", "|-|",
		"[w|i=0.5]", "[w|i=", "0.", ".5]", "|i=1.2]", "[", "#tag", "#c++", "\u200d", "٣", "½", "_", "‿"})
	rapid.Check(t, func(t *rapid.T) {
		checkText(t, strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), ""))
	})
}
