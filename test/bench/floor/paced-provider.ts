/**
 * A provider in OpenAI's wire format that says `TOKENS` tokens at `RATE` a second on each stream. A token is its
 * number and the moment
 * it was written, `<n>:<epoch ms> `, so that a reader sees what is lost, doubled or out of order, and how late it came.
 */
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'

const tokens = Number(process.env['TOKENS'] ?? 100)
const rate = Number(process.env['RATE'] ?? 20)
const TICK_MS = 5
const chunk = (delta: object, finish: string | null, usage?: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [{ index: 0, delta, finish_reason: finish }], ...(usage && { usage }) })}\n\n`
const head = chunk({ role: 'assistant', content: '' }, null)
const [before, after] = chunk({ content: '@' }, null).split('@') as [string, string]
const tail = `${chunk({}, 'stop', { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens })}data: [DONE]\n\n`

interface Stream {
  readonly response: ServerResponse
  said: number
}
// One timer for all: the streams are spread over the ticks of one token's time.
const buckets: Set<Stream>[] = Array.from({ length: Math.round(1000 / rate / TICK_MS) }, () => new Set<Stream>())
let opened = 0
let at = 0
setInterval(() => {
  const bucket = buckets[at++ % buckets.length]
  for (const stream of bucket ?? []) {
    stream.response.write(`${before}${stream.said}:${Date.now()} ${after}`)
    if (++stream.said < tokens) continue
    bucket?.delete(stream)
    stream.response.end(tail)
  }
}, TICK_MS)

createServer((request, response) => {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'application/json')
    response.end('{"object":"list","data":[{"id":"bench","object":"model"}]}')
    return
  }
  request.resume()
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(head)
    response.socket?.setNoDelay(true)
    const stream = { response, said: 0 }
    const bucket = buckets[opened++ % buckets.length]
    bucket?.add(stream)
    response.on('close', () => bucket?.delete(stream))
  })
}).listen(Number(process.env['PORT']), '127.0.0.1', 4096)
