import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import type { Broadcast } from '../../../core/storage/broadcast.ts'
import { BroadcastCipher } from '../../../core/storage/broadcast-cipher.ts'
import type { Database } from '../../../core/storage/database.ts'
import { openDatabase } from '../../../core/storage/open.ts'
import { eventually } from '../../support/eventually.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import { broadcastKey, closing, emptyPostgres, open, recorder } from './engines.ts'

interface Heard {
  readonly data: unknown
  readonly from: string
}
/** What arrives under a topic. */
function listen(broadcast: Broadcast, topic = 'a.b') {
  const heard: Heard[] = []
  const figures = { heard, missed: 0 }
  broadcast.on(topic, {
    heard: (data, from) => void heard.push({ data, from }),
    missed: () => void figures.missed++,
  })
  return figures
}
const openOn = async (url: string): Promise<Database> =>
  closing(await openDatabase({ url, log: recorder().log, broadcastKey }))
async function openTwo(): Promise<readonly [Database, Database, url: string]> {
  const url = await emptyPostgres()
  return [await openOn(url), await openOn(url), url]
}
/** Settles when what was said before has arrived: a connection hears in the order of commits. */
async function heardAll(from: Database, by: Database): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  using _ = by.broadcast.on('end.end', { heard: () => resolve(), missed: () => undefined })
  await from.sql.batch(from.broadcast.tell('end.end', {}))
  await promise
}
/** Ends the connections that listen. */
const cut = (database: Database) =>
  database.sql.all`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE 'SELECT pg_notify(m.channel%')`

describe('messages between daemons on PostgreSQL', () => {
  it('are told with a batch that is committed, in order, and never with one that fails', async () => {
    const [one, two] = await openTwo()
    const [own, other] = [listen(one.broadcast), listen(two.broadcast)]
    const { sql, broadcast } = one
    expect([broadcast.isShared, broadcast.daemonId === two.broadcast.daemonId]).toEqual([true, false])
    await expect(
      sql.batch([...broadcast.tell('a.b', 'lost'), sql.sql`INSERT INTO nowhere VALUES (1)`]),
    ).rejects.toThrow()
    for (let n = 0; n < 20; n++) await sql.batch([...broadcast.tell('a.b', { n }), ...broadcast.tell('a.b', { n })])
    await sql.batch(broadcast.tell('a.other', 'another topic'))
    await heardAll(one, two)
    expect(other.heard).toEqual(
      Array.from({ length: 40 }, (_, at) => ({ data: { n: Math.floor(at / 2) }, from: broadcast.daemonId })),
    )
    await heardAll(two, one)
    expect([own.heard, own.missed, other.missed]).toEqual([[], 0, 0])
  })

  it('are sent in order to all or to one, many in one notification', async () => {
    const [one, two, url] = await openTwo()
    const three = await openOn(url)
    const [second, third] = [listen(two.broadcast), listen(three.broadcast)]
    for (let n = 0; n < 1_000; n++) {
      one.broadcast.send('a.b', n)
      if (n % 10 === 0) one.broadcast.send('a.b', `${n} for three`, three.broadcast.daemonId)
    }
    one.broadcast.send('a.b', 'for nobody', one.broadcast.daemonId)
    one.broadcast.send('a.b', 'for nobody', 'x"; SELECT 1')
    one.broadcast.send('a.b', 'end')
    await eventually(() => expect(second.heard.at(-1)?.data).toBe('end'))
    await eventually(() => expect(third.heard).toHaveLength(1_101))
    expect(second.heard.map(({ data }) => data)).toEqual([...Array.from({ length: 1_000 }, (_, n) => n), 'end'])
    expect(third.heard.filter(({ data }) => typeof data === 'string').slice(0, -1)).toHaveLength(100)
  })

  it('of any size arrive whole, in their order, and are removed in time', async () => {
    const [one, two] = await openTwo()
    const { heard } = listen(two.broadcast)
    const large = (n: number): string => `${n}${'ä"\\\uD800'.repeat(20_000)}`
    await one.sql.run`INSERT INTO core_broadcast (id, body, created_at) VALUES ('old', '[]', 1)`
    const expected: unknown[] = []
    for (let n = 0; n < 5; n++) {
      for (const data of [large(n), n]) {
        await one.sql.batch(one.broadcast.tell('a.b', data))
        expected.push(data)
      }
    }
    await heardAll(one, two)
    await eventually(() => expect(heard).toHaveLength(10))
    for (const data of [large(5), 'small', large(6)]) {
      one.broadcast.send('a.b', data)
      expected.push(data)
    }
    await eventually(() => expect(heard).toHaveLength(13))
    expect(heard.map(({ data }) => data)).toEqual(expected)
    await eventually(async () => expect(await one.sql.all`SELECT id FROM core_broadcast WHERE id = 'old'`).toEqual([]))
  })

  it('that may have been missed are told as such, and the next arrive', async () => {
    const [one, two] = await openTwo()
    const other = listen(two.broadcast)
    for (let round = 1; round <= 3; round++) {
      await cut(one)
      await eventually(() => expect(other.missed).toBe(round))
      await one.sql.batch(one.broadcast.tell('a.b', round))
      await eventually(() => expect(other.heard.at(-1)?.data).toBe(round))
    }
    // The sender was cut as well.
    await eventually(() => {
      one.broadcast.send('a.b', 'sent')
      expect(other.heard.at(-1)?.data).toBe('sent')
    })
  })

  it('go on when the server crashed and was started again', async () => {
    await using server = await startPostgres()
    await using place = await server.createDatabase()
    const one = await openDatabase({ url: place.url, log: recorder().log, broadcastKey })
    const two = await openDatabase({ url: place.url, log: recorder().log, broadcastKey })
    try {
      const [own, other] = [listen(one.broadcast), listen(two.broadcast)]
      await server.stop('immediate')
      one.broadcast.send('a.b', 'lost')
      await server.start()
      await eventually(() => expect([own.missed, other.missed]).toEqual([1, 1]))
      await eventually(() => one.sql.batch(one.broadcast.tell('a.b', 'told')))
      await eventually(() => expect(other.heard.map(({ data }) => data)).toEqual(['told']))
    } finally {
      await one[Symbol.asyncDispose]()
      await two[Symbol.asyncDispose]()
    }
  })

  it('of strangers and of newer versions are ignored, whatever they hold', async () => {
    const [one, two] = await openTwo()
    const other = listen(two.broadcast)
    const { channel } = (await one.sql.one<{ channel: string }>`SELECT substring(query from 'svc_[0-9a-f]+') AS channel
      FROM pg_stat_activity WHERE query LIKE 'LISTEN%' LIMIT 1`) ?? { channel: '' }
    expect(channel).toMatch(/^svc_/)
    const hostile = [
      '',
      '{',
      'null',
      '[]',
      '"text"',
      '['.repeat(5_000),
      '{"v":2,"from":"x","m":[["a.b","newer"]]}',
      '{"v":1,"m":[["a.b","nobody"]]}',
      '{"v":1,"from":1,"m":[["a.b","a number"]]}',
      '{"v":1,"from":"x","m":{"length":1}}',
      '{"v":1,"from":"x","m":[["a.b"]]}',
      '{"v":1,"from":"x","m":[[{},{}]]}',
      '{"v":1,"from":"x","m":[["__proto__",1],["constructor",1]]}',
      '{"v":1,"from":"x","ref":{}}',
    ]
    const cipher = new BroadcastCipher(await broadcastKey())
    const notify = (payload: string, place = channel) =>
      one.sql.run`SELECT pg_notify(${channel}, ${cipher.seal(place, payload)})`
    for (const payload of hostile) await notify(payload)
    const message = '{"v":1,"from":"x","extra":1,"m":[["a.b","a field more"]]}'
    // Without the key, for another channel, and cut short.
    for (const payload of [message, new BroadcastCipher(Buffer.alloc(32)).seal(channel, message), 'AAAA', ''])
      await one.sql.run`SELECT pg_notify(${channel}, ${payload})`
    await notify(message, `${channel}_other`)
    await notify(message)
    await heardAll(one, two)
    expect(other).toEqual({ heard: [{ data: 'a field more', from: 'x' }], missed: 0 })
    // What it refers to is not there, so something is missing.
    await notify('{"v":1,"from":"x","ref":"gone"}')
    await eventually(() => expect(other.missed).toBe(1))
    await one.sql.run`INSERT INTO core_broadcast (id, body, created_at) VALUES ('bad', '[1', 9000000000000)`
    await notify('{"v":1,"from":"x","ref":"bad"}')
    await eventually(() => expect(other.missed).toBe(2))
  })

  it('cannot be read by who has not the key, whatever their size', async () => {
    const [one, two, url] = await openTwo()
    const other = listen(two.broadcast)
    const stranger = new Client({ connectionString: url })
    await stranger.connect()
    const seen: string[] = []
    stranger.on('notification', ({ payload }) => seen.push(payload ?? ''))
    const [{ channel } = { channel: '' }] = await one.sql.all<{ channel: string }>`
      SELECT substring(query from 'svc_[0-9a-f]+') AS channel FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`
    await stranger.query(`LISTEN "${channel}"`)
    await one.sql.batch([...one.broadcast.tell('a.b', 'words'), ...one.broadcast.tell('a.b', 'words'.repeat(5_000))])
    await heardAll(one, two)
    expect(other.heard.map(({ data }) => String(data).length)).toEqual([5, 25_000])
    await eventually(() => expect(seen.length).toBeGreaterThanOrEqual(2))
    await stranger.end()
    const rows = await one.sql.all`SELECT body FROM core_broadcast`
    const all = JSON.stringify([seen, rows])
    expect(all).not.toContain('words')
    expect(Buffer.from(all, 'base64').includes('words')).toBe(false)
  })

  it('stop for a listener that was disposed, and one that fails stops nobody else', async () => {
    const [one, two] = await openTwo()
    const gone = two.broadcast.on('a.b', { heard: () => expect.unreachable(), missed: () => expect.unreachable() })
    gone[Symbol.dispose]()
    two.broadcast.on('a.b', {
      heard() {
        throw new Error('a listener fails')
      },
      missed: () => undefined,
    })
    const { heard } = listen(two.broadcast)
    await one.sql.batch(one.broadcast.tell('a.b', 1))
    await heardAll(one, two)
    expect(heard).toHaveLength(1)
  })
})

it('there are none on SQLite, and nothing is written for them', async () => {
  const { database } = await open('sqlite')
  expect(database.broadcast.isShared).toBe(false)
  expect(database.broadcast.tell('a.b', 1)).toEqual([])
  expect(await database.sql.all`SELECT name FROM sqlite_master WHERE name LIKE '%broadcast%'`).toEqual([])
})
