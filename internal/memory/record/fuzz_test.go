package record

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzParseObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, ` { "a" : [1, {"b":"}\""}] , "a":2 } `, `{"a":{"b":[]},"c":"\\","":-1.5e-3}`, `{"a":tru}`, `[1]`, `{"a"`, "{\"a\xff\":1}", `{"\ud800":1,"\udfff":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := parseObject("x", raw)
		var want map[string]json.RawMessage
		isObject := json.Unmarshal(raw, &want) == nil && want != nil && utf8.Valid(raw)
		if (err == nil) != isObject {
			t.Fatalf("parseObject(%q) = %v, encoding/json says %v", raw, err, isObject)
		}
		if err != nil {
			return
		}
		again, err := parseObject("x", o.raw())
		if err != nil || !bytes.Equal(again.raw(), o.raw()) {
			t.Fatalf("%q reads back as %q, %v", o.raw(), again.raw(), err)
		}
		if strings.Contains(string(raw), `\u`) {
			return // half surrogates have one name in encoding/json
		}
		if len(o) != len(want) {
			t.Fatalf("%q has %d members, encoding/json says %d", raw, len(o), len(want))
		}
		for name, value := range want {
			var compact bytes.Buffer
			if err := json.Compact(&compact, value); err != nil {
				t.Fatal(err)
			}
			if got, has := o.get(name); !has || string(got) != compact.String() {
				t.Fatalf("member %q of %q = %q, want %q", name, raw, got, compact.String())
			}
		}
	})
}

func FuzzStandard(f *testing.F) {
	for _, seed := range []string{`{"a":NaN}`, `["NaN",-Infinity]`, `"\"NaN`, `nullNaN`, `{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, ok := standard(text)
		if ok != json.Valid(raw) || json.Valid([]byte(text)) && string(raw) != text {
			t.Fatalf("standard(%q) = %q, %v", text, raw, ok)
		}
	})
}

func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{"2026-03-01T00:00:00Z", "2026-03-01", "2026-03-01 00:00:00.5-07:00", "0000-01-01", "9999-12-31T23:59:59.999999+14:00", "9999-12-31 12:00-1200", "now"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, zoned, ok := parseTime(s)
		if !ok {
			if canonicalTime(s) != s {
				t.Fatalf("canonicalTime(%q) = %q", s, canonicalTime(s))
			}
			return
		}
		back, _, ok := parseTime(formatTime(at))
		if !ok || !back.Equal(at) {
			t.Fatalf("%q is %v, written %q, read back %v", s, at, formatTime(at), back)
		}
		if zoned && canonicalTime(canonicalTime(s)) != canonicalTime(s) {
			t.Fatalf("canonicalTime(%q) is not stable", s)
		}
	})
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{"---\nainl_namespace: long_term\nainl_record_kind: long_term.project_fact\nainl_record_id: f1\n---\nbody", "## A\nx\n## A\ny\n```\n## z\n```\n", "- [09:00] a\n[b](c)\n---\n- d\n\r\n[", "---", "\r\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if matter, body, found := frontMatter(text); found && (matter == nil || len(body) > len(text)) {
			t.Fatalf("front matter of %q: %v %q", text, matter, body)
		}
		taken := map[string]bool{}
		for _, s := range sections(text) {
			if s.slug == "" || s.body == "" || taken[s.slug] || s.slug != strings.Trim(s.slug, "_") && !strings.Contains(s.slug, "_") {
				t.Fatalf("section %+v of %q", s, text)
			}
			taken[s.slug] = true
		}
		lines := 0 // that say something; a rule after a time of day is what was noted then
		for _, line := range splitLines(text) {
			if line = strings.TrimFunc(line, isSpace); line != "" && line != "---" {
				lines++
			}
		}
		entries := dailyEntries(text)
		if len(entries) != lines {
			t.Fatalf("%d entries of %d lines of %q", len(entries), lines, text)
		}
		for _, e := range entries {
			if strings.ContainsAny(e.Text, "\n\r") || e.TS == nil && e.Text == "" {
				t.Fatalf("entry %+v of %q", e, text)
			}
		}
	})
}

func FuzzValidate(f *testing.F) {
	for _, seed := range []string{`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{}}`, `[null,{"payload":[]},{"metadata":{"tags":[""]}}]`, `{"namespace":"session","record_kind":"workflow.x","ttl_seconds":1.0}`, `"x"`} {
		f.Add([]byte(seed))
	}
	validators := map[string]Validator{}
	for _, profile := range []string{ProfileV1, ProfileV11} {
		v, err := NewValidator(profile, Config{})
		if err != nil {
			f.Fatal(err)
		}
		validators[profile] = v
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		loose, err := validators[ProfileV1].Check(raw)
		strict, strictErr := validators[ProfileV11].Check(raw)
		if (err == nil) != json.Valid(raw) || (err == nil) != (strictErr == nil) {
			t.Fatalf("Check(%q) = %v, %v", raw, err, strictErr)
		}
		if strict.OK && !loose.OK || len(strict.Issues) < len(loose.Issues) {
			t.Fatalf("Check(%q): v1.1 finds less than v1:\n%v\n%v", raw, strict, loose)
		}
		for _, i := range strict.Issues {
			if i.Message == "" || i.Kind != IssueError && i.Kind != IssueWarning {
				t.Fatalf("Check(%q): %+v", raw, i)
			}
		}
	})
}

func FuzzReadRecords(f *testing.F) {
	for _, seed := range []string{`[]`, `[{"a":1},2]`, `{"a":1}`, "{}\n\n{}\n", `[1,`, `[1]]`, ``, ` [ ] `} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, lines bool) {
		var got []any
		var failed error
		for raw, err := range ReadRecords(bytes.NewReader(text), lines) {
			if failed != nil {
				t.Fatal("it goes on after an error")
			}
			if failed = err; err != nil {
				continue
			}
			v, err := decodeAny(raw)
			if err != nil {
				t.Fatalf("%q yields %q", text, raw)
			}
			got = append(got, v)
		}
		if lines {
			return
		}
		if (failed == nil) != json.Valid(text) {
			t.Fatalf("ReadRecords(%q) = %v", text, failed)
		}
		if failed != nil {
			return
		}
		want, err := decodeAny(text)
		if err != nil {
			t.Fatal(err)
		}
		list, isList := want.([]any)
		if !isList {
			list = []any{want}
		}
		if len(list)+len(got) > 0 && !reflect.DeepEqual(got, list) {
			t.Fatalf("ReadRecords(%q) = %v, want %v", text, got, list)
		}
	})
}

// FuzzTTL: a record that is expired stays so, and a longer time to live never ends
// earlier.
func FuzzTTL(f *testing.F) {
	for _, seed := range []string{"2026-03-01T00:00:00Z", "2026-03-01T00:00:00+14:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-03-01", "now", ""} {
		f.Add(seed, int64(3600), int64(0), int64(1))
		f.Add(seed, int64(-1), int64(1<<62), int64(1<<40))
	}
	f.Fuzz(func(t *testing.T, created string, ttl, at, later int64) {
		const farthest = 253402300799 // the last second of the year 9999
		now := time.Unix(((at%farthest)+farthest)%farthest, 0)
		after := now.Add(time.Duration(((later % 1e9) + 1e9) % 1e9 * 1e9))
		switch {
		case expired(created, nil, now):
			t.Fatal("it expires without a time to live")
		case expired(created, &ttl, now) && !expired(created, &ttl, after):
			t.Fatalf("%q with %d s is back at %s", created, ttl, after)
		}
		if longer := ttl + 1; longer > ttl && expired(created, &longer, now) && !expired(created, &ttl, now) {
			t.Fatalf("%q: %d s end before %d s", created, longer, ttl)
		}
	})
}
