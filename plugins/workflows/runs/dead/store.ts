import type { PluginDatabase, Statement } from 'svc/sdk'

/** Ends a run whose job is dead; changes nothing when it has ended. */
export function failRun(db: Pick<PluginDatabase, 'sql'>, id: string, error: string, now: number): Statement {
  return db.sql`UPDATE workflows_run
    SET state = 'Failed', error = ${error}, completed_at = ${now}, revision = revision + 1, epoch = epoch + 1
    WHERE id = ${id} AND state IN ('Pending', 'Running', 'Paused')`
}
