package record

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// write makes files below a new directory and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fact(id, rest, body string) string {
	return "---\nainl_namespace: long_term\nainl_record_kind: long_term.project_fact\nainl_record_id: " + id + "\n" + rest + "---\n" + body
}

func TestDefectPathTraversalInMarkdownExport(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	outside, root := t.TempDir(), filepath.Join(t.TempDir(), "out")
	for _, id := range []string{"../../x", "/etc/x", "2026-03-09/../../y", "2026-03-09\x00", "２０２６-03-09", "2026-03-08", "2025-03-08"} {
		f.put(Key{dailyLog, dailyNote, id}, `{"entries":[{"text":"secret plan"}]}`, nil, "")
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "2025")); err != nil { // a year that leads elsewhere
		t.Fatal(err)
	}
	if _, err := f.ExportDailyLog(ctx, root, true); err == nil {
		t.Error("the export followed a link out of its root")
	}
	if err := os.Remove(filepath.Join(root, "2025")); err != nil {
		t.Fatal(err)
	}
	result, err := f.ExportDailyLog(ctx, root, false)
	if err != nil || len(result.Written) != 2 || len(result.Skipped) != 5 {
		t.Errorf("ExportDailyLog = %+v, %v", result, err)
	}
	var files []string
	err = filepath.WalkDir(filepath.Dir(root), func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(p, root))
		}
		return err
	})
	if got := strings.Join(files, " "); err != nil || got != "/2025/2025-03-08.md /2026/2026-03-08.md" {
		t.Errorf("files = %s, %v", got, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("outside the root: %v, %v", entries, err)
	}
	st, err := os.Stat(filepath.Join(root, "2026", "2026-03-08.md"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

func TestDailyTextOfOddEntries(t *testing.T) {
	for payload, want := range map[string]string{
		`{"entries":[{"ts":"2","text":"b"},{"text":null},{"ts":1.50,"text":7},{"ts":null,"text":"first"},{"ts":"","text":true},{"ts":0}]}`: "- \n- first\n- True\n- \n- [1.5] 7\n- [2] b\n",
		`{"entries":{},"text":"alone"}`: "- alone\n",
		`{"entries":[1,"x"]}`:           "_No entries recorded in memory for this day._\n",
		`{"other":1}`:                   "_No entries recorded in memory for this day._\n",
		`{"ts":"9","entries":null}`:     "- [9] \n",
	} {
		got, err := dailyText("2026-03-09", json.RawMessage(payload))
		_, body, _ := strings.Cut(got, "# Daily Log – 2026-03-09\n\n")
		if err != nil || body != want {
			t.Errorf("%s:\n%q, %v, want\n%q", payload, body, err, want)
		}
	}
}

func TestDefectSlugCollisions(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	dir := writeFiles(t, map[string]string{"MEMORY.md": "lost\n## Same\none\n## Same!\ntwo\n## Same 2\nthree\n## same_2\nfour\n## Empty\n\n## ΟΔΟΣ\nfive\n## İstanbul²\nsix\n### Sub\n##x\n## \nseven\n"})
	for _, want := range []Imported{{OK: true, Inserted: 7}, {OK: true, Updated: 7}} {
		got, err := MigrateLegacy(ctx, f.Store, filepath.Join(dir, "MEMORY.md"), "")
		if err != nil || got.Inserted != want.Inserted || got.Updated != want.Updated || !got.OK {
			t.Fatalf("MigrateLegacy = %+v, %v", got, err)
		}
	}
	for id, text := range map[string]string{"same": "one", "same_2": "two", "same_2_2": "three", "same_2_3": "four", "οδος": "five", "i_stanbul²": "six\n### Sub\n##x", "section": "seven"} {
		var payload struct{ Text string }
		if err := json.Unmarshal([]byte(f.payload(Key{longTerm, projectFact, "memory_md." + id})), &payload); err != nil || payload.Text != text {
			t.Errorf("%s holds %q, %v, want %q", id, payload.Text, err, text)
		}
	}
}

func TestHeadingsInCodeFences(t *testing.T) {
	text := "## A\n```sh\n## not\n~~~\n```\n## B\n~~~\n## not\n```\n~~~~\n## C\n``` `code` ```\n## D\nx\n```\n## never closed\n"
	var slugs []string
	for _, s := range sections(text) {
		slugs = append(slugs, s.slug)
	}
	if got := strings.Join(slugs, " "); got != "a b c d" {
		t.Errorf("sections = %s", got)
	}
}

func TestDailyEntries(t *testing.T) {
	for line, want := range map[string]string{
		"- [08:15]  tea ": "08:15|tea", "[x] y": "x|y", "- z": "|z", "  - [11:00]   spaced  ": "11:00|spaced", "[10:00]coffee": "10:00|coffee",
		"- [[a]] b": "a|] b", "-  [x] y": "-[x] y", "- [ ] todo": "|todo", "[link](url)": "-[link](url)", "- [link](url)": "-[link](url)", "[10:00] (call)": "10:00|(call)", "-x": "-x", "[open": "-[open", "# Title": "-# Title", "[a]": "a|", "\u00a0x\u2003": "-x", "-": "--",
	} {
		got := "none"
		for _, e := range dailyEntries(line) {
			got = "-" + e.Text
			if e.TS != nil {
				got = *e.TS + "|" + e.Text
			}
		}
		if line == "- z" {
			want = "-z"
		}
		if line == "-x" {
			want = "--x"
		}
		if got != want {
			t.Errorf("%q = %q, want %q", line, got, want)
		}
	}
	if got := dailyEntries("\n---\r\n \r---\n"); len(got) != 0 || got == nil {
		t.Errorf("blank lines and rules = %v, want an empty list", got)
	}
}

func TestDefectCuratedFlag(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	dir := writeFiles(t, map[string]string{"no.md": fact("no", "ainl_curated: False\n", "x"), "odd.md": fact("odd", "ainl_curated: maybe\nainl_ephemeral: YES\n", "x")})
	if _, err := ImportMarkdown(ctx, f.Store, []string{dir}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"no": `"curated":false}`, "odd": `"ephemeral":true,"curated":true}`} {
		if got := f.payload(Key{longTerm, projectFact, id}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", id, got)
		}
	}
}

func TestPreferenceKeysAndValues(t *testing.T) {
	for matter, want := range map[string]string{
		"key: k\nvalue: v":                                         `"key":"k","text":"x","value":"v"`,
		"key: k\nvalue:":                                           `"key":"k","text":"x","value":""`,
		"key: k\nvalue: v\npreference_value:":                      `"key":"k","text":"x","value":"v"`,
		"preference_key:\nkey: k\npreference_value:":               `"key":"k","text":"x"}`,
		"preference_key: p\nkey: k\npreference_value: w\nvalue: v": `"key":"p","text":"x","value":"w"`,
		"key:": `{"text":"x"}`,
	} {
		d, err := curated(Document{"n.md", strings.Replace(fact("p", matter+"\n", "x"), projectFact, userPreference, 1)}, "at")
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := encode(d.Payload); err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%q: %s, %v", matter, raw, err)
		}
	}
}

func TestDefectUnterminatedFrontMatter(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	dir := writeFiles(t, map[string]string{"n.md": strings.Replace(fact("f", "", "text"), "\n---\n", "\n", 1), "crlf.md": strings.ReplaceAll(fact("crlf", "", "a\nb"), "\n", "\r\n"), "bom.md": "\ufeff" + fact("bom", "", "x")})
	result, err := ImportMarkdown(ctx, f.Store, []string{dir})
	if err != nil || !result.OK || result.Inserted != 1 || len(result.Skipped) != 2 {
		t.Errorf("ImportMarkdown = %+v, %v", result, err)
	}
	if got := f.payload(Key{longTerm, projectFact, "crlf"}); !strings.HasPrefix(got, `{"text":"a\nb"`) {
		t.Errorf("payload = %s", got)
	}
}

func TestImportMarkdownRefusals(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	dir := writeFiles(t, map[string]string{"plain.md": "# x", "f.TXT": fact("f", "", "x"), "UP.MD": fact("up", "", "x"), "bad.md": fact("f", "", "\xff")})
	if _, err := ImportMarkdown(ctx, f.Store, []string{filepath.Join(dir, "none.md")}); !errors.Is(err, memory.ErrNotFound) || !strings.Contains(err.Error(), "paths[0]") {
		t.Errorf("a path that is not there: %v", err)
	}
	if _, err := ImportMarkdown(ctx, f.Store, []string{filepath.Join(dir, "bad.md")}); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("bytes that are no text: %v", err)
	}
	result, err := ImportMarkdown(ctx, f.Store, []string{filepath.Join(dir, "f.TXT"), filepath.Join(dir, "plain.md")})
	if err != nil || !result.Failed() || len(result.Errors) != 2 || !strings.HasSuffix(result.Errors[0].Path, "f.TXT") {
		t.Errorf("nothing usable: %+v, %v", result, err)
	}
	if result, err := ImportMarkdown(ctx, f.Store, []string{filepath.Join(dir, "UP.MD")}); err != nil || result.Inserted != 1 {
		t.Errorf("a name in capitals: %+v, %v", result, err)
	}
}

func TestReimportKeepsTheTimeOfCreation(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	dir := writeFiles(t, map[string]string{"n.md": fact("f", "", "x")})
	for _, at := range []string{"2026-03-01T00:00:00.9Z", "2026-03-02T00:00:00.9Z"} {
		f.clock.set(t, at)
		if _, err := ImportMarkdown(ctx, f.Store, []string{dir}); err != nil {
			t.Fatal(err)
		}
	}
	if r := f.record(Key{longTerm, projectFact, "f"}); r.CreatedAt != "2026-03-01T00:00:00+00:00" || r.UpdatedAt != "2026-03-02T00:00:00+00:00" {
		t.Errorf("times = %s %s", r.CreatedAt, r.UpdatedAt)
	}
}

func TestWriteRecordsForms(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	text := func(sel Selection, lines bool) string {
		var b strings.Builder
		if _, err := f.WriteRecords(ctx, &b, sel, lines); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := text(Selection{}, false); got != "[]\n" {
		t.Errorf("nothing = %q", got)
	}
	if got := text(Selection{}, true); got != "" {
		t.Errorf("nothing in lines = %q", got)
	}
	f.put(checkpoint, `{"z":1,"a":"<é>"}`, nil, "")
	f.put(Key{ops, "k", "i"}, `{}`, nil, "")
	want := `[
  {
    "created_at": "2026-03-01T00:00:00+00:00",
    "flags": {
      "authoritative": false,
      "curated": false,
      "ephemeral": false
    },
    "namespace": "workflow",
    "payload": {
      "a": "<é>",
      "z": 1
    },
    "provenance": {
      "authored_by": "bot",
      "confidence": null,
      "origin_uri": null,
      "source_system": "ainl.memory"
    },
    "record_id": "cp-1",
    "record_kind": "workflow.checkpoint",
    "ttl_seconds": null,
    "updated_at": "2026-03-01T00:00:00+00:00"
  }
]
`
	if got := text(Selection{Namespaces: []string{workflow}}, false); got != want {
		t.Errorf("array =\n%s", got)
	}
	lines := text(Selection{Kinds: []string{"k", "workflow.checkpoint"}}, true)
	if strings.Count(lines, "\n") != 2 || !strings.Contains(lines, `"payload":{"z":1,"a":"<é>"}`) {
		t.Errorf("lines =\n%s", lines)
	}
	unknown := Selection{Namespaces: []string{"x"}}
	if got := text(unknown, false); got != "[]\n" || memory.FieldOf(unknown.Check(Config{})) != "namespace" {
		t.Errorf("an unknown namespace: %s, Check = %v", got, unknown.Check(Config{}))
	}
	g := newFixture(t, Config{})
	for _, form := range []bool{false, true} {
		if result, err := g.Import(ctx, ReadRecords(strings.NewReader(text(Selection{}, form)), form)); err != nil || result.Inserted+result.Updated != 2 {
			t.Errorf("importing what was exported: %+v, %v", result, err)
		}
	}
}

func TestImportRefusesWhole(t *testing.T) {
	f := newFixture(t, Config{})
	good := `{"namespace":"ops","record_kind":"k","record_id":"good","payload":{}}`
	for bad, path := range map[string]string{
		`{"namespace":"ops","record_kind":"","record_id":"i","payload":{}}`:                                    "[1].record_kind",
		`{"namespace":"ops","record_kind":"k","record_id":"","payload":{}}`:                                    "[1].record_id",
		`{"namespace":"ops","record_kind":"k","record_id":"\ud800","payload":{}}`:                              "[1].record_id",
		`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{},"metadata":{"confidence":2}}`:       "[1].metadata.confidence",
		`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{"_metadata":{"tags":"x"}}}`:           "[1].payload._metadata.tags",
		`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{},"created_at":5}`:                    "[1].created_at",
		`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{},"ttl_seconds":1e3}`:                 "[1].ttl_seconds",
		`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{},"ttl_seconds":9999999999999999999}`: "[1].ttl_seconds",
		`7`: "[1]",
	} {
		result := f.importAll("[" + good + "," + bad + "," + good + "]")
		if !result.Failed() || len(result.Errors) != 1 || result.Errors[0].Path != path || result.Inserted+result.Updated != 0 {
			t.Errorf("%s: %+v, want an error at %s", bad, result, path)
		}
	}
	if got := f.ids(Query{Namespace: ops}); got != "" {
		t.Errorf("stored %q", got)
	}
	if _, err := f.Import(context.Background(), ReadRecords(strings.NewReader(good+"\nnot json\n"), true)); !errors.Is(err, memory.ErrInvalid) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line that is not JSON: %v", err)
	}
	if got := f.ids(Query{Namespace: ops}); got != "" {
		t.Errorf("stored %q before the line that is not JSON", got)
	}
	many := f.importAll("[" + strings.Repeat("1,", 5000) + "1]")
	if len(many.Errors) != maxIssues {
		t.Errorf("%d errors are listed, want %d", len(many.Errors), maxIssues)
	}
}

func TestImportRoundTripOfOwnNamespaces(t *testing.T) {
	own := Config{Namespaces: []string{"scratch"}}
	f, g := newFixture(t, own), newFixture(t, own)
	f.put(Key{"scratch", "workflow.custom", "i"}, `{}`, nil, "")
	var b strings.Builder
	if _, err := f.WriteRecords(context.Background(), &b, Selection{}, true); err != nil {
		t.Fatal(err)
	}
	if result := g.importAll(b.String()); !result.OK || result.Inserted != 1 {
		t.Errorf("import = %+v", result)
	}
}

func TestValidatorProfiles(t *testing.T) {
	for raw, want := range map[string]string{ // v1 | v1.1
		`{"namespace":"workflow","record_kind":"","record_id":"","payload":{}}`:                                                   "|record_kind record_id",
		`{"namespace":"session","record_kind":"workflow.custom","record_id":"x","payload":{}}`:                                    "|namespace",
		`{"namespace":"session","record_kind":"workflow.checkpoint","record_id":"x","payload":{}}`:                                "namespace|namespace",
		`{"namespace":"x","record_kind":"workflow.checkpoint","record_id":"x","payload":{}}`:                                      "namespace namespace|namespace namespace",
		`{"namespace":"ops","record_kind":"k","record_id":"x","payload":{},"metadata":{"confidence":9,"tags":["a",""]}}`:          "|metadata.confidence metadata.tags[1]",
		`{"namespace":"ops","record_kind":"k","record_id":"x","payload":{},"metadata":{"valid_at":"someday","access_count":1.5}}`: "|metadata.valid_at metadata.access_count",
		`{"namespace":"ops","record_kind":"k","record_id":"x","payload":{},"metadata":[]}`:                                        "|metadata",
		`{"namespace":"ops","record_kind":"k","record_id":"x","payload":{},"metadata":null}`:                                      "|",
		`[{"namespace":"long_term","record_kind":"long_term.project_fact","record_id":"x","payload":{}}, 5]`:                      "[0].payload [1]|[0].payload [1]",
		`{"namespace":1,"record_kind":[],"payload":[],"ttl_seconds":"1"}`:                                                         "namespace record_kind record_id payload ttl_seconds|namespace record_kind record_id payload ttl_seconds",
	} {
		var paths []string
		for _, profile := range []string{ProfileV1, ProfileV11} {
			v, err := NewValidator(profile, Config{})
			if err != nil {
				t.Fatal(err)
			}
			verdict, err := v.Check(json.RawMessage(raw))
			if err != nil {
				t.Fatal(err)
			}
			var at []string
			for _, i := range verdict.Issues {
				at = append(at, i.Path)
			}
			paths = append(paths, strings.Join(at, " "))
		}
		if got := strings.Join(paths, "|"); got != want {
			t.Errorf("%s:\n%s, want\n%s", raw, got, want)
		}
	}
	if _, err := NewValidator("v2", Config{}); memory.FieldOf(err) != "profile" {
		t.Errorf("profile v2: %v", err)
	}
}

func TestVerdictText(t *testing.T) {
	v, err := NewValidator("", Config{})
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := v.Check(json.RawMessage(`5`))
	if err != nil || verdict.Text() != "ERROR [<root>]: a record must be a JSON object\n" || !verdict.Failed() {
		t.Errorf("text = %q, %v", verdict.Text(), err)
	}
	verdict, err = v.Check(json.RawMessage(`[{"namespace":"workflow","record_kind":"workflow.advisory_result","record_id":"x","payload":{}}]`))
	if err != nil || verdict.Text() != "WARN [[0].payload]: workflow.advisory_result usually has summary\n" || verdict.Failed() {
		t.Errorf("text = %q, %v", verdict.Text(), err)
	}
	if text := (Verdict{OK: true}).Text(); text != "The records keep the contract.\n" {
		t.Errorf("text = %q", text)
	}
}

func TestCheckAllStreamsWithProgress(t *testing.T) {
	v, err := NewValidator(ProfileV11, Config{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []int64
	ctx := op.WithProgress(context.Background(), func(p op.Progress) { seen = append(seen, p.Done) })
	verdict, err := v.CheckFile(ctx, strings.NewReader("["+strings.Repeat("{},", 2500)+"7]"), false)
	if err != nil || len(verdict.Issues) != 2500*4+1 || len(seen) != 2 || seen[1] != 2000 {
		t.Errorf("%d issues, %v, progress %v", len(verdict.Issues), err, seen)
	}
	if verdict.Issues[len(verdict.Issues)-1].Path != "[2500]" {
		t.Errorf("last issue %+v", verdict.Issues[len(verdict.Issues)-1])
	}
}

func TestCheckFileForms(t *testing.T) {
	v, err := NewValidator("", Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text  string
		lines bool
		paths string
	}{
		{` {"namespace":"ops"}`, false, "record_kind record_id payload"}, {`[{"namespace":"ops","payload":{}}]`, false, "[0].record_kind [0].record_id"},
		{"{}\n\n7\n", true, "[0].namespace [0].record_kind [0].record_id [0].payload [1]"}, {"7", false, ""}, {"[]", false, "none"}, {"", true, "none"},
	} {
		verdict, err := v.CheckFile(context.Background(), strings.NewReader(tc.text), tc.lines)
		paths := []string{}
		for _, i := range verdict.Issues {
			paths = append(paths, i.Path)
		}
		got := strings.Join(paths, " ")
		if verdict.OK {
			got = "none"
		}
		if err != nil || got != tc.paths {
			t.Errorf("%q: %q, %v, want %q", tc.text, got, err, tc.paths)
		}
	}
	for _, text := range []string{"", "{", "[1", "{} {}"} {
		if _, err := v.CheckFile(context.Background(), strings.NewReader(text), false); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	long := "[" + strings.Repeat(`{"a":1},`+"\n", 5000)
	for text, want := range map[string]string{
		"\n\n[\n{},\n{\"a\"\n:}]":              "line 6 is not JSON: invalid character '}'",
		"[\n{}\n{}]":                           "line 3 is not JSON",
		"[{}]\n\n[]":                           "line 3: the file goes on",
		"{}\nx":                                "line 2: the file goes on",
		"\n{\"a\":\n tru}":                     "line 3 is not JSON: invalid character '}'",
		"[\n{},\n":                             "line 2: the file ends within",
		"[\n{\"a\":[1,\n2":                     "line 3: the file ends within",
		" \n ":                                 "the file is empty",
		long + "{\"a\":\n\n1 1}]":              "line 5003 is not JSON",
		"[" + strings.Repeat("\n", 9000) + "?": "line 9001 is not JSON",
	} {
		var failed error
		for _, err := range ReadRecords(strings.NewReader(text), false) {
			failed = err
		}
		if !errors.Is(failed, memory.ErrInvalid) || !strings.Contains(failed.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, failed, want)
		}
	}
}

func TestARecordIsBounded(t *testing.T) {
	text := io.MultiReader(strings.NewReader("[\n{\"a\":\""), io.LimitReader(zeros{}, maxLine+(1<<20)), strings.NewReader("\"}]"))
	var failed error
	for _, err := range ReadRecords(text, false) {
		failed = err
	}
	if !errors.Is(failed, memory.ErrInvalid) || !strings.Contains(failed.Error(), "a record from line 1 on is larger than 64 MiB") {
		t.Errorf("a huge record: %v", failed)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestExportAndImportFiles(t *testing.T) {
	f, g, ctx := newFixture(t, Config{}), newFixture(t, Config{}), context.Background()
	f.put(checkpoint, `{"v":1}`, nil, `{"tags":["a"]}`)
	path := filepath.Join(t.TempDir(), "dump.jsonl")
	if n, err := ExportFile(ctx, f.Store, path, Selection{}, true); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", st, err)
	}
	if result, err := ImportFile(ctx, g.Store, path, true); err != nil || result.Inserted != 1 || g.payload(checkpoint) != `{"v":1}` {
		t.Errorf("import = %+v, %v", result, err)
	}
	foreign(t, f.Path(), `UPDATE memory_records SET payload_json = 'oops'`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ExportFile(ctx, f.Store, path, Selection{}, true); !errors.Is(err, memory.ErrCorrupt) {
		t.Errorf("exporting a damaged record: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("a failed export left %q, %v", after, err)
	}
	if _, err := ImportFile(ctx, g.Store, filepath.Join(t.TempDir(), "none"), false); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("importing nothing: %v", err)
	}
}

func TestReportText(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	f.put(checkpoint, `{}`, ref(int64(60)), "")
	f.put(Key{ops, "k", "i"}, `{}`, nil, "")
	f.put(Key{ops, "k", "soon"}, `{}`, ref(int64(7200)), "")
	f.clock.set(t, "2026-03-01T01:00:00Z")
	r, err := f.Report(ctx, ReportQuery{})
	if err != nil {
		t.Fatal(err)
	}
	want := "Records in " + f.Path() + `

Overall totals
  records                      3
  with ttl                     2
  without ttl                  1
  changed last 24h             3

By namespace / by record kind
  ops                          2
  workflow                     1
  k                            2
  workflow.checkpoint          1

TTL coverage
  ops                          1 of 2 have a ttl
  workflow                     1 of 1 have a ttl
  k                            1 of 2 have a ttl
  workflow.checkpoint          1 of 1 have a ttl

Expired but still present
  records                      1
  workflow workflow.checkpoint cp-1, created 2026-03-01T00:00:00+00:00, ttl 60 s

Expiring within 24h
  records                      1
  ops k soon, at 2026-03-01 02:00:00 UTC
`
	if got := r.Text(); got != want {
		t.Errorf("report:\n%s", got)
	}
	r, err = f.Report(ctx, ReportQuery{Namespace: ops, Soon: ref(int64(5))})
	if err != nil || r.SoonCount != 0 || r.Summary.Total != 2 || !strings.Contains(r.Text(), "Expiring within 5 s") || !strings.Contains(r.Text(), "only namespace ops") {
		t.Errorf("report of ops: %s, %v", r.Text(), err)
	}
	if _, err := f.Report(ctx, ReportQuery{Soon: ref(int64(-1))}); memory.FieldOf(err) != "expire_soon_seconds" {
		t.Errorf("a negative window: %v", err)
	}
}

func TestReportOnADatabaseOfTheReference(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ainl.db")
	foreign(t, path, referenceV1, referenceInsert+`
		('workflow', 'a', 'mid', '2026-02-28T00:00:00.999999+00:00', '2026-01-31T00:00:01+00:00', 86400, '{}'),
		('workflow', 'a', 'old', '2026-02-28T00:00:00Z', '2026-01-30T00:00:00Z', 86399, '{}'),
		('workflow', 'a', 'huge', '2026-02-28T00:00:00Z', '2026-03-02T00:00:00Z', 9223372036854775807, '{}'),
		('workflow', 'b', 'odd', 'x', 'x', 5, '{}')`)
	c := &clock{}
	c.set(t, "2026-03-01T00:00:00.5Z")
	r, err := ReportFile(context.Background(), path, ReportQuery{}, c.at)
	if err != nil || r.ExpiredCount != 1 || r.ExpiredSample[0].ID != "old" || r.SoonCount != 1 || r.ExpiringSoon[0].ID != "mid" || r.ExpiringSoon[0].ExpiresAt != "2026-03-01 00:00:00" {
		t.Errorf("report = %+v, %v", r, err)
	}
	if r.Ages["7d_to_30d"] != 2 || r.Ages["older_than_30d"] != 1 || r.Ages["last_24h"] != 1 {
		t.Errorf("ages = %v", r.Ages)
	}
	if got := foreignText(t, path, "SELECT group_concat(name) FROM sqlite_schema WHERE name GLOB 'memory_record_*'"); got != "" {
		t.Errorf("reporting changed the database: %s", got)
	}
}
