package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// While another process writes into the archive for longer than a recall has, what
// is indexed already is recalled all the same.
func TestRecallBesideALongWrite(t *testing.T) {
	ctx, home := t.Context(), t.TempDir()
	said := filepath.Join(t.TempDir(), "said.jsonl")
	if err := os.WriteFile(said, []byte(`{"n":1,"role":"user","text":"The lighthouse keeper is called Odalys.","time":"2026-03-01T09:00:00Z","session":"s1"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	app := h.app()
	for _, args := range [][]string{{"import", "chat", said}, {"memory", "recall", "lighthouse keeper"}} {
		if status := cli.Run(ctx, app, append(args, "--home", home, "--set", "recall.deadline_ms=2000"), cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: t.Output()}); status != 0 {
			t.Fatalf("%v ended with %d", args, status)
		}
	}
	db, err := sqlite.Open(ctx, filepath.Join(home, "agents", "default", "memory", "archive.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(ctx, func(*sql.Tx) error {
		log, release, err := h.logs.write(ctx, "default")
		if err != nil {
			return err
		}
		defer release()
		if _, err := log.Write(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s2", Text: "It rains."}); err != nil {
			return err
		}
		for i := range 3 {
			if b := h.recalls.Block(context.WithoutCancel(ctx), "default", recall.Request{Text: "Who is the lighthouse keeper?", Session: "s3"}); !strings.Contains(b.Text, "Odalys") {
				return fmt.Errorf("recall %d: %q, degraded %q", i+1, b.Text, b.Degraded)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
}
