/** A provider that answers at once in OpenAI's wire format: a stream of `TOKENS` deltas as fast as it is read. */
import { createServer } from 'node:http'

const tokens = Number(process.env['TOKENS'] ?? 1)
const chunk = (delta: object, finish: string | null, usage?: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [{ index: 0, delta, finish_reason: finish }], ...(usage && { usage }) })}\n\n`
const head = chunk({ role: 'assistant', content: '' }, null)
const token = chunk({ content: 'word ' }, null)
const tail = `${chunk({}, 'stop', { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens })}data: [DONE]\n\n`
const piece = Buffer.from(token.repeat(16))

createServer((request, response) => {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'application/json')
    response.end('{"object":"list","data":[{"id":"bench","object":"model"}]}')
    return
  }
  request.resume()
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
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
