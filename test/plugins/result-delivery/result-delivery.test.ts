import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { Refusal } from 'svc/sdk'
import type { ChannelMessage } from '../../../plugins/channels/contract.ts'
import type { Job } from '../../../plugins/queue/contract.ts'
import { parse } from '../../../core/schema/parse.ts'
import { checkTarget } from '../../../plugins/result-delivery/check.ts'
import { Settings } from '../../../plugins/result-delivery/config.ts'
import { deliver, undelivered } from '../../../plugins/result-delivery/worker.ts'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'

/** Delivers what it is asked to, as a schedule would. */
const text = pluginText('results', {
  before: "const Delivery: any = defineService()('result-delivery')",
  members: 'requires: { delivery: Delivery },',
  setup: `const { delivery } = ctx.services
    ctx.routes.add(defineRoute({ method: 'POST', path: '/api/results', summary: 'A test', auth: 'bearer',
      effect: 'lasting', cost: 1, body: v.object({ target: v.any(), result: v.any(), by: v.optional(v.string()) }),
      returns: v.object({}), errors: ['forbidden'],
      async handle({ body }: any) {
        await delivery.check(body.target, body.by)
        await ctx.db.batch(delivery.deliver(body.target, body.result))
        return {}
      } }))
    return {}`,
})

let test: PluginTest
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let agentId = ''
const requests: { readonly url: string; readonly body: Json; readonly headers: Headers }[] = []
let answers: (() => Response)[] = []
beforeAll(async () => {
  folder = await temporaryFolder()
  test = await startPlugin({
    plugin: await writePlugin(join(folder.path, 'results'), text),
    builtIns: [...turnPlugins, 'queue', 'webhooks', 'result-delivery'],
    database: 'file',
    fetch(url, { body, headers }) {
      requests.push({ url: url.href, body: JSON.parse(String(body)), headers: new Headers(headers) })
      return Promise.resolve(answers.shift()?.() ?? new Response(''))
    },
  })
  agentId = await test.spawn('one', 'capabilities.network = ["hooks.example.com"]\n')
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const webhook = (url: string) => ({ kind: 'webhook', url })
const result = (id: string) => ({ id, agentId, event: 'schedule.completed', text: 'Done.', data: { slot: 1 } })
const send = (target: unknown, id = 'r', by?: string) =>
  test.request<Json>('POST', '/api/results', { target, result: result(id), ...(by !== undefined && { by }) })
const job = async (id: string): Promise<Json> => {
  for (const state of ['pending', 'running', 'done', 'dead']) {
    const { body } = await test.request<Json>('GET', `/api/queue/result/jobs?state=${state}`)
    const found = body.jobs.find((one: Json) => one.id === id)
    if (found) return found
  }
  return undefined
}

describe('a webhook', () => {
  it('gets a result once, with an id that stays the same when it is tried again', async () => {
    requests.length = 0
    answers = [() => new Response('', { status: 503, headers: { 'retry-after': '0' } })]
    expect((await send(webhook('https://hooks.example.com/x'), 'r1')).status).toBe(200)
    await send(webhook('https://hooks.example.com/x'), 'r1')
    await eventually(async () => expect(await job('r1')).toMatchObject({ state: 'done' }))
    expect(requests).toHaveLength(2)
    const [first, second] = requests
    expect(second?.body).toEqual(first?.body)
    expect(first?.body).toEqual({
      id: 'r1',
      event: 'schedule.completed',
      timestamp: expect.stringMatching(/^\d{4}-/),
      data: { slot: 1, agent_id: agentId, text: 'Done.' },
    })
    expect(second?.headers.get('webhook-id')).toBe('r1')
  })

  it('that refuses it is recorded', async () => {
    answers = [() => new Response('', { status: 410 })]
    await send(webhook('https://hooks.example.com/gone'), 'r2')
    await eventually(async () => expect(await job('r2')).toMatchObject({ state: 'dead' }))
    expect(await auditDetails(test, 'result_undelivered')).toEqual([
      'result r2 of schedule.completed was not delivered by webhook: the receiver answered 410',
    ])
  })

  it.each([
    ['ftp://hooks.example.com/', undefined, 400, 'no protocol for a webhook'],
    ['https://elsewhere.example.com/', 'agent', 403, 'capabilities.network of the agent does not allow elsewhere'],
  ])('%s chosen by %s is refused', async (url, by, status, message) => {
    const answer = await send(webhook(url), 'r3', by && agentId)
    expect(answer.status).toBe(status)
    expect(answer.body.error.message).toContain(message)
    expect(await job('r3')).toBeUndefined()
  })
})

it('an address that the outbound rules refuse is refused', async () => {
  const admit = () => Promise.reject(new Refusal('forbidden', 'it is a private address'))
  const deps = { agents: { require: () => Promise.reject(new Error('unused')) }, channels: () => undefined }
  const check = checkTarget(
    { ...deps, webhooks: () => ({ admit }) },
    { kind: 'webhook', url: 'http://10.0.0.1/' },
    undefined,
  )
  await expect(check).rejects.toThrow('it is a private address')
})

it('a chat cannot be a target without the channels', async () => {
  const answer = await send({ kind: 'last_channel' })
  expect(answer).toMatchObject({ status: 400 })
  expect(answer.body.error.message).toContain('the plugin "channels" is not loaded')
})

describe('the worker', () => {
  const HOUR_MS = 3_600_000
  const deps = {
    audit: { entry: (record: { readonly details: string }) => ({ sql: record.details, values: [] }) },
    settings: parse(Settings, {}),
    clock: { now: () => Date.parse('2026-03-02T09:00:00Z') },
  }

  it('records a result whose job is dead, such as after the last failure', async () => {
    const ended: (string | null)[] = []
    const none = {
      ...deps,
      channels: () => undefined,
      webhooks: () => undefined,
      ended: (_: unknown, __: unknown, error: string | null) => Promise.resolve(void ended.push(error)),
    }
    const payload = { target: { kind: 'last_channel' }, result: result('r') }
    expect(await undelivered(none, payload, 'the database was full')).toEqual([
      { sql: 'result r of schedule.completed was not delivered by last_channel: the database was full', values: [] },
    ])
    expect(ended).toEqual(['the database was full'])
  })

  const chat = { channel: 'telegram', account: 'default', to: '42' }
  const run = async (target: unknown, { channels, webhooks }: Json, ageMs = 0) => {
    const ended: (string | null)[] = []
    const payload = { target, result: result('r') }
    const given: Omit<Job, 'createdAt'> = {
      lane: 'result',
      id: 'r',
      payload,
      failures: 0,
      losses: 0,
      signal: new AbortController().signal,
    }
    const outcome = await deliver(
      {
        ...deps,
        channels: () => channels,
        webhooks: () => webhooks,
        ended: (_, __, error) => Promise.resolve(void ended.push(error)),
      },
      { ...given, createdAt: deps.clock.now() - ageMs },
    )
    return { outcome, ended }
  }
  const sends = (last?: unknown) => {
    const sent: ChannelMessage[] = []
    return {
      sent,
      channels: {
        send: (message: ChannelMessage) => Promise.resolve(void sent.push(message)),
        lastChat: () => Promise.resolve(last),
      },
    }
  }

  it('sends to a chat, or to the last one of the agent', async () => {
    const { sent, channels } = sends({ ...chat, to: '7' })
    expect(await run({ kind: 'channel', ...chat }, { channels })).toEqual({
      outcome: { outcome: 'done' },
      ended: [null],
    })
    expect(await run({ kind: 'last_channel' }, { channels })).toEqual({ outcome: { outcome: 'done' }, ended: [null] })
    expect(sent.map(({ to, id, text: words }) => [to, id, words])).toEqual([
      ['42', 'r', 'Done.'],
      ['7', 'r', 'Done.'],
    ])
  })

  it('gives up where no attempt can help, and waits where one can', async () => {
    const { channels } = sends()
    expect(await run({ kind: 'last_channel' }, { channels })).toMatchObject({
      outcome: { outcome: 'dead', reason: 'the agent has not answered in any chat yet' },
    })
    const refuse = (code: 'forbidden' | 'rate_limit', retryAfterSecs?: number) => ({
      channels: { send: () => Promise.reject(new Refusal(code, 'not so', { retryAfterSecs })) },
    })
    const target = { kind: 'channel', ...chat }
    expect(await run(target, refuse('forbidden'))).toMatchObject({
      outcome: { outcome: 'dead', reason: 'not so' },
      ended: ['not so'],
    })
    const postponed = (afterMs: number) => ({ outcome: { outcome: 'postponed', afterMs }, ended: [] })
    expect(await run(target, refuse('rate_limit', 30))).toEqual(postponed(30_000))
    expect(await run(target, {})).toEqual(postponed(1_000))
    expect(await run(target, {}, 25 * HOUR_MS)).toMatchObject({
      outcome: { outcome: 'dead', reason: 'the plugin "channels" is not loaded; given up after 24 hours' },
    })
  })

  it('calls a receiver that fails ever more rarely, not before it wants, and for a day', async () => {
    const answers = (retryAfterMs?: number) => ({
      webhooks: { post: () => Promise.resolve({ status: 503, error: 'the receiver answered 503', retryAfterMs }) },
    })
    const target = webhook('https://hooks.example.com/x')
    const pause = async (ageMs: number, retryAfterMs?: number) =>
      (await run(target, answers(retryAfterMs), ageMs)).outcome
    const postponed = (afterMs: number) => ({ outcome: 'postponed', afterMs })
    expect(await pause(0)).toEqual(postponed(1_000))
    expect(await pause(60_000)).toEqual(postponed(60_000))
    expect(await pause(60_000, 90_000)).toEqual(postponed(90_000))
    expect(await pause(23 * HOUR_MS)).toEqual(postponed(HOUR_MS))
    expect(await pause(25 * HOUR_MS)).toMatchObject({
      outcome: 'dead',
      reason: 'the receiver answered 503; given up after 24 hours',
    })
  })
})
