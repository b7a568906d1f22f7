/** The floor: a bare `node:http` server that answers GET with a small JSON and POST with what it read. Plain JavaScript, so that starting it costs nothing else. */
import { createServer } from 'node:http'

const body = JSON.stringify({ status: 'ok', uptime_seconds: 1, panic_count: 0, restart_count: 0 })
createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
    return
  }
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const parsed = JSON.parse(Buffer.concat(chunks).toString())
    const answer = JSON.stringify({ status: 'stored', value: parsed })
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
      .end(answer)
  })
}).listen(Number(process.env['PORT']), '127.0.0.1')
