package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// AdapterName is the name of the adapter in the contract.
const AdapterName = "ainl_graph_memory"

// Adapter speaks the contract's verbs on one agent's graph. It is safe for
// concurrent use.
type Adapter struct {
	*Hooks
	read memory.Borrow[*Store]

	mu    sync.Mutex
	label string // agent_id of whoever gives none: that of the last boot
}

// NewAdapter returns an adapter. read answers ErrNotFound where there is no
// graph yet, and reading then finds nothing; write makes it.
func NewAdapter(agent memory.AgentID, read, write memory.Borrow[*Store], host Host, now func() time.Time, log zerolog.Logger) *Adapter {
	return &Adapter{Hooks: NewHooks(agent, write, host, now, log), read: read, label: DefaultLabel}
}

// Boot is Hooks.Boot; the agent is then the one of calls that name none.
func (a *Adapter) Boot(ctx context.Context, agent string) (nodeID string, err error) {
	a.mu.Lock()
	a.label = agent
	a.mu.Unlock()
	return a.Hooks.Boot(ctx, agent)
}

// Verbs are the contract's verbs. In each, dots stand for underscores, and case
// and outer blanks do not count.
var Verbs = []string{"memory_recall", "memory_search", "export_graph", "memory_store_pattern", "memory_pattern_recall", "pattern_recall",
	"memory_execute", "memory_patch", "graph_patch", "persona_update", "persona_get", "persona_load"}

// verbs holds the function of each verb, and of the dotted names that the
// contract's engine resolves before it calls the adapter.
var verbs = map[string]func(a *Adapter, ctx context.Context, c call) (any, error){
	"memory_recall": (*Adapter).recall, "memory_search": (*Adapter).search,
	"export_graph": (*Adapter).export, "memory_export_graph": (*Adapter).export, "memory_export": (*Adapter).export,
	"memory_store_pattern": (*Adapter).storePattern, "memory_store": (*Adapter).storePattern,
	"memory_pattern_recall": (*Adapter).patternRecall, "pattern_recall": (*Adapter).patternRecall,
	"memory_execute": (*Adapter).execute, "memory_patch": (*Adapter).patch, "graph_patch": (*Adapter).patch,
	"persona_update": (*Adapter).personaUpdate, "persona_get": (*Adapter).personaGet, "persona_load": (*Adapter).personaLoad,
}

// Call runs a verb. args is a list or an object, callContext an object with
// agent_id and dry_run; both may be nil. The answer is a value for JSON. An
// error has changed nothing.
func (a *Adapter) Call(ctx context.Context, verb string, args, callContext json.RawMessage) (any, error) {
	name := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(verb)), ".", "_")
	run, known := verbs[name]
	if !known {
		hint := "the verbs are " + strings.Join(Verbs, ", ")
		if near := memory.Nearest(name, Verbs); near != "" {
			hint = "did you mean " + near + "?"
		}
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s has no verb %s", AdapterName, quoted(verb)), hint)
	}
	c, err := a.callOf(args, callContext)
	if err != nil {
		return nil, err
	}
	return run(a, ctx, c)
}

// call is what a verb was given.
type call struct {
	list  []gjson.Result // positional arguments
	named gjson.Result   // an object of arguments; it is the first of the list if that is one
	agent string
	dry   bool
}

func (a *Adapter) callOf(args, callContext json.RawMessage) (call, error) {
	var c call
	given, err := valueOf("args", args)
	if err != nil {
		return c, err
	}
	switch {
	case given.IsArray():
		c.list = given.Array()
		if len(c.list) > 0 && c.list[0].IsObject() {
			c.named = c.list[0]
		}
	case given.IsObject():
		c.named = given
	case given.Type != gjson.Null:
		return c, &memory.FieldError{Field: "args", Reason: "must be a list or an object"}
	}
	about, err := valueOf("context", callContext)
	if err != nil {
		return c, err
	}
	if about.Type != gjson.Null && !about.IsObject() {
		return c, &memory.FieldError{Field: "context", Reason: "must be an object"}
	}
	a.mu.Lock()
	c.agent = printedOr(about.Get("agent_id"), a.label)
	a.mu.Unlock()
	c.dry = a.host.DryRun || isDry(about.Get("dry_run"))
	return c, nil
}

// valueOf reads a value of JSON; nil stands for null.
func valueOf(field string, raw json.RawMessage) (gjson.Result, error) {
	if len(raw) == 0 {
		return gjson.Result{}, nil
	}
	return parseRow(field, raw)
}

// DryRun reports whether a call's context asks for a dry run. It may be nil.
func DryRun(callContext json.RawMessage) (bool, error) {
	about, err := valueOf("context", callContext)
	return isDry(about.Get("dry_run")), err
}

// isDry reads the dry_run of a call's context. Values that are not known leave
// it off.
func isDry(v gjson.Result) bool {
	switch v.Type {
	case gjson.True:
		return true
	case gjson.Number:
		return v.Num == 1
	case gjson.String:
		switch v.Str {
		case "1", "true", "True", "yes", "on":
			return true
		}
	}
	return false
}

// at returns a positional argument; one that does not exist where there are
// fewer.
func (c call) at(i int) gjson.Result {
	if i >= len(c.list) {
		return gjson.Result{}
	}
	return c.list[i]
}

// arg returns an argument by its name, else by its position.
func (c call) arg(name string, i int) gjson.Result {
	if v := c.named.Get(name); v.Exists() && v.Type != gjson.Null {
		return v
	}
	return c.at(i)
}

// view calls fn with the graph, an empty one where there is none yet.
func (a *Adapter) view(ctx context.Context, fn func(*View, Limits) error) error {
	return viewOf(ctx, a.read, a.agent, a.host, fn)
}

func viewOf(ctx context.Context, read memory.Borrow[*Store], agent memory.AgentID, host Host, fn func(*View, Limits) error) error {
	s, release, err := read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return fn(&View{state: newState()}, host.limits())
	}
	if err != nil {
		return err
	}
	defer release()
	return s.View(ctx, func(v *View) error { return fn(v, s.Limits()) })
}

// failed is the answer to a question that has none. It is no failure of a call.
type failed struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

func (a *Adapter) recall(ctx context.Context, c call) (any, error) {
	id := c.arg("node_id", 0)
	if !id.Exists() {
		return nil, &memory.FieldError{Field: "node_id", Reason: "is missing", Hint: "it is the first argument"}
	}
	text := printed(id)
	var answer any = map[string]string{"error": "not found"}
	err := a.view(ctx, func(v *View, _ Limits) error {
		if n := v.Node(text); n != nil {
			answer = n
		}
		return nil
	})
	return answer, err
}

// searchAnswer is the answer of memory_search.
type searchAnswer struct {
	Results []*Node `json:"results"`
	Count   int     `json:"count"`
}

func (a *Adapter) search(ctx context.Context, c call) (any, error) {
	q := Search{Limit: 10}
	if v := c.searchArg("query", 0); v.Type != gjson.Null {
		q.Query = printed(v)
	}
	q.Type, q.AgentID = printedOr(c.searchArg("node_type", 1), ""), printedOr(c.searchArg("agent_id", 2), "")
	if v := c.searchArg("limit", 3); v.Exists() {
		limit, err := integer(v)
		if err != nil {
			return nil, err
		}
		q.Limit = limit
	}
	answer := searchAnswer{Results: []*Node{}}
	err := a.view(ctx, func(v *View, _ Limits) error {
		answer.Results = v.Search(q)
		return nil
	})
	answer.Count = len(answer.Results)
	return answer, err
}

// searchArg is arg for a call whose first argument is no object in the list.
func (c call) searchArg(name string, i int) gjson.Result {
	if c.named.Exists() {
		return c.named.Get(name)
	}
	return c.at(i)
}

// integer reads a number of results, also from a text.
func integer(v gjson.Result) (int, error) {
	wrong := &memory.FieldError{Field: "limit", Reason: "must be an integer that is not negative"}
	f, ok := numberOf(v)
	if !ok || f < 0 {
		return 0, wrong
	}
	if v.Type == gjson.String {
		if _, err := strconv.ParseInt(strings.TrimSpace(v.Str), 10, 64); err != nil {
			return 0, wrong
		}
	}
	return int(min(f, math.MaxInt32)), nil
}

func (a *Adapter) export(ctx context.Context, _ call) (any, error) {
	var e Export
	err := a.view(ctx, func(v *View, l Limits) error {
		e = v.Export(l)
		return nil
	})
	return e, err
}

func (a *Adapter) storePattern(ctx context.Context, c call) (any, error) {
	p, err := c.pattern()
	if err != nil {
		return nil, err
	}
	answer := StoredPattern{StepCount: len(p.Steps)}
	err = a.update(ctx, c.dry, func(tx *Tx) error {
		var err error
		answer.NodeID, err = tx.StorePattern(p)
		return err
	})
	return answer, err
}

// pattern reads the arguments of memory_store_pattern.
func (c call) pattern() (Pattern, error) {
	name, steps, agent, tags := c.at(0), c.at(1), c.at(2), c.at(3)
	single := false // whether a value that is no list is one step
	if c.named.Exists() {
		name, steps, agent, tags = c.named.Get("pattern_name"), c.named.Get("value"), c.named.Get("agent_id"), c.named.Get("tags")
		if !truthy(name) {
			name = c.named.Get("label")
		}
		if single = steps.Type != gjson.Null; !single {
			steps = c.named.Get("steps")
			single = truthy(steps)
		}
	} else if len(c.list) < 4 {
		return Pattern{}, &memory.FieldError{Field: "args", Reason: "must have label, steps, agent_id and tags"}
	}
	p := Pattern{Name: printedOr(name, ""), AgentID: printedOr(agent, c.agent)}
	switch {
	case steps.IsArray():
		p.Steps = itemsOf(steps)
	case !c.named.Exists():
		return Pattern{}, &memory.FieldError{Field: "steps", Reason: "must be a list"}
	case single:
		p.Steps = []json.RawMessage{json.RawMessage(steps.Raw)}
	}
	if tags.IsArray() {
		for _, tag := range tags.Array() {
			p.Tags = append(p.Tags, printed(tag))
		}
	}
	if c.named.Exists() {
		p.Name = strings.TrimSpace(p.Name)
	}
	return p, nil
}

// recalledPattern is the answer of memory_pattern_recall.
type recalledPattern struct {
	OK          bool            `json:"ok"`
	PatternName string          `json:"pattern_name"`
	Payload     json.RawMessage `json:"payload"`
	NodeID      string          `json:"node_id"`
	StepsHint   json.RawMessage `json:"steps_hint"`
}

func (a *Adapter) patternRecall(ctx context.Context, c call) (any, error) {
	name := strings.TrimSpace(printedOr(c.arg("pattern_name", 0), ""))
	if name == "" {
		return failed{Error: "pattern_name required"}, nil
	}
	var answer any = failed{Error: "pattern " + quoted(name) + " not found"}
	err := a.view(ctx, func(v *View, _ Limits) error {
		if n := v.Pattern(c.agent, name); n != nil {
			hint := json.RawMessage("[]")
			if given := gjson.GetBytes(n.Payload, "steps_hint"); given.IsArray() {
				hint = json.RawMessage(given.Raw)
			}
			answer = recalledPattern{true, name, appendObject(nil, n.Payload), n.ID, hint}
		}
		return nil
	})
	return answer, err
}

// executed is the answer of memory_execute.
type executed struct {
	OK          bool              `json:"ok"`
	Steps       []json.RawMessage `json:"steps"`
	PatternName string            `json:"pattern_name"`
	StepCount   int               `json:"step_count"`
}

func (a *Adapter) execute(ctx context.Context, c call) (any, error) {
	var answer any
	err := a.view(ctx, func(v *View, _ Limits) error {
		p, err := v.resolve(c.agent, c.arg("pattern", 0))
		if err != nil {
			answer = struct {
				failed
				Steps []json.RawMessage `json:"steps"`
			}{failed{Error: err.Error()}, []json.RawMessage{}}
			return nil
		}
		answer = executed{true, p.steps, p.name, len(p.steps)}
		return nil
	})
	return answer, err
}

// patched is the answer of memory_patch.
type patched struct {
	OK            bool              `json:"ok"`
	LabelName     string            `json:"label_name"`
	Steps         []json.RawMessage `json:"steps"`
	PatternName   string            `json:"pattern_name"`
	StepCount     int               `json:"step_count"`
	NodeID        string            `json:"node_id"`
	PatchVersion  int64             `json:"patch_version"`
	ParentPatchID *string           `json:"parent_patch_id"`
}

func (a *Adapter) patch(ctx context.Context, c call) (any, error) {
	var episodes []string
	if v := c.arg("source_episode_ids", 2); v.IsArray() {
		for _, id := range v.Array() {
			episodes = append(episodes, printed(id))
		}
	} else if truthy(v) {
		episodes = []string{printed(v)}
	}
	got, err := a.InstallPatch(ctx, c.agent, printedOr(c.arg("label_name", 1), ""), json.RawMessage(cmp.Or(c.arg("pattern", 0).Raw, "null")), episodes, c.dry)
	var why unresolved
	if errors.As(err, &why) {
		return failed{Error: why.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	answer := patched{true, got.Label, got.Steps, got.Pattern, len(got.Steps), got.Record.NodeID, got.Record.PatchVersion, nil}
	if got.Record.ParentPatchID != "" {
		answer.ParentPatchID = &got.Record.ParentPatchID
	}
	return answer, nil
}

func (a *Adapter) personaUpdate(ctx context.Context, c call) (any, error) {
	u, err := traitUpdateFrom(c.named)
	if err != nil {
		return nil, err
	}
	id, t, err := a.UpdateTrait(ctx, c.agent, u, c.dry)
	if err != nil {
		return nil, err
	}
	return TraitAnswer{true, id, t}, nil
}

func (a *Adapter) personaGet(ctx context.Context, c call) (any, error) {
	var t Trait
	err := a.view(ctx, func(v *View, _ Limits) error {
		var err error
		name := ""
		if given := c.named.Get("trait_name"); given.Exists() {
			name = printed(given)
		}
		t, err = v.Trait(c.agent, name)
		return err
	})
	t.EdgeType = "" // the contract leaves it out here
	return t, err
}

func (a *Adapter) personaLoad(ctx context.Context, c call) (any, error) {
	var answer PersonaAnswer
	err := a.view(ctx, func(v *View, l Limits) error {
		answer.Traits = v.Traits(c.agent, l.PersonaTraits)
		answer.Context = contextOf(answer.Traits)
		return nil
	})
	return answer, err
}
