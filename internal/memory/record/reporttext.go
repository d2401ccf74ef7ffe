package record

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type counted struct {
	name string
	n    int64
}

// mostFirst orders counts from the highest; equal ones by name.
func mostFirst(counts map[string]int64) []counted {
	var list []counted
	for name, n := range counts {
		list = append(list, counted{name, n})
	}
	slices.SortFunc(list, func(a, b counted) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	return list
}

// Text is the report for people, under the headings of the runbook in
// docs/RECORDS.md.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Records in %s\n", r.DBPath)
	if r.NamespaceFilter != nil {
		fmt.Fprintf(&b, "  only namespace %s\n", *r.NamespaceFilter)
	}
	if r.KindFilter != nil {
		fmt.Fprintf(&b, "  only kind %s\n", *r.KindFilter)
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "  %s\n", r.Error)
	}
	fmt.Fprintf(&b, "\nOverall totals\n  %-28s %d\n  %-28s %d\n  %-28s %d\n", "records", r.Summary.Total, "with ttl", r.Coverage.With, "without ttl", r.Coverage.Without)
	for _, name := range ageNames {
		if n := r.Ages[name]; n > 0 {
			fmt.Fprintf(&b, "  %-28s %d\n", "changed "+strings.ReplaceAll(name, "_", " "), n)
		}
	}
	if r.DuplicatesAside > 0 {
		fmt.Fprintf(&b, "  %-28s %d\n", "duplicates set aside", r.DuplicatesAside)
	}
	b.WriteString("\nBy namespace / by record kind\n")
	for _, c := range r.ByNamespace {
		fmt.Fprintf(&b, "  %-28s %d\n", c.Namespace, c.Count)
	}
	for _, c := range r.ByKind {
		fmt.Fprintf(&b, "  %-28s %d\n", c.Kind, c.Count)
	}
	b.WriteString("\nTTL coverage\n")
	writeCoverage(&b, r.CoverageDetail.ByNamespace)
	writeCoverage(&b, r.CoverageDetail.ByKind)
	fmt.Fprintf(&b, "\nExpired but still present\n  %-28s %d\n", "records", r.ExpiredCount)
	for _, e := range r.ExpiredSample {
		fmt.Fprintf(&b, "  %s %s %s, created %s, ttl %d s\n", e.Namespace, e.Kind, e.ID, e.CreatedAt, e.TTLSeconds)
	}
	window := "24h"
	if r.Soon != DefaultSoon {
		window = fmt.Sprintf("%d s", r.Soon)
	}
	fmt.Fprintf(&b, "\nExpiring within %s\n  %-28s %d\n", window, "records", r.SoonCount)
	for _, e := range r.ExpiringSoon {
		fmt.Fprintf(&b, "  %s %s %s, at %s UTC\n", e.Namespace, e.Kind, e.ID, e.ExpiresAt)
	}
	return b.String()
}

func writeCoverage(b *strings.Builder, by map[string]TTLCoverage) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		c := by[name]
		fmt.Fprintf(b, "  %-28s %d of %d have a ttl\n", name, c.With, c.With+c.Without)
	}
}
