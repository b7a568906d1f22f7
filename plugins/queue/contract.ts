import { defineService } from 'svc/sdk'
import type { Dispose, Statement } from 'svc/sdk'

/** Work to be done once, whatever happens to the process. */
export interface NewJob {
  /** Which worker does it, such as `schedule`. */
  readonly lane: string
  /** Unique in its lane, and the same whenever the same work is asked for: the second one is not added. */
  readonly id: string
  /** What the worker needs to know. Anything that JSON can hold. */
  readonly payload: unknown
  /** Jobs of one group run one after the other, in the order in which they are due. */
  readonly group?: string
  /** The agent that the work is for, counted against `plugins.queue.max_depth_per_agent`. */
  readonly agentId?: string
  /** When it is due, in milliseconds since 1970; at once when absent. */
  readonly dueAt?: number
}

/** A job in the hands of a worker. */
export interface Job {
  readonly lane: string
  readonly id: string
  readonly payload: unknown
  /** Failures so far; 0 at first. */
  readonly failures: number
  /** Times a worker lost it: the process died, or its lease ended. What it did by then may have had its effect. */
  readonly losses: number
  /** When it was added, in milliseconds since 1970. */
  readonly createdAt: number
  /** Aborts when the job is cancelled, its lease is lost, or the worker is being removed. */
  readonly signal: AbortSignal
}

/**
 * How a call of a worker ended. `statements` are committed together with it, and not at all when another worker has
 * the job meanwhile.
 * - `done`: it is not run again.
 * - `postponed`: it runs again after a time, which is no failure.
 * - `dead`: it cannot be done.
 */
export type JobOutcome =
  | { readonly outcome: 'done'; readonly statements?: readonly Statement[] }
  | { readonly outcome: 'postponed'; readonly afterMs: number; readonly statements?: readonly Statement[] }
  | { readonly outcome: 'dead'; readonly reason: string; readonly statements?: readonly Statement[] }

export interface Worker {
  /**
   * Does a job. A rejection is a failure: the job runs again after a pause, not before `retryAfterSecs` of a
   * `Refusal`. A rejection while the worker is being removed is none: the next start goes on.
   */
  run(job: Job): Promise<JobOutcome>
  /** The last failure allowed, or the last loss: statements that are committed with the end of the job. */
  dead?(job: Omit<Job, 'signal'>, reason: string): readonly Statement[] | Promise<readonly Statement[]>
}

export type JobState = 'pending' | 'running' | 'done' | 'dead' | 'cancelled'

/** A job as it lies in the database. */
export interface JobRow {
  readonly lane: string
  readonly id: string
  readonly state: JobState
  readonly group: string | undefined
  readonly agentId: string | undefined
  readonly failures: number
  readonly losses: number
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly dueAt: number
  readonly settledAt: number | undefined
  /** Why it is dead, or failed last. */
  readonly error: string | undefined
}

export interface Queue {
  /**
   * For the batch that causes the work, so that neither is there without the other. The worker is woken by the commit.
   */
  add(job: NewJob): Statement
  /**
   * Throws `rate_limit` when the queue takes no more, by its depth or by that of the agent. `planned`: jobs that are to
   * be added in the same batch before this one.
   */
  admit(agentId?: string, planned?: { readonly all: number; readonly ofAgent: number }): Promise<void>
  /** Does the jobs of a lane until it is disposed, which settles when none runs any more. One worker for each lane. */
  work(lane: string, worker: Worker): Dispose
  /** Ends a job that waits or runs; its signal aborts. Changes nothing when it has ended. */
  cancel(lane: string, id: string): Promise<boolean>
  /**
   * Makes a waiting job due now, and one that runs due as soon as it is postponed or fails: nothing that happens while
   * a worker decides to wait is missed. Whether there was one.
   */
  hurry(lane: string, id: string): Promise<boolean>
  find(lane: string, id: string): Promise<JobRow | undefined>
}
export const Queue = defineService<Queue>()('queue')
