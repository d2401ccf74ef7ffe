package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const aBlock = "--- RELEVANT MEMORY ---\n(reference data: \"quoted\" <b>)\n[EVT-1] x\n---"

func TestBlockStandsBeforeTheLastUserTurn(t *testing.T) {
	const put = `{"role":"user","content":` + "\x00" + `},`
	inserted := strings.Replace(put, "\x00", quote(aBlock), 1)
	for _, c := range []struct{ name, body, model, want string }{
		{"plain", `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}],"model":"m"}`, "x",
			`{"messages":[{"role":"system","content":"s"},#{"role":"user","content":"q"}],"model":"m"}`},
		{"own model, before", `{"model" : "openclawssy" ,"messages":[{"role":"user","content":"q"}]}`, "x",
			`{"model" : "x" ,"messages":[#{"role":"user","content":"q"}]}`},
		{"own model, behind", `{"messages":[{"role":"user","content":"q"}],"model":""}`, "x",
			`{"messages":[#{"role":"user","content":"q"}],"model":"x"}`},
		{"no model", ` { "messages":[{"role":"user","content":"q"}]}`, "x",
			` {"model":"x", "messages":[#{"role":"user","content":"q"}]}`},
		{"null model", `{"model":null,"messages":[{"role":"user","content":"q"}]}`, "x", `{"model":"x","messages":[#{"role":"user","content":"q"}]}`},
		{"several user messages are one turn", `{"messages":[{"role":"assistant","content":"a"},{"role":"user","content":"q"},{"role":"user","content":"r"}],"model":"m"}`, "x",
			`{"messages":[{"role":"assistant","content":"a"},#{"role":"user","content":"q"},{"role":"user","content":"r"}],"model":"m"}`},
		{"tool loop", `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[]},{"role":"tool","content":"t"}],"model":"m"}`, "x",
			`{"messages":[#{"role":"user","content":"q"},{"role":"assistant","tool_calls":[]},{"role":"tool","content":"t"}],"model":"m"}`},
		{"a name twice", `{"messages":[{"role":"user","content":"old"}],"messages":[ {"role":"user","content":"q"}],"model":"m"}`, "x",
			`{"messages":[{"role":"user","content":"old"}],"messages":[ #{"role":"user","content":"q"}],"model":"m"}`},
		{"a name with escapes", `{"mess\u0061ges":[{"role":"us\u0065r","content":"q"}],"model":"m"}`, "x", `{"mess\u0061ges":[#{"role":"us\u0065r","content":"q"}],"model":"m"}`},
		{"nobody said anything", `{"messages":[{"role":"system","content":"s"}],"model":"m"}`, "x", `{"messages":[{"role":"system","content":"s"}],"model":"m"}`},
		{"empty", `{}`, "x", `{"model":"x"}`},
		{"of another form", `{"messages":["q",{"role":"user"}],"model":"m"}`, "x", `{"messages":["q",{"role":"user"}],"model":"m"}`},
	} {
		parsed, err := parse([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, want := string(parsed.with(aBlock, c.model)), strings.Replace(c.want, "#", inserted, 1); got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
	}
	for _, bad := range []string{``, `[]`, `"x"`, `{"messages":[}`, `{} {}`, `nul`} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Whatever a request holds, the bytes that were there are there still, and the
// result is JSON with one more message in the right place.
func TestEveryOtherByteStays(t *testing.T) {
	space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n  "})
	value := rapid.SampledFrom([]string{`1.50e+3`, `10000000000000000000001`, `"x\u00e9\"}],["`, `{"messages":[{"role":"user"}]}`, `null`, `[[],{}]`, `"日本"`, `-0`})
	role := rapid.SampledFrom([]string{"system", "developer", "user", "assistant", "tool"})
	content := rapid.SampledFrom([]string{`"hello"`, `""`, `null`, `[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:x"}}]`, `"]}{[\\\""`})
	rapid.Check(t, func(rt *rapid.T) {
		var roles, list []string
		for range rapid.IntRange(0, 6).Draw(rt, "messages") {
			r := role.Draw(rt, "role")
			roles = append(roles, r)
			list = append(list, space.Draw(rt, "s")+`{"x":`+value.Draw(rt, "v")+`,"role":"`+r+`"`+space.Draw(rt, "s")+`,"content":`+content.Draw(rt, "c")+`}`+space.Draw(rt, "s"))
		}
		body := space.Draw(rt, "s") + `{"tools":` + value.Draw(rt, "v") + `,"messages"` + space.Draw(rt, "s") + `:[` + strings.Join(list, ",") + `],"model":"m","seed":` + value.Draw(rt, "v") + `}` + space.Draw(rt, "s")
		parsed, err := parse([]byte(body))
		if err != nil {
			rt.Fatal(err)
		}
		out := string(parsed.with(aBlock, "x"))
		inserted := `{"role":"user","content":` + quote(aBlock) + `},`
		last := -1
		for i, r := range roles {
			if r == "user" && (i == 0 || roles[i-1] != "user") {
				last = i
			}
		}
		if last < 0 {
			if out != body {
				rt.Fatalf("%s became %s", body, out)
			}
			return
		}
		if strings.Replace(out, inserted, "", 1) != body || !json.Valid([]byte(out)) {
			rt.Fatalf("%s became %s", body, out)
		}
		var doc struct{ Messages []struct{ Role, Content any } }
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Messages) != len(list)+1 || doc.Messages[last].Content != aBlock {
			rt.Fatalf("%v %s", err, out)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		parsed, err := parse([]byte(body))
		if err != nil {
			return
		}
		if out := parsed.with(aBlock, "x"); !json.Valid(out) {
			t.Errorf("%q became %q", body, out)
		}
	})
}

// An answer is the same, in whatever pieces it comes.
func TestListenerHearsAnyPieces(t *testing.T) {
	const stream = ": hello\r\n\r\ndata: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Sour\"}},{\"index\":1,\"delta\":{\"content\":\"no\"}}]}\n\n" +
		"data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"dough \\ud83c\\udf5e\",\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}},{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"[\"}}]}}]}\n\n" +
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"]\"}},{\"index\":1,\"function\":{\"arguments\":\"}\"}}]}}]}\n\n" +
		"data: not json\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"
	rapid.Check(t, func(rt *rapid.T) {
		var l listener
		ends := 0
		for rest := []byte(stream); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "n")
			if l.hear(rest[:n]) {
				ends++
			}
			rest = rest[n:]
		}
		r := l.heard()
		if ends != 1 || r.partial || r.text != "Sourdough 🍞" || r.model != "m" || r.tokensIn != 7 || r.tokensOut != 2 || len(r.calls) != 2 {
			rt.Fatalf("heard %+v, %d ends", r, ends)
		}
		if r.calls[0] != (call{"b", "g", "{}"}) || r.calls[1] != (call{"a", "f", "[]"}) {
			rt.Fatalf("calls %+v", r.calls)
		}
	})
}
