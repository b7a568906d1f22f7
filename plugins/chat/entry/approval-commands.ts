import { parseAssignments } from 'svc/internal'
import type { Principal } from 'svc/sdk'
import type { Approval, Approvals } from '../../approvals/contract.ts'

const NONE = 'Nothing of this agent waits for approval.'
const MISSING = 'Approvals are not available: their plugin is not loaded.'

/** What waits of this agent, each with the id that answers it. */
export async function listApprovals(approvals: Approvals | undefined, agentId: string): Promise<string> {
  if (!approvals) return MISSING
  const waiting = await pending(approvals, agentId)
  return waiting.length === 0
    ? NONE
    : waiting
        .map((each) => `${each.summary} (${each.risk} risk)\n/approve ${each.id}${fieldsOf(each)}\n/reject ${each.id}`)
        .join('\n\n')
}
/**
 * Answers one request of this agent, named by its id or the beginning of it; behind it `name=value` fills in a form.
 * Throws what the service throws.
 */
export async function answerApproval(
  approvals: Approvals | undefined,
  { agentId, principal }: { readonly agentId: string; readonly principal: Principal },
  verb: 'approve' | 'reject',
  argument: string,
): Promise<string> {
  if (!approvals) return MISSING
  const [id = '', rest = ''] = argument.split(/\s+(.*)/s, 2)
  const waiting = await pending(approvals, agentId)
  const found = id === '' ? [] : waiting.filter((each) => each.id.startsWith(id.toLowerCase()))
  const [one] = found
  if (found.length > 1) return `${found.length} ids begin with ${id}; give more of it.`
  if (!one)
    return id === ''
      ? `Say which: /${verb} <id>\n\n${await listApprovals(approvals, agentId)}`
      : `No approval ${id.slice(0, 50)} of this agent is pending. /approvals lists those that are.`
  const content = one.form && parseAssignments(rest)
  const { state, summary } = await (verb === 'approve'
    ? approvals.approve(one.id, principal, 'once', content)
    : approvals.reject(one.id, principal, rest))
  return `${state === 'approved' ? 'Approved, once' : 'Rejected'}: ${summary}`
}

const fieldsOf = ({ form }: Approval): string => (form?.fields ?? []).map(({ name }) => ` ${name}=…`).join('')

async function pending(approvals: Approvals, agentId: string): Promise<readonly Approval[]> {
  return (await approvals.list(agentId)).filter(({ state }) => state === 'pending')
}
