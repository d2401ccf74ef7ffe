package life

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// database makes a database of statements.
func database(t testing.TB, path string, statements ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(ctx, func(tx *sql.Tx) error {
		for _, s := range statements {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// entries reads every entry of an archive.
func entries(t testing.TB, archive string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]string{}
	for _, f := range z.File {
		text, err := fs.ReadFile(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = string(text)
	}
	return out
}

func recordsOf(t testing.TB, archive string) []*alf.Record {
	t.Helper()
	var out []*alf.Record
	for r, err := range open(t, archive).Records() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestEverySource exports a workspace with all that an installation can have.
func TestEverySource(t *testing.T) {
	state, text := t.TempDir(), "## A\n\ntea\n"
	sum := sha256.Sum256([]byte(text))
	dir := tree(t, map[string]string{"SOUL.md": "# Ada", "MEMORY.md": text, "memory/stale.md": "old",
		"AGENTS.md": "# How\n\n## SubAgent: Scout\n\n- **Status**: inactive\n- Capabilities: search, read\n- Model: small-1\n\nLooks things up.\n\n## SubAgents\n\n### Clerk\n\nRole: files papers\n",
		"USER.md":   "# Ines\n\n## Preferences\n\n- Tone: casual\n- Response length: short\n- Drinks tea\n\n## Work\n\nRole: pilot\nProjects:\n  - buoys\n  - boards\n\n## Timezone\n\nEurope/Lisbon\n"})
	database(t, filepath.Join(dir, "memory", "facts.db"), "CREATE TABLE facts (id INTEGER PRIMARY KEY, entity TEXT, key TEXT, value TEXT, category TEXT)",
		"INSERT INTO facts VALUES (7, 'Ines', 'drink', 'green tea', 'preference')")
	database(t, filepath.Join(state, "memory", "main.sqlite"), "CREATE TABLE files (path TEXT, source TEXT, hash TEXT)",
		"CREATE TABLE chunks (id TEXT, path TEXT, source TEXT, start_line INTEGER, end_line INTEGER, hash TEXT, model TEXT, text TEXT, embedding TEXT, updated_at INTEGER)",
		"CREATE TABLE meta (key TEXT, value TEXT)", `INSERT INTO meta VALUES ('memory_index_meta_v1', '{"provider":"openai","model":"small"}')`,
		"INSERT INTO files VALUES ('MEMORY.md', 'memory', '"+hex.EncodeToString(sum[:])+"'), ('memory/stale.md', 'memory', 'feed')",
		"INSERT INTO chunks VALUES ('c1', 'MEMORY.md', 'memory', 1, 3, 'h', 'small', 't', '[0.5,-1]', 1777800000000), ('c2', 'MEMORY.md', 'memory', 4, 9, 'h', 'small', 't', '[1]', 1), ('c3', 'memory/stale.md', 'memory', 1, 1, 'h', 'small', 't', '[1]', 1)")
	fill(t, state, map[string]string{
		"agents/main/agent/auth-profiles.json": `{"version":1,"profiles":{"openai:default":{"type":"api_key","provider":"openai","key":"sk-very-secret"},"google:me":{"type":"oauth","provider":"google","access":"hidden-access","expires":1777800000000}},"order":{}}`,
		"agents/ops/agent/auth-profiles.json":  `{"flat":{"mode":"token","provider":"acme","token":"hidden-token"}}`,
		"agents/bad/agent/auth-profiles.json":  `{`,
		"agents/main/sessions/s1.jsonl": `{"type":"session","id":"s1"}` + "\n" + `{"type":"message","id":"m1","timestamp":"2026-05-01T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":"hello"}]}}` + "\n{broken\n" +
			`{"type":"message","id":"m2","message":{"role":"assistant","content":"hi","timestamp":1777630000000}}` + "\n"})
	archive, x := export(t, dir, Keep{}, func(o *ExportOptions) {
		o.Sessions, o.Installation = true, workspace.Installation{Dir: state, Agent: "main", Version: "2026.5.1"}
	})
	r := open(t, archive)
	credentials, err := r.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	var signIns []string
	for _, c := range credentials.Credentials {
		signIns = append(signIns, c.Label+" "+c.Service+" "+c.CredentialType+" "+strings.Join(c.Tags, ","))
	}
	if diff := cmp.Diff([]string{"google:me google oauth_token openclaw,metadata-only", "openai:default openai api_key openclaw,metadata-only", "flat acme custom openclaw,metadata-only,agent:ops"}, signIns); diff != "" {
		t.Error(diff)
	}
	for name, text := range entries(t, archive) {
		if strings.Contains(text, "very-secret") || strings.Contains(text, "hidden-") {
			t.Errorf("a secret is in %s: %s", name, text)
		}
	}
	if v := r.Manifest().Agent.SourceRuntimeVersion; v != "2026.5.1" {
		t.Errorf("version %q", v)
	}
	byContent := map[string]*alf.Record{}
	for _, rec := range recordsOf(t, archive) {
		byContent[strings.TrimSpace(rec.Content)] = rec
	}
	if f := byContent["Ines drink: green tea"]; f == nil || f.MemoryType != alf.Preference || f.Namespace != "facts" || f.ID != workspace.RecordID("facts.db:7") || f.Category != "preference" {
		t.Errorf("fact: %+v", f)
	}
	if e := byContent["## A\n\ntea"].Embeddings; len(e) != 1 || e[0].Model != "openai/small" || !slices.Equal(e[0].Vector, []float64{0.5, -1}) {
		t.Errorf("embeddings: %+v", e)
	}
	if e := byContent["old"].Embeddings; len(e) != 0 {
		t.Errorf("vectors of a file that changed since: %+v", e)
	}
	if s := byContent["hello"]; s == nil || s.Source.SessionID != "s1" || s.Source.InteractionID != "m1" || s.Namespace != "session" || s.MemoryType != alf.Episodic || s.Temporal.CreatedAt.String() != "2026-05-01T10:00:00Z" {
		t.Errorf("message: %+v", s)
	}
	if byContent["hi"] == nil || len(x.Notices) != 2 {
		t.Errorf("notices: %v", x.Notices)
	}
	checkStructured(t, r)
}

func checkStructured(t *testing.T, r *alf.Reader) {
	t.Helper()
	id, err := r.Identity()
	if err != nil {
		t.Fatal(err)
	}
	want := alf.List[alf.SubAgent]{
		{Name: "Scout", Status: "inactive", Description: "Looks things up.", Capabilities: alf.List[alf.Capability]{{Name: "search"}, {Name: "read"}}, ModelHints: []byte(`{"primary_model":"small-1"}`)},
		{Name: "Clerk", Status: "active", Description: "files papers", Capabilities: alf.List[alf.Capability]{}},
	}
	for i := range id.Structured.SubAgents {
		if hints := &id.Structured.SubAgents[i].ModelHints; *hints != nil {
			if err := hints.Compact(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(want, id.Structured.SubAgents); diff != "" {
		t.Error(diff)
	}
	principals, err := r.Principals()
	if err != nil {
		t.Fatal(err)
	}
	s := principals.Principals[0].Profile.Structured
	if s.Name != "Ines" || s.Timezone != "Europe/Lisbon" || s.CommunicationPreferences.Tone != "casual" || s.CommunicationPreferences.ResponseLength != "short" ||
		s.WorkContext.Role != "pilot" || !slices.Equal(s.WorkContext.Projects, []string{"buoys", "boards"}) || !strings.Contains(string(s.CustomFields["preferences"]), "Drinks tea") {
		t.Errorf("profile: %+v", s)
	}
}

func TestProfileForms(t *testing.T) {
	for user, want := range map[string][]string{
		"## Work\nRole: pilot\nProjects:\n- buoys\n- boards: the second\n":         {"pilot", "buoys", "boards: the second"},
		"## Work\n- Role: pilot\n- Projects:\n  - buoys\n  - boards\n":             {"pilot", "buoys", "boards"},
		"## Work\n- Projects: buoys, boards\n- Role: pilot\n":                      {"pilot", "buoys", "boards"},
		"## Work\n### Projects\n\n* buoys\n* boards\n\n### Role\npilot\n":          {"pilot", "buoys", "boards"},
		"## Work context\n### Details\n- **Role:** pilot\n- __Projects__: buoys\n": {"pilot", "buoys"},
	} {
		var p alf.StructuredProfile
		fillProfile(&p, user)
		if w := p.WorkContext; w == nil || !slices.Equal(append([]string{w.Role}, w.Projects...), want) {
			t.Errorf("%q gives %+v, want %q", user, w, want)
		}
	}
}

func TestParity(t *testing.T) {
	dir := tree(t, map[string]string{"SOUL.md": "# Ada", "MEMORY.md": "tea", "notes.md": "n", "USER.md": "# I\n\n## Work\n\nRole: x\n", "skills/a.sh": "x"})
	archive, _ := export(t, dir, Keep{}, func(o *ExportOptions) { o.Parity = true })
	r := open(t, archive)
	var raw []string
	for _, f := range r.Raw(openclaw) {
		raw = append(raw, f.Path)
	}
	m := r.Manifest()
	if !slices.Equal(raw, []string{"MEMORY.md", "SOUL.md", "USER.md"}) || m.Checksum != "" || m.Agent.Exporter != "" || m.Layers.Attachments != nil {
		t.Errorf("parity: %v %+v", raw, m)
	}
	if recs := recordsOf(t, archive); len(recs) != 1 || recs[0].Source.IdentityVersion != 0 {
		t.Errorf("records: %+v", recs)
	}
}

func TestRedact(t *testing.T) {
	dir := tree(t, map[string]string{"MEMORY.md": "the key is HUSH", "notes.md": "calm"})
	hush := func(s string) string { return strings.ReplaceAll(s, "HUSH", "[gone]") }
	archive, x := export(t, dir, Keep{}, func(o *ExportOptions) { o.Redact = hush })
	if x.Secrets != 1 || recordsOf(t, archive)[0].Content != "the key is HUSH" {
		t.Errorf("secrets found: %d", x.Secrets)
	}
	archive, _ = export(t, dir, Keep{}, func(o *ExportOptions) { o.Redact, o.Clean = hush, true })
	text, err := open(t, archive).Raw(openclaw)[0].Bytes()
	if err != nil || string(text) != "the key is [gone]" || recordsOf(t, archive)[0].Content != "the key is [gone]" {
		t.Errorf("redacted: %q %v", text, err)
	}
}

// TestForeignMembersLast imports an archive of another program and exports the
// workspace: what Markdown cannot say is still there.
func TestForeignMembersLast(t *testing.T) {
	keep := Keep{t.TempDir()}
	archive := handmade(t, map[string]string{"MEMORY.md": "## A\n\ntea\n"}, made("MEMORY.md", "curated", "## A\n\ntea", func(r *alf.Record) {
		r.ID = workspace.RecordID("MEMORY.md:0")
		r.Unknown, r.Entities = []byte(`{"mood":"calm"}`), alf.List[alf.Entity]{{Name: "tea", Type: "other"}}
	}))
	dir := filepath.Join(t.TempDir(), "workspace")
	bringIn(t, archive, dir, keep, Merge)
	again, _ := export(t, dir, keep)
	if r := recordsOf(t, again)[0]; !strings.Contains(string(r.Unknown), "calm") || len(r.Entities) != 1 {
		t.Errorf("record: %+v", r)
	}
}

// TestZeroClaw takes both of its forms through archives and back.
func TestZeroClaw(t *testing.T) {
	dir := tree(t, map[string]string{"SOUL.md": "# Zoe", "memory/core.md": "## Tea\n\ngreen\n", "memory/conversation.md": "we spoke", "memory/2026-05-01.md": "a day", "memory/session_abc.md": "said", "memory/archive/2026-01-01.md": "long ago", "memory/custom-work.md": "w"})
	vector := strings.Repeat("0000803f", 64)
	database(t, filepath.Join(filepath.Dir(dir), "memory.db"), "CREATE TABLE memories (id TEXT PRIMARY KEY, key TEXT UNIQUE, content TEXT, category TEXT, timestamp TEXT, embedding BLOB)",
		"INSERT INTO memories VALUES ('4f4c0ec1-f54d-5d2a-aeea-876c1faf2882', 'drink', 'Likes tea', 'core', '2026-05-01T10:00:00+00:00', x'"+vector+"'), ('r2', 'auto_1', 'Went out', 'daily', '2026-05-02 11:00:00', NULL), ('r3', 'k3', 'Talked', 'conversation', '2026-05-02', NULL), ('r4', 'k4', 'Own kind', 'work', 'when?', NULL)")
	read := func(dir string, keep Keep) (string, map[string]string) {
		w, err := workspace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		archive := filepath.Join(t.TempDir(), "z.alf")
		if _, err := ExportZeroClaw(context.Background(), w, ExportOptions{Output: archive, Keep: keep, Now: now}); err != nil {
			t.Fatal(err)
		}
		if rep, err := alf.Validate(archive, alf.DefaultLimits); err != nil || !rep.Valid {
			t.Fatal(rep.Text(), err)
		}
		types := map[string]string{}
		for _, r := range recordsOf(t, archive) {
			types[strings.TrimSpace(r.Content)] = r.MemoryType + " " + r.Namespace + " " + r.Status
		}
		return archive, types
	}
	archive, types := read(dir, Keep{t.TempDir()})
	want := map[string]string{"## Tea\n\ngreen": "semantic core active", "we spoke": "episodic conversation active", "a day": "episodic daily active", "said": "episodic session active", "long ago": "episodic daily archived", "w": "semantic custom:work active",
		"Likes tea": "semantic core active", "Went out": "episodic daily active", "Talked": "episodic conversation active", "Own kind": "semantic custom:work active"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Fatal(diff)
	}
	if id, err := open(t, archive).Identity(); err != nil || id == nil || id.Prose.Soul != "# Zoe" {
		t.Errorf("identity: %+v, %v", id, err)
	}
	copied := filepath.Join(t.TempDir(), "workspace")
	into := func(archive, dir string, form Form, keep Keep) Imported {
		done, err := ImportWorkspace(context.Background(), archive, dir, ImportOptions{Mode: Merge, Form: form, Keep: keep, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := into(archive, copied, ZeroClaw, Keep{t.TempDir()}); done.Rows.Added != 4 {
		t.Errorf("rows: %+v", done.Rows)
	}
	again, types := read(copied, Keep{t.TempDir()})
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
	if d := compare(t, archive, again); !d.Empty() {
		t.Errorf("round trip: %s", d.Text())
	}
	for _, form := range []Form{ZeroClawMarkdown, ZeroClawSQLite} {
		keep := Keep{t.TempDir()}
		place := filepath.Join(t.TempDir(), "workspace")
		into(archive, place, form, keep)
		_, types := read(place, keep)
		if form == ZeroClawSQLite {
			if diff := cmp.Diff(want, types); diff != "" {
				t.Errorf("%s: %s", form, diff)
			}
			continue
		}
		all := strings.Join(slices.Collect(maps.Keys(types)), "\n")
		for content, kind := range want {
			if now, whole := types[content]; whole && now != kind {
				t.Errorf("%s: %q is %s, want %s", form, content, now, kind)
			}
			if !strings.Contains(all, content) {
				t.Errorf("%s: %q is lost", form, content)
			}
		}
	}
}

func TestMergeArchives(t *testing.T) {
	keep := Keep{t.TempDir()}
	dir := tree(t, map[string]string{"SOUL.md": "# Ada", "MEMORY.md": "## A\n\none\n\n## B\n\ntwo\n"})
	base, _ := export(t, dir, keep)
	fill(t, dir, map[string]string{"MEMORY.md": "## A\n\none, ours\n\n## B\n\ntwo\n"})
	ours, _ := export(t, dir, keep)
	fill(t, dir, map[string]string{"MEMORY.md": "## A\n\none\n\n## B\n\ntwo, theirs\n", "memory/new.md": "n"})
	theirs, _ := export(t, dir, keep)
	out := filepath.Join(t.TempDir(), "both.alf")
	_, in, err := MergeArchives(context.Background(), MergeOptions{Ours: ours, Theirs: theirs, Base: base, Output: out, Now: now})
	if err != nil || len(in.Conflicts) > 0 {
		t.Fatal(err, in.Conflicts)
	}
	files := map[string]string{}
	for _, f := range open(t, out).Raw(openclaw) {
		text, err := f.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		files[f.Path] = string(text)
	}
	if diff := cmp.Diff(map[string]string{"SOUL.md": "# Ada", "MEMORY.md": "## A\n\none, ours\n\n## B\n\ntwo, theirs\n", "memory/new.md": "n"}, files); diff != "" {
		t.Error(diff)
	}
	if len(recordsOf(t, out)) != 3 {
		t.Error("records are not those of the merged files")
	}
}

func TestExportAgent(t *testing.T) {
	id := uuid.MustParse(agent)
	items := []memory.Item{
		{ID: "mem_1", Handle: "MEM-1", Kind: memory.KindPreference, Title: "tea", Content: "Likes tea.", Importance: 4, Confidence: 0.9, Status: memory.Active, Trust: memory.TrustUser, CreatedAt: testNow, UpdatedAt: testNow, Supersedes: "mem_0", Evidence: []memory.Evidence{{EventID: "e1"}}},
		{ID: "mem_0", Handle: "MEM-2", Kind: memory.KindFact, Content: "Likes coffee.", Status: memory.Superseded, CreatedAt: testNow, UpdatedAt: testNow},
		{ID: "mem_2", Handle: "MEM-3", Status: memory.Forgotten, CreatedAt: testNow},
		{ID: "mem_3", Handle: "MEM-4", Content: "waits", Status: memory.Quarantined, CreatedAt: testNow},
	}
	episodes := func(yield func(memory.Episode, error) bool) {
		yield(memory.Episode{Handle: "EVT-1", EventID: "e1", SessionID: "s", Type: memory.UserMessage, Origin: memory.OriginUser, Text: "I like tea.", Time: testNow}, nil)
	}
	out := filepath.Join(t.TempDir(), "a.alf")
	if _, err := ExportAgent(context.Background(), AgentMemory{ID: id, Name: "ada", Items: items, Episodes: episodes}, ExportOptions{Output: out, Keep: Keep{t.TempDir()}, Now: now}); err != nil {
		t.Fatal(err)
	}
	if rep, err := alf.Validate(out, alf.DefaultLimits); err != nil || !rep.Valid || len(rep.Warnings) > 0 {
		t.Fatal(rep.Text(), err)
	}
	got := recordsOf(t, out)
	if len(got) != 3 || got[0].MemoryType != alf.Preference || got[0].Supersedes != got[1].ID || got[1].Status != alf.Superseded || got[0].RelatedRecords[0].ID != got[2].ID || got[2].Source.SessionID != "s" {
		t.Errorf("records: %+v", got)
	}
}

// TestOutputInside writes an archive into the workspace itself: neither it nor
// its unfinished form is in it.
func TestOutputInside(t *testing.T) {
	dir := tree(t, map[string]string{"MEMORY.md": "tea", "memory/a.md": "a"})
	for range 2 {
		archive, _ := export(t, dir, Keep{}, func(o *ExportOptions) { o.Output = filepath.Join(dir, "memory", "out.alf") })
		for name := range entries(t, archive) {
			if strings.Contains(name, "out.alf") {
				t.Errorf("%s is in the archive", name)
			}
		}
	}
}
