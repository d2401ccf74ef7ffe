package record

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// StorePattern keeps a fragment of a program under a name, replacing the one of
// that name: a JSON object with a non-empty object labels. Blanks around the
// name do not count. hash is the SHA-256 of the fragment as canonical writes it.
func (s *Store) StorePattern(ctx context.Context, name string, fragment json.RawMessage) (stored, hash, at string, err error) {
	name = strings.TrimFunc(name, isSpace)
	if err := checkName("name", name); err != nil {
		return "", "", "", err
	}
	if err := s.checkSecret("name", name); err != nil {
		return "", "", "", err
	}
	o, err := parseObject("fragment", fragment)
	if err != nil {
		return "", "", "", err
	}
	labels, _ := o.get("labels")
	if list, err := parseObject("fragment.labels", labels); err != nil || len(list) == 0 {
		return "", "", "", &memory.FieldError{Field: "fragment.labels", Reason: "must be a JSON object with members"}
	}
	raw, err := s.clean("fragment", o.raw())
	if err != nil {
		return "", "", "", err
	}
	v, err := decodeAny(raw)
	if err != nil {
		return "", "", "", fmt.Errorf("store pattern: %w", err)
	}
	sum := sha256.Sum256(canonical(nil, v))
	hash, at = hex.EncodeToString(sum[:]), formatTime(s.now())
	err = s.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO ainl_memory_patterns (name, content_hash, ir_json, updated_at) VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (name) DO UPDATE SET content_hash = ?2, ir_json = ?3, updated_at = ?4`, name, hash, string(raw), at)
		return err
	})
	if err != nil {
		return "", "", "", fmt.Errorf("store pattern: %w", err)
	}
	return name, hash, at, nil
}

// RecallPattern returns the labels of a pattern, and nothing else of it, in the
// form that programs rely on: members that are not objects are left out, and
// each has lists nodes, edges and legacy.steps. It returns nil for a name that
// is blank or unknown.
func (s *Store) RecallPattern(ctx context.Context, name string) (json.RawMessage, error) {
	name = strings.TrimFunc(name, isSpace)
	if name == "" || s.db == nil {
		return nil, nil
	}
	var text string
	err := s.db.Reader().QueryRowContext(ctx, "SELECT ir_json FROM ainl_memory_patterns WHERE name = ?", name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("recall pattern: %w", sqlite.Classify(err))
	}
	raw, _ := standard(text)
	labels, err := patternLabels(raw)
	if err != nil {
		return nil, memory.Errorf(memory.ErrCorrupt, "the pattern %q is damaged: %w", name, err)
	}
	return object{{"labels", json.RawMessage(`"labels"`), labels}}.raw(), nil
}

func patternLabels(fragment json.RawMessage) (json.RawMessage, error) {
	o, err := parseObject("fragment", fragment)
	if err != nil {
		return nil, err
	}
	labels, _ := o.get("labels")
	list, err := parseObject("labels", labels)
	if err != nil {
		return nil, err
	}
	kept := object{}
	for _, m := range list {
		body, err := parseObject("label", m.value)
		if err != nil {
			continue // not an object: left out, as the contract says
		}
		listMember(&body, "nodes")
		listMember(&body, "edges")
		legacy := object{}
		if have, _ := body.get("legacy"); len(have) > 0 && have[0] == '{' {
			if legacy, err = parseObject("legacy", have); err != nil {
				return nil, err
			}
		}
		listMember(&legacy, "steps")
		body.set("legacy", legacy.raw())
		kept = append(kept, member{m.name, m.key, body.raw()})
	}
	return kept.raw(), nil
}

// listMember makes a member an empty list unless it is a list.
func listMember(o *object, name string) {
	if have, _ := o.get(name); !isList(have) {
		o.set(name, json.RawMessage("[]"))
	}
}
