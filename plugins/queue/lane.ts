import { randomUUID } from 'node:crypto'
import { messageOf, runAs } from 'svc/internal'
import type { Actor, Clock } from 'svc/internal'
import { readJson, Refusal } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Settings } from './config.ts'
import type { Job, JobOutcome, Worker } from './contract.ts'
import type { StoredJob } from './schema.ts'
import type { JobStore, Release } from './store.ts'

export interface LaneDeps {
  readonly lane: string
  readonly worker: Worker
  readonly store: JobStore
  readonly settings: Settings
  readonly capacity: number
  /** The same in every process on one home. */
  readonly owner: string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  /** Runs work that unloading waits for. */
  readonly background: (work: () => Promise<void>) => void
  /** A job ended, or will be tried again. */
  readonly counted: (outcome: 'done' | 'postponed' | 'failed' | 'dead' | 'lost') => void
}

interface RunningJob {
  readonly job: StoredJob
  readonly claimId: string
  readonly controller: AbortController
  readonly ended: Promise<void>
}

/** Runs the jobs of one lane, as many side by side as its capacity. */
export class Lane {
  readonly #deps: LaneDeps
  readonly #running = new Map<string, RunningJob>()
  #pass: Promise<void> | undefined
  #isPassRequested = false
  /** What an earlier process had must be taken over before anything is claimed, or this would take it over too. */
  #hasBegun = false
  #isStopped = false
  #cancelTimer: (() => void) | undefined

  constructor(deps: LaneDeps) {
    this.#deps = deps
  }

  get active(): number {
    return this.#running.size
  }

  /** `isFirst`: no earlier worker of this process can have a job; what an earlier process had is taken over at once. */
  begin(isFirst: boolean): void {
    const { background, owner } = this.#deps
    background(async () => {
      try {
        await this.#takeOver(isFirst ? owner : undefined)
      } finally {
        this.#hasBegun = true
        this.wake()
      }
    })
  }

  /** Looks for jobs that are due. */
  wake(): void {
    if (this.#isStopped || !this.#hasBegun) return
    if (this.#pass) {
      this.#isPassRequested = true
      return
    }
    // Whoever woke it did not ask for the jobs of others.
    this.#deps.background(() => runAs(undefined, () => this.#search()))
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
    const { lane, store, settings, clock, owner, capacity, log } = this.#deps
    this.#cancelTimer?.()
    try {
      let now = clock.now()
      while (!this.#isStopped && this.#running.size < capacity) {
        now = clock.now()
        const claimId = randomUUID()
        const job = await store.claim(lane, { claimId, owner, leaseUntil: now + settings.lease_secs * 1000 }, now)
        if (!job) break
        this.#start(job, claimId)
      }
      if (this.#running.size < capacity) await this.#wait(now)
    } catch (error) {
      // The database is busy, or another daemon took a job of the same group at the same time.
      log.debug(`lane ${lane}: jobs could not be claimed`, { error: messageOf(error) })
      this.#wakeAfter(settings.retry_min_ms)
    }
  }
  async #wait(searchedAt: number): Promise<void> {
    const { lane, store, settings, clock } = this.#deps
    const dueAt = await store.nextDue(lane)
    if (dueAt === undefined) return
    // A job that was due waits for one of its group, whose end wakes this lane.
    if (dueAt > searchedAt) this.#wakeAfter(Math.min(Math.max(dueAt - clock.now(), 0), settings.poll_interval_ms))
  }
  #wakeAfter(ms: number): void {
    if (this.#isStopped) return
    this.#cancelTimer?.()
    this.#cancelTimer = this.#deps.clock.after(ms, () => this.wake())
  }

  #start(job: StoredJob, claimId: string): void {
    const controller = new AbortController()
    const ended = Promise.withResolvers<void>()
    this.#running.set(job.id, { job, claimId, controller, ended: ended.promise })
    this.#deps.background(async () => {
      try {
        await this.#run(job, claimId, controller.signal)
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

  async #run(stored: StoredJob, claimId: string, signal: AbortSignal): Promise<void> {
    const { worker, counted } = this.#deps
    let result: JobOutcome
    try {
      result = await runAs(actorOf(stored), () => worker.run({ ...this.#toJob(stored), signal }))
    } catch (error) {
      if (this.#isStopped && signal.aborted)
        return this.#settle(stored, claimId, { state: 'pending', failures: stored.failures })
      return this.#fail(stored, claimId, error)
    }
    const { statements = [] } = result
    if (result.outcome === 'done') {
      await this.#settle(stored, claimId, { state: 'done', failures: stored.failures }, statements)
    } else if (result.outcome === 'dead') {
      await this.#settle(
        stored,
        claimId,
        { state: 'dead', failures: stored.failures, error: result.reason },
        statements,
      )
    } else {
      const dueAt = this.#deps.clock.now() + result.afterMs
      await this.#settle(stored, claimId, { state: 'pending', failures: 0, dueAt }, statements)
    }
    counted(result.outcome)
  }

  async #fail(stored: StoredJob, claimId: string, cause: unknown): Promise<void> {
    const { settings, clock, log, worker, counted } = this.#deps
    const failures = stored.failures + 1
    const error = messageOf(cause)
    if (failures >= settings.max_failures) {
      log.error(`job ${stored.id} of lane ${stored.lane} is dead after ${failures} failures`, cause)
      const statements = (await worker.dead?.({ ...this.#toJob(stored), failures }, error)) ?? []
      await this.#settle(stored, claimId, { state: 'dead', failures, error }, statements)
      counted('dead')
      return
    }
    log.warn(`job ${stored.id} of lane ${stored.lane} failed and runs again: ${error}`)
    const dueAt = clock.now() + this.#pause(failures, cause)
    await this.#settle(stored, claimId, { state: 'pending', failures, dueAt, error })
    counted('failed')
  }

  /** Full jitter, doubled with each failure. */
  #pause(failures: number, cause: unknown): number {
    const { settings, random } = this.#deps
    const longest = Math.min(settings.retry_min_ms * 2 ** (failures - 1), settings.retry_max_ms)
    const asked = cause instanceof Refusal ? (cause.retryAfterSecs ?? 0) * 1000 : 0
    return Math.max(Math.ceil(random() * longest), asked)
  }

  async #settle(
    { lane, id }: StoredJob,
    claimId: string,
    release: Release,
    statements: readonly Statement[] = [],
  ): Promise<void> {
    const { store, clock, log } = this.#deps
    try {
      await store.commit([...statements, store.settle(lane, id, claimId, release, clock.now())])
    } catch (error) {
      const row = await store.find(lane, id)
      if (row?.state === 'running' && row.claim_id === claimId) throw error
      log.info(`job ${id} of lane ${lane} is ${row?.state ?? 'gone'} meanwhile; what this attempt did is not recorded`)
    }
  }

  /** Jobs that another daemon, or an earlier process on this home, left behind. */
  async #takeOver(owner: string | undefined): Promise<void> {
    const { lane, store, settings, clock, worker, log, counted } = this.#deps
    const now = clock.now()
    for (const stored of await store.lost(lane, now, owner)) {
      if (this.#running.has(stored.id)) continue
      const isDead = stored.losses + 1 >= settings.max_losses
      const error = `the daemon that worked on it stopped (${stored.losses + 1} times)`
      const last = { ...this.#toJob(stored), losses: stored.losses + 1 }
      try {
        const statements = isDead ? ((await worker.dead?.(last, error)) ?? []) : []
        await store.commit([...statements, store.lose(stored, isDead ? 'dead' : 'pending', error, now)])
        counted(isDead ? 'dead' : 'lost')
      } catch (failure) {
        log.debug(`job ${stored.id} of lane ${lane} was not taken over`, { error: messageOf(failure) })
      }
    }
  }

  /** Keeps the leases of what runs here, and takes over what daemons that died have left. */
  async renew(): Promise<void> {
    if (this.#isStopped || !this.#hasBegun) return
    const { lane, store, settings, clock, log } = this.#deps
    try {
      for (const { job, claimId, controller } of this.#running.values()) {
        const holds = await store.renew(lane, job.id, claimId, clock.now() + settings.lease_secs * 1000)
        if (!holds && this.#running.get(job.id)?.claimId === claimId)
          controller.abort(new Error('the job was cancelled, or another daemon has it'))
      }
      await this.#takeOver(undefined)
      this.wake()
    } catch (error) {
      log.warn(`the leases of lane ${lane} could not be renewed: ${messageOf(error)}`)
    }
  }

  #toJob({ lane, id, payload, failures, losses, created_at: createdAt }: StoredJob): Omit<Job, 'signal'> {
    return { lane, id, payload: readJson(payload), failures, losses, createdAt }
  }
}

/** What it leads to is known to come from what led to it. */
const actorOf = ({ lane, origin }: StoredJob): Actor | undefined =>
  origin === null ? undefined : { kind: 'queue', id: lane, origin }
