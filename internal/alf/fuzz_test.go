package alf

import (
	"bytes"
	"testing"
)

// FuzzReader reads what no program wrote: it must end in findings or records,
// and whatever is read without an error must be valid to write again.
func FuzzReader(f *testing.F) {
	f.Add(pack(f, entry{name: "manifest.json", text: smallManifest}))
	f.Add(withRecords(f, 1, smallRecord))
	f.Add(state{soul: "# Ada", user: "# Ines", raw: map[string]string{"SOUL.md": "# Ada"}, records: []*Record{rec("MEMORY.md", 0, "tea", at(1, 2))}}.archive(f))
	changes, _ := delta(f, state{soul: "# Ada", records: []*Record{rec("MEMORY.md", 0, "tea")}}.archive(f), state{soul: "# Bo", raw: map[string]string{"x.md": "x"}}.archive(f))
	f.Add(changes)
	f.Add([]byte("PK\x05\x06"))
	lim := Limits{Entries: 20, Bytes: 1 << 20, Document: 1 << 18, Line: 1 << 16, Ratio: 200, RatioFrom: 1 << 18}
	f.Fuzz(func(t *testing.T, archive []byte) {
		in := bytes.NewReader(archive)
		rep := ValidateReader(in, int64(len(archive)), lim)
		if d, err := NewDeltaReader(in, int64(len(archive)), lim); err == nil {
			for _, err := range d.Records() {
				if rep.Valid && err != nil {
					t.Fatalf("a valid delta, and cannot be read: %v", err)
				}
			}
		}
		r, err := NewReader(in, int64(len(archive)), lim)
		if err != nil {
			return
		}
		_, showErr := Show(r)
		if rep.Valid && showErr != nil {
			t.Fatalf("valid, and cannot be shown: %v", showErr)
		}
		if !rep.Valid {
			return
		}
		var out bytes.Buffer
		w := NewWriter(&out, t.TempDir())
		if _, _, err := Apply(r, nil, w, t.TempDir(), Form{CreatedAt: fixedTime}); err != nil {
			t.Fatalf("valid, and cannot be copied: %v", err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if again := ValidateReader(bytes.NewReader(out.Bytes()), int64(out.Len()), DefaultLimits); !again.Valid || again.Records != rep.Records {
			t.Fatalf("the copy: %s", again.Text())
		}
	})
}

// FuzzRecord writes back what it reads.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(smallRecord))
	f.Add([]byte(`{"id":null,"x":[1,{"y":null}],"temporal":{"created_at":"+12026-01-01T00:00:00.5Z"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Record
		if decode(text, &r) != nil {
			return
		}
		once, err := line(&r)
		if err != nil {
			t.Fatal(err)
		}
		var again Record
		if err := decode(once, &again); err != nil {
			t.Fatalf("%v in %s", err, once)
		}
		twice, err := line(&again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s\nis read and written as\n%s (%v)", once, twice, err)
		}
	})
}
