import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Journal } from '../../journal/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import { unknownFailure } from './failure.ts'
import type { TurnRecord } from './record.ts'
import type { UpkeepStore } from '../store.ts'

export interface MarkFailedDeps {
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly upkeep: UpkeepStore
  readonly journal: Pick<Journal, 'failed'>
  readonly sessions: Pick<Sessions, 'turn' | 'isHidden'>
  readonly record: Pick<TurnRecord, 'failed'>
  readonly effects: (turnId: string) => Promise<readonly string[]>
}

const NAME = 'failed-turns-are-marked'
const PAGE = 200

/**
 * Earlier versions did not mark the messages of a failed turn, and gave them to the model with every later turn. Runs
 * once in a home. A process that dies meanwhile leaves the rest to the next one.
 */
export async function markFailed({ db, upkeep, journal, sessions, record, effects }: MarkFailedDeps): Promise<void> {
  if (await upkeep.isDone(NAME)) return
  for (let after = ''; ;) {
    const turns = await journal.failed(after, PAGE)
    const statements: Statement[] = []
    for (const turn of turns) {
      const [message] = await sessions.turn(turn.sessionId, turn.id)
      if (!message || message.failure || (await sessions.isHidden(turn.sessionId, turn.id))) continue
      statements.push(...record.failed(turn, turn.failure ?? unknownFailure(turn.error), await effects(turn.id)))
    }
    const last = turns.length < PAGE
    if (last) statements.push(upkeep.done(NAME, new Date().toISOString()))
    if (statements.length > 0) await db.batch(statements)
    if (last) return
    after = turns.at(-1)?.id ?? after
  }
}
