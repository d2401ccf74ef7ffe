// A worker that lays the graph out, so that the page stays fluent meanwhile.
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from 'd3-force'

const slice = 14 // ms of work between two reports
let run = 0

// In: {x, y: Float32Array (NaN: no place yet), radius: Float32Array, links:
// Uint32Array of pairs}. Out: {positions: Float32Array of pairs, done}.
onmessage = ({ data }) => work(++run, simulation(data))

function simulation({ x, y, radius, links }) {
  const nodes = Array.from(x, (at, i) => Number.isNaN(at) ? { r: radius[i] } : { x: at, y: y[i], r: radius[i] })
  const pairs = []
  for (let i = 0; i < links.length; i += 2) pairs.push({ source: links[i], target: links[i + 1] })
  const many = nodes.length > 1500
  const sim = forceSimulation(nodes).stop()
    .alphaDecay(many ? 0.05 : 0.025)
    .force('link', forceLink(pairs).distance(l => 26 + l.source.r + l.target.r))
    .force('charge', forceManyBody().strength(n => -60 - 7 * n.r).distanceMax(many ? 400 : 700).theta(many ? 1.1 : 0.9))
    .force('x', forceX().strength(0.06))
    .force('y', forceY().strength(0.075))
  if (!many) sim.force('collide', forceCollide(n => n.r + 5))
  return sim
}

function work(mine, sim) {
  if (mine !== run) return // another layout was asked for
  const start = performance.now()
  do sim.tick(); while (sim.alpha() > sim.alphaMin() && performance.now() - start < slice)
  const positions = new Float32Array(2 * sim.nodes().length)
  sim.nodes().forEach((n, i) => { positions[2 * i] = n.x; positions[2 * i + 1] = n.y })
  const done = sim.alpha() <= sim.alphaMin()
  postMessage({ positions, done }, [positions.buffer])
  if (!done) setTimeout(() => work(mine, sim))
}
