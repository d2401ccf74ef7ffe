package redact

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestNewRefusesShortKey(t *testing.T) {
	if _, err := New([]byte("fifteen bytes..")); err == nil {
		t.Error("New accepted a key of 15 bytes")
	}
}

func TestTagTellsSecretsApart(t *testing.T) {
	r := newRedactor(t)
	one, two := "ghp"+"_"+random("alnum", 36, 1), "ghp"+"_"+random("alnum", 36, 2)
	out := r.Text(one + " " + two + " " + one)
	tags := strings.Fields(out)
	if len(tags) != 3 || tags[0] != tags[2] || tags[0] == tags[1] {
		t.Fatalf("Text = %q, want three tags, the first like the third and unlike the second", out)
	}
	if tagEnd(tags[0], 0) != len(tags[0]) || !strings.HasPrefix(tags[0], "[REDACTED:github#") {
		t.Errorf("tag = %q", tags[0])
	}
	other, err := New([]byte("another key, also of many bytes"))
	if err != nil {
		t.Fatal(err)
	}
	if other.Text(one) == tags[0] {
		t.Error("the hash in a tag does not depend on the key")
	}
}

func TestTextReturnsItsInputWhereNothingIsFound(t *testing.T) {
	r := newRedactor(t)
	s := strings.Repeat("The token budget is 6000, and the password policy has changed. ", 50)
	if got := testing.AllocsPerRun(20, func() { r.Text(s) }); got != 0 {
		t.Errorf("Text allocates %v times for a text without secrets, want 0", got)
	}
}

func TestTextMakesValidUTF8(t *testing.T) {
	r := newRedactor(t)
	for _, s := range []string{"\xff\xfe", "password=\xff" + random("alnum", 12, 3), "a\xc3", "пароль: \xd0" + random("alnum", 12, 4)} {
		if out := r.Text(s); !utf8.ValidString(out) {
			t.Errorf("Text(%q) = %q, not valid UTF-8", s, out)
		}
	}
}

func TestFindGivesOffsets(t *testing.T) {
	r := newRedactor(t)
	key := "AKIA" + random("upper", 16, 5)
	s := "naïve: " + key + " and password=" + random("alnum", 12, 6) + "; end"
	found := r.Find(s)
	if len(found) != 2 || s[found[0].Start:found[0].End] != key || found[0].Kind != "aws_key_id" {
		t.Fatalf("Find(%q) = %+v", s, found)
	}
	if want := random("alnum", 12, 6); s[found[1].Start:found[1].End] != want || found[1].Kind != "password" {
		t.Errorf("second finding is %q, want %q", s[found[1].Start:found[1].End], want)
	}
	if !slices.IsSortedFunc(found, func(a, b Finding) int { return a.Start - b.Start }) {
		t.Error("findings are not sorted")
	}
}

func TestTagsAreLeftAlone(t *testing.T) {
	r := newRedactor(t)
	tag := "[REDACTED:password#0f3c]"
	for _, s := range []string{
		tag, "password=" + tag, `{"password":"` + tag + `"}`, "postgres://app:" + tag + "@db/x", "Authorization: Bearer " + tag, "https://x.example/?token=" + tag + "&a=b",
		"Cookie: sid=" + tag + "; a=b", "--password " + tag, "my password is " + tag + " now", "<password>" + tag + "</password>", "password: |\n  " + tag + "\n",
		"-----BEGIN PRIVATE KEY-----\n" + tag + "\n-----END PRIVATE KEY-----", "seed phrase: " + tag, "password=%22" + tag + "%22", `\"token\":\"` + tag + `\"`,
		"password: " + tag + ", token: " + tag, "| password |\n|---|\n| " + tag + " |\n", "curl -u jo:" + tag + " https://x.example",
	} {
		if out := r.Text(s); out != s {
			t.Errorf("Text(%q) = %q, want it unchanged", s, out)
		}
	}
}

func TestWithKnown(t *testing.T) {
	r := newRedactor(t)
	value := "plainvalue" // looks like a word
	known := r.WithKnown([]string{value, "short", "zwölf Sätze & mehr"})
	for _, s := range []string{
		"it says " + value + " here", "xx" + value + "yy", "cGxhaW52YWx1ZQ==", "q=zw%C3%B6lf+S%C3%A4tze+%26+mehr", `"zwölf Sätze \u0026 mehr"`,
	} {
		if r.Text(s) != s {
			t.Errorf("Text(%q) found something without known values", s)
		}
		if out := known.Text(s); out == s || !strings.Contains(out, "[REDACTED:known#") {
			t.Errorf("with known values, Text(%q) = %q", s, out)
		}
	}
	if s := "a short text"; known.Text(s) != s {
		t.Error("a known value of fewer than 6 bytes was looked for")
	}
	if out := r.WithKnown(nil).Text("password=" + random("alnum", 9, 7)); !strings.Contains(out, "[REDACTED:password#") {
		t.Errorf("without known values, Text = %q", out)
	}
}

func TestRedactorInManyGoroutines(t *testing.T) {
	r := newRedactor(t)
	s := chatText(1 << 14)
	want := r.Text(s)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := r.Text(s); got != want {
				t.Error("Text differs between goroutines")
			}
		})
	}
	wg.Wait()
}

func TestLoadOrCreateKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "redact.key")
	const callers = 16
	keys := make([][]byte, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			key, err := LoadOrCreateKey(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	wg.Wait()
	for _, key := range keys {
		if len(key) != keySize || !slices.Equal(key, keys[0]) {
			t.Fatalf("callers got different keys: %x and %x", keys[0], key)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key file is %v, want 0600", info.Mode().Perm())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("directory holds %d files (%v), want the key alone", len(entries), err)
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateKey(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error for a damaged key is %v, want one that names the file", err)
	}
}

func TestNoNameHasTwoClasses(t *testing.T) {
	for _, list := range []struct {
		vocabularies []vocabulary
		split        func(string) []string
	}{{nameWords, wordNames}, {namePairs, pairNames}} {
		seen := make(map[string]class)
		for _, v := range list.vocabularies {
			for _, name := range list.split(v.names) {
				if before, twice := seen[name]; twice {
					t.Errorf("%q is in classes %d and %d", name, before, v.class)
				}
				seen[name] = v.class
			}
		}
	}
}

// TestNamesAreLookedFor checks that every name of the vocabulary has a part that the automaton stops at.
func TestNamesAreLookedFor(t *testing.T) {
	parts := strings.Fields(nameParts)
	for _, v := range nameWords {
		for _, name := range wordNames(v.names) {
			ascii := strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
			if ascii && !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) }) {
				t.Errorf("no part of %q is looked for", name)
			}
		}
	}
}
