// What a program does that uses the official client: it knows of the proxy by its
// base URL only. It prints what it has got as JSON.
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.TOKEN, maxRetries: 0 })
const out = {}
const inSession = (id) => ({ headers: { 'X-Openclawssy-Session': id } })

const { data, response } = await client.chat.completions
  .create({ model: 'openclawssy', messages: [{ role: 'user', content: 'The studio closes on Mondays.' }] }, inSession('js-1'))
  .withResponse()
out.plain = data.choices[0].message.content
out.session = response.headers.get('x-openclawssy-session')

let text = ''
const stream = await client.chat.completions.create(
  { model: 'openclawssy', stream: true, messages: [{ role: 'user', content: [{ type: 'text', text: 'On which day is the studio closed?' }] }] }, inSession('js-2'))
for await (const part of stream) text += part.choices[0]?.delta?.content ?? ''
out.streamed = text

const runner = client.chat.completions.runTools({
  model: 'openclawssy',
  stream: true,
  messages: [{ role: 'user', content: 'Is the studio open today?' }],
  tools: [{ type: 'function', function: { name: 'weekday', parameters: { type: 'object', properties: {} }, parse: JSON.parse, function: () => 'Monday' } }],
}, inSession('js-3'))
out.tools = await runner.finalContent()

out.models = (await client.models.list()).data.map((m) => m.id)
out.vector = (await client.embeddings.create({ model: 'small', input: 'tea', encoding_format: 'float' })).data[0].embedding

for (const [name, question] of [['busy', 'be busy'], ['page', 'show a page'], ['broken', 'break off']]) {
  try {
    const s = await client.chat.completions.create({ model: 'm', stream: name === 'broken', messages: [{ role: 'user', content: question }] }, inSession('js-' + name))
    let got = ''
    if (name === 'broken') for await (const part of s) got += part.choices[0]?.delta?.content ?? ''
    out[name] = { got: got || s }
  } catch (err) {
    out[name] = { error: err.constructor.name, status: err.status ?? null, message: String(err.message), retry: err.headers?.get?.('retry-after') ?? null }
  }
}
console.log(JSON.stringify(out))
