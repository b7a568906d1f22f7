import { describe, expect, it } from 'vitest'
import { migrations } from '../../../plugins/webhooks/migrations.ts'
import { AnswerStore } from '../../../plugins/webhooks/inbound/answers/store.ts'
import { Dispatcher } from '../../../plugins/webhooks/dispatcher.ts'
import { InboundStore } from '../../../plugins/webhooks/inbound/store.ts'
import type { Target } from '../../../plugins/webhooks/schema.ts'
import { WebhookStore } from '../../../plugins/webhooks/store.ts'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'

async function start(engine: EngineName) {
  const { database } = await open(engine)
  await database.migrate('webhooks', migrations)
  return {
    sql: database.sql,
    store: new WebhookStore(database.sql, recorder().log),
    inbound: new InboundStore(database.sql, recorder().log),
  }
}
const target = (id: string): Target => ({
  id,
  kind: 'outbound',
  name: 'x',
  url: 'https://example.com/',
  events: ['all'],
  enabled: true,
  has_secret: true,
  position: 7,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
})
const at = (seconds: number): string => new Date(1_800_000_000_000 + seconds * 1000).toISOString()
const event = (n: number) => ({ targetId: 't', eventId: `evt_${n}`, event: 'agent_spawned', at: at(n), data: '{}' })

describe.each(engines)('the outbox on %s', (engine) => {
  it('keeps the order of each target and takes an event once', async () => {
    const { store } = await start(engine)
    await store.commit([store.insert(target('t')), store.insert(target('u'))])
    await store.commit([
      store.enqueue(event(1), at(0)),
      store.enqueue(event(2), at(0)),
      store.enqueue({ ...event(1), targetId: 'u' }, at(0)),
      store.advancePosition('t', 9),
    ])
    await store.commit([store.enqueue(event(1), at(0)), store.enqueue(event(3), at(0)), store.advancePosition('t', 8)])
    expect((await store.deliveries('t', undefined, 10)).map(({ event_id: id, seq }) => [id, seq])).toEqual([
      ['evt_3', 3],
      ['evt_2', 2],
      ['evt_1', 1],
    ])
    expect(await store.find('t')).toEqual({ ...target('t'), position: 9 })
    expect((await store.enabled()).map(({ id }) => id)).toEqual(['t', 'u'])
    expect(await store.count('t', 'pending')).toBe(3)
  })

  it('leaves out a target that cannot be read, and keeps it', async () => {
    const { store, sql } = await start(engine)
    await store.commit([store.insert(target('t')), store.insert(target('u')), store.insert(target('v'))])
    await sql.run`UPDATE webhooks_target SET kind = 'newer' WHERE id = 't'`
    await sql.run`UPDATE webhooks_target SET events = '[' WHERE id = 'u'`
    expect((await store.enabled()).map(({ id }) => id)).toEqual(['v'])
    expect((await store.list('outbound')).map(({ id }) => id)).toEqual(['v'])
    expect(await sql.all`SELECT id FROM webhooks_target`).toHaveLength(3)
  })

  it('has a first attempt that waits for no clock: it was added by a daemon whose clock is ahead', async () => {
    const { store } = await start(engine)
    await store.commit([store.insert(target('t')), store.enqueue(event(1), at(240))])
    const work: Promise<void>[] = []
    const sent: string[] = []
    const dispatcher = new Dispatcher({
      store,
      fetch: async (url) => {
        sent.push(String(url))
        throw new Error('nobody answers')
      },
      secret: async () => undefined,
      settings: { max_attempts: 3, back_off_min_ms: 1000, back_off_max_ms: 1000, timeout_ms: 1000, max_concurrent: 1 },
      log: recorder().log,
      deliveries: { add() {} },
      signal: new AbortController().signal,
      run: (serve) => void work.push(serve()),
      now: () => Date.parse(at(0)),
    })
    for (const times of [1, 1]) {
      await dispatcher.dispatch()
      await Promise.all(work.splice(0))
      // The second one is due a second later.
      expect(sent).toHaveLength(times)
    }
  })

  it('lets one claim a delivery, and another when the lease has ended', async () => {
    const { store } = await start(engine)
    await store.commit([store.insert(target('t')), store.enqueue(event(1), at(0)), store.enqueue(event(2), at(0))])
    const head = (await store.head('t')) ?? expect.fail('nothing waits')
    const claims = await Promise.all([1, 2, 3].map(() => store.claim(head, at(0), at(60))))
    expect(claims.filter(Boolean)).toHaveLength(1)
    const claimed = (await store.head('t')) ?? expect.fail('nothing waits')
    expect(claimed).toMatchObject({ event_id: 'evt_1', attempts: 1, lease_until: at(60) })
    expect(await store.claim(claimed, at(59), at(120))).toBe(false)
    expect(await store.claim(claimed, at(60), at(120))).toBe(true)
    await store.settle(claimed, { state: 'dead', dueAt: at(0), status: 500, error: 'no', settledAt: at(61) })
    expect(await store.head('t')).toMatchObject({ event_id: 'evt_2' })
    await store.commit([store.revive('t', 'evt_1', at(62))])
    expect((await store.deliveries('t', 'pending', 10)).map(({ event_id: id }) => id)).toEqual(['evt_1', 'evt_2'])
    await store.settle((await store.head('t')) ?? expect.fail(''), {
      state: 'delivered',
      dueAt: at(0),
      status: 204,
      error: null,
      settledAt: at(63),
    })
    await store.commit([store.deleteSettled(at(64))])
    expect((await store.deliveries('t', undefined, 10)).map(({ event_id: id, state }) => [id, state])).toEqual([
      ['evt_1', 'pending'],
    ])
  })

  it('what came in is remembered by its id, and wakes wait until they ended', async () => {
    const { inbound } = await start(engine)
    expect(await inbound.remember('msg', { fingerprint: 'a', effect_id: 'one' }, at(0))).toMatchObject({
      isFirst: true,
    })
    expect(await inbound.remember('msg', { fingerprint: 'b', effect_id: 'two' }, at(1))).toEqual({
      isFirst: false,
      row: { fingerprint: 'a', effect_id: 'one' },
    })
    await inbound.commit([
      inbound.wake({ id: 'w', agent: null, mode: 'now', text: 'x', created_at: at(0) }),
      inbound.wake({ id: 'w', agent: null, mode: 'now', text: 'y', created_at: at(0) }),
    ])
    await inbound.attempted('w')
    expect(await inbound.waiting(10)).toEqual([
      { id: 'w', agent: null, mode: 'now', text: 'x', attempts: 1, created_at: at(0) },
    ])
    expect([await inbound.has('w'), await inbound.has('v')]).toEqual([true, false])
    await inbound.ended('w', 'done')
    await inbound.commit([inbound.deleteSeen(at(2)), inbound.deleteWakes(at(2))])
    expect(await inbound.waiting(10)).toEqual([])
    expect(await inbound.has('w')).toBe(false)
    expect(await inbound.remember('msg', { fingerprint: 'b', effect_id: 'two' }, at(3))).toMatchObject({
      isFirst: true,
    })
  })
})

it.each(engines)('%s: who could not begin a turn forgets its receiver only while nobody else tries', async (engine) => {
  const { sql } = await start(engine)
  const answers = new AnswerStore(sql, recorder().log)
  const row = { agent_id: 'a', channel: 'irc', account: null, recipient: 'x', thread: null, error: null } as const
  for (const seconds of [1, 2]) await answers.insert({ ...row, id: 'turn', state: 'pending', created_at: at(seconds) })
  await answers.remove('turn', at(1))
  expect(await answers.find('turn')).toMatchObject({ recipient: 'x' })
  await answers.remove('turn', at(2))
  expect(await answers.find('turn')).toBeUndefined()
})
