package config

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Setting is a key of a section and its value.
type Setting struct{ Key, Value string }

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./:@-]*[A-Za-z0-9_/]$`)
	topLevel    = regexp.MustCompile(`^[^\s#]`)
)

// scalar writes a value as YAML reads it back.
func scalar(v string) string {
	var back any
	if plainScalar.MatchString(v) && yaml.Unmarshal([]byte(v), &back) == nil && back == v {
		return v
	}
	return strconv.Quote(v)
}

// Edit returns the text of a configuration file with settings of one section. Of
// the lines only those of the keys change, and keep their comments; a key, or a
// section, that is not there is added. A file whose section is of another form, as
// {provider: openai} on one line, is ErrInvalid.
func Edit(text []byte, section string, settings ...Setting) ([]byte, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	if n := len(lines); n > 0 && !bytes.HasSuffix(lines[n-1], []byte("\n")) {
		lines[n-1] = append(bytes.Clone(lines[n-1]), '\n')
	}
	head := regexp.MustCompile(`^` + regexp.QuoteMeta(section) + `:\s*(#.*)?\n$`)
	from := -1
	for i, line := range lines {
		if head.Match(line) {
			from = i
		}
	}
	if from < 0 {
		if len(lines) > 0 {
			lines = append(lines, []byte("\n"))
		}
		lines = append(lines, []byte(section+":\n"))
		from = len(lines) - 1
	}
	for _, s := range settings {
		lines = setLine(lines, from, s)
	}
	out := bytes.Join(lines, nil)
	return out, checkEdit(text, out, section, settings)
}

// setLine sets a key in the section whose head is the line from.
func setLine(lines [][]byte, from int, s Setting) [][]byte {
	key := regexp.MustCompile(`^(\s+)` + regexp.QuoteMeta(s.Key) + `:[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[^#\s][^#\n]*?)?([ \t]*#.*)?\n$`)
	indent, last := "  ", from
	for i := from + 1; i < len(lines) && !topLevel.Match(lines[i]); i++ {
		trimmed := bytes.TrimLeft(lines[i], " ")
		if len(bytes.TrimSpace(trimmed)) == 0 || trimmed[0] == '#' {
			continue
		}
		if last == from {
			indent = string(lines[i][:len(lines[i])-len(trimmed)])
		}
		last = i
		if m := key.FindSubmatch(lines[i]); m != nil {
			lines[i] = fmt.Appendf(nil, "%s%s: %s%s\n", m[1], s.Key, scalar(s.Value), m[3])
			return lines
		}
	}
	added := fmt.Appendf(nil, "%s%s: %s\n", indent, s.Key, scalar(s.Value))
	return append(lines[:last+1], append([][]byte{added}, lines[last+1:]...)...)
}

// checkEdit makes sure that nothing changed but what should.
func checkEdit(before, after []byte, section string, settings []Setting) error {
	fail := func(why any) error {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the section %s cannot be edited: %v", section, why), "change it by hand; --print shows what belongs there; nothing was changed")
	}
	var was, is map[string]any
	if err := yaml.Unmarshal(before, &was); err != nil {
		return fail(err)
	}
	if err := yaml.Unmarshal(after, &is); err != nil {
		return fail(err)
	}
	have, isMap := is[section].(map[string]any)
	if !isMap {
		return fail("it is no mapping")
	}
	old, _ := was[section].(map[string]any)
	for _, s := range settings {
		if fmt.Sprint(have[s.Key]) != s.Value {
			return fail(s.Key + " stands there in a form that is not known")
		}
		delete(have, s.Key)
		delete(old, s.Key)
	}
	if len(have) == 0 {
		delete(is, section)
	}
	if len(old) == 0 {
		delete(was, section)
	}
	if len(was)+len(is) > 0 && !reflect.DeepEqual(was, is) {
		return fail("something else would change")
	}
	return nil
}
