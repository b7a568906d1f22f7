import type { PluginDatabase } from 'svc/sdk'
import type { Journal, Turn } from '../../journal/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import { LiveTurn } from './live-turn.ts'
import { readOptions } from './options.ts'
import { openCalls, outcomes } from './recall.ts'
import type { TurnRecord } from './record.ts'

const NOTE = '[Interrupted: the service stopped before this was answered.]'

export interface RecoveryDeps {
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly journal: Journal
  readonly sessions: Sessions
  readonly record: TurnRecord
}

/** Looks after the turns of an earlier process: those whose caller is gone are marked, the others are returned to go on. */
export async function recover(deps: RecoveryDeps): Promise<readonly LiveTurn[]> {
  const orphans = await deps.journal.orphans()
  const resumed: LiveTurn[] = []
  for (const turn of orphans) {
    if (turn.onCrash === 'interrupt' && turn.state !== 'waiting') await interrupt(deps, turn)
    else
      resumed.push(
        new LiveTurn({
          ...turn,
          options: readOptions(turn.options),
          resumed: true,
          resumable: true,
          waiting: turn.state === 'waiting',
        }),
      )
  }
  return resumed
}

async function interrupt({ db, journal, sessions, record }: RecoveryDeps, turn: Turn): Promise<void> {
  const calls = openCalls(await sessions.turn(turn.sessionId, turn.id))
  const known =
    calls.length === 0
      ? new Map()
      : await outcomes(
          (id) => journal.effects(id),
          turn.id,
          calls.map(({ id }) => id),
        )
  await db.batch([
    ...(calls.length === 0
      ? []
      : record.results(
          turn,
          calls.map((call) => ({ call, outcome: known.get(call.id) ?? { text: NOTE, failed: true } })),
        )),
    ...record.said(turn, { text: NOTE }, [], 'interrupted'),
    ...record.ended(turn, 'interrupted', 'the service stopped before it was answered'),
  ])
}
