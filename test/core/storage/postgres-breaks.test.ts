import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { outcomeOf } from '../../../core/errors/render.ts'
import type { ServerPool } from '../../../core/storage/database-server.ts'
import { openDatabase } from '../../../core/storage/open.ts'
import { DEFAULT_SETTINGS } from '../../../core/storage/postgres-client.ts'
import { PostgresDatabase } from '../../../core/storage/postgres.ts'
import { openServerPool } from '../../../core/storage/server-pool.ts'
import { BreakingLine } from '../../support/breaking-line.ts'
import type { Break } from '../../support/breaking-line.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { recorder } from './engines.ts'

const cleanup = new AsyncDisposableStack()
let line: BreakingLine
let url: string
beforeAll(async () => {
  const place = cleanup.use(await createTestDatabase())
  line = cleanup.use(await BreakingLine.open(place.host))
  url = line.through(place.url)
  await place.query("CREATE TABLE breaks (id TEXT PRIMARY KEY, text TEXT); INSERT INTO breaks VALUES ('first', 'more')")
})
afterAll(() => cleanup[Symbol.asyncDispose]())

/** What a server says before it does anything more, and what a pooler says of a server that it has lost. */
const GOODBYES = ['57P01', '57P03', '08006'] as const
const LOST = ['08006', '08P01'] as const
const by = (codes: readonly string[]) => ['end' as const, 'reset' as const, ...codes.map((code) => ({ code }))]
const breaks: readonly Break[] = [
  ...by(GOODBYES).map((how) => ({ at: 'connecting' as const, by: how })),
  ...by(GOODBYES).map((how) => ({ at: 'request' as const, by: how })),
  ...by(LOST).map((how) => ({ at: 'answer' as const, by: how })),
  ...by(LOST).map((how) => ({ at: 'middle' as const, by: how })),
]
interface Stage {
  readonly sql: PostgresDatabase
  readonly pool: ServerPool
}
/** Whoever uses it for the first time connects. */
function openStage(): Stage & AsyncDisposable {
  const { log } = recorder()
  const sql = new PostgresDatabase(url, DEFAULT_SETTINGS, log)
  const pool = openServerPool(url, { max: 1, name: 'queue' }, log)
  return {
    sql,
    pool,
    async [Symbol.asyncDispose]() {
      await sql.close()
      await pool[Symbol.asyncDispose]()
    },
  }
}

type Work = (stage: Stage, mark: string) => Promise<unknown>
const insert = ({ sql }: Stage, id: string) => sql.sql`INSERT INTO breaks (id, text) VALUES (${id}, 'more')`
const MANY = 200
const insertMany = (stage: Stage, mark: string) =>
  Array.from({ length: MANY }, (_, n) => insert(stage, `${mark.replace(' ', ', ')} ${n}`))
/** Each has the text `mark` among its values. */
const work: Readonly<Record<string, Work>> = {
  'a read': ({ sql }, mark) => sql.all`SELECT id, text FROM breaks WHERE text <> ${mark}`,
  'a read that writes': ({ sql }, mark) => sql.one`UPDATE breaks SET text = ${mark} WHERE id = '' RETURNING id`,
  'a write': ({ sql }, mark) => sql.run`UPDATE breaks SET text = ${mark} WHERE id = ''`,
  'a batch': (stage, mark) => stage.sql.batch([insert(stage, mark), insert(stage, `${mark} too`)]),
  'a batch with a lock': (stage, mark) => stage.sql.batch([{ ...insert(stage, mark), exclusive: 'breaks' }]),
  'the first piece of a large batch': (stage, mark) =>
    stage.sql.batch([insert(stage, mark), ...insertMany(stage, mark)]),
  'the last piece of a large batch': (stage, mark) =>
    stage.sql.batch([...insertMany(stage, mark), insert(stage, mark)]),
  'what a package asks': ({ pool }, mark) => pool.query('SELECT id, text FROM breaks WHERE text <> $1', [mark]),
}

describe('a connection that breaks is a server that is away, and may be asked again later', () => {
  for (const [name, run] of Object.entries(work))
    it(name, async () => {
      for (const [at, how] of breaks.entries()) {
        await using stage = openStage()
        const mark = `${name} ${at}`
        const broke = line.breakAt(mark, how)
        const found = await run(stage, mark).then(
          () => undefined,
          (error: unknown) => outcomeOf(error, 'request'),
        )
        await broke
        if (found === undefined) continue
        expect([how, found.problem.code, found.retryAfterSecs]).toEqual([how, 'service_unavailable', 5])
      }
    })

  it('a start', async () => {
    for (const how of breaks) {
      const broke = line.breakAt('core_migration', how)
      const { log } = recorder()
      const failure = await openDatabase({ url, log }).then(
        (opened) => opened[Symbol.asyncDispose](),
        (error: unknown) => outcomeOf(error, 'request').problem.code,
      )
      await broke
      expect([how, failure ?? 'service_unavailable']).toEqual([how, 'service_unavailable'])
    }
  })

  it('the connection that listens', async () => {
    await using database = await openDatabase({ url, log: recorder().log })
    for (const how of breaks.filter(({ by: reason }) => typeof reason === 'string')) {
      const { reconnects = 0 } = database.figures().broadcast ?? {}
      const broke = line.breakAt('LISTEN', how)
      line.cut()
      await broke
      await expect.poll(() => database.figures().broadcast, { interval: 5 }).toMatchObject({ connected: true })
      expect(database.figures().broadcast?.reconnects).toBeGreaterThan(reconnects)
    }
  })
})
