package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// world is a home with a history in which every statement has a word of its own.
type world struct {
	t      require
	home   string
	now    time.Time
	random *rand.Rand
	said   []statement // by users, in order; the same words may be said again in another session
	own    []string    // words of memories that were written by hand
	notes  int
}

// require is what a test and a rapid test have in common.
type require interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

type statement struct{ session, word, text string }

func newWorld(t require, home string, seed uint64) *world {
	return &world{t: t, home: home, now: time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC), random: rand.New(rand.NewPCG(seed, 7))}
}

// call runs a command in this process, and returns what it printed.
func (w *world) call(args ...string) string {
	w.t.Helper()
	out, err := w.try(args...)
	if err != nil {
		w.t.Fatalf("%q: %v", args, err)
	}
	return out
}

func (w *world) try(args ...string) (string, error) {
	var out, errs bytes.Buffer
	h := newHouse(func() time.Time { return w.now }, func(string) string { return "" }, nil)
	args = append(args, "--home", w.home, "--set", "recall.deadline_ms=20000", "--set", "events.pack_after_days=2", "--set", "log.level=error")
	status := cli.Run(context.Background(), h.app(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if err := h.close(); err != nil {
		return out.String(), err
	}
	if status != 0 {
		return out.String(), fmt.Errorf("status %d: %s %s", status, errs.String(), out.String())
	}
	return out.String(), nil
}

func (w *world) ask(into any, args ...string) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.call(append(args, "--json")...)), into); err != nil {
		w.t.Fatalf("%q: %v", args, err)
	}
}

// word makes a word that stands nowhere else.
func (w *world) word() string {
	b := []byte("qz")
	for range 10 {
		b = append(b, "bcdfghklmnprtvw"[w.random.IntN(15)])
	}
	return string(b)
}

// sentence says something of a word.
func (w *world) sentence(word string) string {
	return fmt.Sprintf([]string{"I like %s tea a lot.", "My friend %s lives in the old harbour.", "I moved to %s with my two cats.", "We decided to call the garden project %s.",
		"Please remember that the cellar key hangs behind %s.", "My doctor is called %s and works on Fridays."}[w.random.IntN(6)], word)
}

// say has a session's user say something, new or what was said before elsewhere.
func (w *world) say(session string, again bool) {
	word := w.word()
	s := statement{session, word, w.sentence(word)}
	if again && len(w.said) > 0 {
		s = w.said[w.random.IntN(len(w.said))]
		s.session = session
	}
	w.call("ask", "--session", session, s.text)
	w.said = append(w.said, s)
}

// importChat imports a conversation of a session.
func (w *world) importChat(session string, turns int) {
	var sb strings.Builder
	for i := range turns {
		word := w.word()
		s := statement{session, word, w.sentence(word)}
		fmt.Fprintf(&sb, `{"n":%d,"role":"user","text":%q,"time":%q,"session":%q}`+"\n", 2*i+1, s.text, w.now.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), session)
		fmt.Fprintf(&sb, `{"n":%d,"role":"assistant","text":%q,"time":%q,"session":%q}`+"\n", 2*i+2, "I see: "+s.text, w.now.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), session)
		w.said = append(w.said, s)
	}
	w.notes++
	path := filepath.Join(filepath.Dir(w.home), fmt.Sprintf("import-%d.jsonl", w.notes))
	if err := os.WriteFile(path, []byte(sb.String()), 0o600); err != nil {
		w.t.Fatalf("%v", err)
	}
	w.call("import", "chat", path)
	if err := os.Remove(path); err != nil {
		w.t.Fatalf("%v", err)
	}
}

func (w *world) anySaid() statement { return w.said[w.random.IntN(len(w.said))] }

func (w *world) items(status string) []memory.Item {
	w.t.Helper()
	var list working.ListResult
	w.ask(&list, "memory", "list", "--status", status, "--limit", "0")
	return list.Items
}

// tool notes the call of a tool in the graph, as a turn does, and in the log.
func (w *world) tool(s statement) {
	h := newHouse(func() time.Time { return w.now }, func(string) string { return "" }, nil)
	h.app()
	if err := h.setup(cli.Options{Home: w.home, Agent: "default"}); err != nil {
		w.t.Fatalf("%v", err)
	}
	log, release, err := h.logs.write(context.Background(), "default")
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	args, result := fmt.Sprintf(`{"query":%q}`, s.text), "found in the notes: "+s.text
	_, err = log.Write(context.Background(),
		memory.Event{Type: memory.ToolCall, Origin: memory.OriginAssistant, SessionID: s.session, Timestamp: w.now, Text: args, Metadata: map[string]any{"tool": "notes.find"}},
		memory.Event{Type: memory.ToolResult, Origin: memory.OriginTool, SessionID: s.session, Timestamp: w.now, Text: result})
	release()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	h.recorder.ToolExecuted("default", graph.ToolExecution{ToolName: "notes.find", AgentID: "default", Args: json.RawMessage(args), Result: json.RawMessage(fmt.Sprintf("%q", result))})
	if err := h.close(); err != nil {
		w.t.Fatalf("%v", err)
	}
}

// step makes one thing happen.
func (w *world) step(kind int) {
	w.now = w.now.Add(time.Duration(1+w.random.IntN(300)) * time.Minute)
	session := fmt.Sprintf("session-%d", w.random.IntN(4))
	switch kind {
	case 0, 1, 2:
		w.say(session, false)
	case 3:
		w.say(session, true)
	case 4:
		w.importChat(fmt.Sprintf("import-%d", w.random.IntN(3)), 1+w.random.IntN(3))
	case 5:
		w.call("memory", "checkpoint")
	case 6:
		word := w.word()
		w.own = append(w.own, word)
		w.call("memory", "write", "--title", "about "+word, "--content", w.sentence(word), "--importance", "4")
	case 7:
		if list := w.items("active"); len(list) > 0 {
			it := list[w.random.IntN(len(list))]
			w.call("memory", "update", it.Handle, "--content", it.Content+" Still so.", "--why", "because of "+it.Title)
		}
	case 8:
		if list := w.items("active"); len(list) > 3 {
			w.call("memory", "forget", list[w.random.IntN(len(list))].Handle)
		}
	case 9:
		w.now = w.now.Add(4 * 24 * time.Hour) // so that days are packed
		w.call("memory", "maintenance")
	case 10:
		s := w.anySaid()
		w.notes++
		w.call("record", "put", "--namespace", "long_term", "--record-kind", "note", "--record-id", fmt.Sprintf("n%d", w.notes), "--payload", fmt.Sprintf(`{"text":%q}`, s.text))
	case 11:
		s := w.anySaid()
		w.call("agent", "message", "send", "You said: "+s.text, "--session-id", s.session)
	case 12:
		w.tool(w.anySaid())
	case 13:
		w.call("graph", "rebuild")
	case 14:
		if list := w.items("active"); len(list) > 0 { // the same by hand: it is merged, or takes the other's place
			it := list[w.random.IntN(len(list))]
			w.call("memory", "write", "--title", it.Title, "--content", it.Content)
		}
	}
}

// log reads the event log.
func (w *world) log() []memory.Event {
	r := events.OpenReader(filepath.Join(w.home, "agents", "default", "memory", "events"), zerolog.Nop())
	defer r.Close()
	var all []memory.Event
	for at := (memory.Cursor{}); ; {
		list, next, err := r.Read(context.Background(), at, 1000)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		if len(list) == 0 {
			return all
		}
		all, at = append(all, list...), next
	}
}

// found returns the handles of what a search for a word finds that has the word.
func (w *world) found(word string) (items, episodes []string) {
	var res recall.Result
	w.ask(&res, "memory", "search", word, "--scope", "all", "--limit", "100")
	for _, it := range res.Items {
		if strings.Contains(it.Title+it.Content, word) {
			items = append(items, it.Handle)
		}
	}
	for _, e := range res.Episodes {
		if strings.Contains(e.Text, word) && e.Origin == memory.OriginUser {
			episodes = append(episodes, e.Handle)
		}
	}
	return items, episodes
}

// inTerms counts the terms of the full-text indexes that begin as a word does: in
// their pages terms do not stand whole.
func (w *world) inTerms(word string) (n int) {
	for file, tables := range map[string][]string{"memory.db": {"memory_fts_terms", "memory_prefix_terms"}, "archive.db": {"m_rows", "p_rows"}} {
		path := filepath.Join(w.home, "agents", "default", "memory", file)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		db, err := sqlite.Open(context.Background(), path, sqlite.Options{ReadOnly: true})
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		for _, table := range tables {
			var here int
			err := db.View(context.Background(), func(tx *sql.Tx) error {
				return tx.QueryRow("SELECT count(*) FROM "+table+" WHERE term LIKE ?", word[:9]+"%").Scan(&here)
			})
			if err != nil {
				w.t.Fatalf("%s: %v", table, err)
			}
			n += here
		}
		if err := db.Close(); err != nil {
			w.t.Fatalf("%v", err)
		}
	}
	return n
}

// aim chooses what to erase: the command's flags, and which events a person would
// say are meant.
func (w *world) aim(selector int) (flags []string, meant func(memory.Event) bool, word string) {
	s := w.anySaid()
	switch selector {
	case 0:
		if !slices.ContainsFunc(w.log(), func(e memory.Event) bool { return e.SessionID == s.session }) {
			return nil, nil, "" // it went with an erasure before: there is no such session
		}
		return []string{"--session", s.session}, func(e memory.Event) bool { return e.SessionID == s.session }, ""
	case 1:
		list := w.items("all")
		list = slices.DeleteFunc(list, func(it memory.Item) bool { return len(it.Evidence) == 0 })
		if len(list) == 0 {
			return nil, nil, ""
		}
		it := list[w.random.IntN(len(list))]
		return []string{"--item", it.Handle}, func(e memory.Event) bool {
			return slices.ContainsFunc(it.Evidence, func(ev memory.Evidence) bool { return ev.EventID == e.ID })
		}, ""
	case 2:
		at := w.now.Add(-time.Duration(w.random.Int64N(int64(w.now.Sub(time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC))))))
		return []string{"--before", at.Format(time.RFC3339)}, func(e memory.Event) bool { return e.Timestamp.Before(at.Truncate(time.Second)) }, ""
	case 3:
		return []string{"--match", strings.ToUpper(s.word)}, func(e memory.Event) bool { return strings.Contains(e.Text, s.word) }, s.word
	default:
		all := w.log()
		all = slices.DeleteFunc(all, func(e memory.Event) bool { return e.Type != memory.UserMessage || e.Text == "" })
		if len(all) == 0 {
			return nil, nil, ""
		}
		chosen := all[w.random.IntN(len(all))]
		return []string{"--event", chosen.ID}, func(e memory.Event) bool { return e.ID == chosen.ID }, ""
	}
}

// words of all statements in a text.
func (w *world) wordsIn(text string) (words []string) {
	for _, s := range w.said {
		if strings.Contains(text, s.word) && !slices.Contains(words, s.word) {
			words = append(words, s.word)
		}
	}
	return words
}

// check erases, and compares what is left with what was there.
func (w *world) check(selector int) {
	flags, meant, match := w.aim(selector)
	if flags == nil {
		return
	}
	before := w.log()
	var goes, stays []string // words of users
	for _, e := range before {
		if e.Type != memory.UserMessage {
			continue
		}
		list := &stays
		if meant(e) {
			list = &goes
		}
		*list = append(*list, w.wordsIn(e.Text)...)
	}
	goes = slices.DeleteFunc(goes, func(word string) bool { return slices.Contains(stays, word) }) // said by somebody else too
	if match != "" && !slices.Contains(goes, match) {
		goes = append(goes, match)
	}
	type hits struct{ items, episodes []string }
	had := map[string]hits{}
	for _, word := range stays {
		if _, seen := had[word]; !seen {
			items, episodes := w.found(word)
			had[word] = hits{items, episodes}
		}
	}
	items := w.items("all")
	var res care.EraseResult
	w.ask(&res, append([]string{"memory", "erase", "--yes"}, flags...)...)
	if len(res.Holding) > 0 {
		w.t.Errorf("%v left %+v", flags, res.Holding)
	}
	w.gone(flags, goes)
	after := w.log()
	if len(after) < len(before) {
		w.t.Fatalf("%v: %d events of %d", flags, len(after), len(before))
	}
	lost := map[string]bool{} // ids of tombstones
	for i, e := range after {
		if e.Seq != int64(i)+1 {
			w.t.Fatalf("%v: event %d has number %d", flags, i+1, e.Seq)
		}
		_, gone := e.Erased()
		if gone {
			lost[e.ID] = true
		}
		if i >= len(before) || e.Type == memory.MemoryChange || e.Type == memory.CheckpointEvent {
			continue
		}
		if _, already := before[i].Erased(); !already && e.Type.IsTurn() {
			switch asked := meant(before[i]); {
			case asked && !gone:
				w.t.Errorf("%v: event %d stays: %s", flags, e.Seq, e.Text)
			case !asked && gone && e.Type == memory.UserMessage:
				w.t.Errorf("%v: event %d is gone: %s", flags, e.Seq, before[i].Text)
			}
		}
	}
	rests := func(it memory.Item) bool {
		return slices.ContainsFunc(it.Evidence, func(ev memory.Evidence) bool { return lost[ev.EventID] })
	}
	left := map[string]memory.Item{}
	for _, it := range w.items("all") {
		left[it.Handle] = it
	}
	for _, it := range items {
		now, is := left[it.Handle]
		switch {
		case slices.Contains(res.Items, it.Handle):
			if is && now.Status != memory.Forgotten {
				w.t.Errorf("%v: %s is still %s", flags, it.Handle, now.Status)
			}
		case rests(it):
			w.t.Errorf("%v: %s stays: %s", flags, it.Handle, it.Content)
		case slices.Contains(res.Cleaned, it.Handle): // it does not say any more what it took the place of
			if !is || now.Status != it.Status {
				w.t.Errorf("%v: %s was %s and is %s", flags, it.Handle, it.Status, now.Status)
			}
		case !is || now.Title != it.Title || now.Content != it.Content:
			w.t.Errorf("%v: %s was %q and is %q", flags, it.Handle, it.Content, now.Content)
		}
	}
	for word, was := range had {
		items, episodes := w.found(word)
		for _, handle := range was.items {
			if !slices.Contains(items, handle) && !slices.Contains(res.Items, handle) && !slices.Contains(res.Cleaned, handle) {
				w.t.Errorf("%v: %s is not found any more by %s", flags, handle, word)
			}
		}
		if len(was.episodes) > 0 && len(episodes) == 0 {
			w.t.Errorf("%v: no episode is found any more by %s", flags, word)
		}
	}
	w.sound(flags)
	// Again it finds nothing to do.
	again, err := w.try(append([]string{"memory", "erase", "--yes", "--json"}, flags...)...)
	if err == nil {
		var more care.EraseResult
		if err := json.Unmarshal([]byte(again), &more); err != nil || more.Events > 0 || len(more.Holding) > 0 {
			w.t.Errorf("%v again: %v, %s", flags, err, again)
		}
	} else if !strings.Contains(err.Error(), "status 3") {
		w.t.Errorf("%v again: %v", flags, err)
	}
	w.gone(flags, goes)
}

// gone checks that words stand in no file.
func (w *world) gone(what any, words []string) {
	w.t.Helper()
	for _, word := range words {
		found, err := filesWith(w.home, word)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		if n := w.inTerms(word); len(found) > 0 || n > 0 {
			w.t.Errorf("%v: %s stands in %v, and in %d terms", what, word, found, n)
		}
	}
}

// sound checks the log, and that a rebuild makes the same.
func (w *world) sound(what any) {
	w.t.Helper()
	w.call("events", "verify")
	var rebuilt care.RebuildResult
	w.ask(&rebuilt, "memory", "rebuild")
	if !rebuilt.Identical {
		w.t.Errorf("%v: a rebuild is not the same: %+v", what, rebuilt)
	}
}

// history is what happens in a world, and what is then erased.
type history struct {
	seed          uint64
	steps         []int
	first, second int // selectors
}

func (x history) live(t require, dir string) {
	w := newWorld(t, filepath.Join(dir, "home"), x.seed)
	w.say("session-0", false)
	w.importChat("import-0", 2)
	for _, kind := range x.steps {
		w.step(kind)
	}
	w.call("memory", "checkpoint")
	w.check(x.first)
	w.say("session-1", false) // it goes on
	w.call("memory", "checkpoint")
	w.check(x.second)
}

// TestErasureOfHistoriesThatLeftSomething goes through histories in which something
// was left.
func TestErasureOfHistoriesThatLeftSomething(t *testing.T) {
	for name, x := range map[string]history{
		// What replaced a memory quoted it, and was itself replaced by one that said the
		// same as the first; that went with an erasure, and then the session of it.
		"a note of a memory that has gone": {seed: 0x78a9, steps: []int{8, 4, 14, 3, 1, 5, 5, 7, 13, 1, 12, 0, 14, 3, 1, 0, 11, 7, 0, 0, 2, 13, 1, 14}, first: 1, second: 0},
		// An answer that goes quoted the end of a memory and the beginning of its note.
		"a quotation across a note": {seed: 0x8799, steps: []int{1, 5, 2, 5, 2, 2, 9, 14, 10, 2, 7, 4, 14, 12, 2, 1, 5, 14, 0, 1, 2}, first: 1, second: 2},
		// SQLite had moved a version that went within its page, and left a copy.
		"a copy in a page's free space": {seed: 0, steps: []int{1, 8, 7, 2, 5, 7, 1, 13, 8, 11, 0, 5, 2, 0}, first: 2, second: 4},
	} {
		t.Run(name, func(t *testing.T) { x.live(t, t.TempDir()) })
	}
}

// TestErasureLeavesNothingAndTakesNothingElse makes histories of every kind and
// erases from them by every selector.
func TestErasureLeavesNothingAndTakesNothingElse(t *testing.T) {
	// Each history takes seconds: six, the same ones every time, so that what fails
	// here is the change. More: -rapid.checks=100 -rapid.seed=N.
	for name, value := range map[string]string{"rapid.checks": "6", "rapid.seed": "1"} {
		f := flag.Lookup(name)
		if f == nil || f.Value.String() != f.DefValue {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := f.Value.Set(f.DefValue); err != nil {
				t.Error(err)
			}
		}()
	}
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		x := history{
			seed:   rapid.Uint64().Draw(r, "seed"),
			steps:  rapid.SliceOfN(rapid.IntRange(0, 14), 8, 24).Draw(r, "steps"),
			first:  rapid.IntRange(0, 4).Draw(r, "selector"),
			second: rapid.IntRange(0, 4).Draw(r, "second selector"),
		}
		x.live(r, dir)
		if err := os.RemoveAll(dir); err != nil {
			r.Fatal(err)
		}
	})
}

// TestErasureFindsWhatWasMadeOfAForgottenMemory forgets memories whose words are not
// those of the turn, and then erases the session: answers elsewhere that told of them,
// and what took their place, are found by their handles.
func TestErasureFindsWhatWasMadeOfAForgottenMemory(t *testing.T) {
	w := newWorld(t, filepath.Join(t.TempDir(), "home"), 3)
	word, later := w.word(), w.word()
	w.say("other", false)
	w.call("ask", "--session", "secret", "I moved to "+word+" with my two cats.")
	w.call("memory", "checkpoint")
	w.now = w.now.Add(time.Hour)
	w.call("ask", "--session", "other", "Where do I live?")
	w.now = w.now.Add(time.Hour)
	w.call("ask", "--session", "other", "I moved to "+later+" with my two cats.")
	w.call("memory", "checkpoint")
	w.call("memory", "report")
	told := 0
	for _, e := range w.log() {
		if e.SessionID == "other" && e.Type == memory.AssistantOutput && strings.Contains(e.Text, word) {
			told++
		}
	}
	if told == 0 {
		t.Fatal("no answer of the other session tells of it")
	}
	for _, it := range w.items("all") {
		if strings.Contains(it.Title, word) {
			w.call("memory", "forget", it.Handle)
		}
	}
	for _, it := range w.items("all") {
		if strings.Contains(it.Title+it.Content, word) {
			t.Errorf("%s still says %q", it.Handle, it.Content)
		}
	}
	w.sound("forgotten")
	w.call("memory", "erase", "--session", "secret", "--yes")
	w.gone("erased", []string{word})
	w.sound("erased")
	if _, episodes := w.found(later); len(episodes) == 0 {
		t.Error("what the other session said is not found any more")
	}
}

// TestForgettingReadsTheLogWhereItMust forgets a memory that was changed often, one
// that took another's place, and one whose history was lost with the other: none
// leaves words in the changes of the log, packed or not.
func TestForgettingReadsTheLogWhereItMust(t *testing.T) {
	w := newWorld(t, filepath.Join(t.TempDir(), "home"), 5)
	var words []string
	for range 3 {
		word := w.word()
		words = append(words, word)
		w.call("memory", "write", "--title", "about "+word, "--content", "The "+word+" hangs behind the door.", "--importance", "4")
		w.now = w.now.Add(time.Hour)
	}
	w.call("memory", "update", "MEM-1", "--content", "The "+words[0]+" hangs in the cellar.", "--why", "about "+words[0]+" I was told otherwise")
	w.now = w.now.Add(5 * 24 * time.Hour)
	w.call("memory", "maintenance") // packs
	w.call("memory", "update", "MEM-2", "--content", "The "+words[1]+" hangs in the attic.", "--why", "The "+words[0]+" hangs in the cellar.")
	for i, handle := range []string{"MEM-1", "MEM-2", "MEM-3"} {
		w.call("memory", "forget", handle)
		for _, e := range w.log() {
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range words[:i+1] {
				if strings.Contains(string(raw), word) {
					t.Errorf("%s is forgotten, and event %d says %s", handle, e.Seq, raw)
				}
			}
		}
		w.sound(handle)
	}
}
