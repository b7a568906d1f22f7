/**
 * A vendor that answers at once in its own wire format, `WIRE`: `TOKENS` deltas as fast as they are read. Asked for
 * `/floor` the same events come as a plain event stream.
 */
import { createServer } from 'node:http'
import { wireOf, writeSse } from './wires.ts'

const tokens = Number(process.env['TOKENS'] ?? 1)
const wire = wireOf(process.env['WIRE'])
function pieces(write: typeof writeSse) {
  const token = write(wire.token)
  return {
    head: Buffer.concat(wire.head.map(write)),
    token,
    sixteen: Buffer.concat(Array.from({ length: 16 }, () => token)),
    tail: Buffer.concat(wire.tail(tokens).map(write)),
  }
}
const own = pieces(wire.write ?? writeSse)
const plain = pieces(writeSse)

createServer((request, response) => {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'application/json')
    response.end('{"data":[],"models":[]}')
    return
  }
  request.resume()
  request.on('end', () => {
    const floor = request.url === '/floor'
    const { head, token, sixteen, tail } = floor ? plain : own
    response.writeHead(200, { 'content-type': floor ? 'text/event-stream' : wire.type })
    response.write(head)
    let left = tokens
    const pump = (): void => {
      while (left > 0) {
        const take = Math.min(16, left)
        left -= take
        if (!response.write(take === 16 ? sixteen : Buffer.concat(Array.from({ length: take }, () => token)))) {
          response.once('drain', pump)
          return
        }
      }
      response.end(tail)
    }
    pump()
  })
}).listen(Number(process.env['PORT']), '127.0.0.1')
