import type { Statement } from 'svc/sdk'
import type { OwnedCount } from '../cluster/contract.ts'
import type { JobState, NewJob } from './contract.ts'
import type { LaneCount, StoredJob, Throughput } from './schema.ts'

/** How a claimed job goes on. */
export interface Release {
  readonly state: JobState
  /** When one that waits again is due, in milliseconds from now; at once when absent. */
  readonly afterMs?: number
  readonly failures: number
  readonly error?: string
}

/** Where the jobs lie and who may work on which. Every daemon on a database must use the same driver. */
export interface QueueDriver {
  /** Makes a lane ready to be worked. */
  openLane(lane: string): Promise<void>
  /** `added` is called when the statement is committed and there was no such job before. */
  insert(job: NewJob, added: () => void): Statement
  find(lane: string, id: string): Promise<StoredJob | undefined>
  /** Those that are due last first. */
  list(lane: string, state: JobState, limit: number, offset: number): Promise<readonly StoredJob[]>

  /** Claims the job of a lane that is due first and whose group has none that runs. */
  claim(lane: string): Promise<StoredJob | undefined>
  /** Renews the leases of claimed jobs of a lane; answers the ids of those whose claims still hold. */
  renew(lane: string, held: readonly StoredJob[]): Promise<ReadonlySet<string>>
  /** Makes its batch fail when the claim does not hold any more. */
  settle(job: StoredJob, release: Release): Statement
  /**
   * Puts back what daemons that died have left, which counts as a loss. `isFirst`: also what an earlier process on this
   * home had, where that is known.
   */
  takeOver(isFirst: boolean): Promise<void>

  /** Ends a job that waits or runs; whether there was one. */
  cancel(lane: string, id: string): Promise<boolean>
  /** As `Queue.hurry`. */
  hurry(lane: string, id: string): Promise<boolean>
  /** Runs a dead or cancelled job again. */
  retry(lane: string, id: string): Statement

  /**
   * Milliseconds until the first job of a lane is due that was not due `searchedMsAgo` milliseconds ago; `undefined`
   * when there is none.
   */
  nextDue(lane: string, searchedMsAgo: number): Promise<number | undefined>
  /** Jobs that wait, of all lanes. */
  pending(agentId?: string): Promise<number>
  /** Jobs that run, by the home that has them; those that are not known of yet are missing. */
  owned(): Promise<readonly OwnedCount[]>
  counts(): Promise<readonly LaneCount[]>
  throughput(lane: string): Promise<Throughput>
  /** Deletes jobs that ended long ago. */
  deleteOld(): Promise<void>
  /** Takes the jobs over that the other driver left on this database; whether none is left there. */
  carryOver(): Promise<boolean>
  commit(statements: readonly Statement[]): Promise<unknown>
  close(): Promise<void>
}

/** A worker lost a job of a lane: its process died, or its lease ended. */
export type Lost = (lane: string) => void
