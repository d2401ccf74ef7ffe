package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// prefix begins every token, so that secret scanners know one when they see it.
const prefix = "ocsy_"

// maxTokens bounds the file.
const maxTokens = 1000

// entry is a line of the file.
type entry struct {
	Token
	Hash string `json:"sha256"` // of the whole token text, hex
}

type document struct {
	Version int     `json:"version"` // 1
	Tokens  []entry `json:"tokens"`
}

// Store is the file of tokens. It is safe for concurrent use, by several
// processes too: what another one made or revoked holds at the next request.
type Store struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	seen os.FileInfo // of the file as it was read
	held map[string]entry
}

// Open returns the store of the file at path. It reads and makes nothing yet.
func Open(path string, now func() time.Time) *Store { return &Store{path: path, now: now} }

// Path returns where the file is.
func (s *Store) Path() string { return s.path }

// Check returns the token that text is. ErrDenied, in the same words whatever is
// wrong with it, where it is none, was revoked or has expired. What it takes does
// not depend on how much of a secret is right.
func (s *Store) Check(text string) (Token, error) {
	held, err := s.load()
	if err != nil {
		return Token{}, err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(text, prefix), "_")
	have, known := held[id]
	hash := []byte(hashOf(text))
	want := []byte(have.Hash)
	if !known {
		want = make([]byte, len(hash)) // compare with something all the same
	}
	same := subtle.ConstantTimeCompare(hash, want) == 1
	if !known || !same || have.Expires != nil && !s.now().Before(*have.Expires) {
		return Token{}, memory.WithHint(memory.Errorf(memory.ErrDenied, "the token is not known, or no longer valid"), "openclawssy token create --name NAME makes one")
	}
	return have.Token, nil
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// List returns the tokens in the order in which they were made; expired ones too.
func (s *Store) List() ([]Token, error) {
	doc, err := s.read()
	if err != nil {
		return nil, err
	}
	list := make([]Token, len(doc.Tokens))
	for i, e := range doc.Tokens {
		list[i] = e.Token
	}
	return list, nil
}

// New is a token to make.
type New struct {
	Name    string
	Agents  []string // empty: all
	Right   Right
	Expires *time.Time // nil: never
}

// Create makes a token and returns its text, which cannot be had again. The
// directory of the file must exist.
func (s *Store) Create(ctx context.Context, n New) (t Token, text string, err error) {
	if t, err = s.checked(n); err != nil {
		return Token{}, "", err
	}
	err = s.change(ctx, func(doc *document) error {
		if len(doc.Tokens) >= maxTokens {
			return memory.WithHint(memory.Errorf(memory.ErrConflict, "there are %d tokens already", maxTokens), "revoke those that nobody uses: openclawssy token list")
		}
		text = secret(t.ID)
		doc.Tokens = append(doc.Tokens, entry{Token: t, Hash: hashOf(text)})
		return nil
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, text, nil
}

// checked returns the token that n asks for, with a fresh id.
func (s *Store) checked(n New) (Token, error) {
	t := Token{ID: strings.ToLower(rand.Text()[:10]), Name: strings.TrimSpace(n.Name), Agents: n.Agents, Right: n.Right, Created: s.now().UTC().Truncate(time.Second), Expires: n.Expires}
	if len(t.Agents) == 0 {
		t.Agents = []string{AllAgents}
	}
	switch {
	case t.Name == "" || len(t.Name) > 100:
		return t, &memory.FieldError{Field: "name", Reason: "must have 1 to 100 characters", Hint: "say whose token it is, such as --name laptop"}
	case rank[t.Right] == 0:
		return t, &memory.FieldError{Field: "right", Reason: "must be read, write or admin"}
	case t.Expires != nil && !t.Expires.After(s.now()):
		return t, &memory.FieldError{Field: "expires", Reason: "must be in the future"}
	case slices.Contains(t.Agents, AllAgents):
		t.Agents = []string{AllAgents}
		return t, nil
	}
	for _, name := range t.Agents {
		if _, err := memory.ParseAgentID(name); err != nil {
			return t, err
		}
	}
	return t, nil
}

// secret makes the text of a token.
func secret(id string) string {
	var raw [32]byte
	rand.Read(raw[:]) // never fails: it ends the program instead
	return prefix + id + "_" + base64.RawURLEncoding.EncodeToString(raw[:])
}

// Revoke takes a token back, by its id. Requests under way end as they are.
func (s *Store) Revoke(ctx context.Context, id string) (Token, error) {
	var gone Token
	err := s.change(ctx, func(doc *document) error {
		at := slices.IndexFunc(doc.Tokens, func(e entry) bool { return e.ID == id })
		if at < 0 {
			return memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no token %q", id), "openclawssy token list shows the ids")
		}
		gone = doc.Tokens[at].Token
		doc.Tokens = slices.Delete(doc.Tokens, at, at+1)
		return nil
	})
	return gone, err
}

// First makes a token that may everything, and writes its text to the file at
// path (0600), unless there are tokens or were some: then path is as it was and
// made is false.
func (s *Store) First(ctx context.Context, path string) (made bool, err error) {
	if _, err := os.Stat(s.path); err == nil {
		_, err := s.read() // a damaged file must not look like none
		return false, err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, memory.Errorf(memory.ErrUnavailable, "look for the tokens: %w", err)
	}
	t, err := s.checked(New{Name: "first", Right: Admin})
	if err != nil {
		return false, err
	}
	err = s.change(ctx, func(doc *document) error {
		if len(doc.Tokens) > 0 {
			return nil // another process was faster
		}
		text := secret(t.ID)
		if err := renameio.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			return memory.Errorf(memory.ErrUnavailable, "write the first token: %w", err)
		}
		doc.Tokens, made = append(doc.Tokens, entry{Token: t, Hash: hashOf(text)}), true
		return nil
	})
	return made, err
}

// change reads the file, lets fn edit it and writes it whole, alone among all
// processes.
func (s *Store) change(ctx context.Context, fn func(*document) error) error {
	lock := flock.New(s.path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "lock the tokens: %w", err)
	}
	err := s.edit(fn)
	return errors.Join(err, lock.Unlock())
}

func (s *Store) edit(fn func(*document) error) error {
	doc, err := s.read()
	if err != nil {
		return err
	}
	if err := fn(&doc); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(s.path, append(raw, '\n'), 0o600); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write the tokens: %w", err)
	}
	return nil
}

// load returns the tokens by id, read again where the file is another one.
func (s *Store) load() (map[string]entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.seen, s.held = nil, nil
		return nil, nil
	}
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "look for the tokens: %w", err)
	}
	if s.seen != nil && os.SameFile(s.seen, info) && s.seen.ModTime().Equal(info.ModTime()) && s.seen.Size() == info.Size() {
		return s.held, nil
	}
	doc, err := s.read()
	if err != nil {
		return nil, err
	}
	held := make(map[string]entry, len(doc.Tokens))
	for _, e := range doc.Tokens {
		held[e.ID] = e
	}
	s.seen, s.held = info, held
	return held, nil
}

// read reads the file; one that is not there is empty. A file that others can
// read or write is refused.
func (s *Store) read() (document, error) {
	doc := document{Version: 1}
	raw, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return doc, nil
	}
	if err != nil {
		return doc, memory.Errorf(memory.ErrUnavailable, "read the tokens: %w", err)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return doc, memory.Errorf(memory.ErrUnavailable, "read the tokens: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return doc, memory.WithHint(memory.Errorf(memory.ErrDenied, "%s can be read by others", filepath.Base(s.path)), "chmod 600 "+s.path)
	}
	err = json.Unmarshal(raw, &doc)
	if err == nil && doc.Version != 1 {
		return doc, memory.WithHint(memory.Errorf(memory.ErrCorrupt, "%s has version %d", filepath.Base(s.path), doc.Version), "a newer openclawssy wrote it: use that one")
	}
	if err != nil {
		return doc, memory.WithHint(&memory.CorruptError{Path: s.path, Offset: -1, Reason: err.Error()}, "move it away and make new tokens with openclawssy token create")
	}
	return doc, nil
}
