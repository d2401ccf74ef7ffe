package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// days writes lines over several days, and returns the clock, which stands at the
// last of them.
func days(t testing.TB, dir string, texts ...[]string) *clock {
	t.Helper()
	c := &clock{t: noon}
	j := openTest(t, dir, Options{Now: c.now, Log: zerolog.Nop()})
	for i, day := range texts {
		c.set(noon.AddDate(0, 0, i))
		write(t, j, day...)
	}
	return c
}

func pack(t testing.TB, dir string, before time.Time) []Packed {
	t.Helper()
	done, err := Pack(context.Background(), dir, before, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func files(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// big is a day of several frames.
func big(day int) []string {
	texts := make([]string, 400)
	for i := range texts {
		texts[i] = fmt.Sprintf("%d.%d %s", day, i, strings.Repeat(string(rune('a'+i%26)), 40*(i%97)))
	}
	return texts
}

func TestPackedSegmentsReadAsBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	c := days(t, dir, big(0), []string{"b", "c"}, []string{"d"})
	want, seqs, _ := contents(t, dir)
	before := verify(t, dir)
	done := pack(t, dir, c.now().AddDate(0, 0, 30))
	if len(done) != 2 || done[0].Packed == 0 || done[0].Packed > done[0].Bytes/4 {
		t.Errorf("packed %+v", done)
	}
	if got, want := files(t, dir), "2026-05-08.jsonl.zst 2026-05-09.jsonl.zst 2026-05-10.jsonl journal.head"; got != want {
		t.Errorf("files: %s, want %s", got, want)
	}
	checkModes(t, dir)
	got, gotSeqs, damage := contents(t, dir)
	if !slices.Equal(got, want) || !slices.Equal(gotSeqs, seqs) || len(damage) > 0 {
		t.Errorf("%d lines, %d before; damage %v", len(got), len(want), damage)
	}
	after := verify(t, dir)
	if fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) {
		t.Errorf("verify says\n%+v, and before\n%+v", after, before)
	}
	// Cursors, with and without a right place, lead to the next line.
	r := NewReader(dir)
	defer r.Close()
	for at := int64(0); at < int64(len(want)); at += 37 {
		next, _, err := r.Read(context.Background(), memory.Cursor{Seq: at}, func(l Line) (bool, error) {
			if l.Seq != at+1 || textOf(l.Data) != want[at] {
				t.Errorf("behind %d comes %d %.20q", at, l.Seq, textOf(l.Data))
			}
			return false, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		right, err := (&view{dir: r.dir, last: "2026-05-10.jsonl"}).proves(next)
		if err != nil || !right {
			t.Errorf("the cursor %+v proves wrong (%v)", next, err)
		}
	}
	if again := pack(t, dir, c.now().AddDate(0, 0, 30)); len(again) > 0 {
		t.Errorf("packed again: %+v", again)
	}
	// Writing goes on, and another process finds the end.
	j := openTest(t, dir, Options{Now: c.now, Log: zerolog.Nop()})
	if first := write(t, j, "e"); first != int64(len(want))+1 {
		t.Errorf("the next line got seq %d", first)
	}
	cut, err := r.Cut()
	if err != nil || len(cut.Segments) != 3 || cut.Segments[0].Name != "2026-05-08.jsonl.zst" || cut.Segments[0].Size != done[0].Packed {
		t.Errorf("cut: %+v, %v", cut, err)
	}
}

func TestPackSparesTheNewestAndTheYoung(t *testing.T) {
	dir := t.TempDir()
	days(t, dir, []string{"a"}, []string{"b"}, []string{"c"})
	if done := pack(t, dir, noon.AddDate(0, 0, 1)); len(done) != 1 || done[0].File != "2026-05-08.jsonl" {
		t.Errorf("packed %+v", done)
	}
	if list, err := Packable(dir, noon.AddDate(1, 0, 0)); err != nil || len(list) != 1 || list[0].File != "2026-05-09.jsonl" {
		t.Errorf("packable %+v, %v", list, err)
	}
	if done, err := Pack(context.Background(), filepath.Join(dir, "none"), noon, zerolog.Nop()); err != nil || len(done) > 0 {
		t.Errorf("no directory: %+v, %v", done, err)
	}
}

// The newest segment is never packed, but the newer ones may have been lost.
func TestWriterUnpacksTheNewest(t *testing.T) {
	dir := t.TempDir()
	days(t, dir, []string{"a"}, []string{"b"}, []string{"c"})
	pack(t, dir, noon.AddDate(1, 0, 0))
	if err := os.Remove(filepath.Join(dir, "2026-05-10.jsonl")); err != nil {
		t.Fatal(err)
	}
	j := openTest(t, dir, atNoon())
	if first := write(t, j, "d"); first != 4 { // 3 was given to a line that is lost
		t.Errorf("seq %d", first)
	}
	if texts, _, _ := contents(t, dir); fmt.Sprint(texts) != "[a b d]" {
		t.Errorf("log = %v", texts)
	}
	if got := files(t, dir); got != "2026-05-08.jsonl.zst 2026-05-09.jsonl journal.head" {
		t.Errorf("files: %s", got)
	}
}

func TestRewriteReachesPackedLines(t *testing.T) {
	dir := t.TempDir()
	days(t, dir, big(0), big(1), []string{"end"})
	pack(t, dir, noon.AddDate(1, 0, 0))
	done, err := Rewrite(context.Background(), dir, zerolog.Nop(), Edits{Line: func(l Line) ([]byte, error) {
		if strings.HasPrefix(textOf(l.Data), "1.200 ") {
			return []byte(`{"text":"erased"}`), nil
		}
		return nil, nil
	}})
	if err != nil || done.Lines != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := files(t, dir); got != "2026-05-08.jsonl.zst 2026-05-09.jsonl 2026-05-10.jsonl journal.head" {
		t.Errorf("files: %s", got)
	}
	texts, _, damage := contents(t, dir)
	if len(texts) != 801 || texts[600] != "erased" || len(damage) > 0 {
		t.Errorf("%d lines, the 601st %q, damage %v", len(texts), texts[600], damage)
	}
	if !verify(t, dir).Ok {
		t.Errorf("%+v", verify(t, dir))
	}
}

// TestReadersSeeNothingOfPacking reads and appends while segments are packed.
func TestReadersSeeNothingOfPacking(t *testing.T) {
	dir := t.TempDir()
	var all [][]string
	for day := range 8 {
		all = append(all, big(day))
	}
	c := days(t, dir, all...)
	j := openTest(t, dir, Options{Now: c.now, Log: zerolog.Nop()})
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				write(t, j, "more")
			}
		}
	})
	for range 2 {
		busy.Go(func() {
			for {
				texts, _, damage := contents(t, dir)
				if len(texts) < 3200 || len(damage) > 0 {
					t.Errorf("%d lines, damage %v", len(texts), damage)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	if done := pack(t, dir, c.now()); len(done) != 7 {
		t.Errorf("packed %+v", done)
	}
	close(stop)
	busy.Wait()
}

// TestPackedDamageIsFoundAndPassedOver flips bytes and cuts off ends. Lines of
// other frames are read, no wrong line is, and nothing panics.
func TestPackedDamageIsFoundAndPassedOver(t *testing.T) {
	dir := t.TempDir()
	days(t, dir, big(0), []string{"end"})
	want, _, _ := contents(t, dir)
	pack(t, dir, noon.AddDate(1, 0, 0))
	path := filepath.Join(dir, "2026-05-08.jsonl.zst")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(good)
		at := rapid.IntRange(0, len(bad)-1).Draw(t, "at")
		if rapid.Bool().Draw(t, "cut") {
			bad = bad[:at]
		} else {
			bad[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		r := NewReader(dir)
		defer r.Close()
		var got []string
		_, _, err := r.Read(context.Background(), memory.Cursor{}, func(l Line) (bool, error) {
			got = append(got, textOf(l.Data))
			if textOf(l.Data) != want[l.Seq-1] {
				t.Fatalf("line %d is %.30q", l.Seq, textOf(l.Data))
			}
			return true, nil
		})
		if err != nil || len(got) == 0 || got[len(got)-1] != "end" {
			t.Fatalf("%d lines, %v", len(got), err)
		}
		rep, err := r.Verify(context.Background(), nil)
		if err != nil || rep.Ok && len(got) < len(want) {
			t.Fatalf("%d lines of %d, and verify says ok (%v)", len(got), len(want), err)
		}
	})
}

// TestPackInterrupted puts the files in every state that a kill can leave, and
// packs again.
func TestPackInterrupted(t *testing.T) {
	for name, spoil := range map[string]func(dir string, plain, packed []byte){
		"half a packed form": func(dir string, _, packed []byte) {
			put(t, dir, ".pack-2026-05-08.jsonl", packed[:len(packed)/2])
		},
		"a whole packed form without its name": func(dir string, _, packed []byte) { put(t, dir, ".pack-2026-05-08.jsonl", packed) },
		"both forms":                           func(dir string, _, packed []byte) { put(t, dir, "2026-05-08.jsonl.zst", packed) },
		"both, one of them old":                func(dir string, _, _ []byte) { put(t, dir, "2026-05-08.jsonl.zst", []byte("nonsense")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			days(t, dir, big(0), []string{"end"})
			want, _, _ := contents(t, dir)
			plain, err := os.ReadFile(filepath.Join(dir, today))
			if err != nil {
				t.Fatal(err)
			}
			pack(t, dir, noon.AddDate(1, 0, 0))
			packed, err := os.ReadFile(filepath.Join(dir, today+".zst"))
			if err == nil {
				err = os.Remove(filepath.Join(dir, today+".zst"))
			}
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, today, plain)
			spoil(dir, plain, packed)
			if got, _, damage := contents(t, dir); !slices.Equal(got, want) || len(damage) > 0 || !verify(t, dir).Ok {
				t.Errorf("interrupted: %d lines of %d, damage %v", len(got), len(want), damage)
			}
			pack(t, dir, noon.AddDate(1, 0, 0))
			if got, _, damage := contents(t, dir); !slices.Equal(got, want) || len(damage) > 0 {
				t.Errorf("packed: %d lines of %d, damage %v", len(got), len(want), damage)
			}
			if got := files(t, dir); got != "2026-05-08.jsonl.zst 2026-05-09.jsonl journal.head" {
				t.Errorf("files: %s", got)
			}
		})
	}
}

func put(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnpackedReadsWhatAnyProgramWould(t *testing.T) {
	dir := t.TempDir()
	days(t, dir, big(0), []string{"end"})
	plain, err := os.ReadFile(filepath.Join(dir, today))
	if err != nil {
		t.Fatal(err)
	}
	pack(t, dir, noon.AddDate(1, 0, 0))
	path := filepath.Join(dir, today+".zst")
	in, err := Unpacked(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	if err = errors.Join(err, in.Close()); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%d bytes of %d, %v", len(got), len(plain), err)
	}
	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Log("no zstd here to compare with")
		return
	}
	if out, err := exec.Command(program, "-dc", path).Output(); err != nil || !bytes.Equal(out, plain) {
		t.Errorf("zstd gives %d bytes of %d, %v", len(out), len(plain), err)
	}
}
