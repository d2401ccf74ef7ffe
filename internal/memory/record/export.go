package record

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/google/renameio/v2"

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

// Check refuses namespaces that c does not know: an export of them would be
// empty without a word.
func (sel Selection) Check(c Config) error {
	c, err := c.complete()
	if err != nil {
		return err
	}
	for _, ns := range sel.Namespaces {
		if err := c.checkNamespace(ns); err != nil {
			return err
		}
	}
	return nil
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

// ExportFile is WriteRecords to a file (0600), which is there whole or not at
// all. What is no regular file is refused with ErrDenied.
func ExportFile(ctx context.Context, s *Store, path string, sel Selection, lines bool) (n int64, err error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // the new file would take the place of a device
		return 0, memory.WithHint(memory.Errorf(memory.ErrDenied, "export records: %s is not a regular file", path), "- writes to standard output")
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o600))
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "export records: %w", err)
	}
	defer func() { err = cmp.Or(err, f.Cleanup()) }()
	if n, err = s.WriteRecords(ctx, f, sel, lines); err != nil {
		return n, err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return n, memory.Errorf(memory.ErrUnavailable, "export records: %w", err)
	}
	return n, nil
}
