import { randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Grant } from './contract.ts'
import { OPERATOR } from './person.ts'
import { toApproval } from './schema.ts'
import type { RequestRow } from './schema.ts'
import type { ApprovalServiceDeps } from './service.ts'

/** The statement for a standing approval. Throws `forbidden` where the request can be approved once only. */
export async function newGrant(
  { store, limits }: Pick<ApprovalServiceDeps, 'store' | 'limits'>,
  row: RequestRow,
  by: string,
  at: string,
): Promise<Statement> {
  const { standing } = toApproval(row)
  // Anyone else who may answer can be removed, and nothing of theirs may stay in force.
  if (by !== OPERATOR) throw new Refusal('forbidden', 'Only the operator can approve for a whole session')
  if (!limits.sessionScope)
    throw new Refusal('forbidden', 'Approvals for a session are switched off (plugins.approvals.session_scope)')
  if (!standing || row.session_id === '')
    throw new Refusal('forbidden', 'This can be approved once only: what comes next may do harm of another kind')
  if ((await store.countGrants(row.agent_id, row.session_id)) >= limits.grantsPerSession)
    throw new Refusal(
      'conflict',
      `This session has ${limits.grantsPerSession} standing approvals already ` +
        '(plugins.approvals.grants_per_session); revoke one first',
    )
  const grant: Grant = {
    id: randomUUID(),
    agentId: row.agent_id,
    agentName: row.agent_name,
    sessionId: row.session_id,
    tool: row.tool_name,
    covers: standing.covers,
    approvalId: row.id,
    grantedAt: at,
    grantedBy: by,
    uses: 0,
    lastUsedAt: undefined,
    revokedAt: undefined,
    revokedBy: undefined,
  }
  return store.insertGrant(grant, standing.key, limits.grantsPerSession)
}
