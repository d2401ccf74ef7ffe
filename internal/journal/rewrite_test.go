package journal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// TestRewriteKeepsEverySeq replaces lines while others append, over several days,
// and reads everything back.
func TestRewriteKeepsEverySeq(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var mu sync.Mutex
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	j, err := Open(ctx, dir, Options{Log: zerolog.Nop(), Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	write := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := j.Write(ctx, fmt.Appendf(nil, `{"n":%d,"text":"said %d"}`, i, i)); err != nil {
				t.Error(err)
			}
		}
	}
	write(1, 40)
	mu.Lock()
	now = now.Add(24 * time.Hour)
	mu.Unlock()
	write(40, 80)
	appended := make(chan struct{})
	go func() { defer close(appended); write(80, 160) }()
	edits := Edits{Line: func(l Line) ([]byte, error) {
		if l.Seq%3 != 0 || bytes.Contains(l.Data, []byte("gone")) {
			return nil, nil
		}
		return []byte(`{"gone":true}`), nil
	}}
	for range 5 {
		if _, err := Rewrite(ctx, dir, zerolog.Nop(), edits); err != nil {
			t.Fatal(err)
		}
	}
	<-appended
	if _, err := Rewrite(ctx, dir, zerolog.Nop(), edits); err != nil {
		t.Fatal(err)
	}
	write(160, 170)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(dir)
	defer r.Close()
	next := int64(1)
	_, damage, err := r.Read(ctx, memory.Cursor{}, func(l Line) (bool, error) {
		if l.Seq != next {
			t.Fatalf("seq %d, want %d", l.Seq, next)
		}
		if gone := bytes.Contains(l.Data, []byte(`"gone"`)); gone != (next%3 == 0 && next < 160) {
			t.Fatalf("line %d is %s", next, l.Data)
		}
		next++
		return true, nil
	})
	if err != nil || len(damage) > 0 || next != 170 {
		t.Fatalf("read up to %d, damage %v, %v", next, damage, err)
	}
	if rep, err := r.Verify(ctx, nil); err != nil || !rep.Ok {
		t.Fatalf("%+v, %v", rep, err)
	}
}

func TestRewriteDropsDamageThatIsNamed(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	seg := filepath.Join(dir, "2026-05-08.jsonl")
	good := string(appendSealed(nil, []byte(`{"a":1}`), 1))
	if err := os.WriteFile(seg, []byte(good+"a secret that is no line\nother damage\n"+string(appendSealed(nil, []byte(`{"a":2}`), 2))), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := Rewrite(ctx, dir, zerolog.Nop(), Edits{Line: func(Line) ([]byte, error) { return nil, nil },
		Drop: func(raw []byte) bool { return bytes.Contains(raw, []byte("secret")) }})
	if err != nil || done.Dropped != 25 {
		t.Fatalf("%+v, %v", done, err)
	}
	text, err := os.ReadFile(seg)
	if err != nil || bytes.Contains(text, []byte("secret")) || !bytes.Contains(text, []byte("other damage")) {
		t.Errorf("%s, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, rewritePrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestRewriteOfNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if done, err := Rewrite(context.Background(), dir, zerolog.Nop(), Edits{}); err != nil || done.Lines != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("it made the directory")
	}
}
