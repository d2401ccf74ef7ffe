// Light and dark, and the colours of types. Style sheets have the colours;
// the canvas reads them from there.
import { known } from './model.js'

const store = 'openclawssy-graph-theme'
const dark = matchMedia('(prefers-color-scheme: dark)')
const root = document.documentElement

export const themeNow = () => root.dataset.theme
const saved = () => { try { return localStorage.getItem(store) } catch { return null } } // storage may be forbidden

export function startTheme(changed) {
  const set = name => { root.dataset.theme = name; changed(colours()) }
  dark.addEventListener('change', () => { if (!saved()) set(dark.matches ? 'dark' : 'light') })
  set(saved() ?? (dark.matches ? 'dark' : 'light'))
  return () => {
    const name = themeNow() === 'dark' ? 'light' : 'dark'
    try { localStorage.setItem(store, name) } catch { /* it lasts as long as the page */ }
    set(name)
  }
}

function colours() {
  const style = getComputedStyle(root), of = name => style.getPropertyValue('--' + name).trim()
  const names = ['canvas', 'ink', 'muted', 'edge', 'edge-strong', 'epistemic', 'conflict', 'accent', 'other', 'line', ...known]
  return Object.fromEntries(names.map(n => [n, of(n)]))
}

// shapes tell types apart without colour. Each adds a figure of radius r to the
// path.
const polygon = (corners, turn, stretch) => (path, x, y, r) => {
  for (let i = 0; i < corners; i++) {
    const a = turn + i * 2 * Math.PI / corners
    path[i ? 'lineTo' : 'moveTo'](x + stretch * r * Math.cos(a), y + stretch * r * Math.sin(a))
  }
  path.closePath()
}
const circle = (path, x, y, r) => { path.moveTo(x + r, y); path.arc(x, y, r, 0, 2 * Math.PI) }
const shapes = {
  episodic: circle, semantic: polygon(6, 0, 1.1), procedural: polygon(4, Math.PI / 4, 1.22),
  persona: polygon(4, 0, 1.28), patch: polygon(3, -Math.PI / 2, 1.35),
}
export const shapeOf = type => shapes[type] ?? circle
export const colourOf = (colours, type) => colours[known.includes(type) ? type : 'other']

const beliefs = ['knows', 'believes', 'learned_from']
// edgeStyle groups edge types: what happened, what is held true, what disagrees.
export const edgeStyle = type => type === 'contradicts' ? 'conflict' : beliefs.includes(type) ? 'epistemic' : 'edge'
