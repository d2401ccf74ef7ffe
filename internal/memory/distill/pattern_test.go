package distill

import (
	"go/ast"
	"go/constant"
	goparser "go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"pgregory.net/rapid"

	corpus "github.com/openclawssy/openclawssy/internal/judge/hostile"
)

// expressions returns those of all patterns of the package, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
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
		f, err := goparser.ParseFile(set, e.Name(), nil, 0)
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
	all := map[string]string{}
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
			all[set.Position(call.Pos()).String()] = constant.StringVal(value)
			return true
		})
	}
	if len(all) < 100 {
		t.Errorf("%d patterns were found, which is too few", len(all))
	}
	return all
}

// Patterns are compiled at first use, so each must be tried before it is shipped.
func TestAllPatternsCompile(t *testing.T) {
	for where, expression := range expressions(t) {
		if _, err := regexp.Compile(expression); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// A sieve changes no verdict: what an expression matches passes it, in texts that
// are made to be matched, nearly so, and in the whole corpus.
func TestSievesLetMatchesPass(t *testing.T) {
	var texts []string
	for _, c := range corpus.Load(t, "../../../testdata/hostile") {
		texts = append(texts, clipBytes(c.Text, 600), clipBytes(unmask(c.Text), 600))
	}
	matched, made, sieved := 0, 0, 0
	for where, expression := range expressions(t) {
		p := match(expression)
		for _, text := range texts {
			if passes := p.sieve().passes(text, nil); !passes {
				sieved++
			} else if p.compile().MatchString(text) {
				matched++
				continue
			}
			if p.compile().MatchString(text) {
				t.Errorf("%s: its sieve holds back %.80q", where, text)
			}
		}
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			var b strings.Builder
			around := rapid.SampledFrom([]string{"", " ", "\n", ". ", strings.Repeat("Some rye, an oar. ", 12)})
			b.WriteString(around.Draw(t, "before"))
			writeMatch(t, &b, parsed)
			b.WriteString(around.Draw(t, "after"))
			text := b.String()
			if rapid.IntRange(0, 3).Draw(t, "spoilt") == 0 && text != "" {
				at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
				text = text[:at] + text[at+1:]
			}
			if !p.compile().MatchString(text) {
				return
			}
			made++
			if !p.sieve().passes(text, nil) {
				t.Fatalf("%s: its sieve holds back %q", where, text)
			}
		})
	}
	t.Logf("%d matches of the corpus and %d made ones pass; %d texts were held back", matched, made, sieved)
	if matched < 1000 || made < 5000 || sieved < 50_000 {
		t.Error("too few of them to say so")
	}
}

// writeMatch writes a text that an expression matches, but for what it says of the
// borders of words and lines.
func writeMatch(t *rapid.T, b *strings.Builder, re *syntax.Regexp) {
	times := func(least, most int) {
		if most < 0 {
			most = least + 2
		}
		for range rapid.IntRange(least, most).Draw(t, "times") {
			writeMatch(t, b, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if forms := cases(r, re.Flags&syntax.FoldCase != 0); len(forms) > 0 {
				b.WriteString(rapid.SampledFrom(forms).Draw(t, "form"))
			}
		}
	case syntax.OpCharClass:
		at := rapid.IntRange(0, len(re.Rune)/2-1).Draw(t, "range") * 2
		b.WriteRune(rune(rapid.Int32Range(re.Rune[at], re.Rune[at+1]).Draw(t, "rune")))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteString(rapid.SampledFrom([]string{"a", "7", " ", "é", "\xff"}).Draw(t, "any"))
	case syntax.OpCapture:
		times(1, 1)
	case syntax.OpStar:
		times(0, -1)
	case syntax.OpPlus:
		times(1, -1)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, min(re.Max, re.Min+3))
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			writeMatch(t, b, sub)
		}
	case syntax.OpAlternate:
		writeMatch(t, b, rapid.SampledFrom(re.Sub).Draw(t, "one"))
	}
}
