import type { Hooks, Logger, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import { removeAbandoned } from './branch/branch.ts'
import { BranchStore } from './branch/store.ts'
import { SessionRemoving } from './contract.ts'
import type { SessionService } from './service.ts'
import type { SessionStore } from './store.ts'

/** Which sessions of an agent are old; 0 switches a rule off. */
export interface CleanupRules {
  readonly retentionDays: number
  /** The sessions with the newest messages stay. */
  readonly maxPerAgent: number
}

export interface CleanupDeps {
  readonly db: PluginDatabase
  readonly log: Pick<Logger, 'error'>
  readonly store: SessionStore
  readonly sessions: SessionService
  readonly agents: Agents
  readonly hooks: Hooks
}

/**
 * Removes the sessions of removed agents, those that the rules consider old, and what is left of branches that were cut
 * off. Keeps active sessions and those with an open turn. Returns the number of removed sessions.
 */
export async function cleanUp(
  { db, log, store, sessions, agents, hooks }: CleanupDeps,
  { retentionDays, maxPerAgent }: CleanupRules,
): Promise<number> {
  await removeAbandoned({
    store: new BranchStore(db, log),
    commit: (statements) => db.batch(statements),
    now: Date.now,
  })
  const activeIds = new Map((await agents.list()).map((agent) => [agent.id, agent.sessionId]))
  const before = retentionDays === 0 ? '' : new Date(Date.now() - retentionDays * 86_400_000).toISOString()
  const kept = new Map<string, number>()
  let removed = 0
  for (const row of await store.byActivity()) {
    const active = activeIds.get(row.agent_id)
    const rank = (kept.get(row.agent_id) ?? 0) + 1
    const old = row.active_at < before || (maxPerAgent > 0 && rank > maxPerAgent)
    if (active !== undefined && (active === row.id || !old)) {
      kept.set(row.agent_id, rank)
      continue
    }
    const { busy } = await hooks.apply(SessionRemoving, { sessionId: row.id, busy: false })
    if (busy) continue
    await sessions.remove({ id: row.id, agentId: row.agent_id })
    removed++
  }
  return removed
}
