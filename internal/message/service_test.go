package message

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestACheckpointOfWeightIsToldOnce(t *testing.T) {
	r := newRoom(t)
	r.learn("s1", "Mara is allergic to peanuts.")
	r.learn("s1", "Mara has a sister, Ana.")
	r.learn("s1", "Mara likes blue.", func(it *Sourced) { it.Importance = 3 })
	r.learn("s1", "Written by hand.", func(it *Sourced) { it.Checkpoint = "" })
	r.learn("s1", "Made while the model was away.", func(it *Sourced) { it.Provisional = true })
	r.learn("s1", "Known for long.", func(it *Sourced) { it.CreatedAt = r.at.AddDate(0, 0, -8) })
	sent := r.update()
	if len(sent) != 1 || sent[0].Trigger != Learned || len(sent[0].Memories) != 2 || sent[0].UserID != "mara" || sent[0].Channel != "cli" || sent[0].SessionID != "s1" {
		t.Fatalf("sent %+v", sent)
	}
	if want := "I will remember this:\n- Mara is allergic to peanuts. [MEM-1]\n- Mara has a sister, Ana. [MEM-2]"; sent[0].Text != want {
		t.Errorf("text %q, want %q", sent[0].Text, want)
	}
	// A change of an item that was spoken of is no news, nor is a new look.
	r.at = r.at.Add(7 * time.Hour)
	r.change(r.items[agent][0], func(it *Sourced) { it.Confidence = 1 })
	if again := r.update(); len(again) != 0 {
		t.Errorf("told again: %+v", again)
	}
	if in := r.inbox(); len(in) != 1 {
		t.Errorf("inbox %+v", in)
	}
}

func TestWhatCannotBeAddressedIsHeldNotDropped(t *testing.T) {
	r := newRoom(t)
	r.learn("x", "Somebody is allergic to peanuts.")
	r.learn("", "Rests on nothing known.")
	r.learn("s1", "Two people said this.", func(it *Sourced) {
		it.Evidence = append(it.Evidence, memory.Evidence{EventID: "evt_other", Seq: 99})
	})
	r.turns["evt_other"] = Turn{Session: "s2", Time: r.at}
	if sent := r.update(); len(sent) != 0 {
		t.Fatalf("sent %+v", sent)
	}
	reasons := map[string]string{}
	for _, m := range r.held() {
		reasons[m.Memories[0].Handle] = m.Reason
	}
	if reasons["MEM-1"] != "session x has no user_id" || !strings.Contains(reasons["MEM-2"], "rests on no turn") || !strings.Contains(reasons["MEM-3"], "several people") {
		t.Errorf("reasons %q", reasons)
	}
	ex, err := r.service.Explain(context.Background(), agent, IDRequest{ID: "MSG-1"})
	if err != nil || len(ex.Memories) != 1 || !strings.Contains(ex.Todo, "--session x --user") {
		t.Errorf("explain %+v, %v", ex, err)
	}
	// Once the session's user is known the message goes out.
	x := r.sessions["x"]
	x.UserID = "ann"
	r.sessions["x"] = x
	if sent := r.update(); len(sent) != 1 || sent[0].UserID != "ann" {
		t.Errorf("sent %+v", sent)
	}
}

func TestGroupsDoNotHearWhatIsPrivate(t *testing.T) {
	r := newRoom(t)
	r.learn("g", "The group and Mara know this.", func(it *Sourced) {
		it.Evidence = append([]memory.Evidence{{EventID: "evt_private", Seq: 0}}, it.Evidence...)
	})
	r.turns["evt_private"] = Turn{Session: "s1", Time: r.at}
	if sent := r.update(); len(sent) != 1 || sent[0].SessionID != "s1" {
		t.Errorf("sent %+v", sent)
	}
}

func TestAContradictionIsTold(t *testing.T) {
	r := newRoom(t)
	old := r.learn("s1", "Mara lives in Porto.", func(it *Sourced) { it.Importance = 3 })
	r.update()
	r.change(old, func(it *Sourced) { it.Status = memory.Superseded })
	r.learn("s1", "Mara lives in Lisbon.", func(it *Sourced) { it.Importance, it.Supersedes = 3, old.ID })
	sent := r.update()
	if len(sent) != 1 || sent[0].Trigger != Contradiction || !strings.Contains(sent[0].Text, "now: Mara lives in Lisbon.; before: Mara lives in Porto. (MEM-1) [MEM-2]") {
		t.Errorf("sent %+v", sent)
	}
}

func TestQuietHoursCooldownAndCap(t *testing.T) {
	r := newRoom(t)
	r.set.DailyCap = 2
	at := func(s string) {
		t.Helper()
		var err error
		if r.at, err = time.Parse(time.RFC3339, s); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want int, reason, until string) {
		t.Helper()
		if sent := r.update(); len(sent) != want {
			t.Fatalf("%d sent, want %d: %+v", len(sent), want, sent)
		}
		held := r.held()
		if reason == "" {
			if len(held) != 0 {
				t.Fatalf("held %+v", held)
			}
			return
		}
		if len(held) != 1 || !strings.Contains(held[0].Reason, reason) || held[0].Until.Format(time.RFC3339) != until {
			t.Fatalf("held %+v (until %v), want %s until %s", held, held[0].Until, reason, until)
		}
	}
	at("2026-05-12T22:30:00Z") // 23:30 in Lisbon
	r.learn("s1", "One.")
	expect(0, "quiet hours", "2026-05-13T06:00:00Z")
	at("2026-05-13T06:00:00Z")
	expect(1, "", "")
	at("2026-05-13T08:00:00Z")
	r.learn("s1", "Two.")
	expect(0, "cooldown", "2026-05-13T12:00:00Z")
	at("2026-05-13T12:00:00Z")
	expect(1, "", "")
	at("2026-05-13T18:30:00Z")
	r.learn("s1", "Three.")
	expect(0, "daily cap", "2026-05-13T23:00:00Z") // midnight in Lisbon, and quiet then
	at("2026-05-13T23:00:00Z")
	expect(0, "quiet hours", "2026-05-14T06:00:00Z")
	at("2026-05-14T06:00:00Z")
	expect(1, "", "")
	// Another person has a day of their own.
	r.learn("s2", "Noor likes tea.")
	expect(1, "", "")
}

func TestQuietHoursFollowTheClockOnTheWall(t *testing.T) {
	loc := zone(t, "America/New_York")
	s := Settings{QuietFrom: 22 * 60, QuietTo: 2*60 + 30}
	for now, want := range map[string]string{
		"2026-03-07T23:00:00-05:00": "2026-03-08T03:30:00-04:00", // half past two is left out
		"2026-03-08T01:59:00-05:00": "2026-03-08T03:30:00-04:00",
		"2026-03-08T03:31:00-04:00": "",
		"2026-10-31T22:00:00-04:00": "2026-11-01T02:30:00-05:00",
		"2026-11-01T01:30:00-04:00": "2026-11-01T02:30:00-05:00",
		"2026-11-01T01:30:00-05:00": "2026-11-01T02:30:00-05:00",
		"2026-11-01T12:00:00-05:00": "",
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if until, quiet := s.quietUntil(at, loc); quiet {
			got = until.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("at %s quiet until %q, want %q", now, got, want)
		}
	}
}

func TestRemindersComeAndGoWithTheirMemories(t *testing.T) {
	r := newRoom(t) // a Tuesday
	friday := r.learn("s1", "Mara asked for a reminder: remind Mara every Friday at 6:30 am to run.", func(it *Sourced) { it.Kind, it.Importance = memory.KindReminder, 3 })
	vague := r.learn("s1", "Mara wants to be reminded of the candles.", func(it *Sourced) { it.Importance = 3 })
	r.update()
	list := r.reminders()
	if len(list) != 2 || list[0].Item != friday.ID || list[0].Next.Format(time.RFC3339) != "2026-05-15T05:30:00Z" || list[1].Item != vague.ID || list[1].Next != nil || list[1].Reason == "" {
		t.Fatalf("reminders %+v", list)
	}
	r.at = *list[0].Next // half past six, which was asked for
	if sent := r.update(); len(sent) != 1 || sent[0].Trigger != ReminderDue || sent[0].Text != "A reminder:\n- remind Mara every Friday at 6:30 am to run. [MEM-1]" {
		t.Fatalf("sent %+v", sent)
	}
	if sent := r.update(); len(sent) != 0 {
		t.Errorf("sent again %+v", sent)
	}
	// Touched again, it goes on as it was; three weeks of silence come to one message.
	r.change(friday, func(it *Sourced) { it.Confidence = 1 })
	r.at = r.at.AddDate(0, 0, 23)
	sent := r.update()
	if len(sent) != 1 || !strings.Contains(sent[0].Text, "was due on Friday, 5 June 2026, 06:30") {
		t.Errorf("sent %+v", sent)
	}
	// Another time takes the place of the first; a forgotten one is gone, in words too.
	monday := r.change(friday, func(it *Sourced) { it.Content = "Remind Mara every Monday at 9:00 to run." })
	r.update()
	if list := r.reminders(); list[0].Next.Format(stamp) != "Mon 2026-06-08 08:00" {
		t.Errorf("reminders %+v", list)
	}
	r.change(monday, func(it *Sourced) { it.Status, it.Content, it.Title = memory.Forgotten, "", "" })
	r.at = r.at.AddDate(0, 0, 7)
	if sent := r.update(); len(sent) != 0 {
		t.Errorf("sent %+v", sent)
	}
	for _, m := range r.inbox() {
		if strings.Contains(m.Text, "run") {
			t.Errorf("still says %q", m.Text)
		}
	}
	if list := r.reminders(); len(list) != 1 {
		t.Errorf("reminders %+v", list)
	}
}

func TestAnOldHistoryDoesNotRing(t *testing.T) {
	r := newRoom(t)
	it := r.learn("s1", "remind me tomorrow to call Ana", func(it *Sourced) { it.Importance = 3 })
	r.turns[it.Evidence[0].EventID] = Turn{Session: "s1", Time: r.at.AddDate(-2, 0, 0)}
	late := r.learn("s1", "remind me tomorrow to call Ben", func(it *Sourced) { it.Importance = 3 })
	r.turns[late.Evidence[0].EventID] = Turn{Session: "s1", Time: r.at.AddDate(0, 0, -3)}
	sent := r.update()
	if len(sent) != 1 || !strings.Contains(sent[0].Text, "Ben") {
		t.Errorf("sent %+v", sent)
	}
}

func TestWithdrawnWithItsMemory(t *testing.T) {
	r := newRoom(t)
	r.at = time.Date(2026, 5, 12, 23, 30, 0, 0, time.UTC) // quiet
	one := r.learn("s1", "One hunter2.")
	r.learn("s1", "Two.")
	r.update()
	r.change(one, func(it *Sourced) { it.Status, it.Content = memory.Forgotten, "" })
	r.at = r.at.Add(10 * time.Hour)
	if sent := r.update(); len(sent) != 1 || strings.Contains(sent[0].Text, "One") || !strings.Contains(sent[0].Text, "Two. [MEM-2]") {
		t.Errorf("sent %+v", sent)
	}
	three := r.learn("s1", "Three.")
	r.update()
	r.change(three, func(it *Sourced) { it.Status = memory.Superseded })
	r.update()
	if held := r.held(); len(held) != 0 {
		t.Errorf("held %+v", held)
	}
	scan(t, r.dir, "hunter2")
	store, _, err := r.service.Write(context.Background(), agent)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.db.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	scan(t, r.dir, "One")
}

// scan fails where a text stands in a file of the ledger.
func scan(t *testing.T, dir, secret string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%s holds %q", f, secret)
		}
	}
}

func TestErase(t *testing.T) {
	ctx, r := context.Background(), newRoom(t)
	r.set.Cooldown = 0
	gone := r.learn("s1", "remind me every Friday of the wedding")
	r.update()
	r.learn("s1", "Mara likes the colour turquoise.")
	r.update()
	r.learn("s2", "Noor has a parrot.")
	r.update()
	r.learn("s1", "Mara likes tea.")
	r.update()
	store, _, err := r.service.Write(ctx, agent)
	if err != nil {
		t.Fatal(err)
	}
	n, err := store.Erase(ctx, func(b []byte) bool { return bytes.Contains(b, []byte("turquoise")) },
		func(of Ref) bool { return of.ID == gone.ID }, func(id string) bool { return id == "s2" })
	if err != nil || n != 4 {
		t.Errorf("Erase = %d, %v, want three messages and a reminder", n, err)
	}
	if in := r.inbox(); len(in) != 1 || !strings.Contains(in[0].Text, "tea") || len(r.reminders()) != 0 {
		t.Errorf("inbox %+v, reminders %+v", in, r.reminders())
	}
	for _, word := range []string{"wedding", "turquoise", "parrot"} {
		scan(t, r.dir, word)
	}
}

func TestMuteSnoozeAck(t *testing.T) {
	ctx, r := context.Background(), newRoom(t)
	if _, err := r.service.Mute(ctx, agent, MuteRequest{What: "MEM-2", For: "2h"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.service.Mute(ctx, agent, MuteRequest{What: "noise"}); memory.FieldOf(err) != "what" {
		t.Errorf("Mute = %v", err)
	}
	r.learn("s1", "One.")
	r.update()
	r.learn("s2", "Two.")
	if sent := r.update(); len(sent) != 0 || len(r.held()) != 1 || r.held()[0].Reason != "MEM-2 is muted" {
		t.Fatalf("sent %+v, held %+v", sent, r.held())
	}
	r.at = r.at.Add(2 * time.Hour)
	if sent := r.update(); len(sent) != 1 || sent[0].UserID != "noor" {
		t.Errorf("after the mute %+v", sent)
	}
	v := Viewer{SessionID: "other", Channel: "cli", UserID: "mara", Private: true}
	if list, err := r.service.Take(ctx, agent, v); err != nil || len(list) != 1 || list[0].Handle != "MSG-1" {
		t.Fatalf("Take = %+v, %v", list, err)
	}
	if list, err := r.service.Take(ctx, agent, v); err != nil || len(list) != 0 {
		t.Errorf("shown twice: %+v, %v", list, err)
	}
	if _, err := r.service.Snooze(ctx, agent, SnoozeRequest{ID: "MSG-1", For: "-1h"}); memory.FieldOf(err) != "for" {
		t.Errorf("Snooze = %v", err)
	}
	if _, err := r.service.Snooze(ctx, agent, SnoozeRequest{ID: "MSG-1", For: "15h"}); err != nil {
		t.Fatal(err)
	}
	r.at = r.at.Add(15 * time.Hour) // in the night, as was asked for
	if list, err := r.service.Take(ctx, agent, v); err != nil || len(list) != 1 {
		t.Errorf("after the snooze %+v, %v", list, err)
	}
	if m, err := r.service.Ack(ctx, agent, IDRequest{ID: "MSG-1"}); err != nil || m.Message.State != Acked {
		t.Errorf("Ack = %+v, %v", m, err)
	}
	if in, err := r.service.Inbox(ctx, agent, InboxRequest{}); err != nil || len(in.Messages) != 1 {
		t.Errorf("inbox %+v, %v", in, err)
	}
	// From a session, what is another's cannot be touched or seen.
	inS1 := memory.WithSession(ctx, r.sessions["s1"])
	if _, err := r.service.Ack(inS1, agent, IDRequest{ID: "MSG-2"}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Ack of another's = %v", err)
	}
	if in, err := r.service.Inbox(inS1, agent, InboxRequest{All: true}); err != nil || len(in.Messages) != 1 || in.Messages[0].UserID != "mara" {
		t.Errorf("inbox of a session %+v, %v", in, err)
	}
}

func TestSend(t *testing.T) {
	ctx, r := context.Background(), newRoom(t)
	r.learn("s1", "Mara is ill.", func(it *Sourced) { it.Importance = 3 })
	inS1 := memory.WithSession(memory.WithActor(ctx, memory.OriginAssistant), r.sessions["s1"])
	for name, tc := range map[string]struct {
		ctx   context.Context
		in    SendRequest
		state State
		kind  memory.Kind
	}{
		"to a session":              {ctx, SendRequest{Text: "hello hunter2", SessionID: "s1"}, InInbox, ""},
		"by evidence":               {ctx, SendRequest{Text: "get well", Memories: []string{"MEM-1"}}, InInbox, ""},
		"from a session":            {inS1, SendRequest{Text: "from here"}, InInbox, ""},
		"to nobody":                 {ctx, SendRequest{Text: "hm"}, Held, ""},
		"to a session without user": {ctx, SendRequest{Text: "hm", SessionID: "x"}, Held, ""},
		"with what is missing":      {ctx, SendRequest{Text: "hm", SessionID: "x", UserID: "ann"}, InInbox, ""},
		"another user":              {ctx, SendRequest{Text: "hm", SessionID: "s1", UserID: "bob"}, "", memory.ErrInvalid},
		"nothing":                   {ctx, SendRequest{Text: "\u200b "}, "", memory.ErrInvalid},
		"unknown memory":            {ctx, SendRequest{Text: "hm", Memories: []string{"MEM-77"}}, "", memory.ErrNotFound},
		"private to another":        {ctx, SendRequest{Text: "hm", Memories: []string{"MEM-1"}, SessionID: "s2"}, "", memory.ErrDenied},
		"private to a group":        {ctx, SendRequest{Text: "hm", Memories: []string{"MEM-1"}, SessionID: "g"}, "", memory.ErrDenied},
		"from a session to another": {inS1, SendRequest{Text: "hm", SessionID: "s2"}, "", memory.ErrDenied},
		"to itself":                 {ctx, SendRequest{Text: "hm", To: "a"}, "", memory.ErrInvalid},
		"to an agent unasked":       {ctx, SendRequest{Text: "hm", To: "b"}, "", memory.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			r.at = startOf(r.at).AddDate(0, 0, 2).Add(11 * time.Hour)
			res, err := r.service.Send(tc.ctx, agent, tc.in)
			if tc.kind != "" {
				if !errors.Is(err, tc.kind) {
					t.Errorf("%v, want %s", err, tc.kind)
				}
				return
			}
			if err != nil || res.Message.State != tc.state || res.Duplicate {
				t.Fatalf("%+v, %v", res, err)
			}
			again, err := r.service.Send(tc.ctx, agent, tc.in)
			if err != nil || !again.Duplicate || again.Message.ID != res.Message.ID {
				t.Errorf("again %+v, %v", again, err)
			}
			r.at = r.at.Add(7 * time.Hour)
			if later, err := r.service.Send(tc.ctx, agent, tc.in); err != nil || later.Duplicate {
				t.Errorf("later %+v, %v", later, err)
			}
		})
	}
	scan(t, r.dir, "hunter2")
}

func TestAgentsWriteToEachOther(t *testing.T) {
	ctx, r := context.Background(), newRoom(t)
	r.set.Agents = []string{"b", "nobody"}
	if _, err := r.service.Send(ctx, agent, SendRequest{Text: "hm", To: "nobody"}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("to nobody: %v", err)
	}
	for range 2 {
		if _, err := r.service.Send(ctx, agent, SendRequest{Text: "please look", To: "b", Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := r.service.Inbox(ctx, "b", InboxRequest{})
	if err != nil || len(res.Messages) != 1 || res.Messages[0].From != agent || res.Messages[0].Text != "please look" {
		t.Errorf("inbox of b %+v, %v", res, err)
	}
	if len(r.passed) != 1 || r.passed[0].To != "b" {
		t.Errorf("passed %+v", r.passed)
	}
	if own := r.inbox(); len(own) != 0 {
		t.Errorf("own inbox %+v", own)
	}
}

func TestWhatMaintenanceMarksIsAskedOnceForEachReason(t *testing.T) {
	r := newRoom(t)
	r.set.Cooldown = 0
	it := r.learn("s1", "Mara works at Acme.", func(it *Sourced) { it.Importance = 3 })
	r.update()
	var texts []string
	look := func(marks ...string) {
		t.Helper()
		r.at = r.at.AddDate(0, 0, 14)
		it = r.change(it, func(it *Sourced) { it.Verify = marks })
		for _, m := range r.update() {
			texts = append(texts, string(m.Trigger)+": "+m.Text)
		}
	}
	look(memory.MarkOld)
	look(memory.MarkOld) // found again after two weeks
	look()
	look(memory.MarkOld)
	look(memory.MarkOld, memory.MarkLowConfidence)
	look(memory.MarkContradicts + "MEM-2")
	want := []string{
		"verify: Is this still right?\n- Mara works at Acme. (not confirmed for a long time) [MEM-1]",
		"verify: Is this still right?\n- Mara works at Acme. (low confidence) [MEM-1]",
		"contradiction: These do not go together. Which one is right?\n- Mara works at Acme. (contradicts MEM-2) [MEM-1]",
	}
	if fmt.Sprintf("%q", texts) != fmt.Sprintf("%q", want) {
		t.Errorf("asked %q, want %q", texts, want)
	}
	for range 30 {
		r.learn("s1", "An important thing.", func(it *Sourced) {
			it.Checkpoint, it.Verify = "", []string{memory.MarkOld}
		})
	}
	if sent := r.update(); len(sent) != 1 || sent[0].Trigger != Stale || len(sent[0].Memories) != mostAsked || !strings.Contains(sent[0].Text, "22 more: openclawssy memory list --verify") {
		t.Errorf("sent %+v", sent)
	}
}

// TestAnOldHistoryIsNoNews has a ledger begin over memories that were there before,
// and memory that was made anew under a ledger.
func TestAnOldHistoryIsNoNews(t *testing.T) {
	r := newRoom(t)
	for i := range pageOf + 100 { // more than one page
		r.learn("s1", fmt.Sprint("Known before ", i), func(it *Sourced) {
			it.CreatedAt, it.ChangedAt = r.at.AddDate(0, 0, -1), r.at.AddDate(0, 0, -1)
			it.Verify = []string{memory.MarkOld}
		})
	}
	r.learn("s1", "An imported one.", func(it *Sourced) { it.Evidence[0].SourceID = "D1:3" })
	long := r.learn("s1", "Said long ago, distilled now.")
	r.turns[long.Evidence[0].EventID] = Turn{Session: "s1", Time: r.at.AddDate(0, 0, -8)}
	if sent, held := r.update(), r.held(); len(sent)+len(held) != 0 {
		t.Fatalf("sent %+v, held %+v", sent, held)
	}
	r.at = r.at.Add(3 * time.Hour)
	r.learn("s1", "This is new.")
	r.at = r.at.Add(2 * time.Hour)
	if sent := r.update(); len(sent) != 1 || !strings.Contains(sent[0].Text, "This is new.") {
		t.Fatalf("sent %+v", sent)
	}
	// A memory of other ids, as after another history was restored: the mark is none
	// of it.
	r.items[agent] = nil
	r.learn("s1", "Of the other history.", func(it *Sourced) { it.CreatedAt = r.at.Add(-2 * time.Hour) })
	r.at = r.at.Add(24 * time.Hour)
	if sent, held := r.update(), r.held(); len(sent)+len(held) != 0 {
		t.Errorf("sent %+v, held %+v", sent, held)
	}
}

func TestSwitchedOff(t *testing.T) {
	r := newRoom(t)
	r.set.Enabled = false
	r.learn("s1", "One.")
	r.update()
	if _, err := r.service.Send(context.Background(), agent, SendRequest{Text: "hm", SessionID: "s1"}); !errors.Is(err, memory.ErrDenied) {
		t.Errorf("Send = %v", err)
	}
	if files, err := os.ReadDir(r.dir); err != nil || len(files) != 0 {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestReadsCreateNothing(t *testing.T) {
	r := newRoom(t)
	if in, held, rem := r.inbox(), r.held(), r.reminders(); len(in)+len(held)+len(rem) != 0 || in == nil || held == nil || rem == nil {
		t.Errorf("%v %v %v", in, held, rem)
	}
	if _, err := r.service.Ack(context.Background(), agent, IDRequest{ID: "MSG-1"}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Ack = %v", err)
	}
	if files, err := os.ReadDir(r.dir); err != nil || len(files) != 0 {
		t.Errorf("files %v, %v", files, err)
	}
}

// TestTwoProcessesSendOnce has two services with stores of their own follow, ring
// and send the same at once.
func TestTwoProcessesSendOnce(t *testing.T) {
	r := newRoom(t)
	r.set.DailyCap, r.set.Cooldown = 1000, 0
	both := []*Service{r.service, r.open()}
	for i := range 40 {
		r.learn("s1", fmt.Sprint("Fact ", i))
		r.learn("s1", fmt.Sprintf("remind me in %d minutes to look", i+1), func(it *Sourced) { it.Importance = 3 })
	}
	for range 50 {
		r.at = r.at.Add(time.Minute)
		var wg sync.WaitGroup
		for _, s := range both {
			wg.Go(func() {
				if _, err := s.Update(context.Background(), agent); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	count := map[string]int{}
	for _, m := range r.inbox() {
		for _, ref := range m.Memories {
			count[string(m.Trigger)+ref.ID]++
		}
	}
	if len(count) != 80 {
		t.Errorf("%d memories were spoken of, want 80", len(count))
	}
	for what, n := range count {
		if n != 1 {
			t.Errorf("%s %d times", what, n)
		}
	}
}

// TestNinetyDays lives through them by the minute of what is due: nothing is said
// twice, no reminder is missed, nothing in quiet hours, no day over its cap, and
// an idle agent makes nothing.
func TestNinetyDays(t *testing.T) {
	r := newRoom(t)
	r.at = time.Date(2026, 2, 20, 8, 0, 0, 0, time.UTC) // both clocks change on the way
	loc := zone(t, "Europe/Lisbon")
	r.learn("s1", "remind me every Friday at 10:00 to send the report", func(it *Sourced) { it.Importance = 3 })
	r.learn("s1", "remind me every day to stretch", func(it *Sourced) { it.Importance = 3 })
	end := r.at.AddDate(0, 0, 90)
	nextFact := r.at
	var sent []Message
	for steps := 0; r.at.Before(end); steps++ {
		if steps > 5000 {
			t.Fatalf("%d looks by %s: something is due again and again", steps, r.at)
		}
		if !nextFact.After(r.at) {
			r.learn("s1", fmt.Sprint("Fact of ", r.at))
			nextFact = nextFact.Add(29 * time.Hour)
		}
		sent = append(sent, r.update()...)
		next, err := r.service.Due(context.Background(), agent)
		if err != nil {
			t.Fatal(err)
		}
		if next.IsZero() || next.After(nextFact) {
			next = nextFact
		}
		if !next.After(r.at) {
			t.Fatalf("still due at %s: %s; held %+v", r.at, next, r.held())
		}
		r.at = next
	}
	said, days, rung := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, m := range sent {
		if said[m.ID] {
			t.Errorf("twice: %+v", m)
		}
		said[m.ID] = true
		local := m.SentAt.In(loc)
		days[local.Format(time.DateOnly)]++
		if h := local.Hour(); h < 7 || h >= 22 {
			t.Errorf("sent at %s", local)
		}
		if m.Trigger == ReminderDue {
			rung[m.Memories[0].Handle]++
			if m.Memories[0].Handle == "MEM-1" && local.Format("Mon 15:04") != "Fri 10:00" || m.Memories[0].Handle == "MEM-2" && local.Format("15:04") != "09:00" {
				t.Errorf("%s rang on %s", m.Memories[0].Handle, local)
			}
		}
	}
	for d, n := range days {
		if n > r.set.DailyCap {
			t.Errorf("%d messages on %s", n, d)
		}
	}
	if rung["MEM-1"] != 13 || rung["MEM-2"] != 90 || len(sent)-103 < 70 {
		t.Errorf("rang %v, %d sent in all", rung, len(sent))
	}
	// Idle: nothing is due, and a look changes no byte.
	idle := newRoom(t)
	idle.learn("s1", "One.")
	idle.update()
	before := idle.inbox()
	for range 90 {
		idle.at = idle.at.AddDate(0, 0, 1)
		if due, err := idle.service.Due(context.Background(), agent); err != nil || !due.IsZero() {
			t.Fatalf("due %s, %v", due, err)
		}
		if sent := idle.update(); len(sent) != 0 {
			t.Errorf("an idle agent says %+v", sent)
		}
	}
	if after := idle.inbox(); len(after) != len(before) {
		t.Errorf("%d messages, %d before", len(after), len(before))
	}
}

// TestClockJumps sets the clock forth and back by three days and to 1970.
func TestClockJumps(t *testing.T) {
	r := newRoom(t)
	r.learn("s1", "remind me every day at 9:00 to stretch", func(it *Sourced) { it.Importance = 3 })
	r.update()
	ids := map[string]bool{}
	for _, jump := range []time.Duration{24 * time.Hour, 72 * time.Hour, -72 * time.Hour, 24 * time.Hour, time.Unix(0, 0).Sub(r.at), r.at.Sub(time.Unix(0, 0)), 96 * time.Hour, 24 * time.Hour} {
		r.at = r.at.Add(jump)
		for _, m := range r.update() {
			if ids[m.ID] {
				t.Errorf("twice after %s: %+v", jump, m)
			}
			ids[m.ID] = true
		}
	}
	if len(ids) < 4 {
		t.Errorf("%d messages", len(ids))
	}
}
