import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const PATH = '/api/memory/config'
let home: string
let host: TestHost
const file = (): Promise<string> => readFile(join(home, 'config.toml'), 'utf8')
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-memory-config-'))
  await writeFile(join(home, 'config.toml'), '')
  host = await startHost({ home, config: {} })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

describe('the settings of memory', () => {
  beforeEach(() => writeFile(join(home, 'config.toml'), '# mine\n'))

  it.each([
    ['decay_rate', { decay_rate: 0.02 }],
    ['auto_memorize', { proactive_memory: { auto_memorize: true } }],
    ['auto_retrieve', { proactive_memory: { auto_retrieve: true } }],
    ['extraction_model', { proactive_memory: { extraction_model: 'builtin/offline' } }],
    ['extraction_threshold', { proactive_memory: { extraction_threshold: 0.8 } }],
    ['max_retrieve', { proactive_memory: { max_retrieve: 8 } }],
    ['duplicate_threshold', { proactive_memory: { duplicate_threshold: 0.9 } }],
  ])('%s is written into the file, and holds', async (name, body) => {
    const changed = await host.json('PATCH', PATH, body)
    expect([changed.status, changed.body]).toMatchObject([
      200,
      { config: body, changed: [`plugins.memory.${name}`], overridden: {} },
    ])
    expect(await file()).toMatch(new RegExp(`^# mine[^]*${name} = `))
    await eventually(async () => expect((await host.json('GET', PATH)).body).toMatchObject(body))
    const { entries } = (await host.json('GET', '/api/audit/recent')).body
    expect(JSON.stringify(entries)).toContain(`change of plugins.memory.${name} requested`)
  })

  it.each([
    ['plugins.memory.embedding.provider', { embedding_provider: 'openai' }],
    ['plugins.memory.embedding.model', { embedding_model: 'other' }],
    ['plugins.memory.session_ttl_hours', { proactive_memory: { session_ttl_hours: 1 } }],
    ['plugins.memory.max_memories_per_agent', { proactive_memory: { max_memories_per_agent: 1 } }],
  ])('%s is refused with its name and file, and so is what comes with it', async (key, body) => {
    const refused = await host.json('PATCH', PATH, { decay_rate: 0.5, ...body })
    expect(refused.status).toBe(403)
    expect(JSON.stringify(refused.body)).toContain(`${key} is set in the file only`)
    expect(JSON.stringify(refused.body)).toContain('config.toml')
    expect(await file()).toBe('# mine\n')
  })

  it('are taken back as they are shown, and change nothing', async () => {
    const { body } = await host.json('GET', PATH)
    const back = await host.json('PATCH', PATH, body)
    expect([back.status, back.body]).toMatchObject([200, { config: body, changed: [] }])
    expect(await file()).toBe('# mine\n')
  })

  it.each([
    ['decay_rate', { decay_rate: 2 }],
    ['max_retrieve', { proactive_memory: { max_retrieve: 0 } }],
    ['extraction_threshold', { proactive_memory: { extraction_threshold: 'high' } }],
    ['extract_categories', { proactive_memory: { extract_categories: ['x'] } }],
  ])('with an impossible %s stay as they are, and the key is named', async (name, body) => {
    const refused = await host.json('PATCH', PATH, body)
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining(name)])
    expect(await file()).toBe('# mine\n')
  })
})
