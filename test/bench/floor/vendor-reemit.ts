/**
 * The floor of streaming from a vendor: `fetch` and `eventsource-parser`, each delta of its events written on as one
 * SSE event.
 */
import { createServer } from 'node:http'
import { createParser } from 'eventsource-parser'
import { wireOf } from './wires.ts'

const upstream = process.env['UPSTREAM'] ?? ''
const { text: read } = wireOf(process.env['WIRE'])

createServer((request, response) => {
  if (request.method === 'GET') {
    response.end('ok')
    return
  }
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  void (async () => {
    const answer = await fetch(`${upstream}/floor`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    const queue: string[] = []
    const parser = createParser({
      onEvent: ({ data }) => {
        const text = data === '[DONE]' ? undefined : read(JSON.parse(data))
        if (text) queue.push(text)
      },
    })
    const decoder = new TextDecoder()
    for await (const chunk of answer.body ?? []) {
      parser.feed(decoder.decode(chunk, { stream: true }))
      for (const text of queue.splice(0)) {
        if (!response.write(`event: chunk\ndata: ${JSON.stringify({ content: text, done: false })}\n\n`))
          await new Promise<void>((resolve) => {
            response.once('drain', resolve)
          })
      }
    }
  })().then(
    () => response.end('event: done\ndata: {"done":true}\n\n'),
    () => response.destroy(),
  )
}).listen(Number(process.env['PORT']), '127.0.0.1')
