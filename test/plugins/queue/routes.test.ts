import { afterAll, beforeAll, expect, it } from 'vitest'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { auditDetails } from '../plugin-test.ts'

const text = pluginText('greeter', {
  before: "const Queue: any = defineService()('queue')",
  members: 'requires: { queue: Queue },',
  setup: `const { queue } = ctx.services
    ctx.own('worker', queue.work('greet', {
      async run({ payload, signal }: any) {
        if (payload === 'hang') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        return payload === 'bad' ? { outcome: 'dead', reason: 'nobody is there' } : { outcome: 'done' }
      },
    }))
    ctx.routes.add(defineRoute({ method: 'POST', path: '/api/greet', summary: 'A test', auth: 'bearer',
      effect: 'lasting', cost: 1, body: v.object({ id: v.string(), payload: v.string() }), returns: v.object({}),
      async handle({ body }: any) {
        await ctx.services.queue.admit()
        await ctx.db.batch([queue.add({ lane: 'greet', ...body })])
        return {}
      } }))
    return {}`,
})

let test: PluginTest
let folder: Awaited<ReturnType<typeof temporaryFolder>>
beforeAll(async () => {
  folder = await temporaryFolder()
  test = await startPlugin({
    plugin: await writePlugin(join(folder.path, 'greeter'), text),
    builtIns: ['audit', 'cluster', 'queue', 'system'],
    database: 'file',
    config: { plugins: { queue: { max_depth: 5, concurrency: { greet: 2 } } } },
  })
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const add = (id: string, payload: string) => test.request('POST', '/api/greet', { id, payload })
const list = async (state: string): Promise<readonly string[]> =>
  (await test.request<Json>('GET', `/api/queue/greet/jobs?state=${state}`)).body.jobs.map(({ id }: Json) => id)

it('says depth and throughput, runs dead jobs again and cancels those that hang', async () => {
  for (const id of ['one', 'two']) await add(id, 'hello')
  await add('three', 'bad')
  await eventually(async () => expect(await list('dead')).toEqual(['three']))
  await eventually(async () => expect(await list('done')).toEqual(['two', 'one']))
  await add('four', 'hang')
  await eventually(async () => expect(await list('running')).toEqual(['four']))
  expect((await test.request<Json>('GET', '/api/queue/status')).body).toMatchObject({
    depth: 0,
    running: 1,
    dead: 1,
    oldest_secs: 0,
    throughput: 2,
    done_last_hour: 2,
    failed_last_minute: 1,
    failed_last_hour: 1,
    lanes: [
      { lane: 'greet', active: 1, running: 1, capacity: 2, depth: 0, dead: 1, throughput: 2, failed_last_hour: 1 },
    ],
    config: { max_depth_global: 5, concurrency: { greet: 2 } },
  })
  expect(await test.metrics('svc_queue_jobs')).toEqual(
    new Map([
      ['svc_queue_jobs_total{lane="greet",outcome="done"}', 2],
      ['svc_queue_jobs_total{lane="greet",outcome="dead"}', 1],
      ['svc_queue_jobs_running{lane="greet"}', 1],
    ]),
  )

  const { text: told } = await test.callTool('queue_status', {})
  expect(JSON.parse(told)).toMatchObject({ running: 1, dead: 1, lanes: [{ lane: 'greet', throughput: 2 }] })
  expect((await test.request('GET', '/api/queue/greet/jobs/three')).body).toMatchObject({
    state: 'dead',
    error: 'nobody is there',
  })
  expect((await test.request('GET', '/api/queue/greet/jobs/nobody')).status).toBe(404)
  expect(await test.request('POST', '/api/queue/greet/jobs/one/retry')).toMatchObject({
    status: 409,
    body: { error: { message: expect.stringContaining('The job is done') } },
  })
  expect((await test.request('POST', '/api/queue/greet/jobs/nothing/retry')).status).toBe(404)
  expect((await test.request('POST', '/api/queue/greet/jobs/three/retry')).body).toEqual({
    status: 'retried',
    lane: 'greet',
    id: 'three',
  })
  expect((await test.request('DELETE', '/api/queue/greet/jobs/four')).body).toMatchObject({ status: 'cancelled' })
  expect((await test.request('DELETE', '/api/queue/greet/jobs/four')).status).toBe(409)
  await eventually(async () => expect(await list('cancelled')).toEqual(['four']))
  expect(await auditDetails(test, 'config_change')).toEqual(
    expect.arrayContaining(['job three of lane greet is to be run again', 'job four of lane greet is cancelled']),
  )
})

it('goes on after a restart, a reload of the worker, and stops taking more at its limit', async () => {
  await add('five', 'hang')
  await eventually(async () => expect(await list('running')).toEqual(['five']))
  await test.reload()
  await eventually(async () => expect(await list('running')).toEqual(['five']))
  await test.restart()
  await eventually(async () => expect(await list('running')).toEqual(['five']))
  const row = (await test.request<Json>('GET', '/api/queue/greet/jobs?state=running')).body.jobs[0]
  expect(row).toMatchObject({ failures: 0, losses: 0 })
  await add('six', 'hang')
  for (let n = 0; n < 5; n++) await add(`more ${n}`, 'hello')
  expect(await add('too much', 'hello')).toMatchObject({ status: 429 })
})
