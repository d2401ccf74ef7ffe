package graph

import (
	"context"
	"slices"
)

// Erase removes the nodes and edges in which hit finds what is erased, and folds
// the journal, so that nothing of them is left in either file.
func (s *Store) Erase(ctx context.Context, hit func([]byte) bool) (n int, err error) {
	err = s.Update(ctx, Write{}, func(tx *Tx) error {
		n = 0
		for _, node := range slices.Collect(tx.Nodes()) {
			if hit(node.appendJSON(nil)) && tx.RemoveNode(node.ID) {
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
