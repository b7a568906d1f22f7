import { PgBoss } from 'pg-boss'
import { messageOf, ServerAway } from 'svc/internal'
import type { Clock, ServerPool } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Settings } from '../config.ts'
import type { OwnedCount } from '../../cluster/contract.ts'
import type { JobState, NewJob } from '../contract.ts'
import type { Lost, QueueDriver, Release } from '../driver.ts'
import type { LaneCount, StoredJob, Throughput } from '../schema.ts'
import { AGENT_INDEX, PgBossStore } from './store.ts'

const HOUR_SECS = 3_600
/** Claims in a row that may come before their turn. The lane tries again after a pause. */
const MAX_CLAIMS = 10
/** A second apart, then two. */
const START_ATTEMPTS = 3
/** What pg-boss rebuilds of its own accord stays within what takes seconds. */
const MAX_REINDEX_BYTES = 256 * 2 ** 20

export interface PgBossDeps {
  readonly db: PluginDatabase
  /** Of its own: what pg-boss does waits for nobody's batch. It is closed with the driver. */
  readonly pool: ServerPool
  readonly settings: Settings
  /** The same in every process on one home. */
  readonly owner: string
  readonly clock: Clock
  readonly log: Logger
  readonly lost: Lost
}

/**
 * Jobs in the tables of pg-boss. It makes and changes its schema, claims jobs, puts back those whose heartbeats are
 * missing and deletes old ones; what is to be committed with the work of others are statements of `PgBossStore`.
 */
export class PgBossDriver implements QueueDriver {
  readonly #deps: PgBossDeps
  readonly #boss: PgBoss
  readonly #store: PgBossStore
  readonly #lanes = new Set<string>()

  private constructor(deps: PgBossDeps) {
    const { pool, settings, db, log, owner } = deps
    this.#deps = deps
    this.#store = new PgBossStore({
      db,
      owner,
      leaseSecs: settings.lease_secs,
      retentionSecs: settings.retention_hours * HOUR_SECS,
      log,
    })
    this.#boss = new PgBoss({
      schema: 'queue_pgboss',
      db: { executeSql: (text, values) => pool.query(text, values) },
      // `takeOver` calls it, three times in each lease; a little less, or every second call would come too early.
      supervise: false,
      monitorIntervalSeconds: Math.max(Math.floor(settings.lease_secs / 3) - 1, 1),
      maintenanceIntervalSeconds: HOUR_SECS,
      queueCacheIntervalSeconds: HOUR_SECS,
      reindex: { maxIndexBytes: MAX_REINDEX_BYTES },
      schedule: false,
      registerInstance: false,
      openTelemetry: { enabled: false },
      warningQueueSize: settings.max_depth,
    })
    this.#boss.on('error', (error) => log.error('pg-boss failed', error))
    this.#boss.on('warning', ({ message, data }) => log.warn(`pg-boss: ${message}`, { data }))
  }

  /** Makes or changes the schema of pg-boss if it has to; other daemons wait meanwhile. */
  static async open(deps: PgBossDeps): Promise<PgBossDriver> {
    const driver = new PgBossDriver(deps)
    try {
      await driver.#boss.start({ attempts: START_ATTEMPTS })
      await deps.pool.query(AGENT_INDEX)
    } catch (error) {
      await driver.close()
      if (error instanceof ServerAway) throw error
      throw new Error(
        `pg-boss could not make its schema "queue_pgboss": ${messageOf(error)}. ` +
          'Let the user of database_url make schemas (GRANT CREATE ON DATABASE), or set plugins.queue.driver = "embedded"',
        { cause: error },
      )
    }
    return driver
  }

  async openLane(lane: string): Promise<void> {
    if (this.#lanes.has(lane)) return
    await this.#boss.createQueue(lane, { policy: 'singleton' })
    this.#lanes.add(lane)
  }

  insert(job: NewJob, added: () => void): Statement {
    return this.#store.insert(job, !this.#lanes.has(job.lane), () => {
      this.#lanes.add(job.lane)
      added()
    })
  }
  find(lane: string, id: string): Promise<StoredJob | undefined> {
    return this.#store.find(lane, id)
  }
  list(lane: string, state: JobState, limit: number, offset: number): Promise<readonly StoredJob[]> {
    return this.#store.list(lane, state, limit, offset)
  }

  /** Another daemon that takes a job of the same group at the same moment makes pg-boss give none. */
  async claim(lane: string): Promise<StoredJob | undefined> {
    for (let attempt = 0; attempt < MAX_CLAIMS; attempt++) {
      const [fetched] = await this.#boss.fetch(lane)
      if (fetched === undefined) return undefined
      const claimed = this.#store.readClaimed(fetched)
      // It waits again when its heartbeat is missing, perhaps for a daemon that can read it.
      if (claimed === undefined) continue
      const { job, wasLost, heartbeatSecs } = claimed
      // Its heartbeats come three times in a lease of this daemon, which may be longer than that of whoever added it.
      if (heartbeatSecs !== this.#store.heartbeatSecs) await this.#store.setHeartbeat(job)
      if (job.group_key !== null && (await this.#store.yieldToEarlier(job))) continue
      if (wasLost) this.#deps.lost(lane)
      return job
    }
    throw new Error('other daemons claim jobs of the same groups, or there are many that cannot be read')
  }
  renew(lane: string, held: readonly StoredJob[]): Promise<ReadonlySet<string>> {
    return this.#store.renew(lane, held)
  }
  settle(job: StoredJob, release: Release): Statement {
    return this.#store.settle(job, release)
  }
  /** Which home had a job is not known for certain: an earlier process on this one loses it by its heartbeat, as any other. */
  async takeOver(): Promise<void> {
    await this.#boss.supervise()
  }

  cancel(lane: string, id: string): Promise<boolean> {
    return this.#store.cancel(lane, id)
  }
  hurry(lane: string, id: string): Promise<boolean> {
    return this.#store.hurry(lane, id)
  }
  retry(lane: string, id: string): Statement {
    return this.#store.retry(lane, id)
  }

  nextDue(lane: string, searchedMsAgo: number): Promise<number | undefined> {
    return this.#store.nextDue(lane, searchedMsAgo)
  }
  pending(agentId?: string): Promise<number> {
    return this.#store.pending(agentId)
  }
  owned(): Promise<readonly OwnedCount[]> {
    return this.#store.owned()
  }
  counts(): Promise<readonly LaneCount[]> {
    return this.#store.counts()
  }
  throughput(lane: string): Promise<Throughput> {
    return this.#store.throughput(lane)
  }
  /** A part of `supervise`. */
  async deleteOld(): Promise<void> {
    await this.#boss.supervise()
  }

  async carryOver(): Promise<boolean> {
    const lanes = await this.#store.lanesLeft()
    if (lanes.length === 0) return true
    for (const lane of lanes) await this.openLane(lane)
    await this.#store.takeOverEmbedded(this.#deps.clock.now())
    return false
  }
  commit(statements: readonly Statement[]): Promise<unknown> {
    return this.#deps.db.batch(statements)
  }
  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false, close: false })
    await this.#deps.pool[Symbol.asyncDispose]()
  }
}
