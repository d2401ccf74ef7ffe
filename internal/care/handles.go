package care

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Records finds a record by its handle; nil where there is no record store.
type Records func(ctx context.Context, agent memory.AgentID, handle string) (any, error)

// Handles shows and explains whatever has a handle: items (MEM), episodes (EVT)
// and records (REC).
type Handles struct {
	items    *working.Service
	stores   memory.Borrow[*working.Store]
	archives memory.Borrow[*archive.Store]
	logs     memory.Borrow[*events.Reader]
	records  Records
}

// NewHandles returns the service. archives lends an archive that is up to date.
func NewHandles(items *working.Service, stores memory.Borrow[*working.Store], archives memory.Borrow[*archive.Store], logs memory.Borrow[*events.Reader], records Records) *Handles {
	return &Handles{items: items, stores: stores, archives: archives, logs: logs, records: records}
}

// Ops returns the operations this service offers.
func (h *Handles) Ops() []op.Op {
	return []op.Op{
		op.New("memory.get", "Show one memory with its evidence, one episode, or one record.", op.Read, h.Get).WithExample(`{"handle": "MEM-1"}`),
		op.New("memory.explain", "Show why something is known: what was said, when, and what became of it.", op.Read, h.Explain).WithExample(`{"handle": "MEM-1"}`),
	}
}

// HandleRequest is the input of memory.get and memory.explain.
type HandleRequest struct {
	Handle string `json:"handle" cli:"arg" jsonschema:"MEM-n (a memory), EVT-n (what was said) or REC-n (a record)"`
}

// Got is the output of memory.get; the member of the handle's sort is set.
type Got struct {
	*working.GetResult
	Episode *memory.Episode `json:"episode,omitempty"`
	Record  any             `json:"record,omitempty"`
}

// Explained is the output of memory.explain; the members of the handle's sort
// are set.
type Explained struct {
	*working.Explanation
	Episode *memory.Episode `json:"episode,omitempty"`
	Turn    string          `json:"turn,omitempty" jsonschema:"the whole turn that the episode is a passage of"`
	Items   []string        `json:"items,omitempty" jsonschema:"handles of the memories that rest on the turn"`
	Record  any             `json:"record,omitempty"`
}

// Get returns what a handle stands for.
func (h *Handles) Get(ctx context.Context, agent memory.AgentID, in HandleRequest) (Got, error) {
	switch sort(in.Handle) {
	case "EVT":
		e, err := h.episode(ctx, agent, in.Handle)
		return Got{Episode: &e}, err
	case "REC":
		rec, err := h.record(ctx, agent, in.Handle)
		return Got{Record: rec}, err
	}
	s, release, err := h.stores(ctx, agent)
	if err != nil {
		return Got{}, err
	}
	defer release()
	got, err := s.Get(ctx, working.GetRequest{Handle: in.Handle})
	return Got{GetResult: &got}, err
}

// Explain says why a handle's content is known.
func (h *Handles) Explain(ctx context.Context, agent memory.AgentID, in HandleRequest) (Explained, error) {
	switch sort(in.Handle) {
	case "EVT":
		return h.explainEpisode(ctx, agent, in.Handle)
	case "REC":
		rec, err := h.record(ctx, agent, in.Handle)
		return Explained{Record: rec}, err
	}
	x, err := h.items.Explain(ctx, agent, working.GetRequest{Handle: in.Handle})
	if err != nil {
		return Explained{}, err
	}
	return Explained{Explanation: &x}, h.addRuns(ctx, agent, x.Evidence)
}

// addRuns fills in the runs in which things were said, out of the log.
func (h *Handles) addRuns(ctx context.Context, agent memory.AgentID, cited []working.Cited) error {
	log, release, err := h.logs(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	for i := range cited {
		c := &cited[i]
		found, _, err := log.Read(ctx, memory.Cursor{Seq: c.Seq - 1}, 1)
		if err != nil {
			return err
		}
		if len(found) == 1 && found[0].ID == c.EventID && !c.Suppressed {
			c.RunID, c.SessionID = found[0].RunID, found[0].SessionID
		}
	}
	return nil
}

// sort is what stands before the dash, in capitals.
func sort(handle string) string {
	before, _, _ := strings.Cut(handle, "-")
	return strings.ToUpper(before)
}

func (h *Handles) episode(ctx context.Context, agent memory.AgentID, handle string) (memory.Episode, error) {
	a, release, err := h.archives(ctx, agent)
	if err != nil {
		return memory.Episode{}, err
	}
	defer release()
	return a.Get(ctx, strings.ToUpper(handle))
}

func (h *Handles) record(ctx context.Context, agent memory.AgentID, handle string) (any, error) {
	if h.records == nil {
		return nil, memory.Errorf(memory.ErrNotFound, "there is no record %s", handle)
	}
	return h.records(ctx, agent, strings.ToUpper(handle))
}

func (h *Handles) explainEpisode(ctx context.Context, agent memory.AgentID, handle string) (Explained, error) {
	a, release, err := h.archives(ctx, agent)
	if err != nil {
		return Explained{}, err
	}
	defer release()
	e, err := a.Get(ctx, strings.ToUpper(handle))
	if err != nil {
		return Explained{}, err
	}
	passages, err := a.ByEvent(ctx, e.EventID)
	if err != nil {
		return Explained{}, err
	}
	x := Explained{Episode: &e}
	for i, p := range passages {
		if i > 0 {
			x.Turn += " "
		}
		x.Turn += p.Text
	}
	x.Items, err = h.resting(ctx, agent, e.EventID)
	return x, err
}

// resting returns the handles of the items that rest on an event.
func (h *Handles) resting(ctx context.Context, agent memory.AgentID, eventID string) ([]string, error) {
	s, release, err := h.stores(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	return s.RestingOn(ctx, eventID)
}

// Text shows what a handle stands for to a person.
func (g Got) Text() string {
	switch {
	case g.Episode != nil:
		return g.Episode.Line() + "\n"
	case g.GetResult != nil:
		var sb strings.Builder
		sb.WriteString(g.Item.Line() + "\n")
		for _, e := range g.Item.Evidence {
			fmt.Fprintf(&sb, "  rests on %s: “%s”\n", source(e), e.Quote)
		}
		return sb.String()
	}
	return recordText(g.Record)
}

// recordText shows a record as JSON: its payload is of its owner's making.
func recordText(r any) string {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "the record cannot be shown: " + err.Error() + "\n"
	}
	return string(text) + "\n"
}

// Text shows the explanation to a person.
func (x Explained) Text() string {
	var sb strings.Builder
	switch {
	case x.Episode != nil:
		sb.WriteString(x.Episode.Line() + "\n")
		if x.Turn != x.Episode.Text {
			fmt.Fprintf(&sb, "  the whole turn: %s\n", x.Turn)
		}
		if len(x.Items) > 0 {
			fmt.Fprintf(&sb, "  memories that rest on it: %s\n", strings.Join(x.Items, ", "))
		}
	case x.Explanation != nil:
		x.itemText(&sb)
	default:
		sb.WriteString(recordText(x.Record))
	}
	return sb.String()
}

func (x Explained) itemText(sb *strings.Builder) {
	sb.WriteString(x.Item.Line() + "\n")
	if c := x.Checkpoint; c != nil {
		fmt.Fprintf(sb, "  distilled %s by %s (%s), %d tokens in and %d out: openclawssy memory checkpoint show %s\n",
			c.At.UTC().Format("2006-01-02 15:04 UTC"), c.Model, c.Mode, c.TokensIn, c.TokensOut, c.ID)
	}
	for _, c := range x.Evidence {
		when := ""
		if c.Time != nil {
			when = c.Time.Format("2006-01-02 15:04") + ", "
		}
		fmt.Fprintf(sb, "  because %s%s said: “%s” (%s%s)\n", when, c.Speaker, c.Quote, source(c.Evidence), where(c)+suppressed(c.Suppressed))
	}
	for _, it := range x.Earlier {
		fmt.Fprintf(sb, "  took the place of %s: %s\n", it.Handle, it.Content)
	}
	for _, it := range x.Later {
		fmt.Fprintf(sb, "  was replaced by %s: %s\n", it.Handle, it.Content)
	}
	if n := len(x.Revisions); n > 1 {
		fmt.Fprintf(sb, "  %d versions: openclawssy memory history %s\n", n, x.Item.Handle)
	}
}

// where names the session and the run of a citation.
func where(c working.Cited) string {
	var out string
	if c.SessionID != "" {
		out += ", session " + c.SessionID
	}
	if c.RunID != "" {
		out += ", " + c.RunID
	}
	return out
}

func suppressed(yes bool) string {
	if yes {
		return ", no longer recalled"
	}
	return ""
}

// source names an event as a person finds it: by the importer's id where there
// is one.
func source(e memory.Evidence) string {
	if e.SourceID != "" {
		return "source " + e.SourceID + ", event " + fmt.Sprint(e.Seq)
	}
	return "event " + fmt.Sprint(e.Seq)
}
