//go:build fault

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// plant is a text with secrets in it.
type plant struct {
	text    string
	secrets []string
}

// marker stands in every planted text: what must be gone after an erasure.
const marker = "Zanzibarium"

// plants are the lines of redact's own corpus with their holes filled: with other
// secrets for each seed.
func plants(t *testing.T, most, seed int) []plant {
	t.Helper()
	raw, err := os.ReadFile("../../internal/redact/testdata/secrets.txt")
	if err != nil {
		t.Fatal(err)
	}
	hole := regexp.MustCompile(`⟦(=[^⟧]*|[a-z]+:[0-9]+)⟧`)
	chance := rand.New(rand.NewPCG(uint64(seed), 7))
	var out []plant
	for line := range strings.Lines(string(raw)) {
		if len(out) == most {
			break
		}
		var p plant
		p.text = hole.ReplaceAllStringFunc(strings.ReplaceAll(strings.TrimSpace(line), "⏎", "\n"), func(m string) string {
			inner := strings.TrimSuffix(strings.TrimPrefix(m, "⟦"), "⟧")
			secret, literal := strings.CutPrefix(inner, "=")
			if !literal {
				alphabet, length, _ := strings.Cut(inner, ":")
				n, err := strconv.Atoi(length)
				if err != nil {
					t.Fatal(err)
				}
				chars := map[string]string{"hex": "0123456789abcdef", "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "digits": "0123456789"}[alphabet]
				if chars == "" {
					chars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				}
				b := make([]byte, n)
				for i := range b {
					b[i] = chars[chance.IntN(len(chars))]
				}
				if alphabet == "alnum" && n > 3 { // no run of luck makes a word of it
					b[1], b[2], b[3] = 'k', '7', 'Q'
				}
				secret = string(b)
			}
			if !literal && len(secret) >= 8 { // a shorter one, or one that is the same everywhere, could stand in a file by chance
				p.secrets = append(p.secrets, secret)
			}
			return secret
		})
		if len(p.secrets) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// needle is a form of a secret, and where it was planted.
type needle struct{ form, entry string }

// forms are the bytes as which a secret may stand in a file.
func forms(secret string) []string {
	little, big := []byte{}, []byte{}
	for _, u := range utf16.Encode([]rune(secret)) {
		little, big = binary.LittleEndian.AppendUint16(little, u), binary.BigEndian.AppendUint16(big, u)
	}
	out := []string{secret, string(little), string(big), url.QueryEscape(secret), url.PathEscape(secret)}
	if quoted, err := json.Marshal(secret); err == nil {
		out = append(out, strings.Trim(string(quoted), `"`))
	}
	for lead := range 3 { // base64 of a text in which it begins at each place
		code := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", lead) + secret))
		out = append(out, code[(lead*8+5)/6+1:len(code)-4])
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return len(s) < 8 })
}

// scan looks for needles in every byte of every file below dir, and names entry
// and file of each that it finds.
func scan(t *testing.T, dir string, needles []needle) (found []string, files int) {
	t.Helper()
	byHead := map[[8]byte][]needle{}
	for _, n := range needles {
		head := [8]byte([]byte(n.form[:8]))
		byHead[head] = append(byHead[head], n)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for i := 0; i+8 <= len(raw); i++ {
			for _, n := range byHead[[8]byte(raw[i:i+8])] {
				if bytes.HasPrefix(raw[i:], []byte(n.form)) {
					found = append(found, fmt.Sprintf("%q by %s in %s", n.form, n.entry, strings.TrimPrefix(path, dir)))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found), files
}

// TestFaultF7 plants secrets by every entry, goes through a whole life, and reads
// every byte of every file.
func TestFaultF7(t *testing.T) {
	r := fault.Begin(t, "F7")
	lines := r.N(136)
	stub := judge.NewServer(t)
	home := filepath.Join(fault.Dir(t), "home")
	s, end := serveAt(t, home, "model.provider=generic", "model.name=stub", "model.base_url="+stub.URL, "spend.daily_calls=0", "spend.daily_tokens=0", "proactive.enabled=true")
	token := s.token(access.Admin)
	var needles []needle
	planted := 0
	post := func(path string, body any) {
		t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		// A text that holds a secret may be refused, as an id is: what counts is what stays.
		if status, answer := s.ask(token, "POST", path, string(raw)); status >= 500 {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
	}
	type object = map[string]any
	events := func(entry, text string, n int) {
		e := object{"type": entry, "text": text}
		switch entry {
		case "metadata":
			e = object{"type": "user_message", "text": marker, "metadata": object{"note": text, clipTo(text, 60): "value"}}
		case "tool_call", "tool_result":
			e["tool"] = "shell"
		}
		post("/v1/agents/default/events", object{"session": object{"id": fmt.Sprint("plant-", entry)}, "events": []any{e}})
	}
	do := func(name string) func(string, string, int) {
		return func(_, text string, n int) {
			body := map[string]object{
				"memory.write":       {"title": fmt.Sprint("note ", n), "content": text},
				"decision.log":       {"title": fmt.Sprint("choice ", n), "content": text, "reason": text},
				"agent.message.send": {"text": text, "session_id": "plant-user_message"},
				"record.put":         {"namespace": "workflow", "record_kind": "workflow.step", "record_id": fmt.Sprint("n", n), "payload": object{"text": text}},
				"graph.add_node":     {"id": fmt.Sprint("n", n), "node_type": "semantic", "label": text, "payload": object{"fact": text}},
			}[name]
			post("/v1/agents/default/ops/"+name, body)
		}
	}
	importFile := filepath.Join(t.TempDir(), "history.jsonl")
	var imported bytes.Buffer
	entries := []struct {
		name string
		put  func(entry, text string, n int)
	}{
		{"user_message", events}, {"assistant_output", events}, {"tool_call", events}, {"tool_result", events}, {"error", events}, {"metadata", events},
		{"memory.write", do("memory.write")}, {"decision.log", do("decision.log")}, {"agent.message.send", do("agent.message.send")}, {"record.put", do("record.put")}, {"graph.add_node", do("graph.add_node")},
		{"import", func(_, text string, n int) {
			raw, err := json.Marshal(object{"role": "user", "text": text, "session": "old"})
			if err != nil {
				t.Fatal(err)
			}
			imported.Write(append(raw, '\n'))
		}},
		{"model", func(_, text string, n int) {
			if n%8 != 0 { // a whole turn each
				return
			}
			stub.Script(judge.Answer{Text: text})
			post("/v1/agents/default/runs", object{"text": "Tell me about " + marker, "session_id": "plant-model"})
		}},
		{"tool arguments", func(_, text string, n int) {
			if n%8 != 0 {
				return
			}
			raw, err := json.Marshal(object{"title": "from a tool", "content": text})
			if err != nil {
				t.Fatal(err)
			}
			stub.Script(judge.Answer{ToolCalls: []judge.ToolCall{{Name: "memory_write", Arguments: string(raw)}}}, judge.Answer{Text: "done " + marker})
			post("/v1/agents/default/runs", object{"text": "Write it down, " + marker, "session_id": "plant-tool"})
		}},
	}
	for i, entry := range entries {
		for n, p := range plants(t, lines, 1000+i) {
			entry.put(entry.name, p.text+"\n"+marker, n)
			planted++
			for _, secret := range p.secrets {
				for _, form := range forms(secret) {
					needles = append(needles, needle{form, entry.name})
				}
			}
		}
	}
	if err := os.WriteFile(importFile, imported.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	post("/v1/agents/default/ops/memory.checkpoint", object{})
	post("/v1/agents/default/ops/memory.maintenance", object{})
	open, _ := scan(t, home, needles) // with what SQLite keeps beside its databases
	end()
	model := []string{"--set", "model.provider=generic", "--set", "model.name=stub", "--set", "model.base_url=" + stub.URL}
	commandOf(t, home, append([]string{"import", "chat", importFile}, model...)...)
	commandOf(t, home, append([]string{"memory", "checkpoint"}, model...)...)
	commandOf(t, home, "memory", "report")
	commandOf(t, home, "memory", "recall", "What do you know about "+marker+"?")
	closed, files := scan(t, home, needles)
	for _, f := range append(open, closed...) {
		t.Logf("found: %s", f)
	}
	r.Count("texts planted", planted)
	r.Count("entries", len(entries))
	r.Count("forms looked for", len(needles))
	r.Count("files read", files)
	r.Zero("secrets found", len(open)+len(closed))

	before, _ := scan(t, home, []needle{{marker, "marker"}})
	r.AtLeast("files that the planted texts stand in", float64(len(before)), 3, "")
	commandOf(t, home, "memory", "erase", "--match", marker, "--yes")
	after, _ := scan(t, home, append(needles, needle{marker, "marker"}))
	for _, f := range after {
		t.Logf("after the erasure: %s", f)
	}
	r.Zero("found after the erasure", len(after))
}

func clipTo(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}
