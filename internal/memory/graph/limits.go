package graph

import (
	"math"
	"strconv"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Limits bound what a store reads and answers. For the counts 0 means no
// bound. None of them ever makes a store lose data: what it does not read it
// keeps, or it refuses to open the file.
type Limits struct {
	FileBytes     int64 // a larger file is refused, and a change that would make it larger
	Nodes         int   // rows of nodes read from a file; the others stay in it unseen, and no node can be added
	ExportNodes   int   // nodes of an export: the newest
	ExportEdges   int   // edges of an export
	PersonaTraits int   // traits of persona_load: the strongest
	BundleBytes   int64 // a larger bundle is not loaded
	JournalFrom   int64 // bytes of the file from which on changes go to the journal
}

// DefaultLimits are the contract's.
var defaultLimits = Limits{
	FileBytes:     150 << 20,
	Nodes:         120_000,
	ExportNodes:   50_000,
	ExportEdges:   250_000,
	PersonaTraits: 20_000,
	BundleBytes:   80 << 20,
	JournalFrom:   1 << 20,
}

// LimitsFrom reads the limits from the contract's environment variables, and
// takes its defaults for those that are not set or make no sense. For the
// counts 0, none, unlimited, off, false and negative numbers mean no bound.
func LimitsFrom(getenv func(string) string) Limits {
	l := defaultLimits
	l.FileBytes = positive(getenv("AINL_GRAPH_MEMORY_MAX_JSON_BYTES"), l.FileBytes)
	l.BundleBytes = positive(getenv("AINL_BUNDLE_MAX_FILE_BYTES"), l.BundleBytes)
	l.Nodes = count(getenv("AINL_GRAPH_MEMORY_MAX_NODES"), l.Nodes)
	l.ExportNodes = count(getenv("AINL_GRAPH_EXPORT_MAX_NODES"), l.ExportNodes)
	l.ExportEdges = count(getenv("AINL_GRAPH_EXPORT_MAX_EDGES"), l.ExportEdges)
	l.PersonaTraits = count(getenv("AINL_GRAPH_MEMORY_MAX_PERSONA_TRAITS"), l.PersonaTraits)
	return l
}

func positive(text string, otherwise int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 {
		return otherwise
	}
	return n
}

func count(text string, otherwise int) int {
	text = strings.ToLower(strings.TrimSpace(text))
	switch text {
	case "none", "unlimited", "off", "false":
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return otherwise
	}
	return int(min(max(n, 0), math.MaxInt32))
}

// fits reports whether n things are within a bound.
func fits(n, bound int) bool { return bound == 0 || n <= bound }

// tooLarge refuses a file of so many bytes.
func (l Limits) tooLarge(path string, size int64) error {
	if size <= l.FileBytes {
		return nil
	}
	return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the graph in %s would have %d bytes, the most are %d", path, size, l.FileBytes),
		"set AINL_GRAPH_MEMORY_MAX_JSON_BYTES to more; the file stays as it is")
}
