package message

import (
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

const stamp = "Mon 2006-01-02 15:04"

// said is a Tuesday.
func saidAt(loc *time.Location) time.Time { return time.Date(2026, 5, 12, 11, 30, 0, 0, loc) }

func TestWhenAReminderIsDue(t *testing.T) {
	loc := zone(t, "Europe/Lisbon")
	for said, want := range map[string][]string{
		// Again and again.
		"remind me every Friday to send the report":                             {"Fri 2026-05-15 09:00", "Fri 2026-05-22 09:00"},
		"could you remind User every Thursday to feed the sourdough?":           {"Thu 2026-05-14 09:00", "Thu 2026-05-21 09:00"},
		"remind me every Monday at 10:00 about the rent":                        {"Mon 2026-05-18 10:00", "Mon 2026-05-25 10:00"},
		"The user wants to be reminded on Fridays at 5pm to log hours.":         {"Fri 2026-05-15 17:00", "Fri 2026-05-22 17:00"},
		"remind me to send the report every Friday":                             {"Fri 2026-05-15 09:00", "Fri 2026-05-22 09:00"},
		"remind me every Monday, Wednesday and Friday at 7.15 pm to train":      {"Wed 2026-05-13 19:15", "Fri 2026-05-15 19:15", "Mon 2026-05-18 19:15"},
		"remind me every second Friday to water the fern":                       {"Fri 2026-05-15 09:00", "Fri 2026-05-29 09:00"},
		"remind me every two weeks on Thursday to pay":                          {"Thu 2026-05-14 09:00", "Thu 2026-05-28 09:00"},
		"remind me every day at noon to stretch":                                {"Tue 2026-05-12 12:00", "Wed 2026-05-13 12:00"},
		"remind me daily at 8 in the evening to write":                          {"Tue 2026-05-12 20:00", "Wed 2026-05-13 20:00"},
		"remind me every morning to take the pills":                             {"Wed 2026-05-13 09:00", "Thu 2026-05-14 09:00"},
		"remind me every 3 days to water the ferns":                             {"Fri 2026-05-15 09:00", "Mon 2026-05-18 09:00"},
		"remind me on weekdays? no: every weekday at 8:30 to stand up":          {"Wed 2026-05-13 08:30", "Thu 2026-05-14 08:30", "Fri 2026-05-15 08:30", "Mon 2026-05-18 08:30"},
		"remind me every 2 hours to drink water":                                {"Tue 2026-05-12 13:30", "Tue 2026-05-12 15:30"},
		"remind me every month on the 5th to pay rent":                          {"Fri 2026-06-05 09:00", "Sun 2026-07-05 09:00"},
		"remind me on the 31st of every month to close the books":               {"Sun 2026-05-31 09:00", "Tue 2026-06-30 09:00"},
		"remind me on the last day of each month to close the books":            {"Sun 2026-05-31 09:00", "Tue 2026-06-30 09:00"},
		"remind me on the first Monday of every month at 14:00 of the plenary":  {"Mon 2026-06-01 14:00", "Mon 2026-07-06 14:00"},
		"remind me on the last Friday of each month to invoice":                 {"Fri 2026-05-29 09:00", "Fri 2026-06-26 09:00"},
		"remind me every year on 14 September of our anniversary":               {"Mon 2026-09-14 09:00", "Tue 2027-09-14 09:00"},
		"remind me every 29 February to jump":                                   {"Sun 2027-02-28 09:00", "Tue 2028-02-29 09:00"},
		"remind me every quarter to file the tax":                               {"Wed 2026-08-12 09:00", "Thu 2026-11-12 09:00"},
		"remind me tomorrow to read the weekly report":                          {"Wed 2026-05-13 09:00"},
		"User asked for a reminder: remind User tomorrow (2026-05-13) to call.": {"Wed 2026-05-13 09:00"},
		// Once.
		"remind me on 14 September to renew the passport":                              {"Mon 2026-09-14 09:00"},
		"remind me on 14 September 2027 at 10:00 to renew":                             {"Tue 2027-09-14 10:00"},
		"remind me on 3 March to file taxes":                                           {"Wed 2027-03-03 09:00"},
		"remind me on Monday to water the ferns":                                       {"Mon 2026-05-18 09:00"},
		"remind me next Friday at 3 pm of the talk":                                    {"Fri 2026-05-15 15:00"},
		"remind me at 5 to leave":                                                      {"Tue 2026-05-12 17:00"},
		"remind me at 10 am to leave":                                                  {"Wed 2026-05-13 10:00"},
		"remind me tonight to lock up":                                                 {"Tue 2026-05-12 20:00"},
		"remind me in 20 minutes to turn the oven off":                                 {"Tue 2026-05-12 11:50"},
		"remind me in half an hour to turn the oven off":                               {"Tue 2026-05-12 12:00"},
		"remind me in two weeks to ask Ana":                                            {"Tue 2026-05-26 09:00"},
		"remind me on the 20th to pay":                                                 {"Wed 2026-05-20 09:00"},
		"remind me on the 5th to pay":                                                  {"Fri 2026-06-05 09:00"},
		"My passport expires on 14 September 2026, please remind me two weeks before.": {"Mon 2026-08-31 09:00"},
		"remind me the evening before 14 September to pack":                            {"Sun 2026-09-13 18:00"},
		"The dentist is on 2026-06-02 at 15:30.":                                       {"Tue 2026-06-02 15:30"},
		"remind me at midnight to look up":                                             {"Wed 2026-05-13 00:00"},
	} {
		r, ok := parseWhen(said, saidAt(loc))
		if !ok {
			t.Errorf("%q: no time", said)
			continue
		}
		at := saidAt(loc)
		for i, w := range want {
			if at = r.next(at, loc); at.IsZero() || at.In(loc).Format(stamp) != w {
				t.Errorf("%q: time %d is %s, want %s (%+v)", said, i+1, at.In(loc).Format(stamp), w, r)
				break
			}
		}
	}
}

func TestNoTimeIsInvented(t *testing.T) {
	for _, said := range []string{"don't let me forget the candles", "remind me to call Ana", "remind me when the parcel comes", "remind me about the weekly report", "", "remind me on 31 February to laugh"} {
		if r, ok := parseWhen(said, saidAt(time.UTC)); ok {
			t.Errorf("%q: %+v", said, r)
		}
	}
}

func TestIsReminder(t *testing.T) {
	for content, want := range map[string]bool{
		"User prefers to be reminded every Friday.": true,
		"Remind User of the rent on Mondays.":       true,
		"User does not want to be reminded of it.":  false,
		"Please stop reminding me every Friday.":    false,
		"User likes tea.":                           false,
	} {
		if got := isReminder(memory.Item{Kind: memory.KindPreference, Content: content, Trust: memory.TrustUser}); got != want {
			t.Errorf("%q: %v", content, got)
		}
	}
	for _, trust := range []memory.Trust{memory.TrustTool, memory.TrustWeb, memory.TrustAgent} {
		if isReminder(memory.Item{Kind: memory.KindReminder, Content: "remind the user every Friday to pay", Trust: trust}) {
			t.Errorf("a reminder by %s", trust)
		}
	}
}

// TestRemindersFollowTheClockOnTheWall crosses both changes of a year.
func TestRemindersFollowTheClockOnTheWall(t *testing.T) {
	loc := zone(t, "America/New_York") // 2026-03-08 02:00 is left out, 2026-11-01 01:00 comes twice
	for _, tc := range []struct {
		said  string
		from  time.Time
		wants []string
	}{
		{"remind me every day at 02:30 to wake", time.Date(2026, 3, 7, 0, 0, 0, 0, loc), []string{"2026-03-07T02:30:00-05:00", "2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"remind me every day at 01:30 am to wake", time.Date(2026, 10, 31, 0, 0, 0, 0, loc), []string{"2026-10-31T01:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"remind me every Sunday at 9:00 to rest", time.Date(2026, 2, 28, 0, 0, 0, 0, loc), []string{"2026-03-01T09:00:00-05:00", "2026-03-08T09:00:00-04:00"}},
	} {
		r, ok := parseWhen(tc.said, tc.from)
		if !ok {
			t.Fatalf("%q: no time", tc.said)
		}
		at := tc.from
		for _, want := range tc.wants {
			if at = r.next(at, loc); at.Format(time.RFC3339) != want {
				t.Errorf("%q: %s, want %s", tc.said, at.Format(time.RFC3339), want)
			}
		}
	}
}

func FuzzWhen(f *testing.F) {
	for _, s := range []string{"remind me every Friday at 10:00", "every 0 days", "in 999 hours", "every 29 February", "the 99th of every month", "at 24:61", "every other weekend at noon", "29 Feb 0000"} {
		f.Add(s, int64(1778585400))
	}
	loc := zone(f, "America/New_York")
	f.Fuzz(func(t *testing.T, s string, unix int64) {
		if len(s) > 4096 || unix < 0 || unix > 1<<33 {
			t.Skip()
		}
		at := time.Unix(unix, 0).In(loc)
		r, ok := parseWhen(s, at)
		if !ok {
			return
		}
		for range 3 {
			next := r.next(at, loc)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q: %s is followed by %s (%+v)", s, at, next, r)
			}
			at = next
		}
	})
}
