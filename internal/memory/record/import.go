package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

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

// Text is one line for what was written, and one for each error and each input
// that was left out.
func (i Imported) Text() string {
	var b strings.Builder
	if i.OK {
		fmt.Fprintf(&b, "%d inserted, %d updated\n", i.Inserted, i.Updated)
	} else {
		b.WriteString("Nothing was stored:\n" + Verdict{Issues: i.Errors}.Text())
	}
	writeSkipped(&b, i.Skipped)
	return b.String()
}

func writeSkipped(b *strings.Builder, list []Skipped) {
	for _, s := range list {
		fmt.Fprintf(b, "left out %s: %s\n", s.Name, s.Reason)
	}
}

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
	err = s.updateTable(ctx, func(t table) error {
		i := 0
		for raw, err := range records {
			if err := cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			issues, updated, err := s.importOne(ctx, t, v, position(i), raw, len(result.Errors) > 0)
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
func (s *Store) importOne(ctx context.Context, t table, v Validator, at string, raw json.RawMessage, checkOnly bool) (issues []Issue, updated bool, err error) {
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

// ImportFile imports a file: JSONL with lines, else JSON.
func ImportFile(ctx context.Context, s *Store, path string, lines bool) (Imported, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return Imported{}, memory.Errorf(memory.ErrNotFound, "import records: %w", err)
	}
	if err != nil {
		return Imported{}, memory.Errorf(memory.ErrUnavailable, "import records: %w", err)
	}
	defer f.Close()
	return s.Import(ctx, ReadRecords(f, lines))
}
