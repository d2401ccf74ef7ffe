//go:build fault && linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	rt "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runtime"
)

// Variables that tell a child where the model is, and by how much its clock is
// ahead: a process that was killed leaves a lease behind, and nobody waits here
// until that has passed.
const (
	lifeModel = "LIFE_MODEL_URL"
	lifeAhead = "LIFE_AHEAD"
	// lifeSlower says how many times as long the pauses between what it does are.
	lifeSlower = "LIFE_SLOWER"
	// lifeGrows says for how long something new is said; then only what is there is
	// used. Whoever is told so tells the heap in use now and then: "heap", when, KiB.
	lifeGrows = "LIFE_GROWS"
)

// lifetime is a memory with a model, as it is used: whatever is said has a word of
// its own, which is acknowledged once it is durable.
type lifetime struct {
	house   *house
	catalog *op.Catalog
	agent   memory.AgentID
	ack     func(line string) error
}

// lifeSettings are the configuration of a life.
func lifeSettings(model string) []string {
	set := []string{"log.level=error", "spend.daily_tokens=0", "spend.daily_calls=0", "spend.total_tokens=0", "spend.total_calls=0", "recall.deadline_ms=20000", "memory.max_working_items=0"}
	if model != "" {
		set = append(set, "model.provider=generic", "model.name=stub", "model.base_url="+model, "model.timeout=1m", "model.max_retries=1")
	}
	return set
}

// newLifetime opens a home. Nothing is written before something is said.
func newLifetime(home, model string, now func() time.Time, ack func(string) error, more ...string) (*lifetime, error) {
	h := newHouse(now, func(string) string { return "" }, nil)
	app := h.app()
	if err := h.setup(cli.Options{Home: home, Agent: "default", Set: append(lifeSettings(model), more...)}); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return &lifetime{house: h, catalog: app.Catalog, agent: "default", ack: ack}, nil
}

// clockAhead is the time, so much ahead.
func clockAhead(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

// call calls an operation and reads its result into out, unless that is nil.
func (l *lifetime) call(ctx context.Context, name string, in, out any) error {
	o, err := l.catalog.Get(name)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	res, err := o.Call(ctx, l.agent, raw)
	if err != nil || out == nil {
		return err
	}
	if raw, err = json.Marshal(res); err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// lifeWord is a word that nobody has said yet.
func lifeWord() string {
	text := make([]byte, 14)
	for i := range text {
		text[i] = "bcdfghjklmnpqrstvwxz"[rand.IntN(20)]
		if i%2 == 1 {
			text[i] = "aeiou"[rand.IntN(5)]
		}
	}
	return string(text)
}

func sentence(word string) string {
	return fmt.Sprintf("I keep the %s in the %s.", word, lifeWord())
}

// talk is a turn with the model.
func (l *lifetime) talk(ctx context.Context) error {
	word := lifeWord()
	_, err := l.house.turns.Run(ctx, runtime.Turn{Agent: l.agent, Session: memory.Session{ID: "s1", Channel: "cli"}, Text: sentence(word)})
	if err != nil {
		return err
	}
	return l.ack("said " + word)
}

// jot makes a few turns durable without a model.
func (l *lifetime) jot(ctx context.Context, n int) error {
	log, release, err := l.house.logs.write(ctx, l.agent)
	if err != nil {
		return err
	}
	defer release()
	words := make([]string, n)
	for i := range words {
		words[i] = lifeWord()
		if _, err := log.Append(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s2", Text: sentence(words[i])}); err != nil {
			return err
		}
	}
	if err := log.Flush(ctx); err != nil {
		return err
	}
	return l.ack("said " + strings.Join(words, " "))
}

// importHistory imports a conversation of n turns.
func (l *lifetime) importHistory(ctx context.Context, n int) error {
	words := make([]string, n)
	var text strings.Builder
	at := l.house.now().Add(-time.Hour)
	session := "i-" + lifeWord()
	for i := range words {
		words[i] = lifeWord()
		line, err := json.Marshal(map[string]any{"n": i + 1, "role": "user", "text": sentence(words[i]), "time": at.Add(time.Duration(i) * time.Second).Format(time.RFC3339), "session": session})
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	rep, err := l.house.importChat(ctx, l.agent, strings.NewReader(text.String()))
	if err != nil {
		return err
	}
	if rep.Imported != n {
		return fmt.Errorf("%d of %d turns were imported", rep.Imported, n)
	}
	return l.ack("said " + strings.Join(words, " "))
}

// note writes a memory by hand.
func (l *lifetime) note(ctx context.Context) error {
	word := lifeWord()
	if err := l.call(ctx, "memory.write", map[string]any{"title": "note " + word, "content": "Note: the " + word + " is noted."}, nil); err != nil {
		return err
	}
	return l.ack("noted " + word)
}

// search looks for something.
func (l *lifetime) search(ctx context.Context) error {
	return l.call(ctx, "memory.search", map[string]any{"text": "where do I keep the " + lifeWord(), "scope": "all"}, nil)
}

// checkpoint and maintain run one; that another one is at it is no failure.
func (l *lifetime) checkpoint(ctx context.Context) error {
	var res checkpoint.Result
	if err := l.call(ctx, "memory.checkpoint", checkpoint.Request{}, &res); err != nil {
		return unlessBusy(err)
	}
	return l.ack("distilled")
}

func (l *lifetime) maintain(ctx context.Context) error {
	if err := l.call(ctx, "memory.maintenance", struct{}{}, nil); err != nil {
		return unlessBusy(err)
	}
	return l.ack("maintained")
}

func unlessBusy(err error) error {
	if errors.Is(err, memory.ErrConflict) {
		return nil
	}
	return err
}

// opened opens the life that the environment of a child names.
func opened(dir string, ack func(string) error) (*lifetime, error) {
	skew, err := time.ParseDuration(cmp.Or(os.Getenv(lifeAhead), "0s"))
	if err != nil {
		return nil, err
	}
	return newLifetime(dir, os.Getenv(lifeModel), clockAhead(skew), ack)
}

// ingestPart takes turns until it is killed.
func ingestPart(dir string, ack func(string) error) error {
	l, err := opened(dir, ack)
	if err != nil {
		return err
	}
	for {
		if err := l.jot(context.Background(), 1+rand.IntN(40)); err != nil {
			return err
		}
	}
}

// lifePart does everything at once until it is killed.
func lifePart(dir string, ack func(string) error) error {
	l, err := opened(dir, ack)
	if err != nil {
		return err
	}
	ctx := context.Background()
	slower, err := strconv.Atoi(cmp.Or(os.Getenv(lifeSlower), "1"))
	if err != nil {
		return err
	}
	if err := l.jot(ctx, 1); err != nil { // there is something to search and export then
		return err
	}
	failed := make(chan error)
	often := func(pause time.Duration, do func(context.Context) error) {
		go func() {
			for {
				if err := do(ctx); err != nil {
					if !errors.Is(err, errGrown) {
						failed <- err
					}
					return
				}
				time.Sleep(time.Duration(rand.Int64N(int64(pause) * int64(slower))))
			}
		}()
	}
	grows, err := tellHeap(ack, failed)
	if err != nil {
		return err
	}
	often(3*time.Millisecond, grows(l.talk))
	often(3*time.Millisecond, grows(func(ctx context.Context) error { return l.jot(ctx, 1+rand.IntN(4)) }))
	often(20*time.Millisecond, grows(func(ctx context.Context) error { return l.importHistory(ctx, 1+rand.IntN(20)) }))
	often(2*time.Millisecond, l.checkpoint)
	often(30*time.Millisecond, l.maintain)
	often(10*time.Millisecond, grows(l.note))
	often(10*time.Millisecond, l.search)
	often(50*time.Millisecond, func(ctx context.Context) error { return l.call(ctx, "graph.export", struct{}{}, nil) })
	return <-failed
}

// errGrown ends what makes a home grow.
var errGrown = errors.New("the home has grown enough")

// tellHeap tells the heap in use now and then, where a time of growth is given. What
// grows returns does what it is given for so long, and errGrown afterwards.
func tellHeap(ack func(string) error, failed chan<- error) (grows func(func(context.Context) error) func(context.Context) error, err error) {
	given := os.Getenv(lifeGrows)
	if given == "" {
		return func(do func(context.Context) error) func(context.Context) error { return do }, nil
	}
	length, err := time.ParseDuration(given)
	if err != nil {
		return nil, err
	}
	enough := time.Now().Add(length)
	go func() {
		for {
			time.Sleep(3 * time.Second)
			debug.FreeOSMemory() // collects, and gives back what is resident and free
			var m rt.MemStats
			rt.ReadMemStats(&m)
			if err := ack(fmt.Sprintf("heap %d %d", time.Now().UnixMilli(), m.HeapAlloc>>10)); err != nil {
				failed <- err
				return
			}
		}
	}()
	return func(do func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if time.Now().After(enough) {
				return errGrown
			}
			return do(ctx)
		}
	}, nil
}

// manyPart lives for many agents at once until it is killed. An acknowledgement
// begins with the agent.
func manyPart(dir string, ack func(string) error) error {
	l, err := opened(dir, ack)
	if err != nil {
		return err
	}
	ctx := context.Background()
	failed := make(chan error)
	for i := range manyAgents {
		name := fmt.Sprint("agent-", i)
		one := &lifetime{house: l.house, catalog: l.catalog, agent: memory.AgentID(name), ack: func(line string) error { return ack(name + " " + line) }}
		go func() {
			for {
				time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
				for _, do := range []func(context.Context) error{func(ctx context.Context) error { return one.jot(ctx, 1+rand.IntN(3)) }, one.note, one.checkpoint, one.search} {
					if err := do(ctx); err != nil {
						failed <- fmt.Errorf("%s: %w", name, err)
						return
					}
				}
			}
		}()
	}
	return <-failed
}

const manyAgents = 16

// dayPart does everything once, one after the other, and ends.
func dayPart(dir string, ack func(string) error) error {
	l, err := opened(dir, ack)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, do := range []func(context.Context) error{
		l.talk, l.note, func(ctx context.Context) error { return l.importHistory(ctx, 5) }, l.checkpoint, l.maintain,
		func(ctx context.Context) error { return l.jot(ctx, 3) }, l.checkpoint,
	} {
		if err := do(ctx); err != nil {
			return errors.Join(err, l.house.close())
		}
	}
	return l.house.close()
}

// told is what lives in one home have acknowledged.
type told struct {
	said, noted []string
}

func (o *told) take(lines ...string) {
	for _, line := range lines {
		what, rest, _ := strings.Cut(line, " ")
		switch what {
		case "said":
			o.said = append(o.said, strings.Fields(rest)...)
		case "noted":
			o.noted = append(o.noted, rest)
		}
	}
}

// examined is what the examination of a home found.
type examined struct {
	judge.Findings
	events, items int
}

// examine opens a home, and holds it against what its agent default was told.
func examine(ctx context.Context, home, model string, now func() time.Time, o *told, drain bool) (examined, error) {
	return examineAgent(ctx, "default", home, model, now, o, drain)
}

func examineAgent(ctx context.Context, agent memory.AgentID, home, model string, now func() time.Time, o *told, drain bool) (examined, error) {
	l, err := newLifetime(home, model, now, func(string) error { return nil })
	if err != nil {
		return examined{}, err
	}
	l.agent = agent
	found, err := l.examine(ctx, o, drain)
	if err := errors.Join(err, l.house.close()); err != nil {
		return examined{}, err
	}
	if drain { // what killed processes have left behind, the doctor takes away
		if err := doctored(ctx, home, now); err != nil {
			found.Findings[judge.Damaged] = append(found.Findings[judge.Damaged], err.Error())
		}
	}
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	for _, name := range litter(home) {
		if base := filepath.Base(name); !drain && (strings.HasPrefix(base, ".") || strings.HasSuffix(base, ".db-journal")) {
			continue // of a write, or of a database that was being made; its next opening takes it away
		}
		found.Findings[judge.Litter] = append(found.Findings[judge.Litter], name)
	}
	found.Findings[judge.Damaged] = append(found.Findings[judge.Damaged], damagedFiles(home)...)
	if len(found.Findings[judge.Damaged]) == 0 {
		delete(found.Findings, judge.Damaged)
	}
	return found, nil
}

func (l *lifetime) examine(ctx context.Context, o *told, drain bool) (examined, error) {
	if drain {
		const most = 50 // checkpoints, each of which takes a part of a long backlog
		for i := 0; ; i++ {
			var res checkpoint.Result
			if err := l.call(ctx, "memory.checkpoint", checkpoint.Request{}, &res); err != nil {
				return examined{}, fmt.Errorf("the last checkpoint: %w", err)
			}
			if len(res.Parked) == 0 && res.BacklogLeft == 0 {
				break
			}
			if i == most {
				return examined{}, fmt.Errorf("the last checkpoints leave %d events, %d ranges parked, %s", res.BacklogLeft, len(res.Parked), res.Stopped)
			}
		}
	}
	h, err := l.held(ctx)
	if errors.Is(err, memory.ErrNotFound) {
		h, err = judge.Held{}, nil // there is nothing, which is right where nothing was told
	}
	if err != nil {
		return examined{}, err
	}
	truth := &judge.Truth{}
	by := map[string]string{} // word -> event
	word := regexp.MustCompile(`^I keep the ([a-z]+) in`)
	for _, e := range h.Events {
		if _, gone := e.Erased(); gone {
			truth.Forget(e.ID) // it was distilled or not; nobody can tell
		}
		if m := word.FindStringSubmatch(e.Text); m != nil && e.Type == memory.UserMessage {
			if other := by[m[1]]; other != "" {
				return examined{Findings: judge.Findings{judge.Duplicated: {fmt.Sprintf("%s in %s and %s", m[1], other, e.ID)}}}, nil
			}
			by[m[1]] = e.ID
		}
	}
	for _, w := range o.said {
		truth.Ack(cmp.Or(by[w], "the word "+w))
	}
	notes := map[string]int{}
	h.Items = slices.DeleteFunc(h.Items, func(it memory.Item) bool {
		w, is := strings.CutPrefix(it.Title, "note ")
		if is {
			notes[w]++
		}
		return is
	})
	found := examined{Findings: truth.Check(h), events: len(h.Events), items: len(h.Items) + len(notes)}
	for _, w := range o.noted {
		if notes[w] != 1 {
			found.Findings[judge.Lost] = append(found.Findings[judge.Lost], fmt.Sprintf("the note %s, of which there are %d", w, notes[w]))
		}
	}
	if drain && len(found.Findings) == 0 {
		var rebuilt struct{ Identical bool }
		if err := l.call(ctx, "memory.rebuild", struct{}{}, &rebuilt); err != nil {
			return found, fmt.Errorf("the rebuild: %w", err)
		}
		if !rebuilt.Identical {
			found.Findings[judge.Damaged] = append(found.Findings[judge.Damaged], "a rebuild does not make the same")
		}
	}
	return found, nil
}

// held reads back what a memory holds.
func (l *lifetime) held(ctx context.Context) (judge.Held, error) {
	var h judge.Held
	log, release, err := l.house.readLog(ctx, l.agent)
	if err != nil {
		return h, err
	}
	defer release()
	for at := (memory.Cursor{}); ; {
		list, next, err := log.Read(ctx, at, 1000)
		if err != nil {
			return h, err
		}
		if len(list) == 0 {
			break
		}
		h.Events, at = append(h.Events, list...), next
	}
	for _, d := range log.Damage() {
		h.Damaged = append(h.Damaged, fmt.Sprintf("%+v", d))
	}
	items, giveBack, err := l.house.items.write(ctx, l.agent)
	if err != nil {
		return h, err
	}
	defer giveBack()
	progress, err := items.Progress(ctx)
	if err != nil {
		return h, err
	}
	h.Cursor = progress.Cursor.Seq
	for _, p := range progress.Parked {
		h.Parked = append(h.Parked, p.Range)
	}
	all := 0
	list, err := items.List(ctx, working.ListRequest{Status: "all", Limit: &all})
	h.Items = list.Items
	return h, err
}

// doctored has the doctor mend a home, hours after all that happened there, and
// fails where it still finds something then.
func doctored(ctx context.Context, home string, now func() time.Time) error {
	for _, args := range [][]string{{"doctor", "--fix"}, {"doctor"}} {
		h := newHouse(func() time.Time { return now().Add(3 * time.Hour) }, func(string) string { return "" }, nil)
		var out, errs bytes.Buffer
		args = append(args, "--home", home, "--set", "log.level=error")
		status := cli.Run(ctx, h.app(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if err := h.close(); err != nil {
			return err
		}
		if status != 0 {
			return fmt.Errorf("%v ended with %d: %s%s", args[:len(args)-4], status, &out, &errs)
		}
	}
	return nil
}

// belongs are the files that a home may have, from its root.
var belongs = regexp.MustCompile(`^(config\.yaml|redact\.key|redact\.key\.lock|spend(-embeddings)?\.json(\.lock)?|scheduler/[a-z]+\.(json|json\.prev|lock)|` +
	`agents/[a-z0-9-]+/(vitals\.json(\.lock)?|import\.lock|erase\.lock|sessions/[^/]+\.(json|lock)|runs/[^/]+/[a-z.]+|audit/[0-9-]+\.jsonl(\.lock)?|` +
	`memory/(events/([0-9-]+\.jsonl(\.zst)?|[a-z.]+|[0-9-]+\.jsonl(\.[0-9]+)?\.torn)|[a-z]+\.db(-wal|-shm)?|[a-z.-]*lock|memory\.open|graph\.json(\.journal)?|graph\.json\.[a-z-]+|checkpoints/(checkpoint-|replies/)[^/]+\.json|reports/weekly-[^/]+|erasures/erasure-[^/]+\.json)))$`)

// litter are the files of a home that are no part of it, and those that others
// than their owner may read.
func litter(home string) []string {
	var out []string
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(home, path)
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		switch want := fs.FileMode(0o600); {
		case d.IsDir() && st.Mode().Perm() != 0o700 && name != ".":
			out = append(out, fmt.Sprintf("%s has the mode %o", name, st.Mode().Perm()))
		case !d.IsDir() && st.Mode().Perm() != want:
			out = append(out, fmt.Sprintf("%s has the mode %o", name, st.Mode().Perm()))
		case !d.IsDir() && !belongs.MatchString(filepath.ToSlash(name)):
			out = append(out, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}

// damagedFiles are the databases of a home that fail SQLite's own checks, their
// full-text indexes included, and the documents that are no JSON.
func damagedFiles(home string) []string {
	var out []string
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := filepath.Base(path)
		switch {
		case strings.HasSuffix(name, ".db"):
			if err := checkDatabase(path); err != nil {
				out = append(out, fmt.Sprintf("%s: %v", name, err))
			}
		case strings.HasSuffix(name, ".json"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			// The files of a run count once its summary is there, which is written last.
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "meta.json")); filepath.Base(filepath.Dir(filepath.Dir(path))) == "runs" && err != nil {
				return nil
			}
			if !json.Valid(text) {
				out = append(out, name+" is no JSON")
			}
		}
		return nil
	})
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}

// checkDatabase runs integrity_check, and the check of every full-text index.
func checkDatabase(path string) (err error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var said string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return errors.New(said)
	}
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5(%'`)
	if err != nil {
		return err
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return errors.Join(err, rows.Close())
		}
		tables = append(tables, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, name := range tables {
		if _, err := db.Exec(fmt.Sprintf(`INSERT INTO %q(%q) VALUES ('integrity-check')`, name, name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// counted adds findings up over many examinations.
type counted map[judge.Fault]int

func (c counted) add(t *testing.T, where string, f judge.Findings) {
	t.Helper()
	if len(f) > 0 {
		t.Errorf("%s:\n%s", where, f)
	}
	for fault, at := range f {
		c[fault] += len(at)
	}
}
