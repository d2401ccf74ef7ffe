package index

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestGet(t *testing.T) {
	r := newRig(t, map[string]string{"MEMORY.md": "one\ntwo\r\nthree\n", "memory/empty.md": "", "docs/a.md": "extra", "SOUL.md": "soul", "memory/bad.md": "\xff"})
	for _, tc := range []struct {
		in   Lines
		want Passage
	}{
		{Lines{Path: "MEMORY.md"}, Passage{Path: "MEMORY.md", From: 1, Lines: 4, Content: "one\ntwo\r\nthree\n"}},
		{Lines{Path: "./MEMORY.md", From: 2, Lines: 1}, Passage{Path: "MEMORY.md", From: 2, Lines: 1, Content: "two\r"}},
		{Lines{Path: "MEMORY.md", From: 3, Lines: 9}, Passage{Path: "MEMORY.md", From: 3, Lines: 2, Content: "three\n"}},
		{Lines{Path: "MEMORY.md", From: 99}, Passage{Path: "MEMORY.md", From: 99}},
		{Lines{Path: `memory\empty.md`}, Passage{Path: "memory/empty.md", From: 1, Lines: 1}},
		{Lines{Path: "docs/a.md"}, Passage{Path: "docs/a.md", From: 1, Lines: 1, Content: "extra"}},
	} {
		got, err := Get(t.Context(), r.w, []string{"docs"}, tc.in)
		if err != nil || got != tc.want {
			t.Errorf("%+v: %+v, %v", tc.in, got, err)
		}
	}
}

func TestGetRefuses(t *testing.T) {
	r := newRig(t, map[string]string{"MEMORY.md": "one\n", "SOUL.md": "soul", "memory/bad.md": "\xff", "docs/a.md": "x", "real/x.md": "x", "../out.md": "secret"})
	for link, to := range map[string]string{"memory/link.md": "../../out.md", "memory/in.md": "../MEMORY.md", "memory/dir": "../real"} {
		if err := os.Symlink(to, filepath.Join(r.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, kind := range map[string]memory.Kind{
		"": memory.ErrInvalid, "SOUL.md": memory.ErrInvalid, "../out.md": memory.ErrInvalid, "memory/../../out.md": memory.ErrInvalid, "memory/../SOUL.md": memory.ErrInvalid,
		"/etc/passwd.md": memory.ErrInvalid, "docs/a.md": memory.ErrInvalid, "memory": memory.ErrInvalid, "memory/x.txt": memory.ErrInvalid,
		"memory/none.md": memory.ErrNotFound, "memory/link.md": memory.ErrDenied, "memory/in.md": memory.ErrDenied, "memory/dir/x.md": memory.ErrDenied,
		"memory/bad.md": memory.ErrInvalid, "memory/a\x00.md": memory.ErrNotFound, strings.Repeat("memory/", 3000) + ".md": memory.ErrNotFound,
	} {
		if p, err := Get(t.Context(), r.w, nil, Lines{Path: path}); !errors.Is(err, kind) {
			t.Errorf("%.40q: %+v, %v, want %s", path, p, err, kind)
		}
	}
	for field, in := range map[string]Lines{"from": {Path: "MEMORY.md", From: -1}, "lines": {Path: "MEMORY.md", Lines: -1}} {
		if _, err := Get(t.Context(), r.w, nil, in); memory.FieldOf(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestGetIsBounded(t *testing.T) {
	line := strings.Repeat("x", 999) + "\n"
	r := newRig(t, map[string]string{"MEMORY.md": strings.Repeat(line, 600), "memory/one.md": strings.Repeat("y", 300<<10)})
	all, from := "", 1
	for {
		p, err := Get(t.Context(), r.w, nil, Lines{Path: "MEMORY.md", From: from})
		if err != nil || len(p.Content) > mostUnits {
			t.Fatalf("%d bytes, %v", len(p.Content), err)
		}
		all += p.Content
		if !p.Truncated {
			break
		}
		all += "\n"
		from = p.NextFrom
	}
	if all != strings.Repeat(line, 600) {
		t.Errorf("%d bytes of %d", len(all), 600*len(line))
	}
	if p, err := Get(t.Context(), r.w, nil, Lines{Path: "memory/one.md"}); err != nil || len(p.Content) != mostUnits || !p.Truncated || p.NextFrom != 0 {
		t.Errorf("one long line: %d bytes, %v, %v", len(p.Content), p.Truncated, err)
	}
}

func FuzzGet(f *testing.F) {
	f.Add("MEMORY.md", "a\nb", 1, 1)
	f.Add("../x", "", -1, 1<<40)
	f.Fuzz(func(t *testing.T, name, text string, from, lines int) {
		p := cut(name, text, Lines{From: max(0, from), Lines: max(0, lines)})
		if !strings.Contains(text, p.Content) || p.Lines != strings.Count(p.Content, "\n")+1 && p.Lines != 0 && !p.Truncated {
			t.Fatalf("%+v of %q", p, text)
		}
	})
}
