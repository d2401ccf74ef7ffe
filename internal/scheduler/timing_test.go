package scheduler

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestNext(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule, zone, after string
		want                  []string // the next ones, in the zone
	}{
		"every":                {"@every 6h", "", "2026-05-08T09:00:00Z", []string{"2026-05-08T15:00:00Z", "2026-05-08T21:00:00Z"}},
		"weekly":               {"30 2 * * 0", "", "2026-05-08T09:00:00Z", []string{"2026-05-10T02:30:00Z", "2026-05-17T02:30:00Z"}},
		"hourly":               {"@hourly", "", "2026-05-08T09:00:00Z", []string{"2026-05-08T10:00:00Z"}},
		"leap day":             {"0 0 29 2 *", "", "2026-05-08T09:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"in a zone":            {"0 9 * * *", "Asia/Kolkata", "2026-05-08T09:00:00Z", []string{"2026-05-09T09:00:00+05:30"}},
		"left out":             {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"}},
		"left out, New York":   {"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", []string{"2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"}},
		"twice":                {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		"from between twice":   {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T02:30:00+01:00"}},
		"hourly, left out":     {"0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
		"hourly, twice":        {"0 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", []string{"2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"}},
		"midnight left out":    {"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", []string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		"minutes, twice":       {"*/30 1,2 * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", []string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T01:00:00+01:00"}},
		"day of month or week": {"0 0 13 * 5", "", "2026-05-08T09:00:00Z", []string{"2026-05-13T00:00:00Z", "2026-05-15T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			tm, err := parseTiming(tc.schedule, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if at = tm.next(at); at.In(tm.zone).Format(time.RFC3339) != want {
					t.Fatalf("next = %s, want %s", at.In(tm.zone).Format(time.RFC3339), want)
				}
			}
		})
	}
}

func TestParseTimingRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, zone, field string }{
		"empty":          {"", "", "schedule"},
		"six fields":     {"0 0 * * * *", "", "schedule"},
		"minute":         {"60 * * * *", "", "schedule"},
		"never":          {"0 0 30 2 *", "", "schedule"},
		"no hour at all": {"0 , * * *", "", "schedule"},
		"zone in it":     {"TZ=", "", "schedule"},
		"cron zone":      {"CRON_TZ=UTC 0 0 * * *", "", "schedule"},
		"reboot":         {"@reboot", "", "schedule"},
		"too often":      {"@every 10ms", "", "schedule"},
		"backwards":      {"@every -6h", "", "schedule"},
		"no duration":    {"@every day", "", "schedule"},
		"zone":           {"@hourly", "Mars/Olympus", "timezone"},
		"machine's zone": {"@hourly", "Local", "timezone"},
		"climbing zone":  {"@hourly", "../../etc/passwd", "timezone"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTiming(tc.schedule, tc.zone)
			if !errors.Is(err, memory.ErrInvalid) || memory.FieldOf(err) != tc.field || memory.HintOf(err) == "" {
				t.Errorf("parseTiming = %v, want a hinted refusal of %s", err, tc.field)
			}
		})
	}
}

// TestWallClockOnceADay checks that a daily schedule comes exactly once on every
// day of its zone, whatever the clock does.
func TestWallClockOnceADay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Asia/Kathmandu"}).Draw(t, "zone")
		minute, hour := rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(0, 23).Draw(t, "hour")
		tm, err := parseTiming(strings.Join([]string{strconv.Itoa(minute), strconv.Itoa(hour), "*", "*", "*"}, " "), zone)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2025, 12, 31, 23, 59, 59, 0, tm.zone)
		seen := map[string]bool{}
		for {
			if at = tm.next(at).In(tm.zone); at.Year() > 2026 {
				break
			}
			day := at.Format(time.DateOnly)
			if seen[day] {
				t.Fatalf("%d:%d in %s comes twice on %s", hour, minute, zone, day)
			}
			seen[day] = true
		}
		if len(seen) != 365 {
			t.Fatalf("%d:%d in %s came on %d days of 365", hour, minute, zone, len(seen))
		}
	})
}

func FuzzTiming(f *testing.F) {
	for _, s := range []string{"30 2 * * 0", "@every 6h", "@hourly", "*/7 1-5/2 1,15 jan-mar mon", "TZ=", "@every ", "0 , * * *", "1/99999999999 * * * *"} {
		f.Add(s, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, schedule, zone string) {
		if len(schedule) > 4<<10 || len(zone) > 100 {
			return
		}
		tm, err := parseTiming(schedule, zone)
		if err != nil {
			if !errors.Is(err, memory.ErrInvalid) {
				t.Fatalf("parseTiming(%q, %q) = %v, which is not invalid input", schedule, zone, err)
			}
			return
		}
		from := time.Date(2026, 3, 29, 0, 59, 59, 0, time.UTC)
		for range 5 {
			to := tm.next(from)
			if !to.After(from) {
				t.Fatalf("%q in %q: after %s comes %s", schedule, zone, from, to)
			}
			from = to
		}
	})
}
