/**
 * What a durable turn costs by itself: the pass-through proxy with nothing added but reading the answer and the rows
 * a turn leaves behind
 * (turn, two messages, usage, one link of an audit chain), in two commits that are synced before the provider is
 * called and before the
 * answer is sent. Everyone who comes in one tick shares a commit. No host, no routes, no history, no limits.
 */
import { randomUUID } from 'node:crypto'
import { Agent, createServer, request as send } from 'node:http'
import { addToAudit, durable, end, message, turn, usage } from './turn-rows.ts'

const upstream = new URL(process.env['UPSTREAM'] ?? '')
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const seqs = new Map<string, number>()
let count = 0
function complete(body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    send(
      {
        host: upstream.hostname,
        port: upstream.port,
        path: '/v1/chat/completions',
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      },
      (answer) => {
        let text = ''
        answer
          .setEncoding('utf8')
          .on('data', (piece: string) => {
            text += piece
          })
          .on('end', () => resolve(text))
      },
    )
      .on('error', reject)
      .end(body)
  })
}
async function take(path: string, body: string): Promise<string> {
  const said = (JSON.parse(body) as { message: string }).message
  const [id, at, seq] = [
    `${Date.now()}-${++count}-${randomUUID()}`,
    new Date().toISOString(),
    (seqs.get(path) ?? 0) + 2,
  ]
  seqs.set(path, seq)
  await durable(() => {
    turn.run(id, path, at)
    message.run(path, seq, id, 'user', said, at)
  })
  const stream = await complete(
    JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content: said }] }),
  )
  let text = ''
  for (const line of stream.split('\n')) {
    if (!line.startsWith('data: {')) continue
    text +=
      (JSON.parse(line.slice(6)) as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? ''
  }
  await durable(() => {
    const now = new Date().toISOString()
    message.run(path, seq + 1, id, 'assistant', text, now)
    usage.run(now, path, id, 'bench', 10, 4)
    end.run(now, id)
    addToAudit(now, path, `turn ${id} done`)
  })
  return JSON.stringify({ response: text, turn_id: id })
}
createServer((request, response) => {
  if (request.method === 'GET') {
    response.end('ok')
    return
  }
  let body = ''
  request
    .setEncoding('utf8')
    .on('data', (piece: string) => {
      body += piece
    })
    .on('end', () => {
      take(request.url ?? '', body).then(
        (answer) => {
          response
            .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
            .end(answer)
        },
        () => response.destroy(),
      )
    })
}).listen(Number(process.env['PORT']), '127.0.0.1')
