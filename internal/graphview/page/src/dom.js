// Elements. All text goes in as text; nothing here or elsewhere parses markup.

export const $ = id => document.getElementById(id)

// el makes an element. props: class, text, data (dataset), on (listeners), and
// attributes by name; undefined ones are left out.
export function el(tag, props = {}, ...children) {
  const { class: name, text, data, on, ...attributes } = props
  const e = document.createElement(tag)
  if (name) e.className = name
  if (text !== undefined) e.textContent = text
  Object.assign(e.dataset, data)
  for (const [k, v] of Object.entries(attributes)) if (v !== undefined) e.setAttribute(k, v)
  for (const [k, f] of Object.entries(on ?? {})) e.addEventListener(k, f)
  e.append(...children.filter(c => c != null))
  return e
}

export const number = n => n.toLocaleString('en')

// moment writes unix seconds as local time to the minute.
export function moment(seconds) {
  const d = new Date(seconds * 1000)
  if (Number.isNaN(d.getTime())) return ''
  const two = n => String(n).padStart(2, '0')
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`
}
