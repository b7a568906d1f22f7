import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { auditDetails, callTool, callToolJson, turnPlugins, useTool } from '../plugin-test.ts'

const contract = fileURLToPath(new URL('../../../plugins/events/contract.ts', import.meta.url))
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let test: PluginTest
let agent: string
beforeAll(async () => {
  folder = await temporaryFolder()
  // As a trigger or a webhook would listen.
  const listener = pluginText('listener', {
    before: `import { appendFileSync } from 'node:fs'
import { EventPublished } from ${JSON.stringify(contract)}
const file = ${JSON.stringify(join(folder.path, 'heard.log'))}
const record = (event) => appendFileSync(file, JSON.stringify(event) + '\\n')`,
    setup: 'ctx.hooks.on(EventPublished, record); return {}',
  })
  test = await startPlugin({
    plugin: await writePlugin(join(folder.path, 'listener'), listener),
    builtIns: [...turnPlugins, 'events'],
  })
  agent = await test.spawn('publisher')
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})
const heard = (): Promise<string> => readFile(join(folder.path, 'heard.log'), 'utf8')

it('an event reaches who listens, with what it may come from, and is in the audit trail', async () => {
  const { event_id: id } = await callToolJson(test, agent, 'event_publish', {
    event_type: 'report.ready',
    payload: { pages: 3 },
  })
  expect(JSON.parse((await heard()).trim())).toMatchObject({
    id,
    eventType: 'report.ready',
    payload: { pages: 3 },
    agentId: agent,
  })
  expect((await auditDetails(test, 'event_published'))[0]).toContain(`event ${id} "report.ready" published`)
})

it('a message of a user that becomes an event is labelled as one', async () => {
  await useTool(test, agent, 'event_publish', { event_type: 'said' })
  expect(JSON.parse((await heard()).trim().split('\n').at(-1) ?? '')).toMatchObject({
    eventType: 'said',
    payload: null,
    labels: ['UserInput'],
  })
})

it('the trail says in which turn an event was published, so that what it causes can be followed', async () => {
  await useTool(test, agent, 'event_publish', { event_type: 'followed' })
  const { body } = await test.request<Json>('GET', '/api/audit/recent?limit=50')
  const turn = /^turn (\S+) by/.exec(
    body.entries.findLast((entry: Json) => entry.event_type === 'agent_message').details,
  )
  const published = body.entries.findLast((entry: Json) => entry.event_type === 'event_published')
  expect(published.actor).toBe(`agent (${agent}) in ${turn?.[1]}`)
})

it.each([
  ['a name with spaces', { event_type: 'Report Ready' }, 'event_type'],
  ['no name', {}, 'event_type'],
  ['a long name', { event_type: 'x'.repeat(200) }, 'event_type'],
  ['a payload that is too large', { event_type: 'big', payload: 'x'.repeat(70_000) }, 'payload'],
])('%s is refused, and nobody hears of it', async (_, args, named) => {
  const before = await heard()
  expect(await callTool(test, agent, 'event_publish', args)).toMatchObject({
    failed: true,
    text: expect.stringContaining(named),
  })
  expect(await heard()).toBe(before)
})
