package record

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/redact"
)

// clock is a clock that only moves when it is told to.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) set(t *testing.T, s string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	c.at = at
}

// fixture is a store of its own, at midnight of 2026-03-01.
type fixture struct {
	*Store
	clock *clock
	t     *testing.T
}

func newFixture(t *testing.T, config Config) fixture {
	t.Helper()
	c := &clock{}
	c.set(t, "2026-03-01T00:00:00Z")
	return fixture{openTest(t, filepath.Join(t.TempDir(), FileName), Options{Config: config, Now: c.now}), c, t}
}

func (f fixture) put(key Key, payload string, ttl *int64, metadata string) bool {
	f.t.Helper()
	w := Write{Key: key, Value: json.RawMessage(payload), TTL: ttl}
	if metadata != "" {
		w.Metadata = json.RawMessage(metadata)
	}
	created, _, err := f.Put(context.Background(), w)
	if err != nil {
		f.t.Fatal(err)
	}
	return created
}

func (f fixture) append(key Key, entry string, ttl *int64) {
	f.t.Helper()
	if _, err := f.Append(context.Background(), Write{Key: key, Value: json.RawMessage(entry), TTL: ttl}); err != nil {
		f.t.Fatal(err)
	}
}

// payload returns the payload of a record, "" where there is none to see.
func (f fixture) payload(key Key) string {
	f.t.Helper()
	r, found, err := f.Get(context.Background(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	if !found {
		return ""
	}
	return string(r.Payload)
}

func (f fixture) record(key Key) Record {
	f.t.Helper()
	r, found, err := f.Get(context.Background(), key)
	if err != nil || !found {
		f.t.Fatalf("get %v: found %v, %v", key, found, err)
	}
	return r
}

// ids returns the ids of a list, in its order.
func (f fixture) ids(q Query) string {
	f.t.Helper()
	entries, _, err := f.List(context.Background(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return strings.Join(ids, " ")
}

func (f fixture) importAll(records string) Imported {
	f.t.Helper()
	result, err := f.Import(context.Background(), ReadRecords(strings.NewReader(records), false))
	if err != nil {
		f.t.Fatal(err)
	}
	return result
}

func ref[T any](v T) *T { return &v }

var (
	checkpoint = Key{workflow, "workflow.checkpoint", "cp-1"}
	note       = Key{dailyLog, dailyNote, "2026-03-01"}
)

// The tests that follow are named for the defects of the reference (BEHAVIOUR,
// part 4) that concern records: what it does wrong is right here.

func TestDefectPutOverExpiredRecord(t *testing.T) {
	f := newFixture(t, Config{})
	f.put(checkpoint, `{"v":1}`, ref(int64(60)), "")
	f.clock.set(t, "2026-03-02T00:00:00Z")
	if created := f.put(checkpoint, `{"v":2}`, ref(int64(60)), ""); !created {
		t.Error("a put over an expired record did not count as creating it")
	}
	r := f.record(checkpoint)
	if string(r.Payload) != `{"v":2}` || r.CreatedAt != "2026-03-02T00:00:00+00:00" {
		t.Errorf("the acknowledged write reads as %s, created %s", r.Payload, r.CreatedAt)
	}
}

func TestDefectAppendOverExpiredRecord(t *testing.T) {
	f := newFixture(t, Config{})
	f.append(note, `{"text":"old"}`, ref(int64(60)))
	f.clock.set(t, "2026-03-02T00:00:00Z")
	f.append(note, `{"text":"new"}`, nil)
	if got := f.payload(note); got != `{"entries":[{"text":"new"}]}` {
		t.Errorf("payload = %s", got)
	}
}

func TestDefectAppendClearsTTL(t *testing.T) {
	f := newFixture(t, Config{DefaultTTL: map[string]*int64{dailyLog: ref(int64(7))}})
	f.append(note, `{"text":"a"}`, ref(int64(100)))
	f.append(note, `{"text":"b"}`, nil)
	if ttl := f.record(note).TTLSeconds; ttl == nil || *ttl != 100 {
		t.Errorf("ttl after an append without one = %v, want the 100 it had", ttl)
	}
	f.append(note, `{"text":"c"}`, ref(int64(50)))
	if ttl := f.record(note).TTLSeconds; ttl == nil || *ttl != 50 {
		t.Errorf("ttl after an append with one = %v, want 50", ttl)
	}
}

func TestDefectPrefixIsAPattern(t *testing.T) {
	f := newFixture(t, Config{})
	for _, id := range []string{"cp-1", "cp_2", "c%3", "CP-4", "cp", "cq", "漢字"} {
		f.put(Key{workflow, "k", id}, `{}`, nil, "")
	}
	for prefix, want := range map[string]string{"cp_": "cp_2", "c%": "c%3", "CP-": "CP-4", "cp": "cp cp-1 cp_2", "漢": "漢字", "x": ""} {
		if got := f.ids(Query{Namespace: workflow, Prefix: &prefix}); got != want {
			t.Errorf("ids that begin with %q = %q, want %q", prefix, got, want)
		}
	}
}

func TestDefectPruneDiesOnANaiveTime(t *testing.T) {
	f := newFixture(t, Config{})
	f.importAll(`[{"namespace":"workflow","record_kind":"k","record_id":"naive","created_at":"2026-02-01T00:00:00","ttl_seconds":1,"payload":{}},
		{"namespace":"workflow","record_kind":"k","record_id":"no time","created_at":"yesterday","ttl_seconds":1,"payload":{}},
		{"namespace":"workflow","record_kind":"k","record_id":"no day","created_at":"2026-02-30T00:00:00Z","ttl_seconds":1,"payload":{}},
		{"namespace":"workflow","record_kind":"k","record_id":"now","created_at":"now","ttl_seconds":1,"payload":{}},
		{"namespace":"workflow","record_kind":"k","record_id":"good","created_at":"2026-02-01T00:00:00Z","ttl_seconds":1,"payload":{}}]`)
	if n, err := f.Prune(context.Background(), ""); err != nil || n != 2 {
		t.Errorf("Prune = %d, %v, want the two records whose time can be read", n, err)
	}
	if got := f.ids(Query{Namespace: workflow}); got != "no day no time now" {
		t.Errorf("left are %q", got)
	}
}

func TestDefectMetadataMissingFromExportAndImport(t *testing.T) {
	f, g := newFixture(t, Config{}), newFixture(t, Config{})
	f.put(checkpoint, `{"v":1}`, ref(int64(60)), `{"source":"runner","tags":["b","a","b"],"confidence":1.0,"own":[]}`)
	f.importAll(`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{"n":9007199254740993},"provenance":{"source_system":"crm"},"flags":{"curated":true}}`)
	dump := func(s *Store) string {
		var b strings.Builder
		if _, err := s.WriteRecords(context.Background(), &b, Selection{}, true); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := dump(f.Store)
	if !strings.Contains(first, `"metadata":{"source":"runner","tags":["b","a","b"],"confidence":1.0,"own":[]}`) {
		t.Errorf("export lacks the metadata: %s", first)
	}
	if result, err := g.Import(context.Background(), ReadRecords(strings.NewReader(first), true)); err != nil || result.Inserted != 2 {
		t.Fatalf("import = %+v, %v", result, err)
	}
	if second := dump(g.Store); second != first {
		t.Errorf("export, import, export changed the records:\n%s%s", first, second)
	}
	for _, key := range []Key{checkpoint, {ops, "k", "i"}} {
		if a, b := f.record(key), g.record(key); string(a.Payload) != string(b.Payload) || string(a.Metadata) != string(b.Metadata) {
			t.Errorf("record %v became %s %s, was %s %s", key, b.Payload, b.Metadata, a.Payload, a.Metadata)
		}
	}
}

func TestDefectConstantProvenance(t *testing.T) {
	f := newFixture(t, Config{})
	f.importAll(`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{"n":1},"provenance":{"source_system":"crm"},"flags":{"curated":true}}`)
	if got := f.payload(Key{ops, "k", "i"}); got != `{"n":1,"_provenance":{"source_system":"crm"},"_flags":{"curated":true}}` {
		t.Errorf("stored payload = %s", got)
	}
	err := f.Export(context.Background(), Selection{}, func(e Envelope) error {
		if string(e.Payload) != `{"n":1}` || string(e.Provenance) != `{"source_system":"crm"}` || string(e.Flags) != `{"curated":true}` {
			t.Errorf("envelope = %s %s %s", e.Payload, e.Provenance, e.Flags)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDefectStaleMetadataOnImport(t *testing.T) {
	f := newFixture(t, Config{})
	f.put(checkpoint, `{"old":1}`, nil, `{"source":"old","tags":["old"]}`)
	f.importAll(`{"namespace":"workflow","record_kind":"workflow.checkpoint","record_id":"cp-1","payload":{"v":1}}`)
	if got := f.record(checkpoint).Metadata; got != nil {
		t.Errorf("metadata = %s, want none: the payload that they described is gone", got)
	}
	if got := f.ids(Query{Namespace: workflow, Filters: Filters{TagsAny: []string{"old"}}}); got != "" {
		t.Errorf("the old tag still finds %q", got)
	}
	f.importAll(`{"namespace":"workflow","record_kind":"workflow.checkpoint","record_id":"cp-1","payload":{},"metadata":{"tags":["new"]}}`)
	if got := f.ids(Query{Namespace: workflow, Filters: Filters{TagsAny: []string{"new"}}}); got != "cp-1" {
		t.Errorf("the new tag finds %q", got)
	}
}

func TestDefectImportWithoutTimes(t *testing.T) {
	f := newFixture(t, Config{})
	f.importAll(`{"namespace":"workflow","record_kind":"workflow.checkpoint","record_id":"cp-1","payload":{}}`)
	if r := f.record(checkpoint); r.CreatedAt != "2026-03-01T00:00:00+00:00" || r.UpdatedAt != r.CreatedAt {
		t.Errorf("times = %q %q, want those of the import", r.CreatedAt, r.UpdatedAt)
	}
}

func TestDefectMixedFormsOfTimes(t *testing.T) {
	f := newFixture(t, Config{})
	f.importAll(`[{"namespace":"workflow","record_kind":"k","record_id":"z","created_at":"2026-03-01T10:00:00Z","payload":{}},
		{"namespace":"workflow","record_kind":"k","record_id":"offset","created_at":"2026-03-01T12:00:00+02:00","payload":{}},
		{"namespace":"workflow","record_kind":"k","record_id":"naive","created_at":"2026-03-01T10:00:00","payload":{}},
		{"namespace":"workflow","record_kind":"k","record_id":"later","created_at":"2026-03-01T10:00:00.000001Z","payload":{}}]`)
	for at, want := range map[string][2]string{
		"2026-03-01T10:00:00+00:00":       {"later naive offset z", "naive offset z"},
		"2026-03-01T10:00:00Z":            {"later naive offset z", "naive offset z"},
		"2026-03-01T09:00:00-01:00":       {"later naive offset z", "naive offset z"},
		"2026-03-01 10:00:00.000001":      {"later", "later naive offset z"},
		"2026-03-01T10:00:00.0000005Z":    {"later naive offset z", "naive offset z"}, // finer than a microsecond
		"2026-03-02":                      {"", "later naive offset z"},
		"2026-03-01T10:00:00.00001+00:00": {"", "later naive offset z"},
	} {
		if got := f.ids(Query{Namespace: workflow, Filters: Filters{CreatedAfter: &at}}); got != want[0] {
			t.Errorf("created after %s: %q, want %q", at, got, want[0])
		}
		if got := f.ids(Query{Namespace: workflow, Filters: Filters{CreatedBefore: &at}}); got != want[1] {
			t.Errorf("created before %s: %q, want %q", at, got, want[1])
		}
	}
	if got := f.record(Key{workflow, "k", "offset"}).CreatedAt; got != "2026-03-01T10:00:00+00:00" {
		t.Errorf("stored as %s, want the store's own form", got)
	}
}

func TestDefectOpsUnknownToValidator(t *testing.T) {
	for _, profile := range []string{"", ProfileV1, ProfileV11} {
		v, err := NewValidator(profile, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if verdict, err := v.Check(json.RawMessage(`{"namespace":"ops","record_kind":"ops.disk","record_id":"d","payload":{}}`)); err != nil || !verdict.OK {
			t.Errorf("profile %q: %+v, %v", profile, verdict, err)
		}
	}
}

func TestDefectNegativeTTLInReport(t *testing.T) {
	f := newFixture(t, Config{})
	f.put(checkpoint, `{}`, ref(int64(-5)), "")
	r, err := f.Report(context.Background(), ReportQuery{})
	if err != nil || r.ExpiredCount != 1 || len(r.ExpiredSample) != 1 {
		t.Errorf("report = %+v, %v: the record that get hides is not counted", r, err)
	}
}

func TestDefectReportOnADatabaseWithoutTheTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	foreign(t, path, "CREATE TABLE other (x)")
	for name, path := range map[string]string{"other tables": path, "no file": filepath.Join(t.TempDir(), "none.db")} {
		r, err := ReportFile(context.Background(), path, ReportQuery{}, time.Unix(0, 0))
		if err != nil || r.Error == "" || r.Summary.Total != 0 || r.ByNamespace == nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := os.Stat(filepath.Join(t.TempDir(), "none.db")); err == nil {
		t.Error("reporting made a database")
	}
}

// The traps of part 5.

func TestTrapTimesSortAsText(t *testing.T) {
	base := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	last := ""
	for _, d := range []time.Duration{0, time.Microsecond, 10 * time.Microsecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second - time.Microsecond, time.Second} {
		text := formatTime(base.Add(d).In(time.FixedZone("x", 3600)))
		if text <= last {
			t.Errorf("%q does not sort after %q", text, last)
		}
		if back, zoned, ok := parseTime(text); !ok || !zoned || !back.Equal(base.Add(d)) {
			t.Errorf("%q reads back as %v", text, back)
		}
		last = text
	}
}

func TestTrapPayloadsKeepTheirBytes(t *testing.T) {
	f := newFixture(t, Config{})
	for _, payload := range []string{
		`{"big":9223372036854775807,"bigger":123456789012345678901234567890,"small":-0.0,"exp":1E400,"one":1.0}`,
		`{"html":"<script>&</script>","null":null,"list":[],"object":{},"nested":{"z":1,"a":[null]}}`,
		`{"half":"\ud800","pair":"\ud83d\udc22","ctl":"\u0001"}`,
		`{"":0," ":1}`,
	} {
		f.put(checkpoint, payload, nil, "")
		if got := f.payload(checkpoint); got != payload {
			t.Errorf("payload %s came back as %s", payload, got)
		}
	}
	f.put(checkpoint, " { \"a\" : 1 ,\n\"b\":2, \"a\":3 } ", nil, "")
	if got := f.payload(checkpoint); got != `{"a":3,"b":2}` {
		t.Errorf("a doubled member came back as %s", got)
	}
}

func TestTrapIntegersAreDecidedOnTheToken(t *testing.T) {
	for raw, good := range map[string]bool{"60": true, "-1": true, "0": true, "-0": true, "60.0": false, "6e1": false, `"60"`: false, "true": false, "[]": false,
		"9223372036854775807": true, "9223372036854775808": false, "": false, "-": false} {
		if _, err := decodeInteger(json.RawMessage(raw)); (err == nil) != good {
			t.Errorf("integer %q: %v", raw, err)
		}
	}
}

func TestTrapListsAreInTheOrderOfBytes(t *testing.T) {
	f := newFixture(t, Config{})
	for _, id := range []string{"é", "b", "漢", "9", "B", "10", "e\u0301", "🐢", "~"} {
		f.put(Key{workflow, "k", id}, `{}`, nil, `{"tags":["x","y"]}`)
	}
	want := "10 9 B b e\u0301 ~ é 漢 🐢"
	for name, filters := range map[string]Filters{"plain": {}, "one tag": {TagsAny: []string{"x"}}, "two tags": {TagsAny: []string{"x", "y"}}, "all": {TagsAll: []string{"x", "y"}}} {
		if got := f.ids(Query{Namespace: workflow, Filters: filters}); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestExpiryBoundary(t *testing.T) {
	created := "2026-03-01T00:00:00.250000+00:00"
	for at, gone := range map[string]bool{
		"2026-03-01T00:01:00.25Z":      false, // exactly 60 s old
		"2026-03-01T00:01:00.250001Z":  true,
		"2026-03-01T00:01:00Z":         false,
		"2026-02-28T23:59:59Z":         false, // before its creation
		"2026-03-01T00:01:00.2500009Z": false, // finer than a microsecond
	} {
		c := &clock{}
		c.set(t, at)
		if got := expired(created, ref(int64(60)), c.at); got != gone {
			t.Errorf("at %s expired = %v", at, got)
		}
	}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		created string
		ttl     *int64
		want    bool
	}{
		"no ttl":          {"2020-01-01T00:00:00Z", nil, false},
		"zero, at once":   {"2026-03-01T00:00:00Z", ref(int64(0)), false},
		"negative":        {"2026-03-01T00:00:00Z", ref(int64(-1)), true},
		"negative, young": {"2026-03-01T00:00:05Z", ref(int64(-3)), false},
		"huge":            {"2020-01-01T00:00:00Z", ref(int64(1<<63 - 1)), false},
		"least":           {"2020-01-01T00:00:00Z", ref(int64(-1 << 63)), true},
		"no offset":       {"2020-01-01T00:00:00", ref(int64(1)), false},
		"no time":         {"then", ref(int64(1)), false},
	} {
		if got := expired(tc.created, tc.ttl, now); got != tc.want {
			t.Errorf("%s: expired = %v", name, got)
		}
	}
}

func TestTouch(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	f.put(checkpoint, `{"v":1}`, ref(int64(100)), `{"tags":["a"],"access_count":3,"x":null}`)
	f.clock.set(t, "2026-03-01T00:00:50Z")
	for range 2 {
		if _, _, err := f.Touch(ctx, checkpoint); err != nil {
			t.Fatal(err)
		}
	}
	r := f.record(checkpoint)
	if want := `{"tags":["a"],"access_count":5,"x":null,"last_accessed":"2026-03-01T00:00:50+00:00"}`; string(r.Metadata) != want {
		t.Errorf("metadata = %s, want %s", r.Metadata, want)
	}
	if string(r.Payload) != `{"v":1}` || *r.TTLSeconds != 100 || r.CreatedAt != "2026-03-01T00:00:00+00:00" || r.UpdatedAt != "2026-03-01T00:00:50+00:00" {
		t.Errorf("touching changed the rest: %+v", r)
	}
	f.clock.set(t, "2026-03-01T00:02:00Z")
	if _, _, err := f.Touch(ctx, checkpoint); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("touching an expired record: %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		config Config
		field  string
	}{
		"default":            {Config{}, ""},
		"own namespaces":     {Config{Namespaces: []string{"scratch"}, DefaultTTL: map[string]*int64{"scratch": nil}}, ""},
		"empty namespace":    {Config{Namespaces: []string{""}}, "valid_namespaces"},
		"ttl of nothing":     {Config{DefaultTTL: map[string]*int64{"sesion": nil}}, "default_ttl_by_namespace.sesion"},
		"strategy unknown":   {Config{PruneStrategy: map[string]string{workflow: "lru"}}, "prune_strategy_by_namespace.workflow"},
		"strategy elsewhere": {Config{PruneStrategy: map[string]string{"x": PruneNone}}, "prune_strategy_by_namespace.x"},
		"negative limit":     {Config{ListLimit: -1}, "list_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.config.Validate(); memory.FieldOf(err) != tc.field || (err == nil) != (tc.field == "") {
				t.Errorf("Validate() = %v, want field %q", err, tc.field)
			}
		})
	}
}

func TestListLimitIsBounded(t *testing.T) {
	f := newFixture(t, Config{ListLimit: 3})
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		f.put(Key{workflow, "k", id}, `{}`, nil, "")
	}
	for name, tc := range map[string]struct {
		limit, offset *int64
		want          string
		more          bool
	}{
		"none":      {nil, nil, "a b c d e", false},
		"below":     {ref(int64(2)), nil, "a b", true},
		"above":     {ref(int64(1 << 40)), nil, "a b c", true},
		"last page": {ref(int64(3)), ref(int64(3)), "d e", false},
		"exact":     {ref(int64(2)), ref(int64(3)), "d e", false},
		"zero":      {ref(int64(0)), nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			entries, more, err := f.List(context.Background(), Query{Namespace: workflow, Filters: Filters{Limit: tc.limit, Offset: tc.offset}})
			var ids []string
			for _, e := range entries {
				ids = append(ids, e.ID)
			}
			if got := strings.Join(ids, " "); err != nil || got != tc.want || more != tc.more {
				t.Errorf("List = %q, more %v, %v", got, more, err)
			}
		})
	}
}

func TestManyTags(t *testing.T) {
	f := newFixture(t, Config{})
	var many []string
	for i := range 3 * maxArms {
		many = append(many, "t"+string(rune('a'+i%26))+strings.Repeat("x", i/26))
	}
	f.put(Key{workflow, "k", "a"}, `{}`, nil, `{"tags":["`+many[40]+`","`+many[41]+`"]}`)
	f.put(Key{workflow, "k", "b"}, `{}`, nil, `{"tags":["other"]}`)
	if got := f.ids(Query{Namespace: workflow, Filters: Filters{TagsAny: many}}); got != "a" {
		t.Errorf("any of %d tags: %q", len(many), got)
	}
	if got := f.ids(Query{Namespace: workflow, Filters: Filters{TagsAny: many, TagsAll: []string{many[41], many[40], many[41]}}}); got != "a" {
		t.Errorf("any of many and all of two: %q", got)
	}
}

func TestSecretsStayOut(t *testing.T) {
	red, err := redact.New([]byte("sixteen bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	ctx, path := context.Background(), filepath.Join(t.TempDir(), FileName)
	s := openTest(t, path, Options{Redact: red})
	key := Key{longTerm, projectFact, "f"}
	if _, _, err := s.Put(ctx, Write{Key: key, Value: json.RawMessage(`{"z":1,"text":"use ` + secret + `","n":9007199254740993}`), Metadata: json.RawMessage(`{"source":"` + secret + `"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, Write{Key: note, Value: json.RawMessage(`{"text":"` + secret + `"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.StorePattern(ctx, "p", json.RawMessage(`{"labels":{"1":{"nodes":["`+secret+`"]}}}`)); err != nil {
		t.Fatal(err)
	}
	if result, err := s.Import(ctx, ReadRecords(strings.NewReader(`{"namespace":"ops","record_kind":"k","record_id":"i","payload":{"text":"`+secret+`"}}`), false)); err != nil || !result.OK {
		t.Fatalf("import = %+v, %v", result, err)
	}
	r, _, err := s.Get(ctx, key)
	if err != nil || !strings.HasPrefix(string(r.Payload), `{"z":1,"text":"use [REDACTED:`) || !strings.HasSuffix(string(r.Payload), `,"n":9007199254740993}`) {
		t.Errorf("payload = %s, %v: want the secret gone and the rest as it was", r.Payload, err)
	}
	for _, bad := range []Key{{ops, "k", secret}, {ops, secret, "i"}} {
		if _, _, err := s.Put(ctx, Write{Key: bad, Value: json.RawMessage(`{}`)}); !errors.Is(err, memory.ErrInvalid) || strings.Contains(err.Error(), secret) {
			t.Errorf("a secret in a key: %v", err)
		}
	}
	if err := s.Index(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		if raw, err := os.ReadFile(name); err != nil || strings.Contains(string(raw), secret) || strings.Contains(string(raw), secret[4:20]) {
			t.Errorf("%s: %v, or it holds the secret", filepath.Base(name), err)
		}
	}
}

func TestDeepPayloadIsRefusedRatherThanMangled(t *testing.T) {
	red, err := redact.New([]byte("sixteen bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	s := openTest(t, filepath.Join(t.TempDir(), FileName), Options{Redact: red})
	deep := `{"d":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`
	if _, _, err := s.Put(context.Background(), Write{Key: checkpoint, Value: json.RawMessage(deep)}); memory.FieldOf(err) != "payload" {
		t.Errorf("Put = %v", err)
	}
}

func TestEmptyStoreReadsAsOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", FileName)
	s, err := Empty(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, found, err := s.Get(ctx, checkpoint); found || err != nil {
		t.Errorf("Get = %v, %v", found, err)
	}
	if _, _, err := s.Get(ctx, Key{"nowhere", "k", "i"}); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("Get of a bad key = %v", err)
	}
	if entries, _, err := s.List(ctx, Query{Namespace: workflow}); err != nil || entries == nil || len(entries) != 0 {
		t.Errorf("List = %v, %v", entries, err)
	}
	if deleted, err := s.Delete(ctx, checkpoint); deleted || err != nil {
		t.Errorf("Delete = %v, %v", deleted, err)
	}
	if n, err := s.Prune(ctx, ""); n != 0 || err != nil {
		t.Errorf("Prune = %v, %v", n, err)
	}
	if labels, err := s.RecallPattern(ctx, "p"); labels != nil || err != nil {
		t.Errorf("RecallPattern = %s, %v", labels, err)
	}
	if err := s.Export(ctx, Selection{}, func(Envelope) error { return errors.New("a record") }); err != nil {
		t.Error(err)
	}
	if r, err := s.Report(ctx, ReportQuery{}); err != nil || r.Error == "" {
		t.Errorf("Report = %+v, %v", r, err)
	}
	if _, _, err := s.Put(ctx, Write{Key: checkpoint, Value: json.RawMessage(`{}`)}); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("Put = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Error("reading made a directory")
	}
}

func TestReadOnly(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), FileName)
	s := openTest(t, path, Options{})
	if _, _, err := s.Put(ctx, Write{Key: checkpoint, Value: json.RawMessage(`{"v":1}`)}); err != nil {
		t.Fatal(err)
	}
	r, err := Open(ctx, path, Options{ReadOnly: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := r.Get(ctx, checkpoint); err != nil || !found {
		t.Errorf("Get = %v, %v", found, err)
	}
	if _, _, err := r.Put(ctx, Write{Key: checkpoint, Value: json.RawMessage(`{}`)}); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("Put = %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	old := filepath.Join(t.TempDir(), "old.db")
	foreign(t, old, referenceV1)
	if _, err := Open(ctx, old, Options{ReadOnly: true, Now: time.Now}); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("opening a database of the reference for reading only: %v", err)
	}
	if _, err := Open(ctx, filepath.Join(t.TempDir(), "none.db"), Options{ReadOnly: true, Now: time.Now}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("opening nothing: %v", err)
	}
}

func TestHandles(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	f.put(checkpoint, `{"v":1}`, nil, "")
	handle := f.record(checkpoint).Handle()
	f.put(checkpoint, `{"v":2}`, nil, "")
	if r, found, err := f.ByHandle(ctx, handle); err != nil || !found || r.Key != checkpoint || string(r.Payload) != `{"v":2}` {
		t.Errorf("ByHandle(%s) = %+v, %v, %v", handle, r, found, err)
	}
	if _, err := f.Delete(ctx, checkpoint); err != nil {
		t.Fatal(err)
	}
	f.put(checkpoint, `{"v":3}`, nil, "")
	if _, found, err := f.ByHandle(ctx, handle); err != nil || found {
		t.Errorf("the handle of a deleted record finds another: %v, %v", found, err)
	}
	for _, bad := range []string{"", "REC-", "REC-0", "REC--1", "MEM-1", "REC-1x", "1"} {
		if _, _, err := f.ByHandle(ctx, bad); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("ByHandle(%q) = %v", bad, err)
		}
	}
}

func TestPatternsAreNormalised(t *testing.T) {
	f, ctx := newFixture(t, Config{}), context.Background()
	_, hash, _, err := f.StorePattern(ctx, " p ", json.RawMessage(`{"other":1,"labels":{"b":{"nodes":{},"edges":[1],"legacy":7,"x":null},"a":null,"c":{"legacy":{"steps":[2],"y":1}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	// As Python's hashlib and json.dumps(sort_keys=True, separators=(",", ":")) give it.
	if want := "abe8ad27e8f7590f355a1b8a2fa06ea3b3f244962fbfb525d2e1c66e7ca91ba6"; hash != want {
		t.Errorf("hash = %s, want %s", hash, want)
	}
	got, err := f.RecallPattern(ctx, "p")
	want := `{"labels":{"b":{"nodes":[],"edges":[1],"legacy":{"steps":[]},"x":null},"c":{"legacy":{"steps":[2],"y":1},"nodes":[],"edges":[]}}}`
	if err != nil || string(got) != want {
		t.Errorf("RecallPattern = %s, %v, want %s", got, err, want)
	}
}

func TestCanonicalIsPythons(t *testing.T) {
	for raw, want := range map[string]string{
		`{"b":1,"a":[1.0,1e16,1e15,0.0001,0.00001,1.5e-7,1E400,-1e999,-0,-0.0,123456789012345678901234567890,1e22,1.7976931348623157e308,5e-324]}`: `{"a":[1.0,1e+16,1000000000000000.0,0.0001,1e-05,1.5e-07,Infinity,-Infinity,0,-0.0,123456789012345678901234567890,1e+22,1.7976931348623157e+308,5e-324],"b":1}`,
		`{"é":"\u007f~ \"\\\n\r\t\f\b\u0001/","🐢":"🐢","z":true,"Z":false,"":null}`:                                                                 `{"":null,"Z":false,"z":true,"\u00e9":"\u007f~ \"\\\n\r\t\f\b\u0001/","\ud83d\udc22":"\ud83d\udc22"}`,
		`[]`: `[]`, `{}`: `{}`,
	} {
		v, err := decodeAny([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(canonical(nil, v)); got != want {
			t.Errorf("canonical(%s) =\n%s, want\n%s", raw, got, want)
		}
	}
}

func TestFiltersAreChecked(t *testing.T) {
	for raw, field := range map[string]string{
		`{}`: "", `{"limit":0,"offset":5,"tags_any":[],"source":null}`: "",
		`{"Limit":1}`: "filters.Limit", `{"tag_any":[]}`: "filters.tag_any", `{"limit":2.0}`: "filters.limit", `{"limit":true}`: "filters.limit", `{"limit":-1}`: "filters.limit",
		`{"offset":"1"}`: "filters.offset", `{"tags_any":"a"}`: "filters.tags_any", `{"tags_all":["a",null]}`: "filters.tags_all[1]", `{"tags_any":["a",1]}`: "filters.tags_any",
		`{"source":""}`: "filters.source", `{"created_after":"yesterday"}`: "filters.created_after", `{"valid_at_before":5}`: "filters.valid_at_before", `[]`: "filters",
		`{"updated_before":"2026-02-30T00:00:00Z"}`: "filters.updated_before",
	} {
		_, err := parseFilters(json.RawMessage(raw))
		if memory.FieldOf(err) != field || (err == nil) != (field == "") {
			t.Errorf("parseFilters(%s) = %v, want field %q", raw, err, field)
		}
		if verdict := CheckFilters(json.RawMessage(raw)); verdict.OK != (field == "") || !verdict.OK && verdict.Issues[0].Path != field {
			t.Errorf("CheckFilters(%s) = %+v", raw, verdict)
		}
	}
}

func TestFilterNamesAreThoseOfTheStruct(t *testing.T) {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Filters]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	if !reflect.DeepEqual(names, filterNames) {
		t.Errorf("filterNames = %v, the struct has %v", filterNames, names)
	}
}
