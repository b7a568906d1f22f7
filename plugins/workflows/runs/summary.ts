import type { RunSummary } from '../contract.ts'
import type { RunListRow } from './schema.ts'

export function toSummary(row: RunListRow): RunSummary {
  return {
    id: row.id,
    workflowId: row.workflow_id,
    state: row.state,
    output: row.output ?? undefined,
    error: row.error ?? undefined,
  }
}
