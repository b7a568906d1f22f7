import { defineService, notify } from 'svc/sdk'

export type ApprovalState = 'pending' | 'approved' | 'rejected' | 'expired'
export type RiskLevel = 'low' | 'medium' | 'high' | 'critical'

/** An action that waits for a person, or waited. Answered once; the answer is for exactly this action. */
export interface Approval {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  /** Empty when it was asked for over the API. */
  readonly turnId: string
  readonly sessionId: string
  readonly callId: string
  readonly tool: string
  /** What the action is called: the tool, unless it was asked for over the API under another name. */
  readonly action: string
  readonly description: string
  /** One line for a person: what will be done. */
  readonly summary: string
  /** Exactly what will be done. */
  readonly payload: unknown
  /** SHA-256 of the tool and its arguments with sorted keys, in hex. */
  readonly actionHash: string
  readonly risk: RiskLevel
  readonly state: ApprovalState
  /** ISO 8601 UTC. */
  readonly requestedAt: string
  readonly timeoutSecs: number
  /** When it counts as rejected. */
  readonly expiresAt: string
  readonly decidedAt: string | undefined
  /** `operator`, `timeout`, or why nobody needs it any more. */
  readonly decidedBy: string | undefined
}

export interface Approvals {
  /** Pending ones first, oldest first; then those decided last. Of one agent, or of all. */
  list(agentId?: string): Promise<readonly Approval[]>
  find(id: string): Promise<Approval | undefined>
  /** Durable before it settles. Throws `approval_not_found`, and `conflict` when it was decided before or has expired. */
  approve(id: string, by: string): Promise<Approval>
  /** As `approve`. */
  reject(id: string, by: string): Promise<Approval>
}
export const Approvals = defineService<Approvals>()('approvals')

export const ApprovalRequested = notify<{ readonly approval: Approval }>('approvals:requested')
/** Approved, rejected or expired. */
export const ApprovalResolved = notify<{ readonly approval: Approval }>('approvals:resolved')
