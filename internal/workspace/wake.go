package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Waking says what an agent reads of its workspace when a session starts.
type Waking struct {
	// Private is set for the main private session: MEMORY.md is read for it alone.
	// For others, what was written of sessions is left out.
	Private bool
	Now     time.Time // its day is today
	File    int       // bytes of one file at most
	Total   int       // bytes of all of them at most
}

// Wake returns the files that an agent wakes with, each under a line with its
// name: SOUL, IDENTITY, AGENTS and USER, the active context, the notes of
// yesterday and today, and the curated memory in a private session. Of a long
// file its beginning is taken, of notes the end. "" if there are none; files that
// cannot be read are reported.
func (w *Workspace) Wake(ctx context.Context, o Waking, notice func(Notice)) (string, error) {
	names := []string{"SOUL.md", "IDENTITY.md", "AGENTS.md", "USER.md", MemoryDir + "/active-context.md",
		DailyFile(o.Now.AddDate(0, 0, -1)), DailyFile(o.Now)}
	if o.Private {
		names = append(names, CuratedFile)
	}
	var sb strings.Builder
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		text, err := w.wakeFile(name, o)
		switch {
		case errors.Is(err, memory.ErrNotFound):
			continue
		case err != nil:
			notice(Notice{File: name, Skipped: true, Reason: err.Error()})
			continue
		case text == "":
			continue
		}
		if room := o.Total - sb.Len(); len(text) > room {
			text = beginning(text, room)
		}
		if text != "" {
			fmt.Fprintf(&sb, "--- %s ---\n%s\n", name, text)
		}
	}
	return sb.String(), nil
}

// DailyFile is the path of a day's notes.
func DailyFile(day time.Time) string { return MemoryDir + "/" + day.Format(time.DateOnly) + ".md" }

func (w *Workspace) wakeFile(name string, o Waking) (string, error) {
	target, err := w.Target(name)
	if err != nil {
		return "", err
	}
	text, _, err := w.Read(File{Path: name, opens: target})
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(text) {
		return "", memory.Errorf(memory.ErrInvalid, "it is not UTF-8")
	}
	if !o.Private {
		text = WithoutOwn(text)
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if classify(name).dated {
		return end(text, o.File), nil
	}
	return beginning(text, o.File), nil
}

// Target returns what is to be opened for a path of the workspace: the path, or
// what it leads to as a link. ErrNotFound if there is nothing, ErrDenied for a link
// that leads out.
func (w *Workspace) Target(name string) (string, error) {
	if _, err := w.root.Lstat(name); err != nil {
		return "", memory.Errorf(memory.ErrNotFound, "there is no %s", name)
	}
	target, err := w.resolve(name)
	if err != nil {
		return "", memory.Errorf(memory.ErrDenied, "%s is a link that %w", name, err)
	}
	return target, nil
}

const cutMark = "[… cut here …]"

// beginning shortens a text from behind.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	most -= len(cutMark) + 1
	if most <= 0 {
		return ""
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.TrimSpace(text[:most]) + "\n" + cutMark
}

// end shortens a text from the front.
func end(text string, most int) string {
	if len(text) <= most {
		return text
	}
	from := len(text) - most + len(cutMark) + 1
	if from >= len(text) {
		return ""
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return cutMark + "\n" + text[from:]
}
