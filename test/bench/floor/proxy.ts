/** The floor of a chat turn: a pass-through proxy to the same provider, keep-alive on both sides, nothing else. */
import { Agent, createServer, request as send } from 'node:http'

const upstream = new URL(process.env['UPSTREAM'] ?? '')
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
createServer((request, response) => {
  if (request.method === 'GET') {
    response.end('ok')
    return
  }
  const onward = send(
    {
      host: upstream.hostname,
      port: upstream.port,
      path: '/v1/chat/completions',
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json', 'content-length': request.headers['content-length'] ?? '0' },
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 500, {
        'content-type': answer.headers['content-type'] ?? 'application/json',
      })
      answer.pipe(response)
    },
  )
  onward.on('error', () => response.destroy())
  request.pipe(onward)
}).listen(Number(process.env['PORT']), '127.0.0.1')
