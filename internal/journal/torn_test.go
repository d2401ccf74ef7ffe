package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// segmentOf returns the bytes of a segment that holds these texts from seq on.
func segmentOf(first int64, texts ...string) []byte {
	var raw []byte
	for i, text := range texts {
		raw = appendSealed(raw, object(text), first+int64(i))
	}
	return raw
}

// damaged is a directory as a crash or a bad disk may leave it.
type damaged struct {
	segments map[string][]byte
	head     *head
}

func (d damaged) lay(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, raw := range d.segments {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d.head != nil {
		file, err := os.Create(filepath.Join(dir, headName))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.head.write(file); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// join concatenates.
func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func flip(raw []byte, at int) []byte {
	raw = slices.Clone(raw)
	raw[at] ^= 0x20
	return raw
}

func TestTornLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing in it runs at the same time, and it is long")
	}
	abc := segmentOf(1, "a", "b", "c")
	line := len(abc) / 3
	for name, tc := range map[string]struct {
		damaged
		survivors string // texts that are read before and after the repair
		torn      int64  // tails moved aside
		next      int64  // seq of the next line
	}{
		"whole":                     {damaged{map[string][]byte{today: abc}, nil}, "[a b c]", 0, 4},
		"nothing":                   {damaged{}, "[]", 0, 1},
		"an empty file":             {damaged{map[string][]byte{today: nil}, nil}, "[]", 0, 1},
		"one byte":                  {damaged{map[string][]byte{today: []byte("{")}, nil}, "[]", 1, 1},
		"newline lost":              {damaged{map[string][]byte{today: abc[:len(abc)-1]}, nil}, "[a b]", 1, 3},
		"half a line":               {damaged{map[string][]byte{today: abc[:2*line+9]}, nil}, "[a b]", 1, 3},
		"half a line after the day": {damaged{map[string][]byte{"2026-05-07.jsonl": abc, today: segmentOf(4, "d")[:9]}, nil}, "[a b c]", 1, 4},
		"empty file after the day":  {damaged{map[string][]byte{"2026-05-07.jsonl": abc, today: nil}, nil}, "[a b c]", 0, 4},
		"zeros at the end":          {damaged{map[string][]byte{today: join(abc, make([]byte, 4096))}, nil}, "[a b c]", 1, 4},
		"garbage lines at the end":  {damaged{map[string][]byte{today: join(abc, []byte("x\ny\n\n"))}, nil}, "[a b c]", 1, 4},
		"garbage without an end":    {damaged{map[string][]byte{today: join(abc, bytes.Repeat([]byte("x"), 1<<20))}, nil}, "[a b c]", 1, 4},
		"garbage over 16 MiB":       {damaged{map[string][]byte{today: join(abc, bytes.Repeat([]byte("x\n"), 9<<20))}, nil}, "[a b c]", 1, 4},
		"damage in the middle":      {damaged{map[string][]byte{today: flip(abc, line+9)}, nil}, "[a c]", 0, 4},
		"a newline in the middle":   {damaged{map[string][]byte{today: flip(abc, line-1)}, nil}, "[a b c]", 0, 4},
		"the newline before last":   {damaged{map[string][]byte{today: flip(abc, 2*line-1)}, nil}, "[a b c]", 0, 4},
		"an intact line without its newline before the end": {damaged{map[string][]byte{today: flip(flip(abc, 2*line-1), 2*line+9)}, nil}, "[a b]", 1, 3},
		"middle and end": {damaged{map[string][]byte{today: join(flip(abc, 9), []byte("{"))}, nil}, "[b c]", 1, 4},
		// The head knows that c was durable: its seq is not given out again.
		"last line rotten":        {damaged{map[string][]byte{today: flip(abc, 2*line+9)}, &head{today, int64(len(abc)), 3}}, "[a b]", 1, 4},
		"last page zero":          {damaged{map[string][]byte{today: join(abc[:line], make([]byte, 2*line))}, &head{today, int64(len(abc)), 3}}, "[a]", 1, 4},
		"cut back":                {damaged{map[string][]byte{today: abc[:line]}, &head{today, int64(len(abc)), 3}}, "[a]", 0, 4},
		"newest file gone":        {damaged{map[string][]byte{"2026-05-07.jsonl": abc}, &head{today, 100, 9}}, "[a b c]", 0, 10},
		"newest file not created": {damaged{map[string][]byte{"2026-05-07.jsonl": abc}, &head{today, 0, 3}}, "[a b c]", 0, 4},
		"head behind":             {damaged{map[string][]byte{today: abc}, &head{today, int64(line), 1}}, "[a b c]", 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tc.lay(t)
			texts, _, _ := contents(t, dir)
			if got := fmt.Sprint(texts); got != tc.survivors {
				t.Errorf("before the repair: %s, want %s", got, tc.survivors)
			}
			total := sizeOf(t, dir)
			j := openTest(t, dir, atNoon())
			if got := sizeOf(t, dir); got < total {
				t.Errorf("the repair keeps %d bytes of %d", got, total)
			}
			if s := j.Stats(); s.Torn != tc.torn {
				t.Errorf("%d torn tails, want %d", s.Torn, tc.torn)
			}
			if next := write(t, j, "next"); next != tc.next {
				t.Errorf("the next line has seq %d, want %d", next, tc.next)
			}
			texts, _, _ = contents(t, dir)
			if got, want := fmt.Sprint(texts), strings.TrimPrefix(strings.TrimSuffix(tc.survivors, "]")+" next]", "[ "); got != want && got != "["+want {
				t.Errorf("after the repair: %s, want %s", got, want)
			}
			again := openTest(t, dir, atNoon())
			if s := again.Stats(); s.Torn != 0 {
				t.Errorf("a second repair moves %d tails", s.Torn)
			}
		})
	}
}

// sizeOf adds up all files but the head.
func sizeOf(t testing.TB, dir string) (total int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if entry.Name() != headName {
			total += info.Size()
		}
	}
	return total
}

// A second tear in the same place is kept beside the first.
func TestTornTwiceInOnePlace(t *testing.T) {
	dir := damaged{segments: map[string][]byte{today: join(segmentOf(1, "a"), []byte("first"))}}.lay(t)
	for _, tail := range []string{"second", "third"} {
		j := openTest(t, dir, atNoon())
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, today), join(segmentOf(1, "a"), []byte(tail)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openTest(t, dir, atNoon())
	rep := verify(t, dir)
	var kept []string
	for _, torn := range rep.Torn {
		raw, err := os.ReadFile(filepath.Join(dir, torn.File))
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, string(raw))
	}
	slices.Sort(kept)
	if fmt.Sprint(kept) != "[first second third]" || !rep.Ok {
		t.Errorf("kept %v, ok %v", kept, rep.Ok)
	}
}

func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"text":"a"}`), int64(1), uint16(3), byte(1))
	f.Add([]byte(`{}`), int64(1<<62), uint16(0), byte(255))
	f.Add([]byte(`{"seq":5,"crc":"00000000"}`), int64(7), uint16(9), byte(32))
	f.Fuzz(func(t *testing.T, body []byte, seq int64, at uint16, change byte) {
		if len(body) > 4<<10 {
			return
		}
		unseal(body) // any bytes: no panic
		body = join([]byte("{"), bytes.ReplaceAll(body, []byte("\n"), nil), []byte("}"))
		seq = max(seq, 1)
		line := appendSealed(nil, body, seq)
		got, reason := unseal(line[:len(line)-1])
		if got != seq || reason != "" {
			t.Fatalf("unseal(%q) = %d, %q, want %d", line, got, reason, seq)
		}
		if change == 0 {
			return
		}
		line = line[:len(line)-1]
		line[int(at)%len(line)] ^= change
		if got, reason := unseal(line); reason == "" {
			t.Fatalf("a change of one byte is not seen: %q, seq %d", line, got)
		}
	})
}

// In any bytes, the pieces lie end to end, the good lines are those that were
// written, and the tail found from the end is the one found from the start.
func FuzzTornTail(f *testing.F) {
	f.Add(uint8(3), uint16(40), []byte("{"), uint16(20))
	f.Add(uint8(9), uint16(999), []byte("\n\n}"), uint16(0))
	f.Add(uint8(0), uint16(0), []byte(nil), uint16(0))
	f.Fuzz(func(t *testing.T, lines uint8, keep uint16, garbage []byte, rot uint16) {
		if len(garbage) > 4<<10 {
			return
		}
		var raw []byte
		var ends []int
		for i := range int(lines % 32) {
			raw = appendSealed(raw, object(strings.Repeat("x", i*7%50)), int64(i+1))
			ends = append(ends, len(raw))
		}
		whole := slices.IndexFunc(ends, func(end int) bool { return end > int(keep) })
		if whole < 0 {
			whole = len(ends)
		}
		raw = append(raw[:min(int(keep), len(raw))], garbage...)
		lost := 0
		if rot > 0 && len(raw) > 0 {
			raw[int(rot)%len(raw)] ^= byte(rot>>8) | 1
			lost = 1
		}
		good, last := pieces(t, raw)
		if good < whole-lost {
			t.Fatalf("%d good lines, want %d or one less for the damaged byte", good, whole)
		}
		end, err := findTail(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if end != last {
			t.Fatalf("tail from the end %+v, from the start %+v", end, last)
		}
		raw = raw[:end.end]
		if end.bare {
			raw, end = append(raw, '\n'), tail{end: end.end + 1, seq: end.seq}
		}
		if again, err := findTail(bytes.NewReader(raw), int64(len(raw))); err != nil || again != end {
			t.Fatalf("a second repair would go from %+v to %+v, %v", end, again, err)
		}
	})
}

// pieces scans raw, checks that nothing is left out, and returns the number of
// good lines and where the last ends.
func pieces(t *testing.T, raw []byte) (good int, last tail) {
	s := newScanner(bytes.NewReader(raw), 0, int64(len(raw)))
	var at int64
	for {
		p, err := s.next()
		if err != nil {
			if at != int64(len(raw)) {
				t.Fatalf("pieces end at %d of %d", at, len(raw))
			}
			return good, last
		}
		if p.offset != at || p.length <= 0 {
			t.Fatalf("piece %+v begins at %d, want %d", p, p.offset, at)
		}
		at = p.end()
		if p.reason == "" {
			good++
			last = tailAt(p)
		}
	}
}

// model is the journal as a slice: what must be read, and what comes next.
type model struct {
	lines []string // "seq text"
	next  int64
}

// The journal against a slice, under appends, reopening, clocks that jump, torn
// tails and lost ends: what was written is there unless it was cut off, in
// order, and no seq is given twice.
func TestJournalModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		c := &clock{t: noon}
		j := openTest(t, dir, Options{Now: c.now})
		want := model{next: 1}
		newest := func() (path string, size int64) {
			names, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
			if err != nil || len(names) == 0 {
				rt.Skip("no segment yet")
			}
			info, err := os.Stat(names[len(names)-1])
			if err != nil {
				rt.Fatal(err)
			}
			return names[len(names)-1], info.Size()
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				texts := rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,200}`), 1, 5).Draw(rt, "texts")
				if first := write(t, j, texts...); first != want.next {
					rt.Fatalf("first = %d, want %d", first, want.next)
				}
				for _, text := range texts {
					want.lines = append(want.lines, fmt.Sprint(want.next, " ", text))
					want.next++
				}
			},
			"day": func(rt *rapid.T) {
				c.set(c.now().AddDate(0, 0, rapid.IntRange(-3, 3).Draw(rt, "days")))
			},
			"reopen": func(rt *rapid.T) {
				if err := j.Close(); err != nil {
					rt.Fatal(err)
				}
				j = openTest(t, dir, Options{Now: c.now})
			},
			"tear": func(rt *rapid.T) {
				path, size := newest()
				garbage := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(rt, "garbage")
				patch(rt, path, size, garbage)
			},
			"cut": func(rt *rapid.T) {
				path, size := newest()
				size = max(0, size-rapid.Int64Range(1, 300).Draw(rt, "bytes"))
				if err := os.Truncate(path, size); err != nil {
					rt.Fatal(err)
				}
				if err := j.Close(); err != nil {
					rt.Fatal(err)
				}
				j = openTest(t, dir, Options{Now: c.now})
				left := readModel(t, dir)
				if n := len(left); n > len(want.lines) || !slices.Equal(left, want.lines[:n]) {
					rt.Fatalf("log = %q, want the beginning of %q", left, want.lines)
				}
				want.lines = left
			},
			"": func(rt *rapid.T) {
				if lines := readModel(t, dir); !slices.Equal(lines, want.lines) {
					rt.Fatalf("log = %q, want %q", lines, want.lines)
				}
			},
		})
		if err := j.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

func readModel(t testing.TB, dir string) (lines []string) {
	texts, seqs, _ := contents(t, dir)
	for i, text := range texts {
		lines = append(lines, fmt.Sprint(seqs[i], " ", text))
	}
	return lines
}

// patch writes bytes at an offset of a file.
func patch(t rapid.TB, path string, offset int64, raw []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(raw, offset); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
