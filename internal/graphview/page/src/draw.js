// Draws the scene on the canvas, also where no graphics card helps: what costs
// most there are wide lines, outlines and text, so of thousands of nodes, and
// while the view moves, there are less of them.
import { colourOf, edgeStyle, shapeOf } from './theme.js'

const font = 'Inter, system-ui, -apple-system, "Segoe UI", sans-serif'
const maxLabels = 90

const many = 2500 // nodes and edges from which on a drawing is kept plain

// draw paints scene: {width, height, ratio, at: {k, x, y}, nodes, edges,
// colours, picked, over, moving}.
export function draw(ctx, scene) {
  const { width, height, ratio, at, colours } = scene
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0)
  ctx.fillStyle = colours.canvas
  ctx.fillRect(0, 0, width, height)
  const view = { left: -at.x / at.k, top: -at.y / at.k, right: (width - at.x) / at.k, bottom: (height - at.y) / at.k }
  const focus = scene.picked?.visible ? scene.picked : scene.over?.visible ? scene.over : null
  const near = focus && new Set([focus, ...focus.edges.filter(e => e.visible).flatMap(e => [e.from, e.to])])
  // Far out, nodes keep a size that can be seen.
  const grow = Math.max(1, Math.min(2.2, 0.55 / at.k))
  const plain = scene.nodes.length + scene.edges.length > many
  const state = { ctx, scene, view, focus, near, grow, plain, k: at.k, colours }

  ctx.setTransform(ratio * at.k, 0, 0, ratio * at.k, ratio * at.x, ratio * at.y)
  drawEdges(state)
  drawNodes(state)
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0)
  if (!(plain && scene.moving)) drawLabels(state)
}

const outside = (v, a, b) => a.x < v.left && b.x < v.left || a.x > v.right && b.x > v.right || a.y < v.top && b.y < v.top || a.y > v.bottom && b.y > v.bottom

function drawEdges(s) {
  const groups = new Map() // by style, then by whether the focus touches them
  for (const e of s.scene.edges) {
    if (Number.isNaN(e.from.x) || Number.isNaN(e.to.x) || outside(s.view, e.from, e.to)) continue
    const bright = s.focus && (e.from === s.focus || e.to === s.focus)
    const key = edgeStyle(e.type) + (bright ? '+' : e.confidence < 0.5 ? '~' : '')
    if (!groups.has(key)) groups.set(key, [])
    groups.get(key).push(e)
  }
  const dense = Math.max(0.28, Math.min(0.85, 900 / (s.scene.edges.length + 1)))
  const keys = [...groups.keys()].sort((a, b) => rank(a) - rank(b))
  for (const key of keys) strokeGroup(s, key, groups.get(key), dense)
}

const rank = key => (key.startsWith('conflict') ? 2 : 0) + (key.endsWith('+') ? 4 : 0)

function strokeGroup(s, key, edges, dense) {
  const { ctx, colours } = s
  const conflict = key.startsWith('conflict'), bright = key.endsWith('+'), weak = key.endsWith('~')
  ctx.strokeStyle = conflict ? colours.conflict : key.startsWith('epistemic') ? colours.epistemic : bright ? colours['edge-strong'] : colours.edge
  ctx.globalAlpha = bright ? 1 : s.focus ? (conflict ? 0.5 : 0.14) : conflict ? 1 : weak ? dense / 2 : dense
  ctx.lineWidth = (conflict ? 2.2 : bright ? 1.8 : 1.1) / Math.max(0.6, Math.min(s.k, 1.6))
  if (s.plain && !conflict && !bright) ctx.lineWidth = Math.min(ctx.lineWidth, 1 / (s.k * s.scene.ratio)) // a line of one pixel is drawn at once
  ctx.setLineDash(conflict ? [6 / s.k, 4 / s.k] : [])
  ctx.beginPath()
  for (const e of edges) {
    if (e.from === e.to) ctx.ellipse(e.from.x, e.from.y - e.from.radius * 1.6, e.from.radius * 0.7, e.from.radius, 0, 0, 2 * Math.PI)
    else { ctx.moveTo(e.from.x, e.from.y); ctx.lineTo(e.to.x, e.to.y) }
  }
  ctx.stroke()
  ctx.setLineDash([])
  if (conflict) for (const e of edges) crossMark(s, e)
  else if (bright || s.k > 0.9 && s.scene.edges.length < 1500) arrows(s, edges)
  ctx.globalAlpha = 1
}

// arrows fills the heads of edges, at the rim of the node that they point to.
function arrows(s, edges) {
  const { ctx } = s, size = 6.5 / Math.max(1, Math.min(s.k, 1.6))
  ctx.fillStyle = ctx.strokeStyle
  ctx.beginPath()
  for (const { from, to } of edges) {
    const dx = to.x - from.x, dy = to.y - from.y, d = Math.hypot(dx, dy)
    if (d < 1) continue
    const ux = dx / d, uy = dy / d, rim = to.radius * s.grow * 1.15 + 1
    const x = to.x - ux * rim, y = to.y - uy * rim
    ctx.moveTo(x, y)
    ctx.lineTo(x - ux * size - uy * size * 0.45, y - uy * size + ux * size * 0.45)
    ctx.lineTo(x - ux * size + uy * size * 0.45, y - uy * size - ux * size * 0.45)
    ctx.closePath()
  }
  ctx.fill()
}

// crossMark sets a sign of contradiction on the middle of an edge.
function crossMark({ ctx, colours, k }, { from, to }) {
  const x = (from.x + to.x) / 2, y = (from.y + to.y) / 2, r = 7 / Math.max(0.8, Math.min(k, 1.6)), d = r * 0.42
  ctx.beginPath()
  circlePath(ctx, x, y, r)
  ctx.fillStyle = colours.conflict
  ctx.fill()
  ctx.beginPath()
  ctx.moveTo(x - d, y - d); ctx.lineTo(x + d, y + d)
  ctx.moveTo(x + d, y - d); ctx.lineTo(x - d, y + d)
  const { strokeStyle, lineWidth } = ctx
  ctx.strokeStyle = colours.canvas
  ctx.lineWidth = r * 0.28
  ctx.stroke()
  Object.assign(ctx, { strokeStyle, lineWidth })
}

const circlePath = (ctx, x, y, r) => { ctx.moveTo(x + r, y); ctx.arc(x, y, r, 0, 2 * Math.PI) }

function drawNodes(s) {
  const { ctx, colours, view, grow } = s
  const dim = new Map(), lit = new Map(), disputed = []
  for (const n of s.scene.nodes) {
    const r = n.radius * grow * 1.4
    if (Number.isNaN(n.x) || n.x + r < view.left || n.x - r > view.right || n.y + r < view.top || n.y - r > view.bottom) continue
    const into = s.near && !s.near.has(n) ? dim : lit
    if (!into.has(n.type)) into.set(n.type, [])
    into.get(n.type).push(n)
    if (n.disputed) disputed.push(n)
  }
  ctx.lineWidth = 1.4 / Math.max(0.7, s.k)
  ctx.strokeStyle = colours.canvas
  for (const [groups, alpha] of [[dim, 0.3], [lit, 1]]) {
    ctx.globalAlpha = alpha
    for (const [type, nodes] of groups) figures(s, type, nodes)
  }
  ctx.globalAlpha = 1
  rings(s, disputed)
}

const speck = 2.5 // pixels of a radius below which shapes cannot be told apart

function figures({ ctx, colours, grow, plain, k, scene }, type, nodes) {
  const shape = shapeOf(type)
  ctx.fillStyle = colourOf(colours, type)
  for (const n of nodes) {
    const r = n.radius * grow
    if (plain && r * k * scene.ratio < speck) { ctx.fillRect(n.x - r * 0.9, n.y - r * 0.9, r * 1.8, r * 1.8); continue }
    ctx.beginPath()
    shape(ctx, n.x, n.y, r)
    ctx.fill()
    if (!plain) ctx.stroke()
  }
}

function rings({ ctx, colours, scene, near, k, grow }, disputed) {
  ctx.lineWidth = 2.2 / Math.max(0.7, Math.min(k, 1.6))
  ctx.strokeStyle = colours.conflict
  ctx.beginPath()
  for (const n of disputed) if (!near || near.has(n)) circlePath(ctx, n.x, n.y, n.radius * grow * 1.2 + 3)
  ctx.stroke()
  for (const n of [scene.over, scene.picked]) {
    if (!n?.visible || Number.isNaN(n.x)) continue
    ctx.strokeStyle = n === scene.picked ? colours.accent : colours.muted
    ctx.lineWidth = 3 / Math.max(0.7, k)
    ctx.beginPath()
    circlePath(ctx, n.x, n.y, n.radius * grow * 1.2 + 6 / Math.max(0.7, k))
    ctx.stroke()
  }
}

// drawLabels writes the names that find room, the weightiest first.
function drawLabels(s) {
  const { ctx, scene, near, k, colours, grow } = s, { at, width, height } = scene
  const weight = n => (n === scene.picked ? 4e6 : 0) + (n === scene.over ? 2e6 : 0) + (near?.has(n) ? 1e6 : 0) + (n.disputed ? 15 : 0) + n.edges.length
  const candidates = []
  for (const n of near ?? scene.nodes) {
    const x = n.x * k + at.x, y = n.y * k + at.y
    if (!n.visible || !(x > -40 && x < width + 40 && y > -20 && y < height + 20)) continue
    if (!near && n.radius * k * grow < 8 && n.edges.length < 6 && !n.disputed) continue
    candidates.push([weight(n), n, x, y])
  }
  candidates.sort((a, b) => b[0] - a[0])
  const taken = []
  ctx.textAlign = 'center'
  ctx.textBaseline = 'top'
  ctx.lineJoin = 'round'
  ctx.lineWidth = 3.5
  ctx.strokeStyle = colours.canvas
  for (const [, n, x, y] of candidates.slice(0, 4 * maxLabels)) {
    if (taken.length >= maxLabels) break
    const strong = n === scene.picked || n === scene.over
    ctx.font = `${strong ? 600 : 500} ${strong ? 13 : 11.5}px ${font}`
    const text = short(n.name, strong ? 60 : 30), top = y + n.radius * k * grow * 1.2 + (n.disputed ? 7 : 5), half = ctx.measureText(text).width / 2 + 4
    const box = [x - half, top - 2, x + half, top + 15]
    if (!strong && taken.some(t => box[0] < t[2] && box[2] > t[0] && box[1] < t[3] && box[3] > t[1])) continue
    taken.push(box)
    ctx.strokeText(text, x, top)
    ctx.fillStyle = strong ? colours.ink : colours.muted
    ctx.fillText(text, x, top)
  }
}

const short = (s, most) => { const r = Array.from(s.replace(/\s+/g, ' ')); return r.length > most ? r.slice(0, most - 1).join('') + '…' : r.join('') }
