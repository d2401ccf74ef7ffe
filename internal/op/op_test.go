package op

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

type query struct {
	Text  string `json:"text" jsonschema:"words to look for" cli:"arg"`
	Limit int    `json:"limit,omitempty" jsonschema:"most results"`
}

type answer struct {
	Agent memory.AgentID `json:"agent"`
	Text  string         `json:"text"`
	Limit int            `json:"limit"`
}

func echo(_ context.Context, agent memory.AgentID, q query) (answer, error) {
	return answer{agent, q.Text, q.Limit}, nil
}

func TestCall(t *testing.T) {
	o := New("memory.search", "Find.", Read, echo)
	for name, tc := range map[string]struct{ raw, want, field string }{
		"good":           {`{"text":"tea","limit":3}`, `{"agent":"a","text":"tea","limit":3}`, ""},
		"missing":        {`{}`, "", "text"},
		"nothing at all": {``, "", "text"},
		"unknown":        {`{"text":"tea","limits":3}`, "", "limits"},
		"doubled":        {`{"text":"tea","text":"x"}`, "", "text"},
		"wrong type":     {`{"text":"tea","limit":"3"}`, "", "limit"},
		"wrong type 2":   {`{"text":4}`, "", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := o.Call(context.Background(), "a", json.RawMessage(tc.raw))
			if tc.field != "" {
				if !errors.Is(err, memory.ErrInvalid) || memory.FieldOf(err) != tc.field {
					t.Fatalf("error %v names %q, want field %q", err, memory.FieldOf(err), tc.field)
				}
				return
			}
			got, _ := json.Marshal(out)
			if err != nil || string(got) != tc.want {
				t.Errorf("Call = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
	for _, raw := range []string{`[]`, `null`, `{"text":"a"} {}`, `{"text":"a"`, `{"text":"a"}x`, "\x00"} {
		if _, err := o.Call(context.Background(), "a", json.RawMessage(raw)); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("Call(%q) = %v, want invalid", raw, err)
		}
	}
	if f := o.Fields[0]; !f.Arg || !f.Required || f.Usage != "words to look for" {
		t.Errorf("first field = %+v", f)
	}
}

func TestCatalogGetHints(t *testing.T) {
	var c Catalog
	c.Add(New("memory.search", "Find.", Read, echo), New("memory.get", "Get.", Read, echo))
	c.Freeze()
	_, err := c.Get("memory.serach")
	if !errors.Is(err, memory.ErrNotFound) || memory.HintOf(err) != "did you mean memory.search?" {
		t.Errorf("Get = %v, hint %q", err, memory.HintOf(err))
	}
	if all := c.All(); len(all) != 2 || all[0].Name != "memory.get" {
		t.Errorf("All = %v, want the order of names", all)
	}
}
