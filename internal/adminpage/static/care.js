// How memory takes care of itself: checkpoints, decisions, jobs, messages, health.

import * as api from "./api.js";
import { h, fill, add, when, notice, trouble, ask } from "./dom.js";

const link = (handle) => [h("a", { href: "#/item/" + handle }, handle), " "];
const doing = (again, name, input, done) => async () => {
  try { await api.op(name, input); notice(done); await again(); } catch (err) { notice(err.message + (err.hint ? " — " + err.hint : ""), true); }
};

export async function checkpoints(view, id) {
  const again = () => checkpoints(view, id);
  fill(view, h("h2", {}, "Checkpoints"), h("div", { class: "row" }, h("button", { class: "main", id: "checkpoint", onclick: async (e) => {
    e.target.disabled = true;
    try { const r = await api.op("memory.checkpoint", {}); notice(`${r.events} events read: ${r.created.length} memories made, ${r.updated.length} changed, ${r.refused.length} refused`); await again(); } catch (err) { notice(err.message, true); e.target.disabled = false; }
  } }, "Distil what is new now")));
  const list = id ? [await api.op("memory.checkpoint.show", { id })] : (await api.op("memory.checkpoint.list", { limit: 20 })).checkpoints;
  if (id) view.append(h("p", {}, h("a", { href: "#/checkpoints" }, "← all")));
  if (!list.length) view.append(h("p", { class: "soft" }, "None yet."));
  for (const c of list) {
    const handles = (name, xs) => xs && xs.length > 0 && h("details", { open: Boolean(id) }, h("summary", {}, `${xs.length} ${name}`), h("div", {}, xs.map(link)));
    add(view, [h("div", { class: "card" }, h("strong", {}, when(c.at)), h("div", { class: "small soft" }, `events ${c.range.first} to ${c.range.last}, by ${c.model}`, c.tokens_in ? `, ${c.tokens_in + c.tokens_out} tokens` : "", " ", h("a", { href: "#/checkpoints/" + c.id }, c.id)),
      handles("made", c.created), handles("changed", c.updated), handles("merged", c.merged), handles("to decide", c.quarantined),
      c.refused && c.refused.length > 0 && h("details", { open: Boolean(id) }, h("summary", { class: "bad" }, `${c.refused.length} refused`), c.refused.map((r) => h("pre", {}, typeof r === "string" ? r : JSON.stringify(r, null, 2)))),
      h("button", { class: "danger", onclick: async () => { if (await ask("Undo this checkpoint?", "What it made and changed goes back to what it was before, as new versions.", "Undo")) doing(again, "memory.checkpoint.revert", { id: c.id }, "The checkpoint is undone")(); } }, "Undo"))]);
  }
}

export async function quarantine(view) {
  const again = () => quarantine(view);
  const { items } = await api.op("memory.list", { status: "quarantined", limit: 0 });
  fill(view, h("h2", {}, "To decide"), h("p", { class: "soft" }, items.length ? "These were not taken for true without you." : "Nothing waits for you."),
    items.map((it) => h("div", { class: "card" }, link(it.handle), h("strong", {}, it.title), h("div", {}, it.content), it.evidence.map((e) => h("blockquote", {}, e.quote)),
      h("div", { class: "row" }, h("button", { class: "main", onclick: doing(again, "memory.approve", { handle: it.handle }, it.handle + " is approved") }, "Approve"), h("button", { onclick: doing(again, "memory.reject", { handle: it.handle }, it.handle + " is rejected") }, "Reject")))));
}

export async function jobs(view) {
  const again = () => jobs(view);
  const list = await api.op("cron.list", {});
  fill(view, h("h2", {}, "Jobs"), h("p", { class: "soft" }, list.serving ? "The schedule is running." : "No process runs the schedule now."),
    list.jobs.map((j) => {
      const last = (j.runs || [])[j.runs.length - 1];
      return h("div", { class: "card" }, h("strong", {}, j.name), " ", h("span", { class: "tag" }, j.schedule), j.paused && h("span", { class: "tag bad" }, "paused"), j.overdue && h("span", { class: "tag bad" }, "overdue"), j.stuck && h("span", { class: "tag bad" }, "stuck"),
        h("div", { class: "small soft" }, "next ", j.paused ? "–" : when(j.next), "; last ", last ? [when(last.started), ": ", last.outcome] : "never"),
        last && last.outcome !== "ok" && h("pre", {}, last.detail),
        h("div", { class: "row" }, h("button", { onclick: doing(again, "cron.run", { name: j.name }, j.name + " has run") }, "Run now"),
          j.paused ? h("button", { onclick: doing(again, "cron.resume", { name: j.name }, j.name + " goes on") }, "Resume") : h("button", { onclick: doing(again, "cron.pause", { name: j.name }, j.name + " is paused") }, "Pause")));
    }));
}

export async function messages(view) {
  const again = () => messages(view);
  const [inbox, held] = await Promise.all([api.op("agent.message.inbox", {}), api.op("agent.message.held", {})]);
  const card = (m, acts) => h("div", { class: "card" }, h("div", {}, m.text), h("div", { class: "small soft" }, h("span", { class: "tag" }, m.trigger), m.user_id, " ", m.channel, " ", when(m.created || m.at || m.due)), m.reason && h("div", { class: "small bad" }, m.reason), (m.memories || []).map((x) => link(x.handle || x)), acts);
  fill(view, h("h2", {}, "Messages"), inbox.messages.length ? inbox.messages.map((m) => card(m, h("div", { class: "row" }, h("button", { onclick: doing(again, "agent.message.ack", { id: m.handle || m.id }, "Out of the way") }, "Seen")))) : h("p", { class: "soft" }, "The agent has nothing to say by itself."),
    h("h3", {}, "Held back"), held.messages.length ? held.messages.map((m) => card(m)) : h("p", { class: "soft" }, "None."));
}

// perDay counts times by local day, from the first to today.
function perDay(times) {
  const count = new Map(), day = (t) => { const d = new Date(t); d.setHours(0, 0, 0, 0); return d.getTime() / 1000; };
  for (const t of times) count.set(day(t), (count.get(day(t)) || 0) + 1);
  const days = [...count.keys()].sort((a, b) => a - b), xs = [], ys = [];
  if (!days.length) return null;
  const last = Math.max(day(Date.now()), days[days.length - 1]);
  let sum = 0;
  const first = new Date(days[0] * 1000);
  first.setDate(first.getDate() - 1); // a line begins at nothing
  for (let d = first; d.getTime() / 1000 <= last && xs.length < 4000; d.setDate(d.getDate() + 1)) {
    const at = day(d);
    sum += count.get(at) || 0;
    xs.push(at);
    ys.push(sum);
  }
  return [xs, ys];
}

function chart(box, title, data) {
  const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--soft"), accent = style.getPropertyValue("--accent"), grid = style.getPropertyValue("--line");
  const axis = { stroke: ink, grid: { stroke: grid }, ticks: { stroke: grid } };
  new window.uPlot({ title, width: Math.max(280, Math.min(box.clientWidth || 600, 900)), height: 220, legend: { show: false }, axes: [axis, axis], series: [{}, { stroke: accent, width: 2, points: { show: data[0].length < 30 } }] }, data, box);
}

export async function health(view) {
  const doc = await api.get("/api/admin/memory/" + api.agent());
  const st = doc.status, figure = (n, name) => h("div", { class: "card figure" }, h("b", {}, n), name);
  const box = h("div", { class: "chart", role: "img", "aria-label": "Memories over time" });
  fill(view, h("h2", {}, "Health"),
    st.problems.length ? st.problems.map((p) => h("div", { class: "card bad" }, p.text, h("div", { class: "small" }, "since ", when(p.since)))) : h("p", { class: "good" }, "Nothing is wrong."),
    h("div", { class: "figures" }, figure(st.items, "memories"), figure(st.events, "events"), figure(st.backlog, "turns not distilled"), figure(st.quarantine, "to decide"), figure(st.parked, "parked"), figure(st.dropped, "events lost"), figure(st.index_lag, "not searchable yet"),
      st.spend && figure(st.spend.used.calls, "model calls today"), st.spend && figure(st.spend.used.tokens_in + st.spend.used.tokens_out, "tokens today")),
    h("p", { class: "small soft" }, "last event ", when(st.last_event), "; last checkpoint ", when(st.last_checkpoint)), box,
    h("h3", {}, "Next jobs"), h("ul", {}, st.next_jobs.map((j) => h("li", {}, j.name, ", ", when(j.at)))), h("details", {}, h("summary", {}, "All of it"), h("pre", {}, JSON.stringify(doc, null, 2))));
  const { items } = await api.op("memory.list", { status: "all", limit: 0 });
  const data = perDay(items.map((i) => i.created_at));
  if (data) chart(box, "Memories over time", data);
}
