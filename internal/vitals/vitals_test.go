package vitals

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestSinceIsTheFirstTime(t *testing.T) {
	dir := t.TempDir()
	note := func(at time.Time, wrong ...string) {
		t.Helper()
		if err := Update(t.Context(), dir, func(s *State) { s.Note(at, wrong) }); err != nil {
			t.Fatal(err)
		}
	}
	read := func() State {
		t.Helper()
		s, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	note(noon)
	if _, err := os.Stat(filepath.Join(dir, FileName)); err == nil {
		t.Error("nothing is wrong, and a file was written")
	}
	note(noon, "model")
	note(noon.Add(time.Hour), "model", "event_log")
	if got, want := read().Degraded(), "degraded since 2026-11-20 12:00 UTC: event_log, model"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	note(noon.Add(2*time.Hour), "event_log")
	if got, want := read().Degraded(), "degraded since 2026-11-20 13:00 UTC: event_log"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	note(noon.Add(-time.Hour), "event_log") // the clock was set back
	if got, want := read().Degraded(), "degraded since 2026-11-20 11:00 UTC: event_log"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	note(noon)
	if got := read().Degraded(); got != "" {
		t.Errorf("mended: %q", got)
	}
}

func TestDamagedFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(`{"wrong":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.Is(err, memory.ErrCorrupt) || memory.HintOf(err) == "" {
		t.Errorf("Read: %v", err)
	}
	if err := Update(t.Context(), dir, func(s *State) { s.Canary = &Canary{At: noon, Ok: true} }); err != nil {
		t.Fatal(err)
	}
	s, err := Read(dir)
	if err != nil || s.Canary == nil || !s.Canary.Ok {
		t.Errorf("%+v, %v", s, err)
	}
	if st, err := os.Stat(filepath.Join(dir, FileName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
}

func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if err := Update(t.Context(), dir, func(s *State) {
					if s.Lost == nil {
						s.Lost = &Lost{}
					}
					s.Lost.Events++
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s, err := Read(dir); err != nil || s.Lost.Events != 80 {
		t.Errorf("%+v, %v", s.Lost, err)
	}
}
