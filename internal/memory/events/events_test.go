package events

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestMain(m *testing.M) {
	if child := os.Getenv(childVariable); child != "" {
		os.Exit(runChild(child))
	}
	goleak.VerifyTestMain(m)
}

var day = time.Date(2026, 5, 8, 13, 56, 0, 0, time.FixedZone("", 2*60*60))

func newID() string { return ulid.MustNew(ulid.Timestamp(day), rand.Reader).String() }

func options(t testing.TB) Options {
	t.Helper()
	return Options{Now: func() time.Time { return day }, NewID: newID, Redact: whole{}}
}

func open(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	l, err := Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func said(text string) memory.Event {
	return memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: text, SessionID: "s1"}
}

func readAll(t testing.TB, r *Reader) []memory.Event {
	t.Helper()
	var all []memory.Event
	for at := (memory.Cursor{}); ; {
		events, next, err := r.Read(context.Background(), at, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return all
		}
		all, at = append(all, events...), next
	}
}

func TestWriteThenRead(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "a", "events"), options(t))
	e := said("I moved to Lisbon.\n\"Really\" \x01 \\ é 日本")
	e.Metadata = map[string]any{"speaker": "Ana", "n": 1.5, "list": []any{"a", nil, true}, "deep": map[string]any{"b": 1e21, "a": "x"}}
	written, err := l.Write(context.Background(), e, said("two"))
	if err != nil {
		t.Fatal(err)
	}
	if written[0].Seq != 1 || written[1].Seq != 2 || !strings.HasPrefix(written[0].ID, "evt_") {
		t.Errorf("written = %+v", written)
	}
	if diff := cmp.Diff(written, readAll(t, l.Reader)); diff != "" {
		t.Errorf("read differs (-written +read):\n%s", diff)
	}
	if _, offset := readAll(t, l.Reader)[0].Timestamp.Zone(); offset != 2*60*60 {
		t.Errorf("zone = %d, want that of the clock", offset)
	}
}

func TestReaderCreatesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	r := OpenReader(dir, options(t).Log)
	defer r.Close()
	if got := readAll(t, r); len(got) != 0 {
		t.Errorf("read %v", got)
	}
	if seq, err := r.LastSeq(); seq != 0 || err != nil {
		t.Errorf("LastSeq = %d, %v", seq, err)
	}
	if rep, err := r.Verify(context.Background()); err != nil || !rep.Ok {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory was created: %v", err)
	}
	l := open(t, dir, options(t))
	if _, err := l.Write(context.Background(), said("now")); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, r); len(got) != 1 {
		t.Errorf("a reader from before the log reads %d events, want 1", len(got))
	}
}

func TestRedactedBeforeItIsQueued(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, options(t))
	secret := "ghp_" + strings.Repeat("aB3dE6gH9j", 4)[:36]
	e := said("my token is " + secret)
	e.Metadata = map[string]any{"password": "hunter2secret", "args": map[string]any{"list": []string{secret}}, secret: 1}
	queued, err := l.Append(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprint(queued); strings.Contains(s, secret) || strings.Contains(s, "hunter2secret") {
		t.Errorf("Append returns the secret: %s", s)
	}
	if err := l.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "2026-05-08.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), secret) || strings.Contains(string(raw), "hunter2secret") || !strings.Contains(string(raw), "[REDACTED:") {
		t.Errorf("the file holds %s", raw)
	}
}

// whole stands in for the value side of redaction until it is there.
type whole struct{}

var token = regexp.MustCompile(`ghp_[0-9A-Za-z]{36}`)

func (w whole) Text(s string) string { return token.ReplaceAllString(s, "[REDACTED:x#0000]") }

func (w whole) Value(v any) any {
	switch v := v.(type) {
	case string:
		return w.Text(v)
	case []string:
		var l []any
		for _, e := range v {
			l = append(l, w.Text(e))
		}
		return l
	case []any:
		for i := range v {
			v[i] = w.Value(v[i])
		}
		return v
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if k == "password" {
				e = "[REDACTED:x#0000]"
			}
			out[w.Text(k)] = w.Value(e)
		}
		return out
	}
	return v
}
