import type { Clock } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Dispose, Logger, Statement } from 'svc/sdk'
import type { Settings } from './config.ts'
import type { JobRow, JobState, NewJob, Queue, Worker } from './contract.ts'
import { Lane } from './lane.ts'
import type { StoredJob, Throughput } from './schema.ts'
import type { JobStore } from './store.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const FULL_RETRY_SECS = 30
/** Dead jobs are kept longer than others: a person may want to run them again. */
const DEAD_RETENTION = 30

export interface QueueDeps {
  readonly store: JobStore
  readonly settings: Settings
  readonly owner: string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly background: (work: () => Promise<void>) => void
  readonly counted: (lane: string, outcome: string) => void
}
export interface LaneStatus {
  readonly lane: string
  /** Jobs that run in this daemon, and in all on this database. */
  readonly active: number
  readonly running: number
  readonly capacity: number
  /** Jobs that are due, and those that are due later. */
  readonly waiting: number
  readonly dead: number
  /** Since when the job that waits longest is due, in milliseconds; 0 when none is due. */
  readonly oldestMs: number
  /** Jobs that were done, and given up, in the last minute and hour. */
  readonly throughput: Throughput
}

/** The queue on the database of the daemon. */
export class DatabaseQueue implements Queue {
  readonly #deps: QueueDeps
  readonly #lanes = new Map<string, Lane>()
  #hasBegun = false

  constructor(deps: QueueDeps) {
    this.#deps = deps
  }

  add(job: NewJob): Statement {
    const { store, clock } = this.#deps
    return store.insert(job, clock.now(), () => this.#lanes.get(job.lane)?.wake())
  }

  async admit(agentId?: string, { all, ofAgent } = { all: 0, ofAgent: 0 }): Promise<void> {
    const { store, settings } = this.#deps
    if ((await store.pending()) + all >= settings.max_depth) throw full('plugins.queue.max_depth', settings.max_depth)
    if (agentId !== undefined && (await store.pending(agentId)) + ofAgent >= settings.max_depth_per_agent)
      throw full('plugins.queue.max_depth_per_agent', settings.max_depth_per_agent)
  }

  work(lane: string, worker: Worker): Dispose {
    if (this.#lanes.has(lane)) throw new Error(`lane ${lane} has a worker already`)
    const { counted, ...deps } = this.#deps
    const created = new Lane({
      ...deps,
      lane,
      worker,
      capacity: this.capacity(lane),
      counted: (outcome) => counted(lane, outcome),
    })
    this.#lanes.set(lane, created)
    if (this.#hasBegun) created.begin(false)
    return async () => {
      this.#lanes.delete(lane)
      await created.stop()
    }
  }

  /** `isReloaded`: an earlier worker of this process may still have jobs; they are taken over when their leases end. */
  begin(isReloaded: boolean): void {
    this.#hasBegun = true
    for (const lane of this.#lanes.values()) lane.begin(!isReloaded)
  }
  /** Looks for jobs that another daemon added. */
  poll(): void {
    for (const lane of this.#lanes.values()) lane.wake()
  }
  /** To be called three times in each lease. */
  async renew(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => lane.renew()))
  }
  async close(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => lane.stop()))
    this.#lanes.clear()
  }

  async cancel(lane: string, id: string): Promise<boolean> {
    const { store, clock } = this.#deps
    const isCancelled = await store.cancel(lane, id, clock.now())
    if (isCancelled) this.#lanes.get(lane)?.abort(id, 'the job was cancelled')
    return isCancelled
  }
  async hurry(lane: string, id: string): Promise<boolean> {
    const { store, clock } = this.#deps
    const isThere = await store.hurry(lane, id, clock.now())
    if (isThere) this.#lanes.get(lane)?.wake()
    return isThere
  }
  async find(lane: string, id: string): Promise<JobRow | undefined> {
    const row = await this.#deps.store.find(lane, id)
    return row && toRow(row)
  }
  async list(lane: string, state: JobState, limit: number, offset: number): Promise<readonly JobRow[]> {
    return (await this.#deps.store.list(lane, state, limit, offset)).map(toRow)
  }
  /** For a job that is dead or cancelled. The statements of the caller are committed with it. */
  async retry(lane: string, id: string, statements: readonly Statement[]): Promise<void> {
    const { store, clock } = this.#deps
    await store.commit([store.retry(lane, id, clock.now()), ...statements])
    this.#lanes.get(lane)?.wake()
  }

  async status(): Promise<readonly LaneStatus[]> {
    const { store, clock } = this.#deps
    const now = clock.now()
    const counts = await store.counts()
    const names = [...new Set([...this.#lanes.keys(), ...counts.map(({ lane }) => lane)])].toSorted()
    return Promise.all(
      names.map(async (lane) => {
        const find = (state: JobState) => counts.find((one) => one.lane === lane && one.state === state)
        const pending = find('pending')
        return {
          lane,
          active: this.#lanes.get(lane)?.active ?? 0,
          running: find('running')?.count ?? 0,
          capacity: this.capacity(lane),
          waiting: pending?.count ?? 0,
          dead: find('dead')?.count ?? 0,
          oldestMs: Math.max(now - (pending?.oldest ?? now), 0),
          throughput: await store.throughput(lane, now - MINUTE_MS, now - HOUR_MS),
        }
      }),
    )
  }
  capacity(lane: string): number {
    const { concurrency, default_concurrency: fallback } = this.#deps.settings
    return concurrency[lane] ?? fallback
  }
  active(): readonly { readonly lane: string; readonly active: number }[] {
    return [...this.#lanes].map(([lane, { active }]) => ({ lane, active }))
  }

  async deleteOld(): Promise<void> {
    const { store, settings, clock } = this.#deps
    const keptMs = settings.retention_hours * HOUR_MS
    await store.commit(store.deleteSettled(clock.now() - keptMs, clock.now() - keptMs * DEAD_RETENTION))
  }
}

function full(key: string, limit: number): Refusal {
  return new Refusal('rate_limit', `${limit} jobs wait already, which is all that ${key} allows`, {
    retryAfterSecs: FULL_RETRY_SECS,
  })
}
function toRow(row: StoredJob): JobRow {
  return {
    lane: row.lane,
    id: row.id,
    state: row.state,
    group: row.group_key ?? undefined,
    agentId: row.agent_id ?? undefined,
    failures: row.failures,
    losses: row.losses,
    createdAt: row.created_at,
    dueAt: row.due_at,
    settledAt: row.settled_at ?? undefined,
    error: row.error ?? undefined,
  }
}
