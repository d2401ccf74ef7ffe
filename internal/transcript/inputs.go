package transcript

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

var (
	exportName  = regexp.MustCompile(`^conversations(-\d+)?\.json$`)
	historyName = regexp.MustCompile(`\.jsonl(\.reset\..*)?$`)
)

// Inputs returns the histories at a path: a file, an export as a zip archive, or
// a directory with all below it that are histories by name and content, sorted.
// In a directory links are not followed. A path without any is ErrInvalid.
func Inputs(name string, format Format) ([]Input, error) {
	info, err := os.Stat(name)
	if err != nil {
		kind := memory.ErrUnavailable
		if errors.Is(err, fs.ErrNotExist) {
			kind = memory.ErrNotFound
		}
		return nil, memory.WithHint(memory.Errorf(kind, "%w", err), "- reads standard input")
	}
	if !info.IsDir() {
		return fileInputs(name, info, format)
	}
	var found []Input
	err = filepath.WalkDir(name, func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		base := e.Name()
		if !historyName.MatchString(base) && !exportName.MatchString(base) && !strings.HasSuffix(base, ".zip") {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if strings.HasSuffix(base, ".zip") {
			inputs, err := fileInputs(at, info, format)
			if err == nil { // an archive of something else is no history
				found = append(found, inputs...)
			}
			return nil
		}
		if format == "" {
			if f, err := peek(at); err != nil || f == "" {
				return err
			}
		}
		inputs, err := fileInputs(at, info, format)
		found = append(found, inputs...)
		return err
	})
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "look for histories: %w", err)
	}
	Order(found)
	if len(found) == 0 {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "there is no chat history in %s", name), formsHint)
	}
	return found, nil
}

// Order sorts histories by the time at which they begin, as far as they tell, so
// that what was said later comes later.
func Order(list []Input) {
	slices.SortStableFunc(list, func(a, b Input) int { return a.begun.Compare(b.begun) })
}

// peek finds out the format of a file.
func peek(name string) (Format, error) {
	beginning, err := ends(name, peekBytes, 0)
	if err != nil || len(strings.TrimSpace(string(beginning))) == 0 {
		return "", err
	}
	return detect(beginning)
}

// ends returns up to first bytes of a file's beginning, or else last of its end.
func ends(name string, first, last int64) (part []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if last > 0 {
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, err
		}
		if _, err := f.Seek(max(0, size-last), io.SeekStart); err != nil {
			return nil, err
		}
		first = last
	}
	return io.ReadAll(io.LimitReader(f, first))
}

// fileInputs returns the histories of one file.
func fileInputs(name string, info fs.FileInfo, format Format) ([]Input, error) {
	if !info.Mode().IsRegular() {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s is not a regular file", name), "to read from a pipe, use - and standard input")
	}
	magic, err := ends(name, 4, 0)
	if err != nil {
		return nil, err
	}
	if string(magic) == "PK\x03\x04" {
		return zipInputs(name, format)
	}
	beginning, err := ends(name, peekBytes, 0)
	if err != nil {
		return nil, err
	}
	var begun Found
	begun.span(beginning)
	in := Input{Name: name, Size: info.Size(), Source: Source{Format: format}, Open: func() (io.ReadCloser, error) {
		f, err := os.Open(name)
		if err != nil {
			return nil, memory.Errorf(memory.ErrUnavailable, "%w", err)
		}
		return f, nil
	}}
	if begun.From != nil {
		in.begun = *begun.From
	}
	if format == OpenClaw || format == "" && filepath.Base(filepath.Dir(name)) == "sessions" {
		in.Source = besides(name, in.Source)
	}
	return []Input{in}, nil
}

// zipInputs returns the conversations of an export's archive.
func zipInputs(name string, format Format) (found []Input, err error) {
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "%s is not a whole zip archive: %w", name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, f := range r.File {
		if exportName.MatchString(path.Base(f.Name)) && f.Mode().IsRegular() {
			member := f.Name
			found = append(found, Input{Name: name + ":" + member, Size: int64(f.UncompressedSize64), Source: Source{Format: format}, Open: func() (io.ReadCloser, error) { return openMember(name, member) }})
		}
	}
	if len(found) == 0 {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "there is no conversations.json in %s", name), "an export of ChatGPT or Claude has one")
	}
	slices.SortFunc(found, func(a, b Input) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// member is an open file of an archive.
type member struct {
	io.ReadCloser
	archive io.Closer
}

func (m member) Close() error { return errors.Join(m.ReadCloser.Close(), m.archive.Close()) }

func openMember(archive, name string) (io.ReadCloser, error) {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "%s is not a whole zip archive: %w", archive, err)
	}
	f, err := r.Open(name)
	if err != nil {
		return nil, errors.Join(memory.Errorf(memory.ErrInvalid, "%s: %w", archive, err), r.Close())
	}
	return member{f, r}, nil
}

// openClawEntry is what the sessions.json beside OpenClaw's sessions says of one.
type openClawEntry struct {
	SessionID string `json:"sessionId"`
	Channel   string `json:"channel"`
	Last      string `json:"lastChannel"`
	ChatType  string `json:"chatType"`
	SpawnedBy string `json:"spawnedBy"`
}

// besides adds to s what OpenClaw's index says of the session in a file: where it
// was held, and whether a person, a schedule or another agent spoke. Its keys are
// such as agent:main:telegram:group:-100 and agent:main:subagent:<id>. Without a
// readable index, or an entry, s stays as it is.
func besides(file string, s Source) Source {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "sessions.json"))
	if err != nil {
		return s
	}
	var index map[string]json.RawMessage
	if json.Unmarshal(raw, &index) != nil {
		return s
	}
	id, _, _ := strings.Cut(filepath.Base(file), ".jsonl")
	for key, raw := range index {
		var e openClawEntry
		if json.Unmarshal(raw, &e) != nil || e.SessionID == "" || e.SessionID != id && !strings.HasPrefix(id, e.SessionID+"-topic-") {
			continue
		}
		s.Channel = e.Channel
		if s.Channel == "" {
			s.Channel = e.Last
		}
		parts := strings.Split(key, ":")
		s.Group = e.ChatType == "group" || e.ChatType == "channel" || slices.Contains(parts, "group") || slices.Contains(parts, "channel")
		s.ByAgent = e.SpawnedBy != "" || slices.Contains(parts, "subagent") || slices.Contains(parts, "cron") || slices.Contains(parts, "acp")
		return s
	}
	return s
}
