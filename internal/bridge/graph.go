package bridge

import (
	"context"

	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// Graph is the adapter ainl_graph_memory: the contract's verbs, and the dotted
// names that its engine resolves.
func Graph(a *graph.Adapter) Adapter { return graphAdapter{a} }

type graphAdapter struct{ graph *graph.Adapter }

func (g graphAdapter) Call(ctx context.Context, call Call) (any, error) {
	return g.graph.Call(ctx, call.Verb, call.Args, call.Context)
}
