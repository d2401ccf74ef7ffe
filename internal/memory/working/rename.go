package working

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Rename makes the items of the store in a directory another agent's. Nobody may
// have it open. ErrNotFound where there is no store.
func Rename(ctx context.Context, dir string, to memory.AgentID) error {
	path := filepath.Join(dir, fileName)
	if there, err := exists(path); err != nil || !there {
		return errors.Join(err, memory.Errorf(memory.ErrNotFound, "%s does not exist", path))
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	err = db.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE memory_items SET agent_id = ?`, string(to))
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("make working memory that of %s: %w", to, err)
	}
	return nil
}
