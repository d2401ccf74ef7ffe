package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

const today = "2026-05-08.jsonl"

// clock is a settable clock.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

func atNoon() Options { return Options{Now: func() time.Time { return noon }} }

// openTest opens a journal and closes it with the test.
func openTest(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	j, err := Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func object(text string) []byte { return fmt.Appendf(nil, `{"text":%q}`, text) }

// textOf returns the text of a line made by object.
func textOf(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`{"text":"`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

func write(t testing.TB, j *Journal, texts ...string) int64 {
	t.Helper()
	objects := make([][]byte, len(texts))
	for i, text := range texts {
		objects[i] = object(text)
	}
	first, err := j.Write(context.Background(), objects...)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// contents reads the whole journal through cursors of three lines at a time.
func contents(t testing.TB, dir string) (texts []string, seqs []int64, damage []Damage) {
	t.Helper()
	r := NewReader(dir)
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for at := (memory.Cursor{}); ; {
		n := 0
		next, found, err := r.Read(context.Background(), at, func(l Line) (bool, error) {
			texts, seqs = append(texts, textOf(l.Data)), append(seqs, l.Seq)
			n++
			return n < 3, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if !slices.Contains(damage, d) {
				damage = append(damage, d)
			}
		}
		if n == 0 {
			return texts, seqs, damage
		}
		at = next
	}
}

func verify(t testing.TB, dir string) Report {
	t.Helper()
	r := NewReader(dir)
	rep, err := r.Verify(context.Background(), nil)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestWriteReadReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "log")
	j := openTest(t, dir, atNoon())
	if first := write(t, j, "a", "b"); first != 1 {
		t.Errorf("first = %d, want 1", first)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openTest(t, dir, atNoon())
	if first := write(t, j, "c"); first != 3 {
		t.Errorf("first = %d, want 3", first)
	}
	texts, seqs, damage := contents(t, dir)
	if got := fmt.Sprint(texts, seqs, damage); got != "[a b c] [1 2 3] []" {
		t.Errorf("log = %s", got)
	}
	raw, err := os.ReadFile(filepath.Join(dir, today))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"text":"a","seq":1,"crc":"1e49acae"}` + "\n"; !strings.HasPrefix(string(raw), want) {
		t.Errorf("the file begins %.60q, want %q", raw, want)
	}
	checkModes(t, dir)
}

func checkModes(t *testing.T, dir string) {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("%s has mode %v", dir, info.Mode())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
}

// The name of a file follows the clock, but never back: order is seq.
func TestSegmentsFollowTheDayNeverBack(t *testing.T) {
	dir := t.TempDir()
	c := &clock{t: noon}
	j := openTest(t, dir, Options{Now: c.now})
	write(t, j, "a")
	c.set(noon.AddDate(0, 0, 1))
	write(t, j, "b")
	c.set(time.Unix(0, 0))
	write(t, j, "c")
	c.set(noon.AddDate(0, 0, 2))
	write(t, j, "d")
	rep := verify(t, dir)
	var files []string
	for _, f := range rep.Files {
		files = append(files, fmt.Sprintf("%s:%d-%d", f.File, f.FirstSeq, f.LastSeq))
	}
	if got, want := strings.Join(files, " "), "2026-05-08.jsonl:1-1 2026-05-09.jsonl:2-3 2026-05-10.jsonl:4-4"; got != want || !rep.Ok {
		t.Errorf("files = %s, ok %v, want %s", got, rep.Ok, want)
	}
	if texts, _, _ := contents(t, dir); fmt.Sprint(texts) != "[a b c d]" {
		t.Errorf("texts = %v", texts)
	}
}

// Two open journals stand for two processes: a lock belongs to an open file.
// Their clocks differ, so that each meets segments that the other has created.
func TestSeveralWritersAtOnce(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 4, 60
	var all sync.WaitGroup
	for w := range writers {
		c := &clock{t: noon}
		j := openTest(t, dir, Options{Now: c.now})
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range each {
				c.set(noon.AddDate(0, 0, (w*7+i)%5))
				if _, err := j.Write(context.Background(), object(fmt.Sprintf("%d.%d", w, i)), object(fmt.Sprintf("%d.%d+", w, i))); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	texts, seqs, _ := contents(t, dir)
	if len(seqs) != 2*writers*each || seqs[len(seqs)-1] != 2*writers*each {
		t.Fatalf("%d lines up to %d, want %d", len(seqs), seqs[len(seqs)-1], 2*writers*each)
	}
	last := map[string]int{}
	for i := 0; i < len(texts); i += 2 {
		if texts[i]+"+" != texts[i+1] {
			t.Fatalf("the lines of one call do not stand together: %s, %s", texts[i], texts[i+1])
		}
		var w, n int
		if _, err := fmt.Sscanf(texts[i], "%d.%d", &w, &n); err != nil {
			t.Fatal(err)
		}
		if n != last[fmt.Sprint(w)] {
			t.Fatalf("writer %d: line %d where %d is due", w, n, last[fmt.Sprint(w)])
		}
		last[fmt.Sprint(w)]++
	}
	if rep := verify(t, dir); !rep.Ok || len(rep.Torn) > 0 {
		t.Errorf("verify = %+v", rep)
	}
}

// A segment whose lines a reader has not been told of by the head is read when
// nobody writes, and only up to the head while somebody does.
func TestReaderSeesOnlyWhatIsDurable(t *testing.T) {
	dir := t.TempDir()
	j := openTest(t, dir, atNoon())
	write(t, j, "durable")
	headFile, err := os.OpenFile(filepath.Join(dir, headName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer headFile.Close()
	if err := lock(headFile); err != nil {
		t.Fatal(err)
	}
	segment, err := os.OpenFile(filepath.Join(dir, today), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	if _, err := segment.Write(appendSealed(nil, object("not yet"), 2)); err != nil {
		t.Fatal(err)
	}
	if texts, _, _ := contents(t, dir); fmt.Sprint(texts) != "[durable]" {
		t.Errorf("while a group is written: %v", texts)
	}
	if err := unlock(headFile); err != nil {
		t.Fatal(err)
	}
	if texts, _, _ := contents(t, dir); fmt.Sprint(texts) != "[durable not yet]" {
		t.Errorf("after the writer has gone: %v", texts)
	}
	if first := write(t, j, "next"); first != 3 {
		t.Errorf("the next line has seq %d, want 3", first)
	}
}

func TestCursorIsOnlyAHint(t *testing.T) {
	dir := t.TempDir()
	c := &clock{t: noon}
	j := openTest(t, dir, Options{Now: c.now})
	for d := range 3 {
		c.set(noon.AddDate(0, 0, d))
		var texts []string
		for i := range 400 {
			texts = append(texts, fmt.Sprintf("%d %d %s", d, i, strings.Repeat("x", 200)))
		}
		write(t, j, texts...)
	}
	r := NewReader(dir)
	defer r.Close()
	for _, seq := range []int64{0, 1, 399, 400, 401, 777, 1199, 1200, 5000} {
		for _, hint := range []memory.Cursor{
			{}, {File: today}, {File: today, Offset: 100}, {File: today, Offset: 1 << 40}, {File: today, Offset: -5},
			{File: "2026-05-09.jsonl", Offset: 260 * 7}, {File: "2026-05-10.jsonl"}, {File: "../../etc/passwd"}, {File: "2020-01-01.jsonl"}, {File: "2030-01-01.jsonl", Offset: 3},
		} {
			hint.Seq = seq
			var got int64
			next, damage, err := r.Read(context.Background(), hint, func(l Line) (bool, error) { got = l.Seq; return false, nil })
			want := seq + 1
			if seq >= 1200 {
				want = 0
			}
			if err != nil || got != want || len(damage) > 0 {
				t.Errorf("after %+v: seq %d, damage %v, %v, want %d", hint, got, damage, err, want)
			}
			if next.Seq != max(seq, got) {
				t.Errorf("after %+v: cursor %+v", hint, next)
			}
		}
	}
}

func TestBackpressureAndClose(t *testing.T) {
	dir := t.TempDir()
	j := openTest(t, dir, Options{Now: atNoon().Now, QueueBytes: 1000, QueueWait: 20 * time.Millisecond})
	headFile, err := os.OpenFile(filepath.Join(dir, headName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer headFile.Close()
	if err := lock(headFile); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	taken := 0
	for err = error(nil); err == nil && taken < 100; taken++ {
		err = j.Append(ctx, object("line"))
	}
	if !errors.Is(err, ErrBackpressure) || !errors.Is(err, memory.ErrUnavailable) {
		t.Fatalf("Append to a full queue = %v", err)
	}
	taken--
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := j.Write(cancelled, object("cancelled")); !errors.Is(err, context.Canceled) {
		t.Errorf("Write, cancelled = %v", err)
	}
	if err := j.Flush(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("Flush, cancelled = %v", err)
	}
	if err := unlock(headFile); err != nil {
		t.Fatal(err)
	}
	if err := j.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if s := j.Stats(); s.Backpressure != 1 || s.Appended != int64(taken) || s.Flushed != int64(taken) {
		t.Errorf("stats = %+v, want %d lines", s, taken)
	}
	if err := j.Append(ctx, []byte(`{"text":"`+strings.Repeat("x", 5000)+`"}`)); err != nil {
		t.Errorf("a line larger than the queue: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if texts, _, _ := contents(t, dir); len(texts) != taken+1 {
		t.Errorf("%d lines, want %d", len(texts), taken+1)
	}
	if err := j.Append(ctx, object("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("Append after Close = %v", err)
	}
	if err := j.Flush(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("Flush after Close = %v", err)
	}
}

// Appending while the journal is being closed never panics; what was taken is
// there, what was refused is not.
func TestAppendDuringClose(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		j := openTest(t, dir, atNoon())
		var all sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				for {
					if err := j.Append(context.Background(), object("x")); err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					taken++
					mu.Unlock()
				}
			}()
		}
		if err := j.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if rep := verify(t, dir); rep.Lines != int64(taken) || !rep.Ok {
			t.Fatalf("%d lines, but %d were taken", rep.Lines, taken)
		}
	}
}

func TestLongLines(t *testing.T) {
	dir := t.TempDir()
	j := openTest(t, dir, atNoon())
	long := []byte(`{"text":"` + strings.Repeat("x", MaxLine-200) + `"}`)
	if _, err := j.Write(context.Background(), object("before"), long, object("after")); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Write(context.Background(), append(long, make([]byte, 300)...)); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("a line over the limit: %v", err)
	}
	texts, _, _ := contents(t, dir)
	if len(texts) != 3 || texts[2] != "after" || len(texts[1]) != MaxLine-200 {
		t.Errorf("%d lines", len(texts))
	}
}

func TestDamagedAndForeignFiles(t *testing.T) {
	dir := t.TempDir()
	c := &clock{t: noon}
	j := openTest(t, dir, Options{Now: c.now})
	write(t, j, "a", "b", "c")
	c.set(noon.AddDate(0, 0, 2))
	write(t, j, "d")
	path := filepath.Join(dir, today)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[bytes.Index(raw, []byte(`"b"`))+1] = 'B'
	// A line far over the limit, without a newline for 20 MB.
	raw = append(raw, append(bytes.Repeat([]byte("z"), 20<<20), '\n')...)
	raw = append(raw, "half a li"...)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "2026-05-09.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.jsonl"), []byte("not ours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	texts, seqs, damage := contents(t, dir)
	if got := fmt.Sprint(texts, seqs); got != "[a c d] [1 3 4]" {
		t.Errorf("log = %s", got)
	}
	var reasons []string
	for _, d := range damage {
		reasons = append(reasons, fmt.Sprintf("%s@%d+%d %s", d.File, d.Offset, d.Length, d.Reason))
	}
	want := []string{
		"2026-05-08.jsonl@38+38 the checksum does not match",
		"2026-05-08.jsonl@114+20971530 the line is longer than 8388608 bytes",
		"2026-05-09.jsonl@0+0 it is not a regular file",
	}
	if !slices.Equal(reasons, want) {
		t.Errorf("damage:\n%s\nwant\n%s", strings.Join(reasons, "\n"), strings.Join(want, "\n"))
	}
	rep := verify(t, dir)
	if rep.Ok || rep.Lines != 3 || len(rep.Damage) != len(want) || fmt.Sprint(rep.Gaps) != "[{2 2}]" {
		t.Errorf("verify = %+v", rep)
	}
	if first := write(t, j, "e"); first != 5 {
		t.Errorf("the next line has seq %d, want 5", first)
	}
}
