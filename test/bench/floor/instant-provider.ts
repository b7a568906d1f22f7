/**
 * A provider that answers at once in OpenAI's wire format: a stream of `TOKENS` deltas as fast as it is read. With
 * `CALL_EVERY` every so many questions it asks for a call of `CALL_TOOL` first. `GET /last-request` answers what it was
 * asked last.
 */
import { createServer } from 'node:http'

const tokens = Number(process.env['TOKENS'] ?? 1)
const callEvery = Number(process.env['CALL_EVERY'] ?? Infinity)
const chunk = (delta: object, finish: string | null, usage?: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [{ index: 0, delta, finish_reason: finish }], ...(usage && { usage }) })}\n\n`
const head = chunk({ role: 'assistant', content: '' }, null)
const token = chunk({ content: 'word ' }, null)
const tail = `${chunk({}, 'stop', { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens })}data: [DONE]\n\n`
const piece = Buffer.from(token.repeat(16))
const call = { name: process.env['CALL_TOOL'] ?? '', arguments: '{}' }
const callTail = `${chunk({}, 'tool_calls', { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 })}data: [DONE]\n\n`

let questions = 0
let last = ''
/** Whether this request is answered with a call: it ends with a question, and not with the result of a call. */
function asksForTool(body: string): boolean {
  const at = body.lastIndexOf('"role":"')
  return body.startsWith('user"', at + 8) && ++questions % callEvery === 0
}

createServer((request, response) => {
  if (request.url === '/last-request') {
    response.end(last)
    return
  }
  if (request.method === 'GET') {
    response.setHeader('content-type', 'application/json')
    response.end('{"object":"list","data":[{"id":"bench","object":"model"}]}')
    return
  }
  let body = ''
  request.setEncoding('utf8').on('data', (text: string) => {
    body += text
  })
  request.on('end', () => {
    last = body
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (asksForTool(body)) {
      const calls = [{ index: 0, id: `call_${questions}`, type: 'function', function: call }]
      response.end(chunk({ role: 'assistant', content: null, tool_calls: calls }, null) + callTail)
      return
    }
    if (tokens <= 16) {
      response.end(head + token.repeat(tokens) + tail)
      return
    }
    response.write(head)
    let left = tokens
    const pump = (): void => {
      while (left > 0) {
        const take = Math.min(16, left)
        left -= take
        if (!response.write(take === 16 ? piece : Buffer.from(token.repeat(take)))) {
          response.once('drain', pump)
          return
        }
      }
      response.end(tail)
    }
    pump()
  })
}).listen(Number(process.env['PORT']), '127.0.0.1')
