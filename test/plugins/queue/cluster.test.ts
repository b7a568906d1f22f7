import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import type { Database } from '../../../core/storage/database.ts'
import { broadcastKey, closing, emptyPostgres, recorder } from '../../core/storage/engines.ts'
import { eventually } from '../../support/eventually.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import { endLeases, receipts, startWorker } from './running.ts'

const openAt = async (url: string): Promise<Database> =>
  closing(await openDatabase({ url, log: recorder().log, broadcastKey }))

/** Adds jobs in batches, every fourth to a group. */
async function addJobs(worker: Awaited<ReturnType<typeof startWorker>>, count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, n) => `${n}`)
  for (let from = 0; from < count; from += 100)
    await worker.driver.commit(
      ids.slice(from, from + 100).map((id) =>
        worker.queue.add({
          lane: 'work',
          id,
          payload: null,
          ...(Number(id) % 4 === 0 && { group: `${Number(id) % 16}` }),
        }),
      ),
    )
  return ids
}
const onceEach = (ids: readonly string[]): ReadonlyMap<string, number> => new Map(ids.toSorted().map((id) => [id, 1]))
const sorted = (map: ReadonlyMap<string, number>) => new Map([...map].toSorted(([a], [b]) => (a < b ? -1 : 1)))

describe.each(['embedded', 'pg-boss'])('two daemons with the driver %s', (driver) => {
  it('do many jobs, each once', async () => {
    const count = driver === 'pg-boss' ? 1_000 : 200
    const url = await emptyPostgres()
    const [one, other] = [await openAt(url), await openAt(url)]
    // Each begins one job and holds it until the other has begun one too: neither is left without work by the other.
    const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const hold = (own: 0 | 1) => {
      both[own].resolve()
      return both[own === 0 ? 1 : 0].promise
    }
    await using first = await startWorker(one, { driver, began: () => hold(0) })
    await using _ = await startWorker(other, { driver, began: () => hold(1) })
    const ids = await addJobs(first, count)
    await eventually(async () => expect((await receipts(one)).size).toBe(count))
    expect(sorted(await receipts(one))).toEqual(onceEach(ids))
  })

  it('finish what a third was at when it was killed', async () => {
    const url = await emptyPostgres()
    const database = await openAt(url)
    // It holds its jobs until the third is at work: neither is left without work by the other.
    const isAtWork = Promise.withResolvers<void>()
    await using survivor = await startWorker(database, {
      driver,
      settings: { concurrency: { work: 2 } },
      began: () => isAtWork.promise,
    })
    const child = spawn(
      process.execPath,
      ['--conditions=svc-source', fileURLToPath(new URL('worker.ts', import.meta.url)), url, driver],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const exited = once(child, 'exit')
    const lines = createInterface({ input: child.stdout })
    await once(lines, 'line')
    let begun = 0
    lines.on('line', () => {
      if (++begun === 20) isAtWork.resolve()
    })
    const ids = await addJobs(survivor, 200)
    await isAtWork.promise
    child.kill('SIGKILL')
    await exited
    await eventually(async () => {
      if ((await receipts(database)).size < 200) await endLeases(database, driver)
      expect((await receipts(database)).size).toBe(200)
    })
    expect(sorted(await receipts(database))).toEqual(onceEach(ids))
  })
})

it.each(['embedded', 'pg-boss'])(
  'a server that crashes and comes back costs no job and doubles none: %s',
  async (driver) => {
    await using server = await startPostgres()
    await using place = await server.createDatabase()
    const [one, other] = [await openAt(place.url), await openAt(place.url)]
    const done = Promise.withResolvers<void>()
    let begun = 0
    const began = (): void => {
      if (++begun === 60) done.resolve()
    }
    await using first = await startWorker(one, { driver, began })
    await using _ = await startWorker(other, { driver, began })
    const ids = await addJobs(first, 200)
    await done.promise
    await server.stop('immediate')
    await server.start()
    await eventually(async () => {
      await endLeases(one, driver)
      expect((await receipts(one)).size).toBe(200)
    })
    expect(sorted(await receipts(one))).toEqual(onceEach(ids))
  },
)
