import type { PluginDatabase, Statement } from 'svc/sdk'
import { FAILED_TURNS_MARKED } from '../store.ts'
import type { UpkeepStore } from '../store.ts'
import { unknownFailure } from './failure.ts'
import type { RecoveryDeps } from './resume.ts'

export interface MarkFailedDeps extends RecoveryDeps {
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly upkeep: UpkeepStore
  /** Tools of a turn that ran, or may have, and that may have changed something. */
  readonly effectfulTools: (turnId: string) => Promise<readonly string[]>
}
const PAGE_SIZE = 200

/**
 * Earlier versions did not mark the messages of a failed turn, and gave them to the model with every later turn. Runs
 * until it is noted as done. A process that dies meanwhile leaves the rest to the next one.
 */
export async function markFailedTurns({
  db,
  upkeep,
  journal,
  sessions,
  record,
  effectfulTools,
}: MarkFailedDeps): Promise<void> {
  for (let after = ''; ;) {
    const turns = await journal.failed(after, PAGE_SIZE)
    const statements: Statement[] = []
    for (const turn of turns) {
      const [message] = await sessions.turn(turn.sessionId, turn.id)
      if (!message || message.failure || (await sessions.isHidden(turn.sessionId, turn.id))) continue
      statements.push(...record.failed(turn, turn.failure ?? unknownFailure(turn.error), await effectfulTools(turn.id)))
    }
    const last = turns.length < PAGE_SIZE
    if (last) statements.push(upkeep.done(FAILED_TURNS_MARKED, new Date().toISOString()))
    if (statements.length > 0) await db.batch(statements)
    if (last) return
    after = turns.at(-1)?.id ?? after
  }
}
