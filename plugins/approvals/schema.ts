import * as v from 'valibot'
import { TimeoutSecs } from './config.ts'
import type { Approval } from './contract.ts'
import { readOwnJson } from 'svc/sdk'

const State = v.picklist(['pending', 'approved', 'rejected', 'expired'])
const Risk = v.picklist(['low', 'medium', 'high', 'critical'])

export const ApprovalParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid approval ID'), v.toLowerCase()) })
export const ListQuery = v.object({
  /** Of those decided; the pending ones are all shown. */
  limit: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\d{1,3}$/, 'must be 1 to 500'),
      v.check((text) => Number(text) >= 1 && Number(text) <= 500, 'must be 1 to 500'),
    ),
  ),
  agent_id: v.optional(v.pipe(v.string(), v.uuid('Invalid agent ID'), v.toLowerCase())),
  status: v.optional(State),
})

const text = (chars: number) =>
  v.pipe(
    v.string(),
    v.maxLength(chars),
    v.check((value) => value.isWellFormed() && !value.includes('\0'), 'must be well-formed Unicode without NUL'),
  )
const name = (chars: number) => v.pipe(text(chars), v.minLength(1))
/** `action` is the interface's name for it, `tool_name` that of existing clients; one of them is needed. */
export const NewApproval = v.pipe(
  v.object({
    agent_id: v.pipe(v.string(), v.uuid('Invalid agent ID'), v.toLowerCase()),
    action: v.optional(name(512)),
    tool_name: v.optional(name(64)),
    description: v.optional(text(1024), ''),
    action_summary: v.optional(text(512)),
    payload: v.optional(
      v.pipe(
        v.unknown(),
        v.check((value) => !Array.isArray(value), 'must be an object'),
        v.record(v.string(), v.unknown()),
      ),
      {},
    ),
    session_id: v.optional(text(64), ''),
    timeout_secs: v.optional(TimeoutSecs),
  }),
  v.check(({ action, tool_name: tool }) => action !== undefined || tool !== undefined, 'action: is needed'),
)

export const Opened = v.object({ id: v.string(), status: v.literal('pending'), expires_at: v.string() })
export const Decided = v.object({ id: v.string(), status: State, decided_at: v.nullable(v.string()) })
export const ApprovalView = v.object({
  id: v.string(),
  agent_id: v.string(),
  agent_name: v.string(),
  session_id: v.string(),
  turn_id: v.string(),
  tool_name: v.string(),
  action: v.string(),
  description: v.string(),
  action_summary: v.string(),
  /** `null` in a list when it is large: read the approval alone. */
  payload: v.unknown(),
  payload_bytes: v.number(),
  action_hash: v.string(),
  risk_level: Risk,
  requested_at: v.string(),
  created_at: v.string(),
  timeout_secs: v.number(),
  expires_at: v.string(),
  status: State,
  decided_at: v.nullable(v.string()),
  decided_by: v.nullable(v.string()),
})
export type ApprovalView = v.InferOutput<typeof ApprovalView>
export const ApprovalList = v.object({ approvals: v.array(ApprovalView), total: v.number() })

const nullish = v.nullable(v.string())
export const RequestRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  agent_name: v.string(),
  turn_id: v.string(),
  session_id: v.string(),
  call_id: v.string(),
  tool_name: v.string(),
  action: v.string(),
  description: v.string(),
  summary: v.string(),
  payload: v.string(),
  action_hash: v.string(),
  risk: Risk,
  state: State,
  requested_at: v.string(),
  timeout_secs: v.number(),
  expires_at: v.string(),
  decided_at: nullish,
  decided_by: nullish,
  consumed_at: nullish,
})
export type RequestRow = v.InferOutput<typeof RequestRow>

export function toApproval(row: RequestRow): Approval {
  return {
    id: row.id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    turnId: row.turn_id,
    sessionId: row.session_id,
    callId: row.call_id,
    tool: row.tool_name,
    action: row.action,
    description: row.description,
    summary: row.summary,
    payload: readOwnJson(row.payload),
    actionHash: row.action_hash,
    risk: row.risk,
    state: row.state,
    requestedAt: row.requested_at,
    timeoutSecs: row.timeout_secs,
    expiresAt: row.expires_at,
    decidedAt: row.decided_at ?? undefined,
    decidedBy: row.decided_by ?? undefined,
  }
}

const LISTED_BYTES = 16_384
export function toView(approval: Approval, whole = false): ApprovalView {
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
  }
}
