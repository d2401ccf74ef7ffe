package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// MigrateLegacy imports notes of the older habit: the ## sections of memoryFile
// (MEMORY.md) as facts, and each file YYYY-MM-DD.md directly in dailyDir as a
// daily log. An empty name is skipped; so is one that does not exist, which the
// answer then names. Running it again updates the same records.
func MigrateLegacy(ctx context.Context, s *Store, memoryFile, dailyDir string) (Imported, error) {
	var notes *Document
	var skipped []Skipped
	if memoryFile != "" {
		text, err := readText(memoryFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			skipped = append(skipped, Skipped{memoryFile, notThere})
		case err != nil:
			return Imported{}, err
		default:
			notes = &Document{memoryFile, text}
		}
	}
	days, err := dayFiles(dailyDir)
	if errors.Is(err, fs.ErrNotExist) {
		skipped, err = append(skipped, Skipped{dailyDir, notThere}), nil
	}
	if err != nil {
		return Imported{}, err
	}
	result, err := s.MigrateDocuments(ctx, notes, days)
	result.Skipped = skipped
	return result, err
}

const notThere = "it does not exist"

// dayFiles reads the daily notes of a folder, in the order of their names.
func dayFiles(dir string) ([]Document, error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read %s: %w", dir, err)
	}
	var docs []Document
	for _, e := range entries {
		if day, isNote := strings.CutSuffix(e.Name(), ".md"); !isNote || !dayName.MatchString(day) || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, e.Name())
		text, err := readText(name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, Document{name, text})
	}
	return docs, nil
}

// MigrateDocuments is MigrateLegacy for texts that are at hand: notes may be
// nil, and the name of each day ends in YYYY-MM-DD.md.
func (s *Store) MigrateDocuments(ctx context.Context, notes *Document, days []Document) (Imported, error) {
	at := wholeSecond(s.now())
	var drafts []draft
	if notes != nil {
		for _, section := range sections(notes.Text) {
			drafts = append(drafts, legacyDraft(Key{longTerm, projectFact, "memory_md." + section.slug}, notes.Name, at, map[string]string{"text": section.body}))
		}
	}
	for i, d := range days {
		id, isNote := strings.CutSuffix(filepath.Base(d.Name), ".md")
		if !isNote || !dayName.MatchString(id) {
			return Imported{}, &memory.FieldError{Field: fmt.Sprintf("days[%d].name", i), Reason: "must end in YYYY-MM-DD.md"}
		}
		drafts = append(drafts, legacyDraft(Key{dailyLog, dailyNote, id}, d.Name, at, map[string]any{entriesMember: dailyEntries(d.Text)}))
	}
	return s.Import(ctx, encoded(drafts))
}

func legacyDraft(key Key, origin, at string, payload any) draft {
	return draft{Key: key, UpdatedAt: at, Payload: payload,
		Provenance: source{System: "legacy_markdown", Origin: filepath.ToSlash(origin), AuthoredBy: "human"}}
}

type section struct{ slug, body string }

// sections cuts a text at its lines that begin with "## "; what stands before
// the first, and sections without text, are left out. A line within a code
// fence is no heading. Where two headings have one slug, the later gets a number
// behind it.
func sections(text string) []section {
	var out []section
	var heading string
	var body []string
	inside := false
	taken := map[string]bool{}
	flush := func() {
		trimmed := strings.TrimFunc(strings.Join(body, "\n"), isSpace)
		if !inside || trimmed == "" {
			return
		}
		slug := slugOf(heading)
		name := slug
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", slug, n)
		}
		taken[name] = true
		out = append(out, section{name, trimmed})
	}
	fence := ""
	for _, line := range splitLines(text) {
		fence = fenceAfter(fence, line)
		if title, isHeading := strings.CutPrefix(line, "## "); isHeading && fence == "" {
			flush()
			heading, body, inside = title, nil, true
			continue
		}
		body = append(body, line)
	}
	flush()
	return out
}

var fenceLine = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})(.*)$")

// fenceAfter returns the code fence that is open after a line ("" for none),
// where open was open before it.
func fenceAfter(open, line string) string {
	m := fenceLine.FindStringSubmatch(line)
	switch {
	case m == nil:
		return open
	case open == "" && m[1][0] == '`' && strings.Contains(m[2], "`"):
		return "" // code within a line
	case open == "":
		return m[1]
	case m[1][0] == open[0] && len(m[1]) >= len(open) && strings.TrimSpace(m[2]) == "":
		return ""
	}
	return open
}

// slugOf makes a name of a heading: lower case, everything that is no letter,
// digit or underscore of any script becomes one underscore.
func slugOf(heading string) string {
	lower := cases.Lower(language.Und).String(strings.TrimFunc(heading, isSpace))
	var b strings.Builder
	gap := false
	for _, r := range lower {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' {
			gap = true
			continue
		}
		if gap {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	return orElse(strings.Trim(b.String(), "_"), "section")
}

// dailyEntry is one line of a daily note. TS is nil where the line has no time.
type dailyEntry struct {
	TS   *string `json:"ts"`
	Text string  `json:"text"`
}

// A line's time stands in brackets; brackets with a parenthesis right behind
// them are a link.
var timedLine = regexp.MustCompile(`^(?:- )?\[+([^\]]*)\]($|[^(].*$)`)

// dailyEntries reads the lines of a daily note; blank lines and rules are left
// out.
func dailyEntries(text string) []dailyEntry {
	entries := []dailyEntry{}
	for _, line := range splitLines(text) {
		line = strings.TrimFunc(line, isSpace)
		if line == "" || line == "---" {
			continue
		}
		if m := timedLine.FindStringSubmatch(line); m != nil {
			ts := strings.TrimFunc(m[1], isSpace)
			entries = append(entries, dailyEntry{&ts, strings.TrimFunc(m[2], isSpace)})
			continue
		}
		if rest, isBullet := strings.CutPrefix(line, "- "); isBullet {
			line = strings.TrimFunc(rest, isSpace)
		}
		entries = append(entries, dailyEntry{nil, line})
	}
	return entries
}
