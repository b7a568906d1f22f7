import * as v from 'valibot'
import { clientArgs, exits, Failure, findNearest, suggest } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const Item = v.looseObject({
  id: v.string(),
  name: v.string(),
  description: v.string(),
  steps: v.number(),
  created_at: v.string(),
  file: v.nullable(v.string()),
  problem: v.nullable(v.string()),
})
export type Item = v.InferOutput<typeof Item>
export const STATES = ['Pending', 'Running', 'Completed', 'Failed', 'Paused', 'Cancelled'] as const
export const RunItem = v.looseObject({
  id: v.string(),
  workflow_name: v.string(),
  state: v.string(),
  steps_completed: v.number(),
  started_at: v.nullable(v.string()),
  cause: v.string(),
  error: v.nullable(v.string()),
})
const Files = v.object({
  files: v.array(v.object({ file: v.string(), workflow_id: v.string(), problem: v.nullable(v.string()) })),
})

export const listWorkflows = (client: DaemonClient): Promise<readonly Item[]> =>
  client.call('GET', '/api/workflows', v.array(Item))
export const listFiles = async (client: DaemonClient) => (await client.call('GET', '/api/workflows/files', Files)).files

/** A workflow by id or by its name, when no other has it. Throws `Failure`. */
export async function requireWorkflow(client: DaemonClient, idOrName: string): Promise<Item> {
  const all = await listWorkflows(client)
  const found = all.filter(({ id, name }) => id === idOrName || name === idOrName)
  const [first, second] = found
  if (second)
    throw new Failure(
      exits.usage,
      `${found.length} workflows have the name "${idOrName}"`,
      `use an id: ${found.map(({ id }) => id).join(', ')}`,
    )
  if (first) return first
  const nearest = findNearest(
    idOrName,
    all.map(({ name }) => name),
  )
  throw new Failure(exits.notFound, `there is no workflow "${idOrName}"${suggest(nearest)}`)
}

/** Arguments of the commands for one workflow. */
export const workflowArgs = {
  workflow: { type: 'positional', required: true, description: 'Name or id of the workflow' },
  ...clientArgs,
} as const
