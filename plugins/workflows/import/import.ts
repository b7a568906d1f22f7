import { Refusal } from 'svc/sdk'
import type { Workflow } from '../definition.ts'
import type { WorkflowDefinitions } from '../definitions/service.ts'
import type { NewWorkflow } from '../definitions/schema.ts'
import { convertWorkflows } from './convert.ts'
import { parseText } from './parse-text.ts'
import type { Format } from './parse-text.ts'

export interface ImportResult {
  readonly workflow: Workflow | undefined
  readonly name: string
  readonly steps: number
  readonly warnings: readonly string[]
}

/**
 * Creates the workflows of a text; `isCheck` creates nothing. All are checked before the first one is created. Throws
 * `invalid_request`.
 */
export async function importWorkflows(
  definitions: WorkflowDefinitions,
  { text, format, isCheck }: { readonly text: string; readonly format?: Format | undefined; readonly isCheck: boolean },
): Promise<readonly ImportResult[]> {
  const imported = convertWorkflows(parseText(text, format))
  for (const { body } of imported) await checkNamed(definitions, body, imported.length > 1)
  const results: ImportResult[] = []
  for (const { body, warnings } of imported) {
    const workflow = isCheck ? undefined : await definitions.create(body)
    results.push({ workflow, name: body.name ?? 'unnamed', steps: body.steps.length, warnings })
  }
  return results
}

/**
 * Makes one workflow of a definition under this id; nothing when there is one. `agents` are names here by the names and
 * ids of the definition. Throws `invalid_request`.
 */
export async function importWorkflow(
  definitions: WorkflowDefinitions,
  definition: unknown,
  id: string,
  { isCheck, agents }: { readonly isCheck: boolean; readonly agents: ReadonlyMap<string, string> },
): Promise<{ readonly made: boolean; readonly warnings: readonly string[] }> {
  const [imported, other] = convertWorkflows(definition)
  if (!imported || other) throw new Refusal('invalid_request', 'expected one workflow')
  const { warnings } = imported
  const body = renameAgents(imported.body, agents)
  if (await definitions.find(id)) return { made: false, warnings }
  if (isCheck) await definitions.check(body, new Set(agents.values()))
  else await definitions.create(body, { id })
  return { made: true, warnings }
}

function renameAgents(body: NewWorkflow, names: ReadonlyMap<string, string>): NewWorkflow {
  const steps = body.steps.map((step) => {
    const { agent, agent_id: id = agent?.id, agent_name: name = agent?.name, ...others } = step
    const renamed = names.get(id ?? '') ?? names.get(name ?? '')
    return renamed === undefined ? step : { ...others, agent_name: renamed }
  })
  return { ...body, steps }
}

async function checkNamed(
  definitions: WorkflowDefinitions,
  body: Parameters<WorkflowDefinitions['check']>[0],
  isOneOfMany: boolean,
): Promise<void> {
  try {
    await definitions.check(body)
  } catch (error) {
    if (!isOneOfMany || !(error instanceof Refusal)) throw error
    const message = `workflow "${body.name ?? 'unnamed'}": ${error.message}`
    throw new Refusal(error.code, message, { details: error.details, cause: error })
  }
}
