package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Installation is what OpenClaw's own directory and configuration say. Nothing
// else of the configuration is read.
type Installation struct {
	Dir       string // the state directory: ~/.openclaw
	Workspace string // of the default agent, absolute; the default where none is configured
	Version   string // that last wrote the configuration; "" if it does not tell
	Agent     string // id of the default agent
}

// maxConfig is the size of an openclaw.json above which it is refused.
const maxConfig = 16 << 20

// FindInstallation reads openclaw.json in home, the directory .openclaw of the
// user's home directory, or where OPENCLAW_STATE_DIR and OPENCLAW_CONFIG_PATH
// say. A missing file is no error: the defaults hold then.
func FindInstallation(userHome string, getenv func(string) string) (Installation, error) {
	in := Installation{Dir: filepath.Join(userHome, ".openclaw"), Agent: "main"}
	if dir := getenv("OPENCLAW_STATE_DIR"); dir != "" {
		in.Dir = expand(dir, userHome)
	}
	in.Workspace = filepath.Join(userHome, ".openclaw", "workspace")
	if profile := getenv("OPENCLAW_PROFILE"); profile != "" && profile != "default" && filepath.IsLocal(profile) {
		in.Workspace += "-" + profile
	}
	file := filepath.Join(in.Dir, "openclaw.json")
	if path := getenv("OPENCLAW_CONFIG_PATH"); path != "" {
		file = expand(path, userHome)
	}
	tree, err := readConfig(file)
	if err != nil || tree == nil {
		return in, err
	}
	in.Version, _ = at(tree, "meta", "lastTouchedVersion").(string)
	own := ""
	if agent := defaultAgent(tree); agent != nil {
		if id, isText := agent["id"].(string); isText && id != "" {
			in.Agent = id
		}
		own, _ = agent["workspace"].(string)
	}
	for _, path := range []any{own, at(tree, "agents", "defaults", "workspace"), at(tree, "agent", "workspace")} {
		if text, isText := path.(string); isText && strings.TrimSpace(text) != "" {
			in.Workspace = expand(strings.TrimSpace(text), userHome)
			break
		}
	}
	return in, nil
}

// readConfig reads a JSON5 file; nil where there is none.
func readConfig(file string) (any, error) {
	st, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, memory.Errorf(memory.ErrUnavailable, "read OpenClaw's configuration: %w", err)
	case !st.Mode().IsRegular() || st.Size() > maxConfig:
		return nil, memory.Errorf(memory.ErrInvalid, "%s is no configuration of OpenClaw", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read OpenClaw's configuration: %w", err)
	}
	tree, err := parseJSON5(string(text))
	if err != nil {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s is not JSON5: %w", file, err), "name the workspace with --workspace")
	}
	return tree, nil
}

// defaultAgent returns the agent of the list that is marked as the default, else
// the first; nil where there is no list.
func defaultAgent(tree any) map[string]any {
	list, isList := at(tree, "agents", "list").([]any)
	if !isList {
		return nil
	}
	var first map[string]any
	for _, entry := range list {
		agent, isObject := entry.(map[string]any)
		if !isObject {
			continue
		}
		if agent["default"] == true {
			return agent
		}
		if first == nil {
			first = agent
		}
	}
	return first
}

// at follows names into a tree of objects; nil where one is missing.
func at(tree any, names ...string) any {
	for _, name := range names {
		object, isObject := tree.(map[string]any)
		if !isObject {
			return nil
		}
		tree = object[name]
	}
	return tree
}

// expand resolves a leading ~ and makes a path absolute.
func expand(path, userHome string) string {
	if rest, below := strings.CutPrefix(path, "~"); below && (rest == "" || os.IsPathSeparator(rest[0])) {
		path = filepath.Join(userHome, rest)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return full
}

// Locate returns the directory of the workspace: the one that was named, else
// the configured one, else that of OpenClaw's own configuration, else its
// default. It need not exist.
func Locate(named, configured, userHome string, getenv func(string) string) (string, error) {
	for _, path := range []string{named, configured} {
		if path != "" {
			return expand(path, userHome), nil
		}
	}
	in, err := FindInstallation(userHome, getenv)
	return in.Workspace, err
}
