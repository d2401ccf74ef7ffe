package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// imported is what an ArmaraOS snapshot holds.
type imported struct {
	nodes []*Node
	edges []*Edge
}

// readSnapshot reads the snapshot, if there is one. One that cannot be read is
// only noted: it is another program's file.
func (s *Store) readSnapshot() imported {
	if s.opts.Snapshot == "" {
		return imported{}
	}
	text, err := readSmall(s.opts.Snapshot, s.limits.FileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return imported{}
	}
	if err == nil {
		text, err = readable(text)
	}
	if err != nil {
		s.note(fmt.Sprintf("the ArmaraOS snapshot %s was not read: %v", s.opts.Snapshot, err))
		return imported{}
	}
	snapshot := gjson.Parse(text)
	if !Recognised(snapshot.Raw) {
		s.note(fmt.Sprintf("%s is no ArmaraOS snapshot of a version that is known", s.opts.Snapshot))
		return imported{}
	}
	return s.importSnapshot(snapshot)
}

// readSmall reads a regular file of at most limit bytes.
func readSmall(path string, limit int64) (string, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !st.Mode().IsRegular():
		return "", unreadable("it is no file")
	case st.Size() > limit:
		return "", unreadable(fmt.Sprintf("it has %d bytes, the most are %d", st.Size(), limit))
	}
	raw, err := os.ReadFile(path)
	return string(raw), err
}

// Recognised reports whether a JSON object is a snapshot that can be read: it
// names version 1, or has exported_at, agent_id and a list of nodes.
func Recognised(snapshot string) bool {
	s := gjson.Parse(snapshot)
	if v := s.Get("schema_version"); v.Type == gjson.String && (v.Str == "1" || v.Str == "1.0") {
		return true
	}
	return truthy(s.Get("exported_at")) && s.Get("nodes").IsArray() && s.Get("agent_id").Exists()
}

// truthy reports whether a value is more than nothing, empty or zero.
func truthy(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null, gjson.False:
		return false
	case gjson.Number:
		return v.Num != 0
	case gjson.String:
		return v.Str != ""
	case gjson.JSON:
		some := false
		v.ForEach(func(_, _ gjson.Result) bool {
			some = true
			return false
		})
		return some
	}
	return true
}

func (s *Store) importSnapshot(snapshot gjson.Result) imported {
	var in imported
	limit := s.limits.Nodes
	for _, row := range objectsOf(snapshot.Get("nodes")) {
		if !fits(len(in.nodes)+1, limit) {
			s.note(fmt.Sprintf("the snapshot has more than %d nodes; the others were not read", limit))
			break
		}
		if n := importedNode(gjson.ParseBytes(row), s.now()); n != nil {
			in.nodes = append(in.nodes, n)
		}
	}
	for _, row := range objectsOf(snapshot.Get("edges")) {
		if e := importedEdge(gjson.ParseBytes(row)); e != nil {
			in.edges = append(in.edges, e)
		}
	}
	return in
}

// importedNode reads one node of a snapshot; nil for one without an id.
func importedNode(row gjson.Result, now float64) *Node {
	id, ok := textOf(row.Get("id"))
	if !ok || id == "" {
		return nil
	}
	agent, _ := textOf(row.Get("agent_id"))
	kind := row.Get("node_type")
	n := &Node{ID: id, AgentID: agent, CreatedAt: now, Type: importedType(row), Label: importedLabel(id, kind),
		Payload: appendMembers(nil, []Member{{"rust_snapshot", json.RawMessage(row.Raw)}}),
		Tags:    []string{"source:armaraos_export", "rust_id:" + id}}
	switch strings.ToLower(kind.Get("type").String()) {
	case "episode":
		if at := kind.Get("timestamp"); at.Type == gjson.Number {
			n.CreatedAt = at.Num
		}
		n.VitalsGate, n.VitalsPhase, n.VitalsTrust = present(kind.Get("vitals_gate")), present(kind.Get("vitals_phase")), present(kind.Get("vitals_trust"))
	case "semantic":
		for _, tag := range textsOf(kind.Get("tags")) {
			if tag != "" && !slices.Contains(n.Tags, tag) {
				n.Tags = append(n.Tags, tag)
			}
		}
	}
	return n
}

func present(v gjson.Result) json.RawMessage {
	if !v.Exists() {
		return nil
	}
	return optional(v)
}

// importedTypes are the node types of the snapshot's categories and types.
var importedTypes = map[string]string{"episodic": Episodic, "episode": Episodic, "semantic": Semantic,
	"procedural": Procedural, "persona": Persona, "runtime_state": Semantic}

func importedType(row gjson.Result) string {
	if v := row.Get("memory_category"); v.Type == gjson.String {
		name := strings.ToLower(strings.TrimSpace(v.Str))
		if kind, known := importedTypes[name]; known && name != "episode" {
			return kind
		}
	}
	if kind, known := importedTypes[strings.ToLower(row.Get("node_type.type").String())]; known {
		return kind
	}
	return Semantic
}

const longestFact = 200 // characters of a fact in a label

func importedLabel(id string, kind gjson.Result) string {
	named := func(member, otherwise string) string {
		if v := kind.Get(member); v.Exists() {
			return printed(v)
		}
		return otherwise
	}
	switch strings.ToLower(kind.Get("type").String()) {
	case "episode":
		if tools := kind.Get("tool_calls"); tools.IsArray() && len(tools.Array()) > 0 {
			return "episode:" + printed(tools.Array()[0])
		}
		return "episode"
	case "semantic":
		fact := []rune(named("fact", ""))
		if len(fact) == 0 {
			return "fact"
		}
		return string(fact[:min(len(fact), longestFact)])
	case "procedural":
		return named("pattern_name", "pattern")
	case "persona":
		return named("trait_name", "persona")
	case "runtime_state":
		return "runtime_state"
	}
	return id
}

// importedEdge reads one edge of a snapshot; nil for one that lacks an end or
// whose weight is no number. Its id follows from its ends and type, so that the
// same edge is the same at every reading.
func importedEdge(row gjson.Result) *Edge {
	src, okSrc := textOf(row.Get("source_id"))
	dst, okDst := textOf(row.Get("target_id"))
	if !okSrc || !okDst || src == "" || dst == "" {
		return nil
	}
	kind := References
	if v := row.Get("edge_type"); truthy(v) {
		kind = strings.TrimSpace(printed(v))
	}
	e := &Edge{ID: EdgeID(src, dst, kind), Src: src, Dst: dst, Type: kind, Label: kind, Confidence: 1}
	if !slices.Contains(EdgeTypes, kind) {
		e.Type = References
		e.Meta = appendMembers(nil, []Member{{"armaraos_edge_type", appendText(nil, kind)}})
	}
	if v := row.Get("weight"); v.Exists() && v.Type != gjson.Null {
		weight, ok := numberOf(v)
		if !ok {
			return nil
		}
		e.Confidence = weight
	}
	return e
}
