package index

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// large writes a workspace of 50,000 sections, 23 MB in 1,000 files.
func large(b *testing.B) *rig {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 20_000)
	for i := range words {
		for range 3 + random.IntN(7) {
			words[i] += string(rune('a' + random.IntN(26)))
		}
	}
	word := func() string {
		return words[int(float64(len(words))*random.Float64()*random.Float64()*random.Float64())]
	}
	files := map[string]string{"MEMORY.md": "## Pilot\n\nThe pilot boards at the outer buoy.\n"}
	day := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	for f := range 1000 {
		var sb strings.Builder
		for s := range 50 {
			fmt.Fprintf(&sb, "## Session %d\n\n", s)
			for range 6 {
				for range 10 {
					sb.WriteString(word())
					sb.WriteByte(' ')
				}
				sb.WriteString("\n")
			}
			sb.WriteString("\n")
		}
		files["memory/"+day.AddDate(0, 0, f).Format(time.DateOnly)+".md"] = sb.String()
	}
	return newRig(b, files)
}

func BenchmarkIndexLarge(b *testing.B) {
	r := large(b)
	for b.Loop() {
		report, err := r.x.Sync(b.Context(), r.w, Change{Force: true})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(report.Chunks), "chunks")
	}
}

func BenchmarkUnchangedLarge(b *testing.B) {
	r := large(b)
	if _, err := r.x.Sync(b.Context(), r.w, Change{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.x.Sync(b.Context(), r.w, Change{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSearchLarge(b *testing.B) {
	for name, e := range map[string]Embedder{"words": nil, "hybrid": &bag{model: "m"}} {
		b.Run(name, func(b *testing.B) {
			r := large(b)
			r.x = r.index(e)
			if _, err := r.x.Sync(b.Context(), r.w, Change{}); err != nil {
				b.Fatal(err)
			}
			for _, asIs := range []bool{false, true} {
				b.Run(map[bool]string{false: "fresh", true: "as it is"}[asIs], func(b *testing.B) {
					for b.Loop() {
						if _, err := r.x.Search(b.Context(), r.w, Query{Query: "pilot boards outer buoy", AsIs: asIs}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
