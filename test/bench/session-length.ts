import Database from 'better-sqlite3'
import { join } from 'node:path'
import type { Result } from './figures.ts'
import { Home, freePort, load, median, root, startServer, startSvc } from './processes.ts'

const json = { 'content-type': 'application/json' }
const long = 100_000

async function spawnTalker(base: string, name: string): Promise<string> {
  const manifest_toml = `name = "${name}"\n[model]\nprovider = "default"\nmodel = "default"\n`
  const spawned = (await (
    await fetch(`${base}/api/agents`, { method: 'POST', headers: json, body: JSON.stringify({ manifest_toml }) })
  ).json()) as { agent_id: string }
  await (
    await fetch(`${base}/api/agents/${spawned.agent_id}/message`, {
      method: 'POST',
      headers: json,
      body: '{"message":"hello"}',
    })
  ).text()
  return spawned.agent_id
}

/** Grows an agent's session by rows of the size a chat has. */
function grow(home: Home, agentId: string, count: number): void {
  const database = new Database(join(home.path, 'data', 'svc.db'))
  const session = database.prepare('SELECT id FROM sessions_session WHERE agent_id = ?').pluck().get(agentId) as string
  const from = database
    .prepare('SELECT max(turn_seq) FROM sessions_message WHERE session_id = ?')
    .pluck()
    .get(session) as number
  const insert = database.prepare(
    'INSERT INTO sessions_message (session_id, turn_seq, seq, id, turn_id, role, blocks, mark, chars, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)',
  )
  const blocks = JSON.stringify([
    { type: 'text', text: 'a sentence of the usual length in a chat, neither long nor short. '.repeat(3) },
  ])
  database.transaction(() => {
    for (let index = 0; index < count; index++) {
      const turn = from + 1 + Math.floor(index / 2)
      insert.run(
        session,
        turn,
        (index % 2) + 1,
        `${agentId}-${index}`,
        `${agentId}-t${turn}`,
        index % 2 === 0 ? 'user' : 'assistant',
        blocks,
        blocks.length,
        new Date().toISOString(),
      )
    }
    database
      .prepare(
        'UPDATE sessions_session SET message_count = message_count + ?, appended = appended + ?, fingerprint = fingerprint + 1 WHERE id = ?',
      )
      .run(count, count, session)
  })()
  database.close()
}

/** A turn in a session of 100,000 messages against one that holds as many messages as the model is given. */
export async function sessionLength(): Promise<readonly Result[]> {
  const port = await freePort()
  await using provider = await startServer([join(root, 'test/bench/floor/instant-provider.ts')], {
    port,
    path: '/',
    env: { TOKENS: '4' },
    core: 1,
  })
  using home = new Home(
    `default_provider = "openai"\ndefault_model = "bench"\n[providers.openai]\nbase_url = "http://127.0.0.1:${provider.port}/v1"\napi_key = "bench-key"\n`,
  )
  const agents = await (async () => {
    await using svc = await startSvc(home)
    const base = `http://127.0.0.1:${svc.port}`
    return { short: await spawnTalker(base, 'short'), long: await spawnTalker(base, 'long') }
  })()
  // Both are above the number of messages a model is given, so that the prompts are alike and only the session differs.
  grow(home, agents.short, 200)
  grow(home, agents.long, long)
  await using svc = await startSvc(home)
  const times = { short: [] as number[], long: [] as number[] }
  for (let round = 0; round < 5; round++) {
    for (const which of ['short', 'long'] as const) {
      const { p50Ms } = await load<{ p50Ms: number }>('load.ts', {
        port: svc.port,
        connections: 1,
        ms: 800,
        warmMs: 200,
        method: 'POST',
        path: `/api/agents/${agents[which]}/message`,
        body: '{"message":"hello"}',
      })
      times[which].push(p50Ms)
    }
  }
  const short = median(times.short)
  const value = median(times.long)
  return [
    {
      label: 'turn in a session of 100,000 messages, p50',
      value: `${value.toFixed(2)} ms`,
      floor: `${short.toFixed(2)} ms (200 messages)`,
      ratio: `${(value / short).toFixed(2)} x`,
      goal: '<= 1.3 x',
      reached: value / short <= 1.3,
    },
  ]
}
