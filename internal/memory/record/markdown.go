package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// maxFile bounds a Markdown file that is read.
const maxFile = 16 << 20

// Document is a text to import, and the name that it is known by.
type Document struct {
	Name string `json:"name" jsonschema:"path or name; kept as where the record comes from"`
	Text string `json:"text" jsonschema:"the file's text"`
}

// source is where an imported record comes from, as its payload keeps it.
type source struct {
	System     string  `json:"source_system"`
	Origin     string  `json:"origin_uri"`
	AuthoredBy string  `json:"authored_by"`
	Confidence *string `json:"confidence"` // always null
}

type flags struct {
	Authoritative bool `json:"authoritative"`
	Ephemeral     bool `json:"ephemeral"`
	Curated       bool `json:"curated"`
}

// draft is a record that an importer of Markdown makes. It has no time of
// creation, so that importing it again keeps the first one.
type draft struct {
	Key
	UpdatedAt  string `json:"updated_at"`
	Payload    any    `json:"payload"`
	Provenance source `json:"provenance"`
	Flags      flags  `json:"flags"`
}

// ImportMarkdown imports curated facts and preferences from Markdown files with
// front matter: files by name, and those ending in .md or .markdown of folders
// and all below. Files that do not say that they are such a record are skipped
// and named; if none of them does, the import fails. A path that does not exist
// is ErrNotFound.
func ImportMarkdown(ctx context.Context, s *Store, paths []string) (Imported, error) {
	var docs []Document
	var skipped []Skipped
	for i, p := range paths {
		files, err := markdownFiles(p)
		if errors.Is(err, fs.ErrNotExist) {
			return Imported{}, memory.Errorf(memory.ErrNotFound, "paths[%d]: %s does not exist", i, p)
		}
		if err != nil {
			return Imported{}, memory.Errorf(memory.ErrUnavailable, "paths[%d]: %w", i, err)
		}
		for _, name := range files {
			if ext := strings.ToLower(filepath.Ext(name)); ext != ".md" && ext != ".markdown" {
				skipped = append(skipped, Skipped{name, "the name does not end in .md or .markdown"})
				continue
			}
			text, err := readText(name)
			if err != nil {
				return Imported{}, err
			}
			docs = append(docs, Document{name, text})
		}
	}
	return s.importDocuments(ctx, docs, skipped)
}

// markdownFiles returns a file itself, or the Markdown files of a folder: those
// in .md before those in .markdown, each in the order of their names. Links in
// folders are not followed.
func markdownFiles(name string) ([]string, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return []string{name}, nil
	}
	files := map[string][]string{}
	err = filepath.WalkDir(name, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[filepath.Ext(p)] = append(files[filepath.Ext(p)], p)
		}
		return err
	})
	return append(files[".md"], files[".markdown"]...), err
}

// readText reads a regular file of UTF-8 text with its line ends as line feeds.
func readText(name string) (string, error) {
	st, err := os.Stat(name)
	switch {
	case err != nil:
		return "", memory.Errorf(memory.ErrUnavailable, "read %s: %w", name, err)
	case !st.Mode().IsRegular():
		return "", memory.Errorf(memory.ErrDenied, "read %s: it is not a regular file", name)
	case st.Size() > maxFile:
		return "", memory.Errorf(memory.ErrInvalid, "read %s: it is larger than %d MiB", name, maxFile>>20)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "read %s: %w", name, err)
	}
	if !utf8.Valid(text) {
		return "", memory.Errorf(memory.ErrInvalid, "read %s: it is not UTF-8 text", name)
	}
	return string(text), nil
}

// ImportDocuments is ImportMarkdown for texts that are at hand.
func (s *Store) ImportDocuments(ctx context.Context, docs []Document) (Imported, error) {
	return s.importDocuments(ctx, docs, nil)
}

func (s *Store) importDocuments(ctx context.Context, docs []Document, skipped []Skipped) (Imported, error) {
	var drafts []draft
	at := wholeSecond(s.now())
	for _, doc := range docs {
		d, err := curated(doc, at)
		if err != nil {
			skipped = append(skipped, Skipped{doc.Name, err.Error()})
			continue
		}
		drafts = append(drafts, d)
	}
	if len(drafts) == 0 && len(skipped) > 0 {
		issues := make([]Issue, len(skipped))
		for i, skip := range skipped {
			issues[i] = Issue{IssueError, skip.Name, skip.Reason}
		}
		return Imported{Errors: issues}, nil
	}
	result, err := s.Import(ctx, encoded(drafts))
	result.Skipped = skipped
	return result, err
}

func wholeSecond(now time.Time) string { return formatTime(now.Truncate(time.Second)) }

func encoded(drafts []draft) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for _, d := range drafts {
			raw, err := encode(d)
			if !yield(raw, err) {
				return
			}
		}
	}
}

// curated makes the record that a document with front matter says it is.
func curated(doc Document, at string) (draft, error) {
	matter, body, found := frontMatter(doc.Text)
	if !found {
		return draft{}, fmt.Errorf("it has no front matter between two lines of ---")
	}
	key := Key{matter["ainl_namespace"], matter["ainl_record_kind"], matter["ainl_record_id"]}
	switch {
	case key.Namespace == "" || key.Kind == "" || key.ID == "":
		return draft{}, fmt.Errorf("its front matter lacks ainl_namespace, ainl_record_kind or ainl_record_id")
	case key.Namespace != longTerm || key.Kind != projectFact && key.Kind != userPreference:
		return draft{}, fmt.Errorf("only %s and %s in the namespace %s are imported", projectFact, userPreference, longTerm)
	}
	payload := map[string]string{"text": strings.TrimFunc(body, isSpace)}
	if key.Kind == userPreference {
		if name := firstOf(matter, "preference_key", "key"); name != "" {
			payload["key"] = name
		}
		// An empty value counts under its short name only.
		value, given := matter["value"]
		if long := matter["preference_value"]; long != "" {
			value, given = long, true
		}
		if given {
			payload["value"] = value
		}
	}
	return draft{Key: key, UpdatedAt: at, Payload: payload,
		Provenance: source{System: orElse(matter["ainl_source_system"], "markdown"), Origin: doc.Name, AuthoredBy: orElse(matter["ainl_authored_by"], "human")},
		Flags: flags{Authoritative: truth(matter["ainl_authoritative"], false), Ephemeral: truth(matter["ainl_ephemeral"], false),
			Curated: truth(matter["ainl_curated"], true)}}, nil
}

func firstOf(matter map[string]string, names ...string) string {
	for _, name := range names {
		if matter[name] != "" {
			return matter[name]
		}
	}
	return ""
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// truth reads a flag; what is neither yes nor no is other.
func truth(s string, other bool) bool {
	switch strings.ToLower(s) {
	case "true", "yes", "1":
		return true
	case "false", "no", "0":
		return false
	}
	return other
}

// frontMatter splits a text into the names and values between its first line
// --- and the next one, and what follows. There are no quoting rules; lines
// without a colon are ignored, and of two of one name the later counts. Without
// the closing line there is no front matter.
func frontMatter(text string) (matter map[string]string, body string, found bool) {
	lines := splitLines(text)
	if strings.TrimFunc(lines[0], isSpace) != "---" {
		return nil, "", false
	}
	end := slices.IndexFunc(lines[1:], func(l string) bool { return strings.TrimFunc(l, isSpace) == "---" })
	if end < 0 {
		return nil, "", false
	}
	matter = map[string]string{}
	for _, l := range lines[1 : end+1] {
		if name, value, has := strings.Cut(l, ":"); has {
			matter[strings.TrimFunc(name, isSpace)] = strings.TrimFunc(value, isSpace)
		}
	}
	return matter, strings.Join(lines[end+2:], "\n"), true
}

// splitLines cuts a text at line feeds, alone or after a carriage return, and at
// carriage returns.
func splitLines(text string) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// isSpace is what Python's strip takes off.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
