import { isObject, parse, Refusal } from 'svc/sdk'
import { NewWorkflow } from '../definitions/schema.ts'
import { convertStep } from './convert-step.ts'
import { sortSteps } from './sort-steps.ts'

export interface Imported {
  readonly body: NewWorkflow
  /** What was left out or means something a little different here. */
  readonly warnings: readonly string[]
}
type Fields = Readonly<Record<string, unknown>>

const MAX_WORKFLOWS = 500
const KEPT: ReadonlySet<string> = new Set(['name', 'description', 'steps', 'total_timeout_secs', 'run_by'])
/** Made anew here, or of a drawing. */
const DROPPED: ReadonlySet<string> = new Set(['id', 'created_at', 'updated_at', 'revision', 'file', 'layout'])

/**
 * Workflows of this or a compatible service: one, a list, or either under `workflow` or `workflows`. Throws
 * `invalid_request` for what has no counterpart here.
 */
export function convertWorkflows(value: unknown): readonly Imported[] {
  const inner = isObject(value) ? (value.workflows ?? value.workflow ?? value) : value
  const list: readonly unknown[] = Array.isArray(inner) ? inner : [inner]
  if (list.length === 0 || list.length > MAX_WORKFLOWS)
    throw new Refusal('invalid_request', `expected 1 to ${MAX_WORKFLOWS} workflows, and there are ${list.length}`)
  return list.map((one, index) => {
    try {
      return convertWorkflow(one)
    } catch (error) {
      if (list.length === 1 || !(error instanceof Refusal)) throw error
      throw new Refusal(error.code, `workflow ${index + 1}: ${error.message}`, { details: error.details, cause: error })
    }
  })
}

function convertWorkflow(value: unknown): Imported {
  if (!isObject(value)) throw new Refusal('invalid_request', 'expected a workflow with a name and steps')
  const warnings: string[] = []
  const body: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(value)) {
    if (KEPT.has(key)) body[key] = field
    else if (!DROPPED.has(key)) warnings.push(`${key} is left out`)
  }
  if (Array.isArray(body.steps)) {
    const steps = sortSteps(body.steps.filter(isObject), warnings)
    if (steps.length === body.steps.length) body.steps = renameDoubles(steps.map((step) => convertStep(step, warnings)))
  }
  return { body: parse(NewWorkflow, body, 'workflow'), warnings }
}

/** Names need not differ elsewhere. */
function renameDoubles(steps: readonly Fields[]): readonly Fields[] {
  const taken = new Set<unknown>()
  return steps.map((step) => {
    if (typeof step.name !== 'string') return step
    let name = step.name
    for (let count = 2; taken.has(name); count++) name = `${step.name}-${count}`
    taken.add(name)
    return { ...step, name }
  })
}
