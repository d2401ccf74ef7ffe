package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Files of an agent are weekly-2006-01-02.md and .json, of the UTC day on which they
// were made, below its directory; of the second and later ones of a day with -2, -3 …
// behind the day.
const prefix = "weekly-"

func directory(agentDir string) string { return filepath.Join(agentDir, "memory", "reports") }

// write writes a report down under the first free name of its day. Where the last
// one of that day says the same, that one's name is the answer.
func write(agentDir string, r Report) (Report, error) {
	dir := directory(agentDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return r, memory.Errorf(memory.ErrUnavailable, "make the directory of reports: %w", err)
	}
	day := r.Until.Add(-time.Millisecond).Format(time.DateOnly)
	for n := 1; ; n++ {
		name := prefix + day
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		r.File = filepath.Join(dir, name+".md")
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return r, err
		}
		err = create(dir, name+".json", append(text, '\n'))
		if errors.Is(err, fs.ErrExist) {
			have, err := read(filepath.Join(dir, name+".json"))
			if err == nil && have.saysAs(r) {
				return r, nil
			}
			continue
		}
		if err == nil {
			err = create(dir, name+".md", []byte(r.Markdown()))
		}
		if err != nil {
			return r, memory.Errorf(memory.ErrUnavailable, "write the report: %w", err)
		}
		return r, nil
	}
}

// create writes a file whole or not at all; ErrExist where there is one.
func create(dir, name string, text []byte) (err error) {
	f, err := os.CreateTemp(dir, ".report-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), filepath.Join(dir, name)) // refuses to replace, unlike a rename
}

// read reads the JSON of a report.
func read(path string) (Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, &memory.CorruptError{Path: path, Offset: -1, Reason: err.Error()}
	}
	return r, nil
}

// saysAs reports whether two reports differ in nothing but when they were made.
func (r Report) saysAs(o Report) bool {
	plain := func(r Report) string {
		r.From, r.Until, r.File, r.Bytes = time.Time{}, time.Time{}, "", 0
		r.Growth = slices.Clone(r.Growth)
		for i := range r.Growth {
			r.Growth[i].At = time.Time{}
		}
		text, err := json.Marshal(r)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	return plain(r) == plain(o)
}

// names returns the names of an agent's reports without their endings, newest
// last; none where there is no directory.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "list the reports: %w", err)
	}
	var list []string
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), ".json"); is && strings.HasPrefix(name, prefix) && e.Type().IsRegular() {
			list = append(list, name)
		}
	}
	return list, nil
}

// lastScheduled returns where the last scheduled report ended, in time and in the
// log; zero for none. One that cannot be read counts for nothing.
func lastScheduled(agentDir string) (until time.Time, seq int64, err error) {
	dir := directory(agentDir)
	list, err := names(dir)
	if err != nil {
		return until, 0, err
	}
	for _, name := range list {
		if r, err := read(filepath.Join(dir, name+".json")); err == nil && r.Scheduled && (r.Seq > seq || r.Seq == seq && r.Until.After(until)) {
			until, seq = r.Until, r.Seq
		}
	}
	return until, seq, nil
}

// Erase takes the memories that t names out of an agent's reports, and deletes those
// of days before t's. It returns how many reports it changed or deleted. What else
// of t stands in them is for whoever looks through all files.
func Erase(agentDir string, t *erasure.Target) (n int, err error) {
	dir := directory(agentDir)
	list, err := names(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range list {
		base := filepath.Join(dir, name)
		r, err := read(base + ".json")
		if err != nil { // whatever it says, it cannot be told
			if err := remove(base); err != nil {
				return n, err
			}
			n++
			continue
		}
		if t.Before != nil && r.Until.Before(*t.Before) {
			if err := remove(base); err != nil {
				return n, err
			}
			n++
			continue
		}
		if !r.without(func(id string) bool { return t.Item(id) || t.IsCleaned(id) }) {
			continue
		}
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return n, err
		}
		for file, text := range map[string][]byte{base + ".json": append(text, '\n'), base + ".md": []byte(r.Markdown())} {
			if err := renameio.WriteFile(file, text, 0o600, renameio.WithTempDir(dir)); err != nil {
				return n, memory.Errorf(memory.ErrUnavailable, "write the report anew: %w", err)
			}
		}
		n++
	}
	return n, nil
}

func remove(base string) error {
	for _, file := range []string{base + ".md", base + ".json"} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "delete the report: %w", err)
		}
	}
	return nil
}

// without drops the lines about memories that go, and reports whether there were any.
func (r *Report) without(goes func(id string) bool) bool {
	about := func(l Line) bool { return goes(l.ID) || goes(l.ByID) }
	dropped := false
	for _, list := range []*[]Line{&r.Learned, &r.Superseded, &r.Changed, &r.Merged, &r.Archived, &r.Restored, &r.Quarantined} {
		before := len(*list)
		*list = slices.DeleteFunc(*list, about)
		dropped = dropped || len(*list) < before
	}
	before := len(r.Decide)
	r.Decide = slices.DeleteFunc(r.Decide, func(d Decision) bool { return slices.ContainsFunc(d.About, about) })
	return dropped || len(r.Decide) < before
}
