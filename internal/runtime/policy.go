package runtime

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// policy says which operations a caller may use.
type policy struct {
	caller  string   // as the audit log names it
	allowed []string // names and patterns; nil for all
	group   bool     // others listen: what is remembered of private talks is not to be had
}

// modelPolicy is what a model may use by the configuration. With a workspace, it
// may look things up there.
func modelPolicy(cfg config.Config) policy {
	allowed := append([]string{}, cfg.Runtime.Tools...)
	if cfg.Workspace.Path != "" {
		allowed = append(allowed, "workspace.search", "workspace.get")
	}
	return policy{caller: runlog.CallerModel, allowed: allowed}
}

// refuses returns why the operation is denied; nil where it is allowed. One that
// destroys is denied to all but a model for which the configuration names it in
// full: a person has the command line for it, which asks.
func (p policy) refuses(o op.Op) error {
	named := slices.Contains(p.allowed, o.Name)
	switch {
	case p.group && reflects(o.Name):
		return memory.WithHint(memory.Errorf(memory.ErrDenied, "%s is not allowed in a group session", o.Name),
			"memory holds what was said in private; use a private session, or set recall.private_in_groups")
	case o.Effect == op.Destroy && !named:
		return memory.WithHint(memory.Errorf(memory.ErrDenied, "%s removes what cannot be brought back and is not allowed here", o.Name),
			"openclawssy "+strings.ReplaceAll(o.Name, ".", " "))
	case p.allowed != nil && !named && !slices.ContainsFunc(p.allowed, func(pattern string) bool { return matches(pattern, o.Name) }):
		return memory.Errorf(memory.ErrDenied, "%s is not allowed here", o.Name)
	}
	return nil
}

// matches reports whether a pattern with * and ? stands for a name. A pattern
// that is malformed stands for nothing.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// toolset is what a model may call in a turn.
type toolset struct {
	specs  []llm.ToolSpec // in the order of the operations' names
	byName map[string]op.Op
}

// tools offers the operations that the policy allows. The same Catalog and policy
// give the same specs, to the byte.
func tools(catalog *op.Catalog, p policy) toolset {
	t := toolset{byName: map[string]op.Op{}}
	for _, o := range catalog.All() {
		name := toolName(o.Name)
		if _, taken := t.byName[name]; taken || p.refuses(o) != nil {
			continue
		}
		t.byName[name] = o
		t.specs = append(t.specs, llm.ToolSpec{Name: name, Description: o.Summary, Parameters: o.Input})
	}
	return t
}

// tokens estimates what the specs take in a prompt.
func (t toolset) tokens() int {
	total := 0
	for _, s := range t.specs {
		text, err := json.Marshal(s.Parameters)
		if err == nil { // a schema that cannot be written fails the request, which says so
			total += perMessage + tokens(s.Name) + tokens(s.Description) + tokens(string(text))
		}
	}
	return total
}

// originOf says whose words an operation's result is.
func originOf(operation string) memory.Origin {
	family, _, _ := strings.Cut(operation, ".")
	switch {
	case slices.Contains([]string{"web", "http", "browser", "fetch"}, family):
		return memory.OriginWeb
	case strings.HasPrefix(operation, "agent.message."):
		return memory.OriginAgent
	}
	return memory.OriginTool
}

// reflects reports whether an operation works on memory itself. What it was asked
// and what it answered is no news, and must not be remembered as if it were.
func reflects(operation string) bool {
	family, _, _ := strings.Cut(operation, ".")
	return slices.Contains([]string{"memory", "decision", "record", "graph", "persona", "events", "cron", "workspace", "agent"}, family)
}
