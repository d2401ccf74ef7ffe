// The drawing: what is visible where, moved and zoomed by pointer and keys.
import { quadtree } from 'd3-quadtree'
import { select } from 'd3-selection'
import { zoom, zoomIdentity } from 'd3-zoom'
import { $ } from './dom.js'
import { draw } from './draw.js'

const restMs = 140 // without movement, after which everything is drawn
const reach = 14 // pixels around a pointer in which a node is hit

// startStage wires the canvas; pick is called with the node clicked, or null.
export function startStage(pick) {
  const canvas = $('graph'), ctx = canvas.getContext('2d', { alpha: false }), view = select(canvas)
  const scene = { width: 0, height: 0, ratio: 1, at: zoomIdentity, nodes: [], edges: [], colours: null, picked: null, over: null, moving: false }
  let asked = false, tree = null, moved = false, drawn = 0, worker = null, rest = 0

  // paint draws once in the next frame, however often it is called.
  const paint = () => {
    if (asked) return
    asked = true
    requestAnimationFrame(() => {
      asked = false
      if (!scene.width || !scene.colours) return
      draw(ctx, scene)
      canvas.dataset.drawn = ++drawn
    })
  }
  // moving tells the drawing to hurry, until nothing has moved for a moment.
  const moving = () => {
    scene.moving = true
    clearTimeout(rest)
    rest = setTimeout(() => { scene.moving = false; paint() }, restMs)
  }
  const camera = zoom().scaleExtent([0.02, 12]).on('zoom', ({ transform, sourceEvent }) => {
    scene.at = transform
    canvas.dataset.zoom = transform.k.toFixed(3)
    if (sourceEvent) moved = true
    moving()
    paint()
  })
  view.call(camera).on('dblclick.zoom', null)

  const hit = (px, py) => {
    tree ??= quadtree(scene.nodes.filter(n => !Number.isNaN(n.x)), n => n.x, n => n.y)
    const [x, y] = scene.at.invert([px, py])
    const n = tree.find(x, y, (reach + 15) / Math.min(1, scene.at.k) + 15)
    if (!n) return null
    const away = Math.hypot(n.x - x, n.y - y) * scene.at.k
    return away <= Math.max(reach, n.radius * scene.at.k + 4) ? n : null
  }
  const hover = n => {
    if (scene.over === n) return
    scene.over = n
    canvas.style.cursor = n ? 'pointer' : ''
    paint()
  }
  canvas.addEventListener('pointermove', e => { if (!e.buttons) hover(hit(e.offsetX, e.offsetY)) })
  canvas.addEventListener('pointerleave', () => hover(null))
  canvas.addEventListener('click', e => pick(hit(e.offsetX, e.offsetY)))

  const resize = () => {
    scene.width = canvas.clientWidth
    scene.height = canvas.clientHeight
    scene.ratio = devicePixelRatio
    canvas.width = Math.round(scene.width * scene.ratio)
    canvas.height = Math.round(scene.height * scene.ratio)
    if (!moved) fit()
    paint()
  }
  new ResizeObserver(resize).observe(canvas)

  const move = transform => view.call(camera.transform, transform)
  function fit() {
    let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity
    for (const { x, y, radius: r } of scene.nodes) {
      if (Number.isNaN(x)) continue
      left = Math.min(left, x - r); right = Math.max(right, x + r); top = Math.min(top, y - r); bottom = Math.max(bottom, y + r)
    }
    if (!(right > left) || !scene.width) return
    const k = Math.min(1.6, (scene.width - 90) / (right - left), (scene.height - 110) / (bottom - top))
    move(zoomIdentity.translate(scene.width / 2, scene.height / 2).scale(k).translate(-(left + right) / 2, -(top + bottom) / 2))
  }

  // lay asks the worker for places; nodes keep those that they have.
  const lay = () => {
    worker?.terminate()
    worker = layoutWorker()
    const { nodes, edges } = scene, index = new Map(nodes.map((n, i) => [n, i]))
    canvas.dataset.layout = 'running'
    worker.onmessage = ({ data: { positions, done } }) => {
      nodes.forEach((n, i) => { n.x = positions[2 * i]; n.y = positions[2 * i + 1] })
      tree = null
      moving()
      if (!moved) fit()
      paint()
      if (done) canvas.dataset.layout = 'done'
    }
    worker.postMessage({
      x: Float32Array.from(nodes, n => n.x), y: Float32Array.from(nodes, n => n.y), radius: Float32Array.from(nodes, n => n.radius),
      links: Uint32Array.from(edges.flatMap(e => [index.get(e.from), index.get(e.to)])),
    })
  }

  return {
    show(nodes, edges) {
      Object.assign(scene, { nodes, edges, over: null })
      tree = null
      if (nodes.some(n => Number.isNaN(n.x))) lay()
      paint()
    },
    fresh() { moved = false },
    colours(c) { scene.colours = c; paint() },
    // mark shows which node is picked, and brings it into view where it is not.
    mark(n) {
      scene.picked = n
      if (n && !Number.isNaN(n.x)) {
        const [x, y] = scene.at.apply([n.x, n.y]), edge = 60
        if (x < edge || y < edge || x > scene.width - edge || y > scene.height - edge) { moved = true; view.call(camera.translateTo, n.x, n.y) }
      }
      paint()
    },
    fit() { moved = false; fit() },
    zoomBy(factor) { moved = true; view.call(camera.scaleBy, factor) },
    moveBy(dx, dy) { moved = true; view.call(camera.translateBy, dx / scene.at.k, dy / scene.at.k) },
    middle: () => hit(scene.width / 2, scene.height / 2) ?? tree?.find(...scene.at.invert([scene.width / 2, scene.height / 2])) ?? null,
    place: n => scene.at.apply([n.x, n.y]),
  }
}

// The page's policy lets only this one script be started.
const policy = window.trustedTypes?.createPolicy('layout', { createScriptURL: () => 'layout.js' })
const layoutWorker = () => new Worker(policy ? policy.createScriptURL('') : 'layout.js')
