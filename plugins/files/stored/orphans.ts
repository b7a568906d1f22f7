import type { Logger } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { StoredFiles } from './store.ts'

export interface SweepOrphansDeps {
  readonly agents: Agents
  readonly audit: Pick<Audit, 'entry'>
  readonly rows: StoredFiles
  readonly log: Logger
  /** Whether this daemon is the one of those on the database that does it. */
  readonly isChosen: () => Promise<boolean>
}

/** Removes files whose agent is gone: its daemon died after it was removed and before they were. How many. */
export async function sweepOrphans({ agents, audit, rows, log, isChosen }: SweepOrphansDeps): Promise<number> {
  if (!(await isChosen())) return 0
  let total = 0
  for (const agentId of await rows.agents()) {
    if (await agents.find(agentId)) continue
    const count = (await rows.list(agentId)).length
    const details = `${count} files of an agent that is gone were removed`
    await rows.removeAll(agentId, [audit.entry({ event: 'file_access', agentId, details })])
    log.info(`agent ${agentId}: ${details}`)
    total += count
  }
  return total
}
