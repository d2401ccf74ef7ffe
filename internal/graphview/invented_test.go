package graphview

import (
	"fmt"
	"math/rand/v2"
)

type (
	node = map[string]any
	edge = map[string]any
)

// invented is a graph for tests: its shape on the wire.
type invented struct {
	Nodes []node `json:"nodes"`
	Edges []edge `json:"edges"`
}

func (g *invented) node(id, kind, agent, label string, at int, payload any, tags ...string) {
	if tags == nil {
		tags = []string{}
	}
	g.Nodes = append(g.Nodes, node{"id": id, "node_type": kind, "agent_id": agent, "label": label, "created_at": 1_767_600_000 + 3600*at,
		"payload": payload, "tags": tags, "ttl": nil, "contradicted_by": []string{}})
}

func (g *invented) edge(src, dst, kind string) {
	g.Edges = append(g.Edges, edge{"id": fmt.Sprintf("edge_%d", len(g.Edges)), "src": src, "dst": dst, "edge_type": kind, "label": "", "confidence": 1.0, "meta": node{}})
}

func (g *invented) contradict(a, b string) {
	g.edge(a, b, "contradicts")
	for _, n := range g.Nodes {
		switch n["id"] {
		case a:
			n["contradicted_by"] = append(n["contradicted_by"].([]string), b)
		case b:
			n["contradicted_by"] = append(n["contradicted_by"].([]string), a)
		}
	}
}

// pottery is what the agents of a potter remember of one spring.
func pottery() invented {
	var g invented
	random := rand.New(rand.NewPCG(7, 11))
	pick := func(prefix string, n int) string { return fmt.Sprint(prefix, random.IntN(n)) }
	facts := []string{"Cone 6 needs 1222 °C", "Celadon runs when thick", "The kiln has 3 shelves", "Porcelain shrinks by 14 %", "Market is on Saturday", "Mira takes two cups", "Ash glaze is food safe",
		"The wheel squeaks at low speed", "Clay comes from Westerwald", "Bisque at 960 °C", "Orders over 200 € ship free", "The studio opens at nine", "Tenmoku breaks red on edges", "Handles crack when dried fast",
		"Jon prefers stoneware", "The gallery keeps 40 %", "Rain slows drying", "Shino wants reduction", "Glaze bucket 4 is empty", "陶芸 means ceramics"}
	for i, f := range facts {
		g.node(fmt.Sprint("fact", i), "semantic", "studio", f, 30*i+random.IntN(60), node{"fact": f, "item": fmt.Sprintf("MEM-%d", 10+i), "evidence": []any{node{"event_id": fmt.Sprintf("EVT-%d", 40+3*i), "quote": f}}}, "fact", fmt.Sprintf("EVT-%d", 40+3*i))
	}
	skills := []string{"Load the kiln", "Mix celadon", "Price an order", "Pack porcelain", "Answer the gallery", "Plan a firing", "Photograph a bowl", "Reclaim clay"}
	for i, s := range skills {
		root := fmt.Sprint("skill", i)
		g.node(root, "procedural", "studio", s, 50*i+40, node{"kind": "pattern", "pattern_name": s, "step_count": 3, "steps": []any{node{"do": "weigh"}, node{"do": "mix"}, node{"do": "check"}}}, "pattern")
		for j := range 3 {
			step := fmt.Sprintf("%s_%d", root, j)
			g.node(step, "procedural", "studio", fmt.Sprintf("%s · step %d", s, j+1), 50*i+41, node{"index": j}, "pattern_step")
			g.edge(step, root, "part_of")
		}
		g.edge(root, pick("fact", len(facts)), "derived_from")
		g.edge(root, pick("fact", len(facts)), "references")
	}
	for i, p := range []string{"frugal", "patient", "exact with numbers", "warm with regulars", "early riser"} {
		g.node(fmt.Sprint("trait", i), "persona", []string{"studio", "shop"}[i%2], "persona:"+p, 90*i, node{"trait_name": p, "strength": .4 + .12*float64(i)}, "persona", "trait")
	}
	agents := []string{"studio", "shop", "courier"}
	said := []string{"Firing %d came out well", "Order %d packed", "Mira asked about vase %d", "Delivery %d was late", "Glaze test %d noted", "Market day %d", "Call %d with the gallery"}
	for i := range 120 {
		id, agent := fmt.Sprint("ep", i), agents[random.IntN(3)]
		g.node(id, "episodic", agent, fmt.Sprintf(said[random.IntN(len(said))], i+1), i*4+random.IntN(90)+i/30*40, node{"task": "note", "detail": "What happened, in a sentence or two.", "turn": i}, "episodic")
		cluster := i / 15 % 8
		switch random.IntN(4) {
		case 0:
			g.edge(id, fmt.Sprint("skill", cluster), "references")
		case 1:
			g.edge(fmt.Sprint("fact", cluster*2+random.IntN(4)), id, "learned_from")
		case 2:
			g.edge(id, fmt.Sprint("fact", cluster*2+random.IntN(3)), "knows")
		default:
			g.edge(fmt.Sprint("trait", cluster%5), id, "learned_from")
		}
		if i%15 > 0 {
			g.edge(id, fmt.Sprint("ep", i-1-random.IntN(min(i%15, 4))), []string{"follows", "caused_by"}[random.IntN(2)])
		}
	}
	for i := range 6 {
		g.node(fmt.Sprint("patch", i), "patch", "studio", fmt.Sprintf("patch:kiln-plan v%d", i+1), 110*i+60, node{"label_name": "kiln-plan", "patch_version": i + 1, "fitness": .5 + .07*float64(i)}, "patch", fmt.Sprintf("v%d", i+1))
		g.edge(fmt.Sprint("skill", 5), fmt.Sprint("patch", i), "derived_from")
		g.edge(fmt.Sprint("ep", 15*i+3), fmt.Sprint("patch", i), "caused_patch")
	}
	g.node("claim", "semantic", "shop", "Ash glaze leaches lead", 400, node{"fact": "Ash glaze leaches lead", "item": "MEM-71", "source": "a forum", "evidence": []any{node{"event_id": "EVT-88", "quote": "never drink from ash glaze"}}}, "fact", "EVT-88")
	g.edge("claim", "ep60", "derived_from")
	g.edge("trait2", "claim", "believes")
	last := g.Edges[len(g.Edges)-1]
	last["confidence"], last["label"], last["meta"] = .35, "half heard", node{"confidence": .35, "evidence": "EVT-90"}
	g.contradict("claim", "fact6")
	g.contradict("fact0", "patch2")
	g.edge("fact6", "ep12", "learned_from")
	return g
}

// many is a graph of n nodes and about two edges each, in communities.
func many(n int) invented {
	var g invented
	random := rand.New(rand.NewPCG(1, 2))
	kinds := []string{"episodic", "episodic", "semantic", "procedural", "persona", "patch"}
	for i := range n {
		g.node(fmt.Sprint("n", i), kinds[random.IntN(len(kinds))], "a", fmt.Sprint("Node ", i), i, node{"i": i})
		if i > 0 {
			g.edge(fmt.Sprint("n", i), fmt.Sprint("n", max(0, i-1-random.IntN(40))), "follows")
			g.edge(fmt.Sprint("n", i), fmt.Sprint("n", i/50*50), "part_of")
		}
	}
	return g
}
