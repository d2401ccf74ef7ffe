import * as api from "./api.js";
import { h, fill, trouble } from "./dom.js";
import { chat, memory, item, recall } from "./memory.js";
import { checkpoints, quarantine, jobs, messages, health } from "./care.js";

const pages = [
  ["chat", "Chat", chat], ["memory", "Memory", memory], ["recall", "Recall", recall], ["checkpoints", "Checkpoints", checkpoints],
  ["quarantine", "To decide", quarantine], ["jobs", "Jobs", jobs], ["messages", "Messages", messages], ["health", "Health", health],
];

const head = document.getElementById("head"), nav = document.getElementById("nav"), main = document.getElementById("main");

function login(err) {
  fill(nav);
  fill(head, h("h1", {}, "Openclawssy"));
  const input = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  fill(main, h("h2", {}, "Which token?"),
    h("p", { class: "soft" }, "The first start of openclawssy serve wrote one to the file first.token in its home; openclawssy token create makes others. It stays in this tab only."),
    err && trouble(err),
    h("form", { class: "row", onsubmit: (e) => { e.preventDefault(); api.setToken(input.value); start(); } },
      h("label", { for: "token" }, "Token"), input, h("button", { class: "main" }, "Open")));
  input.focus();
}

function frame(agents) {
  if (!agents.includes(api.agent())) agents = [...agents, api.agent()].sort();
  const pick = h("select", { id: "agent", onchange: () => { api.setAgent(pick.value); show(); } }, agents.map((a) => h("option", { value: a, selected: a === api.agent() }, a)));
  fill(head, h("h1", {}, "Openclawssy"), h("label", { for: "agent" }, "Agent"), pick,
    h("button", { onclick: () => { api.setToken(""); login(); } }, "Log out"));
  fill(nav, pages.map(([id, name]) => h("a", { href: "#/" + id, id: "nav-" + id }, name)), h("a", { id: "nav-graph" }, "Graph"));
}

async function show() {
  if (!api.token()) return login();
  const [id, ...rest] = (location.hash.slice(2) || "chat").split("/");
  const page = id === "item" ? ["memory", "Memory", item] : pages.find((p) => p[0] === id) || pages[0];
  for (const [name] of pages) document.getElementById("nav-" + name)?.toggleAttribute("aria-current", name === page[0]);
  document.getElementById("nav-graph").href = "/graph/?agent=" + encodeURIComponent(api.agent());
  document.title = page[1] + " · Openclawssy";
  const view = h("div", {});
  fill(main, view);
  try {
    await page[2](view, decodeURIComponent(rest.join("/")));
  } catch (err) {
    if (err.status === 401) return login(err);
    view.append(trouble(err));
  }
}

async function start() {
  try {
    const { agents } = await api.get("/v1/agents");
    if (agents.length && !agents.includes(api.agent())) api.setAgent(agents.includes("default") ? "default" : agents[0]);
    frame(agents);
    await show();
  } catch (err) {
    login(err);
  }
}

window.addEventListener("hashchange", () => { show(); main.focus(); });
if (api.token()) start(); else login();
