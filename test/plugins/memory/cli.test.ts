import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
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
  expect((await svc('show', id)).stdout).toMatch(/known from +person[\s\S]*- until .*: The boat is blue\n$/)
  expect((await svc('stats', '--agent', 'scout')).stdout).toMatch(/^1 memories: 0 of users/)
  const file = join(home, 'memories.json')
  expect((await svc('export', 'scout', '--file', file)).stdout).toContain('1 memories are in')
  expect((await svc('export', 'scout', '--file', file)).stderr).toContain('there already')
  expect((await svc('import', 'other', file)).stdout).toBe('1 memories are imported.\n')
  expect((await svc('list', '--agent', 'other')).stdout).toMatch(/The boat is red.*import/)
  expect((await svc('forget', id)).stdout).toBe(`Memory ${id} is forgotten.\n`)
  expect((await svc('list', '--agent', 'scout')).stdout).toContain('There are no memories.')
})

it.each([
  ['an unknown agent', ['list', '--agent', 'nobody'], 4, 'no agent "nobody"'],
  ['an unknown memory', ['forget', '00000000-0000-4000-8000-000000000000'], 4, 'no memory'],
  ['a file that is not there', ['import', 'scout', '/nowhere/memories.json'], 4, 'no file'],
  ['a level that there is none', ['list', '--level', 'world'], 1, 'user, session, agent'],
])('says what is wrong with %s', async (_name, args, code, text) => {
  expect(await svc(...args)).toMatchObject({ code, stderr: expect.stringContaining(text) })
})
