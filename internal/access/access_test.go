package access

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

func store(t *testing.T) (*Store, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	return Open(filepath.Join(t.TempDir(), "tokens.json"), func() time.Time { return now }), &now
}

func create(t *testing.T, s *Store, n New) (Token, string) {
	t.Helper()
	tok, text, err := s.Create(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return tok, text
}

func TestATokenIsKnownByItsTextOnly(t *testing.T) {
	s, _ := store(t)
	tok, text := create(t, s, New{Name: "laptop", Agents: []string{"alpha"}, Right: Write})
	got, err := s.Check(text)
	if err != nil || got.ID != tok.ID || got.Name != "laptop" {
		t.Fatalf("Check = %+v, %v", got, err)
	}
	raw, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	if secret := text[strings.LastIndexByte(text, '_')+1:]; strings.Contains(string(raw), secret) {
		t.Error("the file holds the secret")
	}
	for _, wrong := range []string{"", prefix, text[:len(text)-1], text + "x", text + "\x00", strings.ToUpper(text), " " + text, strings.TrimPrefix(text, prefix), hashOf(text), prefix + tok.ID + "_"} {
		if _, err := s.Check(wrong); !errors.Is(err, memory.ErrDenied) {
			t.Errorf("Check(%q) = %v, want denied", wrong, err)
		}
	}
}

func TestRights(t *testing.T) {
	one := Token{Agents: []string{"alpha"}, Right: Write}
	all := Token{Agents: []string{AllAgents}, Right: Read}
	for _, c := range []struct {
		tok   Token
		right Right
		agent memory.AgentID
		want  bool
	}{
		{one, Read, "alpha", true}, {one, Write, "alpha", true}, {one, Admin, "alpha", false}, {one, Read, "beta", false}, {one, Read, "alpha2", false},
		{all, Read, "beta", true}, {all, Write, "beta", false}, {Token{}, Read, "alpha", false}, {one, "", "alpha", false},
	} {
		if got := c.tok.May(c.right, c.agent); got != c.want {
			t.Errorf("%+v may %s of %s: %v", c.tok, c.right, c.agent, got)
		}
		if err := c.tok.Allow(c.right, c.agent); (err == nil) != c.want {
			t.Errorf("%+v allow %s of %s: %v", c.tok, c.right, c.agent, err)
		}
	}
	if Needed(op.Read) != Read || Needed(op.Write) != Write || Needed(op.Destroy) != Admin || Needed("new") != Admin {
		t.Error("an effect asks for the wrong right")
	}
}

func TestRevokedExpiredAndForeignChangesHoldAtOnce(t *testing.T) {
	s, now := store(t)
	other := Open(s.Path(), s.now)
	tok, text := create(t, s, New{Name: "a", Right: Read})
	if _, err := other.Check(text); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Revoke(context.Background(), tok.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Check(text); !errors.Is(err, memory.ErrDenied) {
		t.Errorf("another process still takes a revoked token: %v", err)
	}
	if _, err := s.Revoke(context.Background(), tok.ID); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	end := now.Add(time.Hour)
	_, text = create(t, s, New{Name: "b", Right: Read, Expires: &end})
	if _, err := s.Check(text); err != nil {
		t.Error(err)
	}
	*now = end
	if _, err := s.Check(text); !errors.Is(err, memory.ErrDenied) {
		t.Errorf("an expired token is taken: %v", err)
	}
}

func TestFirst(t *testing.T) {
	s, _ := store(t)
	path := filepath.Join(filepath.Dir(s.Path()), "first.token")
	var made sync.Map
	var all sync.WaitGroup
	for i := range 8 { // several servers start at once
		all.Go(func() {
			did, err := Open(s.Path(), s.now).First(context.Background(), path)
			if err != nil {
				t.Error(err)
			}
			if did {
				made.Store(i, true)
			}
		})
	}
	all.Wait()
	count := 0
	made.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Fatalf("%d first tokens", count)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := s.Check(strings.TrimSpace(string(text)))
	if err != nil || !tok.Anywhere(Admin) {
		t.Errorf("first token: %+v, %v", tok, err)
	}
	for _, name := range []string{path, s.Path()} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if _, err := s.Revoke(context.Background(), tok.ID); err != nil {
		t.Fatal(err)
	}
	if did, err := s.First(context.Background(), path); did || err != nil {
		t.Errorf("made another first token after it was revoked: %v %v", did, err)
	}
}

func TestAFileThatIsOpenOrDamagedIsRefused(t *testing.T) {
	s, _ := store(t)
	_, text := create(t, s, New{Name: "a", Right: Read})
	if err := os.Chmod(s.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	fresh := Open(s.Path(), s.now)
	if _, err := fresh.Check(text); !errors.Is(err, memory.ErrDenied) || memory.HintOf(err) == "" {
		t.Errorf("a file that others can read is used: %v", err)
	}
	if err := os.WriteFile(s.Path(), []byte(`{"version":1,"tokens":[{`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.Path(), s.now).Check(text); !errors.Is(err, memory.ErrCorrupt) {
		t.Errorf("damage: %v", err)
	}
	if made, err := s.First(context.Background(), s.Path()+".first"); made || err == nil {
		t.Errorf("a damaged file was taken for none: %v %v", made, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	s, now := store(t)
	past := now.Add(-time.Second)
	for _, n := range []New{
		{Right: Read}, {Name: "x"}, {Name: "x", Right: "root"}, {Name: strings.Repeat("x", 101), Right: Read},
		{Name: "x", Right: Read, Agents: []string{"../up"}}, {Name: "x", Right: Read, Expires: &past},
	} {
		if _, _, err := s.Create(context.Background(), n); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%+v: %v", n, err)
		}
	}
	if _, err := os.Stat(s.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Error("a refused token made the file")
	}
}

func TestAgent(t *testing.T) {
	for _, c := range []struct {
		agents []string
		named  string
		want   memory.AgentID
	}{{[]string{"alpha"}, "", "alpha"}, {[]string{AllAgents}, "", memory.DefaultAgent}, {[]string{"a", "b"}, "", memory.DefaultAgent}, {[]string{"alpha"}, "beta", "beta"}} {
		if got, err := (Token{Agents: c.agents}).Agent(c.named); got != c.want || err != nil {
			t.Errorf("%v %q: %s %v", c.agents, c.named, got, err)
		}
	}
	if _, err := (Token{}).Agent("../x"); !errors.Is(err, memory.ErrInvalid) {
		t.Error(err)
	}
}

// BenchmarkCheck is the cost that every request pays.
func BenchmarkCheck(b *testing.B) {
	s := Open(filepath.Join(b.TempDir(), "tokens.json"), time.Now)
	_, text, err := s.Create(context.Background(), New{Name: "b", Right: Read})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Check(text); err != nil {
			b.Fatal(err)
		}
	}
}
