/**
 * The floor of streaming: `fetch` and `eventsource-parser`, each delta written on as one SSE event or one WebSocket
 * frame.
 */
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'
import { createParser } from 'eventsource-parser'

const upstream = process.env['UPSTREAM'] ?? ''

async function deltas(each: (text: string) => void | Promise<void>): Promise<void> {
  const answer = await fetch(`${upstream}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"m","stream":true,"messages":[]}',
  })
  const queue: string[] = []
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data === '[DONE]') return
      const text = (JSON.parse(data) as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content
      if (text) queue.push(text)
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of answer.body ?? []) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    for (const text of queue.splice(0)) {
      const wait = each(text)
      if (wait) await wait
    }
  }
}

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.end('ok')
    return
  }
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  void deltas((text) => {
    if (response.write(`event: chunk\ndata: ${JSON.stringify({ content: text, done: false })}\n\n`)) return
    return new Promise<void>((resolve) => {
      response.once('drain', resolve)
    })
  }).then(
    () => response.end('event: done\ndata: {"done":true}\n\n'),
    () => response.destroy(),
  )
})
const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
sockets.on('connection', (peer) => {
  peer.on('message', () => {
    void deltas((text) => {
      peer.send(JSON.stringify({ type: 'text_delta', content: text }))
    }).then(() => peer.send('{"type":"response"}'))
  })
})
server.on('upgrade', (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, (peer) => sockets.emit('connection', peer, request))
})
server.listen(Number(process.env['PORT']), '127.0.0.1')
