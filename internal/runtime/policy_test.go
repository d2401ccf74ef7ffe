package runtime

import (
	"testing"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/op"
)

// TestWorkspaceTools holds that a model may look things up in a workspace only if
// one is configured, and in a group session not at all.
func TestWorkspaceTools(t *testing.T) {
	search, index := op.Op{Name: "workspace.search", Effect: op.Read}, op.Op{Name: "workspace.index", Effect: op.Write}
	var cfg config.Config
	if modelPolicy(cfg).refuses(search) == nil {
		t.Error("without a workspace it may be searched")
	}
	cfg.Workspace.Path = "ws"
	p := modelPolicy(cfg)
	if err := p.refuses(search); err != nil {
		t.Errorf("with a workspace: %v", err)
	}
	if p.refuses(index) == nil {
		t.Error("a model may build indexes")
	}
	p.group = true
	if p.refuses(search) == nil {
		t.Error("a group may search the workspace")
	}
}
