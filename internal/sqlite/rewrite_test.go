package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// TestRewriteTakesCopiesFromFreeSpace fills pages in any order, so that SQLite moves
// rows about, and deletes half of them.
func TestRewriteTakesCopiesFromFreeSpace(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "rows.db")
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(ctx, "CREATE TABLE rows (k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT, WITHOUT ROWID"); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	err = db.Update(ctx, func(tx *sql.Tx) error {
		for i := range 3000 {
			word := []string{"albatross", "sparrow"}[i%2]
			if _, err := tx.Exec("INSERT INTO rows VALUES (?, ?)", fmt.Sprint(random.IntN(1000), i), word+strings.Repeat("x", random.IntN(900))); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = db.Exec(ctx, "DELETE FROM rows WHERE v LIKE 'albatross%'")
	}
	if err != nil {
		t.Fatal(err)
	}
	holds := func() int {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(raw, []byte("albatross"))
	}
	if err := db.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if holds() == 0 {
		t.Error("no copy is left in free space: Rewrite would not be needed")
	}
	if err := db.Rewrite(ctx); err != nil {
		t.Fatal(err)
	}
	if n := holds(); n > 0 {
		t.Errorf("%d copies are left", n)
	}
}
