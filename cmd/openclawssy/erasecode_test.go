package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/memory/meaning"
)

// TestErasureSeesThroughCodes erases what stands in codes too: what a store or a text
// has goes; of a file that is nobody's, and of half a backup, the result and the
// receipt tell.
func TestErasureSeesThroughCodes(t *testing.T) {
	w := newWorld(t, filepath.Join(t.TempDir(), "home"), 9)
	w.say("secret", false)
	said := w.said[0]
	w.say("other", false)
	put := func(id, payload string) {
		w.call("record", "put", "--namespace", "long_term", "--record-kind", "note", "--record-id", id, "--payload", payload)
	}
	put("coded", fmt.Sprintf(`{"blob":%q}`, base64.StdEncoding.EncodeToString([]byte("x"+said.text))))
	put("asked", fmt.Sprintf(`{"url":%q}`, "https://maps.example/?q="+url.QueryEscape(said.text)))
	put("stays", `{"blob":"c29tZXRoaW5nIGVsc2UgYWx0b2dldGhlcg=="}`)
	agent := filepath.Join(w.home, "agents", "default")
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wide := "\x01\x02\x03"
	for _, u := range utf16.Encode([]rune(said.text)) {
		wide += string([]byte{byte(u), byte(u >> 8)})
	}
	write(filepath.Join(agent, "memory", "foreign.bin"), wide)
	write(filepath.Join(agent, "notes.txt"), "first line\n"+base64.RawURLEncoding.EncodeToString([]byte(said.text))+"\nlast line\n")
	half := filepath.Join(w.home, ".backup-1234")
	write(filepath.Join(half, "files", "events.jsonl"), said.text)

	out, err := w.try("memory", "erase", "--session", "secret", "--yes", "--json")
	if err == nil || !strings.Contains(err.Error(), "status 1") {
		t.Errorf("something is left, and the command ends with %v", err)
	}
	var res care.EraseResult
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(res.Holding) != 1 || res.Holding[0].File != "memory/foreign.bin" || res.Holding[0].Coded != res.Holding[0].Places || res.Holding[0].First != 3 {
		t.Errorf("left: %+v", res.Holding)
	}
	if !slices.Equal(res.Copies, []string{half}) {
		t.Errorf("half copies: %v", res.Copies)
	}
	raw, err := os.ReadFile(res.Receipt)
	if err != nil {
		t.Fatal(err)
	}
	var receipt care.Receipt
	if err := json.Unmarshal(raw, &receipt); err != nil || len(receipt.Left) != 1 || receipt.Left[0] != res.Holding[0] || !slices.Equal(receipt.Copies, []string{half}) {
		t.Errorf("%v: %s", err, raw)
	}
	if left := w.call("record", "list", "long_term", "--json"); strings.Contains(left, "coded") || strings.Contains(left, "asked") || !strings.Contains(left, "stays") {
		t.Errorf("records: %s", left)
	}
	if text, err := os.ReadFile(filepath.Join(agent, "notes.txt")); err != nil || string(text) != "first line\n[erased]\nlast line\n" {
		t.Errorf("%v: %q", err, text)
	}
	// Once the file and the half copy are gone, nothing is left.
	if err := os.Remove(filepath.Join(agent, "memory", "foreign.bin")); err != nil {
		t.Fatal(err)
	}
	w.call("doctor", "--fix")
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("the doctor leaves the half copy: %v", err)
	}
	w.gone("codes", []string{said.word})
	for _, code := range []string{base64.StdEncoding.EncodeToString([]byte("x" + said.text))[:24], url.QueryEscape(said.text)[:20]} {
		w.gone("codes", []string{code})
	}
}

// TestErasureOfWhatWasLearned erases from a memory whose built-in model has learned
// from the words that go: they are in its vocabulary.
func TestErasureOfWhatWasLearned(t *testing.T) {
	w := newWorld(t, filepath.Join(t.TempDir(), "home"), 11)
	w.importChat("import-0", 60) // of the least that there is a model of
	// The same words again and again, so that they are learned.
	secret := w.word()
	for range 12 {
		s := statement{"secret", secret, w.sentence(secret)}
		w.call("ask", "--session", s.session, s.text)
		w.said = append(w.said, s)
		w.now = w.now.Add(time.Minute)
	}
	w.call("memory", "checkpoint")
	var learned meaning.ReembedResult
	w.ask(&learned, "memory", "reembed")
	if learned.Model == "" || learned.Texts == 0 || learned.Missing > 0 {
		t.Fatalf("nothing was learned: %+v", learned)
	}
	if before := placesOf(t, filepath.Join(w.home, "agents", "default", "memory"), secret); before["/vectors.db"]+before["/vectors.db-wal"] == 0 {
		t.Fatalf("the model has not learned the word: it stands in %v", before)
	}
	w.call("memory", "erase", "--session", "secret", "--yes")
	w.gone("learned", []string{secret})
	w.call("memory", "reembed")
	w.gone("learned anew", []string{secret})
	w.sound("learned")
}
