import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-memory-'))
  host = await startHost({ home, plugins: [...turnPlugins, 'queue', 'providers/builtin', 'system', 'memory'] })
  for (const name of ['scout', 'other']) await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n` })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['memory', ...args, '--home', home])

it('searches, lists, shows, exports, imports and forgets', async () => {
  expect((await svc('list')).stdout).toContain('There are no memories.')
  const { body } = await host.json('POST', '/api/memory', { content: 'The boat is blue', agent_id: 'scout' })
  const [{ id }] = body.memories
  await host.json('PUT', `/api/memory/items/${id}`, { content: 'The boat is red' })
  expect((await svc('search', 'what colour has the boat?')).stdout).toMatch(/The boat is red +agent +person/)
  expect((await svc('search', 'submarine')).stdout).toContain('Nothing is known about "submarine".')
  expect((await svc('show', id)).stdout).toMatch(
    /agent +scout\nknown from +person[\s\S]*- until .*: The boat is blue\n$/,
  )
  expect((await svc('stats', '--agent', 'scout')).stdout).toMatch(/^1 memory: 0 of users/)
  const file = join(home, 'memories.json')
  expect((await svc('export', 'scout', '--file', file)).stdout).toContain('1 memory is in')
  expect((await svc('export', 'scout', '--file', file)).stderr).toContain('there already')
  expect((await svc('import', 'other', file)).stdout).toBe('1 memory is imported.\n')
  expect((await svc('list', '--agent', 'other')).stdout).toMatch(/The boat is red.*import/)
  expect((await svc('import', 'other', file, '--restore')).stdout).toContain(`Left out: memory ${id}: it is of agent`)
  expect((await svc('forget', id)).stdout).toBe(`Memory ${id} is forgotten.\n`)
  expect((await svc('import', 'scout', file, '--restore', '--dry-run')).stdout).toContain('1 memory would be restored')
  expect((await svc('list', '--agent', 'scout')).stdout).toContain('There are no memories.')
  expect((await svc('import', 'scout', file, '--restore')).stdout).toContain(
    '1 memory is restored, 0 of the file are there',
  )
  expect((await svc('show', id)).stdout).toMatch(/known from +person[\s\S]*- until .*: The boat is blue\n$/)
  await svc('forget', id)
  expect((await svc('list', '--agent', 'scout')).stdout).toContain('There are no memories.')
})

it('says that memories of an older version are not found by their words yet, or have no vector', async () => {
  const search = (text: string) => svc('search', text, '--agent', 'filler')
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "filler"\n' })
  const { body } = await host.json('POST', '/api/memory', { content: 'The sail is white', agent_id: 'filler' })
  await eventually(async () => expect((await search('sail')).stdout).not.toContain('so far'))
  const [{ id }] = body.memories
  const db = new Sqlite(join(home, 'data', 'svc.db'))
  try {
    db.prepare(`DELETE FROM memory_text WHERE memory_id = ?`).run(id)
    db.prepare(`UPDATE memory_entry SET has_words = 0 WHERE id = ?`).run(id)
    expect((await search('sailing')).stdout).toContain('older version cannot be found by their words yet')
    expect((await svc('stats', '--agent', 'filler')).stdout).toContain('1 are not found by their words yet')
    db.prepare(`UPDATE memory_entry SET has_words = 1, embedded_with = '' WHERE id = ?`).run(id)
    expect((await search('sailing')).stdout).toContain('by their words only so far')
    expect((await svc('stats', '--agent', 'filler')).stdout).toContain('1 have no vector yet')
  } finally {
    db.close()
  }
  expect((await svc('forget', id)).stdout).toBe(`Memory ${id} is forgotten.\n`)
})

it('has a command for each route: what is known is added, changed, tidied and forgotten', async () => {
  const said = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await svc(...args)
    return code === 0 ? stdout : `${code}: ${stderr}`
  }
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "keeper"\n' })
  const add = (...more: string[]) => said('add', ...more, '--agent', 'keeper')
  const [, id = ''] = /^Memory (\S+) is added\.\n$/.exec(await add('Tea is green', '--tag', 'a', '--tag', 'b')) ?? []
  expect((await host.json('GET', `/api/memory/items/${id}`)).body).toMatchObject({ tags: ['a', 'b'], level: 'agent' })
  expect(await said('edit', id, 'Tea is black')).toBe(`Memory ${id} is changed.\n`)
  expect(await said('history', id)).toMatch(/^1\. .*, person operator: Tea is green\n2\. .*: Tea is black\n$/)
  expect(await add('tea is black!')).toContain('is added')
  expect(await said('duplicates', 'keeper')).toMatch(/tea is black!.*\nTea is black /)
  expect(await said('consolidate', 'keeper')).toMatch(/^1 memory is deleted that said the same/)
  expect(await said('duplicates', 'keeper')).toBe('No memories say the same.\n')
  expect(await said('history', id)).toMatch(/^It was deleted on .* by consolidation\.\n$/)
  expect(await said('users')).toBe('Nothing is kept for anybody but you, the owner of the daemon.\n')
  expect(await add('Has a dog', '--user', 'ann', '--confidence', '0.5')).toContain('is added')
  expect(await said('users')).toMatch(/^USER .*\nann +1 .*\n1 of 1\n$/)
  expect(await said('list', '--user', 'ann')).toMatch(/Has a dog +user +person/)
  expect(await said('export', '--user', 'ann')).toMatch(/"user_id": "ann"[^]*"content": "Has a dog"/)
  expect(await said('cleanup')).toBe('0 memories had expired and are deleted.\n')
  expect(await said('decay')).toBe('Memories have faded by 0.01 per day without use.\n')
  expect(await said('forget', '--user', 'ann')).toMatch(/^5: .*nobody was there to confirm/)
  expect(await said('forget', '--user', 'ann', '--yes')).toBe('1 memory is forgotten.\n')
  expect(await said('forget', '--agent', 'keeper', '--level', 'user', '-y')).toBe('0 memories are forgotten.\n')
  expect(await said('forget', '--agent', 'keeper', '-y')).toBe('1 memory is forgotten.\n')
  expect(await said('list', '--agent', 'keeper')).toBe('There are no memories.\n')
})

it.each([
  ['two that are to be forgotten', ['forget', 'x', '--user', 'ann'], 2, 'name one'],
  ['a level of a person', ['forget', '--user', 'ann', '--level', 'user'], 2, 'add --agent'],
  ['nothing to export', ['export'], 2, 'name an agent'],
  ['a list of both', ['list', '--agent', 'scout', '--user', 'ann'], 2, 'name one of them'],
  ['a confidence that is no number', ['add', 'x', '--agent', 'scout', '--confidence', 'high'], 1, 'confidence'],
  ['an unknown agent', ['list', '--agent', 'nobody'], 4, 'no agent "nobody"'],
  ['an unknown memory', ['forget', '00000000-0000-4000-8000-000000000000'], 4, 'no memory'],
  ['a dry run of no backup', ['import', 'scout', 'memories.json', '--dry-run'], 2, '--restore'],
  ['a file that is not there', ['import', 'scout', '/nowhere/memories.json'], 4, 'no file'],
  ['a level that there is none', ['list', '--level', 'world'], 1, 'user, session, agent'],
])('says what is wrong with %s', async (_name, args, code, text) => {
  expect(await svc(...args)).toMatchObject({ code, stderr: expect.stringContaining(text) })
})
