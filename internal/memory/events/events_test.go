package events

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/redact"
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
	r, err := redact.New([]byte("a key of the tests, 32 bytes long"))
	if err != nil {
		t.Fatal(err)
	}
	return Options{Now: func() time.Time { return day }, NewID: newID, Redact: r}
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

// TestAnswerToAQuestionForASecret: the answer is one in the session of the question,
// whoever spoke in others.
func TestAnswerToAQuestionForASecret(t *testing.T) {
	l := open(t, t.TempDir(), options(t))
	asked := said("What is your Wi-Fi password?")
	asked.Type, asked.Origin = memory.AssistantOutput, memory.OriginAssistant
	elsewhere, tool, answer, next := said("tulips-at-noon-7"), said("tulips-at-noon-7"), said("tulips-at-noon-7"), said("tulips-at-noon-7")
	elsewhere.SessionID = "s2"
	tool.Type, tool.Origin = memory.ToolResult, memory.OriginTool
	var texts []string
	for _, e := range []memory.Event{asked, elsewhere, tool, answer, next} {
		got, err := l.Write(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, got[0].Text)
	}
	if strings.Contains(texts[3], "tulips") {
		t.Errorf("the answer stands in the log: %q", texts[3])
	}
	for _, i := range []int{0, 1, 2, 4} {
		if strings.Contains(texts[i], "REDACTED") {
			t.Errorf("text %d is no answer: %q", i, texts[i])
		}
	}
}

func TestLongTextInParts(t *testing.T) {
	l := open(t, t.TempDir(), options(t))
	for name, text := range map[string]string{
		"words":    strings.Repeat("every word stays whole ", 9000),
		"no space": strings.Repeat("日本語", 30000),
		"one over": strings.Repeat("x", memory.MaxEventText+1),
	} {
		t.Run(name, func(t *testing.T) {
			e := said(text)
			e.ID = "evt_" + newID()
			e.Metadata = map[string]any{memory.MetaSourceID: "7"}
			parts, err := l.Write(context.Background(), e, said("after"))
			if err != nil {
				t.Fatal(err)
			}
			var whole strings.Builder
			seen := map[string]bool{}
			for i, part := range parts[:len(parts)-1] {
				whole.WriteString(part.Text)
				if err := part.Validate(); err != nil || !utf8.ValidString(part.Text) {
					t.Errorf("part %d: %v", i, err)
				}
				if want := fmt.Sprintf("%d/%d", i+1, len(parts)-1); part.Meta(memory.MetaPart) != want || part.Meta(memory.MetaSourceID) != "7" {
					t.Errorf("part %d has metadata %v", i, part.Metadata)
				}
				if seen[part.ID] || part.Seq != parts[0].Seq+int64(i) {
					t.Errorf("part %d is %s, seq %d", i, part.ID, part.Seq)
				}
				seen[part.ID] = true
				if name == "words" && i < len(parts)-2 && !strings.HasSuffix(part.Text, " ") {
					t.Errorf("part %d ends in the middle of a word: %q", i, part.Text[len(part.Text)-9:])
				}
			}
			if whole.String() != text || parts[0].ID != e.ID {
				t.Errorf("the parts are not the text")
			}
			if diff := cmp.Diff(parts, readAll(t, l.Reader)[parts[0].Seq-1:]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	l := open(t, t.TempDir(), options(t))
	for name, tc := range map[string]struct {
		edit  func(*memory.Event)
		field string // empty means valid
	}{
		"valid":         {func(*memory.Event) {}, ""},
		"type":          {func(e *memory.Event) { e.Type = "gossip" }, "type"},
		"origin":        {func(e *memory.Event) { e.Origin = "nowhere" }, "origin"},
		"id":            {func(e *memory.Event) { e.ID = "evt_1" }, "id"},
		"id prefix":     {func(e *memory.Event) { e.ID = newID() }, "id"},
		"long session":  {func(e *memory.Event) { e.SessionID = strings.Repeat("s", 300) }, "session_id"},
		"hostile run":   {func(e *memory.Event) { e.RunID = "a\x1b[2J" }, "run_id"},
		"year 10000":    {func(e *memory.Event) { e.Timestamp = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "timestamp"},
		"not a number":  {func(e *memory.Event) { e.Metadata = map[string]any{"x": math.NaN()} }, "metadata"},
		"a function":    {func(e *memory.Event) { e.Metadata = map[string]any{"x": func() {}} }, "metadata"},
		"over 8 MiB":    {func(e *memory.Event) { e.Metadata = map[string]any{"x": strings.Repeat("word ", 2<<20)} }, "metadata"},
		"several MiB":   {func(e *memory.Event) { e.Metadata = map[string]any{"x": strings.Repeat("word ", 1<<20)} }, ""},
		"invalid UTF-8": {func(e *memory.Event) { e.Text = "a\xffb" }, ""},
		"local mean time": {func(e *memory.Event) {
			e.Timestamp = time.Date(1890, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 53*60+28))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := l.LastSeq()
			if err != nil {
				t.Fatal(err)
			}
			e := said("x")
			tc.edit(&e)
			written, err := l.Write(context.Background(), said("first"), e)
			if memory.FieldOf(err) != tc.field || (err == nil) != (tc.field == "") {
				t.Fatalf("Write = %v, want field %q", err, tc.field)
			}
			after, err := l.LastSeq()
			if err != nil {
				t.Fatal(err)
			}
			if tc.field != "" && after != before {
				t.Errorf("a refused call has left %d events", after-before)
			}
			if tc.field == "" {
				if diff := cmp.Diff(written, readAll(t, l.Reader)[before:]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestDamageIsReportedAndPassedOver(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, options(t))
	for i := range 5 {
		if _, err := l.Write(context.Background(), said(fmt.Sprintf("turn %d", i))); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "2026-05-08.jsonl")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte("turn 2"))
	raw[at] = 'b'
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // reported once
		if got := readAll(t, l.Reader); len(got) != 4 || got[2].Text != "turn 3" {
			t.Errorf("read %+v", got)
		}
	}
	damage := l.Damage()
	if len(damage) != 1 || damage[0].Offset > int64(at) || damage[0].Offset+damage[0].Length < int64(at) {
		t.Errorf("damage = %+v, want it to hold byte %d", damage, at)
	}
	rep, err := l.Verify(context.Background())
	if err != nil || rep.Ok || len(rep.Damage) != 1 || fmt.Sprint(rep.Gaps) != "[{3 3}]" {
		t.Errorf("verify = %+v, %v", rep, err)
	}
	tail, err := l.Tail(context.Background(), 3)
	if err != nil || len(tail) != 3 || tail[0].Text != "turn 1" {
		t.Errorf("tail = %+v, %v", tail, err)
	}
}

// A producer that the disk does not keep up with is told, and each event that
// was refused is logged by its id.
func TestBackpressureIsCountedWithIDs(t *testing.T) {
	dir := t.TempDir()
	o := options(t)
	var logged bytes.Buffer
	o.Log = zerolog.New(&logged)
	o.QueueBytes, o.QueueWait = 2000, time.Millisecond
	var dropped int64
	o.Dropped = func(n int64) { dropped += n }
	l := open(t, dir, o)
	head, err := os.OpenFile(filepath.Join(dir, "journal.head"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer head.Close()
	if err := unix.Flock(int(head.Fd()), unix.LOCK_EX); err != nil { // another process writes, and writes
		t.Fatal(err)
	}
	var queued int64
	for err == nil {
		if _, err = l.Append(context.Background(), said("x")); err == nil {
			queued++
		}
	}
	if !errors.Is(err, ErrBackpressure) {
		t.Fatal(err)
	}
	e := said("refused")
	e.ID = "evt_" + newID()
	if _, err := l.Append(context.Background(), e); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("Append = %v", err)
	}
	if err := unix.Flock(int(head.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.Backpressure != 2 || s.Flushed != queued || dropped != 2 {
		t.Errorf("stats = %+v, told of %d", s, dropped)
	}
	if !strings.Contains(logged.String(), e.ID) || strings.Contains(logged.String(), "refused") {
		t.Errorf("logged: %s", logged.String())
	}
}

func TestService(t *testing.T) {
	l := open(t, t.TempDir(), options(t))
	for i := range 30 {
		if _, err := l.Append(context.Background(), said(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := NewService(func(_ context.Context, agent memory.AgentID) (*Reader, func(), error) {
		if agent == "nobody" {
			return nil, nil, memory.ErrNotFound
		}
		return l.Reader, func() {}, nil
	})
	for _, tc := range []struct {
		op, agent, in, want string
	}{
		{"events.tail", "ana", `{"limit":2}`, `29`},
		{"events.tail", "ana", `{}`, `"seq":11`},
		{"events.tail", "ana", `{"limit":100}`, `"seq":1,`},
		{"events.tail", "ana", `{"limit":-1}`, `limit must be between 1 and 1000`},
		{"events.tail", "nobody", `{}`, `"events":[]`},
		{"events.verify", "ana", `{}`, `"ok":true,"lines":30`},
		{"events.verify", "nobody", `{}`, `"ok":true,"lines":0,"first_seq":0,"last_seq":0,"files":[]`},
	} {
		for _, o := range s.Ops() {
			if o.Name != tc.op {
				continue
			}
			out, err := o.Call(context.Background(), memory.AgentID(tc.agent), json.RawMessage(tc.in))
			got, unencodable := json.Marshal(out)
			if unencodable != nil {
				t.Fatal(unencodable)
			}
			if err != nil {
				got = []byte(err.Error())
			}
			if !strings.Contains(string(got), tc.want) {
				t.Errorf("%s %s for %s = %s, want %s", tc.op, tc.in, tc.agent, got, tc.want)
			}
		}
	}
}

// unlike is cmp.Diff, which takes long to say that there is no difference.
func unlike(a, b memory.Event) string {
	if a.Timestamp.Equal(b.Timestamp) {
		c := b
		c.Timestamp = a.Timestamp
		if reflect.DeepEqual(a, c) {
			return ""
		}
	}
	return cmp.Diff(a, b)
}

func FuzzEventLine(f *testing.F) {
	f.Add("I moved to Lisbon.", "s1", "speaker", "Ana", 1.5, int64(1778241360), int64(7200))
	f.Add("\x00\x1b \u2028 \"\\ \xff", "\t", "", "\n", -1e300, int64(-5e10), int64(-3208))
	f.Add(`{"id":"evt_x","type":"error","text":"a\\u00e9","session_id":"","run_id":"","timestamp":"2026-05-08T13:56:00+02:00","origin":"user","metadata":{"a":1},"seq":41,"crc":"9a3c01fe"}`, "", "", "", 0.0, int64(0), int64(0))
	f.Fuzz(func(t *testing.T, text, session, key, value string, number float64, unix, zone int64) {
		if len(text) > 4<<10 {
			return
		}
		if e, own := decodeOwn([]byte(text)); own { // any bytes: no panic, and the same as encoding/json
			var plain memory.Event
			if err := json.Unmarshal([]byte(text), &plain); err != nil || unlike(e, plain) != "" {
				t.Fatalf("%v\n%s", err, cmp.Diff(e, plain))
			}
		}
		valid := func(s string) string { return strings.ToValidUTF8(s, "?") }
		if math.IsNaN(number) || math.IsInf(number, 0) {
			number = 0
		}
		e := memory.Event{ID: "evt_" + ulid.Zero.String(), Type: memory.ToolResult, Origin: memory.OriginTool, Text: valid(text), SessionID: valid(session), RunID: valid(value),
			Timestamp: storable(time.Unix(unix%2e11, unix&999999999).In(time.FixedZone("", int(zone%90000)))),
			Metadata:  map[string]any{valid(key): valid(value), "n": number, "deep": []any{map[string]any{valid(value): nil}, true}}}
		if y := e.Timestamp.Year(); y < 1 || y > 9999 {
			return
		}
		line, err := appendEvent(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		e.Seq = 41
		line = append(line[:len(line)-1], `,"seq":41,"crc":"00000000"}`...)
		back, own := decodeOwn(line)
		if diff := unlike(e, back); diff != "" || !own {
			t.Fatalf("%v %s", own, diff)
		}
		var plain memory.Event
		if err := json.Unmarshal(line, &plain); err != nil {
			t.Fatal(err)
		}
		if diff := unlike(e, plain); diff != "" {
			t.Fatalf("read with encoding/json:\n%s", diff)
		}
		if _, offset := e.Timestamp.Zone(); back.Timestamp.Format(time.RFC3339Nano) != e.Timestamp.Format(time.RFC3339Nano) {
			t.Fatalf("zone of %d seconds: %s became %s", offset, e.Timestamp, back.Timestamp)
		}
	})
}
