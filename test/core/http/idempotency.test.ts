import { describe, expect, it } from 'vitest'
import * as v from 'valibot'
import { Refusal } from '../../../core/errors/error.ts'
import { Idempotency } from '../../../core/http/idempotency.ts'
import { defineRoute } from '../../../core/http/route.ts'
import type { AnyRoute } from '../../../core/http/route.ts'
import type { DaemonLiveness } from '../../../core/http/key-owners.ts'
import { noBroadcast } from '../../../core/storage/broadcast.ts'
import type { Broadcast } from '../../../core/storage/broadcast.ts'
import { openDatabase as openStorage } from '../../../core/storage/open.ts'
import { ServerAway } from '../../../core/storage/failure.ts'
import { openReservations } from '../../../core/storage/reservations.ts'
import type { Reservations } from '../../../core/storage/reservations.ts'
import { broadcastKey, closing, emptyPostgres, engines, open as openDatabase, recorder } from '../storage/engines.ts'
import { open } from './harness.ts'

/** A route whose effects are counted and kept by their id, as a table with a primary key would keep them. */
function thing(work: (id: string) => Promise<void> | void = () => undefined) {
  const effects = new Map<string, string>()
  const route = defineRoute({
    method: 'POST',
    path: '/api/things',
    summary: 'Make a thing',
    auth: 'bearer',
    effect: 'conversation',
    cost: 1,
    idempotent: true,
    body: v.object({ name: v.string(), size: v.optional(v.number()) }),
    returns: v.object({ id: v.string(), name: v.string() }),
    status: 201,
    async handle({ body, effectId = 'none' }) {
      if (body.name === 'bad') throw new Refusal('conflict', 'That name is taken')
      effects.set(effectId, body.name)
      await work(effectId)
      return { id: effectId, name: body.name }
    },
    recall(id) {
      const name = effects.get(id)
      return name === undefined ? undefined : { id, name }
    },
  })
  return { route, effects }
}
async function stage(
  routes: readonly AnyRoute[],
  options: { reservations?: Reservations; broadcast?: Broadcast; liveness?: DaemonLiveness } = {},
) {
  const reservations =
    options.reservations ??
    openReservations((await openDatabase('sqlite')).database.sql, () => new Date().toISOString())
  const idempotency = new Idempotency({
    reservations,
    broadcast: options.broadcast ?? noBroadcast('here'),
    onDefect: (error) => {
      throw error
    },
  })
  idempotency.setLiveness(options.liveness)
  const opened = await open(routes, { idempotency })
  const post = async (body: unknown, key?: string, path = '/api/things') => {
    const answer = await fetch(opened.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await answer.text()
    return {
      status: answer.status,
      text,
      body: answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined,
      replayed: answer.headers.get('idempotent-replayed') === 'true',
    }
  }
  return { ...opened, post, reservations }
}

describe('an Idempotency-Key', () => {
  it('makes one effect of fifty requests at once, and one answer', async () => {
    const gate = Promise.withResolvers<void>()
    const { route, effects } = thing(() => gate.promise)
    const { post } = await stage([route])
    const all = Array.from({ length: 50 }, () => post({ name: 'a' }, 'k1'))
    gate.resolve()
    const answers = await Promise.all(all)
    expect(effects.size).toBe(1)
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
    const later = await post({ name: 'a' }, 'k1')
    expect(later).toMatchObject({ status: 201, replayed: true, body: answers[0]?.body })
  })
  it('is for one body: another is 409, one written in another order is the same', async () => {
    const { route, effects } = thing()
    const { post } = await stage([route])
    const first = await post('{"name":"a","size":1}', 'k')
    expect(await post('{ "size": 1, "name": "a" }', 'k')).toMatchObject({ replayed: true, text: first.text })
    const other = await post({ name: 'b' }, 'k')
    expect([other.status, other.body.error.code]).toEqual([409, 'conflict'])
    expect(effects.size).toBe(1)
  })
  it('is not needed, and others are other effects', async () => {
    const { route, effects } = thing()
    const { post } = await stage([route])
    await Promise.all([post({ name: 'a' }, 'k1'), post({ name: 'a' }, 'k2')])
    expect(effects.size).toBe(2)
    expect((await post({ name: 'a' })).body.id).toBe('none')
  })
  it.each(['', ' '])('is refused when it is %j', async (key) => {
    const { route, effects } = thing()
    const { post } = await stage([route])
    const { status, body } = await post({ name: 'a' }, key)
    expect([status, body.error.message]).toEqual([400, expect.stringContaining('Idempotency-Key: 1 to 255')])
    expect(effects.size).toBe(0)
  })
  it('is free again after a refusal that came before the effect', async () => {
    const { route } = thing()
    const { post } = await stage([route])
    expect(
      (await Promise.all([post({ name: 'bad' }, 'k'), post({ name: 'bad' }, 'k')])).map(({ status }) => status),
    ).toEqual([409, 409])
    expect(await post({ name: 'good' }, 'k')).toMatchObject({ status: 201, replayed: false })
    expect((await post({}, 'k')).status).toBe(400)
  })
  it('replays a failure that came after it', async () => {
    let runs = 0
    const { route } = thing(() => {
      runs++
      throw new Refusal('service_unavailable', 'too late')
    })
    const { post } = await stage([route])
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 503, replayed: false })
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 503, replayed: true })
    expect(runs).toBe(1)
  })
  it('asks what became of it where a failure said when to ask again', async () => {
    const { route, effects } = thing(() => {
      throw new Refusal('service_unavailable', 'it takes longer', { retryAfterSecs: 30 })
    })
    const { post } = await stage([route])
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 503, replayed: false })
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 201, replayed: true, body: { name: 'a' } })
    expect(effects.size).toBe(1)
  })
  it('is resolved later where the database does not say what came of it, with the same id', async () => {
    let isAway = true
    const { route, effects } = thing((id) => {
      if (isAway) effects.delete(id)
      if (isAway) throw new ServerAway('away', new Error('gone'))
    })
    const { post } = await stage([
      {
        ...route,
        recall(id) {
          if (isAway) throw new ServerAway('away', new Error('gone'))
          return effects.has(id) ? { id, name: 'a' } : undefined
        },
      },
    ])
    for (let times = 0; times < 2; times++)
      expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 503, replayed: false })
    isAway = false
    const made = await post({ name: 'a' }, 'k')
    expect(made).toMatchObject({ status: 201, body: { name: 'a' } })
    expect([...effects.keys()]).toEqual([made.body.id])
  })
  it('keeps its id where something was not there, before the effect or after it', async () => {
    let isAway = true
    const { route, effects } = thing(() => {
      if (isAway) throw new Refusal('service_unavailable', 'not linked')
    })
    const { recall: _, ...unknown } = route
    const { post } = await stage([unknown])
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 503, replayed: false })
    isAway = false
    const [id] = [...effects.keys()]
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 201, body: { id } })
    expect(effects.size).toBe(1)
  })
  it('is answered by what an earlier attempt wrote, also where it was committed late', async () => {
    let attempts = 0
    const { route, effects } = thing((id) => {
      attempts++
      if (attempts === 1) effects.delete(id)
      throw attempts === 1 ? new ServerAway('away', new Error('gone'), true) : new Error('duplicate key')
    })
    const { post } = await stage([route])
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 503, replayed: false })
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 201, body: { name: 'a' } })
    expect([effects.size, attempts]).toEqual([1, 2])
  })
  it.each(['', 'x'.repeat(256), 'a b'])('%j is none', async (key) => {
    const { route } = thing()
    const { post } = await stage([route])
    expect((await post({ name: 'a' }, key)).status).toBe(400)
  })
  it('is left out of routes that do not take it', async () => {
    const { route } = thing()
    const { idempotent: _, ...plain } = route
    const { post } = await stage([plain])
    expect([(await post({ name: 'a' }, 'k')).replayed, (await post({ name: 'b' }, 'k')).status]).toEqual([false, 201])
  })
})

describe('a stream', () => {
  const words = defineRoute({
    method: 'POST',
    path: '/api/words',
    summary: 'Words',
    auth: 'bearer',
    effect: 'conversation',
    cost: 1,
    idempotent: true,
    body: v.object({}),
    returns: v.object({}),
    streams: v.object({}),
    handle: () =>
      (async function* () {
        yield { data: '"one"' }
        yield { data: '"two"' }
      })(),
    recall: () =>
      (async function* () {
        yield { data: '"onetwo"' }
      })(),
  })
  it('is told again by its route', async () => {
    const { post } = await stage([words])
    expect((await post({}, 'k', '/api/words')).text).toBe('data: "one"\n\ndata: "two"\n\n')
    expect(await post({}, 'k', '/api/words')).toMatchObject({ status: 200, text: 'data: "onetwo"\n\n', replayed: true })
  })
})

describe.each(engines)('what a crash left open, on %s', (engine) => {
  const reservationsOn = async () =>
    openReservations((await openDatabase(engine)).database.sql, () => new Date().toISOString())
  const leave = async (reservations: Reservations, effectId: string) => {
    const { fingerprintOf } = await import('../../../core/http/idempotent-work.ts')
    await reservations.reserve(
      { scope: 'POST /api/things', key: 'k' },
      { fingerprint: fingerprintOf('', Buffer.from('{"name":"a"}')), effectId, owner: 'dead' },
    )
  }
  it('is answered by what came of it', async () => {
    const reservations = await reservationsOn()
    const { route, effects } = thing()
    effects.set('e1', 'a')
    await leave(reservations, 'e1')
    const { post } = await stage([route], { reservations })
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: true })
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: true })
    expect(effects.size).toBe(1)
  })
  it('is done under the same id when nothing came of it', async () => {
    const reservations = await reservationsOn()
    const { route, effects } = thing()
    await leave(reservations, 'e2')
    const { post } = await stage([route], { reservations })
    expect(await post({ name: 'a' }, 'k')).toMatchObject({ status: 201, body: { id: 'e2' }, replayed: false })
    expect([...effects.keys()]).toEqual(['e2'])
  })
  it('and what is older than a day is forgotten', async () => {
    const reservations = await reservationsOn()
    await leave(reservations, 'e3')
    expect(await reservations.forget(new Date(Date.now() - 1000).toISOString())).toBe(0)
    expect(await reservations.forget(new Date(Date.now() + 1000).toISOString())).toBe(1)
  })
})

describe('a key at two daemons on one database', () => {
  /** Two daemons that both take each other to be alive, until one is dead. */
  async function daemons(route: AnyRoute) {
    const url = await emptyPostgres()
    const dead = new Set<string>()
    const open = async () => {
      const { sql, broadcast } = closing(await openStorage({ url, log: recorder().log, broadcastKey }))
      const reservations = openReservations(sql, () => new Date().toISOString())
      const liveness: DaemonLiveness = {
        count: () => 2,
        isAlive: (id) => !dead.has(id),
        unlessAlive: (id) => [sql.sql`SELECT svc_require(${dead.has(id) ? 1 : 0} = 1)`],
      }
      const opened = await stage([route], { reservations, broadcast, liveness })
      const { promise: asked, resolve } = Promise.withResolvers<void>()
      broadcast.on('core.idempotency', { heard: () => resolve(), missed: () => undefined })
      return { ...opened, sql, asked, die: () => void dead.add(broadcast.daemonId) }
    }
    return [await open(), await open()] as const
  }
  /** Work that the test lets end, once for each time it began. */
  function gated() {
    const began: ((failure?: Error) => void)[] = []
    const waiting = Promise.withResolvers<void>()
    const work = () =>
      new Promise<void>((resolve, reject) => {
        began.push((failure) => (failure ? reject(failure) : resolve()))
        waiting.resolve()
      })
    return { began, work, first: waiting.promise }
  }

  it('is one effect and one answer, also where the route cannot tell what came of it', async () => {
    const { began, work, first } = gated()
    const { route, effects } = thing(work)
    const { recall: _, ...plain } = route
    const [one, two] = await daemons(plain)
    const begun = one.post({ name: 'a' }, 'k')
    await first
    const answers = [begun, two.post({ name: 'a' }, 'k'), two.post({ name: 'a' }, 'k')]
    await one.asked
    expect(
      (await Promise.all([one, two].map(({ post }) => post({ name: 'b' }, 'k')))).map(({ status }) => status),
    ).toEqual([409, 409])
    began[0]?.()
    const [a, b, c] = await Promise.all(answers)
    expect([a?.status, b?.text, c?.text]).toEqual([201, a?.text, a?.text])
    expect([a, b, c].filter((answer) => answer?.replayed)).toHaveLength(2)
    expect([effects.size, began.length]).toEqual([1, 1])
  })

  it('is free for the other when the first was refused before the effect', async () => {
    const { route, effects } = thing()
    const [one, two] = await daemons(route)
    const answers = await Promise.all([one, two].map(({ post }) => post({ name: 'bad' }, 'k')))
    expect(answers.map(({ status, replayed }) => [status, replayed])).toEqual([
      [409, false],
      [409, false],
    ])
    expect(await two.post({ name: 'good' }, 'k')).toMatchObject({ status: 201, replayed: false })
    expect(effects.size).toBe(1)
  })

  it('goes on at the other when the first dies, under the same id, and the dead one changes nothing any more', async () => {
    const { began, work, first } = gated()
    const { route, effects } = thing(work)
    const { recall: _, ...plain } = route
    const [one, two] = await daemons(plain)
    const lost = one.post({ name: 'a' }, 'k')
    await first
    const other = two.post({ name: 'a' }, 'k')
    one.die()
    await expect.poll(() => began.length, { timeout: 20_000 }).toBe(2)
    began[1]?.()
    const answer = await other
    expect(answer).toMatchObject({ status: 201, replayed: false })
    began[0]?.(new Refusal('service_unavailable', 'it woke up'))
    expect((await lost).status).toBe(503)
    expect(await one.post({ name: 'a' }, 'k')).toMatchObject({ status: 201, replayed: true, text: answer.text })
    expect([...effects.keys()]).toEqual([answer.body.id])
  })

  it('is answered by what came of it when the first could not store its answer', async () => {
    const { route, effects } = thing()
    const [one, two] = await daemons(route)
    const { text } = await one.post({ name: 'a' }, 'k')
    await one.sql.run`UPDATE core_idempotency SET state = 'open'`
    expect(await two.post({ name: 'a' }, 'k')).toMatchObject({ status: 201, replayed: true, text })
    expect(effects.size).toBe(1)
  })
})
