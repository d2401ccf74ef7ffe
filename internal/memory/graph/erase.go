package graph

import (
	"context"
	"slices"
)

// Erase removes the nodes and edges in which hit finds what is erased, and folds
// the journal, so that nothing of them is left in either file.
func (s *Store) Erase(ctx context.Context, hit func([]byte) bool) (n int, err error) {
	return s.erase(ctx, hit, func(*Node) bool { return true })
}

// EraseTold is Erase of the nodes alone that hooks have written: of tools, messages
// and runs.
func (s *Store) EraseTold(ctx context.Context, hit func([]byte) bool) (n int, err error) {
	return s.erase(ctx, hit, isTold)
}

// isTold reports whether a node is of those that hooks write.
func isTold(n *Node) bool {
	for _, tag := range []string{toolTag, "swarm", "delegation", "compression"} {
		if slices.Contains(n.Tags, tag) {
			return true
		}
	}
	return false
}

// Holds reports whether hit finds something in a node that hooks have written.
func (s *Store) Holds(ctx context.Context, hit func([]byte) bool) (holds bool, err error) {
	err = s.View(ctx, func(v *View) error {
		for n := range v.Nodes() {
			if isTold(n) && hit(n.appendJSON(nil)) {
				holds = true
				return nil
			}
		}
		return nil
	})
	return holds, err
}

func (s *Store) erase(ctx context.Context, hit func([]byte) bool, may func(*Node) bool) (n int, err error) {
	err = s.Update(ctx, Write{}, func(tx *Tx) error {
		n = 0
		for _, node := range slices.Collect(tx.Nodes()) {
			if may(node) && hit(node.appendJSON(nil)) && tx.RemoveNode(node.ID) {
				n++
			}
		}
		for _, edge := range slices.Collect(tx.Edges()) {
			if hit(edge.appendJSON(nil)) && tx.RemoveEdge(edge.ID) {
				n++
			}
		}
		return nil
	})
	if err != nil {
		return n, err
	}
	return n, s.Fold(ctx)
}
