package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Found is the histories of one program that Discover came upon.
type Found struct {
	Tool   Format     `json:"tool" jsonschema:"which program wrote them"`
	Where  string     `json:"where" jsonschema:"the directory, or the file"`
	Files  int        `json:"files" jsonschema:"sessions, or for an export its files"`
	Bytes  int64      `json:"bytes"`
	From   *time.Time `json:"from,omitempty" jsonschema:"time of the first turn, where it is told"`
	To     *time.Time `json:"to,omitempty" jsonschema:"time of the last one"`
	Inputs []Input    `json:"-"`
}

// place is where a program keeps its histories.
type place struct {
	tool Format
	env  string // the variable that moves dir
	dir  string // below the home directory
	sub  []string
}

// places are as the programs have them: OpenClaw (docs/concepts/session.md:
// OPENCLAW_STATE_DIR), Claude Code (settings: CLAUDE_CONFIG_DIR), Codex
// (docs/config.md: CODEX_HOME).
var places = []place{
	{OpenClaw, "OPENCLAW_STATE_DIR", ".openclaw", []string{"agents/*/sessions/*.jsonl", "agents/*/sessions/*.jsonl.reset.*"}},
	{ClaudeCode, "CLAUDE_CONFIG_DIR", ".claude", []string{"projects/*/*.jsonl", "projects/*/*/subagents/*.jsonl"}},
	{Codex, "CODEX_HOME", ".codex", []string{"sessions/*/*/*/rollout-*.jsonl", "sessions/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"}},
}

// downloads are where exports of ChatGPT and Claude are looked for.
var downloads = []string{"Downloads/*.zip", "Downloads/conversations*.json", "Downloads/*/conversations*.json", "Desktop/*.zip", "Documents/*.zip"}

// Discover looks for histories where programs keep them under a person's home
// directory. getenv returns the variables that move such places; "" for none. What
// cannot be read, or is no history by its content, is passed over.
func Discover(ctx context.Context, home string, getenv func(string) string) ([]Found, error) {
	var all []Found
	for _, p := range places {
		dir := getenv(p.env)
		if dir == "" {
			dir = filepath.Join(home, p.dir)
		}
		f := Found{Tool: p.tool, Where: dir}
		for _, pattern := range p.sub {
			names, err := filepath.Glob(filepath.Join(escapeGlob(dir), filepath.FromSlash(pattern)))
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				f.add(name)
			}
		}
		if f.Files > 0 {
			all = append(all, f)
		}
	}
	for _, pattern := range downloads {
		names, err := filepath.Glob(filepath.Join(escapeGlob(home), filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if f, ok := export(name); ok {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// escapeGlob makes a pattern that stands for a path alone.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// add takes a session into f, if it is one of the tool's.
func (f *Found) add(name string) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return
	}
	beginning, err := ends(name, peekBytes, 0)
	if err != nil {
		return
	}
	if tool, err := detect(beginning); err != nil || tool != f.Tool {
		return
	}
	inputs, err := fileInputs(name, info, f.Tool)
	if err != nil {
		return
	}
	f.Files++
	f.Bytes += info.Size()
	f.Inputs = append(f.Inputs, inputs...)
	f.span(beginning)
	if end, err := ends(name, 0, peekBytes); err == nil {
		f.span(end)
	}
}

// span widens the time of f by the lines of a part of a session.
func (f *Found) span(part []byte) {
	for line := range bytes.SplitSeq(part, []byte("\n")) {
		var l struct {
			Timestamp json.RawMessage `json:"timestamp"`
		}
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		at, err := openClawTime(l.Timestamp)
		if err != nil || at.IsZero() {
			continue
		}
		if f.From == nil || at.Before(*f.From) {
			f.From = &at
		}
		if f.To == nil || at.After(*f.To) {
			f.To = &at
		}
	}
}

// export looks whether a file is an export of ChatGPT or Claude.
func export(name string) (Found, bool) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return Found{}, false
	}
	inputs, err := fileInputs(name, info, "")
	if err != nil || len(inputs) == 0 {
		return Found{}, false
	}
	tool, err := inputs[0].format()
	if err != nil || !slices.Contains([]Format{ChatGPT, Claude}, tool) {
		return Found{}, false
	}
	return Found{Tool: tool, Where: name, Files: len(inputs), Bytes: info.Size(), Inputs: inputs}, true
}

// format finds out the form of an input.
func (in Input) format() (f Format, err error) {
	r, err := in.Open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	beginning := make([]byte, peekBytes)
	n, err := io.ReadFull(r, beginning)
	if n == 0 {
		return "", errors.Join(fs.ErrInvalid, err)
	}
	return detect(beginning[:n])
}
