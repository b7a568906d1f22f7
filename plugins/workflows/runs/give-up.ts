import { wallClock } from 'svc/internal'
import type { Statement } from 'svc/sdk'
import type { LazyRuns, RunsContext } from './index.ts'
import { RunStore } from './store.ts'

/** Ends a run whose job is dead. Whoever waits for it is told once that is on disk. */
export function giveUp(
  { db, log, run, services }: Pick<RunsContext, 'db' | 'log' | 'run' | 'services'>,
  runs: LazyRuns,
  id: string,
  reason: string,
  failed: () => void,
): readonly Statement[] {
  const store = new RunStore(db, log)
  const now = wallClock.now()
  const written = (changes: number): void => {
    if (changes === 0) return
    failed()
    run(async () => (await runs()).service.gaveUp(id)).catch((error: unknown) =>
      log.error(`run ${id} failed, and who waits for it could not be told`, error),
    )
  }
  const entry = services.audit.entry({ event: 'workflow_failed', details: `run ${id} failed: ${reason}` })
  return [{ ...store.fail(id, reason, now), written }, store.cancelAttempts(id, now), entry]
}
