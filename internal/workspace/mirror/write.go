package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Writer writes what an agent remembers into a workspace.
type Writer struct {
	W      *workspace.Workspace
	Redact redactor
	Now    func() time.Time // its day, in its zone, is today
	NewID  func() string    // a fresh ULID
}

func (wr Writer) folder() folder {
	return folder{root: wr.W.Root(), target: wr.W.Target, newID: wr.NewID}
}

// Written is what came of writing items into a workspace.
type Written struct {
	Workspace string   `json:"workspace"`
	Sections  int      `json:"sections" jsonschema:"items that stand in MEMORY.md between the marks"`
	Notes     int      `json:"notes" jsonschema:"items of today that were added to the day's notes"`
	Changed   []string `json:"changed" jsonschema:"files that are different now"`
}

// Items writes the active ones of all items as sections of MEMORY.md between the
// marks, and those of today as notes of the day, each once. Items that came from
// the workspace stand there already and are left out, and so are those that hold
// no longer. The notes of forgotten ones are taken away. Nothing else in the files
// is touched.
func (wr Writer) Items(ctx context.Context, items []memory.Item) (Written, error) {
	res := Written{Workspace: wr.W.Path(), Changed: []string{}}
	now := wr.Now()
	own := slices.DeleteFunc(slices.Clone(items), func(it memory.Item) bool {
		return it.Status != memory.Active || fromWorkspace(it) || it.ValidTo != nil && !it.ValidTo.After(now)
	})
	slices.SortStableFunc(own, func(a, b memory.Item) int {
		return cmp.Or(b.Importance-a.Importance, a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Handle, b.Handle))
	})
	res.Sections = len(own)
	var lines []string
	for _, it := range own {
		lines = append(lines, sectionLines(it)...)
	}
	changed, err := wr.folder().edit(workspace.CuratedFile, func(text string) (string, error) { return withBlock(text, lines) })
	if err != nil {
		return res, fmt.Errorf("%s: %w", workspace.CuratedFile, err)
	}
	if changed {
		res.Changed = append(res.Changed, workspace.CuratedFile)
	}
	if err := wr.forget(ctx, &res, items); err != nil {
		return res, err
	}
	return res, wr.notes(&res, own, now)
}

// forget takes the notes of forgotten items out of the daily logs.
func (wr Writer) forget(ctx context.Context, res *Written, items []memory.Item) error {
	gone := map[string]bool{}
	for _, it := range items {
		if it.Status == memory.Forgotten {
			gone[it.Handle] = true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	files, err := wr.W.Files(ctx, workspace.Memory, nil)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := time.Parse(time.DateOnly+".md", path.Base(f.Path)); err != nil || f.Size > largestEdited {
			continue
		}
		changed, err := wr.folder().edit(f.Path, func(text string) (string, error) { return withoutNotes(text, gone), nil })
		if errors.Is(err, memory.ErrInvalid) {
			continue // not written from here
		}
		if err != nil {
			return err
		}
		if changed {
			res.Changed = append(res.Changed, f.Path)
		}
	}
	return nil
}

// withoutNotes takes the lines out of a text that were written for items.
func withoutNotes(text string, gone map[string]bool) string {
	var sb strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		if !gone[workspace.NotedItem(line)] {
			sb.WriteString(line)
		}
	}
	return sb.String()
}

// notes adds the items of today to the day's notes.
func (wr Writer) notes(res *Written, own []memory.Item, now time.Time) error {
	var lines []string
	for _, it := range own {
		if it.CreatedAt.In(now.Location()).Format(time.DateOnly) == now.Format(time.DateOnly) {
			lines = append(lines, noteLine(it.Kind, scoreOf(it.Importance), it.Content)+handleMark(it))
		}
	}
	name := workspace.DailyFile(now)
	var err error
	res.Notes, err = wr.folder().add(name, lines, func(text, line string) bool {
		return strings.Contains(text, line[strings.LastIndex(line, "<!-- "):])
	})
	if err == nil && res.Notes > 0 {
		res.Changed = append(res.Changed, name)
	}
	return err
}

func fromWorkspace(it memory.Item) bool {
	meta, isMap := it.Metadata.(map[string]any)
	return isMap && meta["workspace"] != nil
}

func handleMark(it memory.Item) string { return " <!-- " + it.Handle + " -->" }

// sectionLines is an item as a section. Its lines can be no headings or marks.
func sectionLines(it memory.Item) []string {
	lines := []string{"## " + cmp.Or(oneLine(it.Title), it.Handle), ""}
	for line := range strings.SplitSeq(strings.TrimSpace(it.Content), "\n") {
		line = harmless(line)
		if strings.HasPrefix(line, "#") {
			line = `\` + line
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	lines[len(lines)-1] += handleMark(it)
	return append(lines, "")
}

// harmless takes out of a text what would read as a mark or end a line.
func harmless(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return ' '
		}
		return r
	}, s)
	return strings.ReplaceAll(s, "<!--", "&lt;!--")
}

func oneLine(s string) string { return strings.Join(strings.Fields(harmless(s)), " ") }

// scoreOf turns the importance of an item into that of a tag, in the middle of
// what importanceOf turns back.
func scoreOf(importance int) float64 {
	return map[int]float64{5: .95, 4: .85, 3: .6, 2: .3, 1: .1}[importance]
}

// noteLine is one note of a day. Without a kind it has no tag.
func noteLine(kind string, score float64, text string) string {
	text = oneLine(text)
	if kind == "" {
		return "- " + text
	}
	return fmt.Sprintf("- [%s|i=%s] %s", kind, strconv.FormatFloat(score, 'f', -1, 64), text)
}

// Note is one note for the day's file.
type Note struct {
	Text       string
	Kind       string   // a word; "" for note where there is an importance, else for no tag
	Importance *float64 // 0 to 1; nil for none
}

// Noted says where a note stands.
type Noted struct {
	File string `json:"file" jsonschema:"the day's notes, in the workspace"`
	Line string `json:"line" jsonschema:"as it was written"`
}

// Text is what a person reads.
func (n Noted) Text() string { return n.File + ": " + n.Line + "\n" }

// Note appends a note to the day's file.
func (wr Writer) Note(n Note) (Noted, error) {
	text := oneLine(wr.Redact.Text(n.Text))
	switch {
	case text == "":
		return Noted{}, &memory.FieldError{Field: "text", Reason: "must say something"}
	case n.Importance != nil && (*n.Importance < 0 || *n.Importance > 1):
		return Noted{}, &memory.FieldError{Field: "importance", Reason: "must be between 0 and 1"}
	case strings.ContainsFunc(n.Kind, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }):
		return Noted{}, &memory.FieldError{Field: "kind", Reason: "must be one word of letters, digits and underscores"}
	}
	score := .5
	if n.Importance != nil {
		score = *n.Importance
		n.Kind = cmp.Or(n.Kind, memory.KindNote)
	}
	res := Noted{File: workspace.DailyFile(wr.Now()), Line: noteLine(n.Kind, score, text)}
	_, err := wr.folder().add(res.File, []string{res.Line}, func(string, string) bool { return false })
	return res, err
}

// Talk is a session's turns, as they are written into a workspace.
type Talk struct {
	Session memory.Session
	Turns   []memory.Event // in order; other events are left out
}

// said returns the lines of a talk: who spoke, and what.
func (t Talk) said(red redactor) (lines []string, users []string) {
	for _, e := range t.Turns {
		text := oneLine(red.Text(e.Text))
		switch {
		case text == "":
		case e.Type == memory.UserMessage:
			lines, users = append(lines, oneLine(e.Speaker())+": "+text), append(users, text)
		case e.Type == memory.AssistantOutput:
			lines = append(lines, "assistant: "+text)
		}
	}
	return lines, users
}

// Limits of what is kept of a session for the next one.
const (
	lastLines = 6
	lineBytes = 300
)

// Sleep writes what the next session needs to know of one that has ended: its end
// into the active context, between the marks, and a line into the day's notes. A
// session in which nobody said anything leaves nothing. It returns the files that
// it changed.
func (wr Writer) Sleep(t Talk) ([]string, error) {
	lines, users := t.said(wr.Redact)
	if len(users) == 0 {
		return nil, nil
	}
	now := wr.Now()
	about := fmt.Sprintf("Last session: %s, %s, %d messages.", now.Format("2006-01-02 15:04 MST"), cmp.Or(oneLine(t.Session.Channel), "unknown channel"), len(lines))
	block := []string{about, ""}
	for _, l := range lines[max(0, len(lines)-lastLines):] {
		block = append(block, "- "+clip(l, lineBytes))
	}
	var files []string
	active := workspace.MemoryDir + "/active-context.md"
	changed, err := wr.folder().edit(active, func(text string) (string, error) { return withBlock(text, block) })
	if err != nil {
		return files, fmt.Errorf("%s: %w", active, err)
	}
	if changed {
		files = append(files, active)
	}
	daily := workspace.DailyFile(now)
	line := fmt.Sprintf("- [context|i=0.3] %s Session with %d messages: %s <!-- session %s -->", now.Format("15:04"), len(lines), clip(users[0], lineBytes), t.Session.ID)
	added, err := wr.folder().add(daily, []string{line}, func(text, line string) bool { return strings.Contains(text, line) })
	if added > 0 {
		files = append(files, daily)
	}
	return files, err
}

// Save writes a session whole as a file of its own, YYYY-MM-DD-slug.md, into the
// memory directory of the workspace, or into dir where that is not empty. The slug
// is made of what was said first if it is empty. It returns the file's path: in the
// workspace, or whole for dir.
func (wr Writer) Save(t Talk, dir, slug string) (string, error) {
	lines, users := t.said(wr.Redact)
	if len(lines) == 0 {
		return "", memory.Errorf(memory.ErrNotFound, "session %s has no turns", t.Session.ID)
	}
	if slug = slugOf(slug); slug == "" && len(users) > 0 {
		slug = slugOf(users[0])
	}
	began := t.Turns[0].Timestamp
	text := []string{workspace.BeginMark, "# Session: " + began.Format("2006-01-02 15:04 MST"), "",
		"- **Session ID**: " + t.Session.ID, "- **Source**: " + cmp.Or(oneLine(t.Session.Channel), "unknown"), "", "## Conversation", ""}
	for _, l := range lines {
		text = append(text, l, "")
	}
	text = append(text, workspace.EndMark, "")
	f, in := wr.folder(), workspace.MemoryDir
	if dir != "" {
		root, err := openDir(dir)
		if err != nil {
			return "", err
		}
		defer root.Close()
		f, in = folder{root: root, newID: wr.NewID}, "."
	}
	name, err := f.saveAs(path.Join(in, began.Format(time.DateOnly)+"-"+cmp.Or(slug, "session")), strings.Join(text, "\n"))
	if err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "save session %s: %w", t.Session.ID, err)
	}
	if dir != "" {
		return filepath.Join(dir, name), nil
	}
	return name, nil
}

func openDir(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "open %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "open %s: %w", dir, err)
	}
	return root, nil
}

// saveAs makes a new file of that name, or with a number behind it; the same text
// is not saved twice.
func (f folder) saveAs(stem, text string) (string, error) {
	if err := f.root.MkdirAll(path.Dir(stem), 0o700); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		name := stem + ".md"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.md", stem, n)
		}
		err := f.create(name, text, 0o600)
		if !errors.Is(err, os.ErrExist) {
			return name, err
		}
		have, err := f.root.ReadFile(name)
		if err != nil || string(have) == text {
			return name, err
		}
	}
}

const (
	slugWords = 6
	slugBytes = 60
)

// slugOf makes words of a text fit for a file's name: lower case, joined by
// hyphens.
func slugOf(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slug := ""
	for _, w := range words[:min(len(words), slugWords)] {
		next := strings.TrimPrefix(slug+"-"+w, "-")
		if len(next) > slugBytes {
			break
		}
		slug = next
	}
	return slug
}
