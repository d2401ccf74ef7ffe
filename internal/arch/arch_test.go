// Package arch holds the tests that guard the layout of the house: which room
// may import which, where the clock may be read, and how large files are.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/openclawssy/openclawssy"

// floors gives every package its floor. Imports go down only, never to a
// neighbour; docs/ARCHITECTURE.md has the picture and the reasons.
var floors = map[string]int{
	"internal/memory": 0,

	"config":                     1,
	"internal/op":                1,
	"internal/sqlite":            1,
	"internal/memory/text":       1,
	"internal/memory/postings":   1,
	"internal/memory/embed/scan": 1,
	"internal/redact":            1,
	"internal/egress":            1,
	"internal/spend":             1,
	"internal/journal":           1,
	"internal/erasure":           1,
	"internal/clients":           1,
	"internal/workspace":         1,
	"internal/workspace/chunk":   1,
	"internal/workspace/rank":    1,

	"internal/llm":              2,
	"internal/memory/distill":   2,
	"internal/memory/embed/lsa": 2,
	"internal/alf":              2,
	"internal/agents":           2,
	"internal/access":           2,

	"internal/memory/embed":    3,
	"internal/memory/vectors":  3,
	"internal/memory/events":   3,
	"internal/memory/working":  3,
	"internal/memory/archive":  3,
	"internal/memory/record":   3,
	"internal/memory/graph":    3,
	"internal/workspace/index": 3,
	"internal/message":         3,
	"internal/session":         3,
	"internal/vitals":          3,
	"internal/runlog":          3,

	"internal/memory/recall":      4,
	"internal/memory/checkpoint":  4,
	"internal/memory/maintenance": 4,
	"internal/memory/report":      4,
	"internal/memory/weave":       4,
	"internal/memory/meaning":     4,
	"internal/transcript":         4,
	"internal/intake":             4,
	"internal/backup":             4,
	"internal/flush":              4,
	"internal/workspace/mirror":   4,

	"internal/runtime":   5,
	"internal/scheduler": 5,
	"internal/care":      5,
	"internal/evaluate":  5,
	"internal/doctor":    5,
	"internal/life":      5,

	"internal/httpapi":   6,
	"internal/mcpapi":    6,
	"internal/proxy":     6,
	"internal/bridge":    6,
	"internal/graphview": 6,
	"internal/adminpage": 6,

	"internal/cli": 7,

	"cmd/openclawssy":      8,
	"cmd/ainl-conformance": 8,
}

// testOnly packages may import anything, and only tests and their own
// commands may import them.
var testOnly = []string{"internal/judge", "internal/arch"}

// file is one parsed Go file; path is slash-separated from the module's root.
type file struct {
	path string
	ast  *ast.File
	set  *token.FileSet
	size int // lines
}

func goFiles(t *testing.T) []file {
	t.Helper()
	root := os.DirFS(filepath.Join("..", ".."))
	var out []file
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, file{path: path, ast: parsed, set: set, size: strings.Count(string(text), "\n")})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func room(path string) string { return filepath.ToSlash(filepath.Dir(path)) }

func isTestOnly(room string) bool {
	return slices.ContainsFunc(testOnly, func(r string) bool { return room == r || strings.HasPrefix(room, r+"/") })
}

func TestImportsGoDownOnly(t *testing.T) {
	for _, f := range goFiles(t) {
		from := room(f.path)
		isTest := strings.HasSuffix(f.path, "_test.go")
		if isTestOnly(from) {
			continue
		}
		floor, known := floors[from]
		if !known {
			t.Errorf("%s: package %s has no floor: give it one in this test and in docs/ARCHITECTURE.md", f.path, from)
			continue
		}
		for _, spec := range f.ast.Imports {
			to, ours := strings.CutPrefix(mustUnquote(t, spec.Path.Value), module+"/")
			if !ours || isTest {
				continue // a test may use the real thing above or beside it
			}
			if isTestOnly(to) {
				t.Errorf("%s imports %s, which is for tests only", f.path, to)
				continue
			}
			if below, known := floors[to]; known && below >= floor {
				t.Errorf("%s (floor %d) imports %s (floor %d): declare a small interface instead and let the wiring fill it", f.path, floor, to, below)
			}
		}
	}
}

// drivers may be imported by one room each, so that their traps are in one place.
var drivers = map[string]string{
	"github.com/mattn/go-sqlite3":       "internal/sqlite",
	"github.com/robfig/cron/v3":         "internal/scheduler",
	"github.com/sashabaranov/go-openai": "internal/llm",
	"github.com/spf13/cobra":            "internal/cli",
	"github.com/goccy/go-yaml":          "config",
}

// alsoAllowed are second rooms that a driver is needed in, with the reason.
var alsoAllowed = map[string][]string{
	"github.com/sashabaranov/go-openai": {"internal/memory/embed"},                        // embeddings speak the same API
	"github.com/goccy/go-yaml":          {"internal/memory/record", "internal/workspace"}, // front matter
}

func TestDriversHaveOneRoom(t *testing.T) {
	for _, f := range goFiles(t) {
		from := room(f.path)
		if isTestOnly(from) || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, spec := range f.ast.Imports {
			path := mustUnquote(t, spec.Path.Value)
			if owner, guarded := drivers[path]; guarded && from != owner && !slices.Contains(alsoAllowed[path], from) {
				t.Errorf("%s imports %s, which only %s may", f.path, path, owner)
			}
		}
	}
}

func TestClockIsPassedIn(t *testing.T) {
	for _, f := range goFiles(t) {
		from := room(f.path)
		if strings.HasPrefix(from, "cmd/") || isTestOnly(from) || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, isSel := n.(*ast.SelectorExpr)
			if !isSel || sel.Sel.Name != "Now" {
				return true
			}
			if pkg, isIdent := sel.X.(*ast.Ident); isIdent && pkg.Name == "time" {
				t.Errorf("%s reads the clock: take now func() time.Time from the wiring", f.set.Position(sel.Pos()))
			}
			return true
		})
	}
}

func TestNoInitAndNoDiscardedErrors(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, decl := range f.ast.Decls {
			if fn, isFunc := decl.(*ast.FuncDecl); isFunc && fn.Name.Name == "init" && fn.Recv == nil {
				t.Errorf("%s: init runs unseen: do it in New or in the wiring", f.set.Position(fn.Pos()))
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			as, isAssign := n.(*ast.AssignStmt)
			if !isAssign || len(as.Lhs) != 1 || len(as.Rhs) != 1 {
				return true
			}
			id, isIdent := as.Lhs[0].(*ast.Ident)
			if _, isCall := as.Rhs[0].(*ast.CallExpr); isIdent && isCall && id.Name == "_" {
				t.Errorf("%s throws a result away: handle the error or return it", f.set.Position(as.Pos()))
			}
			return true
		})
	}
}

// TestSizes fails on nothing: it shows where to look twice.
func TestSizes(t *testing.T) {
	files := goFiles(t)
	slices.SortFunc(files, func(a, b file) int { return b.size - a.size })
	var sb strings.Builder
	for i, f := range files {
		if i == 10 {
			break
		}
		fmt.Fprintf(&sb, "\n%5d %s", f.size, f.path)
	}
	t.Logf("the ten largest files, in lines:%s", sb.String())
}

func mustUnquote(t *testing.T, s string) string {
	t.Helper()
	v, err := strconv.Unquote(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
