import { messageOf, runAs, ServerAway } from 'svc/internal'
import type { Actor, Clock } from 'svc/internal'
import { readJson, Refusal } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Settings } from './config.ts'
import type { Job, JobOutcome, JobState, Worker } from './contract.ts'
import type { QueueDriver, Release } from './driver.ts'
import type { StoredJob } from './schema.ts'

export interface LaneDeps {
  readonly lane: string
  readonly worker: Worker
  readonly driver: QueueDriver
  readonly settings: Settings
  readonly capacity: number
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  /** Runs work that unloading waits for. */
  readonly background: (work: () => Promise<void>) => void
  /** A job ended, or will be tried again. */
  readonly counted: (outcome: 'done' | 'postponed' | 'failed' | 'dead') => void
  /** It runs as many jobs as it may, and others may wait that another daemon could run. */
  readonly full: () => void
  /** Whether nothing is to be claimed for now. */
  readonly isPaused: () => boolean
}

interface RunningJob {
  readonly job: StoredJob
  readonly controller: AbortController
  readonly ended: Promise<void>
}

/** Runs the jobs of one lane, as many side by side as its capacity. */
export class Lane {
  readonly #deps: LaneDeps
  readonly #running = new Map<string, RunningJob>()
  #pass: Promise<void> | undefined
  #isPassRequested = false
  #hasBegun = false
  #isStopped = false
  #cancelTimer: (() => void) | undefined

  constructor(deps: LaneDeps) {
    this.#deps = deps
  }

  get active(): number {
    return this.#running.size
  }

  get isFull(): boolean {
    return this.#running.size >= this.#deps.capacity
  }

  begin(): void {
    const { background, driver, lane, log, settings } = this.#deps
    if (this.#isStopped) return
    background(async () => {
      try {
        await driver.openLane(lane)
        this.#hasBegun = true
        this.wake()
      } catch (error) {
        log.warn(`lane ${lane} could not be begun and is tried again: ${messageOf(error)}`)
        this.#after(settings.retry_min_ms, () => this.begin())
      }
    })
  }

  /** Looks for jobs that are due. */
  wake(): void {
    if (this.#isStopped || !this.#hasBegun || this.#deps.isPaused()) return
    if (this.#pass) {
      this.#isPassRequested = true
      return
    }
    // Whoever woke it did not ask for the jobs of others.
    this.#deps.background(() => runAs(undefined, () => this.#search()))
  }

  /** Settles when no claim is under way. */
  async searched(): Promise<void> {
    await this.#pass
  }

  /** Aborts the job if it runs here. */
  abort(id: string, reason: string): void {
    this.#running.get(id)?.controller.abort(new Error(reason))
  }

  /** Settles when no job runs any more. What did not end is run again by the next worker. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelTimer?.()
    await this.#pass
    const running = [...this.#running.values()]
    for (const { controller } of running) controller.abort(new Error('the worker is being removed'))
    await Promise.all(running.map(({ ended }) => ended))
  }

  #search(): Promise<void> {
    this.#pass ??= this.#claimAll().finally(() => {
      this.#pass = undefined
      if (!this.#isPassRequested) return
      this.#isPassRequested = false
      this.wake()
    })
    return this.#pass
  }

  async #claimAll(): Promise<void> {
    const { lane, driver, settings, clock, log, full, isPaused } = this.#deps
    this.#cancelTimer?.()
    try {
      while (!this.#isStopped && !isPaused()) {
        if (this.isFull) return full()
        const searchedAt = clock.now()
        const job = await driver.claim(lane)
        if (!job) return await this.#wait(searchedAt)
        this.#start(job)
      }
    } catch (error) {
      // The database is busy, or another daemon took a job of the same group at the same time.
      log.debug(`lane ${lane}: jobs could not be claimed`, { error: messageOf(error) })
      this.#wakeAfter(settings.retry_min_ms)
    }
  }
  /** A job that was due waits for one of its group, whose end wakes this lane. */
  async #wait(searchedAt: number): Promise<void> {
    const { lane, driver, settings, clock } = this.#deps
    const dueIn = await driver.nextDue(lane, clock.now() - searchedAt)
    if (dueIn !== undefined) this.#wakeAfter(Math.min(Math.max(dueIn, 0), settings.poll_interval_ms))
  }
  #wakeAfter(ms: number): void {
    this.#after(ms, () => this.wake())
  }
  #after(ms: number, run: () => void): void {
    if (this.#isStopped) return
    this.#cancelTimer?.()
    this.#cancelTimer = this.#deps.clock.after(ms, run)
  }

  #start(job: StoredJob): void {
    const controller = new AbortController()
    const ended = Promise.withResolvers<void>()
    this.#running.set(job.id, { job, controller, ended: ended.promise })
    this.#deps.background(async () => {
      try {
        await this.#run(job, controller.signal)
      } catch (error) {
        // Its lease ends, and it runs again.
        this.#deps.log.error(`job ${job.id} of lane ${job.lane} could not be ended`, error)
      } finally {
        this.#running.delete(job.id)
        ended.resolve()
        this.wake()
      }
    })
  }

  async #run(stored: StoredJob, signal: AbortSignal): Promise<void> {
    const { worker, counted, settings } = this.#deps
    if (stored.losses >= settings.max_losses)
      return this.#bury(stored, stored.failures, `the daemon that worked on it stopped (${stored.losses} times)`)
    let result: JobOutcome
    try {
      result = await runAs(actorOf(stored), () => worker.run({ ...this.#toJob(stored), signal }))
    } catch (error) {
      if (this.#isStopped && signal.aborted)
        return this.#settle(stored, { state: 'pending', failures: stored.failures })
      // No failure of the job, however often that happens.
      if (error instanceof ServerAway)
        return this.#settle(stored, {
          state: 'pending',
          failures: stored.failures,
          afterMs: this.#pause(stored.failures + 1, undefined),
        })
      return this.#fail(stored, error)
    }
    const { statements = [] } = result
    if (result.outcome === 'done') {
      await this.#settle(stored, { state: 'done', failures: stored.failures }, statements)
    } else if (result.outcome === 'dead') {
      await this.#settle(stored, { state: 'dead', failures: stored.failures, error: result.reason }, statements)
    } else {
      await this.#settle(stored, { state: 'pending', failures: 0, afterMs: result.afterMs }, statements)
    }
    counted(result.outcome)
  }

  async #fail(stored: StoredJob, cause: unknown): Promise<void> {
    const { settings, log, counted } = this.#deps
    const failures = stored.failures + 1
    const error = messageOf(cause)
    if (failures >= settings.max_failures) {
      log.error(`job ${stored.id} of lane ${stored.lane} is dead after ${failures} failures`, cause)
      return this.#bury(stored, failures, error)
    }
    log.warn(`job ${stored.id} of lane ${stored.lane} failed and runs again: ${error}`)
    await this.#settle(stored, { state: 'pending', failures, afterMs: this.#pause(failures, cause), error })
    counted('failed')
  }
  async #bury(stored: StoredJob, failures: number, error: string): Promise<void> {
    const { worker, counted } = this.#deps
    const statements = (await worker.dead?.({ ...this.#toJob(stored), failures }, error)) ?? []
    await this.#settle(stored, { state: 'dead', failures, error }, statements)
    counted('dead')
  }

  /** Full jitter, doubled with each failure. */
  #pause(failures: number, cause: unknown): number {
    const { settings, random } = this.#deps
    const longest = Math.min(settings.retry_min_ms * 2 ** (failures - 1), settings.retry_max_ms)
    const asked = cause instanceof Refusal ? (cause.retryAfterSecs ?? 0) * 1000 : 0
    return Math.max(Math.ceil(random() * longest), asked)
  }

  /** While the database is away it is tried again, as long as a lease: the work was done, and is not to be done twice. */
  async #settle(stored: StoredJob, release: Release, statements: readonly Statement[] = []): Promise<void> {
    const { driver, log, clock, settings } = this.#deps
    const { lane, id } = stored
    const until = clock.now() + settings.lease_secs * 1000
    for (;;) {
      try {
        await driver.commit([...statements, driver.settle(stored, release)])
        return
      } catch (error) {
        const state = await this.#stateOf(stored)
        if (state !== undefined && state !== 'held') {
          log.info(`job ${id} of lane ${lane} is ${state} meanwhile; what this attempt did is not recorded`)
          return
        }
        const isAway = error instanceof Refusal && error.code === 'service_unavailable'
        if (!isAway || this.#isStopped || clock.now() >= until) throw error
      }
      await new Promise<void>((resolve) => clock.after(settings.retry_min_ms, resolve))
    }
  }
  /** `held`: the claim holds. `undefined`: the database does not say. */
  async #stateOf({ lane, id, claim_id: claimId }: StoredJob): Promise<JobState | 'gone' | 'held' | undefined> {
    try {
      const row = await this.#deps.driver.find(lane, id)
      if (row?.state === 'running' && row.claim_id === claimId) return 'held'
      return row?.state ?? 'gone'
    } catch (error) {
      this.#deps.log.debug(`job ${id} of lane ${lane} could not be read`, { error: messageOf(error) })
      return undefined
    }
  }

  /** Keeps the leases of what runs here. */
  async renew(): Promise<void> {
    const running = [...this.#running.values()]
    if (running.length === 0) return
    const { lane, driver } = this.#deps
    const held = await driver.renew(
      lane,
      running.map(({ job }) => job),
    )
    for (const { job, controller } of running)
      if (!held.has(job.id) && this.#running.get(job.id)?.job.claim_id === job.claim_id)
        controller.abort(new Error('the job was cancelled, or another daemon has it'))
  }

  #toJob({ lane, id, payload, failures, losses, created_at: createdAt }: StoredJob): Omit<Job, 'signal'> {
    return { lane, id, payload: readJson(payload), failures, losses, createdAt }
  }
}

/** What it leads to is known to come from what led to it. */
const actorOf = ({ lane, origin }: StoredJob): Actor | undefined =>
  origin === null ? undefined : { kind: 'queue', id: lane, origin }
