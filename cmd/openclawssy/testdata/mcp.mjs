// What a coding agent does with its memory, by the official client: over a process's
// pipes, or over HTTP where URL is set. The answer is one JSON document.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { URL: address, TOKEN, PROGRAM, HOME_DIR, AGENT } = process.env;
const transport = address
  ? new StreamableHTTPClientTransport(new globalThis.URL(address), { requestInit: { headers: { Authorization: `Bearer ${TOKEN}` } } })
  : new StdioClientTransport({ command: PROGRAM, args: ['mcp', '--agent', AGENT, '--home', HOME_DIR, '--set', 'recall.deadline_ms=20000'], stderr: 'inherit' });
const client = new Client({ name: 'test', version: '1' });
await client.connect(transport);

const call = async (name, args) => {
  const res = await client.callTool({ name, arguments: args });
  return { error: res.isError === true, text: res.content.map((c) => c.text).join('\n'), structured: res.structuredContent ?? null };
};
const failing = async (what) => {
  try {
    await what();
    return '';
  } catch (e) {
    return String(e.message);
  }
};
const out = { server: client.getServerVersion().name };
// listTools compiles the output schemas: callTool checks answers against them.
out.tools = (await client.listTools()).tools.map((t) => ({ name: t.name, reads: t.annotations?.readOnlyHint === true, schema: t.inputSchema.type, described: t.description !== '' }));
out.written = await call('memory_write', { title: 'Deployment', content: 'The staging cluster is called Heron.', kind: 'fact', importance: 4 });
out.found = await call('memory_search', { text: 'staging cluster' });
out.block = await call('memory_recall', { text: 'Which is the staging cluster?' });
out.got = await call('memory_get', { handle: 'MEM-1' });
out.bad = await call('memory_get', { handle: 7 });
out.missing = await call('memory_get', { handle: 'MEM-999' });
out.templates = (await client.listResourceTemplates()).resourceTemplates.map((t) => t.uriTemplate);
out.item = (await client.readResource({ uri: `memory://${AGENT}/items/MEM-1` })).contents[0].text;
out.other = await failing(() => client.readResource({ uri: 'memory://other/items/MEM-1' }));
out.noTool = await failing(() => client.callTool({ name: 'memory_erase', arguments: { match: 'Heron' } }));
const prompts = (await client.listPrompts()).prompts;
out.prompts = prompts.map((p) => p.name);
out.prompt = (await client.getPrompt({ name: 'recall', arguments: { question: 'What is staging called?' } })).messages.map((m) => m.content.text);
out.pong = Object.keys(await client.ping()).length;
if (address) {
  await transport.terminateSession();
}
await client.close();
console.log(JSON.stringify(out));
