import type { RowProofs } from 'svc/internal'
import type { Logger } from 'svc/sdk'
import type { Approval } from './contract.ts'
import type { RevokedGrants } from './revoked/store.ts'
import type { GrantRow, RequestRow } from './schema.ts'

export type Proofs = Pick<RowProofs, 'of' | 'holds'>

/** Why a request ends whose row no daemon wrote as it is. */
export const UNPROVEN = 'its row was not written by a daemon on this database as it is'
const MAX_NAMED = 1_000

/** What was asked and answered. Not its times: later, it would only wait longer. */
const requestFields = (row: Omit<RequestRow, 'proof'>): readonly unknown[] => [
  'request',
  row.id,
  row.agent_id,
  row.agent_name,
  row.turn_id,
  row.session_id,
  row.call_id,
  row.tool_name,
  row.action,
  row.description,
  row.summary,
  row.payload,
  row.action_hash,
  row.risk,
  row.intent,
  row.standing_key,
  row.covers,
  row.needed,
  row.form,
  row.lasting,
  row.state,
  row.decided_at,
  row.decided_by,
  row.scope,
  row.credential,
  row.content,
  // Rows of an earlier version have none, and their proofs go on to hold.
  ...(row.reason === null ? [] : ['reason', row.reason]),
]
type FirstApproval = Pick<
  RequestRow,
  'id' | 'action_hash' | 'first_by' | 'first_person' | 'first_at' | 'first_in_own_chat' | 'first_credential'
>
const firstFields = (row: FirstApproval): readonly unknown[] => [
  'first',
  row.id,
  row.action_hash,
  row.first_by,
  row.first_person,
  row.first_at,
  row.first_in_own_chat,
  row.first_credential,
]
type ProvenGrant = Pick<
  GrantRow,
  | 'id'
  | 'agent_id'
  | 'session_id'
  | 'tool_name'
  | 'standing_key'
  | 'covers'
  | 'approval_id'
  | 'granted_at'
  | 'granted_by'
>
const grantFields = (row: ProvenGrant): readonly unknown[] => [
  'grant',
  row.id,
  row.agent_id,
  row.session_id,
  row.tool_name,
  row.standing_key,
  row.covers,
  row.approval_id,
  row.granted_at,
  row.granted_by,
]

/**
 * Codes of the rows by which tools run: who can write to the database only can neither answer a request, nor change what
 * a person is asked, nor add a standing approval.
 */
export class ApprovalProofs {
  readonly #proofs: Proofs
  readonly #log: Pick<Logger, 'error'>
  readonly #named = new Set<string>()
  readonly #revoked: Pick<RevokedGrants, 'find'> | undefined
  /** `revoked`: standing approvals that this home knows to be revoked. */
  constructor(proofs: Proofs, log: Pick<Logger, 'error'>, revoked?: Pick<RevokedGrants, 'find'>) {
    this.#proofs = proofs
    this.#revoked = revoked
    this.#log = log
  }

  ofNew(approval: Approval, payload: string, form: string | null): Promise<string> {
    return this.ofRequest(toPendingRow(approval, payload, form))
  }
  ofRequest(row: Omit<RequestRow, 'proof'>): Promise<string> {
    return this.#proofs.of(requestFields(row))
  }
  ofFirst(row: FirstApproval): Promise<string> {
    return this.#proofs.of(firstFields(row))
  }
  ofGrant(row: ProvenGrant): Promise<string> {
    return this.#proofs.of(grantFields(row))
  }

  /** The row as it counts: expired where no daemon wrote it, and without a first approval that no daemon wrote. */
  async checked(row: RequestRow): Promise<RequestRow> {
    if (!(await this.#proofs.holds(requestFields(row), row.proof))) {
      this.#name('approvals_request', row.id, 'counts as expired')
      return { ...row, state: 'expired', decided_by: UNPROVEN, decided_at: row.decided_at ?? row.requested_at }
    }
    if (row.first_person === null || (await this.#proofs.holds(firstFields(row), row.first_proof))) return row
    this.#name('approvals_request', row.id, 'counts without its first approval')
    return { ...row, first_by: null, first_person: null, first_at: null, first_credential: null, first_in_own_chat: 0 }
  }
  async holdsGrant(row: GrantRow): Promise<boolean> {
    const isProven = await this.#proofs.holds(grantFields(row), row.proof)
    const wasRevoked = row.revoked_at === null && (await this.#revoked?.find(row.id)) !== undefined
    if (isProven && !wasRevoked) return true
    this.#name('approvals_grant', row.id, 'permits nothing', wasRevoked ? 'it was revoked, and put back' : UNPROVEN)
    return false
  }

  #name(table: string, id: string, effect: string, why = UNPROVEN): void {
    if (this.#named.has(id) || this.#named.size >= MAX_NAMED) return
    this.#named.add(id)
    this.#log.error(`the row of ${table} with id ${JSON.stringify(id)} ${effect}: ${why}`)
  }
}

/** The row of a new request, for its proof. */
function toPendingRow(approval: Approval, payload: string, form: string | null): Omit<RequestRow, 'proof'> {
  return {
    id: approval.id,
    agent_id: approval.agentId,
    agent_name: approval.agentName,
    turn_id: approval.turnId,
    session_id: approval.sessionId,
    call_id: approval.callId,
    tool_name: approval.tool,
    action: approval.action,
    description: approval.description,
    summary: approval.summary,
    payload,
    action_hash: approval.actionHash,
    risk: approval.risk,
    state: 'pending',
    requested_at: approval.requestedAt,
    timeout_secs: approval.timeoutSecs,
    expires_at: approval.expiresAt,
    decided_at: null,
    decided_by: null,
    consumed_at: null,
    intent: approval.intent,
    standing_key: approval.standing?.key ?? null,
    covers: approval.standing?.covers ?? null,
    scope: null,
    needed: approval.needed,
    first_by: null,
    first_person: null,
    first_at: null,
    first_in_own_chat: 0,
    form,
    content: null,
    reason: null,
    lasting: approval.lasting ? 1 : 0,
    credential: null,
    first_credential: null,
    first_proof: null,
  }
}
