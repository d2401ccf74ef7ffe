// The panel of one node: what it says, what it rests on, what speaks against it.
import { $, el, moment, number } from './dom.js'
import { handles } from './model.js'
import { edgeStyle } from './theme.js'

const shown = new Set(['id', 'node_type', 'agent_id', 'label', 'created_at', 'ttl', 'tags', 'payload', 'contradicted_by', 'vitals_gate', 'vitals_phase', 'vitals_trust'])
const maxEdges = 200
const provenance = ['provenance', 'evidence', 'item', 'items', 'source', 'sources', 'source_episode_ids', 'learned_from', 'event_id', 'source_id']

// showNode fills the panel. go takes a node to go to, close ends.
export function showNode(graph, n, go, close) {
  const panel = $('details')
  const parts = [
    el('header', {},
      el('div', { class: 'kind' }, el('i', { class: 'dot', data: { type: n.type } }), el('span', { text: n.type || 'no type' }),
        el('button', { class: 'icon', type: 'button', text: '×', title: 'Close (Esc)', 'aria-label': 'Close', on: { click: close } })),
      el('h2', { text: n.name, id: 'node-name' })),
    dispute(graph, n, go), facts(n), tags(n), restsOn(graph, n, go), edges(graph, n, go),
    section('Payload', tree(n.raw.payload ?? {})), rest(n)]
  panel.replaceChildren(...parts.filter(Boolean))
  panel.hidden = false
  panel.scrollTop = 0
}

const section = (title, ...children) => el('section', {}, el('h3', { text: title }), ...children)

function dispute(graph, n, go) {
  if (!n.disputed) return null
  const ids = new Set(Array.isArray(n.raw.contradicted_by) ? n.raw.contradicted_by.map(String) : [])
  for (const e of n.edges) if (e.disputes) ids.add(e.from === n ? e.to.id : e.from.id)
  return el('section', { class: 'dispute' }, el('h3', { text: 'Contradicted by' }), el('ul', { class: 'links' }, ...[...ids].map(id => el('li', {}, link(graph, id, go)))))
}

// link is a way to another node, or its id where it is not there.
function link(graph, id, go) {
  const to = graph.byID.get(id)
  if (!to) return el('span', { class: 'gone', text: id, title: 'Not in this graph' })
  return el('button', { class: 'node', type: 'button', on: { click: () => go(to) } }, el('i', { class: 'dot', data: { type: to.type } }), el('span', { text: to.name }))
}

function facts(n) {
  const rows = [['Agent', n.agent], ['Created', moment(n.at)]]
  if (n.raw.ttl != null) rows.push(['Expires', moment(n.at + Number(n.raw.ttl))])
  for (const [name, key] of [['Gate', 'vitals_gate'], ['Phase', 'vitals_phase'], ['Trust', 'vitals_trust']]) if (n.raw[key] != null) rows.push([name, String(n.raw[key])])
  rows.push(['Id', n.id])
  return el('dl', { class: 'facts' }, ...rows.filter(([, v]) => v).map(([k, v]) => el('div', {}, el('dt', { text: k }), el('dd', { text: v, class: k === 'Id' ? 'mono' : undefined }))))
}

function tags(n) {
  if (!n.tags.length) return null
  return section('Tags', el('p', { class: 'tags' }, ...n.tags.map(t => el('span', { class: 'tag', text: t }))))
}

// restsOn gathers a node's provenance: handles anywhere in it, the members that
// carry evidence, and the nodes that it was derived from.
function restsOn(graph, n, go) {
  const found = handles([n.raw.payload, n.tags, n.raw.id])
  const payload = n.raw.payload && typeof n.raw.payload === 'object' ? n.raw.payload : {}
  const members = [payload, payload.metadata ?? {}].flatMap(o => provenance.filter(k => o[k] != null).map(k => [k, o[k]]))
  const from = n.edges.filter(e => e.from === n && ['derived_from', 'learned_from', 'caused_by', 'inherited_by'].includes(e.type))
  if (!found.size && !members.length && !from.length) return null
  return section('Rests on',
    found.size ? el('p', { class: 'tags' }, ...[...found].map(h => el('span', { class: 'tag handle', text: h }))) : null,
    from.length ? el('ul', { class: 'links' }, ...from.slice(0, maxEdges).map(e => el('li', {}, el('em', { text: words(e.type) }), link(graph, e.to.id, go)))) : null,
    ...members.map(([k, v]) => el('div', { class: 'member' }, el('span', { class: 'key', text: words(k) }), tree(v))))
}

const words = s => s.replaceAll('_', ' ')

function edges(graph, n, go) {
  if (!n.edges.length) return null
  const row = e => {
    const out = e.from === n, other = out ? e.to : e.from
    const sure = e.confidence < 1 ? el('span', { class: 'muted', text: `${Math.round(e.confidence * 100)} %` }) : null
    return el('li', { class: edgeStyle(e.type) }, el('em', { text: `${out ? '→' : '←'} ${words(e.type) || 'no type'}` }), link(graph, other.id, go), sure, why(e))
  }
  const more = n.edges.length - maxEdges
  return section(`Edges (${number(n.edges.length)})`, el('ul', { class: 'links' }, ...n.edges.slice(0, maxEdges).map(row)),
    more > 0 ? el('p', { class: 'muted', text: `and ${number(more)} more` }) : null)
}

// why shows what else an edge says, on demand.
function why(e) {
  const meta = e.raw.meta && typeof e.raw.meta === 'object' && Object.keys(e.raw.meta).length ? e.raw.meta : null
  if (!e.label && !meta) return null
  return el('details', {}, el('summary', { text: e.label || 'why' }), meta ? tree(meta) : null)
}

// rest shows members of the row that the contract does not name.
function rest(n) {
  const others = Object.fromEntries(Object.entries(n.raw).filter(([k]) => !shown.has(k)))
  return Object.keys(others).length ? section('Further members', tree(others)) : null
}

// tree shows a JSON value.
function tree(v, depth = 0) {
  if (v === null || typeof v !== 'object') return el('span', { class: 'value ' + (v === null ? 'null' : typeof v), text: v === null ? 'null' : String(v) })
  const entries = Object.entries(v), list = Array.isArray(v)
  if (!entries.length) return el('span', { class: 'value null', text: list ? 'empty list' : 'empty' })
  if (depth > 12) return el('code', { text: JSON.stringify(v) })
  return el('ul', { class: 'tree' }, ...entries.map(([k, x]) => el('li', {}, el('span', { class: 'key', text: list ? String(Number(k) + 1) : k }), tree(x, depth + 1))))
}
