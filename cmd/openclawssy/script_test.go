package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/openclawssy/openclawssy/internal/judge"
)

func TestMain(m *testing.M) {
	judge.MaybeChild(children)
	testscript.Main(m, map[string]func(){"openclawssy": main})
}

// TestScripts runs the scripts of testdata/script, which read like the manual.
func TestScripts(t *testing.T) {
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("OPENCLAWSSY_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("SOURCE", source) // the module's root
			// What is right is tested here, on machines that do other things too; how
			// fast it is, the benchmarks say.
			e.Setenv("OPENCLAWSSY_RECALL_DEADLINE_MS", "20000")
			e.Values[stubKey{}] = &[]*judge.Server{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "damage": damage, "overwrite": overwrite, "tree": tree,
			"model":    func(ts *testscript.TestScript, _ bool, behaviours []string) { model(t, ts, behaviours) },
			"embedder": func(ts *testscript.TestScript, _ bool, behaviours []string) { embedder(t, ts, behaviours) },
		},
	})
}

// stubKey is the name under which a script's environment keeps its model server.
type stubKey struct{}

// model BEHAVIOUR… starts a model server for the script, if there is none yet,
// and says how it answers the next requests.
func model(t *testing.T, ts *testscript.TestScript, behaviours []string) {
	s := stub(t, ts)
	ts.Setenv("OPENCLAWSSY_MODEL_PROVIDER", "generic")
	ts.Setenv("OPENCLAWSSY_MODEL_BASE_URL", s.URL)
	ts.Setenv("OPENCLAWSSY_MODEL_NAME", "stub")
	ts.Setenv("OPENCLAWSSY_MODEL_KEY", "env:STUB_KEY")
	s.Next(behaviours...)
}

// embedder BEHAVIOUR… is model for embeddings.
func embedder(t *testing.T, ts *testscript.TestScript, behaviours []string) {
	s := stub(t, ts)
	ts.Setenv("OPENCLAWSSY_EMBEDDINGS_PROVIDER", "generic")
	ts.Setenv("OPENCLAWSSY_EMBEDDINGS_BASE_URL", s.URL)
	ts.Setenv("OPENCLAWSSY_EMBEDDINGS_MODEL", "stub")
	ts.Setenv("OPENCLAWSSY_EMBEDDINGS_MAX_RETRIES", "0")
	s.NextEmbed(behaviours...)
}

// stub returns the script's server of models, which is started on first use.
func stub(t *testing.T, ts *testscript.TestScript) *judge.Server {
	servers, known := ts.Value(stubKey{}).(*[]*judge.Server)
	if !known {
		ts.Fatalf("the script's environment has no place for a model server")
	}
	if len(*servers) == 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		s := judge.Serve(l)
		*servers = append(*servers, s)
		ts.Defer(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		ts.Setenv("STUB_KEY", "sk-stub-0123456789")
	}
	return (*servers)[0]
}

// exits STATUS COMMAND… runs a command and checks its exit status. Its output is
// for stdout and stderr as after exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var status *exec.ExitError
		if !errors.As(err, &status) {
			ts.Fatalf("%v", err)
		}
		got = status.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s ended with status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// damage DIR OLD NEW changes the first OLD in the files of a directory.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.jsonl"))
	ts.Check(err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		ts.Check(err)
		if changed := bytes.Replace(text, []byte(args[1]), []byte(args[2]), 1); !bytes.Equal(changed, text) {
			ts.Check(os.WriteFile(name, changed, 0o600))
			return
		}
	}
	ts.Fatalf("no %q in %s", args[1], args[0])
}

// overwrite FILE puts noise into the middle pages of a file.
func overwrite(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	text, err := os.ReadFile(name)
	ts.Check(err)
	for i := 4096; i < len(text)-4096; i++ {
		text[i] = byte(i * 31)
	}
	ts.Check(os.WriteFile(name, text, 0o600))
	for _, companion := range []string{"-wal", "-shm"} {
		if err := os.Remove(name + companion); err != nil && !errors.Is(err, os.ErrNotExist) {
			ts.Fatalf("%v", err)
		}
	}
}

// tree DIR FILE writes the names, modes, sizes and times of everything in a
// directory into a file.
func tree(ts *testscript.TestScript, _ bool, args []string) {
	var list bytes.Buffer
	root := ts.MkAbs(args[0])
	ts.Check(filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err == nil {
			_, err = fmt.Fprintln(&list, strings.TrimPrefix(path, root), st.Mode(), st.Size(), st.ModTime().UnixNano())
		}
		return err
	}))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), list.Bytes(), 0o600))
}
