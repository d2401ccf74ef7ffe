package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func migrations(n int) fstest.MapFS {
	all := []string{"CREATE TABLE a (x INTEGER) STRICT;", "ALTER TABLE a ADD COLUMN y TEXT;"}
	m := fstest.MapFS{}
	for i := range n {
		m[[]string{"0001_a.sql", "0002_b.sql"}[i]] = &fstest.MapFile{Data: []byte(all[i])}
	}
	return m
}

func TestOpenMigratesAndRefusesNewer(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "a?b#c%20&_pragma=x.db")
	for n := 1; n <= 2; n++ {
		db, err := Open(ctx, path, Options{Migrations: migrations(n)})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("database file: %v %v, want mode 0600 under its own name", st, err)
	}
	if _, err := Open(ctx, path, Options{Migrations: migrations(1)}); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("opening a newer file: %v, want a conflict", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	target := filepath.Join(dir, "target.db")
	if err := os.WriteFile(target, []byte("this is no database, however long it may go on: it is text of many words, and more than one hundred bytes."), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]memory.Kind{link: memory.ErrDenied, target: memory.ErrCorrupt, dir: memory.ErrDenied} {
		if _, err := Open(ctx, path, Options{Migrations: migrations(1)}); !errors.Is(err, want) {
			t.Errorf("Open(%s) = %v, want %v", filepath.Base(path), err, want)
		}
	}
	if _, err := Open(ctx, filepath.Join(dir, "none.db"), Options{ReadOnly: true}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("opening a missing file for reading: %v", err)
	}
}

func TestUpdateRollsBackAndReadersCannotWrite(t *testing.T) {
	ctx := context.Background()
	db, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), Options{Migrations: migrations(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	boom := errors.New("boom")
	err = db.Update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.Exec("INSERT INTO a VALUES (1)"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("Update = %v", err)
	}
	if err := db.Update(ctx, func(tx *sql.Tx) error { _, err := tx.Exec("INSERT INTO a VALUES (2)"); return err }); err != nil {
		t.Fatal(err)
	}
	var sum int
	if err := db.Reader().QueryRow("SELECT sum(x) FROM a").Scan(&sum); err != nil || sum != 2 {
		t.Errorf("sum = %d, %v, want 2", sum, err)
	}
	if _, err := db.Reader().Exec("INSERT INTO a VALUES (3)"); err == nil {
		t.Error("a reader could write")
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
	c, err := Open(ctx, copied, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Check(ctx, true); err != nil {
		t.Error(err)
	}
	if err := c.Reader().QueryRow("SELECT sum(x) FROM a").Scan(&sum); err != nil || sum != 2 {
		t.Errorf("sum in the backup = %d, %v, want 2", sum, err)
	}
}

// TestReadOnlyDisk reads a closed database on a disk that cannot be written.
func TestReadOnlyDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: mounting a file system needs root")
	}
	ctx, dir := context.Background(), t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no tmpfs here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	path := filepath.Join(dir, "x.db")
	db, err := Open(ctx, path, Options{Migrations: migrations(1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(ctx, func(tx *sql.Tx) error { _, err := tx.Exec("INSERT INTO a VALUES (7)"); return err }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "remount,ro", dir).CombinedOutput(); err != nil {
		t.Fatalf("remount: %v %s", err, out)
	}
	if _, err := Open(ctx, path, Options{Migrations: migrations(1)}); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("opening for writing on a read-only disk: %v, want unavailable", err)
	}
	db, err = Open(ctx, path, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var x int
	if err := db.Reader().QueryRow("SELECT x FROM a").Scan(&x); err != nil || x != 7 {
		t.Errorf("x = %d, %v", x, err)
	}
}

// TestBackupUnderLoad copies a database to which another connection writes without
// pause: the copy ends, and holds one moment of it.
func TestBackupUnderLoad(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "x.db")
	db, err := Open(ctx, path, Options{Migrations: migrations(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// Two rows a transaction: a copy of two moments would hold an odd number.
	write := func(n int) error {
		return db.Update(ctx, func(tx *sql.Tx) error {
			for range 2 {
				if _, err := tx.Exec("INSERT INTO a VALUES (?)", n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for n := range 2000 {
		if err := write(n); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				if err := write(n); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for round := range 5 {
		source, err := Open(ctx, path, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, fmt.Sprint("copy", round))
		if err := errors.Join(source.Backup(ctx, copied), source.Close()); err != nil {
			t.Fatal(err)
		}
		c, err := Open(ctx, copied, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		var rows int
		err = c.Reader().QueryRow("SELECT count(*) FROM a").Scan(&rows)
		if err = errors.Join(err, c.Check(ctx, true), c.Close()); err != nil || rows < 4000 || rows%2 != 0 {
			t.Errorf("copy %d: %d rows, %v", round, rows, err)
		}
	}
	close(stop)
	writer.Wait()
}

// TestStoppedWorkSaysSo ends the context of a transaction at each of its points:
// the answer is that of a context, whichever statement finds it rolled back.
func TestStoppedWorkSaysSo(t *testing.T) {
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Options{Migrations: migrations(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 50 {
		for name, run := range map[string]func(context.Context, func(*sql.Tx) error) error{"update": db.Update, "view": db.View} {
			ctx, stop := context.WithCancel(t.Context())
			err := run(ctx, func(tx *sql.Tx) error {
				stop()
				for {
					// Without the context: what is met is the transaction that it ended.
					if err := tx.QueryRow("SELECT count(*) FROM a").Scan(new(int)); err != nil {
						return err
					}
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v, want that it was stopped", name, err)
			}
		}
	}
	if err := db.Update(t.Context(), func(tx *sql.Tx) error { return tx.Rollback() }); errors.Is(err, context.Canceled) || !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("rolled back by its own work: %v", err)
	}
}

// Whoever reads rows takes what it cannot read for damage. Where its time has run
// out meanwhile, it is none.
func TestWorkThatWasStoppedIsNoDamage(t *testing.T) {
	db, err := Open(context.Background(), filepath.Join(t.TempDir(), "a.db"), Options{Migrations: migrations(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, do := range map[string]func(context.Context, func(*sql.Tx) error) error{"view": db.View, "update": db.Update} {
		ctx, cancel := context.WithCancel(context.Background())
		err := do(ctx, func(*sql.Tx) error {
			cancel()
			return memory.Errorf(memory.ErrCorrupt, "read a row: %w", ctx.Err())
		})
		if errors.Is(err, memory.ErrCorrupt) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s that was stopped: %v", name, err)
		}
		err = do(context.Background(), func(*sql.Tx) error { return memory.Errorf(memory.ErrCorrupt, "read a row: a bit has changed") })
		if !errors.Is(err, memory.ErrCorrupt) {
			t.Errorf("%s of damage: %v", name, err)
		}
	}
}

// What is erased must leave the write-ahead log, so a reader is waited for, longer
// than for any other lock.
func TestFoldWaitsForReaders(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "a.db")
	db, err := Open(ctx, path, Options{Migrations: migrations(1), Busy: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	write := func() {
		if err := db.Update(ctx, func(tx *sql.Tx) error { _, err := tx.Exec("INSERT INTO a VALUES (1)"); return err }); err != nil {
			t.Fatal(err)
		}
	}
	write()
	reading, goOn, read := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		read <- db.View(ctx, func(tx *sql.Tx) error {
			var n int
			err := tx.QueryRow("SELECT count(*) FROM a").Scan(&n)
			close(reading)
			<-goOn
			return err
		})
	}()
	<-reading
	write()
	folded := make(chan error)
	go func() { folded <- db.Fold(ctx) }()
	select {
	case err := <-folded:
		t.Errorf("it was folded under a reader: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	if err := errors.Join(<-read, <-folded); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(path + "-wal"); err != nil || st.Size() != 0 {
		t.Errorf("the write-ahead log: %+v, %v", st, err)
	}
}

// While Fold waits for a reader, whoever writes gets in between its tries.
func TestFoldLetsWritersIn(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "a.db")
	db, err := Open(ctx, path, Options{Migrations: migrations(1), Busy: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other, err := Open(ctx, path, Options{Migrations: migrations(1), Busy: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	write := func() error {
		return other.Update(ctx, func(tx *sql.Tx) error { _, err := tx.Exec("INSERT INTO a VALUES (1)"); return err })
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	reading, err := other.Reader().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reading.QueryRow("SELECT count(*) FROM a").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil { // so that what the reader sees is not the end of the log
		t.Fatal(err)
	}
	folded := make(chan error)
	go func() { folded <- db.Fold(ctx) }()
	for range 20 {
		if err := write(); err != nil {
			t.Errorf("a change while the log is to be folded: %v", err)
			break
		}
	}
	if err := errors.Join(reading.Rollback(), <-folded); err != nil {
		t.Error(err)
	}
}

// A change waits for another one as long as its context is patient, and says so; when
// it gives up, the error says for how long it has waited.
// A change waits for another one as long as its context is patient, and says so; when
// it gives up, the error says for how long it has waited.
func TestPatience(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "a.db")
	open := func() *DB {
		db, err := Open(ctx, path, Options{Migrations: migrations(1), Busy: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return db
	}
	one, two := open(), open()
	insert := func(tx *sql.Tx) error { _, err := tx.Exec("INSERT INTO a VALUES (1)"); return err }
	heard := 0
	err := one.Update(ctx, func(tx *sql.Tx) error {
		err := two.Update(ctx, insert)
		if !errors.Is(err, memory.ErrUnavailable) || memory.HintOf(err) == "" || strings.Count(err.Error(), "locked by another process") != 1 {
			t.Errorf("without patience: %v, %q", err, memory.HintOf(err))
		}
		err = two.Update(Patient(ctx, 20*time.Millisecond, func(time.Duration) { heard++ }), insert)
		if !errors.Is(err, memory.ErrUnavailable) || heard == 0 {
			t.Errorf("with some patience, told %d times: %v", heard, err)
		}
		stopped, stop := context.WithCancel(ctx)
		err = two.Update(Patient(stopped, time.Hour, func(time.Duration) { stop() }), insert)
		if !errors.Is(err, context.Canceled) || errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("stopped while it waited: %v", err)
		}
		return insert(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	holding, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- one.Update(ctx, func(tx *sql.Tx) error { close(holding); <-goOn; return insert(tx) })
	}()
	<-holding
	free := sync.OnceFunc(func() { close(goOn) })
	if err := two.Update(Patient(ctx, time.Hour, func(time.Duration) { free() }), insert); err != nil {
		t.Errorf("with much patience: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
