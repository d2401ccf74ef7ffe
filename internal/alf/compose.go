package alf

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// FileOf returns the workspace file that a record belongs to: where it was cut
// from, else one by its namespace and day. The path is not checked where the
// record names it.
func (r *Record) FileOf() string {
	switch {
	case r.Namespace == "curated" && (r.Source.OriginFile == "" || r.Source.Runtime != "zeroclaw"):
		return "MEMORY.md"
	case r.Source.OriginFile != "":
		return r.Source.OriginFile
	case r.Namespace == "daily":
		day := r.Temporal.ObservedAt
		if day.IsZero() {
			day = r.Temporal.CreatedAt
		}
		return "memory/" + day.UTC().Format(time.DateOnly) + ".md"
	}
	return "memory/" + FileName(r.Namespace) + ".md"
}

// Live reports whether the record should stand in a workspace: a deleted one and
// one that another took the place of should not.
func (r *Record) Live() bool { return r.Status != Deleted && r.Status != Superseded }

// Section is what Compose needs of a record.
type Section struct {
	Content    string
	Start, End int // lines in its file; 0 where not known
}

// SectionOf returns what Compose needs of r.
func SectionOf(r *Record) Section {
	l, _ := r.Lines()
	return Section{r.Content, l.Start, l.End}
}

// Compose puts the sections of one Markdown file together in the order of their
// lines. Sections that were cut from neighbouring lines come out as they stood;
// others are kept apart by a blank line. A text that is not empty ends with a
// line break.
func Compose(sections []Section) string {
	sections = slices.Clone(sections)
	slices.SortStableFunc(sections, func(a, b Section) int { return cmp.Compare(a.Start, b.Start) })
	var sb strings.Builder
	for i, s := range sections {
		if i > 0 {
			sb.WriteString("\n")
			before := sections[i-1]
			neighbours := before.End > 0 && s.Start == before.End+1
			if !neighbours && !strings.HasSuffix(before.Content, "\n") {
				sb.WriteString("\n")
			}
		}
		sb.WriteString(s.Content)
	}
	if sb.Len() > 0 && !strings.HasSuffix(sb.String(), "\n") {
		sb.WriteString("\n")
	}
	return sb.String()
}

// IdentityFiles returns the workspace files that an identity stands in, by path.
func IdentityFiles(id *Identity) map[string]string {
	out := map[string]string{}
	if id == nil {
		return out
	}
	if p := id.Prose; p != nil {
		put(out, "SOUL.md", p.Soul)
		put(out, "IDENTITY.md", p.IdentityProfile)
		put(out, "AGENTS.md", p.OperatingInstructions)
		return out
	}
	if s := id.Structured; s != nil {
		name, role := "Agent", "AI Assistant"
		if s.Names != nil && s.Names.Primary != "" {
			name = s.Names.Primary
		}
		if s.Role != "" {
			role = s.Role
		}
		out["SOUL.md"] = "# " + name + "\n\n" + role + "\n"
	}
	return out
}

// PrincipalFiles returns the workspace files that the first principal stands in,
// by path.
func PrincipalFiles(p *Principals) map[string]string {
	out := map[string]string{}
	if p == nil || len(p.Principals) == 0 {
		return out
	}
	profile := p.Principals[0].Profile
	if profile.Prose != nil {
		put(out, "USER.md", profile.Prose.UserProfile)
		return out
	}
	if s := profile.Structured; s != nil {
		name := s.Name
		if name == "" {
			name = "User"
		}
		text := "# " + name + "\n"
		if s.Timezone != "" {
			text += "\n## Timezone\n\n" + s.Timezone + "\n"
		}
		out["USER.md"] = text
	}
	return out
}

func put(files map[string]string, path, text string) {
	if text != "" {
		files[path] = text
	}
}
