package fault

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMatrixIsInOrder(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Matrix() {
		if seen[row.ID] || row.Title == "" {
			t.Errorf("%s is there twice, or has no title", row.ID)
		}
		seen[row.ID] = true
		switch row.Lane {
		case CPU, Disk, Alone:
		default:
			t.Errorf("%s has the lane %q", row.ID, row.Lane)
		}
		files, err := filepath.Glob(filepath.Join("../../..", filepath.FromSlash(row.Package), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "func TestFault"+row.ID+"(") {
				continue
			}
			found = true
			head, _, _ := strings.Cut(string(text), "\npackage ")
			if !strings.Contains(head, "//go:build") || !strings.Contains(head, "fault") {
				t.Errorf("%s has no build tag: every `go test ./...` would run %s", name, row.ID)
			}
		}
		if !found {
			t.Errorf("%s has no TestFault%s in %s", row.ID, row.ID, row.Package)
		}
	}
}

func TestFiguresThatMustHold(t *testing.T) {
	for name, tc := range map[string]struct {
		say  func(*Run)
		want string
	}{
		"told":       {func(r *Run) { r.Count("kills", 12) }, "kills 12"},
		"zero":       {func(r *Run) { r.Zero("lost", 0) }, "lost 0"},
		"at most":    {func(r *Run) { r.AtMost("p99", 12.5, 50, " ms") }, "p99 12.5 ms"},
		"at least":   {func(r *Run) { r.AtLeast("recall", 98, 97, " %") }, "recall 98 %"},
		"not done":   {func(r *Run) { r.Count("kills", 1); r.Without("power cuts: needs root") }, "kills 1; WITHOUT power cuts: needs root"},
		"only skips": {func(r *Run) { r.Without("needs root") }, "WITHOUT needs root"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Run{t: t}
			tc.say(r)
			if got := r.result.Line(); got != tc.want {
				t.Errorf("the line is %q, want %q", got, tc.want)
			}
		})
	}
	for _, broken := range []Figure{{Name: "lost", Value: "3", Must: "0", Broke: true}} {
		if got := broken.String(); got != "lost 3 (must be 0)" {
			t.Errorf("a broken figure reads %q", got)
		}
	}
	r := &Run{result: Result{Scale: 5}}
	if r.N(500) != 25 || r.N(3) != 1 {
		t.Errorf("5 %% of 500 is %d, of 3 %d", r.N(500), r.N(3))
	}
}
