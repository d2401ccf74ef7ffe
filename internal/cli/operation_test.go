package cli

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

type allKinds struct {
	Text    string         `json:"text" cli:"arg"`
	Tags    []string       `json:"tag_list,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Limit   int            `json:"limit,omitempty"`
	Share   *float64       `json:"share,omitempty"`
	Yes     bool           `json:"yes,omitempty"`
	No      *bool          `json:"no,omitempty"`
	Payload map[string]any `json:"payload,omitempty"`
	Steps   []any          `json:"steps,omitempty"`
}

// words cuts a command line as a shell does.
func words(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", "for w in "+line+`; do printf '%s\0' "$w"; done`).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestTheHelpsExampleSaysWhatTheOperationsExampleSays(t *testing.T) {
	for _, example := range []string{
		`{"text":"plain"}`,
		`{"text":"two words","tag_list":["ep1","it's $HOME; rm *","[1]",""]}`,
		`{"text":"a","reason":"it failed \\ \"twice\"\nso","limit":-3,"share":0.5,"yes":true,"no":false}`,
		`{"text":"a","payload":{"a":[1,{"b":null}],"q":"it's"},"steps":[{"op":"J"},"x"]}`,
	} {
		var want, got allKinds
		if err := json.Unmarshal([]byte(example), &want); err != nil {
			t.Fatal(err)
		}
		o := op.New("test.kinds", "Take all kinds.", op.Read, func(_ context.Context, _ memory.AgentID, in allKinds) (struct{}, error) {
			got = in
			return struct{}{}, nil
		}).WithExample(example)
		r := &Runner{Streams: Streams{Out: io.Discard, Err: io.Discard}}
		c := &cobra.Command{}
		r.operation(c, o)
		line, named := strings.CutPrefix(c.Example, "  openclawssy test kinds ")
		if !named {
			t.Fatalf("the example is %q", c.Example)
		}
		c.SetArgs(words(t, line))
		if err := c.ExecuteContext(context.Background()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", line, diff)
		}
	}
}
