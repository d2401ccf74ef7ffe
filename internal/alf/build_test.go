package alf

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

var (
	testAgent = uuid.MustParse("bf0101d6-8c57-53ff-a921-bbc807a06e90")
	testNow   = time.Date(2026, 5, 4, 9, 30, 0, 0, time.UTC)
)

// entry is one file of an archive that a test makes by hand.
type entry struct {
	name, text string
	method     uint16
}

func pack(t testing.TB, list ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, e := range list {
		if e.method == 0 {
			e.method = zip.Deflate
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: e.name, Method: e.method})
		if err == nil {
			_, err = w.Write([]byte(e.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(t testing.TB, archive []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(archive), int64(len(archive)), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func records(t testing.TB, r *Reader) []*Record {
	t.Helper()
	var out []*Record
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

// rec is a record that was cut from a file.
func rec(file string, index int, content string, edit ...func(*Record)) *Record {
	r := &Record{
		ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(file+":"+string(rune('0'+index)))), AgentID: testAgent, Content: content, MemoryType: Semantic, Status: Active, Namespace: "workspace",
		Source:   Source{Runtime: "openclaw", Origin: "workspace", OriginFile: file, ExtractionMethod: AgentWritten},
		Temporal: Temporal{CreatedAt: At(testNow), UpdatedAt: At(testNow)}, Tags: List[string]{"workspace"},
	}
	for _, e := range edit {
		e(r)
	}
	return r
}

// at gives a record its lines.
func at(start, end int) func(*Record) {
	return func(r *Record) {
		raw, err := line(Lines{Start: start, End: end})
		if err != nil {
			panic(err)
		}
		r.RawSourceFormat = raw
	}
}

// state is what a test's archive holds.
type state struct {
	records    []*Record
	soul, user string
	raw        map[string]string
}

func (s state) archive(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, t.TempDir())
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.soul != "" {
		check(w.Identity(Identity{ID: testAgent, AgentID: testAgent, Version: 1, UpdatedAt: At(testNow), Prose: &ProseIdentity{Soul: s.soul}}))
	}
	if s.user != "" {
		check(w.Principals(Principals{Principals: List[Principal]{{ID: testAgent, PrincipalType: "human",
			Profile: Profile{ID: testAgent, AgentID: testAgent, PrincipalID: testAgent, Version: 1, UpdatedAt: At(testNow), Prose: &ProseProfile{UserProfile: s.user}}}}}))
	}
	for path, text := range s.raw {
		check(w.Raw("openclaw", path, strings.NewReader(text)))
	}
	for _, r := range s.records {
		check(w.Record(r))
	}
	_, err := w.Finish(Manifest{Agent: Agent{ID: testAgent, Name: "Ada", SourceRuntime: "openclaw"}}, Form{CreatedAt: func(string) time.Time { return testNow }})
	check(err)
	check(w.Close())
	return out.Bytes()
}

const smallManifest = `{"alf_version":"1.0.0","created_at":"2026-05-04T09:30:00Z","agent":{"id":"bf0101d6-8c57-53ff-a921-bbc807a06e90","name":"Ada","source_runtime":"openclaw"},"layers":{}}`

// withRecords is an archive of one partition with the given lines.
func withRecords(t testing.TB, count int, lines string) []byte {
	t.Helper()
	manifest := strings.Replace(smallManifest, `"layers":{}`, `"layers":{"memory":{"record_count":`+string(rune('0'+count))+`,"index_file":"memory/index.json","partitions":[{"file":"memory/2026-Q2.jsonl","from":"2026-04-01","record_count":`+string(rune('0'+count))+`,"sealed":false}]}}`, 1)
	return pack(t, entry{name: "manifest.json", text: manifest}, entry{name: "memory/2026-Q2.jsonl", text: lines})
}
