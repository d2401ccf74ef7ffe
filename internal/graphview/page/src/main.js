// The page: loads the export, and lets the parts know of each other.
import { showNode } from './details.js'
import { $, number } from './dom.js'
import { startFilters } from './filters.js'
import { startList } from './list.js'
import { apply, read } from './model.js'
import { startStage } from './stage.js'
import { startTheme } from './theme.js'

const maxDrawn = 6000

let graph = null, picked = null

const stage = startStage(pick)
const list = startList(pick, () => { $('details').focus() })
const filters = startFilters(filtered)
const switchTheme = startTheme(colours => { stage.colours(colours); filters.repaint() })

function pick(node) {
  picked = node
  stage.mark(node)
  list.mark(node)
  if (node) showNode(graph, node, go, () => { pick(null); $('results').focus() })
  else $('details').hidden = true
}

// go follows a link, also to a node that the filters hide.
function go(node) {
  if (!node.visible) filters.clear()
  pick(node)
  $('details').focus()
}

function filtered(f) {
  const { nodes, edges, matching } = apply(graph, f, maxDrawn)
  stage.show(nodes, edges)
  list.show(nodes, matching)
  list.mark(picked)
  $('shown').textContent = matching === graph.nodes.length ? '' : `${number(matching)} of ${number(graph.nodes.length)}`
  $('notice').hidden = matching <= maxDrawn && !graph.truncated
  $('notice').textContent = matching > maxDrawn ? `The newest ${number(maxDrawn)} of ${number(matching)} nodes are drawn. Filter to see others.`
    : graph.truncated ? `The export was cut: ${number(graph.nodes.length)} of ${number(graph.truncated.export_total_nodes)} nodes.` : ''
  empty(nodes.length === 0)
}

function empty(yes) {
  $('empty').hidden = !yes
  if (!yes) return
  const none = graph.nodes.length === 0
  $('empty-title').textContent = none ? 'Nothing remembered yet' : 'Nothing matches'
  $('empty-text').textContent = none ? 'This agent has no graph. It grows with checkpoints, tools and delegations; openclawssy graph demo shows one.' : 'No node passes all filters.'
  $('empty-clear').hidden = none
}

// Under openclawssy serve the address names the agent, and the token is the one that
// the admin page keeps in this tab; openclawssy graph view lets its one agent be seen
// by a cookie.
function source() {
  const agent = new URLSearchParams(location.search).get('agent')
  const headers = { Accept: 'application/json' }
  if (agent === null) return ['api/memory/graph' + location.search, headers]
  const token = sessionStorage.getItem('token')
  if (!token) throw new Error('Log in on the admin page, /admin/, and open the graph from there.')
  return [`../v1/agents/${encodeURIComponent(agent)}/graph`, { ...headers, Authorization: `Bearer ${token}` }]
}

async function load() {
  $('failed').hidden = true
  document.body.setAttribute('aria-busy', 'true')
  try {
    const [address, headers] = source()
    const answer = await fetch(address, { headers })
    const doc = await answer.json().catch(() => null)
    if (!answer.ok) throw new Error(doc?.detail ?? `The server answered ${answer.status}.`)
    show(read(doc))
  } catch (err) {
    $('failed-text').textContent = err instanceof TypeError ? 'The server does not answer. Is it still running?' : err.message
    $('failed').hidden = false
    $('total').textContent = 'Not loaded'
  } finally {
    document.body.setAttribute('aria-busy', 'false')
  }
}

// show takes a graph; what stays keeps its place.
function show(next) {
  for (const n of next.nodes) {
    const old = graph?.byID.get(n.id)
    if (old) { n.x = old.x; n.y = old.y }
  }
  const again = picked && next.byID.get(picked.id)
  graph = next
  const loose = graph.dangling ? ` · ${number(graph.dangling)} loose` : ''
  $('total').textContent = `${number(graph.nodes.length)} nodes · ${number(graph.edges.length)} edges${loose}`
  $('total').title = graph.dangling ? 'Loose edges point to nodes that are not here.' : ''
  stage.fresh()
  filters.show(graph)
  pick(again ?? null)
}

const keys = {
  '/': () => { $('text').focus(); $('text').select() },
  '+': () => stage.zoomBy(1.4), '=': () => stage.zoomBy(1.4), '-': () => stage.zoomBy(1 / 1.4), 0: () => stage.fit(),
  n: () => list.step(1), p: () => list.step(-1), t: switchTheme, r: load, '?': () => $('help').showModal(),
}
const arrows = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || $('help').open) return
  if (event.key === 'Escape') { escape(event.target); return }
  if (event.target.matches?.('input[type=search], select')) return
  if (!keys[event.key]) return
  event.preventDefault()
  keys[event.key]()
})

function escape(from) {
  if (from === $('text') && from.value) { from.value = ''; from.dispatchEvent(new Event('input')) }
  else if (picked) { pick(null); $('results').focus() }
}

$('graph').addEventListener('keydown', event => {
  if (arrows[event.key]) stage.moveBy(...arrows[event.key])
  else if (event.key === 'Enter') { const n = stage.middle(); if (n) go(n) }
  else return
  event.preventDefault()
})

for (const [id, act] of [['zoom-in', keys['+']], ['zoom-out', keys['-']], ['fit', keys[0]], ['reload', load], ['again', load], ['theme', switchTheme], ['keys', keys['?']]]) $(id).addEventListener('click', act)

load()
