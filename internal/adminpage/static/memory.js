// What is remembered: chat, search, one memory, and what a prompt would be given.

import * as api from "./api.js";
import { h, fill, add, when, notice, trouble, ask } from "./dom.js";

const link = (handle) => h("a", { href: "#/item/" + handle }, handle);

// The conversation of this tab, by agent.
const talks = {};

export async function chat(view) {
  const talk = (talks[api.agent()] ||= { session: "", lines: [] });
  const log = h("div", { "aria-live": "polite" });
  const text = h("input", { type: "text", id: "say", autocomplete: "off", placeholder: "Say something", "aria-label": "Message", required: true });
  const send = h("button", { class: "main" }, "Send");
  const line = (who, said, extra) => {
    const p = h("p", {}, said), box = h("div", { class: "card said " + who }, h("span", { class: "small soft" }, who), p, extra);
    log.append(box);
    box.scrollIntoView({ block: "nearest" });
    return { p, box };
  };
  for (const l of talk.lines) line(...l);
  fill(view, h("h2", {}, "Chat with ", api.agent()), log,
    h("form", { class: "row", onsubmit: async (e) => {
      e.preventDefault();
      const said = text.value;
      text.value = "";
      send.disabled = true;
      line("user", said);
      talk.lines.push(["user", said]);
      const answer = line("agent", "…");
      let heard = "";
      try {
        const res = await api.say({ text: said, session: talk.session || undefined }, (delta) => { heard += delta; answer.p.textContent = heard; });
        talk.session = res.session;
        answer.p.textContent = res.text;
        const extra = [
          res.memory && h("details", { class: "small" }, h("summary", {}, "What memory gave"), h("pre", {}, res.memory)),
          ...res.notes.map((n) => h("div", { class: "small soft" }, n)),
        ];
        add(answer.box, extra);
        talk.lines.push(["agent", res.text]);
      } catch (err) {
        answer.box.append(trouble(err));
      }
      send.disabled = false;
      text.focus();
    } }, text, send, h("button", { type: "button", onclick: () => { delete talks[api.agent()]; chat(view); } }, "New session")));
  text.focus();
}

function row(it) {
  return h("div", { class: "card" }, h("div", {}, link(it.handle), " ", h("strong", {}, it.title || it.speaker || "")),
    h("div", {}, it.content || it.text),
    h("div", { class: "small soft" }, h("span", { class: "tag" }, it.kind || it.type), it.importance && h("span", { class: "tag" }, "importance " + it.importance),
      it.confidence !== undefined && h("span", { class: "tag" }, "confidence " + it.confidence), it.status && it.status !== "active" && h("span", { class: "tag bad" }, it.status), when(it.updated_at || it.time)));
}

export async function memory(view) {
  const words = h("input", { type: "search", id: "search", placeholder: "Words, or a question", "aria-label": "Search" });
  const scope = h("select", { id: "scope", "aria-label": "Where" }, [["items", "memories"], ["episodes", "what was said"], ["archived", "archived"], ["all", "everything"]].map(([v, t]) => h("option", { value: v }, t)));
  const out = h("div", { id: "results" });
  const find = async () => {
    fill(out, h("p", { class: "soft" }, "Looking…"));
    try {
      if (!words.value.trim()) {
        const { items } = await api.op("memory.list", { limit: 50 });
        return fill(out, h("p", { class: "soft" }, items.length ? "The newest memories:" : "Nothing is remembered yet. Say something in the chat, then run a checkpoint."), items.map(row));
      }
      const res = await api.op("memory.search", { text: words.value, scope: scope.value, limit: 20 });
      const found = [...res.items, ...res.episodes];
      fill(out, h("p", { class: "soft" }, found.length ? found.length + " found" : "Nothing found. “everything” looks at what was said and at archived memories too."), found.map(row));
    } catch (err) {
      fill(out, trouble(err));
    }
  };
  fill(view, h("h2", {}, "Memory"), h("form", { class: "row", onsubmit: (e) => { e.preventDefault(); find(); } }, words, scope, h("button", { class: "main" }, "Search")), out);
  words.focus();
  await find();
}

export async function item(view, handle) {
  fill(view, h("p", {}, h("a", { href: "#/memory" }, "← Memory")), h("h2", {}, handle));
  const why = await api.op("memory.explain", { handle });
  const it = why.item || why.episode;
  if (!why.item) {
    view.append(it ? row(it) : h("pre", {}, JSON.stringify(why, null, 2)));
    return;
  }
  const again = () => item(view, handle);
  const act = (name, input, done) => async () => {
    try { await api.op(name, input); notice(done); await again(); } catch (err) { notice(err.message + (err.hint ? " — " + err.hint : ""), true); }
  };
  const waits = it.status === "quarantined";
  add(view, [
    row(it),
    h("div", { class: "row" },
      waits && h("button", { class: "main", onclick: act("memory.approve", { handle }, handle + " is approved") }, "Approve"),
      waits && h("button", { onclick: act("memory.reject", { handle }, handle + " is rejected") }, "Reject"),
      it.version > 1 && it.status !== "forgotten" && h("button", { onclick: act("memory.revert", { handle }, "Back at the version before") }, "Revert the last change"),
      it.status !== "forgotten" && h("button", { class: "danger", id: "forget", onclick: async () => {
        if (await ask("Forget " + handle + "?", "Its text goes for good, and what it rests on is no longer recalled. To remove what was said from every file too: openclawssy memory erase --item " + handle, "Forget")) act("memory.forget", { handle }, handle + " is forgotten")();
      } }, "Forget")),
    h("h3", {}, "Why it is remembered"),
    why.evidence.length ? why.evidence.map((e) => h("div", { class: "card" }, h("blockquote", {}, e.quote || e.text),
      h("div", { class: "small soft" }, e.speaker, ", ", when(e.time), ", session ", e.session_id || "–", " ", (e.handles || []).map(link)))) : h("p", { class: "soft" }, "No evidence: it was written directly."),
    why.checkpoint && h("p", { class: "small soft" }, "Distilled by ", why.checkpoint.model, " in ", h("a", { href: "#/checkpoints/" + why.checkpoint.id }, why.checkpoint.id)),
    h("h3", {}, "History"),
    h("div", { class: "wide" }, h("table", { id: "history" }, h("thead", {}, h("tr", {}, ["Version", "When", "What", "By", "Text"].map((t) => h("th", {}, t)), h("th", {}))),
      h("tbody", {}, why.revisions.map((r) => h("tr", {}, h("td", { class: "n" }, r.item ? r.item.version : ""), h("td", {}, when(r.at)), h("td", {}, r.action), h("td", {}, r.by, r.why && h("div", { class: "small soft" }, r.why)),
        h("td", {}, r.item ? r.item.content : ""), h("td", {}, r.item && r.item.version < it.version && it.status !== "forgotten" && h("button", { onclick: act("memory.revert", { handle, to: r.item.version }, "Back at version " + r.item.version) }, "Go back to it"))))))),
  ]);
}

export async function recall(view, run) {
  const text = h("input", { type: "text", id: "question", placeholder: "What the user says", "aria-label": "Question", required: true });
  const out = h("div", { id: "recalled" });
  const candidates = (list) => h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, ["", "Memory", "Score", "Why"].map((t) => h("th", {}, t)))),
    h("tbody", {}, (list || []).map((c) => h("tr", { class: c.in ? "in" : "" }, h("td", {}, c.in ? "in" : "out"), h("td", {}, link(c.handle)), h("td", { class: "n" }, (c.score || 0).toFixed(2)), h("td", { class: "small" }, c.why || "", " ", channels(c)))))));
  const channels = (c) => Object.entries(c.channels || c.scores || {}).map(([k, v]) => h("span", { class: "tag" }, k + " " + (typeof v === "number" ? v.toFixed(2) : v)));
  fill(view, h("h2", {}, "Recall"), h("p", { class: "soft" }, "The very block that a prompt with this message would get, and why each memory is in or out."),
    h("form", { class: "row", onsubmit: async (e) => {
      e.preventDefault();
      try {
        const r = await api.op("memory.recall", { text: text.value });
        fill(out, r.degraded && h("p", { class: "bad" }, "Not everything was asked: " + r.degraded), h("pre", { id: "block" }, r.text || "(nothing is relevant enough)"),
          h("p", { class: "small soft" }, `relevance ${(r.trace.relevance || 0).toFixed(2)} of ${(r.trace.threshold || 0).toFixed(2)} needed`), candidates(r.trace.candidates));
      } catch (err) { fill(out, trouble(err)); }
    } }, text, h("button", { class: "main" }, "Recall")), out);
  const { runs } = await api.op("memory.recalls", { limit: 20 });
  add(view, [h("h3", {}, "Latest runs"), runs.length ? h("div", { class: "wide" }, h("table", {}, h("tbody", {}, runs.map((r) => h("tr", {}, h("td", {}, when(r.started)), h("td", {}, r.query || h("span", { class: "soft" }, "(memory was not asked)")),
    h("td", {}, r.handles.slice(0, 6).map((x) => [link(x), " "]), r.handles.length > 6 && "…"), h("td", {}, h("a", { href: "#/recall/" + r.run }, "Why")), h("td", { class: "bad small" }, r.degraded)))))) : h("p", { class: "soft" }, "None yet.")]);
  if (run) {
    const w = await api.op("memory.why", { run });
    fill(out, h("h3", {}, "What " + run + " was given"), h("p", {}, "Asked: " + w.query), h("pre", {}, w.block || "(nothing)"), candidates(w.trace && w.trace.candidates),
      w.today && !w.today.same && h("div", { class: "card" }, "Today it would be otherwise:", w.today.removed.map((l) => h("div", { class: "bad" }, "− " + l)), w.today.added.map((l) => h("div", { class: "good" }, "+ " + l))));
  }
  text.focus();
}
