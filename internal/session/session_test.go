package session

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stars hides one word.
type stars struct{}

func (stars) Text(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }

var start = time.Date(2026, 5, 8, 9, 0, 0, 0, time.UTC)

func open(dir string) *Store {
	at := start
	return Open(dir, Options{Agent: "default", Redact: stars{}, Now: func() time.Time { at = at.Add(time.Second); return at }})
}

func TestEnsureCreatesFillsAndKeeps(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "sessions")
	s := open(dir)
	first, err := s.Ensure(ctx, memory.Session{ID: "Chat-1", Channel: "cli"})
	want := memory.Session{ID: "Chat-1", Agent: "default", Channel: "cli", Kind: memory.SessionMain, Started: start.Add(time.Second)}
	if err != nil || first != want {
		t.Fatalf("Ensure = %+v, %v, want %+v", first, err, want)
	}
	second, err := s.Ensure(ctx, memory.Session{ID: "Chat-1", Channel: "http", UserID: "ann hunter2", Zone: "Europe/Lisbon"})
	want.UserID, want.Zone = "ann ***", "Europe/Lisbon"
	if err != nil || second != want {
		t.Fatalf("Ensure again = %+v, %v, want %+v", second, err, want)
	}
	ended, err := s.End(ctx, "Chat-1")
	if err != nil || ended.Ended == nil {
		t.Fatalf("End = %+v, %v", ended, err)
	}
	again, err := open(dir).Get(ctx, "Chat-1")
	if diff := cmp.Diff(ended, again); err != nil || diff != "" {
		t.Fatalf("Get from a second store: %v\n%s", err, diff)
	}
	if taken, err := s.Ensure(ctx, memory.Session{ID: "Chat-1", Channel: "cli"}); err != nil || taken.Ended != nil {
		t.Errorf("an ended session taken up again = %+v, %v", taken, err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "=43hat-1.json"): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %o", path, st, err, mode)
		}
	}
}

func TestEnsureRefuses(t *testing.T) {
	ctx := context.Background()
	valid := memory.Session{ID: "s1", Channel: "cli", UserID: "ann", Zone: "UTC", Kind: memory.SessionMain}
	for name, tc := range map[string]struct {
		edit  func(*memory.Session)
		kind  memory.Kind
		field string
	}{
		"no id":            {func(s *memory.Session) { s.ID = "" }, memory.ErrInvalid, "session"},
		"climbing id":      {func(s *memory.Session) { s.ID = "../x" }, memory.ErrInvalid, "session"},
		"absolute id":      {func(s *memory.Session) { s.ID = "/etc/passwd" }, memory.ErrInvalid, "session"},
		"NUL in id":        {func(s *memory.Session) { s.ID = "a\x00b" }, memory.ErrInvalid, "session"},
		"newline after id": {func(s *memory.Session) { s.ID = "a\n" }, memory.ErrInvalid, "session"},
		"long id":          {func(s *memory.Session) { s.ID = strings.Repeat("a", 129) }, memory.ErrInvalid, "session"},
		"secret id":        {func(s *memory.Session) { s.ID = "hunter2" }, memory.ErrInvalid, "session"},
		"kind":             {func(s *memory.Session) { s.Kind = "both" }, memory.ErrInvalid, "kind"},
		"channel":          {func(s *memory.Session) { s.Channel = "CLI hunter2" }, memory.ErrInvalid, "channel"},
		"zone":             {func(s *memory.Session) { s.Zone = "Mars/Olympus" }, memory.ErrInvalid, "zone"},
		"machine's zone":   {func(s *memory.Session) { s.Zone = "Local" }, memory.ErrInvalid, "zone"},
		"escape in user":   {func(s *memory.Session) { s.UserID = "a\x1b[2J" }, memory.ErrInvalid, "user_id"},
		"another kind":     {func(s *memory.Session) { s.Kind = memory.SessionGroup }, memory.ErrConflict, ""},
		"another user":     {func(s *memory.Session) { s.UserID = "bob" }, memory.ErrConflict, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t.TempDir())
			if _, err := s.Ensure(ctx, valid); err != nil {
				t.Fatal(err)
			}
			bad := valid
			tc.edit(&bad)
			if _, err := s.Ensure(ctx, bad); !errors.Is(err, tc.kind) || memory.FieldOf(err) != tc.field {
				t.Errorf("Ensure = %v (field %q), want %s of field %q", err, memory.FieldOf(err), tc.kind, tc.field)
			}
			if all, err := s.List(ctx, 0); err != nil || len(all) != 1 || all[0].UserID != "ann" {
				t.Errorf("after the refusal List = %+v, %v", all, err)
			}
		})
	}
}

func TestReadsCreateNothing(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "sessions")
	s := open(dir)
	if _, err := s.Get(ctx, "a"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Get = %v", err)
	}
	if _, err := s.End(ctx, "a"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("End = %v", err)
	}
	if kind, err := s.Kind(ctx, "a"); err != nil || kind != memory.SessionMain {
		t.Errorf("Kind = %q, %v", kind, err)
	}
	if all, err := s.List(ctx, 0); err != nil || all == nil || len(all) != 0 {
		t.Errorf("List = %#v, %v", all, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("reading created the directory")
	}
}

func TestKindIsRemembered(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	if _, err := open(dir).Ensure(ctx, memory.Session{ID: "g", Channel: "http", Kind: memory.SessionGroup}); err != nil {
		t.Fatal(err)
	}
	s := open(dir)
	for range 2 {
		if kind, err := s.Kind(ctx, "g"); err != nil || kind != memory.SessionGroup {
			t.Fatalf("Kind = %q, %v", kind, err)
		}
		// The second answer must not need the file.
		if err := os.RemoveAll(filepath.Join(dir, "g.json")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListOrderLimitAndDamage(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := open(dir)
	for _, id := range []string{"a", "b", "c"} {
		if _, err := s.Ensure(ctx, memory.Session{ID: id, Channel: "cli"}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.List(ctx, 2)
	if err != nil || len(all) != 2 || all[0].ID != "c" || all[1].ID != "b" {
		t.Fatalf("List = %+v, %v, want c, b", all, err)
	}
	copied, err := json.Marshal(all[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"a.json": []byte("{"), "copy.json": copied} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	all, err = s.List(ctx, 0)
	if len(all) != 2 || !errors.Is(err, memory.ErrCorrupt) || !errors.Is(err, memory.ErrDenied) {
		t.Errorf("List of a damaged directory = %+v, %v", all, err)
	}
	for _, name := range []string{"a.json", "copy.json", "link.json"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error %q does not name %s", err, name)
		}
	}
}

func TestFileNamesAreApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`)
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		if rapid.Bool().Draw(t, "twins") {
			b = strings.ToUpper(a)
		}
		na, nb := fileName(a), fileName(b)
		if (a == b) != strings.EqualFold(na, nb) {
			t.Fatalf("%q -> %q, %q -> %q", a, na, b, nb)
		}
		if len(na) > 255 || strings.ContainsAny(na, `/\:`) {
			t.Fatalf("%q -> %q is no safe file name", a, na)
		}
	})
}
