package alf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Overview is what an archive holds.
type Overview struct {
	OK          bool           `json:"ok"`
	Manifest    jsontext.Value `json:"manifest"`
	Records     int            `json:"memory_records"`
	Types       map[string]int `json:"memory_types"`
	Namespaces  map[string]int `json:"namespaces"`
	Statuses    map[string]int `json:"statuses"`
	Embeddings  int            `json:"records_with_embeddings"`
	RawFiles    []Entry        `json:"raw_files"`
	Artifacts   []Entry        `json:"artifacts"`
	Principals  []string       `json:"principals"`
	Credentials []string       `json:"credentials"`
	SubAgents   []string       `json:"sub_agents"`

	of Manifest
}

// Entry is a file of an archive.
type Entry struct {
	Path string `json:"path"`
	Size int64  `json:"size_bytes"`
}

// Show reads an archive and says what it holds.
func Show(r *Reader) (Overview, error) {
	manifest, err := line(r.manifest)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{OK: true, Manifest: manifest, of: r.manifest, Types: map[string]int{}, Namespaces: map[string]int{}, Statuses: map[string]int{},
		RawFiles: []Entry{}, Artifacts: []Entry{}, Principals: []string{}, Credentials: []string{}, SubAgents: []string{}}
	for rec, err := range r.Records() {
		if err != nil {
			return Overview{}, err
		}
		o.Records++
		o.Types[rec.MemoryType]++
		o.Namespaces[rec.Namespace]++
		o.Statuses[rec.Status]++
		if len(rec.Embeddings) > 0 {
			o.Embeddings++
		}
	}
	for _, f := range r.extra() {
		if path, raw := strings.CutPrefix(f.Path, rawPrefix); raw {
			o.RawFiles = append(o.RawFiles, Entry{path, f.Size})
		} else {
			o.Artifacts = append(o.Artifacts, Entry{f.Path, f.Size})
		}
	}
	return o, o.showLayers(r)
}

func (o *Overview) showLayers(r *Reader) error {
	id, err := r.Identity()
	if err != nil {
		return err
	}
	if id != nil && id.Structured != nil {
		for _, s := range id.Structured.SubAgents {
			o.SubAgents = append(o.SubAgents, s.Name)
		}
	}
	principals, err := r.Principals()
	if err != nil {
		return err
	}
	if principals != nil {
		for _, p := range principals.Principals {
			name := p.PrincipalType
			if p.Profile.Structured != nil && p.Profile.Structured.Name != "" {
				name = p.Profile.Structured.Name
			}
			o.Principals = append(o.Principals, name)
		}
	}
	credentials, err := r.Credentials()
	if err != nil || credentials == nil {
		return err
	}
	for _, c := range credentials.Credentials {
		o.Credentials = append(o.Credentials, c.Service+" ("+c.CredentialType+")")
	}
	return nil
}

// Text is the overview for a person.
func (o Overview) Text() string {
	var sb strings.Builder
	a := o.of.Agent
	fmt.Fprintf(&sb, "%s (%s), agent %s\n", a.Name, strings.TrimSpace(a.SourceRuntime+" "+a.SourceRuntimeVersion), a.ID)
	fmt.Fprintf(&sb, "  written %s, format %s\n", o.of.CreatedAt, o.of.ALFVersion)
	if s := o.of.Sync; s != nil {
		fmt.Fprintf(&sb, "  sequence %d\n", s.LastSequence)
	}
	fmt.Fprintf(&sb, "  records      %d\n", o.Records)
	for _, group := range []struct {
		name   string
		counts map[string]int
	}{{"types", o.Types}, {"namespaces", o.Namespaces}, {"statuses", o.Statuses}} {
		if len(group.counts) == 0 {
			continue
		}
		fmt.Fprintf(&sb, "  %-12s", group.name)
		for _, name := range slices.Sorted(maps.Keys(group.counts)) {
			fmt.Fprintf(&sb, " %s %d", name, group.counts[name])
		}
		sb.WriteString("\n")
	}
	if l := o.of.Layers.Identity; l != nil {
		fmt.Fprintf(&sb, "  identity     version %d\n", l.Version)
	}
	for _, list := range []struct {
		name  string
		names []string
	}{{"sub-agents", o.SubAgents}, {"principals", o.Principals}, {"credentials", o.Credentials}} {
		if len(list.names) > 0 {
			fmt.Fprintf(&sb, "  %-12s %s\n", list.name, strings.Join(list.names, ", "))
		}
	}
	fmt.Fprintf(&sb, "  raw files    %d\n  artifacts    %d\n", len(o.RawFiles), len(o.Artifacts))
	return sb.String()
}
