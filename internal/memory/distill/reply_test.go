package distill

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const goodItem = `{"kind":"fact","title":"t","content":"c","importance":3,"confidence":0.5,"evidence":[{"event_id":"e1","quote":"q"}]}`

const goodUpdate = `{"id":"mem_1","new_content":"c","confidence":1,"evidence":[{"event_id":"e1","quote":"q"}]}`

func replyOf(items, updates string) string {
	return `{"new_items":[` + items + `],"updates":[` + updates + `]}`
}

func TestParse(t *testing.T) {
	edit := func(old, new string) string { return replyOf(strings.Replace(goodItem, old, new, 1), goodUpdate) }
	for name, tc := range map[string]struct {
		raw  string
		want string // of the error; empty means accepted
	}{
		"empty":                   {replyOf("", ""), ""},
		"one of each":             {replyOf(goodItem, goodUpdate), ""},
		"white space around":      {"\n " + replyOf("", "") + " \n", ""},
		"optional keys":           {edit(`"kind"`, `"valid_from":null,"valid_to":"2026-05-01","supersedes":"new:0","kind"`), ""},
		"values are judged later": {edit(`"importance":3`, `"importance":-99`), ""},
		"nothing":                 {"", "not exactly one JSON value"},
		"empty object":            {"{}", "new_items is missing"},
		"array":                   {"[]", "must be an object"},
		"null":                    {"null", "must be an object"},
		"null list":               {`{"new_items":null,"updates":[]}`, "new_items must be an array"},
		"code fence":              {"```json\n" + replyOf("", "") + "\n```", "not exactly one JSON value"},
		"prose":                   {"Here you are: " + replyOf("", ""), "not exactly one JSON value"},
		"two objects":             {replyOf("", "") + replyOf("", ""), "not exactly one JSON value"},
		"cut":                     {replyOf(goodItem, "")[:80], "not exactly one JSON value"},
		"key twice":               {`{"new_items":[],"new_items":[],"updates":[]}`, "new_items is there twice"},
		"inner key twice":         {edit(`"kind"`, `"kind":"note","kind"`), "new_items[0].kind is there twice"},
		"escaped key twice":       {edit(`"kind"`, `"k\u0069nd":"note","kind"`), "new_items[0].kind is there twice"},
		"key in another case":     {`{"New_Items":[],"updates":[]}`, `unknown key "New_Items"`},
		"unknown key":             {edit(`"kind"`, `"mood":"x","kind"`), `new_items[0] has the unknown key "mood"`},
		"proto key":               {edit(`"kind"`, `"__proto__":{},"kind"`), `unknown key "__proto__"`},
		"missing key":             {edit(`"importance":3,`, ""), "new_items[0].importance is missing"},
		"missing in evidence":     {edit(`,"quote":"q"`, ""), "new_items[0].evidence[0].quote is missing"},
		"text for number":         {edit(`"importance":3`, `"importance":"3"`), "new_items[0].importance must be an integer"},
		"fraction":                {edit(`"importance":3`, `"importance":3.5`), "new_items[0].importance must be an integer"},
		"huge integer":            {edit(`"importance":3`, `"importance":1e99`), "new_items[0].importance must be an integer"},
		"endless number":          {edit(`0.5`, `1e999`), "new_items[0].confidence must be a finite number"},
		"number for text":         {edit(`"title":"t"`, `"title":7`), "new_items[0].title must be a string"},
		"object for text":         {edit(`"title":"t"`, `"title":{}`), "new_items[0].title must be a string"},
		"bad option":              {edit(`"kind"`, `"supersedes":3,"kind"`), "new_items[0].supersedes must be a string or null"},
		"list of lists":           {replyOf("[]", ""), "new_items[0] must be an object"},
		"invalid UTF-8":           {edit(`"t"`, "\"\xff\""), "not valid UTF-8"},
		"too long":                {replyOf(strings.Replace(goodItem, `"c"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1), ""), "longer than 1048576 bytes"},
		"too many":                {replyOf(strings.Repeat(goodItem+",", 2000)+goodItem, ""), "new_items has more than 2000 elements"},
		"too many quotes": {edit(`{"event_id":"e1","quote":"q"}`, strings.Repeat(`{"event_id":"e1","quote":"q"},`, 64)+`{"event_id":"e1","quote":"q"}`),
			"new_items[0].evidence has more than 64 elements"},
		"deep": {`{"new_items":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `,"updates":[]}`, "new_items[0] must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.raw), DefaultLimits)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %q", err, tc.want)
			}
			var structure *StructureError
			if err != nil && (!errors.As(err, &structure) || !errors.Is(err, memory.ErrInvalid)) {
				t.Errorf("error %v is no structural error", err)
			}
		})
	}
}

func TestReplyRoundTrip(t *testing.T) {
	since, target := "2026-05-01", "new:0"
	want := Reply{
		NewItems: []NewItem{
			{Kind: "fact", Title: "t", Content: "c", Importance: 3, Confidence: .5, Evidence: []Quote{{"e1", "q"}}},
			{Kind: "note", Title: "u", Content: "d", Importance: 1, Confidence: 0, Evidence: []Quote{}, ValidFrom: &since, Supersedes: &target},
		},
		Updates: []Update{{ID: "mem_1", NewContent: "c", Confidence: 1, Evidence: []Quote{{"e1", "q"}}}},
	}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(raw, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// schema returns the published schema, ready to validate.
func schema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// conforms reports whether what Parse accepted fits the published schema once it
// is written again. The open set of kinds is the one thing that a schema for
// models narrows.
func conforms(s *jsonschema.Resolved, r Reply) error {
	for i := range r.NewItems {
		r.NewItems[i].Kind = memory.KindFact
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	return s.Validate(value)
}

func TestSchemaIsStrict(t *testing.T) {
	var walk func(path string, node any)
	walk = func(path string, node any) {
		object, isObject := node.(map[string]any)
		if !isObject {
			return
		}
		if object["type"] == "object" {
			properties := object["properties"].(map[string]any)
			if object["additionalProperties"] != false || len(object["required"].([]any)) != len(properties) {
				t.Errorf("%s: strict mode wants every key required and no other", path)
			}
		}
		for key, child := range object {
			walk(path+"/"+key, child)
		}
	}
	var root any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	walk("", root)

	r, err := Parse([]byte(replyOf(goodItem, goodUpdate)), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if err := conforms(schema(t), r); err != nil {
		t.Errorf("an accepted reply does not fit the schema: %v", err)
	}
}

func FuzzCheckpointJSON(f *testing.F) {
	f.Add([]byte(replyOf(goodItem, goodUpdate)))
	f.Add([]byte(replyOf("", "")))
	f.Add([]byte(replyOf(strings.Replace(goodItem, `"kind"`, `"kind":"x","kind"`, 1), "")))
	f.Add([]byte(`{"new_items":[],"updates":[]}{}`))
	f.Add([]byte(`{"new_items":[` + strings.Replace(goodItem, "0.5", "-0", 1) + `],"updates":[],"new_items":[]}`))
	s := schema(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 4<<10 {
			t.Skip()
		}
		r, err := Parse(raw, DefaultLimits)
		if err != nil {
			return
		}
		if err := conforms(s, r); err != nil {
			t.Fatalf("accepted, but does not fit the schema: %v", err)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(again, DefaultLimits)
		if err != nil {
			t.Fatalf("accepted, but not once it is written again: %v", err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

// BenchmarkParse shows linear time: ns/op grows with the reply.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		raw := []byte(replyOf(strings.TrimSuffix(strings.Repeat(goodItem+",", n), ","), ""))
		b.Run(strconv.Itoa(n)+" items", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := Parse(raw, DefaultLimits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
