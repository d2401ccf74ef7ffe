package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/record"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/session"
)

const childVariable = "BACKUP_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := live(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newID() string { return ulid.Make().String() }

func redactor() (*redact.Redactor, error) {
	return redact.New([]byte("a key of the tests, 32 bytes long"))
}

// agent is one that tests talk to.
type agent struct {
	dir     string
	red     *redact.Redactor
	log     *events.Log
	items   *working.Store
	records *record.Store
	talks   *session.Store
}

func openAgent(dir string, id memory.AgentID) (*agent, error) {
	ctx := context.Background()
	if err := os.MkdirAll(filepath.Join(dir, "memory"), 0o700); err != nil {
		return nil, err
	}
	red, err := redactor()
	if err != nil {
		return nil, err
	}
	a := &agent{dir: dir, red: red, talks: session.Open(filepath.Join(dir, "sessions"), session.Options{Agent: id, Now: time.Now, Redact: red})}
	if a.log, err = events.Open(ctx, filepath.Join(dir, "memory", "events"), events.Options{Now: time.Now, NewID: newID, Redact: red, Log: zerolog.Nop()}); err != nil {
		return nil, err
	}
	if a.items, err = working.Open(ctx, filepath.Join(dir, "memory"), working.Options{Agent: id, Log: a.log, Redact: red, Now: time.Now, NewID: newID}); err != nil {
		return nil, err
	}
	a.records, err = record.Open(ctx, filepath.Join(dir, "memory", record.FileName), record.Options{Now: time.Now})
	return a, err
}

func (a *agent) close() error {
	return errors.Join(a.items.Close(), a.records.Close(), a.log.Close())
}

func (a *agent) say(ctx context.Context, session, text string) (string, error) {
	if _, err := a.talks.Ensure(ctx, memory.Session{ID: session, Channel: "cli"}); err != nil {
		return "", err
	}
	done, err := a.log.Write(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: session, Text: text})
	if err != nil {
		return "", err
	}
	return done[0].ID, nil
}

func (a *agent) learn(ctx context.Context, id memory.AgentID, title string) error {
	lend := func(context.Context, memory.AgentID) (*working.Store, func(), error) { return a.items, func() {}, nil }
	_, err := working.NewService(lend, lend, nil).Write(ctx, id, working.WriteRequest{Title: title, Content: title})
	return err
}

func (a *agent) note(ctx context.Context, id string) error {
	_, _, err := a.records.Put(ctx, record.Write{Key: record.Key{Namespace: "long_term", Kind: "fact", ID: id}, Value: json.RawMessage(`{"text":"noted"}`)})
	return err
}

// live writes to an agent in several ways at once until it is killed, and prints a
// line for everything that has been acknowledged.
func live(dir string) error {
	a, err := openAgent(dir, "a")
	if err != nil {
		return err
	}
	ctx := context.Background()
	var mu sync.Mutex
	ack := func(kind, id string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(kind, id)
	}
	failed := make(chan error)
	run := func(step func(n int) error) {
		go func() {
			for n := 0; ; n++ {
				if err := step(n); err != nil {
					failed <- err
				}
			}
		}()
	}
	for worker := range 2 {
		run(func(n int) error {
			id, err := a.say(ctx, fmt.Sprintf("s%d-%d", worker, n/20), strings.Repeat(fmt.Sprintf("words of turn %d. ", n), 20))
			if err == nil {
				ack("event", id)
			}
			return err
		})
	}
	run(func(n int) error {
		title := fmt.Sprintf("item number %d is about %s", n, newID())
		err := a.learn(ctx, "a", title)
		if err == nil {
			ack("item", title)
		}
		return err
	})
	run(func(n int) error {
		id := fmt.Sprintf("record-%d", n)
		err := a.note(ctx, id)
		if err == nil {
			ack("record", id)
		}
		return err
	})
	return <-failed
}

func options(t *testing.T, dir string, id memory.AgentID) Options {
	red, err := redactor()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Agent: id, Dir: dir, Temp: t.TempDir(), Program: "test", Now: time.Now, Find: func(s string) int { return len(red.Find(s)) }, Keeper: Keeper{Getenv: os.Getenv}}
}

func reading(t *testing.T) ReadOptions {
	return ReadOptions{Temp: t.TempDir(), Keeper: Keeper{Getenv: os.Getenv}}
}

// TestBackupOfALiveAgent backs an agent up, several times, while another process
// writes to it as fast as it can, and holds each backup against what had been
// acknowledged when it began.
func TestBackupOfALiveAgent(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "agents", "a")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var acked []string
	var count atomic.Int64
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); count.Add(1) {
			mu.Lock()
			acked = append(acked, lines.Text())
			mu.Unlock()
		}
	}()
	type made struct {
		file  string
		acked []string
	}
	var backups []made
	for round := range 4 {
		for want := int64(300 * (round + 1)); count.Load() < want; {
			select {
			case <-read:
				t.Fatal("the writer has ended")
			case <-time.After(time.Millisecond):
			}
		}
		mu.Lock()
		b := made{filepath.Join(home, fmt.Sprintf("b%d.tar.zst", round)), slices.Clone(acked)}
		mu.Unlock()
		if _, err := Write(t.Context(), b.file, options(t, dir, "a")); err != nil {
			t.Fatal(err)
		}
		backups = append(backups, b)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-read
	if err := child.Wait(); err == nil {
		t.Error("the writer ended well")
	}
	for _, b := range backups {
		holds(t, home, b.file, b.acked)
	}
	t.Logf("%d acknowledged in all; the backups hold at least %d, %d, %d, %d", len(acked), len(backups[0].acked), len(backups[1].acked), len(backups[2].acked), len(backups[3].acked))
}

// holds restores a backup and looks for everything that was acknowledged.
func holds(t *testing.T, home, file string, acked []string) {
	t.Helper()
	as := memory.AgentID(strings.TrimSuffix(filepath.Base(file), ".tar.zst"))
	res, err := Restore(t.Context(), file, RestoreOptions{ReadOptions: reading(t), Agents: filepath.Join(home, "agents"), As: as})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "agents", string(as))
	for _, name := range []string{"memory.db", "records.db"} {
		if err := check(t.Context(), filepath.Join(dir, "memory", name), true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := openAgent(dir, as)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}()
	rep, err := a.log.Verify(t.Context())
	if err != nil || !rep.Ok || rep.Lines != res.Events {
		t.Errorf("the log of %s: %+v, %v", as, rep, err)
	}
	have := map[string]bool{}
	for at := (memory.Cursor{}); ; {
		batch, next, err := a.log.Read(t.Context(), at, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(batch) == 0 {
			break
		}
		for _, e := range batch {
			have["event "+e.ID] = true
			if _, err := a.talks.Get(t.Context(), e.SessionID); e.SessionID != "" && err != nil {
				t.Errorf("the session of event %d: %v", e.Seq, err)
			}
		}
		at = next
	}
	all := 0
	list, err := a.items.List(t.Context(), working.ListRequest{Status: "all", Limit: &all})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range list.Items {
		have["item "+it.Title] = true
	}
	missing := 0
	for _, line := range acked {
		kind, id, _ := strings.Cut(line, " ")
		if kind == "record" {
			_, found, err := a.records.Get(t.Context(), record.Key{Namespace: "long_term", Kind: "fact", ID: id})
			if err != nil {
				t.Fatal(err)
			}
			have[line] = found
		}
		if !have[line] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged writes are not in %s", missing, len(acked), as)
	}
}

// quiet makes an agent that nobody uses.
func quiet(t *testing.T, dir string, id memory.AgentID) {
	t.Helper()
	a, err := openAgent(dir, id)
	if err != nil {
		t.Fatal(err)
	}
	_, saying := a.say(t.Context(), "s1", "I moved to Lisbon in May.")
	err = errors.Join(saying, a.learn(t.Context(), id, "The user lives in Lisbon."), a.note(t.Context(), "r1"), a.close(),
		os.WriteFile(filepath.Join(dir, "memory", "graph.json"), []byte(`{"nodes":[],"edges":[]}`+"\n"), 0o600),
		os.MkdirAll(filepath.Join(dir, "runs", "run_1"), 0o700),
		os.WriteFile(filepath.Join(dir, "runs", "run_1", "output.md"), []byte("the key is sk_live_"+strings.Repeat("4eC39HqLyjWDarjtT1zdp7dc", 1)+"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "memory", "memory.db.corrupt-20260101T000000Z"), []byte("rubbish"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

func backedUp(t *testing.T, edit func(*Options)) (home, file string) {
	t.Helper()
	home = t.TempDir()
	dir := filepath.Join(home, "agents", "a")
	quiet(t, dir, "a")
	o := options(t, dir, "a")
	if edit != nil {
		edit(&o)
	}
	file = filepath.Join(home, "a.tar.zst")
	w, err := Write(t.Context(), file, o)
	if err != nil {
		t.Fatal(err)
	}
	if w.Secrets != 1 || len(w.LeftOut) != 1 || !strings.Contains(w.LeftOut[0].Path, "corrupt") || w.LastSeq != 2 {
		t.Errorf("written %+v", w)
	}
	if left, err := os.ReadDir(o.Temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	return home, file
}

func TestRoundTripAndRename(t *testing.T) {
	home, file := backedUp(t, nil)
	v, err := Verify(t.Context(), file, reading(t))
	if err != nil || !v.Ok || v.Databases != 2 || v.Log.Events != 2 || v.Manifest.Schemas["memory/memory.db"] == 0 {
		t.Errorf("verified %+v, %v", v, err)
	}
	paths := make([]string, len(v.Manifest.Files))
	for i, f := range v.Manifest.Files {
		paths[i] = f.Path
	}
	if !slices.IsSorted(paths) || !slices.Contains(paths, "memory/graph.json") || slices.ContainsFunc(paths, transient) {
		t.Errorf("files %v", paths)
	}
	agents := filepath.Join(home, "agents")
	if _, err := Restore(t.Context(), file, RestoreOptions{ReadOptions: reading(t), Agents: agents}); !errors.Is(err, memory.ErrConflict) || !strings.Contains(memory.HintOf(err), "--replace") {
		t.Errorf("over an agent that exists: %v", err)
	}
	res, err := Restore(t.Context(), file, RestoreOptions{ReadOptions: reading(t), Agents: agents, As: "b"})
	if err != nil || res.Agent != "b" || res.From != "a" || res.Replaced {
		t.Fatalf("as another: %+v, %v", res, err)
	}
	b, err := openAgent(filepath.Join(agents, "b"), "b")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := b.talks.Get(t.Context(), "s1"); err != nil || s.Agent != "b" || s.Channel != "cli" {
		t.Errorf("its session: %+v, %v", s, err)
	}
	if _, err := Restore(t.Context(), file, RestoreOptions{ReadOptions: reading(t), Agents: agents, As: "b", Replace: true}); !errors.Is(err, memory.ErrConflict) || !strings.Contains(err.Error(), "another process uses") {
		t.Errorf("over an agent in use: %v", err)
	}
	if err := b.learn(t.Context(), "b", "What a replacing takes away."); err != nil {
		t.Fatal(err)
	}
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	if res, err = Restore(t.Context(), file, RestoreOptions{ReadOptions: reading(t), Agents: agents, As: "b", Replace: true}); err != nil || !res.Replaced {
		t.Fatalf("replaced: %+v, %v", res, err)
	}
	if b, err = openAgent(filepath.Join(agents, "b"), "b"); err != nil {
		t.Fatal(err)
	}
	if n, err := b.log.LastSeq(); err != nil || n != 2 {
		t.Errorf("after the replacing the log ends at %d, %v", n, err)
	}
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(agents)
	if err != nil || len(left) != 2 {
		t.Errorf("agents: %v, %v", left, err)
	}
	if _, err := Write(t.Context(), file, options(t, filepath.Join(agents, "a"), "a")); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("over a file that exists: %v", err)
	}
}

func TestEncrypted(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	secret, public, other := filepath.Join(dir, "secret"), filepath.Join(dir, "public"), filepath.Join(dir, "other")
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{secret: "# mine\n" + id.String(), public: id.Recipient().String(), other: stranger.String()} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("BACKUP_WORD", "a good long passphrase")
	t.Setenv("BACKUP_WRONG", "another")
	for name, tc := range map[string]struct {
		with, right, wrong Secret
	}{
		"passphrase":            {Secret{Passphrase: "env:BACKUP_WORD"}, Secret{Passphrase: "env:BACKUP_WORD"}, Secret{Passphrase: "env:BACKUP_WRONG"}},
		"a file of public keys": {Secret{KeyFile: public}, Secret{KeyFile: secret}, Secret{KeyFile: other}},
		"a file of secret keys": {Secret{KeyFile: secret}, Secret{KeyFile: secret}, Secret{KeyFile: other}},
	} {
		t.Run(name, func(t *testing.T) {
			_, file := backedUp(t, func(o *Options) { o.Secret = tc.with })
			raw, err := os.ReadFile(file)
			if err != nil || !bytes.HasPrefix(raw, []byte(ageMagic)) || bytes.Contains(raw, []byte("Lisbon")) {
				t.Errorf("it is not encrypted: %v", err)
			}
			o := reading(t)
			if _, err := Verify(t.Context(), file, o); !errors.Is(err, memory.ErrDenied) {
				t.Errorf("without a secret: %v", err)
			}
			o.Secret = tc.wrong
			if _, err := Verify(t.Context(), file, o); !errors.Is(err, memory.ErrDenied) {
				t.Errorf("with a wrong one: %v", err)
			}
			o.Secret = tc.right
			if v, err := Verify(t.Context(), file, o); err != nil || !v.Encrypted {
				t.Errorf("with the right one: %+v, %v", v, err)
			}
		})
	}
	for name, s := range map[string]Secret{
		"the word itself": {Passphrase: "hunter2"}, "an empty variable": {Passphrase: "env:BACKUP_NONE"}, "both": {Passphrase: "env:BACKUP_WORD", KeyFile: secret},
		"no terminal": {Passphrase: "prompt"}, "no keys": {KeyFile: os.Args[0] + ".none"},
	} {
		o := options(t, t.TempDir(), "a")
		o.Secret = s
		_, err := Write(t.Context(), filepath.Join(t.TempDir(), "x"), o)
		if kind := memory.KindOf(err); kind != memory.ErrInvalid && kind != memory.ErrNotFound || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamagedBackup changes a backup in many places: it is refused, and nothing has
// changed.
func TestDamagedBackup(t *testing.T) {
	home, file := backedUp(t, nil)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	agents := filepath.Join(home, "agents")
	try := func(name string, text []byte) {
		t.Helper()
		bad := filepath.Join(home, "bad.tar.zst")
		if err := os.WriteFile(bad, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Restore(t.Context(), bad, RestoreOptions{ReadOptions: reading(t), Agents: agents, As: "b"})
		if !errors.Is(err, memory.ErrCorrupt) {
			t.Errorf("%s: %v, want corrupt", name, err)
		}
		if left, err := os.ReadDir(agents); err != nil || len(left) != 1 {
			t.Fatalf("%s: agents %v, %v", name, left, err)
		}
	}
	whole, err := unpacked(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 25; i++ {
		at := len(raw) * i / 25
		flipped := bytes.Clone(raw)
		flipped[at] ^= 0x10
		// A run of equal bytes can be said in two ways: then nothing is damaged.
		if same, err := unpacked(flipped); err != nil || !bytes.Equal(same, whole) {
			try(fmt.Sprintf("bit of byte %d", at), flipped)
		}
		try(fmt.Sprintf("cut at %d", at), raw[:at])
	}
	try("nothing", nil)
	try("text", []byte("hello, this is no backup"))
}

// unpacked takes the compression off a backup.
func unpacked(raw []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(raw, nil)
}

// forge makes an archive of these files, in pairs of name and content, with a
// manifest that fits.
func forge(t *testing.T, m Manifest, entries ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, h := range entries {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, bytes.NewReader(make([]byte, h.Size)), h.Size); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	err = w.WriteHeader(&tar.Header{Name: manifestName, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o600})
	if err == nil {
		_, err = w.Write(text)
	}
	if err = errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestHostileArchive(t *testing.T) {
	good := Manifest{Format: format, Version: version, Agent: "a"}
	zero := func(name string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1, Mode: 0o600}
	}
	newer := good
	newer.Version = 2
	stranger := good
	stranger.Agent = "../x"
	for name, tc := range map[string]struct {
		raw  []byte
		want memory.Kind
	}{
		"out of the agent":     {forge(t, good, zero("agent/../../evil")), memory.ErrCorrupt},
		"absolute":             {forge(t, good, zero("/etc/evil")), memory.ErrCorrupt},
		"absolute below":       {forge(t, good, zero("agent//etc/evil")), memory.ErrCorrupt},
		"beside the agent":     {forge(t, good, zero("evil")), memory.ErrCorrupt},
		"the directory itself": {forge(t, good, zero("agent/.")), memory.ErrCorrupt},
		"a log of SQLite":      {forge(t, good, zero("agent/memory/memory.db-wal")), memory.ErrCorrupt},
		"a link":               {forge(t, good, &tar.Header{Name: "agent/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), memory.ErrCorrupt},
		"a device":             {forge(t, good, &tar.Header{Name: "agent/x", Typeflag: tar.TypeChar}), memory.ErrCorrupt},
		"not promised":         {forge(t, good, zero("agent/x")), memory.ErrCorrupt},
		"twice":                {forge(t, good, zero("agent/x"), zero("agent/x")), memory.ErrCorrupt},
		"below a file":         {forge(t, good, zero("agent/x"), zero("agent/x/y")), ""},
		"of a newer build":     {forge(t, newer), memory.ErrConflict},
		"of no agent":          {forge(t, stranger), memory.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			file := filepath.Join(home, "x.tar.zst")
			if err := os.WriteFile(file, tc.raw, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Restore(t.Context(), file, RestoreOptions{ReadOptions: reading(t), Agents: filepath.Join(home, "agents")})
			if err == nil || tc.want != "" && !errors.Is(err, tc.want) {
				t.Errorf("Restore: %v, want %s", err, tc.want)
			}
			if left, err := os.ReadDir(filepath.Join(home, "agents")); err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestStagesOfDeadProcessesAreCleared(t *testing.T) {
	dir := t.TempDir()
	living, err := NewStage(dir, stagePrefix)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := NewStage(dir, restorePrefix)
	if err == nil {
		err = dead.lock.Close() // as the system does for a process that was killed
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		if cleared, err := ClearStages(dir, dry); err != nil || len(cleared) != 1 || cleared[0] != dead.path {
			t.Errorf("cleared %v, %v", cleared, err)
		}
	}
	if err := living.Remove(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// BenchmarkWrite backs up an agent with 200 MB of incompressible attachments and a
// database of some MB.
func BenchmarkWrite(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "agents", "a")
	a, err := openAgent(dir, "a")
	if err != nil {
		b.Fatal(err)
	}
	for n := range 20_000 {
		if _, err := a.log.Append(b.Context(), memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s1", Text: strings.Repeat(fmt.Sprintf("words of turn %d. ", n), 100)}); err != nil {
			b.Fatal(err)
		}
		if n%100 == 0 {
			if err := a.log.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := a.close(); err != nil {
		b.Fatal(err)
	}
	red, err := redactor()
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "x")
	for b.Loop() {
		w, err := Write(b.Context(), file, Options{Agent: "a", Dir: dir, Temp: b.TempDir(), Now: time.Now, Find: func(s string) int { return len(red.Find(s)) }, Replace: true})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(w.Bytes)
	}
}
