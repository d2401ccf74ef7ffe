// The list of nodes: the way through the graph without a pointer.
import { $, el, number } from './dom.js'

const most = 200

// reveal scrolls the list, and only it, until item can be seen.
function reveal(list, item) {
  const top = item.offsetTop - list.offsetTop, bottom = top + item.offsetHeight
  if (top < list.scrollTop) list.scrollTop = top - 4
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight + 4
}

// startList wires the list; pick is called with the node chosen, read when it
// is to be read. It returns {show(nodes, matching), mark(node), step(by)}.
export function startList(pick, read) {
  const list = $('results')
  let rows = [], at = -1
  const choose = i => { if (rows.length) pick(rows[Math.max(0, Math.min(rows.length - 1, i))].node) }
  list.addEventListener('keydown', event => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + 10, PageUp: at - 10 }[event.key]
    if (to !== undefined) choose(to)
    else if (event.key === 'Enter' && at >= 0) read()
    else return
    event.preventDefault()
  })
  return {
    show(nodes, matching) {
      const top = nodes.toSorted((a, b) => b.edges.length - a.edges.length || b.at - a.at).slice(0, most)
      rows = top.map((node, i) => ({
        node, item: el('li', { id: 'row-' + i, role: 'option', 'aria-selected': 'false', on: { click: () => pick(node) } },
          el('i', { class: 'dot', data: { type: node.type } }), el('span', { class: 'name', text: node.name }),
          node.disputed ? el('b', { class: 'sign', text: '×', title: 'contradicted', 'aria-label': 'contradicted' }) : null),
      }))
      list.replaceChildren(...rows.map(r => r.item), ...(matching > rows.length ? [el('li', { class: 'muted more', role: 'presentation', text: `and ${number(matching - rows.length)} more; filter to see them` })] : []))
      at = -1
    },
    mark(node) {
      if (rows[at]) rows[at].item.setAttribute('aria-selected', 'false')
      at = rows.findIndex(r => r.node === node)
      if (at < 0) { list.removeAttribute('aria-activedescendant'); return }
      rows[at].item.setAttribute('aria-selected', 'true')
      reveal(list, rows[at].item)
      list.setAttribute('aria-activedescendant', rows[at].item.id)
    },
    step: by => choose(at < 0 && by < 0 ? rows.length - 1 : at + by),
  }
}
