package working

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Cost is what items have cost: the tokens of the replies that became
// checkpoints. What was paid for replies of no use is in the spend ledger only.
type Cost struct {
	Checkpoints int     `json:"checkpoints"`
	Items       int     `json:"items" jsonschema:"created, replaced or said again"`
	TokensIn    int     `json:"tokens_in"`
	TokensOut   int     `json:"tokens_out"`
	PerItem     float64 `json:"tokens_per_item" jsonschema:"0 where there is no item"`
}

// Cost adds up the checkpoints made in a span of time: from is in it, until is not.
func (s *Store) Cost(ctx context.Context, from, until time.Time) (Cost, error) {
	var c Cost
	err := s.view(ctx, func(tx *sql.Tx) error {
		list, err := checkpoints(ctx, tx, `WHERE at >= ? AND at < ?`, from.UnixMilli(), until.UnixMilli())
		for _, one := range list {
			c.Checkpoints++
			c.Items += len(one.Created) + len(one.Updated) + len(one.Merged)
			c.TokensIn += one.TokensIn
			c.TokensOut += one.TokensOut
		}
		return err
	})
	if err != nil {
		return Cost{}, fmt.Errorf("add up what memories have cost: %w", err)
	}
	if c.Items > 0 {
		c.PerItem = float64(c.TokensIn+c.TokensOut) / float64(c.Items)
	}
	return c, nil
}
