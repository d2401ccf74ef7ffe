package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// testHouse is a house over a home of its own, set up as by a command's flags.
func testHouse(t *testing.T, home string) *house {
	t.Helper()
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	h.app()
	if err := h.setup(cli.Options{Home: home, Agent: "default"}); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestDamageInALongLivedProcess overwrites the database while it is open: the
// process goes on with one that is rebuilt from the log, without being restarted.
func TestDamageInALongLivedProcess(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	write := func(h *house, content string) error {
		s, release, err := h.items.write(ctx, "default")
		if err != nil {
			return err
		}
		defer release()
		_, err = working.NewService(h.items.read, h.items.write, episodesOf{h}).Write(ctx, "default", working.WriteRequest{Title: content, Content: content})
		if err != nil {
			return err
		}
		_, err = s.List(ctx, working.ListRequest{})
		return err
	}
	first := testHouse(t, home)
	for _, content := range []string{"The user likes green tea.", "The attic has two windows."} {
		if err := write(first, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.close(); err != nil { // folds the write-ahead log into the file
		t.Fatal(err)
	}
	h := testHouse(t, home)
	defer func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}()
	list := func() (working.ListResult, error) {
		s, release, err := h.items.read(ctx, "default")
		if err != nil {
			return working.ListResult{}, err
		}
		defer release()
		return s.List(ctx, working.ListRequest{})
	}
	if _, release, err := h.items.read(ctx, "default"); err != nil { // open, and nothing read yet
		t.Fatal(err)
	} else {
		release()
	}
	path := filepath.Join(home, "agents", "default", "memory", "memory.db")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const header = 4096 // left as it is, so that the file still looks like a database
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, int(st.Size())-header), header); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := list(); memory.KindOf(err) != memory.ErrCorrupt {
		t.Fatalf("the damage was not noticed: %v", err)
	}
	res, err := list()
	if err != nil || len(res.Items) != 2 {
		t.Fatalf("%d items after the damage, %v", len(res.Items), err)
	}
	if err := write(h, "It goes on."); err != nil {
		t.Fatal(err)
	}
	if aside, err := filepath.Glob(path + ".corrupt-*"); err != nil || len(aside) == 0 {
		t.Errorf("no damaged file was set aside: %v", err)
	}
}
