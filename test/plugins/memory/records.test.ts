import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { callTool } from '../plugin-test.ts'

const LISTENER = `import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
export default definePlugin({
  name: 'listener',
  version: '1.0.0',
  config: v.object({}),
  setup({ hooks, log }) {
    hooks.on({ id: 'memory:changed', kind: 'notify' }, ({ change }) => log.info('heard: ' + change))
  },
})
`
interface Row {
  readonly change: string
  readonly audit: string
  readonly event: string
  readonly metric: string
}
/** The table of the document; what is not there is an empty text. */
async function documented(): Promise<readonly Row[]> {
  const text = await readFile(new URL('../../../docs/memory.md', import.meta.url), 'utf8')
  const [, section = ''] = text.split('## What is recorded of a change')
  const lines = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => /^\| [a-z]/.test(line))
  return lines.slice(1).map((line) => {
    const [change = '', ...cells] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    const [audit = '', event = '', metric = ''] = cells.map((cell) => (cell === 'none' ? '' : cell.replaceAll('`', '')))
    return { change, audit, event, metric }
  })
}

it('every change has the audit entry, the event and the metric that the document names', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-listener-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'listener.ts'), LISTENER)
  await using test = await startPlugin({
    plugin: pathToFileURL(join(folder, 'listener.ts')),
    builtIns: [
      'audit',
      'agents',
      'cluster',
      'queue',
      'providers',
      'builtin',
      'usage',
      'system',
      'activity',
      'sessions',
      'memory',
    ],
    config: { plugins: { memory: { max_memories_per_agent: 5, decay_rate: 0.01 } } },
  })
  const agent = await test.spawn('a')
  const other = await test.spawn('b')
  const send = async (method: string, path: string, body?: unknown): Promise<Json> => {
    const answer = await test.request<Json>(method, path, body)
    expect([path, answer.status, answer.body]).toEqual([path, expect.toSatisfy((status) => status < 300), answer.body])
    return answer.body
  }
  const add = async (content: string, more: object = {}): Promise<string> =>
    (await send('POST', '/api/memory', { agent_id: agent, content, ...more })).memories[0].id
  const addAll = async (...contents: readonly string[]): Promise<void> => {
    for (const content of contents) await add(content)
  }
  const ofAgent = `/api/memory/agents/${agent}`
  let id = ''
  const changes: Readonly<Record<string, () => Promise<unknown>>> = {
    'a memory is added': async () => (id = await add('The boat is red')),
    'a content is changed': () => send('PUT', `/api/memory/items/${id}`, { content: 'The boat is blue' }),
    'it takes the place of another': async () => (id = await add('The boat is sold', { supersedes: id })),
    'memories are deleted': () => send('POST', '/api/memory/bulk-delete', { ids: [id] }),
    'an agent stores a note': () => callTool(test, agent, 'memory_store', { key: 'k', value: 'one' }),
    'it stores it again': () => callTool(test, agent, 'memory_store', { key: 'k', value: 'two' }),
    'a file is imported': () => send('POST', `${ofAgent}/import`, [{ content: 'x y' }, { content: 'z' }]),
    'a relation is added over the API': () =>
      send('POST', `${ofAgent}/relations`, [{ subject: 'Ann', relation: 'knows', object: 'Bob' }]),
    'all of a person is deleted': async () => {
      await add('Has a cat', { user_id: 'ann' })
      await send('DELETE', '/api/memory/user/ann')
    },
    'duplicates are merged': async () => {
      await addAll('The fence is green', 'The fence is green!')
      await send('POST', `${ofAgent}/consolidate`)
    },
    'there are too many': () => addAll('one', 'two', 'three', 'four', 'five', 'six'),
    'all of an agent is deleted': () => send('DELETE', ofAgent),
    'one expires': async () => {
      const at = '2020-01-01T00:00:00Z'
      await send('POST', `${ofAgent}/import`, [{ content: 'q', level: 'session', session_id: 's', created_at: at }])
      await send('POST', '/api/memory/cleanup')
    },
    'a vector is made': () => add('The harbour is full'),
    'a backup is restored': async () => {
      const backup = await send('GET', `${ofAgent}/export`)
      await send('DELETE', ofAgent)
      await send('POST', `${ofAgent}/import`, { ...backup, restore: true })
    },
    'a setting is changed': () => send('PATCH', '/api/memory/config', { decay_rate: 0.02 }),
    'an agent is removed': async () => {
      await send('POST', '/api/memory', { agent_id: other, content: 'Goes with it' })
      await send('DELETE', `/api/agents/${other}`)
    },
  }
  const rows = await documented()
  expect(rows.map(({ change }) => change).toSorted()).toEqual(Object.keys(changes).toSorted())
  for (const change of Object.keys(changes)) {
    const row = rows.find((one) => one.change === change)
    const [heard, known, counted] = [test.log.length, await lastEntry(test), await valueOf(test, row?.metric ?? '')]
    await changes[change]?.()
    await eventually(async () => {
      const events = test.log.slice(heard).flatMap((line) => /heard: (\w+)/.exec(line)?.[1] ?? [])
      const entries = await entriesAfter(test, known)
      expect({ change, events, entries }).toEqual({
        change,
        events: row?.event === '' ? expect.any(Array) : expect.arrayContaining([row?.event]),
        entries: row?.audit === '' ? expect.any(Array) : expect.arrayContaining([expect.stringMatching(textOf(row))]),
      })
      if (row?.metric)
        expect([change, await valueOf(test, row.metric)]).toEqual([change, expect.toSatisfy((now) => now > counted)])
    })
  }
})

const textOf = (row: Row | undefined): RegExp => {
  const [event = '', text = ''] = (row?.audit ?? '').split(': ')
  return new RegExp(`^${event}: .*${text.replaceAll('.', String.raw`\.`)}`)
}
async function valueOf(test: PluginTest, metric: string): Promise<number> {
  if (metric === '') return 0
  const values = await test.metrics(metric.split('{')[0] ?? '')
  return [...values].find(([name]) => name === metric)?.[1] ?? 0
}
async function lastEntry(test: PluginTest): Promise<number> {
  const { entries } = (await test.request<Json>('GET', '/api/audit/recent?limit=1')).body
  return entries.at(-1).id
}
async function entriesAfter(test: PluginTest, id: number): Promise<readonly string[]> {
  const { entries } = (await test.request<Json>('GET', '/api/audit/recent?limit=100')).body
  return entries.filter((entry: Json) => entry.id > id).map((entry: Json) => `${entry.event_type}: ${entry.details}`)
}
