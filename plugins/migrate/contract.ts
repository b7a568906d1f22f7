import { notify } from 'svc/sdk'

/** Data of another system came over, or some of it. What was made is on disk. */
export const MigrationEnded = notify<{
  readonly runId: string
  /** Such as `openclaw`. */
  readonly type: string
  readonly state: 'completed' | 'failed'
  /** Things that were made. */
  readonly imported: number
  /** Things that stay behind, each with a reason in the report. */
  readonly left: number
}>('migrate:ended')
