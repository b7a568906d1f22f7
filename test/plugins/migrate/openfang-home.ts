import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { encode } from '@msgpack/msgpack'
import Sqlite from 'better-sqlite3'

export const SCOUT = '11111111-1111-4111-8111-111111111111'
export const CLERK = '22222222-2222-4222-8222-222222222222'

/** The database of a home of OpenFang or LibreFang, with the tables and columns that its versions have had. */
export async function writeDatabase(home: string, product: 'openfang' | 'librefang', version: number): Promise<void> {
  await mkdir(join(home, 'data'), { recursive: true })
  const db = new Sqlite(join(home, 'data', `${product}.db`))
  db.pragma('journal_mode = WAL')
  db.pragma(`user_version = ${version}`)
  db.exec(`CREATE TABLE agents (id TEXT PRIMARY KEY, name TEXT NOT NULL, manifest BLOB NOT NULL, state TEXT NOT NULL,
      created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
    CREATE TABLE sessions (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, messages BLOB NOT NULL,
      context_window_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
    CREATE TABLE memories (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, content TEXT NOT NULL, source TEXT NOT NULL,
      scope TEXT NOT NULL DEFAULT 'episodic', confidence REAL NOT NULL DEFAULT 1.0, metadata TEXT NOT NULL DEFAULT '{}',
      created_at TEXT NOT NULL, accessed_at TEXT NOT NULL, access_count INTEGER NOT NULL DEFAULT 0,
      deleted INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE kv_store (agent_id TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,
      PRIMARY KEY (agent_id, key));
    -- What a hostile file may have: a name that is expected, and is no table.
    CREATE VIEW task_queue AS SELECT load_extension('/tmp/evil.so') AS id;`)
  if (version >= 6) db.exec('ALTER TABLE sessions ADD COLUMN label TEXT')
  const at = '2026-01-05T10:00:00+00:00'
  const agent = db.prepare(`INSERT INTO agents VALUES (?, ?, ?, 'Running', ?, ?)`)
  agent.run(SCOUT, 'scout', encode({ name: 'scout' }), at, at)
  const manifest = { name: 'clerk', description: 'Files things', model: { provider: 'openai', model: 'gpt-5.2' } }
  agent.run(CLERK, 'clerk', encode({ ...manifest, workspace: null }), at, at)
  const session = db.prepare(
    `INSERT INTO sessions (id, agent_id, messages, created_at, updated_at${version >= 6 ? ', label' : ''})
      VALUES (?, ?, ?, ?, ?${version >= 6 ? ', ?' : ''})`,
  )
  const label = version >= 6 ? ['rounds'] : []
  const call = { type: 'tool_use', id: 't1', name: 'web_fetch', input: { url: 'https://example.com' } }
  const messages = [
    { role: 'system', content: 'You look around.' },
    { role: 'user', content: 'What is new?' },
    { role: 'assistant', content: [{ type: 'text', text: 'I look.' }, call] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'Nothing.', is_error: false }] },
    { role: 'assistant', content: [{ type: 'text', text: 'Nothing is new.' }] },
  ]
  session.run('33333333-3333-4333-8333-333333333333', SCOUT, encode(messages), at, at, ...label)
  session.run('44444444-4444-4444-8444-444444444444', SCOUT, Buffer.from('broken'), at, at, ...label)
  session.run('55555555-5555-4555-8555-555555555555', 'gone', encode(messages), at, at, ...label)
  const memory = db.prepare(
    `INSERT INTO memories (id, agent_id, content, source, confidence, created_at, accessed_at, deleted)
      VALUES (?, ?, ?, '"Conversation"', ?, ?, ?, ?)`,
  )
  memory.run('m1', SCOUT, 'The gate closes at nine.', 0.8, at, at, 0)
  memory.run('m2', SCOUT, 'Deleted.', 1, at, at, 1)
  const value = db.prepare('INSERT INTO kv_store VALUES (?, ?, ?)')
  value.run(SCOUT, 'gate', Buffer.from('{"closes":21}'))
  value.run('00000000-0000-0000-0000-000000000001', '__openfang_schedules', Buffer.from('[]'))
  db.close()
}
