package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// potter is the agent_id of the demo's nodes.
const potter = "studio"

// demo builds a graph and tells what it does. Its text is the telling, its JSON
// the graph.
type demo struct {
	store  *graph.Store
	told   strings.Builder
	export graph.Export
}

// Text is what was told.
func (d *demo) Text() string { return d.told.String() }

// MarshalJSON writes the graph that was built.
func (d *demo) MarshalJSON() ([]byte, error) { return json.Marshal(d.export) }

func (d *demo) say(format string, args ...any) { fmt.Fprintf(&d.told, format+"\n", args...) }

func (d *demo) run(ctx context.Context) error {
	d.say("The memory of a potter's agent, invented, in a scratch graph that is thrown away afterwards.")
	for _, part := range []func(context.Context) error{d.episodes, d.facts, d.contradiction, d.pattern, d.patches, d.persona, d.searches, d.walks, d.drawing} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	d.say("\nThis is what a graph can do. Yours: openclawssy graph search, graph neighbours, graph path, graph export, graph view.")
	return nil
}

// add stores nodes and edges in one change, and lists them.
func (d *demo) add(ctx context.Context, nodes []*graph.Node, edges []*graph.Edge) error {
	return d.store.Update(ctx, graph.Write{}, func(tx *graph.Tx) error {
		for _, n := range nodes {
			n.AgentID, n.CreatedAt = potter, tx.Now()
			if _, err := tx.AddNode(n); err != nil {
				return err
			}
			d.say("   + %-14s %s", n.ID, n.Label)
		}
		for i, e := range edges {
			e.ID = fmt.Sprintf("%s-%s-%d", e.Src, e.Dst, i)
			if e.Confidence == 0 {
				e.Confidence = 1
			}
			if _, err := tx.AddEdge(e); err != nil {
				return err
			}
			d.say("   + %s -%s-> %s", e.Src, e.Type, e.Dst)
		}
		return nil
	})
}

func (d *demo) episodes(ctx context.Context) error {
	d.say("\n1. Episodic nodes: what happened. Each names the events that it rests on.")
	return d.add(ctx, []*graph.Node{
		{ID: "ep-market", Type: graph.Episodic, Label: "Market day: Mira bought two celadon bowls", Payload: []byte(`{"evidence":["EVT-4"],"amount":64}`), Tags: []string{"market"}},
		{ID: "ep-firing", Type: graph.Episodic, Label: "The firing of 3 March cracked four handles", Payload: []byte(`{"evidence":["EVT-9","EVT-10"]}`), Tags: []string{"kiln"}},
	}, nil)
}

func (d *demo) facts(ctx context.Context) error {
	d.say("\n2. Semantic nodes: what is known. Edges say where it comes from.")
	return d.add(ctx, []*graph.Node{
		{ID: "fact-ash", Type: graph.Semantic, Label: "Ash glaze is food safe", Payload: []byte(`{"item":"MEM-3","evidence":["EVT-2"]}`)},
		{ID: "fact-handles", Type: graph.Semantic, Label: "Handles crack when they dry fast", Payload: []byte(`{"item":"MEM-7","evidence":["EVT-10"]}`)},
		{ID: "fact-celadon", Type: graph.Semantic, Label: "Celadon (青磁) runs where it is thick", Payload: []byte(`{"item":"MEM-8"}`)},
	}, []*graph.Edge{
		{Src: "fact-handles", Dst: "ep-firing", Type: graph.LearnedFrom},
		{Src: "ep-market", Dst: "fact-celadon", Type: graph.References},
	})
}

func (d *demo) contradiction(ctx context.Context) error {
	d.say("\n3. A contradiction marks both of its ends; neither is deleted. A belief has a confidence.")
	err := d.add(ctx, []*graph.Node{{ID: "claim-lead", Type: graph.Semantic, Label: "Ash glaze leaches lead", Payload: []byte(`{"source":"a forum"}`)}},
		[]*graph.Edge{{Src: "claim-lead", Dst: "fact-ash", Type: graph.Contradicts}, {Src: "ep-market", Dst: "claim-lead", Type: graph.Believes, Meta: []byte(`{"confidence":0.2}`)}})
	if err != nil {
		return err
	}
	return d.store.View(ctx, func(v *graph.View) error {
		for _, id := range []string{"claim-lead", "fact-ash"} {
			d.say("   ! %-14s contradicted by %s", id, strings.Join(v.Node(id).ContradictedBy, ", "))
		}
		return nil
	})
}

func (d *demo) pattern(ctx context.Context) error {
	d.say("\n4. Procedural nodes: how it is done. A pattern is one node, with a node for each step.")
	return d.store.Update(ctx, graph.Write{}, func(tx *graph.Tx) error {
		id, err := tx.StorePattern(graph.Pattern{Name: "load-kiln", AgentID: potter, Tags: []string{"kiln"},
			Steps: []json.RawMessage{[]byte(`{"do":"place the shelves"}`), []byte(`{"do":"set cones 5, 6, 7"}`), []byte(`{"do":"close the door"}`)}})
		if err != nil {
			return err
		}
		_, err = tx.AddEdge(&graph.Edge{ID: "kiln-lesson", Src: id, Dst: "fact-handles", Type: graph.DerivedFrom, Confidence: 1})
		d.say("   + load-kiln      3 steps, derived from: Handles crack when they dry fast")
		return err
	})
}

func (d *demo) patches(ctx context.Context) error {
	d.say("\n5. Patch nodes: a pattern put to use under a name, in versions. The new one retires the old.")
	hooks := graph.NewHooks(memory.DefaultAgent, func(context.Context, memory.AgentID) (*graph.Store, func(), error) { return d.store, func() {}, nil }, graph.Host{}, nil, zerolog.Nop())
	for _, episodes := range [][]string{nil, {"ep-firing"}} {
		got, err := hooks.InstallPatch(ctx, potter, "firing-plan", json.RawMessage(`"load-kiln"`), episodes, false)
		if err != nil {
			return err
		}
		d.say("   + firing-plan    version %d, fitness %.2f, because of %d episodes", got.Record.PatchVersion, got.Record.Fitness, len(episodes))
	}
	return nil
}

func (d *demo) persona(ctx context.Context) error {
	d.say("\n6. Persona nodes: what the agent is like, and from what it became so.")
	return d.store.Update(ctx, graph.Write{}, func(tx *graph.Tx) error {
		_, t, err := tx.UpdateTrait(potter, graph.TraitUpdate{Name: "patient", Strength: 0.8, LearnedFrom: []string{"ep-firing"}})
		d.say("   + %-14s strength %.1f, learned from %s", t.TraitName, t.Strength, strings.Join(t.LearnedFrom, ", "))
		return err
	})
}

func (d *demo) searches(ctx context.Context) error {
	d.say("\n7. Search. In the order of insertion, any part of the text; ranked, the best first, in any script.")
	err := d.store.View(ctx, func(v *graph.View) error {
		for _, n := range v.Search(graph.Search{Query: "ash glaze", Limit: 5}) {
			d.say("   \"ash glaze\"          %-14s %s", n.ID, n.Label)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, words := range []string{"cracking", "青磁"} {
		found, err := d.store.Ranked(ctx, graph.RankedQuery{Words: words, Limit: 2})
		if err != nil {
			return err
		}
		for _, r := range found {
			d.say("   %-20s %-14s %s", words+", ranked", r.Node.ID, r.Node.Label)
		}
	}
	return nil
}

func (d *demo) walks(ctx context.Context) error {
	d.say("\n8. Walks: two steps around a fact, and the shortest way from a claim to a fact.")
	return d.store.View(ctx, func(v *graph.View) error {
		around, err := v.Neighbours("fact-handles", 2, 50, graph.Walk{})
		if err != nil {
			return err
		}
		for _, n := range around.Nodes {
			d.say("   %d  %-10s %s", n.Depth, n.Node.Type, n.Node.Label)
		}
		p, err := v.Path("claim-lead", "fact-celadon", graph.Walk{})
		if err != nil {
			return err
		}
		for i, n := range p.Nodes {
			if i > 0 {
				d.say("      %s", p.Edges[i-1].Type)
			}
			d.say("   %s", n.Label)
		}
		return nil
	})
}

func (d *demo) drawing(ctx context.Context) error {
	return d.store.View(ctx, func(v *graph.View) error {
		d.export = v.Export(d.store.Limits())
		d.say("\n9. Export: %d nodes, %d edges; as JSON, DOT, or Mermaid for Markdown:\n", len(d.export.Nodes), len(d.export.Edges))
		d.told.WriteString(graph.Mermaid(d.export.Nodes, d.export.Edges))
		return nil
	})
}
