// The graph as the page works with it: what the export holds, indexed once.

// known are the node types of the contract, in the order of the legend.
export const known = ['episodic', 'semantic', 'procedural', 'persona', 'patch']

const handle = /^(?:MEM|EVT|REC)-\d+$/

// read indexes an export, {"nodes": [...], "edges": [...]}. It throws where doc
// is no such thing. Edges to nodes that are not there are counted in dangling.
export function read(doc) {
  if (!Array.isArray(doc?.nodes) || !Array.isArray(doc?.edges)) throw new Error('The answer is not a graph: it needs the lists "nodes" and "edges".')
  const byID = new Map()
  for (const raw of doc.nodes) if (raw && raw.id != null) byID.set(String(raw.id), node(raw))
  const nodes = [...byID.values()]
  const graph = { nodes, byID, edges: [], dangling: 0, types: new Map(), edgeTypes: new Map(), agents: new Map(), disputed: 0, truncated: doc.export_truncated ? doc : null }
  for (const raw of doc.edges) addEdge(graph, raw)
  for (const n of nodes) {
    count(graph.types, n.type)
    count(graph.agents, n.agent)
    n.radius = 4 + Math.min(11, 2.1 * Math.sqrt(n.edges.length))
    if (n.disputed) graph.disputed++
  }
  graph.types = sorted(graph.types, known)
  graph.edgeTypes = sorted(graph.edgeTypes, ['contradicts'])
  const times = nodes.map(n => n.at).filter(Number.isFinite)
  graph.from = times.reduce((a, b) => Math.min(a, b), Infinity)
  graph.until = times.reduce((a, b) => Math.max(a, b), -Infinity)
  return graph
}

function node(raw) {
  const tags = Array.isArray(raw.tags) ? raw.tags.map(String) : []
  const label = raw.label == null ? '' : String(raw.label)
  return {
    id: String(raw.id), type: String(raw.node_type ?? ''), agent: String(raw.agent_id ?? ''), label, name: label || String(raw.id), tags, raw,
    at: Number(raw.created_at), edges: [], x: NaN, y: NaN, visible: false,
    disputed: Array.isArray(raw.contradicted_by) && raw.contradicted_by.length > 0,
    text: fold([raw.id, label, tags.join(' '), JSON.stringify(raw.payload ?? {})].join('\n')),
  }
}

function addEdge(graph, raw) {
  const from = graph.byID.get(String(raw?.src)), to = graph.byID.get(String(raw?.dst))
  if (!from || !to) { graph.dangling++; return }
  const edge = { from, to, type: String(raw.edge_type ?? ''), label: String(raw.label ?? ''), confidence: Number(raw.confidence ?? 1), raw, visible: false }
  edge.disputes = edge.type === 'contradicts'
  if (edge.disputes) from.disputed = to.disputed = true
  graph.edges.push(edge)
  from.edges.push(edge)
  if (to !== from) to.edges.push(edge)
  count(graph.edgeTypes, edge.type)
}

const count = (map, key) => map.set(key, (map.get(key) ?? 0) + 1)

function sorted(counts, first) {
  const place = key => { const i = first.indexOf(key); return i < 0 ? first.length : i }
  return new Map([...counts].sort(([a, x], [b, y]) => place(a) - place(b) || y - x || (a < b ? -1 : 1)))
}

// fold makes text comparable: compatibility forms and case.
export const fold = s => s.normalize('NFKC').toLowerCase()

// none are filters that hide nothing.
export const none = () => ({ types: new Set(), edgeTypes: new Set(), agent: null, from: -Infinity, until: Infinity, words: [], disputed: false })

// apply marks what the filters leave visible and returns it. Of more than most
// nodes the newest are left.
export function apply(graph, f, most) {
  let nodes = graph.nodes.filter(n => matches(n, f))
  const matching = nodes.length
  if (matching > most) nodes = nodes.toSorted((a, b) => b.at - a.at).slice(0, most)
  for (const n of graph.nodes) n.visible = false
  for (const n of nodes) n.visible = true
  const edges = []
  for (const e of graph.edges) {
    e.visible = e.from.visible && e.to.visible && !f.edgeTypes.has(e.type)
    if (e.visible) edges.push(e)
  }
  return { nodes, edges, matching }
}

// f.types and f.edgeTypes are what is hidden.
function matches(n, f) {
  return !f.types.has(n.type) && (f.agent === null || n.agent === f.agent) && (!f.disputed || n.disputed) &&
    (!Number.isFinite(n.at) || n.at >= f.from && n.at <= f.until) && f.words.every(w => n.text.includes(w))
}

// handles returns the handles of items, episodes and records that a value
// names, anywhere in it.
export function handles(value, found = new Set()) {
  if (typeof value === 'string' && handle.test(value)) found.add(value)
  else if (value && typeof value === 'object') for (const v of Object.values(value)) handles(v, found)
  return found
}
