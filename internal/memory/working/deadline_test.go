package working

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// TestDeadlineIsNoDamage: a question whose time is up between two rows says nothing of
// the database, which must not be rebuilt for it.
func TestDeadlineIsNoDamage(t *testing.T) {
	s := open(t, t.TempDir(), &memLog{})
	for n := range 3 {
		if _, err := s.write(context.Background(), WriteRequest{Title: fmt.Sprint("tea ", n), Content: fmt.Sprintf("Tea number %d is green.", n)}, "write", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT "+itemColumns+", sum FROM memory_items")
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			return errors.New("there is no row")
		}
		cancel()
		for { // the rows are closed beside this
			if _, _, err := scanRow(rows.Scan); err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, memory.ErrCorrupt) || s.Damaged() {
		t.Errorf("cut off between two rows: %v, damaged: %t", err, s.Damaged())
	}
	if _, err := os.Lstat(filepath.Join(s.dir, suspectName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the database is to be rebuilt: %v", err)
	}
	if err := s.noticed(errors.Join(context.DeadlineExceeded, damaged("a row"))); s.Damaged() {
		t.Errorf("what was cut off counts as damaged: %v", err)
	}
	if err := s.noticed(damaged("a row")); !s.Damaged() {
		t.Errorf("damage is not noticed: %v", err)
	}
}
