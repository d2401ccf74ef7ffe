package working

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// archived serves as the archive: the passages of some events.
type archived map[string][]memory.Episode

func (a archived) ByEvent(_ context.Context, _ memory.AgentID, id string) ([]memory.Episode, error) {
	return a[id], nil
}

func (a archived) Echoes(_ context.Context, _ memory.AgentID, texts []string) ([]string, error) {
	var ids []string
	for id, passages := range a {
		for _, p := range passages {
			if p.Type == memory.AssistantOutput && slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(p.Text, t) }) {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

func service(s *Store, turns archived) *Service {
	borrow := func(_ context.Context, agent memory.AgentID) (*Store, func(), error) {
		if agent != "a" {
			return nil, nil, memory.Errorf(memory.ErrNotFound, "agent %s has no memory", agent)
		}
		return s, func() {}, nil
	}
	return NewService(borrow, borrow, turns)
}

// call runs an operation with JSON in and out, as a face does.
func call(t *testing.T, s *Service, agent memory.AgentID, name, input string) (map[string]any, error) {
	t.Helper()
	ops := s.Ops()
	at := slices.IndexFunc(ops, func(o op.Op) bool { return o.Name == name })
	if at < 0 {
		t.Fatalf("no operation %s", name)
	}
	out, err := ops[at].Call(context.Background(), agent, json.RawMessage(input))
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	return members, nil
}

func TestListHasTheDocumentedForm(t *testing.T) {
	l := &memLog{}
	s := service(open(t, t.TempDir(), l), nil)
	if out, err := call(t, s, "nobody", "memory.list", `{}`); err != nil || len(out["items"].([]any)) != 0 || out["agent"] != "nobody" {
		t.Errorf("list of an unknown agent: %v, %v", out, err)
	}
	if _, err := call(t, s, "a", "memory.write", `{"title": "t", "content": "c", "confidence": 0}`); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, s, "a", "memory.list", `{"status": "all", "limit": 0}`)
	if err != nil {
		t.Fatal(err)
	}
	item := out["items"].([]any)[0].(map[string]any)
	for _, name := range strings.Fields("id handle kind title content importance confidence status trust created_at updated_at valid_from valid_to supersedes evidence") {
		if _, there := item[name]; !there {
			t.Errorf("an item has no %s", name)
		}
	}
	if item["evidence"] == nil || item["confidence"] != 0. {
		t.Errorf("evidence %v, confidence %v", item["evidence"], item["confidence"])
	}
	for _, bad := range []string{`{"status": "old"}`, `{"limit": -1}`} {
		if _, err := call(t, s, "a", "memory.list", bad); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("list %s: %v", bad, err)
		}
	}
}

func TestEvidenceIsChecked(t *testing.T) {
	l := &memLog{}
	said := l.say("I keep my bike in the cellar.")
	read := memory.Episode{Handle: "EVT-1", EventID: said.ID, Seq: said.Seq, SourceID: "n7", Origin: memory.OriginTool, Text: said.Text, Time: epoch}
	st := open(t, t.TempDir(), l)
	s := service(st, archived{said.ID: {read}})
	for _, bad := range []string{`[{"event_id": "evt_x"}]`, `[{"event_id": "` + said.ID + `", "quote": "in the attic"}]`} {
		if _, err := call(t, s, "a", "memory.write", `{"title": "t", "content": "c", "evidence": `+bad+`}`); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("evidence %s: %v", bad, err)
		}
	}
	out, err := call(t, s, "a", "memory.write", `{"title": "bike", "content": "The bike is in the cellar.", "evidence": [{"event_id": "`+said.ID+`", "quote": "in the cellar"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if trust := out["item"].(map[string]any)["trust"]; trust != "tool" {
		t.Errorf("trust %v: must be the lowest of its evidence", trust)
	}
	why, err := s.Explain(context.Background(), "a", GetRequest{Handle: "MEM-1"})
	if err != nil {
		t.Fatal(err)
	}
	if c := why.Evidence[0]; c.Text != said.Text || c.Quote != "in the cellar" || c.SourceID != "n7" || !slices.Equal(c.Handles, []string{"EVT-1"}) {
		t.Errorf("explained by %+v", c)
	}
	if handles, err := st.RestingOn(context.Background(), said.ID); err != nil || !slices.Equal(handles, []string{"MEM-1"}) {
		t.Errorf("resting on the turn: %v, %v", handles, err)
	}
}

func TestTrustDecidesWhoReplacesWhom(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir(), &memLog{})
	same := WriteRequest{Title: "wifi", Content: "The office wifi is called blue lagoon seven."}
	assistant := memory.WithActor(ctx, memory.OriginAssistant)
	if _, err := s.write(assistant, same, "write", "", nil); err != nil {
		t.Fatal(err)
	}
	res, err := s.write(ctx, same, "write", "", nil)
	if err != nil || res.Superseded != "MEM-1" || res.Item.Trust != memory.TrustUser {
		t.Fatalf("said by the user: %+v, %v", res, err)
	}
	again, err := s.write(assistant, same, "write", "", nil)
	if err != nil || !again.Merged || again.Item.Version != 1 || again.Item.Handle != res.Item.Handle {
		t.Errorf("said again by the assistant: %+v, %v", again, err)
	}
}

func TestQuarantine(t *testing.T) {
	ctx, l := context.Background(), &memLog{}
	st := open(t, t.TempDir(), l)
	s := service(st, nil)
	lease, err := st.Acquire(ctx, "checkpoint", "test", 1e12)
	if err != nil {
		t.Fatal(err)
	}
	quarantine := func(seq int64, id, content string) memory.Checkpoint {
		t.Helper()
		c, err := st.Apply(ctx, Batch{Lease: lease, Record: memory.Checkpoint{Range: memory.Range{First: seq, Last: seq}, Cursor: memory.Cursor{Seq: seq}, Mode: ModeModel},
			Entries: []Entry{{Item: memory.Item{ID: id, Kind: "fact", Title: "t", Content: content, Importance: 3, Confidence: .5, Status: memory.Quarantined,
				Reason: "doubtful", Trust: memory.TrustUser}}}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := l.say("x")
	quarantine(first.Seq, "mem_q1", "The moon is made of cheese and crackers entirely.")
	if _, err := call(t, s, "a", "memory.reject", `{"handle": "MEM-1"}`); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, s, "a", "memory.approve", `{"handle": "MEM-1"}`); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("approving what was rejected: %v", err)
	}
	again := l.say("y")
	if c := quarantine(again.Seq, "mem_q2", "The moon is made of cheese and crackers entirely."); len(c.Refused) != 1 {
		t.Errorf("what was rejected came back: %+v", c)
	}
	third := l.say("z")
	quarantine(third.Seq, "mem_q3", "The user keeps twelve bees in the garden shed.")
	out, err := call(t, s, "a", "memory.approve", `{"handle": "MEM-2"}`)
	if err != nil || out["item"].(map[string]any)["status"] != "active" {
		t.Errorf("approve: %v, %v", out, err)
	}
}

func TestMatch(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir(), &memLog{})
	for _, c := range []string{"The user went to Lisbon with Anna.", "Anna drives a red car.", "用户住在北京。", "The invoice of May is paid.", "Nobody knows the color of the router."} {
		write(t, s, "note", c)
	}
	for question, want := range map[string]string{
		"Who goes to Lisbon?":           "MEM-1",
		"What does Anna drive":          "MEM-2",
		"北京":                            "MEM-3",
		"invoices":                      "MEM-4",
		`" OR 1=1 -- NEAR( col:* x\x00`: "",
		"":                              "",
	} {
		matches, err := s.Match(ctx, text.ParseQuery(question, text.Options{}), MatchOptions{Limit: 3})
		if err != nil {
			t.Errorf("%q: %v", question, err)
			continue
		}
		got := ""
		if len(matches) > 0 {
			got = matches[0].Item.Handle
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", question, got, want)
		}
	}
	if _, err := s.Forget(ctx, ForgetRequest{Handle: "MEM-1"}); err != nil {
		t.Fatal(err)
	}
	q := text.ParseQuery("Lisbon", text.Options{})
	if matches, err := s.Match(ctx, q, MatchOptions{Statuses: []memory.Status{memory.Active, memory.Forgotten}}); err != nil || len(matches) != 0 {
		t.Errorf("a forgotten item matches: %+v, %v", matches, err)
	}
	if matches, err := s.Match(ctx, text.ParseQuery("Anna", text.Options{}), MatchOptions{MinImportance: 4}); err != nil || len(matches) != 0 {
		t.Errorf("an item of importance 3 matches: %+v, %v", matches, err)
	}
	related, err := s.Related(ctx, []string{"Anna has sold her car", "and paid the invoice"}, 2)
	if err != nil || len(related) != 2 || related[0].Handle != "MEM-2" && related[0].Handle != "MEM-4" {
		t.Errorf("related: %+v, %v", related, err)
	}
}

// TestSchema compares the tables with those of the last version: a change of them
// is a new migration, and changes this file and schemaSum with it.
func TestSchema(t *testing.T) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), fileName), sqlite.Options{Migrations: files})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := schemaOf(context.Background(), db.Reader())
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/schema.sql"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("the schema is not that of %s (UPDATE=1 writes it anew):\n%s", golden, got)
	}
	if sum := sumOf(got); sum != schemaSum {
		t.Errorf("schemaSum is %#x, and must be %#x", schemaSum, sum)
	}
}
