// Package rank is the arithmetic of OpenClaw's memory search: how the hits of
// words and of vectors become one list. It knows nothing of files or databases.
package rank

import (
	"math"
	"regexp"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Era says whose arithmetic counts.
type Era string

// The eras.
const (
	Seed  Era = "seed"  // OpenClaw of January and February 2026
	Later Era = "later" // of March 2026 and after
)

// ParseEra returns the era of that name; "" is Later.
func ParseEra(s string) (Era, error) {
	switch Era(s) {
	case "", Later:
		return Later, nil
	case Seed:
		return Seed, nil
	}
	return "", &memory.FieldError{Field: "scoring", Reason: "must be seed or later"}
}

// TextScore makes a score of a bm25 rank as SQLite's FTS5 gives it: below zero,
// and the lower the better. In the seed era every such rank scores 1 (OpenClaw's
// issue 5767).
func (e Era) TextScore(rank float64) float64 {
	switch {
	case math.IsNaN(rank) || math.IsInf(rank, 0):
		return 1.0 / 1000
	case rank >= 0:
		return 1 / (1 + rank)
	case e == Seed:
		return 1
	}
	return -rank / (1 - rank)
}

var (
	asciiWord = regexp.MustCompile(`[A-Za-z0-9_]+`)
	word      = regexp.MustCompile(`[\p{L}\p{N}_]+`)
	markWord  = regexp.MustCompile(`[\p{L}\p{M}\p{N}_]+`)
)

// Terms returns the words of a query that are looked for, in their order.
func (e Era) Terms(query string) []string {
	if e == Seed {
		return asciiWord.FindAllString(query, -1)
	}
	return word.FindAllString(query, -1)
}

// Expression writes terms as an FTS5 expression that wants all of them, or any.
// It is empty where there are none.
func Expression(terms []string, anyOf bool) string {
	if len(terms) == 0 {
		return ""
	}
	between := `" AND "`
	if anyOf {
		between = `" OR "`
	}
	return `"` + strings.Join(terms, between) + `"`
}

// tokens returns the words by which two texts are compared.
func (e Era) tokens(text string) []string {
	if e == Seed {
		return asciiWord.FindAllString(strings.ToLower(text), -1)
	}
	return markWord.FindAllString(cases.Lower(language.Und).String(norm.NFC.String(text)), -1)
}
