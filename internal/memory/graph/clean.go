package graph

import (
	"encoding/json"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// cleanNode takes the secrets out of a node. An id that holds one is refused:
// the node could not be found under another.
func (s *Store) cleanNode(n *Node) (*Node, error) {
	if s.opts.Redact == nil {
		return n, nil
	}
	if err := s.checkSecrets(Member{"id", []byte(n.ID)}, Member{"node_type", []byte(n.Type)}, Member{"agent_id", []byte(n.AgentID)}); err != nil {
		return nil, err
	}
	payload, err := s.cleanObject("payload", n.Payload)
	if err != nil {
		return nil, err
	}
	extra, err := s.cleanMembers(n.Extra)
	if err != nil {
		return nil, err
	}
	return n.with(func(c *Node) {
		c.Label = s.opts.Redact.Text(n.Label)
		c.Payload = payload
		for i, tag := range c.Tags {
			c.Tags[i] = s.opts.Redact.Text(tag)
		}
		c.Extra = extra
	}), nil
}

// cleanEdge takes the secrets out of an edge.
func (s *Store) cleanEdge(e *Edge) (*Edge, error) {
	if s.opts.Redact == nil {
		return e, nil
	}
	if err := s.checkSecrets(Member{"id", []byte(e.ID)}, Member{"src", []byte(e.Src)}, Member{"dst", []byte(e.Dst)}); err != nil {
		return nil, err
	}
	meta, err := s.cleanObject("meta", e.Meta)
	if err != nil {
		return nil, err
	}
	extra, err := s.cleanMembers(e.Extra)
	if err != nil {
		return nil, err
	}
	c := *e
	c.Label, c.Meta, c.Extra = s.opts.Redact.Text(e.Label), meta, extra
	return &c, nil
}

func (s *Store) checkSecrets(names ...Member) error {
	for _, m := range names {
		if text := string(m.Value); s.opts.Redact.Text(text) != text {
			return &memory.FieldError{Field: m.Name, Reason: "must not hold a secret", Hint: "choose another, or set graph.redact to false"}
		}
	}
	return nil
}

func (s *Store) cleanObject(field string, raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	cleaned, isJSON := s.opts.Redact.Value(raw).(json.RawMessage)
	if !isJSON || len(cleaned) == 0 || cleaned[0] != '{' {
		return nil, &memory.FieldError{Field: field, Reason: "is nested too deep to be searched for secrets"}
	}
	return cleaned, nil
}

// cleanMembers goes over unknown members as over one object, so that a secret
// is seen by its name too.
func (s *Store) cleanMembers(members []Member) ([]Member, error) {
	if len(members) == 0 {
		return nil, nil
	}
	cleaned, err := s.cleanObject("node", appendMembers(nil, members))
	if err != nil {
		return nil, err
	}
	return membersOf("node", cleaned)
}
