package erasure

import (
	"bytes"
	"slices"
)

// Mark stands where something was erased.
const Mark = "[erased]"

// Blot returns b with every line in which a needle stands replaced by Mark. In
// JSON a line is what stands between the quotes of a string or two escaped line
// breaks, so that JSON stays JSON. n counts the lines; b itself is not changed.
func (f *Finder) Blot(b []byte, isJSON bool) (out []byte, n int) {
	var spans []Span
	f.Find(b, func(s Span) bool {
		spans = append(spans, s)
		return true
	})
	return blot(b, spans, isJSON)
}

// Blot is that of t's Finder, and also takes the lines of recall blocks that begin
// with the handle of what goes, or with that of a memory that is cleaned and have its note.
func (t *Target) Blot(b []byte, isJSON bool) (out []byte, n int) {
	out, n = t.finder.Blot(b, isJSON)
	var spans []Span
	for i := range out {
		if out[i] != '[' {
			continue
		}
		end := bytes.IndexByte(out[i:min(i+handleBytes, len(out))], ']')
		if end < 0 {
			continue
		}
		handle := out[i+1 : i+end]
		if t.handles[string(handle)] || t.heirs[string(handle)] && hasNote(out[i:lineEnd(out, i, isJSON)]) {
			spans = append(spans, Span{Start: i, End: i + end})
		}
	}
	out, more := blot(out, spans, isJSON)
	return out, n + more
}

// handleBytes is the most bytes of a handle in brackets.
const handleBytes = 32

// blot replaces the lines in which spans lie.
func blot(b []byte, spans []Span, isJSON bool) (out []byte, n int) {
	if len(spans) == 0 {
		return b, 0
	}
	for i, s := range spans {
		spans[i] = Span{Start: lineStart(b, s.Start, isJSON), End: lineEnd(b, s.End, isJSON)}
	}
	slices.SortFunc(spans, func(x, y Span) int { return x.Start - y.Start })
	at := 0
	for _, s := range spans {
		if s.Start < at {
			if s.End > at {
				at = s.End
			}
			continue
		}
		out = append(append(out, b[at:s.Start]...), Mark...)
		at, n = s.End, n+1
	}
	return append(out, b[at:]...), n
}

func lineStart(b []byte, i int, isJSON bool) int {
	for ; i > 0; i-- {
		if b[i-1] == '\n' || isJSON && (ends(b, i-1) || i >= 2 && b[i-1] == 'n' && escapes(b, i-2)) {
			break
		}
	}
	return i
}

func lineEnd(b []byte, i int, isJSON bool) int {
	for ; i < len(b); i++ {
		if b[i] == '\n' || isJSON && (ends(b, i) || b[i] == '\\' && i+1 < len(b) && b[i+1] == 'n' && escapes(b, i)) {
			break
		}
	}
	return i
}

// ends reports whether a quote that is not escaped stands at i.
func ends(b []byte, i int) bool {
	return b[i] == '"' && (i == 0 || !escapes(b, i-1))
}

// escapes reports whether at i stands a backslash that escapes what follows.
func escapes(b []byte, i int) bool {
	n := 0
	for ; i >= 0 && b[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// BlotText is Blot for a text that is no JSON.
func (f *Finder) BlotText(s string) string {
	out, n := f.Blot([]byte(s), false)
	if n == 0 {
		return s
	}
	return string(bytes.ToValidUTF8(out, []byte("\uFFFD")))
}
