/**
 * What a durable turn costs by itself: the pass-through proxy with nothing added but reading the answer and the rows
 * a turn leaves behind
 * (turn, two messages, usage, one link of an audit chain), in two commits that are synced before the provider is
 * called and before the
 * answer is sent. Everyone who comes in one tick shares a commit. No host, no routes, no history, no limits.
 */
import { hash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, createServer, request as send } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'

const upstream = new URL(process.env['UPSTREAM'] ?? '')
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const folder = mkdtempSync(join(tmpdir(), 'svc-bench-floor-'))
process.on('SIGTERM', () => {
  rmSync(folder, { recursive: true, force: true })
  process.exit()
})
const db = new Database(join(folder, 'floor.db'))
for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'wal_autocheckpoint = 8000', 'cache_size = -16000'])
  db.pragma(pragma)
db.exec(`CREATE TABLE turn (id TEXT NOT NULL PRIMARY KEY, agent TEXT NOT NULL, state TEXT NOT NULL, created_at TEXT NOT NULL, ended_at TEXT);
  CREATE INDEX turn_agent ON turn (agent, created_at);
  CREATE TABLE message (agent TEXT NOT NULL, seq INTEGER NOT NULL, turn TEXT NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL, created_at TEXT NOT NULL, PRIMARY KEY (agent, seq));
  CREATE TABLE usage (id INTEGER PRIMARY KEY, at TEXT NOT NULL, agent TEXT NOT NULL, turn TEXT NOT NULL, model TEXT NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL);
  CREATE INDEX usage_agent ON usage (agent);
  CREATE TABLE audit (id INTEGER PRIMARY KEY, at TEXT NOT NULL, event TEXT NOT NULL, agent TEXT NOT NULL, details TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL);
  CREATE INDEX audit_agent ON audit (agent, id);`)
const [begin, commit] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]
const turn = db.prepare("INSERT INTO turn (id, agent, state, created_at) VALUES (?, ?, 'running', ?)")
const end = db.prepare("UPDATE turn SET state = 'done', ended_at = ? WHERE id = ?")
const message = db.prepare('INSERT INTO message (agent, seq, turn, role, text, created_at) VALUES (?, ?, ?, ?, ?, ?)')
const usage = db.prepare('INSERT INTO usage (at, agent, turn, model, input, output) VALUES (?, ?, ?, ?, ?, ?)')
const audit = db.prepare('INSERT INTO audit (id, at, event, agent, details, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)')

let waiting: { readonly write: () => void; readonly done: () => void }[] = []
function durable(write: () => void): Promise<void> {
  return new Promise((done) => {
    if (waiting.push({ write, done }) === 1) setImmediate(flush)
  })
}
function flush(): void {
  const group = waiting
  waiting = []
  begin.run()
  for (const { write } of group) write()
  commit.run()
  for (const { done } of group) done()
}

const seqs = new Map<string, number>()
let tip = { id: 0, hash: '0'.repeat(64) }
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
    const details = `turn ${id} done`
    message.run(path, seq + 1, id, 'assistant', text, now)
    usage.run(now, path, id, 'bench', 10, 4)
    end.run(now, id)
    const next = { id: tip.id + 1, hash: hash('sha256', `${tip.id + 1}:${tip.hash}:${now}:${path}:${details}`) }
    audit.run(next.id, now, 'agent_message', path, details, tip.hash, next.hash)
    tip = next
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
