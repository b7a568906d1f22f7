import { randomUUID } from 'node:crypto'
import { parse } from '../../../core/schema/parse.ts'
import { wallClock } from '../../../core/scope/clock.ts'
import type { Database } from '../../../core/storage/database.ts'
import { Settings } from '../../../plugins/queue/config.ts'
import { migrations } from '../../../plugins/queue/migrations.ts'
import { openDriver } from '../../../plugins/queue/open-driver.ts'
import { DatabaseQueue } from '../../../plugins/queue/service.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

export interface WorkerOptions {
  readonly driver: string
  readonly settings?: object
  /** The job goes on when it has settled. */
  readonly began?: (id: string) => unknown
  /** Milliseconds between two renewals of leases. */
  readonly renewMs?: number
}

/**
 * A daemon's queue in real time. Each job adds a row to the table `queue_receipt`, which holds any number of one id:
 * who reads it counts how often a job was done.
 */
export async function startWorker(
  database: Database,
  { driver: name, settings: given, began, renewMs = 500 }: WorkerOptions,
) {
  await database.migrate('queue', [
    ...migrations,
    { id: 'receipt', sql: 'CREATE TABLE queue_receipt (id TEXT NOT NULL)' },
  ])
  const settings = parse(Settings, { driver: name, lease_secs: 10, retry_min_ms: 20, poll_interval_ms: 200, ...given })
  const driver = await openDriver(
    { agree: async () => {} },
    {
      db: database.sql,
      server: database.server,
      settings,
      owner: randomUUID(),
      clock: wallClock,
      log,
      lost() {},
    },
  )
  const queue = new DatabaseQueue({
    driver,
    settings,
    broadcast: database.broadcast,
    clock: wallClock,
    random: () => 1,
    log,
    background: (work) => void work().catch(() => {}),
    counted() {},
  })
  queue.work('work', {
    run: async ({ id }) => {
      await began?.(id)
      return { outcome: 'done', statements: [database.sql.sql`INSERT INTO queue_receipt (id) VALUES (${id})`] }
    },
  })
  queue.begin(false)
  const timers = [
    setInterval(() => queue.poll(), settings.poll_interval_ms),
    setInterval(() => void queue.renew(), renewMs),
  ]
  return {
    queue,
    driver,
    async [Symbol.asyncDispose]() {
      for (const timer of timers) clearInterval(timer)
      await queue.close()
      await driver.close()
    },
  }
}

/** How often each job was done. */
export async function receipts(database: Database): Promise<ReadonlyMap<string, number>> {
  const rows = await database.sql.all<{ id: string; count: number }>`SELECT id, COUNT(*) AS count
    FROM queue_receipt GROUP BY id`
  return new Map(rows.map(({ id, count }) => [id, count]))
}
/** Makes the leases of all that runs end. */
export async function endLeases(database: Database, driver: string): Promise<void> {
  if (driver === 'pg-boss')
    await database.sql.run`UPDATE queue_pgboss.job SET heartbeat_on = heartbeat_on - interval '1 hour'
      WHERE state = 'active'`
  else await database.sql.run`UPDATE queue_job SET lease_until = 0 WHERE state = 'running'`
}
