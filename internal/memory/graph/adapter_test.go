package graph

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func TestStorePatternTakesOneStepThatIsNoList(t *testing.T) {
	r := newRig(t, nil, nil)
	for args, count := range map[string]string{
		`[{"pattern_name":"p","value":0}]`:             `"step_count":1`, // a value is a step whatever it is
		`[{"pattern_name":"p","value":""}]`:            `"step_count":1`,
		`{"label":"p","value":{"op":"J"}}`:             `"step_count":1`,
		`[{"label":"p","steps":"one"}]`:                `"step_count":1`,
		`[{"label":"p","value":null,"steps":[1,2]}]`:   `"step_count":2`,
		`[{"label":"p","value":["v"],"steps":[1,2]}]`:  `"step_count":1`,
		`[{"label":"p","steps":0}]`:                    `"step_count":0`, // no steps at all
		`[{"pattern_name":"p"}]`:                       `"step_count":0`,
		`[{"pattern_name":"","label":"p","steps":[]}]`: `"step_count":0`,
	} {
		r.expect("memory_store_pattern", args, "", count)
	}
}

func TestBundleTraitsAreUpdatesOneAfterAnother(t *testing.T) {
	bundle := `{"workflow":{},"memory":[],"persona":[{"trait_name":"calm","strength":0.2,"learned_from":["b"]},
		{"trait_name":" calm ","strength":0.8,"learned_from":"a"},{"trait_name":"bold","strength":0.3,"edge_type":"adores"},{"trait_name":"live","strength":0.1}]}`
	r := newRig(t, nil, nil)
	r.expect("persona_update", `[{"trait_name":"live","strength":0.9}]`, `{"agent_id":"x"}`, `"ok":true`)
	got, err := r.LoadBundle(context.Background(), "x", []byte(bundle), false)
	if err != nil || got.Traits != 2 || got.TraitsLive != 1 || got.TraitsSkipped != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	// A later row changes an earlier one, and a type of edge that is not known
	// costs no trait.
	r.expect("persona_load", `[]`, `{"agent_id":"x"}`, `"persona_context":{"bold":0.3,"calm":0.8,"live":0.9}`,
		`{"trait_name":"calm","strength":0.8,"learned_from":["a","b"],`, `{"trait_name":"bold","strength":0.3,"learned_from":[],"last_updated":1772323200}`)
}

// A recorded change of a trait is a trait to persona_load, as the contract has
// it; a bundle leaves it out, or the next boot would take the strength away.
func TestRecordedChangesOfTraits(t *testing.T) {
	r := newRig(t, nil, nil)
	r.expect("persona_update", `[{"trait_name":"calm","strength":0.9}]`, `{"agent_id":"x"}`, `"ok":true`)
	if _, err := r.OnPersonaUpdate(context.Background(), PersonaUpdate{AgentID: "x", PersonaKey: "calm"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Boot(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	var loaded struct{ Traits []Trait }
	if err := json.Unmarshal([]byte(r.call("persona_load", `[]`, "")), &loaded); err != nil {
		t.Fatal(err)
	}
	if len(loaded.Traits) != 2 || loaded.Traits[1].Strength != 0 {
		t.Errorf("persona_load = %+v, want the trait and its change", loaded.Traits)
	}
	err := r.View(context.Background(), func(v *View) error {
		raw, err := v.BuildBundle("x", nil, r.opts.Now(), r.Limits())
		if err != nil {
			return err
		}
		if n := strings.Count(string(raw), `"trait_name"`); n != 1 {
			t.Errorf("the bundle has %d traits, want the one: %s", n, raw)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
