package alf

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const smallRecord = `{"id":"4f4c0ec1-f54d-5d2a-aeea-876c1faf2882","agent_id":"bf0101d6-8c57-53ff-a921-bbc807a06e90","content":"tea","memory_type":"semantic","source":{"runtime":"openclaw"},"temporal":{"created_at":"2026-05-04T09:30:00Z"},"status":"active","namespace":"curated"}`

func TestTimes(t *testing.T) {
	for in, want := range map[string]string{
		"2026-05-04T09:30:00Z":             "2026-05-04T09:30:00Z",
		"2026-05-04 09:30:00+02:00":        "2026-05-04T07:30:00Z",
		"2026-05-04T09:30:00.5Z":           "2026-05-04T09:30:00.500Z",
		"2026-05-04T09:30:00.000001Z":      "2026-05-04T09:30:00.000001Z",
		"2026-05-04T09:30:00.123456789Z":   "2026-05-04T09:30:00.123456789Z",
		"+12026-01-02T00:00:00Z":           "+12026-01-02T00:00:00Z",
		"-0005-01-02T00:00:00Z":            "-0005-01-02T00:00:00Z",
		"0000-02-29T00:00:00Z":             "0000-02-29T00:00:00Z",
		"2026-05-04T09:30:00":              "",
		"2026-05-04T09:30Z":                "",
		"2026-05-04":                       "",
		"yesterday":                        "",
		"+9999999999999-01-02T00:00:00Z":   "",
		"0001-01-01T00:00:00Z":             "0001-01-01T00:00:00Z",
		"2026-05-04t09:30:00z":             "2026-05-04T09:30:00Z",
		"2026-02-30T00:00:00Z":             "",
		"2026-05-04T09:30:00.1234567891Z ": "",
	} {
		got, err := ParseTime(in)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q was read as %s", in, got)
		case want != "" && err != nil:
			t.Errorf("%q: %v", in, err)
		case want != "" && got.String() != want:
			t.Errorf("%q was read as %s, want %s", in, got, want)
		}
	}
}

// TestUnknownMembers reads an archive with members that nobody knows at every
// level, copies it, and expects each of them in the copy.
func TestUnknownMembers(t *testing.T) {
	recordText := `{"id":"4F4C0EC1F54D5D2AAEEA876C1FAF2882","agent_id":"bf0101d6-8c57-53ff-a921-bbc807a06e90","content":"<b>&\u2028","memory_type":"dream","source":{"runtime":"openclaw","x1":[1,2.50,null]},` +
		`"temporal":{"created_at":"2026-05-04 11:30:00+02:00","x2":{"deep":true}},"status":"active","namespace":"curated","confidence":1,"category":null,"entities":[{"name":"n","type":"person","x3":1}],` +
		`"embeddings":[{"model":"m","dimensions":1,"vector":[1],"computed_at":"2026-05-04T09:30:00Z","source":"runtime","x4":1e400}],"related_records":[{"id":"4f4c0ec1-f54d-5d2a-aeea-876c1faf2882","relation":"r","x5":1}],"raw_source_format":{"x6":[]},"x7":"y"}`
	identity := `{"id":"4f4c0ec1-f54d-5d2a-aeea-876c1faf2882","agent_id":"bf0101d6-8c57-53ff-a921-bbc807a06e90","version":3,"updated_at":"2026-05-04T09:30:00Z","structured":{"names":{"primary":"Ada","x8":1},"psychology":{"x9":1},"x10":1},"prose":{"soul":"# Ada","x11":1},"x12":1}`
	manifest := `{"alf_version":"1.0.0","created_at":"2026-05-04T09:30:00Z","agent":{"id":"bf0101d6-8c57-53ff-a921-bbc807a06e90","name":"Ada","source_runtime":"openclaw","x13":1},"x14":1,"layers":{"x15":1,"identity":{"version":3,"file":"who/identity.json"},"memory":{"record_count":1,"index_file":"i","partitions":[{"file":"m.jsonl","from":"2026-04-01","record_count":1,"sealed":false}]}}}`
	r := read(t, pack(t, entry{name: "manifest.json", text: manifest}, entry{name: "who/identity.json", text: identity}, entry{name: "m.jsonl", text: "\r\n" + recordText + "\r\n"}))
	var out bytes.Buffer
	w := NewWriter(&out, t.TempDir())
	m, _, err := Apply(r, nil, w, t.TempDir(), Form{CreatedAt: fixedTime})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		raw, err := readDocument(f, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(raw)
	}
	for i := 1; i <= 15; i++ {
		if name := `"x` + itoa(i) + `"`; !strings.Contains(text.String(), name) {
			t.Errorf("member %s is lost", name)
		}
	}
	for _, want := range []string{`<b>&`, `"dream"`, `[1,2.50,null]`, `1e400`, `"created_at":"2026-05-04T09:30:00Z"`, `"id":"4f4c0ec1-f54d-5d2a-aeea-876c1faf2882"`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s is not in the copy:\n%s", want, text.String())
		}
	}
	if m.Layers.Memory.Partitions[0].File != "memory/2026-Q2.jsonl" || m.Layers.Identity.Version != 3 {
		t.Errorf("layers: %+v", m.Layers)
	}
}

func TestBadInput(t *testing.T) {
	with := func(member string) string { return strings.Replace(smallRecord, `"status"`, member+`,"status"`, 1) }
	nulls := with(`"tags":null`)
	for name, tc := range map[string]struct {
		archive []byte
		want    string
	}{
		"no zip":           {[]byte("PK\x03\x04 nothing"), "not a whole ZIP archive"},
		"empty":            {nil, "not a whole ZIP archive"},
		"truncated":        {state{soul: "# A", records: []*Record{rec("MEMORY.md", 0, "x")}}.archive(t)[:300], "not a whole ZIP archive"},
		"no manifest":      {pack(t, entry{name: "x", text: "y"}), "manifest.json"},
		"climbs":           {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "raw/openclaw/../../x", text: "y"}), "leaves its directory"},
		"absolute":         {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "/etc/x", text: "y"}), "is absolute"},
		"absolute in raw":  {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "raw/openclaw//etc/x", text: "y"}), "empty segment"},
		"drive":            {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "C:x", text: "y"}), "drive letter"},
		"drive in raw":     {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "raw/openclaw/C:/x", text: "y"}), "drive letter"},
		"drive in files":   {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "artifacts/C:x", text: "y"}), "drive letter"},
		"backslash":        {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: `raw\openclaw\..\x`, text: "y"}), "backslash"},
		"device":           {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "raw/openclaw/NUL.md", text: "y"}), "reserve"},
		"control":          {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "raw/openclaw/a\x1b[2J", text: "y"}), "control character"},
		"twice":            {pack(t, entry{name: "manifest.json", text: smallManifest}, entry{name: "a", text: "1"}, entry{name: "a", text: "2"}), "stands twice"},
		"bom":              {pack(t, entry{name: "manifest.json", text: "\ufeff" + smallManifest}), "manifest.json"},
		"doubled key":      {pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, `"layers"`, `"layers":{},"layers"`, 1)}), "duplicate"},
		"no index_file":    {pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, `"layers":{}`, `"layers":{"memory":{"record_count":0,"partitions":[]}}`, 1)}), "index_file is missing"},
		"not sealed":       {pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, `"layers":{}`, `"layers":{"memory":{"record_count":0,"index_file":"i","partitions":[{"file":"f","from":"2026-01-01","record_count":0}]}}`, 1)}), "partitions[0].sealed is missing"},
		"null array":       {withRecords(t, 1, nulls), "null"},
		"missing layer":    {pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, `"layers":{}`, `"layers":{"identity":{"version":1,"file":"identity.json"}}`, 1)}), "identity.json is missing"},
		"bad time":         {withRecords(t, 1, strings.Replace(smallRecord, "09:30:00Z", "09:30", 1)), "no time with"},
		"half a line":      {withRecords(t, 1, smallRecord[:80]), "memory/2026-Q2.jsonl:1"},
		"no content":       {withRecords(t, 1, strings.Replace(smallRecord, `"tea"`, `""`, 1)), "content is missing or empty"},
		"confidence":       {withRecords(t, 1, strings.Replace(smallRecord, `"status"`, `"confidence":9,"status"`, 1)), "between 0 and 1"},
		"dimensions":       {withRecords(t, 1, strings.Replace(smallRecord, `"status"`, `"embeddings":[{"model":"m","dimensions":3,"vector":[1],"computed_at":"2026-05-04T09:30:00Z","source":"runtime"}],"status"`, 1)), "the vector has 1"},
		"null in an array": {withRecords(t, 1, with(`"tags":["a",null]`)), "must not hold null"},
		"null in a vector": {withRecords(t, 1, with(`"embeddings":[{"model":"m","dimensions":1,"vector":[null],"computed_at":"2026-05-04T09:30:00Z","source":"runtime"}]`)), "must not hold null"},
		"no vector":        {withRecords(t, 1, with(`"embeddings":[{"model":"m","dimensions":0,"computed_at":"2026-05-04T09:30:00Z","source":"runtime"}]`)), "vector is missing"},
		"nameless entity":  {withRecords(t, 1, with(`"entities":[{"type":"person"}]`)), "entities[0].name is missing"},
		"related to none":  {withRecords(t, 1, with(`"related_records":[{"relation":"r"}]`)), "related_records[0].id is missing"},
		"negative version": {withRecords(t, 1, strings.Replace(smallRecord, `"runtime":"openclaw"`, `"runtime":"openclaw","identity_version":-1`, 1)), "identity_version must be 1 or more"},
		"negative count":   {layered(t, `"principals":{"count":-1,"file":"p"}`, `{"principals":[]}`), "principals.count must not be negative"},
		"no framework":     {layered(t, `"identity":{"version":1,"file":"p"}`, `{"structured":{"psychology":{"personality_traits":{"scores":{}}}}}`), "personality_traits.framework is missing"},
		"null in a map":    {layered(t, `"identity":{"version":1,"file":"p"}`, `{"prose":{"custom_blocks":{"k":null}}}`), "must not hold null"},
		"no capabilities":  {layered(t, `"identity":{"version":1,"file":"p"}`, `{"structured":{"sub_agents":[{"name":"n","status":"active"}]}}`), "sub_agents[0].capabilities is missing"},
		"hints":            {pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, `"layers"`, `"runtime_hints":"fast","layers"`, 1)}), "runtime_hints"},
		"count":            {withRecords(t, 2, smallRecord), "and there are 1"},
		"version":          {pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, "1.0.0", "1.0.0-rc.1", 1)}), "of the form 1.0.0"},
		"checksum":         {pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, `"layers"`, `"checksum":"md5","layers"`, 1)}), "algorithm:hex"},
		"not UTF-8":        {withRecords(t, 1, strings.Replace(smallRecord, "tea", "t\xffa", 1)), "UTF-8"},
		"unknown method":   {relabel(t, 12), "only stored and deflate"},
		"string for count": {pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, `"layers":{}`, `"layers":{"principals":{"count":"1","file":"p"}}`, 1)}), "manifest.json"},
	} {
		t.Run(name, func(t *testing.T) {
			rep := ValidateReader(bytes.NewReader(tc.archive), int64(len(tc.archive)), DefaultLimits)
			var all strings.Builder
			for _, f := range rep.Errors {
				all.WriteString(strings.ReplaceAll(f.String(), "#", " ") + "\n")
				if strings.Contains(f.String(), "Go ") {
					t.Errorf("a finding speaks of Go: %s", f)
				}
			}
			text := strings.NewReplacer(": ", " ").Replace(all.String())
			if rep.Valid || !strings.Contains(text, strings.ReplaceAll(tc.want, ": ", " ")) {
				t.Errorf("valid %v, findings:\n%s\nwant one with %q", rep.Valid, text, tc.want)
			}
		})
	}
}

// layered is an archive whose manifest names a layer in the entry p.
func layered(t *testing.T, layer, document string) []byte {
	return pack(t, entry{name: "manifest.json", text: strings.Replace(smallManifest, `"layers":{}`, `"layers":{`+layer+`}`, 1)}, entry{name: "p", text: document})
}

// relabel returns an archive whose entry claims another method of packing.
func relabel(t *testing.T, method byte) []byte {
	archive := pack(t, entry{name: "manifest.json", text: smallManifest})
	at := bytes.Index(archive, []byte("PK\x01\x02"))
	archive[at+10] = method
	return archive
}

func TestBombs(t *testing.T) {
	zeros := strings.Repeat("\x00", 1<<20)
	tight := Limits{Entries: 10, Bytes: 4 << 20, Document: 1 << 16, Line: 1 << 16, Ratio: 20, RatioFrom: 1 << 19}
	manifest := entry{name: "manifest.json", text: smallManifest}
	many := []entry{manifest}
	for i := range 11 {
		many = append(many, entry{name: "raw/openclaw/" + itoa(i), text: "x"})
	}
	big := []entry{manifest}
	for i := range 5 {
		big = append(big, entry{name: "raw/openclaw/" + itoa(i), text: zeros, method: zip.Deflate})
	}
	for name, tc := range map[string]struct {
		archive []byte
		want    string
	}{
		"entries":  {pack(t, many...), "entries"},
		"bytes":    {pack(t, big...), "unpacks to more than"},
		"ratio":    {pack(t, big[:2]...), "bomb"},
		"document": {pack(t, entry{name: "manifest.json", text: smallManifest + strings.Repeat(" ", 1<<17)}), "more than the 65536"},
		"line":     {withRecords(t, 1, strings.Replace(smallRecord, "tea", strings.Repeat("t", 1<<17), 1)), "longer than 65536"},
	} {
		rep := ValidateReader(bytes.NewReader(tc.archive), int64(len(tc.archive)), tight)
		if rep.Valid || !strings.Contains(rep.Text(), tc.want) {
			t.Errorf("%s: %s", name, rep.Text())
		}
		r, err := NewReader(bytes.NewReader(tc.archive), int64(len(tc.archive)), tight)
		if name == "line" {
			if err != nil {
				t.Fatal(err)
			}
			for _, err = range r.Records() {
			}
		}
		if !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%s: reading gave %v", name, err)
		}
	}
}

func TestChecksum(t *testing.T) {
	whole := state{soul: "# Ada", raw: map[string]string{"SOUL.md": "# Ada"}, records: []*Record{rec("MEMORY.md", 0, "tea")}}.archive(t)
	if ours, err := read(t, whole).Verify(); !ours || err != nil {
		t.Fatalf("Verify() = %v, %v", ours, err)
	}
	z, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	var changed []entry
	for _, f := range z.File {
		text, err := readDocument(f, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		changed = append(changed, entry{name: f.Name, text: strings.Replace(string(text), `"tea"`, `"coffee"`, 1)})
	}
	forged := pack(t, changed...)
	if _, err := read(t, forged).Verify(); !errors.Is(err, memory.ErrCorrupt) {
		t.Errorf("Verify() of a changed archive: %v", err)
	}
	if rep := ValidateReader(bytes.NewReader(forged), int64(len(forged)), DefaultLimits); rep.Valid {
		t.Error("a changed archive is valid")
	}
}

// TestSchemas checks what is written against the format's own JSON schemas,
// whose one departure is told in the test: ids there are of version 7.
func TestSchemas(t *testing.T) {
	s := full(t)
	r := read(t, s)
	for name, schema := range map[string]string{"manifest.json": "manifest", "identity.json": "identity", "principals.json": "principals", "credentials.json": "credentials", "attachments.json": "attachments"} {
		text, err := readDocument(r.entries[name], DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, schema, text)
	}
	for _, rec := range records(t, r) {
		text, err := line(rec)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, "memory-record", text)
	}
}

func holds(t *testing.T, schema string, text []byte) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "schemas", schema+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.ReplaceAll(raw, []byte("-7[0-9a-f]{3}-"), []byte("-[57][0-9a-f]{3}-"))
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(doc); err != nil {
		t.Errorf("%s: %v\n%s", schema, err, text)
	}
}

func TestDeterministic(t *testing.T) {
	if a, b := full(t), full(t); !bytes.Equal(a, b) {
		t.Error("two archives of the same contents differ")
	}
}

// full is an archive with every layer.
func full(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, t.TempDir())
	half, path := 0.5, "artifacts/a.png"
	credential := Credential{ID: testAgent, AgentID: testAgent, Service: "openai", CredentialType: "api_key", CreatedAt: At(testNow), Tags: List[string]{"metadata-only"}}
	credential.Withheld()
	for _, err := range []error{
		w.Identity(Identity{ID: testAgent, AgentID: testAgent, Version: 1, UpdatedAt: At(testNow), Structured: &StructuredIdentity{Names: &Names{Primary: "Ada"}, SubAgents: List[SubAgent]{{Name: "Scout", Status: "active", Capabilities: List[Capability]{{Name: "search"}}}}}, Prose: &ProseIdentity{Soul: "# Ada", CustomBlocks: Map[string]{"b": "2", "a": "1"}}}),
		w.Principals(Principals{Principals: List[Principal]{{ID: testAgent, PrincipalType: "human", Profile: Profile{ID: testAgent, AgentID: testAgent, PrincipalID: testAgent, Version: 1, UpdatedAt: At(testNow)}}}}),
		w.Credentials(Credentials{Credentials: List[Credential]{credential}}),
		w.Attachments(Attachments{SizeThreshold: 100, Attachments: List[Attachment]{{ID: testAgent, Filename: "a.png", MediaType: "image/png", SizeBytes: 1, Hash: Hash{Algorithm: "sha256", Value: "00"}, SourcePath: "a.png", ArchivePath: &path}}}),
		w.File(path, strings.NewReader("x")),
		w.Raw("openclaw", "SOUL.md", strings.NewReader("# Ada")),
		w.Record(rec("MEMORY.md", 0, "tea", at(1, 2), func(r *Record) { r.Confidence = &half; r.Category = "decision" })),
		w.Record(rec("memory/2025-12-31.md", 0, "old", func(r *Record) { r.Temporal.ObservedAt = At(testNow.AddDate(-1, 0, 0)) })),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := w.Finish(Manifest{Agent: Agent{ID: testAgent, Name: "Ada", SourceRuntime: "openclaw"}}, Form{CreatedAt: fixedTime})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := m.Layers.Memory.Partitions; len(got) != 2 || got[0].File != "memory/2025-Q2.jsonl" || got[1].To != "2026-06-30" {
		t.Errorf("partitions: %+v", got)
	}
	if rep := ValidateReader(bytes.NewReader(out.Bytes()), int64(out.Len()), DefaultLimits); !rep.Valid || len(rep.Warnings) > 0 {
		t.Errorf("a full archive: %s", rep.Text())
	}
	return out.Bytes()
}

func TestShow(t *testing.T) {
	o, err := Show(read(t, full(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := Overview{OK: true, Manifest: o.Manifest, of: o.of, Records: 2, Types: map[string]int{"semantic": 2}, Namespaces: map[string]int{"workspace": 2}, Statuses: map[string]int{"active": 2},
		RawFiles: []Entry{{"openclaw/SOUL.md", 5}}, Artifacts: []Entry{{"artifacts/a.png", 1}}, Principals: []string{"human"}, Credentials: []string{"openai (api_key)"}, SubAgents: []string{"Scout"}}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(Overview{})); diff != "" {
		t.Error(diff)
	}
}

func TestCompose(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []Section
		want string
	}{
		"as it stood":     {[]Section{{"## B", 4, 4}, {"## A\n\nx", 1, 3}}, "## A\n\nx\n## B\n"},
		"blank line kept": {[]Section{{"## A\n", 1, 2}, {"## B\n\ny", 3, 5}}, "## A\n\n## B\n\ny\n"},
		"strangers":       {[]Section{{"one", 0, 0}, {"two", 0, 0}}, "one\n\ntwo\n"},
		"gap":             {[]Section{{"## A", 1, 1}, {"## C", 5, 5}}, "## A\n\n## C\n"},
		"none":            {nil, ""},
	} {
		if got := Compose(tc.in); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestFileName(t *testing.T) {
	for in, want := range map[string]string{"custom:work": "custom-work", "../../x": "x", "": "memory-", "nul": "memory-nul", "プロジェクト": "プロジェクト", "a/b": "a-b", strings.Repeat("é", 200): strings.Repeat("é", 60)} {
		got := FileName(in)
		if got != want {
			t.Errorf("FileName(%q) = %q, want %q", in, got, want)
		}
		if err := CheckPath("memory/" + got + ".md"); err != nil {
			t.Error(err)
		}
	}
}
