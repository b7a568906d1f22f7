import type { Statement } from 'svc/sdk'
import { OPEN } from './changes.ts'
import type { TaskChanges } from './changes.ts'
import { LANE } from './changes.ts'
import type { StoredTask } from './rows/row.ts'
import type { Queue } from '../queue/contract.ts'
import type { Limits } from './config.ts'
import type { TaskStore } from './rows/store.ts'

const DAY_MS = 86_400_000
/** Tasks that one search for ended claims changes in turn. */
const SWEEP_BATCH = 200

export interface ExpiryDeps {
  readonly store: TaskStore
  readonly changes: TaskChanges
  readonly limits: Limits
  readonly queue: Pick<Queue, 'find'>
}

/** What is not finished in time, or not at all because its agent is gone. */
export class Expiry {
  readonly #deps: ExpiryDeps
  constructor(deps: ExpiryDeps) {
    this.#deps = deps
  }

  /** Reopens tasks that were not finished in time, then deletes those that ended long ago. */
  async sweep(): Promise<void> {
    const { store, changes, limits } = this.#deps
    await this.reopenExpired()
    if (limits.retention_days === 0) return
    await store.commit(store.deleteEnded(changes.now(-limits.retention_days * DAY_MS)))
  }
  /** One that was reopened too often fails. */
  async reopenExpired(): Promise<void> {
    const { store, changes, limits } = this.#deps
    for (const task of await store.expired(changes.now(), SWEEP_BATCH)) {
      if (await this.#isWorkedOn(task)) continue
      const hasFailed = task.attempts >= limits.max_attempts
      const failed = { status: 'failed', result: 'nobody finished it in time', lease_until: null } as const
      await changes.apply(task, {
        set: hasFailed ? { ...failed, completed_at: changes.now() } : OPEN,
        event: 'changed',
        details: hasFailed ? 'failed: nobody finished it in time' : `is open again: ${task.claimed_by} took too long`,
        // Somebody cancelled the job that worked on it.
        ...(task.claim_id !== null && { wakeAt: 'never' as const }),
      })
    }
  }

  /** A turn goes on when the daemon does, however long that takes. */
  async #isWorkedOn({ id, claim_id: jobId }: StoredTask): Promise<boolean> {
    const { store, changes, limits, queue } = this.#deps
    if (jobId === null) return false
    const state = (await queue.find(LANE, jobId))?.state
    if (state !== 'pending' && state !== 'running') return false
    await store.renew(id, jobId, changes.now(limits.claim_ttl_secs * 1000))
    return true
  }

  /** Statements for the batch that removes an agent: what it worked on is open again, what waits for it has failed. */
  endOfAgent(agentId: string): readonly Statement[] {
    const { store, changes } = this.#deps
    return [store.failOf(agentId, changes.now()), store.releaseOf(agentId)]
  }
  /** The agent was stopped: others may take what it had, and what is for it waits until it runs again. */
  async release(agentId: string): Promise<void> {
    const { store, changes } = this.#deps
    for (const { id } of await store.list({ claimedBy: agentId, status: 'in_progress' }, SWEEP_BATCH, 0)) {
      const task = await store.find(id)
      if (task?.status !== 'in_progress' || task.claimed_by !== agentId) continue
      await changes.apply(task, { set: OPEN, event: 'changed', details: `is open again: ${agentId} was stopped` })
    }
  }
}
