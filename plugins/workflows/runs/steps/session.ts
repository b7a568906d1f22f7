import { stableId } from 'svc/internal'
import type { StepCall } from '../../contract.ts'

/** Each step of a run has a conversation of its own with its agent; the iterations of a loop share it. */
export const sessionOf = ({ runId, step }: Pick<StepCall, 'runId' | 'step'>, agentId: string): string =>
  stableId('workflow-session', runId, step.replace(/ \(iter \d+\)$/, ''), agentId)
