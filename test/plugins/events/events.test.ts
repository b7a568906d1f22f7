import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openTools } from '../../support/tool-stage.ts'
import type { ToolStage } from '../../support/tool-stage.ts'

let folder: string
let stage: ToolStage
let agent: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-events-'))
  // As a trigger or a webhook would listen.
  await writeFile(
    join(folder, 'index.ts'),
    `import { appendFileSync } from 'node:fs'
import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { EventPublished } from ${JSON.stringify(fileURLToPath(new URL('../../../plugins/events/contract.ts', import.meta.url)))}
export default definePlugin({ name: 'listener', version: '1.0.0', config: v.object({}),
  setup({ hooks }) { hooks.on(EventPublished, (event) => { appendFileSync(${JSON.stringify(join(folder, 'heard.log'))}, JSON.stringify(event) + '\\n') }); return {} } })
`,
  )
  stage = await openTools(['events', folder])
  agent = await stage.spawn('publisher')
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

it('an event reaches who listens, with what it may come from, and is in the audit trail', async () => {
  const { event_id: id } = await stage.json(agent, 'event_publish', {
    event_type: 'report.ready',
    payload: { pages: 3 },
  })
  expect(JSON.parse((await readFile(join(folder, 'heard.log'), 'utf8')).trim())).toMatchObject({
    id,
    eventType: 'report.ready',
    payload: { pages: 3 },
    agentId: agent,
  })
  expect((await stage.audit('event_published'))[0]).toContain(`event ${id} "report.ready" published`)
})

it('a message of a user that becomes an event is labelled as one', async () => {
  await stage.say(agent, 'use event_publish {"event_type": "said"}')
  expect(JSON.parse((await readFile(join(folder, 'heard.log'), 'utf8')).trim().split('\n').at(-1) ?? '')).toMatchObject(
    { eventType: 'said', payload: null, labels: ['UserInput'] },
  )
})

it.each([
  ['a name with spaces', { event_type: 'Report Ready' }, 'event_type'],
  ['no name', {}, 'event_type'],
  ['a long name', { event_type: 'x'.repeat(200) }, 'event_type'],
  ['a payload that is too large', { event_type: 'big', payload: 'x'.repeat(70_000) }, 'payload'],
])('%s is refused, and nobody hears of it', async (_, args, named) => {
  const before = await readFile(join(folder, 'heard.log'), 'utf8')
  expect(await stage.call(agent, 'event_publish', args)).toMatchObject({
    failed: true,
    text: expect.stringContaining(named),
  })
  expect(await readFile(join(folder, 'heard.log'), 'utf8')).toBe(before)
})
