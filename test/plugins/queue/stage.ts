import type { Statement } from 'svc/sdk'
import { Settings } from '../../../plugins/queue/config.ts'
import type { Job, JobOutcome, NewJob } from '../../../plugins/queue/contract.ts'
import { migrations } from '../../../plugins/queue/migrations.ts'
import { openDriver } from '../../../plugins/queue/open-driver.ts'
import { DatabaseQueue } from '../../../plugins/queue/service.ts'
import type { Database } from '../../../core/storage/database.ts'
import { parse } from '../../../core/schema/parse.ts'
import { cleanups } from '../../support/cleanups.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { open } from '../../core/storage/engines.ts'

/** What the contract of the queue holds on. */
export const stages = ['embedded on sqlite', 'embedded on postgresql', 'pg-boss'] as const
export type StageName = (typeof stages)[number]

const log = { debug() {}, info() {}, warn() {}, error() {} }
const POLL_MS = 5_000
const RENEW_MS = 20_000

export interface Options {
  readonly settings?: Record<string, unknown>
  readonly owner?: string
  readonly isReloaded?: boolean
}
export type TestDaemon = Awaited<ReturnType<Stage['start']>>

let closing: (() => Promise<void>)[] = []
cleanups.eachTest.unshift(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A database, and the time that passes for those who use it. */
export class Stage {
  readonly name: StageName
  readonly database: Database
  readonly clock = new ManualClock()

  private constructor(name: StageName, database: Database) {
    this.name = name
    this.database = database
  }
  static async open(name: StageName): Promise<Stage> {
    const { database } = await open(name === 'embedded on sqlite' ? 'sqlite' : 'postgresql')
    await database.migrate('queue', migrations)
    return new Stage(name, database)
  }

  /** As the driver sees it. */
  now(): number {
    return this.name === 'pg-boss' ? Date.now() : this.clock.now()
  }
  /** Lets time pass, and the timers of everybody ring. */
  async pass(ms: number): Promise<void> {
    await this.age(ms)
    this.clock.advance(RENEW_MS)
  }
  /** Lets time pass that nobody notices: pg-boss goes by the server's clock, so its rows become older instead. */
  async age(ms: number): Promise<void> {
    if (this.name === 'pg-boss') {
      await this.database.sql.batch([
        {
          sql: `UPDATE queue_pgboss.job SET start_after = start_after - ${ms} * interval '1 ms',
            created_on = created_on - ${ms} * interval '1 ms', heartbeat_on = heartbeat_on - ${ms} * interval '1 ms',
            completed_on = completed_on - ${ms} * interval '1 ms'`,
          values: [],
        },
        {
          sql: `UPDATE queue_pgboss.queue SET monitor_claim_on = monitor_claim_on - ${ms} * interval '1 ms',
            maintain_on = maintain_on - ${ms} * interval '1 ms'`,
          values: [],
        },
      ])
    } else this.clock.jump(ms)
  }

  /** One daemon of those on the database. `crash` forgets it as a killed process would. */
  async start(options: Options = {}) {
    const { clock, database } = this
    const outcomes: string[] = []
    const pending = new Set<Promise<void>>()
    let isDead = false
    const settings = parse(Settings, {
      driver: this.name === 'pg-boss' ? 'pg-boss' : 'embedded',
      lease_secs: 60,
      ...options.settings,
    })
    const daemonClock = {
      now: () => clock.now(),
      after: (ms: number, run: () => void) => clock.after(ms, () => void (isDead || run())),
    }
    const counted = (lane: string, outcome: string): void => void outcomes.push(`${lane} ${outcome}`)
    const driver = await openDriver(
      { agree: async () => {} },
      {
        db: database.sql,
        server: database.server,
        settings,
        owner: options.owner ?? 'this home',
        clock: daemonClock,
        log,
        lost: (lane) => counted(lane, 'lost'),
      },
    )
    // A killed process claims nothing more, and what it has sent reaches the database before another process starts.
    const claims = new Set<Promise<unknown>>()
    const claim = driver.claim.bind(driver)
    driver.claim = (lane) => {
      if (isDead) return Promise.resolve(undefined)
      const claiming = claim(lane)
      claims.add(claiming)
      return claiming.finally(() => claims.delete(claiming))
    }
    const queue = new DatabaseQueue({
      driver,
      settings,
      broadcast: database.broadcast,
      clock: daemonClock,
      random: () => 1,
      log,
      background(work) {
        if (isDead) return
        const running = work().catch(() => {})
        pending.add(running)
        void running.finally(() => pending.delete(running))
      },
      counted,
    })
    const every = (ms: number, run: () => void): void => {
      clock.after(ms, () => {
        if (isDead) return
        run()
        every(ms, run)
      })
    }
    closing.push(async () => {
      if (!isDead) await queue.close()
      await driver.close()
    })
    return {
      queue,
      driver,
      outcomes,
      begin() {
        queue.begin(options.isReloaded ?? false)
        every(POLL_MS, () => queue.poll())
        every(RENEW_MS, () => void queue.renew())
      },
      /** Settles when nothing is claimed, run or recorded. */
      async rest() {
        while (pending.size > 0) await Promise.all(pending)
      },
      async crash() {
        isDead = true
        await Promise.allSettled(claims)
      },
      add: (job: NewJob, ...more: readonly Statement[]) => database.sql.batch([queue.add(job), ...more]),
      state: async (id: string) => (await queue.find('work', id))?.state,
    }
  }
}

export const job = (id: string, more: Partial<NewJob> = {}): NewJob => ({
  lane: 'work',
  id,
  payload: { n: id },
  ...more,
})
export const done = (): Promise<JobOutcome> => Promise.resolve({ outcome: 'done' })
export const rejectOnAbort = ({ signal }: Job): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
