package distill_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Patterns are compiled at first use, so each must be tried before it is shipped.
func TestAllPatternsCompile(t *testing.T) {
	set := token.NewFileSet()
	var files []*ast.File
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// Only constants are asked for: that other packages are not read is no matter.
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	cfg := types.Config{Error: func(error) {}}
	if _, err := cfg.Check("distill", set, files, &info); err == nil {
		t.Error("the check found other packages, which it was not given")
	}
	tried := 0
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			if !isCall {
				return true
			}
			if name, isName := call.Fun.(*ast.Ident); !isName || name.Name != "match" {
				return true
			}
			value := info.Types[call.Args[0]].Value
			if value == nil {
				t.Errorf("%s: the expression is no constant", set.Position(call.Pos()))
				return true
			}
			if _, err := regexp.Compile(constant.StringVal(value)); err != nil {
				t.Errorf("%s: %v", set.Position(call.Pos()), err)
			}
			tried++
			return true
		})
	}
	if tried < 100 {
		t.Errorf("%d patterns were found, which is too few", tried)
	}
}
