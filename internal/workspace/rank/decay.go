package rank

import (
	"math"
	"regexp"
	"strings"
	"time"
)

var (
	datedBelow = regexp.MustCompile(`(?:^|/)memory/(?:[^/]+/)*(\d{4}-\d{2}-\d{2})\.md$`)
	datedIn    = regexp.MustCompile(`(?:^|/)memory/(\d{4}-\d{2}-\d{2})\.md$`)
)

// Decay returns what a score is multiplied with: ½ for each half-life that the
// file is old, 1 for an evergreen file. A daily log is as old as its name says;
// its day begins at midnight UTC. MEMORY.md and what else lies under memory/ is
// evergreen. All other files are as old as their last change; the zero time is
// an age that nobody knows, and counts as none. Files of the future have age 0.
func (e Era) Decay(path, source string, changed, now time.Time, halfLifeDays int) float64 {
	from, ages := e.dateOf(path, source, changed)
	if !ages {
		return 1
	}
	days := max(0, now.Sub(from).Hours()/24)
	return math.Exp(-math.Ln2 / float64(max(1, halfLifeDays)) * days)
}

// dateOf returns since when a file ages, if it does.
func (e Era) dateOf(path, source string, changed time.Time) (from time.Time, ages bool) {
	path = strings.TrimPrefix(strings.ReplaceAll(path, `\`, "/"), "./")
	dated := datedBelow
	if e == Seed {
		dated = datedIn
	}
	name := dated.FindStringSubmatch(path)
	if name != nil {
		if day, err := time.Parse(time.DateOnly, name[1]); err == nil {
			return day, true
		}
	}
	inMemory := path == "MEMORY.md" || path == "memory.md" || strings.HasPrefix(path, "memory/")
	if source == SourceMemory && inMemory && name == nil {
		return time.Time{}, false
	}
	return changed, !changed.IsZero()
}
