import { messageOf } from 'svc/internal'
import type { Broadcast, Clock } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Dispose, Logger, Statement } from 'svc/sdk'
import type { OwnedCount } from '../cluster/contract.ts'
import type { Settings } from './config.ts'
import type { JobRow, JobState, NewJob, Queue, Worker } from './contract.ts'
import type { QueueDriver } from './driver.ts'
import { Lane } from './lane.ts'
import { LaneSignals } from './signals.ts'
import type { StoredJob, Throughput } from './schema.ts'

const FULL_RETRY_SECS = 30

export interface QueueDeps {
  readonly driver: QueueDriver
  readonly settings: Settings
  readonly broadcast: Broadcast
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
  readonly #signals: LaneSignals
  #hasBegun = false
  #isPaused = false
  #isCarriedOver = false

  constructor(deps: QueueDeps) {
    this.#deps = deps
    this.#signals = new LaneSignals(deps, {
      waiting: (lane) => this.#lanes.get(lane)?.wake(),
      cancelled: (lane, id) => this.#lanes.get(lane)?.abort(id, 'the job was cancelled'),
      missed: () => this.poll(),
    })
  }

  add(job: NewJob): Statement {
    return this.#deps.driver.insert(job, () => this.#wake(job.lane))
  }
  /** Another daemon is told of what this one cannot do at once. */
  #wake(name: string): void {
    const lane = this.#lanes.get(name)
    lane?.wake()
    if (lane === undefined || lane.isFull || this.#isPaused) this.#signals.waiting(name)
  }

  async admit(agentId?: string, { all, ofAgent } = { all: 0, ofAgent: 0 }): Promise<void> {
    const { driver, settings } = this.#deps
    if ((await driver.pending()) + all >= settings.max_depth) throw full('plugins.queue.max_depth', settings.max_depth)
    if (agentId !== undefined && (await driver.pending(agentId)) + ofAgent >= settings.max_depth_per_agent)
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
      full: () => this.#signals.waiting(lane),
      isPaused: () => this.#isPaused,
    })
    this.#lanes.set(lane, created)
    if (this.#hasBegun) created.begin()
    return async () => {
      this.#lanes.delete(lane)
      await created.stop()
    }
  }

  /** `isReloaded`: an earlier worker of this process may still have jobs; they are taken over when their leases end. */
  begin(isReloaded: boolean): void {
    const { background, driver, log } = this.#deps
    background(async () => {
      try {
        this.#isCarriedOver = await driver.carryOver()
        // What an earlier process had is taken over before anything is claimed, or this would be taken over too.
        await driver.takeOver(!isReloaded)
      } catch (error) {
        log.warn(`what earlier daemons left could not be taken over yet: ${messageOf(error)}`)
      }
      this.#hasBegun = true
      for (const lane of this.#lanes.values()) lane.begin()
    })
  }
  /** Claims nothing more once it settles, and leaves what is due to others. What runs goes on. */
  async pause(isPaused: boolean): Promise<void> {
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    if (!isPaused) return this.poll()
    for (const lane of this.#lanes.keys()) this.#signals.waiting(lane)
    await Promise.all([...this.#lanes.values()].map((lane) => lane.searched()))
  }
  /** Looks for jobs that another daemon added. */
  poll(): void {
    for (const lane of this.#lanes.values()) lane.wake()
  }
  /** To be called three times in each lease: keeps what is claimed, and takes over what daemons that died have left. */
  async renew(): Promise<void> {
    if (!this.#hasBegun) return
    const { driver, log } = this.#deps
    try {
      await Promise.all([...this.#lanes.values()].map((lane) => lane.renew()))
      await driver.takeOver(false)
      if (!this.#isCarriedOver) this.#isCarriedOver = await driver.carryOver()
    } catch (error) {
      log.warn(`the leases of jobs could not be renewed: ${messageOf(error)}`)
    }
    this.poll()
  }
  async close(): Promise<void> {
    this.#signals[Symbol.dispose]()
    await Promise.all([...this.#lanes.values()].map((lane) => lane.stop()))
    this.#lanes.clear()
  }

  async cancel(lane: string, id: string): Promise<boolean> {
    const isCancelled = await this.#deps.driver.cancel(lane, id)
    if (isCancelled) {
      this.#lanes.get(lane)?.abort(id, 'the job was cancelled')
      this.#signals.cancelled(lane, id)
    }
    return isCancelled
  }
  async hurry(lane: string, id: string): Promise<boolean> {
    const isThere = await this.#deps.driver.hurry(lane, id)
    if (isThere) this.#wake(lane)
    return isThere
  }
  async find(lane: string, id: string): Promise<JobRow | undefined> {
    const row = await this.#deps.driver.find(lane, id)
    return row && toRow(row)
  }
  async list(lane: string, state: JobState, limit: number, offset: number): Promise<readonly JobRow[]> {
    return (await this.#deps.driver.list(lane, state, limit, offset)).map(toRow)
  }
  /** For a job that is dead or cancelled. The statements of the caller are committed with it. */
  async retry(lane: string, id: string, statements: readonly Statement[]): Promise<void> {
    const { driver } = this.#deps
    await driver.commit([driver.retry(lane, id), ...statements])
    this.#wake(lane)
  }

  async status(): Promise<readonly LaneStatus[]> {
    const { driver } = this.#deps
    const counts = await driver.counts()
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
          oldestMs: Math.max(pending?.oldest_ms ?? 0, 0),
          throughput: await driver.throughput(lane),
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

  /** Jobs that run in the daemons on the database. */
  owned(): Promise<readonly OwnedCount[]> {
    return this.#deps.driver.owned()
  }
  async deleteOld(): Promise<void> {
    await this.#deps.driver.deleteOld()
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
