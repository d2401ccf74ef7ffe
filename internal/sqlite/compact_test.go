package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func indexed() fstest.MapFS {
	return fstest.MapFS{"0001_a.sql": &fstest.MapFile{Data: []byte(`CREATE TABLE a (x TEXT) STRICT; CREATE VIRTUAL TABLE f USING fts5 (x);`)}}
}

// fill writes rows in transactions of ten, so that the full-text index has many
// segments, and deletes most of them.
func fill(t *testing.T, db *DB) {
	t.Helper()
	ctx := context.Background()
	for i := range 60 {
		err := db.Update(ctx, func(tx *sql.Tx) error {
			for j := range 10 {
				text := fmt.Sprintf("row%d word%d ", i, j) + strings.Repeat(fmt.Sprint("x", i, " "), 300)
				for _, table := range []string{"a", "f"} {
					if _, err := tx.Exec(`INSERT INTO `+table+` (x) VALUES (?)`, text); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Exec(ctx, `DELETE FROM a WHERE rowid % 50 <> 0`); err != nil {
		t.Fatal(err)
	}
}

func fileSize(t *testing.T, db *DB) int64 {
	t.Helper()
	if err := db.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(db.Path())
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

func TestCompactGivesBack(t *testing.T) {
	for name, old := range map[string]bool{"a new database": false, "one that was made before": true} {
		t.Run(name, func(t *testing.T) {
			ctx, path := context.Background(), filepath.Join(t.TempDir(), "a.db")
			if old {
				raw, err := sql.Open("sqlite3", "file:"+path+"?_auto_vacuum=0")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := raw.Exec(`CREATE TABLE older (x)`); err != nil {
					t.Fatal(err)
				}
				if err := raw.Close(); err != nil {
					t.Fatal(err)
				}
			}
			db, err := Open(ctx, path, Options{Migrations: indexed()})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			fill(t, db)
			before := fileSize(t, db)
			// A reader in the middle of a transaction neither waits nor is waited for.
			reading, err := db.Reader().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			count := func() (n int) {
				if err := reading.QueryRow(`SELECT count(*) FROM a`).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			held := count()
			done, err := db.Compact(ctx, "f")
			if err != nil {
				t.Fatal(err)
			}
			if got := count(); got != held {
				t.Errorf("the reader saw %d rows, then %d", held, got)
			}
			if err := reading.Rollback(); err != nil {
				t.Fatal(err)
			}
			if after := fileSize(t, db); after > before*3/4 || done.Freed < before/4 {
				t.Errorf("%d bytes, then %d; %+v", before, after, done)
			}
			if err := db.Check(ctx, true); err != nil {
				t.Error(err)
			}
			size := fileSize(t, db)
			if again, err := db.Compact(ctx, "f"); err != nil || again != (Compacted{}) || fileSize(t, db) != size {
				t.Errorf("again: %+v, %v", again, err)
			}
			if st, err := os.Stat(path + "-wal"); err == nil && st.Size() > 0 {
				t.Errorf("with nothing to do it wrote %d bytes", st.Size())
			}
		})
	}
}
