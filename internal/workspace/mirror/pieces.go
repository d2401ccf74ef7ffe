package mirror

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// piece is one section of a workspace file, as memory takes it.
type piece struct {
	record  workspace.Record
	text    string // of the record, trimmed
	sum     string // of text without secrets: what is compared
	content string // the sum of the record's content without secrets
	heading string // the beginning of the heading's sum
}

// piecesOf cuts a file. Sections that say nothing but what was written from here
// are left out.
func piecesOf(f workspace.File, text string, red redactor, notice func(workspace.Notice)) []piece {
	var out []piece
	for r := range workspace.RecordsOf(f, workspace.WithoutOwn(text), workspace.SplitClient, notice) {
		p := piece{record: r, text: plain(r.Content)}
		if p.text == "" || r.Heading != nil && strings.TrimSpace(strings.TrimPrefix(p.text, "## ")) == "" {
			continue
		}
		clean := red.Text(r.Content)
		p.sum, p.content = sumOf(plain(clean)), sumOf(clean)
		if r.Heading != nil {
			p.heading = sumOf(red.Text(*r.Heading))[:12]
		}
		out = append(out, p)
	}
	return out
}

// plain takes out of a text what no item may hold.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == utf8.RuneError || r == '\ufeff':
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}

// isDaily reports whether the piece is of a daily log: it becomes an event.
func (p piece) isDaily() bool { return p.record.Namespace == workspace.Daily }

// title is the section's heading, or the name of its file.
func (p piece) title() string {
	if p.record.Heading != nil {
		if t := plain(untagged(*p.record.Heading)); t != "" {
			return t
		}
	}
	return strings.TrimSuffix(path.Base(p.record.OriginFile), ".md")
}

var tagPattern = regexp.MustCompile(`\[([^\[\]|\s]+)\|i=([0-9.]+)\]\s*`)

func untagged(line string) string { return tagPattern.ReplaceAllString(line, "") }

// body is what an item says: the heading, and below it the section.
func (p piece) body() string {
	text := p.text
	if p.record.Heading == nil {
		return text
	}
	_, rest, _ := strings.Cut(text, "\n")
	if rest = strings.TrimSpace(rest); rest == "" {
		return p.title()
	}
	return p.title() + "\n" + rest
}

// until is when what was noted at a time with that importance is no longer kept;
// nil for never.
func until(noted time.Time, importance *float64) *time.Time {
	if importance == nil {
		return nil
	}
	length, ends := memory.TierOf(*importance).Lasts()
	if !ends {
		return nil
	}
	end := noted.Add(length).UTC().Truncate(time.Millisecond)
	return &end
}

// importanceOf turns the importance of a tag into that of an item.
func importanceOf(score *float64, namespace string) int {
	switch {
	case score == nil && namespace == workspace.Curated:
		return 4
	case score == nil:
		return 3
	}
	return memory.Importance(*score)
}

// kindOf chooses the kind of an item: by its tag, else by its file.
func kindOf(category, namespace string) string {
	tag := strings.ToLower(category)
	switch {
	case tag == "milestone":
		return memory.KindEvent
	case slices.Contains(memory.ItemKinds, tag):
		return tag
	case namespace == workspace.Project:
		return memory.KindProject
	case namespace == workspace.Procedural:
		return memory.KindPolicy
	}
	return memory.KindNote
}

// provenanceKey names the member of an item's metadata that says where it is from.
const provenanceKey = "workspace"

// provenance is the metadata of an item: where it stands in the workspace.
func provenance(r workspace.Record, sum string, start, end int) map[string]any {
	return map[string]any{provenanceKey: map[string]any{"file": r.OriginFile, "line_start": start, "line_end": end, "sha256": sum, "record_id": r.ID.String()}}
}

// itemID is the id of something that a workspace says. It follows from what is
// said, by its sum, so that sections that say the same share an item.
func itemID(ws, sum string, where any) string {
	return "mem_" + sumOf(fmt.Sprintf("%q %s %v", ws, sum, where))[:26]
}

// itemsOf makes the items of a section that is not of a daily log. One that is too
// long for an item becomes several.
func (p piece) itemsOf(ws string) []memory.Item {
	parts := cutText(p.body(), memory.MaxContent-64) // secrets may become longer tags
	out := make([]memory.Item, len(parts))
	for i, text := range parts {
		title := p.title()
		if len(parts) > 1 {
			suffix := fmt.Sprintf(" (%d/%d)", i+1, len(parts))
			title = clip(title, memory.MaxTitle-40-len(suffix)) + suffix
		}
		out[i] = memory.Item{ID: itemID(ws, p.sum, i), Kind: kindOf(p.record.Category, p.record.Namespace), Title: clip(title, memory.MaxTitle-32),
			Content: text, Importance: importanceOf(p.record.Confidence, p.record.Namespace), Confidence: .8, Status: memory.Active, Trust: memory.TrustImport,
			ValidTo: until(p.record.CreatedAt, p.record.Confidence), Metadata: provenance(p.record, p.content, p.record.LineStart, p.record.LineEnd)}
		if p.record.Namespace == workspace.Curated {
			out[i].Confidence = .9
		}
	}
	return out
}

// observations makes the items of the tagged lines of a daily section, which rest
// on its event. A line that is there again, or in another section of the day, is
// the same item.
func (p piece) observations(ws string, red redactor) []memory.Item {
	var out []memory.Item
	seen := map[string]bool{}
	day := p.record.CreatedAt.UTC().Format(time.DateOnly)
	for n, line := range strings.Split(p.record.Content, "\n") {
		tag := tagPattern.FindStringSubmatch(line)
		text := plain(strings.TrimLeft(strings.TrimSpace(untagged(line)), "#-*+> "))
		if tag == nil || text == "" {
			continue
		}
		score, err := strconv.ParseFloat(tag[2], 64)
		if err != nil || score > 1 {
			continue
		}
		text = clip(text, memory.MaxContent-64)
		sum := sumOf(red.Text(text))
		if seen[sum] {
			continue
		}
		seen[sum] = true
		at := p.record.LineStart + n
		out = append(out, memory.Item{ID: itemID(ws, sum, day), Kind: kindOf(tag[1], p.record.Namespace), Title: clip(cmp.Or(firstSentence(text), text), 80),
			Content: text, Importance: importanceOf(&score, p.record.Namespace), Confidence: .8, Status: memory.Active, Trust: memory.TrustImport,
			ValidFrom: p.record.ObservedAt, ValidTo: until(p.record.CreatedAt, &score), Metadata: provenance(p.record, sum, at, at),
			Evidence: []memory.Evidence{{Quote: clip(plain(line), 1000)}}})
	}
	return out
}

func firstSentence(text string) string {
	if end := strings.IndexAny(text, ".!?;"); end > 0 {
		return text[:end]
	}
	return text
}

// clip shortens a text to so many bytes, at a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.TrimSpace(text[:most])
}

// cutText cuts a text into parts of at most so many bytes, at line breaks or spaces
// where it can.
func cutText(text string, most int) []string {
	var out []string
	for len(text) > most {
		end := strings.LastIndexByte(text[:most], '\n')
		if end < most/2 {
			end = strings.LastIndexByte(text[:most], ' ')
		}
		if end < most/2 {
			end = len(clip(text, most))
		}
		if part := strings.TrimSpace(text[:end]); part != "" {
			out = append(out, part)
		}
		text = strings.TrimSpace(text[end:])
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}

var clock = regexp.MustCompile(`\b([0-9]{1,2}):([0-9]{2})(?:\s*([AaPp])\.?[Mm])?\b`)

// moment is when a section of a daily log was written: at the time of day that its
// heading tells, else at the day's beginning.
func (p piece) moment() time.Time {
	day := p.record.CreatedAt
	if p.record.Heading == nil {
		return day
	}
	found := clock.FindStringSubmatch(*p.record.Heading)
	if found == nil {
		return day
	}
	hour, _ := strconv.Atoi(found[1])   // of digits
	minute, _ := strconv.Atoi(found[2]) // of digits
	switch half := strings.ToLower(found[3]); {
	case hour > 23 || minute > 59, half != "" && (hour < 1 || hour > 12):
		return day
	case half == "p" && hour < 12:
		hour += 12
	case half == "a" && hour == 12:
		hour = 0
	}
	return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}
