import { omitUndefined } from 'svc/sdk'
import type { Step, Workflow } from '../definition.ts'
import type { StoredItem, WorkflowItem, WorkflowView } from './schema.ts'

export function toItem(
  { step_count: steps, run_by: _r, ...row }: StoredItem,
  problem: string | undefined,
): WorkflowItem {
  return { ...row, steps, problem: problem ?? null }
}
/** As it was created: what this answers can be sent back. */
export function toView(workflow: Workflow): WorkflowView {
  return {
    id: workflow.id,
    name: workflow.name,
    description: workflow.description,
    steps: workflow.steps.map(toStepView),
    total_timeout_secs: workflow.totalTimeoutSecs,
    run_by: [...workflow.runBy],
    revision: workflow.revision,
    file: workflow.file ?? null,
    created_at: workflow.createdAt,
    updated_at: workflow.updatedAt,
  }
}
export function toStepView(step: Step): WorkflowView['steps'][number] {
  const { agent } = step
  return omitUndefined({
    name: step.name,
    type: step.type,
    agent_id: agent && 'id' in agent ? agent.id : undefined,
    agent_name: agent && 'name' in agent ? agent.name : undefined,
    prompt: step.prompt,
    with: Object.keys(step.with).length === 0 ? undefined : { ...step.with },
    mode: step.mode,
    timeout_secs: step.timeoutSecs,
    error_mode: step.errorMode,
    max_retries: step.maxRetries,
    retry_delay_secs: step.retryDelaySecs,
    output_var: step.outputVar,
    condition: step.condition,
    max_iterations: step.maxIterations,
    until: step.until,
  })
}

/** What people write: without ids and times. */
export function contentOf({
  name,
  description,
  steps,
  totalTimeoutSecs,
  runBy,
}: Pick<Workflow, 'name' | 'description' | 'steps' | 'totalTimeoutSecs' | 'runBy'>): Readonly<Record<string, unknown>> {
  return { name, description, steps: steps.map(toStepView), total_timeout_secs: totalTimeoutSecs, run_by: runBy }
}
