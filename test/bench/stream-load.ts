/** Reads streams to their end over SSE or WebSocket. Prints `{ tokens, ms }`; a token is the provider's `word `. */
import { request } from 'node:http'

interface Options {
  port: number
  streams: number
  kind: 'sse' | 'websocket'
  path: string
  body: string
}
const options = JSON.parse(process.argv[2] ?? '{}') as Options
const count = (text: string): number => text.split('word').length - 1

function overSse(): Promise<number> {
  return new Promise((resolve, reject) => {
    const onward = request(
      {
        host: '127.0.0.1',
        port: options.port,
        path: options.path,
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(options.body) },
      },
      (answer) => {
        let tokens = 0
        let rest = ''
        answer.setEncoding('latin1')
        answer.on('data', (text: string) => {
          // The final answer repeats the whole text: only the deltas count.
          const piece = rest + text
          const cut = piece.lastIndexOf('\n\n')
          if (cut === -1) {
            rest = piece
            return
          }
          for (const event of piece.slice(0, cut).split('\n\n'))
            if (event.includes('"done":false')) tokens += count(event)
          rest = piece.slice(cut + 2)
        })
        answer.on('end', () => resolve(tokens))
        answer.on('error', reject)
      },
    )
    onward.on('error', reject)
    onward.end(options.body)
  })
}

function overWebSocket(): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${options.port}${options.path}`)
    let tokens = 0
    socket.addEventListener('open', () => socket.send(options.body))
    socket.addEventListener('error', () => reject(new Error('socket failed')))
    socket.addEventListener('message', ({ data }) => {
      const text = String(data)
      if (text.includes('"text_delta"')) tokens += count(text)
      else if (text.includes('"type":"response"') || text.includes('"type":"error"')) {
        socket.close()
        resolve(tokens)
      }
    })
  })
}

const begun = performance.now()
const totals = await Promise.all(
  Array.from({ length: options.streams }, options.kind === 'sse' ? overSse : overWebSocket),
)
console.log(JSON.stringify({ tokens: totals.reduce((sum, each) => sum + each, 0), ms: performance.now() - begun }))
