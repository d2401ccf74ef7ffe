package record

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Reserved members of a payload: where an imported envelope's provenance and
// flags are kept.
const (
	payloadProvenance = "_provenance"
	payloadFlags      = "_flags"
)

// What an exported envelope says where the record has nothing of its own. An
// import that finds exactly this stores nothing, so that a record survives an
// export and import unchanged.
const (
	defaultProvenance = `{"source_system":"ainl.memory","origin_uri":null,"authored_by":"bot","confidence":null}`
	defaultFlags      = `{"authoritative":false,"ephemeral":false,"curated":false}`
)

const progressStep = 1000 // records between two reports of progress

// maxLine bounds one line of a JSONL file, and so what is held in memory.
const maxLine = 64 << 20

// Envelope is the portable form of a record. Metadata is left out where the
// record has none.
type Envelope struct {
	Key
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	TTLSeconds *int64          `json:"ttl_seconds"`
	Payload    json.RawMessage `json:"payload"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Provenance json.RawMessage `json:"provenance"`
	Flags      json.RawMessage `json:"flags"`
}

// envelope lifts what the payload keeps for an import back to where it belongs.
func (r Record) envelope() (Envelope, error) {
	e := Envelope{Key: r.Key, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, TTLSeconds: r.TTLSeconds, Metadata: r.Metadata,
		Provenance: json.RawMessage(defaultProvenance), Flags: json.RawMessage(defaultFlags)}
	payload, err := parseObject("payload", r.Payload)
	if err != nil {
		return Envelope{}, memory.Errorf(memory.ErrCorrupt, "record %s %s %s: %w", r.Namespace, r.Kind, r.ID, err)
	}
	for _, lift := range []struct {
		name string
		to   *json.RawMessage
	}{{payloadProvenance, &e.Provenance}, {payloadFlags, &e.Flags}} {
		if kept, has := payload.get(lift.name); has && !isEmpty(kept) {
			*lift.to = kept
			payload = payload.without(lift.name)
		}
	}
	e.Payload = payload.raw()
	return e, nil
}

// isEmpty reports whether a compact JSON value is one of those that Python
// takes for false.
func isEmpty(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", "0.0", "-0", `""`, "[]", "{}":
		return true
	}
	return false
}

// Selection says what to export: records of any of the namespaces and of any of
// the kinds; an empty list means all.
type Selection struct {
	Namespaces []string `json:"namespaces,omitempty" jsonschema:"only these namespaces; all if absent"`
	Kinds      []string `json:"record_kinds,omitempty" jsonschema:"only these kinds; all if absent"`
}

// Export calls yield with each selected record, expired ones too, by namespace,
// kind and id, as they are at one moment. It reports progress.
func (s *Store) Export(ctx context.Context, sel Selection, yield func(Envelope) error) error {
	err := s.each(ctx, sel, -1, 0, func(r Record) error {
		e, err := r.envelope()
		if err != nil {
			return err
		}
		return yield(e)
	})
	if err != nil {
		return fmt.Errorf("export records: %w", err)
	}
	return nil
}

// each calls yield with the selected records in the order of their keys; a
// negative limit is none.
func (s *Store) each(ctx context.Context, sel Selection, limit, offset int, yield func(Record) error) error {
	for _, ns := range sel.Namespaces {
		if err := s.config.checkNamespace(ns); err != nil {
			return err
		}
	}
	if s.db == nil {
		return nil
	}
	namespaces, err := encode(append([]string{}, sel.Namespaces...))
	if err != nil {
		return err
	}
	kinds, err := encode(append([]string{}, sel.Kinds...))
	if err != nil {
		return err
	}
	return sqlite.Classify(s.db.View(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT "+recordColumns+` FROM memory_records
			WHERE (?1 = '[]' OR namespace IN (SELECT value FROM json_each(?1))) AND (?2 = '[]' OR record_kind IN (SELECT value FROM json_each(?2)))
			ORDER BY namespace, record_kind, record_id LIMIT ?3 OFFSET ?4`, string(namespaces), string(kinds), limit, offset)
		if err != nil {
			return err
		}
		defer rows.Close()
		for n := int64(1); rows.Next(); n++ {
			r, err := scanRecord(rows)
			if err != nil {
				return err
			}
			if err := yield(r); err != nil {
				return err
			}
			if n%progressStep == 0 {
				op.Report(ctx, op.Progress{Done: n, Unit: "records"})
			}
		}
		return rows.Err()
	}))
}

// WriteRecords exports to w: as JSONL, one compact object a line, or as one JSON
// array, indented and with sorted keys. It returns the number of records.
func (s *Store) WriteRecords(ctx context.Context, w io.Writer, sel Selection, lines bool) (int64, error) {
	out := bufio.NewWriter(w)
	var n int64
	err := s.Export(ctx, sel, func(e Envelope) error {
		text, err := encode(e)
		if err == nil && !lines {
			text, err = indented(text, n == 0)
		}
		if err != nil {
			return err
		}
		n++
		if lines {
			text = append(text, '\n')
		}
		_, err = out.Write(text)
		return err
	})
	if err != nil {
		return n, err
	}
	if !lines && n == 0 {
		_, err = out.WriteString("[]\n")
	} else if !lines {
		_, err = out.WriteString("\n]\n")
	}
	if err = cmp.Or(err, out.Flush()); err != nil {
		return n, memory.Errorf(memory.ErrUnavailable, "write records: %w", err)
	}
	return n, nil
}

// indented writes one element of a JSON array of objects with sorted keys, with
// what stands before it.
func indented(compact json.RawMessage, first bool) ([]byte, error) {
	v, err := decodeAny(compact) // its maps are written with sorted keys
	if err != nil {
		return nil, err
	}
	sorted, err := encode(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if first {
		b.WriteString("[\n  ")
	} else {
		b.WriteString(",\n  ")
	}
	err = json.Indent(&b, sorted, "  ", "  ")
	return b.Bytes(), err
}

// ReadRecords reads records from a JSON file (an array, or a single record) or,
// with lines, from JSONL (one a line; blank lines are skipped), one at a time.
// After an error it ends.
func ReadRecords(r io.Reader, lines bool) iter.Seq2[json.RawMessage, error] {
	if lines {
		return func(yield func(json.RawMessage, error) bool) { readLines(r, yield) }
	}
	return func(yield func(json.RawMessage, error) bool) { readArray(r, yield) }
}

func readLines(r io.Reader, yield func(json.RawMessage, error) bool) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	n := 1
	for ; scanner.Scan(); n++ {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			yield(nil, memory.Errorf(memory.ErrInvalid, "line %d is not JSON", n))
			return
		}
		if !yield(bytes.Clone(line), nil) {
			return
		}
	}
	if err := scanner.Err(); err != nil {
		yield(nil, memory.Errorf(memory.ErrInvalid, "read line %d: %w", n, err))
	}
}

func readArray(r io.Reader, yield func(json.RawMessage, error) bool) {
	in := bufio.NewReader(r)
	dec := json.NewDecoder(in)
	first, err := firstByte(in)
	if err != nil {
		yield(nil, err)
		return
	}
	if first != '[' {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			yield(nil, memory.Errorf(memory.ErrInvalid, "the file is not JSON: %w", err))
			return
		}
		if yield(raw, nil) {
			atEnd(dec, yield)
		}
		return
	}
	if _, err := dec.Token(); err != nil {
		yield(nil, memory.Errorf(memory.ErrInvalid, "the file is not JSON: %w", err))
		return
	}
	for n := 0; dec.More(); n++ {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			yield(nil, memory.Errorf(memory.ErrInvalid, "record [%d] is not JSON: %w", n, err))
			return
		}
		if !yield(raw, nil) {
			return
		}
	}
	if _, err := dec.Token(); err != nil {
		yield(nil, memory.Errorf(memory.ErrInvalid, "the file is not JSON: %w", err))
		return
	}
	atEnd(dec, yield)
}

// firstByte returns the first byte that is no blank, and leaves it unread.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, memory.Errorf(memory.ErrInvalid, "the file is empty")
		}
		if err != nil {
			return 0, memory.Errorf(memory.ErrUnavailable, "read records: %w", err)
		}
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			return c, in.UnreadByte()
		}
	}
}

// atEnd yields an error if anything follows.
func atEnd(dec *json.Decoder, yield func(json.RawMessage, error) bool) {
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		yield(nil, memory.Errorf(memory.ErrInvalid, "the file goes on after its JSON value"))
	}
}

// Imported is the outcome of an import: all records were written, or, if there
// are errors, none.
type Imported struct {
	OK       bool      `json:"ok"`
	Inserted int       `json:"inserted"`
	Updated  int       `json:"updated"`
	Errors   []Issue   `json:"errors"`
	Skipped  []Skipped `json:"skipped,omitempty"`
}

// Skipped is an input that was left out on purpose, and why.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Failed reports whether nothing was written because of an error.
func (i Imported) Failed() bool { return !i.OK }

// maxIssues bounds the errors that an import lists.
const maxIssues = 1000

var errRefused = errors.New("the import is refused")

// Import writes envelopes in one transaction. Every one is checked; if any has
// an error, nothing is written and the errors are listed with the position in
// their path, at most 1000 of them. A record of a known key is replaced; its
// times stay unless the envelope gives others. Times that an envelope lacks are
// the time of the import; a ttl that it lacks is none. It reports progress.
func (s *Store) Import(ctx context.Context, records iter.Seq2[json.RawMessage, error]) (Imported, error) {
	result := Imported{Errors: []Issue{}}
	v, err := NewValidator(ProfileV1, s.config)
	if err != nil {
		return Imported{}, err
	}
	err = s.updateTable(ctx, func(t *table) error {
		i := 0
		for raw, err := range records {
			if err := cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			issues, updated, err := s.importOne(ctx, t, v, fmt.Sprintf("[%d]", i), raw, len(result.Errors) > 0)
			if err != nil {
				return err
			}
			if len(issues) > 0 {
				result.Errors = append(result.Errors, issues...)
			} else if updated {
				result.Updated++
			} else {
				result.Inserted++
			}
			i++
			if i%progressStep == 0 {
				op.Report(ctx, op.Progress{Done: int64(i), Unit: "records"})
			}
			if len(result.Errors) >= maxIssues {
				break
			}
		}
		if len(result.Errors) > 0 {
			return errRefused
		}
		return nil
	})
	if errors.Is(err, errRefused) {
		return Imported{Errors: result.Errors}, nil
	}
	if err != nil {
		return Imported{}, fmt.Errorf("import records: %w", err)
	}
	result.OK = true
	return result, nil
}

// importOne checks one envelope and, unless checkOnly, writes it.
func (s *Store) importOne(ctx context.Context, t *table, v Validator, at string, raw json.RawMessage, checkOnly bool) (issues []Issue, updated bool, err error) {
	o, err := parseObject("", raw)
	if err != nil {
		return v.notObject(at), false, nil
	}
	for _, issue := range v.members(at, o) {
		if issue.Kind == IssueError {
			issues = append(issues, issue)
		}
	}
	if len(issues) > 0 {
		return issues, false, nil
	}
	r, err := s.rowOf(o)
	if field := memory.FieldOf(err); field != "" {
		return []Issue{{IssueError, at + "." + field, err.Error()}}, false, nil
	}
	if err != nil || checkOnly {
		return nil, false, err
	}
	have, found, err := t.find(ctx, r.Key)
	if err != nil {
		return nil, false, err
	}
	r.times(have, found, s.now())
	return nil, found, t.save(ctx, r, have.number)
}

// times completes the times of an imported row.
func (r *row) times(have stored, found bool, now time.Time) {
	if found {
		r.createdAt, r.updatedAt = cmp.Or(r.createdAt, have.createdAt), cmp.Or(r.updatedAt, have.updatedAt)
		return
	}
	r.createdAt, r.updatedAt = cmp.Or(r.createdAt, r.updatedAt, formatTime(now)), cmp.Or(r.updatedAt, r.createdAt, formatTime(now))
}

// rowOf makes the row of a checked envelope. Times that it lacks are empty.
func (s *Store) rowOf(o object) (row, error) {
	key, err := keyOf(o)
	if err != nil {
		return row{}, err
	}
	r := row{Key: key}
	if ttl, given := o.get("ttl_seconds"); given && !isNull(ttl) {
		seconds, err := decodeInteger(ttl)
		if err != nil {
			return row{}, &memory.FieldError{Field: "ttl_seconds", Reason: err.Error()}
		}
		r.ttl = &seconds
	}
	value, _ := o.get("payload")
	payload, err := s.prepare("payload", Write{Key: r.Key, Value: value})
	if err != nil {
		return row{}, err
	}
	given, _ := o.get("metadata")
	metadata, err := metadataOf(given, payload)
	if err != nil {
		return row{}, err
	}
	if r.createdAt, err = givenTime(o, "created_at"); err != nil {
		return row{}, err
	}
	if r.updatedAt, err = givenTime(o, "updated_at"); err != nil {
		return row{}, err
	}
	keepOrigin(&payload, o)
	if r.payload, err = s.clean("payload", payload.raw()); err != nil {
		return row{}, err
	}
	r.metadata, err = s.clean("metadata", metadata)
	return r, err
}

func keyOf(o object) (k Key, err error) {
	for _, part := range []struct {
		name string
		to   *string
	}{{"namespace", &k.Namespace}, {"record_kind", &k.Kind}, {"record_id", &k.ID}} {
		raw, _ := o.get(part.name)
		if *part.to, err = decodeText(raw); err != nil {
			return Key{}, &memory.FieldError{Field: part.name, Reason: err.Error()}
		}
	}
	return k, nil
}

// keepOrigin stores an envelope's provenance and flags in the payload's reserved
// members, unless they are there already or say nothing.
func keepOrigin(payload *object, envelope object) {
	provenance, _ := envelope.get("provenance")
	flags, _ := envelope.get("flags")
	if sameJSON(provenance, defaultProvenance) && sameJSON(flags, defaultFlags) {
		return
	}
	for _, keep := range []struct {
		name  string
		value json.RawMessage
	}{{payloadProvenance, provenance}, {payloadFlags, flags}} {
		if _, there := payload.get(keep.name); !there && !isEmpty(keep.value) {
			payload.set(keep.name, keep.value)
		}
	}
}

// sameJSON compares objects whose members are scalars, in any order.
func sameJSON(raw json.RawMessage, want string) bool {
	have, err := parseObject("", raw)
	if err != nil {
		return false
	}
	wanted, err := parseObject("", []byte(want))
	if err != nil {
		return false
	}
	return len(have) == len(wanted) && !slices.ContainsFunc(wanted, func(m member) bool {
		value, _ := have.get(m.name)
		return !bytes.Equal(value, m.value)
	})
}

// givenTime returns a time of an envelope: in the store's own form if it is a
// time with an offset, else as it is; "" where none is given.
func givenTime(o object, name string) (string, error) {
	raw, given := o.get(name)
	if !given || isNull(raw) {
		return "", nil
	}
	s, err := decodeText(raw)
	if err != nil {
		return "", &memory.FieldError{Field: name, Reason: err.Error()}
	}
	return canonicalTime(s), nil
}
