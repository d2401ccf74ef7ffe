package report

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// most is how many lines of one sort a report has.
const most = 10

// looked is how many memories that need a person are looked at to find those.
const looked = 200

// gathering is a report in the making.
type gathering struct {
	*Service
	ctx   context.Context
	store *working.Store
	r     *Report
}

// moves counts and lists what became of items: since the report's beginning, or
// after the events that the report before has told of, whatever the clock said.
func (g *gathering) moves() error {
	first, since := g.r.Until, g.r.From
	if g.r.Seq > 0 {
		since = time.UnixMilli(0)
	}
	err := g.store.Moves(g.ctx, since, g.r.Seq, func(m working.Move) error {
		g.r.Seq = max(g.r.Seq, m.Last.Seq)
		if m.Last.At.Before(first) {
			first = m.Last.At
		}
		g.sort(m)
		return nil
	})
	if err != nil {
		return err
	}
	if g.r.From.IsZero() {
		g.r.From = first
	}
	return g.replaced()
}

// sort puts an item that has changed where it belongs.
func (g *gathering) sort(m working.Move) {
	c, line := &g.r.Counts, g.line(m.Item)
	before := memory.Status("")
	if m.Before != nil {
		before = m.Before.Status
	}
	isNew := m.New || before == ""
	switch m.Item.Status {
	case memory.Forgotten:
		c.Forgotten++
	case memory.Superseded:
		line.By, line.ByID = m.Item.SupersededBy, m.Item.SupersededBy
		if before == memory.Superseded {
			return
		}
		if strings.HasPrefix(m.Item.Reason, working.SaysTheSame) {
			c.Merged++
			add(&g.r.Merged, line)
			return
		}
		c.Superseded++
		add(&g.r.Superseded, line)
	case memory.Archived:
		line.Why = g.clean(m.Item.Reason)
		switch {
		case before == memory.Archived:
		case m.Last.Action == "reject":
			c.Rejected++
		default:
			c.Archived++
			add(&g.r.Archived, line)
		}
	case memory.Quarantined:
		if before == memory.Quarantined {
			return
		}
		line.Why = g.clean(m.Item.Reason)
		c.Quarantined++
		add(&g.r.Quarantined, line)
	case memory.Active:
		switch {
		case isNew:
			c.Learned++
			add(&g.r.Learned, line)
		case before == memory.Quarantined:
			c.Approved++
		case before != memory.Active:
			c.Restored++
			add(&g.r.Restored, line)
		case m.Before.Content != m.Item.Content || m.Before.Title != m.Item.Title || m.Before.Kind != m.Item.Kind || m.Before.Importance != m.Item.Importance:
			if line.Before = g.clean(m.Before.Content); line.Before == line.Text {
				line.Before = ""
			}
			if m.Before.Importance != m.Item.Importance {
				line.Why = fmt.Sprintf("importance %d, before %d", m.Item.Importance, m.Before.Importance)
			}
			c.Changed++
			add(&g.r.Changed, line)
		case len(m.Item.Evidence) > len(m.Before.Evidence) || m.Item.Confidence > m.Before.Confidence:
			c.Confirmed++
		}
	}
}

// add keeps the most important lines, of equal ones the first.
func add(list *[]Line, line Line) {
	at, _ := slices.BinarySearchFunc(*list, line, func(have, line Line) int {
		if have.Importance >= line.Importance {
			return -1
		}
		return 1
	})
	if at < most {
		*list = slices.Insert((*list)[:min(len(*list), most-1)], at, line)
	}
}

func (g *gathering) line(it memory.Item) Line {
	return Line{Handle: it.Handle, ID: it.ID, Kind: it.Kind, Importance: it.Importance, Text: g.clean(it.Content)}
}

// replaced looks up what took the place of others.
func (g *gathering) replaced() error {
	var ids []string
	for _, list := range [][]Line{g.r.Merged, g.r.Superseded} {
		for _, l := range list {
			ids = append(ids, l.ByID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	items, err := g.store.ByID(g.ctx, ids)
	if err != nil {
		return err
	}
	now := map[string]memory.Item{}
	for _, it := range items {
		now[it.ID] = it.Item
	}
	for _, list := range [][]Line{g.r.Merged, g.r.Superseded} {
		for i := range list {
			l := &list[i]
			l.By = now[l.ByID].Handle
			// What it said before stands in the line already.
			content, _ := memory.CutNote(now[l.ByID].Content)
			if l.ByText = g.clean(content); l.ByText == l.Text {
				l.ByText = ""
			}
		}
	}
	return nil
}

func (g *gathering) cost() error {
	var err error
	if g.r.Cost.Distilling, err = g.store.Cost(g.ctx, g.r.From, g.r.Until); err != nil {
		return err
	}
	g.r.Cost.Model, err = g.opts.Spent(g.r.Agent, g.r.From, g.r.Until)
	return err
}

func (g *gathering) condition() error {
	var err error
	if g.r.Condition, err = g.opts.Condition(g.ctx, g.r.Agent); err != nil {
		return err
	}
	if g.r.Condition.Overdue == nil {
		g.r.Condition.Overdue = []string{}
	}
	if g.r.Condition.Problems == nil {
		g.r.Condition.Problems = []Problem{}
	}
	for i := range g.r.Condition.Problems {
		p := &g.r.Condition.Problems[i]
		p.Text = oneLine(g.opts.Redact.Text(p.Text))
	}
	return nil
}

// growth fills in the chart, without the weeks before the first memory.
func (g *gathering) growth() error {
	var at []time.Time
	for i := lookBack - 1; i >= 0; i-- {
		at = append(at, g.r.Until.Add(-time.Duration(i)*week))
	}
	counts, err := g.store.ActiveAt(g.ctx, at)
	if err != nil {
		return err
	}
	for i, n := range counts {
		if n > 0 || len(g.r.Growth) > 0 {
			g.r.Growth = append(g.r.Growth, Point{at[i], n})
		}
	}
	dir, err := g.opts.Dir(g.r.Agent)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return skipGone(err)
		}
		st, err := d.Info()
		if err != nil {
			return skipGone(err)
		}
		g.r.Bytes += st.Size()
		return nil
	})
}

// decide lists what needs a person: what is marked or in quarantine, most important
// first, then events that are over their retention.
func (g *gathering) decide() error {
	items, counts, err := g.store.ForReview(g.ctx, looked)
	if err != nil {
		return err
	}
	g.r.Waiting = Waiting{Quarantine: counts.Quarantined, Verify: counts.Marked}
	if g.r.Waiting.Messages, err = g.opts.Held(g.ctx, g.r.Agent); err != nil {
		return err
	}
	marked := map[string]memory.Item{}
	for _, it := range items {
		if it.Status == memory.Active {
			marked[it.Handle] = it
		}
	}
	asked := map[string]bool{}
	for _, it := range items {
		if len(g.r.Decide) == most {
			break
		}
		if asked[it.Handle] {
			continue
		}
		asked[it.Handle] = true
		g.r.Decide = append(g.r.Decide, g.question(it, marked, asked))
	}
	return g.expired()
}

// question is the decision about an item. One that contradicts a single other is
// asked about together with it.
func (g *gathering) question(it memory.Item, marked map[string]memory.Item, asked map[string]bool) Decision {
	d := Decision{About: []Line{g.line(it)}}
	if it.Status == memory.Quarantined {
		d.Question = "Is this right? It waits in quarantine: " + g.clean(it.Reason)
		d.Choices = []Choice{{"yes", g.command("approve", it.Handle)}, {"no", g.command("reject", it.Handle)}}
		return d
	}
	if other, is := contradicted(it, marked); is && !asked[other.Handle] {
		asked[other.Handle] = true
		d.About = append(d.About, g.line(other))
		d.Question = "These do not go together. Which one is wrong?"
		d.Choices = []Choice{{it.Handle, g.command("reject", it.Handle)}, {other.Handle, g.command("reject", other.Handle)},
			{"none", g.command("approve", it.Handle) + " && " + g.command("approve", other.Handle)}}
		return d
	}
	d.Question = "Is this still right? " + strings.ToUpper(it.Verify[0][:1]) + g.clean(strings.Join(it.Verify, "; "))[1:]
	d.Choices = []Choice{{"yes", g.command("approve", it.Handle)}, {"no", g.command("reject", it.Handle)}}
	return d
}

// contradicted returns the one item that it is marked to contradict, where nothing
// else is in doubt about it.
func contradicted(it memory.Item, marked map[string]memory.Item) (memory.Item, bool) {
	if len(it.Verify) != 1 {
		return memory.Item{}, false
	}
	handle, is := strings.CutPrefix(it.Verify[0], memory.MarkContradicts)
	other, known := marked[handle]
	return other, is && known
}

func (g *gathering) expired() error {
	n, keepFrom, err := g.opts.Expired(g.ctx, g.r.Agent)
	if err != nil || n == 0 {
		return err
	}
	from := keepFrom.UTC().Format(time.DateOnly)
	g.r.Decide = append(g.r.Decide, Decision{About: []Line{}, Question: fmt.Sprintf("%d events are from before %s, longer ago than events.retention_days keeps them. Erase them, and what was learned from them?", n, from),
		Choices: []Choice{{"show what would go", g.toType("memory erase --before " + from)}, {"yes, for good", g.toType("memory erase --before " + from + " --yes")}}})
	return nil
}

func (g *gathering) command(verb, handle string) string {
	return g.toType("memory " + verb + " " + handle)
}

// toType is what to type for a command on the report's agent.
func (g *gathering) toType(command string) string { return Command(g.r.Agent, command) }

// Command is what to type for a command on an agent.
func Command(agent memory.AgentID, command string) string {
	if agent == memory.DefaultAgent {
		return "openclawssy " + command
	}
	return "openclawssy --agent " + string(agent) + " " + command
}
