// The controls that hide: types, edge types, agent, time, text, contradictions.
import { $, el, moment, number } from './dom.js'
import { fold, none } from './model.js'
import { edgeStyle, themeNow } from './theme.js'

const steps = 1000 // of the time sliders

// startFilters wires the controls; changed is called with the filters after
// each change. It returns {show(graph), clear()}.
export function startFilters(changed) {
  let graph = null, filters = none(), typing = 0
  const tell = () => { histogram(graph, filters); changed(filters) }

  const boxes = (list, counts, hidden, item) => list.replaceChildren(...[...counts].map(([name, n]) => {
    const box = el('input', { type: 'checkbox', value: name, on: { change: () => { hidden[box.checked ? 'delete' : 'add'](name); tell() } } })
    box.checked = !hidden.has(name)
    return el('li', {}, el('label', {}, box, item(name), el('span', { class: 'name', text: name.replaceAll('_', ' ') || 'no type' }), el('b', { class: 'count', text: number(n) })))
  }))
  const fill = () => {
    boxes($('types'), graph.types, filters.types, name => el('i', { class: 'dot', data: { type: name } }))
    boxes($('edge-types'), graph.edgeTypes, filters.edgeTypes, name => el('i', { class: 'stroke ' + edgeStyle(name) }))
    $('agent').replaceChildren(el('option', { value: '', text: `all (${number(graph.agents.size)})` }), ...[...graph.agents].map(([a, n]) => el('option', { value: '=' + a, text: `${a || 'no agent'} (${number(n)})` })))
    $('agent').value = filters.agent === null ? '' : '=' + filters.agent
    $('disputed').checked = filters.disputed
    $('disputed-count').textContent = number(graph.disputed)
    fillTime()
  }
  const fillTime = () => {
    const span = graph.until - graph.from
    for (const id of ['from', 'until']) $(id).disabled = !(span > 0)
    $('from').value = Number.isFinite(filters.from) ? Math.round(steps * (filters.from - graph.from) / span) : 0
    $('until').value = Number.isFinite(filters.until) ? Math.round(steps * (filters.until - graph.from) / span) : steps
    timeTexts()
  }
  const timeAt = step => graph.from + (graph.until - graph.from) * step / steps
  const timeTexts = () => {
    for (const id of ['from', 'until']) {
      const text = graph.nodes.length ? moment(timeAt(Number($(id).value))) : ''
      $(id + '-text').textContent = text
      $(id).setAttribute('aria-valuetext', text)
    }
  }
  const time = moved => {
    const a = Number($('from').value), b = Number($('until').value)
    if (a > b) $(moved).value = moved === 'from' ? b : a
    filters.from = Number($('from').value) === 0 ? -Infinity : timeAt(Number($('from').value))
    filters.until = Number($('until').value) === steps ? Infinity : timeAt(Number($('until').value))
    timeTexts()
    tell()
  }
  const clear = () => { filters = none(); $('text').value = ''; fill(); tell() }

  $('text').addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(() => { filters.words = fold($('text').value).split(/\s+/).filter(Boolean); tell() }, 80)
  })
  $('agent').addEventListener('change', () => { filters.agent = $('agent').value === '' ? null : $('agent').value.slice(1); tell() })
  $('disputed').addEventListener('change', () => { filters.disputed = $('disputed').checked; tell() })
  for (const id of ['from', 'until']) $(id).addEventListener('input', () => time(id))
  const all = (id, part) => $(id).addEventListener('click', () => { Object.assign(filters, part()); fill(); tell() })
  all('all-types', () => ({ types: new Set() }))
  all('all-edges', () => ({ edgeTypes: new Set(), disputed: false }))
  all('all-time', () => ({ from: -Infinity, until: Infinity }))
  $('empty-clear').addEventListener('click', clear)
  return { clear, show: g => { graph = g; fill(); tell() }, repaint: () => graph && histogram(graph, filters) }
}

// histogram draws how many nodes were made when, the hidden time paler.
function histogram(graph, filters) {
  const canvas = $('histogram'), ratio = devicePixelRatio, width = canvas.clientWidth, height = canvas.clientHeight
  canvas.width = width * ratio
  canvas.height = height * ratio
  const ctx = canvas.getContext('2d'), bins = new Uint32Array(48), span = graph.until - graph.from
  for (const n of graph.nodes) if (Number.isFinite(n.at)) bins[span > 0 ? Math.min(47, Math.floor(48 * (n.at - graph.from) / span)) : 24]++
  const most = bins.reduce((a, b) => Math.max(a, b), 1), style = getComputedStyle(canvas)
  ctx.scale(ratio, ratio)
  ctx.fillStyle = style.color
  bins.forEach((n, i) => {
    if (!n) return
    const mid = graph.from + span * (i + 0.5) / 48
    ctx.globalAlpha = mid < filters.from || mid > filters.until ? 0.2 : themeNow() === 'dark' ? 0.85 : 0.7
    const h = Math.max(2, (height - 2) * Math.sqrt(n / most))
    ctx.fillRect(i * width / 48 + 0.5, height - h, width / 48 - 1, h)
  })
}
