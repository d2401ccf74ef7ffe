// Package redact takes secrets and payment data out of texts and values before they are stored or shown.
//
// What is found is replaced by a tag such as [REDACTED:github#9f3c]. The four hexadecimal digits are the beginning of
// a keyed hash of the secret: the same secret always gets the same tag, two secrets get different ones, and nobody
// without the key can try out candidates.
//
// A text is scanned in linear time by hand-written readers, which an automaton calls where something begins that they know:
// the prefixes of issuers (vendor.go); names (names.go) with the values after them (value.go, string.go, list.go, table.go,
// keyed.go) and what makes a value a secret (judge.go) or none (allow.go); sentences in a dozen languages (prose.go, login.go,
// seed.go); headers, commands and settings (header.go, command.go, setting.go); keys in armor, addresses with passwords, tokens
// and hashes (armor.go, structure.go); numbers with check digits (number.go). What was encoded or escaped is decoded, two
// layers deep, and scanned again (decode.go, view.go). Randomness alone is never a reason: commits, digests and ids stay.
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// minKey is the least length in bytes of the key of New.
const minKey = 16

// Finding is one secret in a text: s[Start:End].
type Finding struct {
	Kind       string // what it is: lower-case letters, digits and underscores
	Start, End int    // byte offsets, on boundaries of runes
}

// Redactor finds and replaces secrets. It never changes after it was made, so any number of goroutines may use it.
type Redactor struct {
	key        []byte
	rules      *automaton
	vendorRows *[256][]int // rows of vendors by the first byte of their prefix
	known      *automaton  // exact values; nil if there are none
}

// New returns a Redactor whose tags hash with key, which has 16 bytes or more.
func New(key []byte) (*Redactor, error) {
	if len(key) < minKey {
		return nil, fmt.Errorf("redact: key has %d bytes, need %d or more", len(key), minKey)
	}
	rules, ok := theRules()
	if !ok {
		return nil, fmt.Errorf("redact: too many rules")
	}
	return &Redactor{key: slices.Clone(key), rules: rules, vendorRows: vendorsByByte()}, nil
}

// theRules builds the automaton of the rules, which is the same for every key, once: it
// takes longer than anything else that a process does before its work.
var theRules = sync.OnceValues(func() (*automaton, bool) { return newAutomaton(rulePatterns(), true) })

// minKnown is the least length in bytes of a value that WithKnown looks for.
const minKnown = 6

// WithKnown returns a Redactor that also finds these exact values wherever they stand, plain or as base64, in an address
// or in JSON. Values of fewer than 6 bytes are left out, since they would stand in ordinary text too.
// Earlier known values are replaced. Values beyond what the tables hold (some 32 kB) are left out, the last first.
func (r *Redactor) WithKnown(values []string) *Redactor {
	with := &Redactor{key: r.key, rules: r.rules, vendorRows: r.vendorRows}
	var patterns []pattern
	for _, v := range values {
		if len(v) < minKnown || !utf8.ValidString(v) {
			continue
		}
		for _, form := range encodedForms(v) {
			patterns = append(patterns, pattern{text: form, act: actKnown})
		}
	}
	for len(patterns) > 0 {
		if a, ok := newAutomaton(patterns, false); ok {
			with.known = a
			return with
		}
		patterns = patterns[:len(patterns)*3/4]
	}
	return with
}

const (
	maxRounds  = 4       // how often Text looks at what it wrote, until it finds nothing more
	maxChecked = 1 << 16 // texts above this size in bytes are looked at once
)

// Text returns s without its secrets, each replaced by its tag, and with invalid UTF-8 replaced by U+FFFD.
// It returns s itself if there is nothing to replace. Text of what Text returned changes nothing; up to 64 KiB this is
// checked, above it rests on the rules alone, to keep the speed.
func (r *Redactor) Text(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	for round := range maxRounds {
		if round > 0 && len(s) > maxChecked {
			break
		}
		found := r.Find(s)
		if len(found) == 0 {
			break
		}
		s = r.replace(s, found)
	}
	return s
}

// Find returns the secrets in s in order. They do not overlap, and tags that stand in s already are none.
func (r *Redactor) Find(s string) []Finding {
	found := r.scan(s, maxDepth)
	if len(found) == 0 {
		return nil
	}
	return merge(s, found)
}

// replace writes s with a tag in place of each finding.
func (r *Redactor) replace(s string, found []Finding) string {
	var b strings.Builder
	b.Grow(len(s) + len(found)*8)
	mac := hmac.New(sha256.New, r.key)
	last := 0
	for _, f := range found {
		b.WriteString(s[last:f.Start])
		writeTag(&b, mac, f.Kind, s[f.Start:f.End])
		last = f.End
	}
	b.WriteString(s[last:])
	return b.String()
}

const tagOpen = "[REDACTED:"

// tag answers what stands in place of a secret.
func (r *Redactor) tag(kind, secret string) string {
	var b strings.Builder
	writeTag(&b, hmac.New(sha256.New, r.key), kind, secret)
	return b.String()
}

// writeTag appends the tag of a secret to b, with mac as the keyed hash.
func writeTag(b *strings.Builder, mac hash.Hash, kind, secret string) {
	mac.Reset()
	mac.Write([]byte(secret)) // a hash never fails to write
	var sum [sha256.Size]byte
	var digits [4]byte
	hex.Encode(digits[:], mac.Sum(sum[:0])[:2])
	b.WriteString(tagOpen)
	b.WriteString(kind)
	b.WriteByte('#')
	b.Write(digits[:])
	b.WriteByte(']')
}

// tagEnd answers the end of the tag that begins at i, or 0 if there is none.
func tagEnd(s string, i int) int {
	if !strings.HasPrefix(s[i:], tagOpen) {
		return 0
	}
	kind := i + len(tagOpen)
	end := run(s, kind, charsWord, 32)
	if end == kind || len(s)-end < 6 || s[end] != '#' || s[end+5] != ']' {
		return 0
	}
	for _, c := range []byte(s[end+1 : end+5]) {
		if !isHex(c) {
			return 0
		}
	}
	return end + 6
}

// isTag tells whether v holds nothing but tags and what may stand between them.
func isTag(v string) bool {
	seen := false
	for i := 0; i < len(v); {
		if end := tagEnd(v, i); end > 0 {
			seen, i = true, end
			continue
		}
		if isAlnum(v[i]) || v[i] >= utf8.RuneSelf {
			return false
		}
		i++
	}
	return seen
}

// merge sorts findings, joins those that overlap, and keeps them off the tags that stand in s. The widest gives its kind.
func merge(s string, found []Finding) []Finding {
	slices.SortFunc(found, func(a, b Finding) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	merged := found[:0]
	for _, f := range found {
		if len(merged) == 0 || f.Start >= merged[len(merged)-1].End {
			merged = append(merged, f)
			continue
		}
		last := &merged[len(merged)-1]
		if f.End-f.Start > last.End-last.Start {
			last.Kind = f.Kind
		}
		last.End = max(last.End, f.End)
	}
	if !strings.Contains(s, tagOpen) {
		return merged
	}
	for i := range merged {
		merged[i] = offTags(s, merged[i])
	}
	return slices.DeleteFunc(merged, func(f Finding) bool { return f.Start >= f.End || isTag(s[f.Start:f.End]) })
}

const longestTag = 48

// offTags moves the ends of a finding that lie inside a tag to the outside.
func offTags(s string, f Finding) Finding {
	if from, to := tagAround(s, f.Start); to > 0 && from < f.Start {
		f.Start = to
	}
	if from, to := tagAround(s, f.End); to > f.End {
		f.End = from
	}
	return f
}

// tagAround answers the bounds of the tag that begins before i and ends after it, or zeros.
func tagAround(s string, i int) (int, int) {
	from := max(0, i-longestTag)
	if at := strings.LastIndex(s[from:i], tagOpen); at >= 0 {
		if end := tagEnd(s, from+at); end > i {
			return from + at, end
		}
	}
	for start := max(0, i-len(tagOpen)); start < i; start++ { // i lies in the opening itself
		if end := tagEnd(s, start); end > i {
			return start, end
		}
	}
	return 0, 0
}
