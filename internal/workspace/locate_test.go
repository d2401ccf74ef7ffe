package workspace

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestJSON5(t *testing.T) {
	for text, want := range map[string]any{
		`null`:                                nil,
		"\ufeff // c\n[1, /* x */ true,]":     []any{1., true},
		`{a: 1, 'b c': "x", $_é٣: .5,}`:       map[string]any{"a": 1., "b c": "x", "$_é٣": .5},
		`{"a": {a: []}, "a": +5.}`:            map[string]any{"a": 5.},
		"'it\\'s \\x41\\u00e9\\\n on \\v\\0'": "it's Aé on \v\x00",
		`"\ud83d\ude80 \ud83d \q"`:            "🚀 \ufffd q",
		"\"a\u2028b\"":                        "a\u2028b",
		`[0x1F, -0xa, 1e3, 1.5E-2, -.5, 0]`:   []any{31., -10., 1000., .015, -.5, 0.},
		`[Infinity, -Infinity, +Infinity]`:    []any{math.Inf(1), math.Inf(-1), math.Inf(1)},
		"\u00a0{\u3000}\u2029":                map[string]any{},
		`{\u0061b: 1}`:                        map[string]any{"ab": 1.},
		`{null: false}`:                       map[string]any{"null": false},
	} {
		got, err := parseJSON5(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, ` // only`, `{`, `{a}`, `{a:}`, `{a:1,,}`, `[,]`, `[1 2]`, `"a`, "'a\nb'", `01`, `1x`, `.`, `0x`, `1e`, `/* x`, `nul`, `{1a:1}`, `"\1"`,
		`"\u12"`, `{a:1}{`, `-`, `"\01"`, strings.Repeat("[", 1000)} {
		if got, err := parseJSON5(text); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// JSON is JSON5, and means the same.
func FuzzJSON5(f *testing.F) {
	for _, seed := range []string{`{a:1,/*x*/}`, `["\u00e9", -0.5e3, {"x": null}]`, `'\x41'`, "\ufeff[\u2028]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseJSON5(text)
		var want any
		if json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		if err != nil && strings.Contains(err.Error(), "deeply") {
			return
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v; JSON gives %#v", text, got, err, want)
		}
	})
}

func TestLocate(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(named, configured, want string) {
		t.Helper()
		got, err := Locate(named, configured, home, getenv)
		if err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	config := filepath.Join(home, ".openclaw", "openclaw.json")
	expect("", "", filepath.Join(home, ".openclaw", "workspace"))
	put(config, `{ // where I live
		agents: { defaults: { workspace: '~/claw' }, list: [{id: 'a'}, {id: "b", default: true}] }, meta: {lastTouchedVersion: "2026.2.1"}, }`)
	expect("", "", filepath.Join(home, "claw"))
	expect("", "~/set", filepath.Join(home, "set"))
	expect("/named", "~/set", "/named")
	in, err := FindInstallation(home, getenv)
	if err != nil || in.Version != "2026.2.1" || in.Agent != "b" || in.Dir != filepath.Join(home, ".openclaw") {
		t.Errorf("%+v, %v", in, err)
	}
	put(config, `{agents: {list: [{id: 'a', workspace: '/of/a'}]}, agent: {workspace: 'old'}}`)
	expect("", "", "/of/a")
	put(config, `{agent: {workspace: '~'}}`)
	expect("", "", home)
	env["OPENCLAW_STATE_DIR"], env["OPENCLAW_PROFILE"] = filepath.Join(home, "state"), "work"
	expect("", "", filepath.Join(home, ".openclaw", "workspace-work"))
	env["OPENCLAW_CONFIG_PATH"] = "~/c.json5"
	put(filepath.Join(home, "c.json5"), `{agents: {defaults: {workspace: "/d"}}}`)
	expect("", "", "/d")
	put(filepath.Join(home, "c.json5"), "{\n oops")
	if _, err := Locate("", "", home, getenv); !errors.Is(err, memory.ErrInvalid) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a broken configuration: %v", err)
	}
	expect("/named", "", "/named")
}
