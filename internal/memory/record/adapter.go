package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Stats are running totals of an Adapter since it was made.
type Stats struct {
	Operations int64 `json:"operations"` // successful calls, recall_pattern apart
	Reads      int64 `json:"reads"`      // records asked for by get, and delivered by list
	Writes     int64 `json:"writes"`     // records and patterns written or removed
	Pruned     int64 `json:"pruned"`     // records removed by prune
}

// Adapter speaks the contract's verbs with positional arguments, for one agent.
// It is safe for concurrent use; its totals are then in the order in which calls
// end.
type Adapter struct {
	agent memory.AgentID
	rooms rooms

	mu    sync.Mutex
	stats Stats
}

// NewAdapter returns an adapter for an agent's store. read answers ErrNotFound
// where there is no database yet, and reading then finds nothing; write makes
// it. path and config describe the store that there is not yet.
func NewAdapter(agent memory.AgentID, read, write memory.Borrow[*Store], path string, config Config) *Adapter {
	return &Adapter{agent: agent, rooms: rooms{read: read, write: write, describe: func(memory.AgentID) (string, Config) { return path, config }}}
}

// rooms lends stores; one that does not exist reads as empty.
type rooms struct {
	read, write memory.Borrow[*Store]
	describe    func(memory.AgentID) (path string, c Config)
}

func (r rooms) reading(ctx context.Context, agent memory.AgentID) (*Store, func(), error) {
	s, release, err := r.read(ctx, agent)
	if !errors.Is(err, memory.ErrNotFound) {
		return s, release, err
	}
	s, err = Empty(r.describe(agent))
	return s, func() {}, err
}

// Verbs are the contract's verbs.
var Verbs = []string{"put", "get", "append", "list", "delete", "prune", "store_pattern", "recall_pattern"}

// Call runs a verb, whose case and outer blanks do not count. Arguments beyond
// the verb's own are ignored. The answer is a value for JSON. An error has no
// effect on records or totals.
func (a *Adapter) Call(ctx context.Context, verb string, args []json.RawMessage) (any, error) {
	name := strings.ToLower(strings.TrimFunc(verb, isSpace))
	run, known := verbs[name]
	if !known {
		hint := "the verbs are " + strings.Join(Verbs, ", ")
		if near := memory.Nearest(name, Verbs); near != "" {
			hint = "did you mean " + near + "?"
		}
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "memory has no verb %q", verb), hint)
	}
	lend := a.rooms.write
	if run.reads {
		lend = a.rooms.reading
	}
	s, release, err := lend(ctx, a.agent)
	if err != nil {
		return nil, err
	}
	defer release()
	return run.call(ctx, a, s, arguments(args))
}

// count adds to the totals and returns them.
func (a *Adapter) count(more Stats) *Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Operations++
	a.stats.Reads += more.Reads
	a.stats.Writes += more.Writes
	a.stats.Pruned += more.Pruned
	now := a.stats
	return &now
}

type verbFunc func(ctx context.Context, a *Adapter, s *Store, args arguments) (any, error)

// verbs holds the function of each verb. Those that read, and those that only
// remove, need no database to be there.
var verbs = map[string]struct {
	reads bool
	call  verbFunc
}{
	"put": {false, callPut}, "append": {false, callAppend}, "store_pattern": {false, callStorePattern},
	"get": {true, callGet}, "list": {true, callList}, "recall_pattern": {true, callRecallPattern},
	"delete": {true, callDelete}, "prune": {true, callPrune},
}

func callPut(ctx context.Context, a *Adapter, s *Store, args arguments) (any, error) {
	w, err := args.write("payload")
	if err != nil {
		return nil, err
	}
	created, at, err := s.Put(ctx, w)
	if err != nil {
		return nil, err
	}
	return PutAnswer{true, created, at, a.count(Stats{Writes: 1})}, nil
}

func callAppend(ctx context.Context, a *Adapter, s *Store, args arguments) (any, error) {
	w, err := args.write("entry")
	if err != nil {
		return nil, err
	}
	at, err := s.Append(ctx, w)
	if err != nil {
		return nil, err
	}
	return AppendAnswer{true, at, a.count(Stats{Writes: 1})}, nil
}

func callGet(ctx context.Context, a *Adapter, s *Store, args arguments) (any, error) {
	key, err := args.key()
	if err != nil {
		return nil, err
	}
	r, found, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Found  bool    `json:"found"`
		Record *Record `json:"record"`
		Stats  *Stats  `json:"stats"`
	}{Found: found, Stats: a.count(Stats{Reads: 1})}
	if found {
		answer.Record = &r
	}
	return answer, nil
}

func callList(ctx context.Context, a *Adapter, s *Store, args arguments) (any, error) {
	q, err := args.query()
	if err != nil {
		return nil, err
	}
	entries, more, err := s.List(ctx, q)
	if err != nil {
		return nil, err
	}
	return ListAnswer{entries, more, a.count(Stats{Reads: int64(len(entries))})}, nil
}

func callDelete(ctx context.Context, a *Adapter, s *Store, args arguments) (any, error) {
	key, err := args.key()
	if err != nil {
		return nil, err
	}
	deleted, err := s.Delete(ctx, key)
	if err != nil {
		return nil, err
	}
	var removed int64
	if deleted {
		removed = 1
	}
	return DeleteAnswer{true, deleted, a.count(Stats{Writes: removed})}, nil
}

func callPrune(ctx context.Context, a *Adapter, s *Store, args arguments) (any, error) {
	namespace, given, err := args.optionalText(0, "namespace")
	if err != nil {
		return nil, err
	}
	if given && namespace == "" {
		return nil, &memory.FieldError{Field: "namespace", Reason: "must not be empty", Hint: "leave it out for all namespaces"}
	}
	pruned, err := s.Prune(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return PruneAnswer{true, pruned, a.count(Stats{Writes: pruned, Pruned: pruned})}, nil
}

func callStorePattern(ctx context.Context, a *Adapter, s *Store, args arguments) (any, error) {
	name, err := args.name(0)
	if err != nil {
		return nil, err
	}
	name, hash, at, err := s.StorePattern(ctx, name, args.at(1))
	if err != nil {
		return nil, err
	}
	return PatternAnswer{true, name, hash, at, a.count(Stats{Writes: 1})}, nil
}

func callRecallPattern(ctx context.Context, _ *Adapter, s *Store, args arguments) (any, error) {
	name, err := args.name(0)
	if err != nil {
		return nil, err
	}
	return s.RecallPattern(ctx, name) // no labels are written as null; it shows no totals and is not in them
}

// arguments are positional arguments as JSON.
type arguments []json.RawMessage

// at returns an argument; JSON null where it is missing.
func (args arguments) at(i int) json.RawMessage {
	if i >= len(args) {
		return json.RawMessage("null")
	}
	return args[i]
}

func (args arguments) text(i int, field string) (string, error) {
	if i >= len(args) {
		return "", &memory.FieldError{Field: field, Reason: "is missing", Hint: fmt.Sprintf("it is argument %d", i+1)}
	}
	s, err := decodeText(args[i])
	if err != nil {
		return "", &memory.FieldError{Field: field, Reason: err.Error()}
	}
	return s, nil
}

// optionalText reads a text; one that is missing or null was not given.
func (args arguments) optionalText(i int, field string) (s string, given bool, err error) {
	if isNull(args.at(i)) {
		return "", false, nil
	}
	s, err = args.text(i, field)
	return s, true, err
}

// name reads the name of a pattern. What is no text counts as Python prints it,
// null as blank.
func (args arguments) name(i int) (string, error) {
	if i >= len(args) {
		return "", &memory.FieldError{Field: "name", Reason: "is missing"}
	}
	return printed(args[i]), nil
}

func (args arguments) key() (Key, error) {
	var k Key
	for i, part := range []struct {
		field string
		to    *string
	}{{"namespace", &k.Namespace}, {"record_kind", &k.Kind}, {"record_id", &k.ID}} {
		s, err := args.text(i, part.field)
		if err != nil {
			return Key{}, err
		}
		*part.to = s
	}
	return k, nil
}

// write reads the arguments of put and append: namespace, kind, id, value, ttl?,
// metadata?
func (args arguments) write(field string) (Write, error) {
	key, err := args.key()
	if err != nil {
		return Write{}, err
	}
	if len(args) < 4 {
		return Write{}, &memory.FieldError{Field: field, Reason: "is missing", Hint: "it is argument 4"}
	}
	w := Write{Key: key, Value: args[3]}
	if ttl := args.at(4); !isNull(ttl) {
		seconds, err := decodeInteger(ttl)
		if err != nil {
			return Write{}, &memory.FieldError{Field: "ttl_seconds", Reason: err.Error() + ", or null"}
		}
		w.TTL = &seconds
	}
	if len(args) > 5 {
		w.Metadata = args[5]
	}
	return w, nil
}

// query reads the arguments of list: namespace, kind?, id prefix?, updated
// since?, filters?
func (args arguments) query() (Query, error) {
	namespace, err := args.text(0, "namespace")
	if err != nil {
		return Query{}, err
	}
	q := Query{Namespace: namespace}
	for i, part := range []struct {
		field string
		to    **string
	}{{"record_kind", &q.Kind}, {"record_id_prefix", &q.Prefix}, {"updated_since", &q.Since}} {
		s, given, err := args.optionalText(i+1, part.field)
		if err != nil {
			return Query{}, err
		}
		if given {
			*part.to = &s
		}
	}
	if filters := args.at(4); !isNull(filters) {
		if q.Filters, err = parseFilters(filters); err != nil {
			return Query{}, err
		}
	}
	return q, nil
}
