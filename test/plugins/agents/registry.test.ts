import { expect, describe, it } from 'vitest'
import { migrations } from '../../../plugins/agents/migrations.ts'
import { AgentRegistry } from '../../../plugins/agents/registry.ts'
import type { AgentRow } from '../../../plugins/agents/schema.ts'
import { AgentStore } from '../../../plugins/agents/store.ts'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'

const COUNT = 1200

const row = (index: number, more: Partial<AgentRow> = {}): AgentRow => ({
  id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
  name: `agent-${index}`,
  manifest_toml: `name = "agent-${index}"\ndescription = "number ${index}"\n`,
  state: 'Running',
  mode: 'Normal',
  session_id: `session-${index}`,
  created_at: new Date(index).toISOString(),
  updated_at: new Date(index).toISOString(),
  permission: 'full',
  identity: '{}',
  pin: null,
  cloned_from: null,
  signed_by: null,
  envelope: null,
  ...more,
})

async function start(engine: EngineName, count: number) {
  const { database } = await open(engine)
  await database.migrate('agents', migrations)
  const store = new AgentStore(database.sql, recorder().log)
  if (count > 0) await store.commit(...Array.from({ length: count }, (_, index) => store.insert(row(index))))
  return { store, sql: database.sql, registry: new AgentRegistry(store, recorder().log) }
}

describe.each(engines)('agents held in memory, %s', (engine) => {
  it('stay in the list with the least rights when another build wrote them', async () => {
    const { registry, store, sql } = await start(engine, 4)
    await sql.run`UPDATE agents_agent SET state = 'Hibernating' WHERE name = 'agent-0'`
    await sql.run`UPDATE agents_agent SET permission = 'everything', mode = 'Newer' WHERE name = 'agent-1'`
    await sql.run`UPDATE agents_agent SET identity = '{' WHERE name = 'agent-2'`
    expect((await registry.list()).map(({ name, state, mode, permission }) => [name, state, mode, permission])).toEqual(
      [
        ['agent-0', 'Stopped', 'Normal', 'full'],
        ['agent-1', 'Running', 'Stable', 'observe'],
        ['agent-2', 'Running', 'Normal', 'full'],
        ['agent-3', 'Running', 'Normal', 'full'],
      ],
    )
    expect((await registry.find(row(2).id))?.identity).toEqual({})
    expect((await store.find(row(2).id))?.identity).toBe('{')
  })

  it('are left out when their id is none: it names their workspace', async () => {
    const { registry, store, sql } = await start(engine, 3)
    await sql.run`UPDATE agents_agent SET id = '../../../etc' WHERE name = 'agent-0'`
    await sql.run`UPDATE agents_agent SET cloned_from = '../../../etc' WHERE name = 'agent-1'`
    expect((await registry.list()).map(({ name }) => name)).toEqual(['agent-1', 'agent-2'])
    expect((await registry.findByName('agent-1'))?.clonedFrom).toBeUndefined()
    expect(await registry.find('../../../etc')).toBeUndefined()
    expect(await store.find('../../../etc')).toBeUndefined()
    expect(await registry.findByName('agent-0')).toBeUndefined()
  })

  it('are read when they are asked for, and listed oldest first', async () => {
    const { registry } = await start(engine, 3)
    expect((await registry.findByName('agent-2'))?.manifest.description).toBe('number 2')
    expect((await registry.find(row(1).id.toUpperCase()))?.name).toBe('agent-1')
    expect(await registry.find(row(9).id)).toBeUndefined()
    expect((await registry.list()).map(({ name }) => name)).toEqual(['agent-0', 'agent-1', 'agent-2'])
    expect(await registry.findByName('agent-9')).toBeUndefined()
  })
})

it('what another daemon changed, made or deleted is seen at once', async () => {
  const { registry, store } = await start('postgresql', 3)
  const [first, second, made] = [row(0), row(1), row(3)]
  const names = async () => (await registry.list()).map(({ name }) => name)
  expect(await names()).toHaveLength(3)
  const renamed = { ...first, name: 'renamed', manifest_toml: 'name = "renamed"\ndescription = "other"\n' }
  await store.commit(store.update(renamed), store.remove(second.id), store.insert(made))
  expect((await registry.find(first.id))?.manifest.description).toBe('other')
  expect(await registry.findByName('agent-0')).toBeUndefined()
  expect(await registry.find(second.id)).toBeUndefined()
  expect(await names()).toEqual(['renamed', 'agent-2', 'agent-3'])
  await store.commit(store.update(first))
  expect((await registry.findByName('agent-0'))?.manifest.description).toBe('number 0')
  expect(await names()).toEqual(['agent-0', 'agent-2', 'agent-3'])
})

describe('manifests of many agents', () => {
  it('those used last stay parsed; each of the others is parsed when it is asked for', async () => {
    const { registry } = await start('sqlite', COUNT)
    const agents = await registry.list()
    const parsed = agents.map(({ manifest }) => manifest)
    expect(parsed.map(({ description }) => description)).toEqual(agents.map((_, index) => `number ${index}`))
    expect(agents.at(-1)?.manifest).toBe(parsed.at(-1))
    expect(agents[0]?.manifest).not.toBe(parsed[0])
    expect(agents[0]?.manifest).toEqual(parsed[0])
  })
})
