// What the page asks the server, with the token that the person entered.

const state = { token: sessionStorage.getItem("token") || "", agent: sessionStorage.getItem("agent") || "" };

export const token = () => state.token;
export const agent = () => state.agent || "default";

export function setToken(text) {
  state.token = text.trim();
  sessionStorage.setItem("token", state.token);
}

export function setAgent(name) {
  state.agent = name;
  sessionStorage.setItem("agent", name);
}

export class Trouble extends Error {
  constructor(status, problem) {
    super((problem && problem.detail) || "The server answered " + status + ".");
    this.status = status;
    this.hint = problem && problem.hint;
    this.kind = problem && problem.error && problem.error.kind;
  }
}

async function request(method, path, body, signal) {
  let resp;
  try {
    resp = await fetch(".." + path, {
      method, signal,
      headers: { Authorization: "Bearer " + state.token, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Trouble(0, { detail: "The server cannot be reached.", hint: "Is openclawssy serve still running?" });
  }
  if (!resp.ok) throw new Trouble(resp.status, await resp.json().catch(() => null));
  return resp;
}

export const get = async (path) => (await request("GET", path)).json();
export const op = async (name, input) => (await request("POST", `/v1/agents/${agent()}/ops/${name}`, input || {})).json();

// say sends a message and calls heard with the answer's text as it comes. It
// returns the whole answer.
export async function say(message, heard) {
  const resp = await request("POST", `/v1/agents/${agent()}/chat`, message);
  const reader = resp.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Trouble(0, { detail: "The answer broke off." });
    rest += value;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const event = {};
      for (const line of rest.slice(0, end).split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
      }
      if (event.event === "delta") heard(JSON.parse(event.data).text);
      if (event.event === "answer") return JSON.parse(event.data);
      if (event.event === "error") { const p = JSON.parse(event.data); throw new Trouble(p.status, p); }
    }
  }
}
