package record

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// entriesMember is the member of a log record's payload that Append extends.
const entriesMember = "entries"

// Write is the input of Put and Append.
type Write struct {
	Key
	// Value is the payload of Put and the entry of Append: a JSON object.
	Value json.RawMessage
	// TTL is in seconds from the record's creation. Zero and less are allowed:
	// the record is gone at once. nil takes the namespace's default, and on
	// Append keeps what the record has.
	TTL *int64
	// Metadata is a JSON object, JSON null for none, or nil where none was
	// given: then Put looks for the payload's member _metadata, and Append keeps
	// what the record has.
	Metadata json.RawMessage
}

// Put creates a record or replaces one whole; a replaced one keeps its time of
// creation. An expired record counts as absent. created tells which it was, at
// is the time stored.
func (s *Store) Put(ctx context.Context, w Write) (created bool, at string, err error) {
	payload, err := s.prepare("payload", w)
	if err != nil {
		return false, "", err
	}
	metadata, err := metadataOf(w.Metadata, payload)
	if err != nil {
		return false, "", err
	}
	r := row{Key: w.Key, ttl: w.TTL}
	if r.ttl == nil {
		r.ttl = s.config.DefaultTTL[w.Namespace]
	}
	if r.payload, err = s.clean("payload", payload.raw()); err != nil {
		return false, "", err
	}
	if r.metadata, err = s.clean("metadata", metadata); err != nil {
		return false, "", err
	}
	err = s.updateTable(ctx, func(t table) error {
		now := s.now()
		r.createdAt, r.updatedAt = formatTime(now), formatTime(now)
		have, found, err := t.find(ctx, w.Key)
		if err != nil {
			return err
		}
		created = !found || expired(have.createdAt, have.ttl, now)
		if !created {
			r.createdAt = have.createdAt
		}
		return t.save(ctx, r, have.number)
	})
	if err != nil {
		return false, "", fmt.Errorf("put record: %w", err)
	}
	return created, r.updatedAt, nil
}

// prepare checks the parts that Put and Append have in common.
func (s *Store) prepare(field string, w Write) (object, error) {
	if err := w.check(s.config); err != nil {
		return nil, err
	}
	if err := cmp.Or(s.checkSecret("record_kind", w.Kind), s.checkSecret("record_id", w.ID)); err != nil {
		return nil, err
	}
	return parseObject(field, w.Value)
}

// Append adds an entry to the end of a log record's entries, and creates the
// record where there is none or an expired one. A record whose payload has no
// list of entries is refused with ErrConflict. at is the time stored.
func (s *Store) Append(ctx context.Context, w Write) (at string, err error) {
	entry, err := s.prepare("entry", w)
	if err != nil {
		return "", err
	}
	var metadata json.RawMessage
	if w.Metadata != nil {
		if metadata, err = checkedMetadata("metadata", w.Metadata); err != nil {
			return "", err
		}
	}
	added, err := s.clean("entry", entry.raw())
	if err != nil {
		return "", err
	}
	if metadata, err = s.clean("metadata", metadata); err != nil {
		return "", err
	}
	err = s.updateTable(ctx, func(t table) error {
		now := s.now()
		at = formatTime(now)
		have, found, err := t.find(ctx, w.Key)
		if err != nil {
			return err
		}
		r := row{Key: w.Key, createdAt: at, updatedAt: at, ttl: w.TTL, metadata: metadata}
		if !found || expired(have.createdAt, have.ttl, now) {
			if r.ttl == nil {
				r.ttl = s.config.DefaultTTL[w.Namespace]
			}
			r.payload = object{}.withEntry(added)
			return t.save(ctx, r, have.number)
		}
		if r.payload, err = appended(have.payload, added); err != nil {
			return err
		}
		r.createdAt = have.createdAt
		if r.ttl == nil {
			r.ttl = have.ttl
		}
		if r.metadata == nil && have.metadata.Valid {
			r.metadata = json.RawMessage(have.metadata.String)
		}
		return t.save(ctx, r, have.number)
	})
	if err != nil {
		return "", fmt.Errorf("append to record: %w", err)
	}
	return at, nil
}

// appended returns a stored payload with one entry more.
func appended(payload string, entry json.RawMessage) (json.RawMessage, error) {
	raw, ok := standard(payload)
	if !ok {
		return nil, memory.Errorf(memory.ErrCorrupt, "the stored payload is no JSON")
	}
	o, err := parseObject("payload", raw)
	if err != nil {
		return nil, memory.Errorf(memory.ErrCorrupt, "the stored payload is no JSON object")
	}
	if entries, _ := o.get(entriesMember); !isList(entries) {
		return nil, memory.WithHint(memory.Errorf(memory.ErrConflict, "payload.entries of the record is no list"),
			"append extends log records only; use put to replace this one")
	}
	return o.withEntry(entry), nil
}

// withEntry returns the payload o with an entry at the end of its list of
// entries, which is made if need be.
func (o object) withEntry(entry json.RawMessage) json.RawMessage {
	list := []byte("[")
	if have, found := o.get(entriesMember); found {
		list = append(make([]byte, 0, len(have)+len(entry)+1), bytes.TrimSuffix(have, []byte("]"))...)
	}
	if len(list) > 1 {
		list = append(list, ',')
	}
	o.set(entriesMember, append(append(list, entry...), ']'))
	return o.raw()
}

// Touch says that a record was used: last_accessed becomes now and access_count
// one more, as a put of the same payload with that metadata would do. Nothing
// else in this package counts accesses. It returns the new metadata; a record
// that is missing or expired is ErrNotFound.
func (s *Store) Touch(ctx context.Context, key Key) (metadata json.RawMessage, at string, err error) {
	if err := key.check(s.config); err != nil {
		return nil, "", err
	}
	err = s.updateTable(ctx, func(t table) error {
		now := s.now()
		at = formatTime(now)
		have, found, err := t.find(ctx, key)
		if err != nil {
			return err
		}
		if !found || expired(have.createdAt, have.ttl, now) {
			return memory.Errorf(memory.ErrNotFound, "there is no record %s %s %s", key.Namespace, key.Kind, key.ID)
		}
		o := object{}
		if have.metadata.Valid {
			raw, isJSON := standard(have.metadata.String)
			if o, err = parseObject("metadata", raw); err != nil || !isJSON {
				return memory.Errorf(memory.ErrCorrupt, "the stored metadata is no JSON object")
			}
		}
		count, _ := o.get(metaAccessCount)
		times, err := decodeInteger(count)
		if err != nil || times < 0 {
			times = 0 // nothing was counted yet
		}
		o.set(metaLastAccessed, json.RawMessage(`"`+at+`"`))
		o.set(metaAccessCount, fmt.Appendf(nil, "%d", times+1))
		metadata = o.raw()
		return t.save(ctx, row{key, have.createdAt, at, have.ttl, json.RawMessage(have.payload), metadata}, have.number)
	})
	if err != nil {
		return nil, "", fmt.Errorf("touch record: %w", err)
	}
	return metadata, at, nil
}

// Delete removes the record of a key, an expired one too. deleted is false where
// there was none.
func (s *Store) Delete(ctx context.Context, key Key) (deleted bool, err error) {
	if err := key.check(s.config); err != nil {
		return false, err
	}
	if s.db == nil {
		return false, nil
	}
	err = s.update(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "DELETE FROM memory_records WHERE namespace = ? AND record_kind = ? AND record_id = ?", key.Namespace, key.Kind, key.ID)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		deleted = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("delete record: %w", err)
	}
	return deleted, nil
}

const recordColumns = "id, namespace, record_kind, record_id, created_at, updated_at, ttl_seconds, payload_json, metadata_json"

// scanner is a row of recordColumns.
type scanner interface{ Scan(...any) error }

func scanRecord(row scanner) (Record, error) {
	var r Record
	var payload string
	var metadata sql.NullString
	if err := row.Scan(&r.number, &r.Namespace, &r.Kind, &r.ID, &r.CreatedAt, &r.UpdatedAt, &r.TTLSeconds, &payload, &metadata); err != nil {
		return Record{}, err
	}
	var isJSON bool
	if r.Payload, isJSON = standard(payload); !isJSON {
		return Record{}, memory.Errorf(memory.ErrCorrupt, "the payload of record %s %s %s is no JSON", r.Namespace, r.Kind, r.ID)
	}
	if metadata.Valid {
		if r.Metadata, isJSON = standard(metadata.String); !isJSON {
			return Record{}, memory.Errorf(memory.ErrCorrupt, "the metadata of record %s %s %s is no JSON", r.Namespace, r.Kind, r.ID)
		}
	}
	return r, nil
}

// Get returns the record of a key; found is false where there is none or it has
// expired. Reading changes nothing.
func (s *Store) Get(ctx context.Context, key Key) (r Record, found bool, err error) {
	if err := key.check(s.config); err != nil {
		return Record{}, false, err
	}
	return s.one(ctx, "namespace = ? AND record_kind = ? AND record_id = ?", key.Namespace, key.Kind, key.ID)
}

// ByHandle returns the record with the handle REC-n, as Get does.
func (s *Store) ByHandle(ctx context.Context, handle string) (r Record, found bool, err error) {
	n, err := handleNumber(handle)
	if err != nil {
		return Record{}, false, err
	}
	return s.one(ctx, "id = ?", n)
}

func (s *Store) one(ctx context.Context, where string, args ...any) (Record, bool, error) {
	if s.db == nil {
		return Record{}, false, nil
	}
	r, err := scanRecord(s.db.Reader().QueryRowContext(ctx, "SELECT "+recordColumns+" FROM memory_records WHERE "+where, args...))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Record{}, false, nil
	case err != nil:
		return Record{}, false, fmt.Errorf("get record: %w", sqlite.Classify(err))
	case expired(r.CreatedAt, r.TTLSeconds, s.now()):
		return Record{}, false, nil
	}
	return r, true, nil
}
