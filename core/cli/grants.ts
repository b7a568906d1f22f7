import * as v from 'valibot'
import type { DaemonClient } from '../net/daemon-client.ts'
import { exits, Failure } from './failure.ts'

const Grant = v.looseObject({
  id: v.string(),
  agent_name: v.optional(v.string(), ''),
  session_id: v.optional(v.string(), ''),
  tool_name: v.optional(v.string(), ''),
  covers: v.optional(v.string(), ''),
  granted_at: v.optional(v.string(), ''),
  granted_by: v.optional(v.string(), ''),
  uses: v.optional(v.number(), 0),
})
export type Grant = v.InferOutput<typeof Grant>
const GrantList = v.looseObject({ grants: v.array(Grant) })

export function listGrants(client: DaemonClient): Promise<v.InferOutput<typeof GrantList>> {
  return client.call('GET', '/api/approvals/grants', GrantList)
}

/** A standing approval by its id or by how its id begins. Throws a `Failure` that names those that hold. */
export async function requireGrant(client: DaemonClient, wanted: string): Promise<Grant> {
  const { grants } = await listGrants(client)
  const found = wanted === '' ? [] : grants.filter(({ id }) => id.startsWith(wanted.toLowerCase()))
  if (found[0] && found.length === 1) return found[0]
  if (found.length > 1)
    throw new Failure(
      exits.usage,
      `"${wanted}" is the beginning of ${found.length} ids`,
      `give more of it: ${found.map(({ id }) => id).join(', ')}`,
    )
  throw new Failure(
    exits.notFound,
    `there is no standing approval "${wanted}"`,
    grants.length === 0 ? 'none holds' : `those that hold: ${grants.map(({ id }) => id).join(', ')}`,
  )
}
