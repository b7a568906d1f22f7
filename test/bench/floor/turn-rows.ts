/** The rows that a turn leaves behind, in a database of their own, and commits that all who come in one tick share. */
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'

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
export const turn = db.prepare("INSERT INTO turn (id, agent, state, created_at) VALUES (?, ?, 'running', ?)")
export const end = db.prepare("UPDATE turn SET state = 'done', ended_at = ? WHERE id = ?")
export const message = db.prepare(
  'INSERT INTO message (agent, seq, turn, role, text, created_at) VALUES (?, ?, ?, ?, ?, ?)',
)
export const usage = db.prepare('INSERT INTO usage (at, agent, turn, model, input, output) VALUES (?, ?, ?, ?, ?, ?)')
const audit = db.prepare('INSERT INTO audit (id, at, event, agent, details, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)')

/** Settles when what is written is on the disk. */
export function durable(write: () => void): Promise<void> {
  return new Promise((done) => {
    if (waiting.push({ write, done }) === 1) setImmediate(flush)
  })
}
let waiting: { readonly write: () => void; readonly done: () => void }[] = []
function flush(): void {
  const group = waiting
  waiting = []
  begin.run()
  for (const { write } of group) write()
  commit.run()
  for (const { done } of group) done()
}

let tip = { id: 0, hash: '0'.repeat(64) }
/** One link of an audit chain. */
export function addToAudit(at: string, agent: string, details: string): void {
  const next = { id: tip.id + 1, hash: hash('sha256', `${tip.id + 1}:${tip.hash}:${at}:${agent}:${details}`) }
  audit.run(next.id, at, 'agent_message', agent, details, tip.hash, next.hash)
  tip = next
}
