import type { Approval, Escalation } from './contract.ts'
import type { ApprovalView } from './schema.ts'

/** A larger payload is left out of a list. */
const LISTED_BYTES = 16_384

export function toView(
  approval: Approval,
  {
    whole = false,
    standing = false,
    holdsKey = true,
    asked = [],
  }: {
    readonly whole?: boolean
    readonly standing?: boolean
    /** Whether the caller has the API key. */
    readonly holdsKey?: boolean
    readonly asked?: readonly Escalation[]
  } = {},
): ApprovalView {
  const bytes = Buffer.byteLength(JSON.stringify(approval.payload) ?? 'null')
  return {
    id: approval.id,
    agent_id: approval.agentId,
    agent_name: approval.agentName,
    session_id: approval.sessionId,
    turn_id: approval.turnId,
    tool_name: approval.tool,
    action: approval.action,
    description: approval.description,
    action_summary: approval.summary,
    payload: whole || bytes <= LISTED_BYTES ? approval.payload : null,
    payload_bytes: bytes,
    action_hash: approval.actionHash,
    risk_level: approval.risk,
    requested_at: approval.requestedAt,
    created_at: approval.requestedAt,
    timeout_secs: approval.timeoutSecs,
    expires_at: approval.expiresAt,
    status: approval.state,
    decided_at: approval.decidedAt ?? null,
    decided_by: approval.decidedBy ?? null,
    intent: approval.intent,
    scopes: scopesOf(approval, holdsKey, standing),
    session_covers: standing ? (approval.standing?.covers ?? null) : null,
    scope: approval.scope ?? null,
    approvals_needed: approval.needed,
    needs_key: approval.lasting,
    first_approved_by: approval.firstBy ?? null,
    form: approval.form ? { ...approval.form, title: approval.form.title ?? null } : null,
    content: approval.content ?? null,
    reason: approval.reason ?? null,
    escalated_to: asked.flatMap(({ approvalId, channel, to }) => (approvalId === approval.id ? [{ channel, to }] : [])),
  }
}

/** In which the caller can approve it. */
function scopesOf({ lasting, standing }: Approval, holdsKey: boolean, mayStand: boolean): ApprovalView['scopes'] {
  if (lasting && !holdsKey) return []
  return mayStand && standing ? ['once', 'session'] : ['once']
}
