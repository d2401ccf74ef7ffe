package graph

import (
	"context"
	_ "embed" // the schema
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
	"github.com/rs/zerolog"
	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// InboxSchema is the JSON Schema of the inbox's envelope, version 1.
//
//go:embed inbox_schema_v1.json
var InboxSchema string

// RequiresTagger is the source feature by which a caller says that the tags of
// its semantic nodes are the work of a tagger: a host without one then skips
// them.
const RequiresTagger = "requires_ainl_tagger"

// sourceFeatures stand in every envelope that was pushed to.
var sourceFeatures = []string{"ainl_graph_memory", "inbox_v1"}

// Inbox is the file from which an ArmaraOS host takes nodes into its own store.
type Inbox struct {
	host Host
	now  func() time.Time
	log  zerolog.Logger
}

// NewInbox returns the inbox of the host's agent.
func NewInbox(host Host, now func() time.Time, log zerolog.Logger) *Inbox {
	return &Inbox{host: host, now: now, log: log}
}

// Pushed tells what became of nodes for the inbox.
type Pushed struct {
	Pushed  int    `json:"pushed"`
	Skipped int    `json:"skipped"`
	Error   string `json:"error,omitempty"` // sync_unavailable where there is no host
}

// Available reports whether there is a host: it has named its agent, and has a
// directory of agents.
func (b *Inbox) Available() bool {
	return b.host.named() && isDir(filepath.Join(b.host.Home, "agents"))
}

// Path returns the file of the inbox.
func (b *Inbox) Path() string {
	return filepath.Join(b.host.Home, "agents", b.host.AgentID, "ainl_graph_memory_inbox.json")
}

// Push appends nodes to the inbox and adds the caller's source features to those
// of the envelope. Without a host it does nothing. An inbox that cannot be read
// is set aside, not overwritten.
func (b *Inbox) Push(ctx context.Context, nodes []*Node, features ...string) (Pushed, error) {
	rows := make([]json.RawMessage, 0, len(nodes))
	for _, n := range nodes {
		rows = append(rows, n.appendJSON(nil))
	}
	return b.PushRows(ctx, rows, features...)
}

// PushPatch pushes the record of a patch as the node of an agent.
func (b *Inbox) PushPatch(ctx context.Context, p PatchRecord, agent string) (Pushed, error) {
	return b.Push(ctx, []*Node{p.node(agent)})
}

// PushRows is Push for rows of JSON objects; others are skipped.
func (b *Inbox) PushRows(ctx context.Context, rows []json.RawMessage, features ...string) (Pushed, error) {
	given := len(rows)
	rows = slices.DeleteFunc(slices.Clone(rows), func(raw json.RawMessage) bool { return !gjson.ParseBytes(raw).IsObject() })
	switch {
	case !b.Available():
		return Pushed{Error: "sync_unavailable"}, nil
	case len(rows) == 0:
		return Pushed{Skipped: given}, nil
	}
	if err := os.MkdirAll(filepath.Dir(b.Path()), 0o700); err != nil {
		return Pushed{}, memory.Errorf(memory.ErrUnavailable, "make the inbox: %w", err)
	}
	lock := flock.New(b.Path()+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return Pushed{}, memory.Errorf(memory.ErrUnavailable, "lock the inbox: %w", err)
	}
	err := errors.Join(b.append(rows, features), lock.Close())
	if err != nil {
		return Pushed{}, memory.Errorf(memory.ErrUnavailable, "write the inbox: %w", err)
	}
	return Pushed{Pushed: len(rows), Skipped: given - len(rows)}, nil
}

// append adds rows to the envelope.
func (b *Inbox) append(rows []json.RawMessage, features []string) error {
	e, err := b.read()
	if err != nil {
		return err
	}
	e.nodes = append(e.nodes, rows...)
	for _, f := range append(slices.Clone(features), sourceFeatures...) {
		if !slices.Contains(e.features, f) {
			e.features = append(e.features, f)
		}
	}
	return renameio.WriteFile(b.Path(), e.encode(), 0o600, renameio.WithStaticPermissions(0o600), renameio.WithTempDir(filepath.Dir(b.Path())))
}

// envelope is the content of an inbox.
type envelope struct {
	nodes, edges []json.RawMessage
	features     []string
	version      string
	extra        []Member
}

func (b *Inbox) read() (envelope, error) {
	e := envelope{version: "1"}
	raw, err := os.ReadFile(b.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	text, damage := readable(string(raw))
	if damage != nil {
		return e, b.setAside(damage)
	}
	gjson.Parse(text).ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "nodes":
			e.nodes = objectsOf(v)
		case "edges":
			e.edges = objectsOf(v)
		case "source_features":
			e.features = textsOf(v)
		case "schema_version":
			if v.Type == gjson.String && v.Str != "" {
				e.version = v.Str
			}
		default:
			e.extra = setMember(e.extra, key.String(), json.RawMessage(v.Raw))
		}
		return true
	})
	return e, nil
}

func (b *Inbox) setAside(damage error) error {
	aside, err := freeName(b.Path() + ".damaged-" + b.now().UTC().Format(stamp))
	if err == nil {
		err = os.Rename(b.Path(), aside)
	}
	if err == nil {
		b.log.Warn().Str("path", aside).Msg(fmt.Sprintf("the inbox %s; it was set aside", damage))
	}
	return err
}

func (e envelope) encode() []byte {
	return append(appendMembers(nil, append([]Member{
		{"nodes", appendList(nil, e.nodes)}, {"edges", appendList(nil, e.edges)},
		{"source_features", appendTexts(nil, e.features)}, {"schema_version", appendText(nil, e.version)},
	}, e.extra...)), '\n')
}

// objectsOf returns the objects of a list; nothing where v is none.
func objectsOf(v gjson.Result) []json.RawMessage {
	var list []json.RawMessage
	if v.IsArray() {
		v.ForEach(func(_, item gjson.Result) bool {
			if item.IsObject() {
				list = append(list, json.RawMessage(item.Raw))
			}
			return true
		})
	}
	return list
}

// textsOf returns the texts of a list; nothing where v is none.
func textsOf(v gjson.Result) []string {
	var list []string
	if v.IsArray() {
		v.ForEach(func(_, item gjson.Result) bool {
			if item.Type == gjson.String {
				list = append(list, item.Str)
			}
			return true
		})
	}
	return list
}
