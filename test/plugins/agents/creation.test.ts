import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const plugins = ['audit', 'agents', 'kv', 'files', 'sessions', 'journal', 'usage']
const HEADER = 32
const FRAME_HEADER = 24

/** How many transactions are in the write-ahead log: the last frame of each says how many pages the database has. */
async function commits(host: TestHost): Promise<number> {
  const log = await readFile(join(host.home, 'data', 'svc.db-wal'))
  const frame = FRAME_HEADER + log.readUInt32BE(8)
  let found = 0
  for (let at = HEADER; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) > 0) found++
  return found
}

it('an agent, its session and its audit entry are one transaction, and the agent is Running by then', async () => {
  await using host = await startHost({ plugins })
  const before = await commits(host)
  for (let index = 0; index < 10; index++)
    expect((await host.json('POST', '/api/agents', { manifest_toml: `name = "agent-${index}"` })).status).toBe(201)
  expect((await commits(host)) - before).toBe(10)
  const agents: { id: string; name: string; state: string }[] = (await host.json('GET', '/api/agents')).body
  const made = agents.filter(({ name }) => name.startsWith('agent-'))
  expect(made.map(({ state }) => state)).toEqual(made.map(() => 'Running'))
  const sessions: { agent_id: string }[] = (await host.json('GET', '/api/sessions')).body.sessions
  expect(new Set(sessions.map(({ agent_id }) => agent_id))).toEqual(new Set(made.map(({ id }) => id)))
})
