import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
let agentId = ''
const posts: { readonly url: string; readonly body: Json }[] = []
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/schedules', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'webhooks', 'result-delivery', 'schedules'],
    database: 'file',
    config: { plugins: { schedules: { max_jobs_per_agent: 4, max_result_chars: 1_000 } }, max_cron_jobs: 6 },
    fetch(url, { body }) {
      posts.push({ url: url.href, body: JSON.parse(String(body)) })
      return Promise.resolve(new Response(''))
    },
  })
  agentId = await test.spawn('scout')
})
afterAll(() => test[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)
const add = async (more: object = {}): Promise<Json> => {
  const made = await call('POST', '/api/schedules', {
    agent_id: agentId,
    cron: '0 9 * * *',
    prompt: 'Report.',
    ...more,
  })
  expect([made.status, made.body.error]).toEqual([201, undefined])
  return made.body
}
const remove = (id: string) => call('DELETE', `/api/schedules/${id}`)

describe('schedules and cron jobs', () => {
  it('are two views of one job, in both spellings', async () => {
    const made = await call('POST', '/api/schedules', {
      agent_id: 'scout',
      cron: '30 9 * * MON-FRI',
      tz: 'Europe/Berlin',
      prompt: 'What is new today, in short?',
      enabled: true,
    })
    expect(made.status).toBe(201)
    const { id } = made.body
    expect(made.body).toMatchObject({
      agent_id: agentId,
      name: 'What is new today in short',
      cron: '30 9 * * MON-FRI',
      message: 'What is new today, in short?',
      last_run: null,
      next_run: expect.stringMatching(/T0[78]:30:00\.000Z$/),
    })
    expect((await call('GET', `/api/cron/jobs/${id}`)).body).toMatchObject({
      id,
      schedule: '30 9 * * MON-FRI',
      prompt: 'What is new today, in short?',
      action: { kind: 'agent_turn', message: 'What is new today, in short?' },
      delivery: { kind: 'none' },
    })
    expect((await call('GET', `/api/cron/jobs/${id}/status`)).body).toMatchObject({
      job: { id },
      one_shot: false,
      last_status: null,
      consecutive_errors: 0,
      next_run: made.body.next_run,
    })
    expect((await call('GET', `/api/schedules?agent_id=${agentId}`)).body).toMatchObject({
      total: 1,
      schedules: [{ id }],
    })
    expect((await call('GET', '/api/cron/jobs?enabled=false')).body).toEqual({ jobs: [], total: 0 })
    expect((await call('DELETE', `/api/cron/jobs/${id}`)).body).toEqual({ status: 'deleted', job_id: id })
    expect((await call('GET', `/api/schedules/${id}`)).status).toBe(404)
  })

  it('take the object forms of compatible systems', async () => {
    const made = await call('POST', '/api/cron/jobs', {
      name: 'every ten',
      agent_id: agentId,
      schedule: { kind: 'every', every_secs: 600 },
      action: { kind: 'agent_turn', message: 'Look.', timeout_secs: 30 },
      delivery: { kind: 'webhook', url: 'https://hooks.example.com/x' },
    })
    expect(made).toMatchObject({
      status: 201,
      body: { schedule: { kind: 'every', every_secs: 600 }, delivery: { kind: 'webhook' } },
    })
    const at = new Date(Date.now() + 3_600_000).toISOString()
    const changed = await call('PUT', `/api/cron/jobs/${made.body.id}`, { schedule: { kind: 'at', at }, prompt: 'Go.' })
    expect(changed.body).toMatchObject({ next_run: at, action: { message: 'Go.', timeout_secs: 30 } })
    await remove(made.body.id)
  })

  it.each([
    ['/api/schedules', { cron: '0 9 * * *', prompt: 'x' }, 'agent_id: this field is required'],
    ['/api/schedules', { agent_id: 'scout', prompt: 'x' }, 'cron: this field is required'],
    ['/api/schedules', { agent_id: 'scout', cron: '0 9 * * *' }, 'prompt: this field is required'],
    ['/api/schedules', { agent_id: 'scout', cron: '0 25 * * *', prompt: 'x' }, 'field 2 (hour)'],
    ['/api/cron/jobs', { agent_id: 'scout', schedule: '0 9 * *', prompt: 'x' }, 'has 4 fields'],
    ['/api/schedules', { agent_id: 'scout', cron: '0 9 * * *', tz: 'Berlin', prompt: 'x' }, 'time zone "Berlin"'],
    ['/api/schedules', { agent_id: 'scout', cron: '0 9 * * *', prompt: 'x', message: 'y' }, 'message: it differs'],
    ['/api/schedules', { agent_id: 'scout', cron: '0 9 * * *', prompt: 'x', name: 'a/b' }, 'name: Expected letters'],
    ['/api/schedules', { agent_id: 'scout', cron: '0 9 * * *', prompt: 'x', delivery: { kind: 'fax' } }, 'delivery'],
    [
      '/api/schedules',
      { agent_id: 'scout', cron: '0 9 * * *', prompt: 'x', delivery: { kind: 'webhook', url: 'ftp://example.com/' } },
      'ftp: is no protocol for a webhook',
    ],
  ])('%s %j is refused with the field: %s', async (path, body, message) => {
    const { status, body: answer } = await call('POST', path, body)
    expect([400, 403]).toContain(status)
    expect(JSON.stringify(answer)).toContain(JSON.stringify(message).slice(1, -1))
  })

  it('may have a name of letters of any alphabet', async () => {
    const { id, name } = await add({ name: ' Übersicht_2 für 北京 - Δ ' })
    expect(name).toBe('Übersicht_2 für 北京 - Δ')
    await remove(id)
  })

  it.each(['/api/schedules', '/api/cron/jobs'])('%s/{id}/enable names the field that was meant', async (path) => {
    const { id } = await add()
    const misspelt = await call('PUT', `${path}/${id}/enable`, { enabeld: false })
    expect([misspelt.status, misspelt.body.error.message]).toEqual([400, expect.stringContaining('enabled')])
    expect((await call('GET', `${path}/${id}`)).body.enabled).toBe(true)
    await remove(id)
  })

  it('name the nearest agent, and the job that is not there', async () => {
    const unknown = await call('POST', '/api/schedules', { agent_id: 'scuot', cron: '0 9 * * *', prompt: 'x' })
    expect(unknown).toMatchObject({ status: 404 })
    expect(JSON.stringify(unknown.body)).toContain('did you mean')
    expect((await call('GET', '/api/schedules/x')).status).toBe(400)
    const id = '01890000-0000-7000-8000-000000000000'
    for (const [method, path, body] of [
      ['GET', `/api/schedules/${id}`, undefined],
      ['PUT', `/api/schedules/${id}`, { enabled: false }],
      ['DELETE', `/api/schedules/${id}`, undefined],
      ['POST', `/api/schedules/${id}/run`, undefined],
      ['GET', `/api/schedules/${id}/slots`, undefined],
      ['GET', `/api/cron/jobs/${id}/status`, undefined],
      ['PUT', `/api/cron/jobs/${id}/enable`, { enabled: true }],
    ] as const)
      expect(await call(method, path, body)).toMatchObject({ status: 404 })
  })

  it('stay within the limits of an agent and of all', async () => {
    const other = await test.spawn('other')
    const ids = [(await add()).id, (await add()).id, (await add()).id, (await add()).id]
    const fifth = await call('POST', '/api/schedules', { agent_id: 'scout', cron: '0 9 * * *', prompt: 'x' })
    expect(fifth.status).toBe(429)
    expect(JSON.stringify(fifth.body)).toContain('plugins.schedules.max_jobs_per_agent')
    await add({ agent_id: other })
    await add({ agent_id: other })
    const seventh = await call('POST', '/api/schedules', { agent_id: other, cron: '0 9 * * *', prompt: 'x' })
    expect(JSON.stringify(seventh.body)).toContain('all max_cron_jobs allows')
    await call('DELETE', `/api/agents/${other}`)
    expect((await call('GET', `/api/schedules?agent_id=${other}`)).body.total).toBe(0)
    const ended = await call('GET', `/api/schedules?agent_id=${other}&ended=true`)
    expect(ended.body.schedules[0]).toMatchObject({ enabled: false, next_run: null, reason: 'its agent was removed' })
    for (const id of ids) expect((await remove(id)).body).toEqual({ status: 'removed', schedule_id: id })
    const entries = await auditDetails(test, 'schedule_changed')
    for (const id of ids) expect(entries.some((text) => text.includes(id) && text.endsWith('was removed'))).toBe(true)
  })
})

describe('a schedule', () => {
  it('is changed, disabled and enabled; what it shows may be sent back', async () => {
    const { id, ...shown } = await add({ tz: 'Europe/Berlin' })
    const same = await call('PUT', `/api/schedules/${id}`, { id, ...shown })
    expect(same).toMatchObject({ status: 200, body: { status: 'updated', schedule_id: id, tz: 'Europe/Berlin' } })
    const moved = await call('PUT', `/api/schedules/${id}`, { cron: '0 10 * * *' })
    expect(moved.body).toMatchObject({ cron: '0 10 * * *', tz: 'Europe/Berlin' })
    const nowhere = await call('PUT', `/api/schedules/${id}`, {
      delivery: { kind: 'webhook', url: 'ftp://x.example/' },
    })
    expect([nowhere.status, nowhere.body.error.message]).toEqual([400, expect.stringContaining('ftp:')])
    expect((await call('PUT', `/api/cron/jobs/${id}/enable`, { enabled: false })).body).toEqual({
      id,
      enabled: false,
      next_run: null,
    })
    expect((await call('GET', `/api/schedules/${id}`)).body).toMatchObject({ reason: 'disabled by hand' })
    const run = await call('POST', `/api/schedules/${id}/run`)
    expect(run.status).toBe(400)
    expect(JSON.stringify(run.body)).toContain('disabled')
    expect((await call('PUT', `/api/schedules/${id}/enable`, { enabled: true })).body).toMatchObject({
      enabled: true,
      reason: null,
      next_run: moved.body.next_run,
    })
    await remove(id)
  })

  it('runs now, which is no slot of it, and its result is delivered', async () => {
    posts.length = 0
    const made = await add({ delivery: { kind: 'webhook', url: 'https://hooks.example.com/x' } })
    test.model.answer('All is well.')
    const ran = await call('POST', `/api/schedules/${made.id}/run`)
    expect(ran).toMatchObject({
      status: 200,
      body: { status: 'completed', schedule_id: made.id, agent_id: agentId, response: 'All is well.' },
    })
    expect((await call('GET', `/api/schedules/${made.id}`)).body).toMatchObject({
      next_run: made.next_run,
      last_status: 'ok',
      last_run: expect.any(String),
    })
    const { slots } = (await call('GET', `/api/schedules/${made.id}/slots`)).body
    expect(slots).toMatchObject([
      { kind: 'manual', state: 'done', result: 'All is well.', late_ms: 0, turn_id: ran.body.turn_id },
    ])
    await eventually(() => expect(posts).toHaveLength(1))
    expect(posts[0]?.body).toMatchObject({
      event: 'schedule.completed',
      data: { text: 'All is well.', schedule_id: made.id, agent_id: agentId },
    })
    expect(await auditDetails(test, 'cron_fired')).toContainEqual(expect.stringContaining(made.id))
    await remove(made.id)
  })

  it('keeps max_result_chars of a result, and its receiver gets all of it', async () => {
    posts.length = 0
    const made = await add({ delivery: { kind: 'webhook', url: 'https://hooks.example.com/x' } })
    const long = 'x'.repeat(1_001)
    test.model.answer(long)
    await call('POST', `/api/schedules/${made.id}/run`)
    const [slot] = (await call('GET', `/api/schedules/${made.id}/slots`)).body.slots
    expect(slot.result).toHaveLength(1_000)
    await eventually(() => expect(posts[0]?.body.data.text).toBe(long))
    await remove(made.id)
  })

  it('says why a run failed, and does not run for an agent that is paused', async () => {
    const { id } = await add()
    test.model.answer({ fails: new Error('the model is on strike') })
    const failed = await call('POST', `/api/schedules/${id}/run`)
    expect(failed).toMatchObject({
      status: 500,
      body: { status: 'failed', schedule_id: id, error: expect.any(String) },
    })
    expect((await call('GET', `/api/schedules/${id}`)).body).toMatchObject({
      last_status: expect.stringMatching(/^error: /),
      consecutive_errors: 0,
    })
    await remove(id)
  })
})
