package life

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
)

// part is a section of a Markdown text with its heading and the lines below it.
type part struct {
	heading string
	lines   []string
}

// parts cuts a text at headings of one level ("## "). Text before the first one
// is left out, and so are headings in fenced code.
func parts(text, mark string) []part {
	var out []part
	fenced := false
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\r\n")
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		}
		if rest, found := strings.CutPrefix(l, mark); found && !fenced {
			out = append(out, part{heading: strings.Trim(rest, " \t#")})
		} else if len(out) > 0 {
			out[len(out)-1].lines = append(out[len(out)-1].lines, l)
		}
	}
	return out
}

// section returns the lines of the first H2 section with one of the titles,
// whatever their case; nil for none.
func section(text string, titles ...string) []string {
	for _, p := range parts(text, "## ") {
		if slices.Contains(titles, strings.ToLower(p.heading)) {
			return p.lines
		}
	}
	return nil
}

// timezone finds the time zone in USER.md as the client alf does: the first line
// of the section Timezone that has a slash and is no list item or heading.
func timezone(user string) string {
	for _, l := range section(user, "timezone") {
		l = strings.TrimSpace(l)
		if l != "" && strings.Contains(l, "/") && l[0] != '-' && l[0] != '#' {
			return l
		}
	}
	return ""
}

// field is a line such as "- **Tone**: casual", or a heading of the third level,
// with the list items below it.
type field struct {
	key, value string
	items      []string
	line       bool // no list item itself: items below it need not be indented
	heading    bool
}

// takes reports whether a list item belongs to the field; keyed: it has the form
// of a field.
func (f field) takes(indented, keyed bool) bool {
	return f.value == "" && (indented || f.line || f.heading && !keyed)
}

// fields reads the fields of some lines. A line that is none belongs to rest.
func fields(lines []string) (list []field, rest []string) {
	for _, l := range lines {
		text := strings.TrimSpace(l)
		if text == "" {
			continue
		}
		item := strings.TrimSpace(strings.TrimLeft(text, "-*+ "))
		isItem := text[0] == '-' || strings.HasPrefix(text, "* ") || strings.HasPrefix(text, "+ ")
		key, value, found := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(item, "**", ""), "__", ""), ":")
		key = strings.TrimSpace(key)
		indented := l != "" && (l[0] == ' ' || l[0] == '\t')
		keyed := found && key != "" && len(strings.Fields(key)) <= 4
		heading, isHeading := strings.CutPrefix(text, "### ")
		switch {
		case isHeading:
			list = append(list, field{key: strings.ToLower(strings.Trim(heading, " #:")), heading: true})
		case isItem && len(list) > 0 && list[len(list)-1].takes(indented, keyed):
			last := &list[len(list)-1]
			last.items = append(last.items, item)
		case keyed:
			list = append(list, field{key: strings.ToLower(key), value: strings.TrimSpace(value), line: !isItem})
		case !isItem && len(list) > 0 && list[len(list)-1].heading && list[len(list)-1].all() == nil:
			list[len(list)-1].value = item
		default:
			rest = append(rest, item)
		}
	}
	return list, rest
}

// all returns the field's values: its items, else its value cut at commas.
func (f field) all() []string {
	if len(f.items) > 0 {
		return f.items
	}
	var out []string
	for v := range strings.FieldsFuncSeq(f.value, func(r rune) bool { return r == ',' || r == ';' }) {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

func (f field) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(f.key, w) })
}

// fillProfile reads the sections Preferences, Work and Timezone of USER.md. What
// has no member of its own goes into custom_fields, so that nothing is lost.
func fillProfile(p *alf.StructuredProfile, user string) {
	if p.Timezone == "" {
		for _, l := range section(user, "timezone", "time zone") {
			if zone := strings.Trim(strings.TrimSpace(l), "-* `"); p.Timezone == "" && strings.Contains(zone, "/") {
				p.Timezone = zone
			}
		}
	}
	if lines := section(user, "preferences", "communication preferences"); lines != nil {
		c, rest := alf.Communication{}, []string{}
		known, loose := fields(lines)
		for _, f := range known {
			switch value := strings.Join(f.all(), ", "); {
			case f.has("tone", "style") && c.Tone == "":
				c.Tone = value
			case f.has("length", "verbosity", "detail") && c.ResponseLength == "":
				c.ResponseLength = value
			case f.has("format") && c.Formatting == "":
				c.Formatting = value
			case f.has("locale", "language") && p.Locale == "":
				p.Locale = value
			default:
				rest = append(rest, f.key+": "+value)
			}
		}
		if c.Tone+c.ResponseLength+c.Formatting != "" {
			p.CommunicationPreferences = &c
		}
		custom(p, "preferences", append(rest, loose...))
	}
	if lines := section(user, "work", "work context"); lines != nil {
		w, rest := alf.WorkContext{}, []string{}
		known, loose := fields(lines)
		for _, f := range known {
			switch value := strings.Join(f.all(), ", "); {
			case f.has("role", "title", "job", "position") && w.Role == "":
				w.Role = value
			case f.has("company", "employer", "organisation", "organization") && w.Company == "":
				w.Company = value
			case f.has("project"):
				w.Projects = append(w.Projects, f.all()...)
			default:
				rest = append(rest, f.key+": "+value)
			}
		}
		if w.Role+w.Company != "" || len(w.Projects) > 0 {
			p.WorkContext = &w
		}
		custom(p, "work", append(rest, loose...))
	}
}

// custom keeps lines under a custom field.
func custom(p *alf.StructuredProfile, name string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if p.CustomFields == nil {
		p.CustomFields = alf.Map[jsontext.Value]{}
	}
	p.CustomFields[name] = quoteList(lines)
}

// quoteList encodes strings as a JSON array.
func quoteList(lines []string) jsontext.Value {
	text, err := json.Marshal(lines)
	if err != nil {
		panic(err) // strings always encode
	}
	return text
}

// subAgents reads the sections ## SubAgent of AGENTS.md: one agent each, named
// in the heading or by a field; or ## SubAgents with an agent below each ###.
func subAgents(text string) alf.List[alf.SubAgent] {
	var out alf.List[alf.SubAgent]
	for _, p := range parts(text, "## ") {
		name, found := cutSubAgent(p.heading)
		if !found {
			continue
		}
		below := parts(strings.Join(p.lines, "\n"), "### ")
		if name == "" && len(below) > 0 {
			for _, b := range below {
				out = append(out, subAgent(b.heading, b.lines))
			}
			continue
		}
		out = append(out, subAgent(name, p.lines))
	}
	return out
}

// cutSubAgent returns what stands behind "SubAgent" in a heading.
func cutSubAgent(heading string) (name string, found bool) {
	lower := strings.ToLower(heading)
	for _, word := range []string{"subagents", "sub-agents", "sub agents", "subagent", "sub-agent", "sub agent"} {
		if strings.HasPrefix(lower, word) {
			return strings.Trim(heading[len(word):], " \t:-–—()`"), true
		}
	}
	return "", false
}

func subAgent(name string, lines []string) alf.SubAgent {
	s := alf.SubAgent{Name: name, Status: "active", Capabilities: alf.List[alf.Capability]{}}
	known, loose := fields(lines)
	for _, f := range known {
		switch {
		case f.has("name") && s.Name == "":
			s.Name = f.value
		case f.has("status"):
			if v := strings.ToLower(f.value); v == "inactive" || v == "unavailable" {
				s.Status = v
			}
		case f.has("capabilit", "skill", "tools"):
			for _, c := range f.all() {
				s.Capabilities = append(s.Capabilities, alf.Capability{Name: c})
			}
		case f.has("model"):
			s.ModelHints = modelHints(f.value)
		case f.has("routing", "when to use", "delegate", "trigger"):
			s.RoutingHints = f.value
		case f.has("performance", "notes"):
			s.PerformanceNotes = f.value
		case f.has("description", "role", "purpose") && s.Description == "":
			s.Description = f.value
		case f.key == "id" || f.key == "agent id" || f.key == "agent_id":
			if id, err := uuid.Parse(f.value); err == nil {
				s.AgentID = &id
			}
		default:
			loose = append(loose, f.key+": "+f.value)
		}
	}
	if s.Description == "" {
		s.Description = strings.Join(loose, " ")
	}
	if s.Name == "" {
		s.Name = "sub-agent"
	}
	return s
}

func modelHints(model string) jsontext.Value {
	text, err := json.Marshal(map[string]string{"primary_model": model})
	if err != nil {
		panic(err) // strings always encode
	}
	return text
}
