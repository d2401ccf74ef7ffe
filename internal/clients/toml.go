package clients

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

var (
	// header is the beginning of our table, or of one below it.
	header = regexp.MustCompile(`^[ \t]*\[[ \t]*["']?mcp_servers["']?[ \t]*\.[ \t]*["']?openclawssy["']?[ \t]*(\.|\])`)
	table  = regexp.MustCompile(`^[ \t]*\[`)
)

const tables = "mcp_servers"

// parseTOML returns a TOML text as values, without our table, and that table.
func parseTOML(text []byte) (rest map[string]any, ours any, err error) {
	if err := toml.Unmarshal(text, &rest); err != nil {
		return nil, nil, errForm("it is not TOML: %w", err)
	}
	servers, is := rest[tables].(map[string]any)
	if !is {
		return rest, nil, nil
	}
	ours = servers[name]
	delete(servers, name)
	if len(servers) == 0 {
		delete(rest, tables)
	}
	return rest, ours, nil
}

// tomlWith returns a TOML text with the table of our server, at the end or in the
// place of the one that is there.
func tomlWith(text []byte, s Server) ([]byte, error) {
	rest, have, err := parseTOML(text)
	if err != nil {
		return nil, err
	}
	command, err := quoted(s.Command, "", "")
	if err != nil {
		return nil, err
	}
	args, err := quoted(s.Args, "", "")
	if err != nil {
		return nil, err
	}
	block := slices.Concat([]byte("["+tables+"."+name+"]\ncommand = "), command, []byte("\nargs = "), args, []byte("\n"))
	_, want, err := parseTOML(block)
	if err != nil || reflect.DeepEqual(have, want) {
		return text, err
	}
	from, to := len(text), len(text)
	if have != nil {
		from, to = tomlPlace(text)
	}
	before, after := text[:from], text[to:]
	if len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
		before = append(bytes.Clone(before), '\n')
	}
	if len(bytes.TrimSpace(before)) > 0 && !bytes.HasSuffix(before, []byte("\n\n")) {
		before = append(bytes.Clone(before), '\n')
	}
	if len(after) > 0 {
		block = append(block, '\n')
	}
	out := slices.Concat(before, block, after)
	return checkedTOML(out, rest, want)
}

// checkedTOML returns a text if it has ours and otherwise what was there before:
// strings of several lines may look like tables.
func checkedTOML(out []byte, rest map[string]any, ours any) ([]byte, error) {
	gotRest, gotOurs, err := parseTOML(out)
	if err != nil || !reflect.DeepEqual(gotRest, rest) || !reflect.DeepEqual(gotOurs, ours) {
		return nil, errForm("the table %s.%s stands in a form that is not known", tables, name)
	}
	return out, nil
}

// tomlPlace returns the lines of our table and those below it, with the blank
// lines behind; none at the end of the text where there is no such table.
func tomlPlace(text []byte) (from, to int) {
	from, to = -1, len(text)
	pos, open := 0, false
	for line := range bytes.SplitAfterSeq(text, []byte("\n")) {
		m := header.FindSubmatch(line)
		switch {
		case m != nil && (from < 0 || string(m[1]) == "]"): // the last one counts: one before it is in a string
			from, to, open = pos, len(text), true
		case m == nil && open && table.Match(line):
			to, open = pos, false
		}
		pos += len(line)
	}
	if from < 0 {
		from = len(text)
	}
	return from, to
}

// tomlWithout returns a TOML text without our table, and whether it was there.
func tomlWithout(text []byte) ([]byte, bool, error) {
	rest, have, err := parseTOML(text)
	if err != nil || have == nil {
		return text, false, err
	}
	from, to := tomlPlace(text)
	out, err := checkedTOML(slices.Concat(text[:from], text[to:]), rest, nil)
	return out, err == nil, err
}
