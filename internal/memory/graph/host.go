package graph

import (
	"os"
	"path/filepath"
	"strings"
)

// Host is what the environment tells about the program around the graph. The
// zero value is none.
type Host struct {
	AgentID  string // ARMARAOS_AGENT_ID
	Home     string // the host's directory, where its agents are
	Bundle   string // AINL_BUNDLE_PATH: the bundle that Boot loads
	Snapshot string // the ArmaraOS snapshot that a store reads, see Options.Snapshot
	DryRun   bool   // AINL_DRY_RUN: nothing is stored
	Limits   Limits
}

// HostFrom reads the contract's environment variables. HOME is where ~ leads.
// Blank values count as unset.
func HostFrom(getenv func(string) string) Host {
	env := func(name string) string { return strings.TrimSpace(getenv(name)) }
	h := Host{
		AgentID: env("ARMARAOS_AGENT_ID"),
		Bundle:  expand(env("AINL_BUNDLE_PATH"), getenv),
		DryRun:  isYes(env("AINL_DRY_RUN")),
		Limits:  LimitsFrom(getenv),
	}
	h.Home = hostHome(env, getenv)
	h.Snapshot = h.snapshotPath(expand(env("AINL_GRAPH_MEMORY_ARMARAOS_EXPORT"), getenv))
	return h
}

// PathVariable is the contract's environment variable for the graph's path.
const PathVariable = "AINL_GRAPH_MEMORY_PATH"

// PathFrom returns the path of the graph that the environment names, and
// whether it names one: AINL_GRAPH_MEMORY_PATH, else the contract's default
// below HOME.
func PathFrom(getenv func(string) string) (path string, named bool) {
	if path := strings.TrimSpace(getenv(PathVariable)); path != "" {
		return expand(path, getenv), true
	}
	return filepath.Join(getenv("HOME"), ".armaraos", "ainl_graph_memory.json"), false
}

func hostHome(env, getenv func(string) string) string {
	for _, name := range []string{"ARMARAOS_HOME", "OPENFANG_HOME"} {
		if dir := env(name); dir != "" {
			return expand(dir, getenv)
		}
	}
	if dir := filepath.Join(getenv("HOME"), ".armaraos"); isDir(dir) {
		return dir
	}
	return filepath.Join(getenv("HOME"), ".openfang")
}

// snapshotPath finds the snapshot: given names a file, or a directory that has
// one file of each agent.
func (h Host) snapshotPath(given string) string {
	switch {
	case given == "" && h.named():
		return filepath.Join(h.Home, "agents", h.AgentID, "ainl_graph_memory_export.json")
	case given == "":
		return ""
	case !isDir(given) && strings.HasSuffix(strings.ToLower(filepath.Base(given)), ".json"):
		return given
	case h.named():
		return filepath.Join(given, h.AgentID+"_graph_export.json")
	}
	return ""
}

// named reports whether the host's agent has a name that is the name of a
// directory, and no way out of one.
func (h Host) named() bool {
	return h.AgentID != "" && h.AgentID != "." && h.AgentID != ".." && !strings.ContainsAny(h.AgentID, `/\`+"\x00")
}

// expand replaces a leading ~ by HOME.
func expand(path string, getenv func(string) string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(getenv("HOME"), path[1:])
	}
	return path
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// isYes reads a switch of the environment.
func isYes(text string) bool {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
