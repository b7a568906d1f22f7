import { ServerAway, untilAnswered } from 'svc/internal'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Journal } from '../../journal/contract.ts'

/** How long a message waits for the database to say whether it is written. */
const UNKNOWN_MS = 30_000

/**
 * Writes a new turn. Where the server broke off and did not say whether it has it, the same is written again: it cannot
 * be there twice. Throws when it is not there; `ServerAway` with `mayBeWritten` when that is still not known in the end.
 */
export async function writeTurn(
  {
    db,
    journal,
    leaving,
  }: {
    readonly db: Pick<PluginDatabase, 'batch'>
    readonly journal: Pick<Journal, 'find'>
    readonly leaving: AbortSignal
  },
  turnId: string,
  statements: readonly Statement[],
): Promise<void> {
  try {
    await db.batch(statements)
  } catch (unknown) {
    if (!(unknown instanceof ServerAway && unknown.mayBeWritten)) throw unknown
    const again = async (): Promise<void> => {
      try {
        await db.batch(statements)
      } catch (error) {
        if (error instanceof ServerAway || !(await journal.find(turnId))) throw error
      }
    }
    try {
      await untilAnswered(again, AbortSignal.any([leaving, AbortSignal.timeout(UNKNOWN_MS)]))
    } catch (error) {
      throw error instanceof ServerAway ? unknown : error
    }
  }
}
