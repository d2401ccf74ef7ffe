package erasure

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
)

const (
	anchorBytes = 8       // of a needle, by which it is looked up
	minNeedle   = 12      // bytes from which on a text is its own: shorter ones stand in texts that have nothing to do with it
	window      = 48      // most bytes of one needle
	maxNeedles  = 100_000 // an erasure of more text is looked for by its first parts
	scanBuffer  = 1 << 20
	maxStride   = 8
	maxAnchors  = 400_000 // so that a Finder needs no more than some 100 MB
)

// Needles cuts a text into the pieces that it is looked for by: each line in
// stretches of at most 48 bytes, at the ends of words; those below 12 bytes are
// left out. Of JSON it takes the strings alone: its punctuation and the names of
// its members stand in what has nothing to do with it. Times and ids are no text.
func Needles(text string) []string {
	if s := strings.TrimSpace(text); isJSON(s) {
		var out []string
		for _, value := range stringsOf(s) {
			out = append(out, Needles(value)...)
		}
		return out
	}
	if isName(strings.TrimSpace(text)) {
		return nil
	}
	var out []string
	for _, line := range strings.FieldsFunc(text, breaksLine) {
		for line = strings.TrimSpace(line); len(line) >= minNeedle; {
			n := cut(line)
			if piece := bare(line[:n]); piece != "" {
				out = append(out, piece)
			}
			rest := strings.TrimSpace(line[n:])
			if rest != "" && len(rest) < minNeedle {
				if piece := bare(end(line)); piece != "" {
					out = append(out, piece)
				}
			}
			line = rest
		}
	}
	return out
}

// breaksLine reports whether a needle ends at a rune: one that JSON may be written
// with or without an escape for, or with several.
func breaksLine(r rune) bool {
	return r < ' ' && r != '\t' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// edges are left off a needle's ends: in JSON they stand around any text, and would
// be found where it only ends like the needle.
const edges = "\" \t\r\\,:{}[]"

// bare is a piece without what stands around words, since that may be another where
// it is quoted; "" where too little is left of it.
func bare(piece string) string {
	piece = strings.Trim(piece, edges)
	words := strings.TrimFunc(piece, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })
	switch {
	case len(words) >= minNeedle:
		return words
	case len(piece) >= minNeedle:
		return piece
	}
	return ""
}

// end is the last stretch of a line, from the beginning of a word on.
func end(line string) string {
	from := max(0, len(line)-window)
	for from < len(line) && line[from]&0xC0 == 0x80 { // no rune is cut
		from++
	}
	if space := strings.IndexByte(line[from:len(line)-minNeedle], ' '); from > 0 && space >= 0 {
		from += space + 1
	}
	return line[from:]
}

// isJSON reports whether a text is JSON, or the beginning of some.
func isJSON(s string) bool {
	for _, begin := range []string{`{"`, `[{`, `["`} {
		if strings.HasPrefix(s, begin) {
			return true
		}
	}
	return (strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")) && json.Valid([]byte(s))
}

// stringsOf returns the strings of a JSON text, but for names of members; also of
// one that was cut short.
func stringsOf(text string) []string {
	var out []string
	for {
		start := strings.IndexByte(text, '"')
		if start < 0 {
			return out
		}
		text = text[start+1:]
		end := 0
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(text))
		value := text[:end]
		if plain := ""; json.Unmarshal([]byte(`"`+value+`"`), &plain) == nil {
			value = plain
		}
		text = strings.TrimLeft(text[min(end+1, len(text)):], " \t\r\n")
		if !strings.HasPrefix(text, ":") {
			out = append(out, value)
		}
	}
}

// isName reports whether a text is nothing but a time, or an id with a ULID.
func isName(s string) bool {
	if _, err := time.Parse(time.RFC3339, s); err == nil {
		return true
	}
	_, id, prefixed := strings.Cut(s, "_")
	if !prefixed {
		id = s
	}
	_, err := ulid.ParseStrict(strings.ToUpper(id))
	return err == nil
}

// cut returns the end of the first stretch of a line.
func cut(line string) int {
	if len(line) <= window {
		return len(line)
	}
	if space := strings.LastIndexByte(line[minNeedle:window], ' '); space >= 0 {
		return minNeedle + space
	}
	end := window
	for end > minNeedle && line[end]&0xC0 == 0x80 { // no rune is cut
		end--
	}
	return end
}

// Finder finds any of many texts in bytes, as they are, as JSON writes them, and
// either of these as base64, with percent signs or as UTF-16. It is safe for
// concurrent use.
//
// It looks at every stride-th place alone: as many stretches of a needle that
// follow each other are its anchors, so that one of them stands at such a place.
type Finder struct {
	filter  []uint64 // a bit for each hash of an anchor
	shift   uint
	stride  int
	anchors map[uint64][]place
	fold    [][]byte // lower-case forms of the text that is found whatever its case
	longest int
	least   int // bytes of the shortest form
	// longFold tells that all forms of fold are as long as an anchor.
	longFold bool
}

// place is a needle and where an anchor stands in it.
type place struct {
	form   []byte
	at     int
	needle int
	whole  bool
}

// NewFinder returns a finder of texts, each at least 8 bytes long (shorter ones
// are left out), and of fold, which is found whatever its case; "" for none.
func NewFinder(texts []string, fold string) *Finder { return newFinder(texts, nil, fold) }

// newFinder is NewFinder with ids too, behind the texts: an id is found where it is
// not part of a longer one.
func newFinder(texts, ids []string, fold string) *Finder {
	f := &Finder{anchors: map[uint64][]place{}, longest: anchorBytes, stride: maxStride, least: window}
	var places []place
	for i, text := range slices.Concat(texts, ids) {
		for _, form := range forms(text) {
			if len(form) < anchorBytes {
				continue
			}
			places = append(places, place{form: form, needle: i, whole: i >= len(texts)})
			f.stride = min(f.stride, len(form)-anchorBytes+1)
			f.longest = max(f.longest, len(form))
			f.least = min(f.least, len(form))
		}
	}
	f.stride = max(1, min(f.stride, maxAnchors/max(1, len(places))))
	for _, p := range places {
		p.at = f.anchorsOf(p.form)
		for range f.stride {
			key := binary.LittleEndian.Uint64(p.form[p.at:])
			f.anchors[key] = append(f.anchors[key], p)
			p.at++
		}
	}
	bits := uint(16)
	for 1<<bits < 32*len(f.anchors) && bits < 26 {
		bits++
	}
	f.shift, f.filter = 64-bits, make([]uint64, 1<<bits/64)
	for key := range f.anchors {
		h := f.hash(key)
		f.filter[h/64] |= 1 << (h % 64)
	}
	f.longFold = len(fold) >= anchorBytes
	if fold != "" {
		for _, form := range forms(strings.ToLower(fold)) {
			f.fold = append(f.fold, lower(form))
			f.longest = max(f.longest, len(form))
			f.least = min(f.least, len(form))
		}
	}
	return f
}

// anchorsOf chooses where the anchors of a needle begin: so that no more needles
// than must be share one.
func (f *Finder) anchorsOf(form []byte) (at int) {
	fewest := -1
	for i := 0; i+anchorBytes+f.stride-1 <= len(form); i++ {
		most := 0
		for j := i; j < i+f.stride; j++ {
			most = max(most, len(f.anchors[binary.LittleEndian.Uint64(form[j:])]))
		}
		if fewest < 0 || most < fewest {
			at, fewest = i, most
		}
		if most == 0 {
			break
		}
	}
	return at
}

// hash is Fibonacci hashing: the high bits of a product with 2^64 over the golden
// ratio.
func (f *Finder) hash(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> f.shift }

// forms returns the bytes that a text is written as: itself; in JSON with and
// without the escapes for HTML; in JSON within JSON; and as UTF-16 where that must be
// looked for.
func forms(text string) [][]byte {
	out := [][]byte{[]byte(text)}
	add := func(form []byte) {
		if !slices.ContainsFunc(out, func(have []byte) bool { return bytes.Equal(have, form) }) {
			out = append(out, form)
		}
	}
	for _, html := range []bool{false, true} {
		once := quoted(text, html)
		add(once)
		add(quoted(string(once), html))
	}
	return append(out, wide(text)...)
}

// quoted returns a text as it stands between the quotes of a JSON string.
func quoted(text string, html bool) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(text); err != nil {
		return []byte(text) // a string always encodes
	}
	return bytes.Trim(bytes.TrimSpace(buf.Bytes()), `"`)
}

// Span is a range of bytes in which a needle stands; Needle is its index, -1 for
// the text that is found whatever its case.
type Span struct {
	Start, End, Needle int
	Coded              bool // as base64, with percent signs or as UTF-16
}

// Find hands over where needles stand in b, in no particular order, until visit
// returns false.
func (f *Finder) Find(b []byte, visit func(Span) bool) {
	if f.Empty() || !f.find(b, true, visit) {
		return
	}
	// What is shorter than an anchor is not looked for in codes: it would be found in
	// what only looks like one.
	var seen map[Span]bool // some codes can be read in two ways, of which both say the same
	unveil(b, max(f.least, anchorBytes), func(s stretch) bool {
		return f.find(s.text, f.longFold, func(at Span) bool {
			from, to := s.span(at.Start, at.End)
			coded := Span{from, to, at.Needle, true}
			if seen[coded] || bytes.Equal(b[from:to], s.text[at.Start:at.End]) { // that was found as it is
				return true
			}
			if seen == nil {
				seen = map[Span]bool{}
			}
			seen[coded] = true
			return visit(coded)
		})
	})
}

// find is Find in what is not written in a code, with or without what is found
// whatever its case. It reports whether to go on.
func (f *Finder) find(b []byte, fold bool, visit func(Span) bool) bool {
	if len(f.anchors) > 0 {
		for i := 0; i+anchorBytes <= len(b); i += f.stride {
			key := binary.LittleEndian.Uint64(b[i:])
			h := f.hash(key)
			if f.filter[h/64]&(1<<(h%64)) != 0 && !f.at(b, i, key, visit) {
				return false
			}
		}
	}
	if len(f.fold) == 0 || !fold {
		return true
	}
	folded := lower(b)
	for _, form := range f.fold {
		for at := 0; ; {
			i := bytes.Index(folded[at:], form)
			if i < 0 {
				break
			}
			if !visit(Span{at + i, at + i + len(form), -1, false}) {
				return false
			}
			at += i + len(form)
		}
	}
	return true
}

// at hands over the needles whose anchor stands at b[i:].
func (f *Finder) at(b []byte, i int, key uint64, visit func(Span) bool) bool {
	for _, p := range f.anchors[key] {
		start := i - p.at
		if start >= 0 && start+len(p.form) <= len(b) && bytes.Equal(b[start:start+len(p.form)], p.form) &&
			!(p.whole && (start > 0 && inID(b[start-1]) || start+len(p.form) < len(b) && inID(b[start+len(p.form)]))) &&
			!visit(Span{start, start + len(p.form), p.needle, false}) {
			return false
		}
	}
	return true
}

// inID reports whether ids hold such a byte.
func inID(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// lower returns b in lower case. A letter whose lower case is written in more or
// fewer bytes stays, so that places in both are the same.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i := 0; i < len(out); {
		c := out[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				out[i] = c + 'a' - 'A'
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(out[i:])
		if l := unicode.ToLower(r); r != utf8.RuneError && utf8.RuneLen(l) == size {
			utf8.EncodeRune(out[i:], l)
		}
		i += size
	}
	return out
}

// In reports whether any needle stands in b.
func (f *Finder) In(b []byte) bool {
	found := false
	f.Find(b, func(Span) bool { found = true; return false })
	return found
}

// Empty reports whether f looks for nothing.
func (f *Finder) Empty() bool { return len(f.anchors) == 0 && len(f.fold) == 0 }

// Places is how often needles stand in a file.
type Places struct {
	Count int64
	Coded int64 // of them, written in a code
	First int64 // offset of the first
}

// Add takes the places of another part of the same file.
func (p *Places) Add(more Places) {
	if more.Count > 0 && (p.Count == 0 || more.First < p.First) {
		p.First = more.First
	}
	p.Count, p.Coded = p.Count+more.Count, p.Coded+more.Coded
}

// Count returns how often needles stand in what r holds. It needs memory for a
// buffer, whatever the length.
func (f *Finder) Count(r io.Reader) (Places, error) { return f.count(r, 0, 0, math.MaxInt64) }

// CountIn returns how often needles stand in r so that they end behind from, and at
// to or before. Ranges next to each other count each needle once.
func (f *Finder) CountIn(r io.ReaderAt, from, to int64) (Places, error) {
	lead := min(from, int64(f.reach()))
	p, err := f.count(io.NewSectionReader(r, from-lead, lead+to-from+1), from-lead, lead, lead+to-from)
	return p, err
}

// reach is the most bytes that a needle takes in any code, with the byte before: it
// tells whether an id begins there.
func (f *Finder) reach() int { return 6*f.longest + 1 }

// count counts the needles that end behind seen, and at limit or before, where r
// begins at an offset of the file.
func (f *Finder) count(r io.Reader, offset, seen, limit int64) (p Places, err error) {
	keep := f.reach()
	buf := make([]byte, scanBuffer+keep)
	base, kept := int64(0), 0 // where buf stands, and how much of it was there before
	for {
		got, err := io.ReadFull(r, buf[kept:])
		end := kept + got
		upTo := base + int64(end)
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if !last {
			upTo-- // the byte behind tells whether an id ends there
		}
		f.Find(buf[:end], func(s Span) bool {
			if at := base + int64(s.End); at > seen && at <= min(upTo, limit) {
				one := Places{Count: 1, First: offset + base + int64(s.Start)}
				if s.Coded {
					one.Coded = 1
				}
				p.Add(one)
			}
			return true
		})
		if last {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		seen = max(seen, upTo)
		kept = copy(buf, buf[end-keep:end])
		base += int64(end - kept)
	}
}
