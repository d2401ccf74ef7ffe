package judge_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
)

// TestEveryReplyAtACheckpoint has the model answer a checkpoint in every way of
// the table, and then well: whatever it said first, no event is lost, none is
// distilled twice, nothing is stored that breaks a rule, and no secret of a
// reply reaches the disk.
func TestEveryReplyAtACheckpoint(t *testing.T) {
	for _, b := range judge.Behaviours() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			s := judge.NewServer(t)
			s.RedirectTo("http://192.0.2.1/")
			dir, truth := t.TempDir(), &judge.Truth{}
			brain, err := openBrain(t.Context(), dir, s.URL, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := brain.close(); err != nil {
					t.Error(err)
				}
			})
			for range 2 {
				err := say(t.Context(), brain.log, func(line string) error { ackAll(truth, line); return nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			s.Always(b.Name)
			start := time.Now()
			res, err := brain.checkpoints.Checkpoint(t.Context(), agent, checkpoint.Request{})
			if took := time.Since(start); err != nil || took > 2*patience+5*time.Second {
				t.Fatalf("after %s: %+v, %v", took, res, err)
			}
			h := hold(t, brain)
			turns := truth.Acked()
			switch b.Class {
			case judge.Conforming:
				if len(h.Items) != turns || len(h.Parked) != 0 {
					t.Errorf("%d items of %d turns, parked %v", len(h.Items), turns, h.Parked)
				}
			case judge.NonConforming, judge.Transport:
				if len(h.Items) != 0 || len(h.Parked) == 0 || len(res.Parked) == 0 {
					t.Errorf("%d items, parked %v", len(h.Items), h.Parked)
				}
			case judge.Rejected, judge.Elsewhere:
				if len(h.Items) != 0 || res.Stopped == "" {
					t.Errorf("%d items, %+v", len(h.Items), res)
				}
			}
			if b.Class != judge.Entries {
				if f := truth.Check(h); len(f) != 0 {
					t.Errorf("after the reply:\n%s", f)
				}
			}
			checkItems(t, h.Items)
			s.Always("")
			if res, err := brain.checkpoints.Checkpoint(t.Context(), agent, checkpoint.Request{}); err != nil || len(res.Parked) != 0 || res.BacklogLeft != 0 {
				t.Errorf("with the model back: %+v, %v", res, err)
			}
			h = hold(t, brain)
			if f := truth.Check(h); b.Class != judge.Entries && len(f) != 0 {
				t.Errorf("with the model back:\n%s", f)
			}
			checkItems(t, h.Items)
			checkNoSecret(t, dir)
		})
	}
}

// checkItems holds that what is stored conforms.
func checkItems(t *testing.T, items []memory.Item) {
	t.Helper()
	for _, it := range items {
		if err := it.Validate(); err != nil {
			t.Errorf("%s: %v", it.Handle, err)
		}
		for _, text := range []string{it.Title, it.Content} {
			if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
				t.Errorf("%s has control characters: %q", it.Handle, text)
			}
		}
		if strings.Contains(it.Content, "approved") && it.Status == memory.Active {
			t.Errorf("%s has taken a forged update: %q", it.Handle, it.Content)
		}
	}
}

// checkNoSecret searches every byte of every file.
func checkNoSecret(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(judge.PlantedSecret())) {
			t.Errorf("%s holds the secret of a reply", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRandomReplies lets a memory live with a model that answers at random in
// every way of the table, and then well.
func TestRandomReplies(t *testing.T) {
	s := judge.NewServer(t)
	var names []string
	for _, b := range judge.Behaviours() {
		slow := map[string]bool{"hang": true, "drip": true, "headers-then-hang": true, "continue-forever": true}
		if b.Class != judge.Entries && !slow[b.Name] { // of those, TestEveryReplyAtACheckpoint has one each
			names = append(names, b.Name, "good")
		}
	}
	s.RedirectTo("http://192.0.2.1/")
	s.Mix(11, names...)
	dir, truth := t.TempDir(), &judge.Truth{}
	brain, err := openBrain(t.Context(), dir, s.URL, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if err := say(t.Context(), brain.log, func(line string) error { ackAll(truth, line); return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := brain.checkpoints.Checkpoint(context.Background(), agent, checkpoint.Request{}); err != nil {
			t.Fatal(err)
		}
		if f := truth.Check(hold(t, brain)); len(f) != 0 {
			t.Fatalf("after %d calls:\n%s", len(s.Calls()), f)
		}
	}
	if err := brain.close(); err != nil {
		t.Fatal(err)
	}
	calls := len(s.Calls())
	s.Mix(1, "good")
	drain(t, dir, s.URL, time.Now, truth)
	t.Logf("%d turns, %d calls", truth.Acked(), calls)
}
