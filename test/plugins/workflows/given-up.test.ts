import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

let test: PluginTest
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/workflows/', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'events', 'result-delivery', 'schedules', 'system'],
    database: 'file',
    config: { plugins: { queue: { max_failures: 1 } } },
  })
})
afterAll(() => test[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)

it('who waits for a run is told at once that the queue gave it up: the run above it, and the schedule', async () => {
  const agentId = await test.spawn('scout')
  const define = async (name: string, ...steps: object[]): Promise<void> =>
    expect((await call('POST', '/api/workflows', { name, steps })).status).toBe(201)
  await define('child', { name: 'say', agent_name: 'scout', prompt: 'x' })
  await define('parent', { name: 'ask', type: 'workflow', with: { workflow: 'child' } })
  using database = new DatabaseSync(join(test.home, 'data', 'svc.db'))
  database.exec(`CREATE TRIGGER broken BEFORE UPDATE ON workflows_run
    WHEN NEW.workflow_name = 'child' AND NEW.state = 'Completed' BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END`)
  const job = { agent_id: agentId, cron: '0 9 * * *', prompt: 'x', workflow_id: 'parent' }
  const { id } = (await call('POST', '/api/schedules', job)).body
  const answer = await call('POST', `/api/schedules/${id}/run`)
  expect([answer.status, answer.body.error]).toEqual([
    500,
    expect.stringMatching(/step "ask" failed: run \S+ of child/),
  ])
  const states = (await call('GET', '/api/workflows/runs')).body.map((run: Json) => [run.workflow_name, run.state])
  expect(states).toEqual(
    expect.arrayContaining([
      ['child', 'Failed'],
      ['parent', 'Failed'],
    ]),
  )
  expect((await test.metrics('svc_workflow_runs_total')).get('svc_workflow_runs_total{state="failed"}')).toBe(2)
})
