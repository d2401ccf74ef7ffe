package recall

import (
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/judge/hostile"
)

// hostileBudget is what one line of a block may take at most: 700 characters of
// four bytes, and its bracket.
const hostileBudget = 4*maxContent + 400

// TestHostileCorpusInABlock puts every text of the corpus into a block by every
// channel, as content and as a label, and holds the block to its form.
func TestHostileCorpusInABlock(t *testing.T) {
	cases := hostile.Load(t, "../../../testdata/hostile")
	runs, kept, words := 0, 0, 0
	for _, c := range cases {
		for _, channel := range hostile.Channels {
			labels, content := []string{"fact", string(channel), "2026-11-02"}, c.Text
			if channel == hostile.AgentName {
				labels, content = []string{"2026-11-02", c.Text}, "a quiet day"
			}
			handle := map[hostile.Channel]string{hostile.RecordValue: "REC-7", hostile.GraphLabel: "REC-8"}[channel]
			if handle == "" {
				handle = "MEM-7"
			}
			block, lines := frame([]string{formatLine("EVT-1", []string{"2026-11-01", "user"}, "a line before", same)})
			if line := formatLine(handle, labels, content, same); line != "" {
				block, lines = frame(append(lines, line))
			}
			checkBlock(t, block, lines, 2*hostileBudget)
			runs++
			if channel != c.Channel {
				continue
			}
			last := lines[len(lines)-1]
			if c.Expect.Recall == hostile.Line && len(lines) < 2 {
				t.Errorf("%s: nothing is left of it", c.ID)
				continue
			}
			if bad := c.Broken(strings.TrimPrefix(last, "["+handle+"] ")); len(bad) > 0 {
				t.Errorf("%s: %q stands in %q", c.ID, bad, last)
			}
			if c.Expect.Recall == hostile.Line {
				lost := c.Lost(last)
				words, kept = words+len(c.Expect.Keep), kept+len(c.Expect.Keep)-len(lost)
				if len(lost) > 0 {
					t.Logf("%s: %q is not readable in %q", c.ID, lost, last)
				}
			}
		}
	}
	t.Logf("%d texts, %d runs; %d of %d words kept (%.1f %%)", len(cases), runs, kept, words, 100*float64(kept)/float64(words))
	if float64(kept) < .98*float64(words) {
		t.Errorf("%d of %d words kept, want 98 %%", kept, words)
	}
}
