package recall

import (
	"fmt"
	"strings"
)

// Text shows the block to a person, and how it came about in a line.
func (r RecallResult) Text() string {
	var sb strings.Builder
	sb.WriteString(r.Block.Text)
	if r.Block.Text == "" {
		sb.WriteString("(nothing relevant enough)")
	}
	sb.WriteString("\n")
	in := 0
	for _, c := range r.Trace.Candidates {
		if c.In {
			in++
		}
	}
	fmt.Fprintf(&sb, "%d of %d candidates, relevance %.2f of %.2f needed; --json shows why each is in or out\n", in, len(r.Trace.Candidates), r.Trace.Relevance, r.Trace.Threshold)
	if r.Degraded != "" {
		fmt.Fprintf(&sb, "not everything was asked: %s\n", r.Degraded)
	}
	return sb.String()
}

// Text shows the results to a person, one a line.
func (r Result) Text() string {
	var sb strings.Builder
	for _, it := range r.Items {
		sb.WriteString(it.Line() + "\n")
	}
	for _, e := range r.Episodes {
		sb.WriteString(e.Line() + "\n")
	}
	if sb.Len() == 0 {
		return "nothing found; --scope all looks at what was said and at archived memories too\n"
	}
	return sb.String()
}
