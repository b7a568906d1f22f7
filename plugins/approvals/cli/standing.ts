import * as v from 'valibot'
import { exits, Failure } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const StandingApproval = v.looseObject({
  id: v.string(),
  agent_name: v.optional(v.string(), ''),
  session_id: v.optional(v.string(), ''),
  tool_name: v.optional(v.string(), ''),
  covers: v.optional(v.string(), ''),
  granted_at: v.optional(v.string(), ''),
  granted_by: v.optional(v.string(), ''),
  uses: v.optional(v.number(), 0),
})
export type StandingApproval = v.InferOutput<typeof StandingApproval>
const StandingApprovalList = v.looseObject({ grants: v.array(StandingApproval) })

export function listStandingApprovals(client: DaemonClient): Promise<v.InferOutput<typeof StandingApprovalList>> {
  return client.call('GET', '/api/approvals/grants', StandingApprovalList)
}

/** A standing approval by its id or by how its id begins. Throws a `Failure` that names those that hold. */
export async function requireStandingApproval(client: DaemonClient, idPrefix: string): Promise<StandingApproval> {
  const { grants } = await listStandingApprovals(client)
  const found = idPrefix === '' ? [] : grants.filter(({ id }) => id.startsWith(idPrefix.toLowerCase()))
  if (found[0] && found.length === 1) return found[0]
  if (found.length > 1)
    throw new Failure(
      exits.usage,
      `"${idPrefix}" is the beginning of ${found.length} ids`,
      `give more of it: ${found.map(({ id }) => id).join(', ')}`,
    )
  throw new Failure(
    exits.notFound,
    `there is no standing approval "${idPrefix}"`,
    grants.length === 0 ? 'there are none' : `those in force: ${grants.map(({ id }) => id).join(', ')}`,
  )
}
