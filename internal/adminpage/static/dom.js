// Elements from data. Text goes in as text and never as markup.

export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "class") el.className = value;
    else if (name in el && typeof value !== "string") el[name] = value;
    else el.setAttribute(name, value === true ? "" : value);
  }
  add(el, children);
  return el;
}

export function add(el, children) {
  for (const c of children.flat(9)) {
    if (c === undefined || c === null || c === false) continue;
    el.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
  return el;
}

export function fill(el, ...children) {
  el.replaceChildren();
  return add(el, children);
}

export function when(text) {
  if (!text) return "never";
  const t = new Date(text);
  return isNaN(t) ? text : t.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

let hide;
export function notice(text, bad) {
  clearTimeout(hide);
  const box = document.getElementById("notice");
  fill(box, h("div", { class: "card " + (bad ? "bad" : "good") }, text, " ", h("button", { onclick: () => fill(box) }, "Close")));
  if (!bad) hide = setTimeout(() => fill(box), 6000);
}

// trouble shows an error where its content would have stood.
export function trouble(err) {
  return h("div", { class: "card bad", role: "alert" }, h("strong", {}, err.message), err.hint && h("div", { class: "small" }, err.hint));
}

// ask asks before something that is not undone at once.
export function ask(title, text, verb) {
  return new Promise((resolve) => {
    const d = h("dialog", {},
      h("h3", {}, title), h("p", {}, text),
      h("form", { class: "row", method: "dialog" }, h("button", { value: "no", autofocus: true }, "Keep"), h("button", { value: "yes", class: "danger" }, verb)));
    d.addEventListener("close", () => { resolve(d.returnValue === "yes"); d.remove(); });
    document.body.append(d);
    d.showModal();
  });
}
