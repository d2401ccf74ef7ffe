package record

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// DailyLogDir is where daily logs are exported to where no other place is named.
const DailyLogDir = "memory/daily_log"

const notADate = "the id is no date YYYY-MM-DD"

// dayName is the form that the id of a daily log must have to name a file.
var dayName = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// Page is one daily log as Markdown.
type Page struct {
	Path string `json:"path"` // YYYY/YYYY-MM-DD.md, below the root of the export
	Text string `json:"text"`
}

// Exported tells which files an export of daily logs wrote.
type Exported struct {
	Written []string  `json:"written"`
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Text is one line for each file, and one for each id that was left out.
func (e Exported) Text() string {
	var b strings.Builder
	for _, name := range e.Written {
		b.WriteString("wrote " + name + "\n")
	}
	if len(e.Written) == 0 {
		b.WriteString("Nothing was written: every daily log has its file already.\n")
	}
	writeSkipped(&b, e.Skipped)
	return b.String()
}

// ExportDailyLog writes each record daily_log.note, expired ones too, to
// <root>/YYYY/YYYY-MM-DD.md by its id. Files that exist are kept unless
// overwrite. Ids that are no dates are skipped, and no link is followed out of
// the root. Directories are made only if there is something to write. The
// answer names the files written, beginning with root. It reports progress.
func (s *Store) ExportDailyLog(ctx context.Context, root string, overwrite bool) (Exported, error) {
	if root == "" {
		return Exported{}, &memory.FieldError{Field: "output_root", Reason: "must not be empty"}
	}
	result := Exported{Written: []string{}}
	var dir *os.Root
	err := s.DailyPages(ctx, -1, 0, func(id string, p Page) error {
		if p.Path == "" {
			result.Skipped = append(result.Skipped, Skipped{id, notADate})
			return nil
		}
		if dir == nil {
			var err error
			if dir, err = makeRoot(root); err != nil {
				return err
			}
		}
		wrote, err := writePage(dir, p, overwrite)
		if err != nil {
			return memory.Errorf(memory.ErrUnavailable, "write %s: %w", path.Join(root, p.Path), err)
		}
		if wrote {
			result.Written = append(result.Written, filepath.ToSlash(filepath.Join(root, p.Path)))
			op.Report(ctx, op.Progress{Done: int64(len(result.Written)), Unit: "files"})
		}
		return nil
	})
	if dir != nil {
		err = errors.Join(err, dir.Close())
	}
	if err != nil {
		return Exported{}, fmt.Errorf("export daily logs: %w", err)
	}
	return result, nil
}

// DailyPages calls yield with each record daily_log.note as Markdown, by id. The
// path is empty where the id is no date. A negative limit is none.
func (s *Store) DailyPages(ctx context.Context, limit, offset int, yield func(id string, p Page) error) error {
	return s.each(ctx, Selection{Namespaces: []string{dailyLog}, Kinds: []string{dailyNote}}, limit, offset, func(r Record) error {
		text, err := dailyText(r.ID, r.Payload)
		if err != nil {
			return memory.Errorf(memory.ErrCorrupt, "daily log %s: %w", r.ID, err)
		}
		p := Page{Text: text}
		if dayName.MatchString(r.ID) {
			p.Path = r.ID[:4] + "/" + r.ID + ".md"
		}
		return yield(r.ID, p)
	})
}

func makeRoot(name string) (*os.Root, error) {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "create %s: %w", name, err)
	}
	dir, err := os.OpenRoot(name)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "open %s: %w", name, err)
	}
	return dir, nil
}

// writePage writes a page below dir. It reports false where a file is there
// that must be kept.
func writePage(dir *os.Root, p Page, overwrite bool) (bool, error) {
	if err := dir.MkdirAll(path.Dir(p.Path), 0o700); err != nil {
		return false, err
	}
	if _, err := dir.Lstat(p.Path); err == nil && !overwrite {
		return false, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	// A whole file or none: it takes its name when it is complete.
	part := p.Path + ".part"
	if err := dir.WriteFile(part, []byte(p.Text), 0o600); err != nil {
		return false, err
	}
	if err := dir.Rename(part, p.Path); err != nil {
		return false, errors.Join(err, dir.Remove(part))
	}
	return true, nil
}

// logLine is one entry of a daily log. ts is empty where there is no time to
// show; order is what it is sorted by.
type logLine struct{ order, ts, text string }

// dailyText renders a daily log: front matter, a heading, and one line an entry
// in the order of their times.
func dailyText(id string, payload json.RawMessage) (string, error) {
	lines, err := logLines(payload)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("---\nainl_namespace: " + dailyLog + "\nainl_record_kind: " + dailyNote + "\nainl_record_id: " + id +
		"\nexported_from: ainl.memory\n---\n\n# Daily Log – " + id + "\n\n")
	if len(lines) == 0 {
		b.WriteString("_No entries recorded in memory for this day._\n")
	}
	slices.SortStableFunc(lines, func(a, b logLine) int { return cmp.Compare(a.order, b.order) })
	for _, l := range lines {
		if l.ts == "" {
			b.WriteString("- " + l.text + "\n")
		} else {
			b.WriteString("- [" + l.ts + "] " + l.text + "\n")
		}
	}
	return b.String(), nil
}

// logLines reads the entries of a payload: its list of entries, or the payload
// itself where it has no such list but a ts or a text. Entries that are not
// objects are left out.
func logLines(payload json.RawMessage) ([]logLine, error) {
	o, err := parseObject("payload", payload)
	if err != nil {
		return nil, err
	}
	entries, _ := o.get(entriesMember)
	if !isList(entries) {
		_, hasTime := o.get("ts")
		_, hasText := o.get("text")
		if !hasTime && !hasText {
			return nil, nil
		}
		return []logLine{lineOf(o)}, nil
	}
	list, err := items(entries)
	if err != nil {
		return nil, err
	}
	var lines []logLine
	for _, raw := range list {
		if entry, err := parseObject("entry", raw); err == nil {
			lines = append(lines, lineOf(entry))
		}
	}
	return lines, nil
}

func lineOf(entry object) logLine {
	ts, _ := entry.get("ts")
	text, _ := entry.get("text")
	l := logLine{order: printed(ts), text: printed(text)}
	if !isEmpty(ts) {
		l.ts = l.order
	}
	return l
}

// printed writes a JSON value as Python prints it; nothing for null.
func printed(raw json.RawMessage) string {
	switch string(raw) {
	case "", "null":
		return ""
	case "true":
		return "True"
	case "false":
		return "False"
	}
	if s, err := decodeText(raw); err == nil {
		return s
	}
	if c := raw[0]; c == '-' || '0' <= c && c <= '9' {
		return pythonNumber(string(raw))
	}
	return string(raw)
}
