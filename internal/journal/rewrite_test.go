package journal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

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

// TestRewriteOfSomeLines replaces lines that are named, in plain and packed
// segments, and compares with what naming none but choosing the same does.
func TestRewriteOfSomeLines(t *testing.T) {
	ctx, base := context.Background(), t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
		last := int64(0)
		dirs := [2]string{}
		for i := range dirs {
			dir, err := os.MkdirTemp(base, "")
			if err != nil {
				t.Fatal(err)
			}
			dirs[i] = dir
		}
		days := rapid.SliceOfN(rapid.IntRange(1, 900), 1, 4).Draw(t, "days")
		packed := rapid.Bool().Draw(t, "packed")
		for _, dir := range dirs {
			at := now
			j, err := Open(ctx, dir, Options{Log: zerolog.Nop(), Now: func() time.Time { return at }})
			if err != nil {
				t.Fatal(err)
			}
			last = 0
			for _, n := range days {
				var objects [][]byte
				for i := range n {
					objects = append(objects, fmt.Appendf(nil, `{"n":%d,"text":"said %0*d"}`, i, i%300, i))
				}
				if _, err := j.Write(ctx, objects...); err != nil {
					t.Fatal(err)
				}
				last += int64(n)
				at = at.Add(24 * time.Hour)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if packed {
				if _, err := Pack(ctx, dir, at, zerolog.Nop()); err != nil {
					t.Fatal(err)
				}
			}
		}
		seqs := rapid.SliceOfNDistinct(rapid.Int64Range(1, last+3), 0, 8, func(n int64) int64 { return n }).Draw(t, "seqs")
		slices.Sort(seqs)
		edit := func(l Line) ([]byte, error) {
			if !slices.Contains(seqs, l.Seq) {
				return nil, nil
			}
			return []byte(`{"gone":true}`), nil
		}
		asked := 0
		some, err := Rewrite(ctx, dirs[0], zerolog.Nop(), Edits{Seqs: append([]int64{}, seqs...), Line: func(l Line) ([]byte, error) { asked++; return edit(l) }})
		if err != nil {
			t.Fatal(err)
		}
		all, err := Rewrite(ctx, dirs[1], zerolog.Nop(), Edits{Line: edit})
		if err != nil || some.Lines != all.Lines || asked > 2*len(seqs) {
			t.Fatalf("%+v after %d lines, %+v; %v", some, asked, all, err)
		}
		if a, b := linesOf(t, dirs[0]), linesOf(t, dirs[1]); a != b {
			t.Fatalf("%s\n\n%s", a, b)
		}
	})
}

// linesOf returns all lines of a journal, which must be without damage.
func linesOf(t *rapid.T, dir string) string {
	r := NewReader(dir)
	defer r.Close()
	var all bytes.Buffer
	_, damage, err := r.Read(context.Background(), memory.Cursor{}, func(l Line) (bool, error) {
		fmt.Fprintf(&all, "%s %d %s\n", l.File, l.Seq, l.Data)
		return true, nil
	})
	if err != nil || len(damage) > 0 {
		t.Fatalf("%v, %v", damage, err)
	}
	return all.String()
}
