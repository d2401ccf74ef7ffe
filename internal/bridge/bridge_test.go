package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/record"
)

// childPath makes the test binary a bridge on a database, for the client in
// docs.
const childPath = "BRIDGE_TEST_PATH"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		if err := serveFile(path); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func serveFile(path string) error {
	s, err := record.Open(context.Background(), path, record.Options{Now: time.Now})
	if err != nil {
		return err
	}
	return errors.Join(Serve(context.Background(), os.Stdin, os.Stdout, Adapters{"memory": Memory(adapterOf(s))}), s.Close())
}

func adapterOf(s *record.Store) *record.Adapter {
	lend := func(context.Context, memory.AgentID) (*record.Store, func(), error) { return s, func() {}, nil }
	return record.NewAdapter(memory.DefaultAgent, lend, lend, s.Path(), record.Config{})
}

func newAdapters(t *testing.T) Adapters {
	t.Helper()
	s, err := record.Open(context.Background(), filepath.Join(t.TempDir(), record.FileName), record.Options{Now: func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return Adapters{"memory": Memory(adapterOf(s)), "echo": echo{}}
}

// echo answers what it is asked; the verb fail fails, and odd answers what has
// no JSON form.
type echo struct{}

func (echo) Call(_ context.Context, c Call) (any, error) {
	switch c.Verb {
	case "fail":
		return nil, errors.New("it broke")
	case "odd":
		return func() {}, nil
	}
	return map[string]json.RawMessage{"args": c.Args, "context": c.Context}, nil
}

func TestServe(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":1,"adapter":"memory","verb":"put","args":["ops","k","i",{"a":"<é>"}]}`: `{"id":1,"result":{"ok":true,"created":true,"updated_at":"2026-03-01T00:00:00+00:00","stats":{"operations":1,"reads":0,"writes":1,"pruned":0}}}`,
		`{"id":"x","adapter":"memory","verb":" Memory.GET ","args":["ops","k","i"]}`:  `{"id":"x","result":{"found":false,"record":null,"stats":{"operations":1,"reads":1,"writes":0,"pruned":0}}}`,
		`{"id":[1],"adapter":"memory","verb":"recall_pattern","args":["p"]}`:          `{"id":[1],"result":null}`,
		`{"id":12345678901234567890,"adapter":"memory","verb":"profile"}`:             `{"id":12345678901234567890,"result":{"memory_profile":"v1.1-deterministic-metadata",`,
		`{"adapter":"echo","verb":"x","args":{"a":1},"context":{"b":2}}`:              `{"id":null,"result":{"args":{"a":1},"context":{"b":2}}}`,
		`{"id":1,"adapter":"memory","verb":"put","args":["nope","k","i",{}]}`:         `{"id":1,"error":{"class":"invalid","message":"namespace is not known: \"nope\"","field":"namespace","hint":"the namespaces are`,
		`{"id":1,"adapter":"memory","verb":"put","args":{"namespace":"ops"}}`:         `{"id":1,"error":{"class":"invalid","message":"args must be a list","field":"args"}}`,
		`{"id":1,"adapter":"memory","verb":"drop"}`:                                   `{"id":1,"error":{"class":"invalid","message":"memory has no verb \"drop\""`,
		`{"id":1,"adapter":"memry","verb":"get"}`:                                     `{"id":1,"error":{"class":"invalid","message":"adapter is not known: \"memry\"","field":"adapter","hint":"the adapters are echo, memory"}}`,
		`{"id":1,"adapter":"echo","verb":"fail"}`:                                     `{"id":1,"error":{"class":"internal","message":"it broke"}}`,
		`{"id":1,"adapter":"echo","verb":"odd"}`:                                      `{"id":1,"error":{"class":"internal","message":"the answer has no JSON form`,
		`{"id":1,"adapter":7}`:                                                        `{"id":1,"error":{"class":"invalid","message":"adapter must not be number","field":"adapter"}}`,
		`not json`:                                                                    `{"id":null,"error":{"class":"invalid","message":"the request is no JSON object: `,
		`[1]`:                                                                         `{"id":null,"error":{"class":"invalid","message":"the request is no JSON object: it is array"`,
		"{\"id\":\"\xff\"}":                                                           `{"id":null,"error":{"class":"invalid","message":"the request is not UTF-8 text"}}`,
	} {
		// Whatever came before, the next line is answered; the last may lack its end.
		var out bytes.Buffer
		err := Serve(context.Background(), strings.NewReader("\n"+in+"\r\n  \n"+`{"id":"next","adapter":"echo","verb":"x"}`), &out, newAdapters(t))
		first, rest, _ := strings.Cut(out.String(), "\n")
		if err != nil || !strings.HasPrefix(first, want) || rest != `{"id":"next","result":{"args":null,"context":null}}`+"\n" {
			t.Errorf("%s\nanswers %s\nand %s, %v, want\n%s", in, first, rest, err, want)
		}
	}
}

func TestServeSkipsALineThatIsTooLong(t *testing.T) {
	long := io.MultiReader(strings.NewReader(`{"id":1,"x":"`), io.LimitReader(zeros{}, MaxLine+1), strings.NewReader("\"}\n{\"id\":2,\"adapter\":\"echo\",\"verb\":\"x\"}\n"))
	var out bytes.Buffer
	if err := Serve(context.Background(), long, &out, newAdapters(t)); err != nil {
		t.Fatal(err)
	}
	want := `{"id":null,"error":{"class":"invalid","message":"the request is longer than 64 MiB"}}` + "\n" + `{"id":2,"result":{"args":null,"context":null}}` + "\n"
	if out.String() != want {
		t.Errorf("answers = %s", out.String())
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestServeEndsWithItsContext(t *testing.T) {
	in, feed := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- Serve(ctx, in, io.Discard, newAdapters(t)) }()
	if _, err := feed.Write([]byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve = %v", err)
	}
	if err := feed.Close(); err != nil { // lets go of the reader
		t.Fatal(err)
	}
}

func TestServeReportsABrokenOutput(t *testing.T) {
	r, w := io.Pipe()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	err := Serve(context.Background(), strings.NewReader("{}\n"), w, nil)
	if !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("Serve = %v", err)
	}
}

// TestPythonClient runs the client that docs/RECORDS.md shows.
func TestPythonClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the client in docs is not tried")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, filepath.Join("..", "..", "docs", "bridge_client.py"), self)
	cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8", childPath+"="+filepath.Join(t.TempDir(), record.FileName))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "v1.1-deterministic-metadata\n{'step': 1, 'tags': ['<a>', 'é']}\n['cp-1']\ninvalid: namespace is not known: \"nope\"\n"
	if string(out) != want {
		t.Errorf("the client prints\n%s, want\n%s", out, want)
	}
}

func FuzzServe(f *testing.F) {
	for _, seed := range []string{`{"id":1,"adapter":"echo","verb":"x"}`, "\n\n", "{\n}", `{"id":1}{"id":2}`, "\x00\n\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := Serve(context.Background(), bytes.NewReader(in), &out, Adapters{"echo": echo{}}); err != nil {
			t.Fatal(err)
		}
		requests := 0
		for _, l := range bytes.Split(in, []byte("\n")) {
			if len(bytes.TrimSpace(l)) > 0 {
				requests++
			}
		}
		answers := strings.SplitAfter(out.String(), "\n")
		if len(answers)-1 != requests {
			t.Fatalf("%d answers to %d requests of %q", len(answers)-1, requests, in)
		}
		for _, a := range answers[:len(answers)-1] {
			var answer struct{ ID, Result, Error json.RawMessage }
			if err := json.Unmarshal([]byte(a), &answer); err != nil || (answer.Result == nil) == (answer.Error == nil) {
				t.Fatalf("answer %q to %q: %v", a, in, err)
			}
		}
	})
}
