import * as v from 'valibot'
import { TimeoutSecs } from './config.ts'
import type { Approval, ApprovalForm, FormContent, Grant } from './contract.ts'
import { JsonObject, readOwnJson } from 'svc/internal'

const State = v.picklist(['pending', 'approved', 'rejected', 'expired'])
const Scope = v.picklist(['once', 'session'])
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
    payload: v.optional(JsonObject, {}),
    session_id: v.optional(text(64), ''),
    timeout_secs: v.optional(TimeoutSecs),
    /** What whoever approves it fills in: a flat JSON Schema of primitives. */
    form: v.optional(v.object({ schema: v.record(v.string(), v.unknown()), title: v.optional(text(256)) })),
  }),
  v.check(({ action, tool_name: tool }) => action !== undefined || tool !== undefined, 'action: is needed'),
)

export const Opened = v.object({ id: v.string(), status: v.literal('pending'), expires_at: v.string() })
export const Decided = v.object({ id: v.string(), status: State, decided_at: v.nullable(v.string()) })
const readonlyArray = <T extends v.GenericSchema>(item: T) => v.pipe(v.array(item), v.readonly())
const FormValue = v.union([v.string(), v.number(), v.boolean(), readonlyArray(v.string())])
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
  /** What is requested, worded to follow "wants to". */
  intent: v.string(),
  /** The scopes in which the caller can approve it; none where that needs the API key and the caller has not got it. */
  scopes: v.array(Scope),
  /** The calls that an approval for the session covers. */
  session_covers: v.nullable(v.string()),
  /** What it was approved for. */
  scope: v.nullable(Scope),
  /** How many different people have to approve it. */
  approvals_needed: v.number(),
  /** Only the API key can approve it: it permits what other credentials must not cause themselves. */
  needs_key: v.boolean(),
  /** Who approved it first, where two people have to. */
  first_approved_by: v.nullable(v.string()),
  /** What whoever approves it fills in. */
  form: v.nullable(
    v.object({
      title: v.nullable(v.string()),
      /** As it was requested. */
      schema: v.record(v.string(), v.unknown()),
      /** The same, ready to be shown. */
      fields: readonlyArray(
        v.object({
          name: v.string(),
          kind: v.picklist(['text', 'number', 'integer', 'boolean', 'choice', 'choices']),
          title: v.string(),
          description: v.string(),
          required: v.boolean(),
          options: v.optional(readonlyArray(v.object({ value: v.string(), title: v.string() }))),
          format: v.optional(v.picklist(['email', 'uri', 'date', 'date-time'])),
          minimum: v.optional(v.number()),
          maximum: v.optional(v.number()),
          default: v.optional(FormValue),
        }),
      ),
    }),
  ),
  /** What was filled in. */
  content: v.nullable(v.record(v.string(), FormValue)),
  /** Why it was rejected, in the words of whoever did. */
  reason: v.nullable(v.string()),
  /** Chats that were asked as nobody had answered; of a pending one. */
  escalated_to: v.array(v.object({ channel: v.string(), to: v.string() })),
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
  intent: v.string(),
  standing_key: nullish,
  covers: nullish,
  scope: v.nullable(Scope),
  needed: v.pipe(v.unknown(), v.transform(Number), v.picklist([1, 2])),
  first_by: nullish,
  first_person: nullish,
  first_at: nullish,
  first_in_own_chat: v.pipe(v.unknown(), v.transform(Number)),
  form: nullish,
  content: nullish,
  /** Why it was rejected. */
  reason: nullish,
  lasting: v.pipe(v.unknown(), v.transform(Number)),
  credential: nullish,
  first_credential: nullish,
  /** That a daemon wrote this state of it; `null` of earlier versions. */
  proof: nullish,
  first_proof: nullish,
})
export const EscalationRow = v.object({
  id: v.string(),
  approval_id: v.string(),
  channel: v.string(),
  chat: v.string(),
})
export type EscalationRow = v.InferOutput<typeof EscalationRow>
export type RequestRow = v.InferOutput<typeof RequestRow>

/** What this plugin wrote itself. */
function readOwn<T>(json: string | null): T | undefined {
  return json === null ? undefined : (readOwnJson(json) as T)
}

/** What was answered beside yes or no, as it is stored. */
export function answerColumns(
  content: FormContent | undefined,
  reason: string | undefined,
): Pick<RequestRow, 'content' | 'reason'> {
  return { content: content === undefined ? null : JSON.stringify(content), reason: reason ?? null }
}

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
    intent: row.intent === '' ? `use ${row.action}` : row.intent,
    standing:
      row.standing_key === null || row.covers === null ? undefined : { key: row.standing_key, covers: row.covers },
    scope: row.scope ?? undefined,
    needed: row.needed,
    firstBy: row.first_by ?? undefined,
    lasting: row.lasting === 1,
    form: readOwn<ApprovalForm>(row.form),
    content: readOwn<FormContent>(row.content),
    reason: row.reason ?? undefined,
  }
}

/** A body is not needed: without one it is approved once, as ever. */
export const Answer = v.optional(
  v.object({
    scope: v.optional(Scope, 'once'),
    /** What is filled in, where the approval has a form. */
    content: v.optional(v.record(v.string(), v.unknown())),
  }),
  { scope: 'once' as const },
)

/** A body is not needed. */
export const Rejection = v.optional(
  v.object({
    reason: v.optional(v.pipe(v.string(), v.maxLength(1024), v.description('What the agent reads.'))),
  }),
  {},
)

export const GrantParams = ApprovalParams
export const GrantQuery = v.object({
  agent_id: v.optional(v.pipe(v.string(), v.uuid('Invalid agent ID'), v.toLowerCase())),
  session_id: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(64))),
})
const GrantView = v.object({
  id: v.string(),
  agent_id: v.string(),
  agent_name: v.string(),
  session_id: v.string(),
  tool_name: v.string(),
  covers: v.string(),
  approval_id: v.string(),
  granted_at: v.string(),
  granted_by: v.string(),
  uses: v.number(),
  last_used_at: v.nullable(v.string()),
  revoked_at: v.nullable(v.string()),
  revoked_by: v.nullable(v.string()),
})
export const GrantList = v.object({ grants: v.array(GrantView), total: v.number() })
export const Revoked = v.object({ id: v.string(), status: v.literal('revoked'), revoked_at: v.string() })

export const GrantRow = v.object({
  ...GrantView.entries,
  standing_key: v.string(),
  uses: v.pipe(v.unknown(), v.transform(Number), v.number()),
  proof: nullish,
})
export type GrantRow = v.InferOutput<typeof GrantRow>
export function toGrant(row: GrantRow): Grant {
  return {
    id: row.id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    sessionId: row.session_id,
    tool: row.tool_name,
    covers: row.covers,
    approvalId: row.approval_id,
    grantedAt: row.granted_at,
    grantedBy: row.granted_by,
    uses: row.uses,
    lastUsedAt: row.last_used_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    revokedBy: row.revoked_by ?? undefined,
  }
}
export function toGrantView(grant: Grant): v.InferOutput<typeof GrantView> {
  return {
    id: grant.id,
    agent_id: grant.agentId,
    agent_name: grant.agentName,
    session_id: grant.sessionId,
    tool_name: grant.tool,
    covers: grant.covers,
    approval_id: grant.approvalId,
    granted_at: grant.grantedAt,
    granted_by: grant.grantedBy,
    uses: grant.uses,
    last_used_at: grant.lastUsedAt ?? null,
    revoked_at: grant.revokedAt ?? null,
    revoked_by: grant.revokedBy ?? null,
  }
}
