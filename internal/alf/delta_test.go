package alf

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func itoa(i int) string { return strconv.Itoa(i) }

func fixedTime(string) time.Time { return testNow }

func delta(t testing.TB, old, new []byte) ([]byte, *Difference) {
	t.Helper()
	a, b := read(t, old), read(t, new)
	d, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := WriteDelta(&out, t.TempDir(), a, b, d, testNow); err != nil {
		t.Fatal(err)
	}
	if rep := ValidateReader(bytes.NewReader(out.Bytes()), int64(out.Len()), DefaultLimits); !rep.Valid || rep.Kind != "delta" || len(rep.Warnings) > 0 {
		t.Errorf("the delta: %s", rep.Text())
	}
	return out.Bytes(), d
}

func apply(t testing.TB, base []byte, deltas ...[]byte) ([]byte, Applied) {
	t.Helper()
	var list []*DeltaReader
	for _, d := range deltas {
		r, err := NewDeltaReader(bytes.NewReader(d), int64(len(d)), DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	var out bytes.Buffer
	w := NewWriter(&out, t.TempDir())
	_, done, err := Apply(read(t, base), list, w, t.TempDir(), Form{CreatedAt: fixedTime})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), done
}

func rawOf(t testing.TB, r *Reader) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range r.Raw("openclaw") {
		text, err := f.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		out[f.Path] = string(text)
	}
	return out
}

func TestDeltaTellsMoves(t *testing.T) {
	later := func(r *Record) { r.Temporal.UpdatedAt = At(testNow.AddDate(0, 1, 0)) }
	old := state{soul: "# Ada", raw: map[string]string{"SOUL.md": "# Ada", "memory/gone.md": "bye"}, records: []*Record{
		rec("MEMORY.md", 0, "## A\n\nalpha\n"), rec("MEMORY.md", 1, "## B\n\nbeta\n"), rec("MEMORY.md", 2, "## C"),
		rec("memory/a.md", 0, "one"), rec("memory/gone.md", 0, "bye"), rec("memory/project-old.md", 0, "body"),
	}}
	new := state{soul: "# Ada the second", raw: map[string]string{"SOUL.md": "# Ada the second", "memory/new.md": "hi"}, records: []*Record{
		rec("MEMORY.md", 0, "## B\n\nbeta\n", later), rec("MEMORY.md", 1, "## A\n\nalpha", later), rec("MEMORY.md", 2, "## C", later),
		rec("memory/a.md", 0, "one, edited", later), rec("memory/a.md", 1, "two"), rec("memory/project-new.md", 0, "body"),
	}}
	base, now := old.archive(t), new.archive(t)
	text, d := delta(t, base, now)
	titles := func(refs []Ref) []string {
		var out []string
		for _, r := range refs {
			out = append(out, r.Title)
		}
		return out
	}
	var moves []string
	for _, m := range d.Moved {
		moves = append(moves, m.FromFile+" > "+m.ToFile+" "+m.Title)
	}
	for what, got := range map[string][2]any{
		"added": {titles(d.Added), []string{"two"}}, "edited": {titles(d.Edited), []string{"one, edited"}}, "removed": {titles(d.Removed), []string{"bye"}},
		"moved":      {moves, []string{"MEMORY.md > MEMORY.md B", "MEMORY.md > MEMORY.md A", "memory/project-old.md > memory/project-new.md body"}},
		"operations": {d.Operations, map[string]int{"create": 2, "update": 3, "delete": 2}}, "touched": {d.Touched, 1}, "layers": {d.Layers, []string{"identity"}},
	} {
		if diff := cmp.Diff(got[1], got[0]); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	again, _ := apply(t, base, text)
	if diff := cmp.Diff(rawOf(t, read(t, now)), rawOf(t, read(t, again))); diff != "" {
		t.Errorf("files after the delta: %s", diff)
	}
	if d, err := Compare(read(t, now), read(t, again)); err != nil || !d.Empty() || d.Touched != 1 {
		t.Errorf("base and delta are not the new state: %+v, %v", d, err)
	}
}

// TestForeignDelta applies a delta as the client alf writes it: records and no
// files. The files that the records came from must not stay as they were.
func TestForeignDelta(t *testing.T) {
	base := state{soul: "# Ada", user: "# Ines", raw: map[string]string{"SOUL.md": "# Ada", "USER.md": "# Ines", "MEMORY.md": "## A\n\nx\n\n## B\n", "memory/x.md": "gone"}, records: []*Record{
		rec("MEMORY.md", 0, "## A\n\nx\n", at(1, 4)), rec("MEMORY.md", 1, "## B", at(5, 5)), rec("memory/x.md", 0, "gone", at(1, 1)),
	}}.archive(t)
	operation := func(op string, r *Record) string {
		text, err := line(Change{op, *r})
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	short := `{"operation":"delete","id":"` + rec("memory/x.md", 0, "").ID.String() + `"}` + "\n"
	manifest := `{"alf_version":"1.0.0","created_at":"2026-05-05T00:00:00Z","agent":{"id":"` + testAgent.String() + `"},"sync":{"base_sequence":0,"new_sequence":0},"changes":{"identity":{"file":"identity.json","new_version":2},"memory":{"file":"memory/delta.jsonl","record_count":3}}}`
	identity := `{"id":"` + testAgent.String() + `","agent_id":"` + testAgent.String() + `","version":2,"updated_at":"2026-05-05T00:00:00Z","prose":{"soul":"# Ada, older"}}`
	for _, name := range []string{"delta-manifest.json", "manifest.json"} {
		d := pack(t, entry{name: name, text: manifest}, entry{name: "identity.json", text: identity}, entry{name: "memory/delta.jsonl", text: operation(Update, rec("MEMORY.md", 1, "## B, edited", at(5, 5))) +
			operation(Create, rec("memory/y.md", 0, "new", at(1, 1))) + operation(Delete, rec("memory/x.md", 0, "gone", at(1, 1))) + short + operation("rename", rec("MEMORY.md", 0, "?"))})
		got, done := apply(t, base, d)
		want := map[string]string{"SOUL.md": "# Ada, older", "USER.md": "# Ines", "MEMORY.md": "## A\n\nx\n\n## B, edited\n", "memory/y.md": "new\n"}
		if diff := cmp.Diff(want, rawOf(t, read(t, got))); diff != "" {
			t.Errorf("%s: files: %s", name, diff)
		}
		if done.Created != 1 || done.Updated != 1 || done.Deleted != 1 || len(done.Warnings) != 1 || !slices.Equal(done.Rewrites, []string{"MEMORY.md", "SOUL.md", "memory/x.md", "memory/y.md"}) {
			t.Errorf("%s: %+v", name, done)
		}
		if m := read(t, got).Manifest(); m.Sync == nil || m.Sync.LastSequence != 1 {
			t.Errorf("%s: sync %+v", name, m.Sync)
		}
	}
}

// TestDeltaChain makes random histories and expects the last state from the
// first and all deltas.
func TestDeltaChain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		states := rapid.SliceOfN(rapid.Custom(randomState), 2, 4).Draw(rt, "states")
		base := states[0].archive(t)
		var chain [][]byte
		old := base
		for _, s := range states[1:] {
			next := s.archive(t)
			d, _ := delta(t, old, next)
			chain, old = append(chain, d), next
		}
		got, _ := apply(t, base, chain...)
		a, b := read(t, old), read(t, got)
		if d, err := Compare(a, b); err != nil || !d.Empty() {
			rt.Fatalf("not the last state: %+v, %v", d, err)
		}
		if diff := cmp.Diff(rawOf(t, a), rawOf(t, b)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func randomState(rt *rapid.T) state {
	texts := rapid.SampledFrom([]string{"one", "two", "## A\n\nx\n", "## B", "tea"})
	s := state{soul: rapid.SampledFrom([]string{"", "# Ada", "# Bo"}).Draw(rt, "soul"), user: rapid.SampledFrom([]string{"", "# Ines", "# Jo"}).Draw(rt, "user"), raw: map[string]string{}}
	for _, file := range []string{"MEMORY.md", "memory/a.md", "memory/b.md"} {
		sections := rapid.SliceOfN(texts, 0, 4).Draw(rt, file)
		for i, content := range sections {
			s.records = append(s.records, rec(file, i, content))
		}
		if len(sections) > 0 {
			s.raw[file] = strings.Join(sections, "\n")
		}
	}
	return s
}
