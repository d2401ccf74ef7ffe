package archive

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Echoes returns the ids of the events in which the assistant repeats one of the
// texts, to the letter, in the order of the log for each text. It reads every
// answer there is.
func (s *Store) Echoes(ctx context.Context, texts []string) ([]string, error) {
	seen, ids := map[string]bool{}, []string{}
	err := s.view(ctx, func(tx *sql.Tx) error {
		for _, t := range texts {
			if err := echoesOf(ctx, tx, t, func(id string) {
				if !seen[id] {
					seen[id] = true
					ids = append(ids, id)
				}
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for echoes: %w", err)
	}
	return ids, nil
}

func echoesOf(ctx context.Context, tx *sql.Tx, text string, found func(id string)) error {
	rows, err := tx.QueryContext(ctx, `SELECT event_id FROM episodes WHERE type = ? AND instr(text, ?) > 0 ORDER BY n`, memory.AssistantOutput, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		found(id)
	}
	return rows.Err()
}
