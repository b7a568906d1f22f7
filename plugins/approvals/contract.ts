import { defineService, notify } from 'svc/sdk'
import type { Principal, ToolDescription } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'

export type ApprovalState = 'pending' | 'approved' | 'rejected' | 'expired'
export type RiskLevel = 'low' | 'medium' | 'high' | 'critical'

/** An action that waits for a person, or waited. Answered once; the answer is for exactly this action. */
export interface Approval {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  /** Empty for a request over the API. */
  readonly turnId: string
  readonly sessionId: string
  readonly callId: string
  readonly tool: string
  /** The name of the action: the tool, unless a request over the API gave another name. */
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
  /** `operator`, `timeout`, or why the request was withdrawn. */
  readonly decidedBy: string | undefined
  /** What the agent wants, worded to follow "wants to". */
  readonly intent: string
  /** The calls that an approval for the session would cover; `undefined` when it can be approved once only. */
  readonly standing: Standing | undefined
  /** What it was approved for. */
  readonly scope: Scope | undefined
  /** How many different people have to approve it. */
  readonly needed: 1 | 2
  /** Who approved it first, where a second person has to as well. */
  readonly firstBy: string | undefined
  /** What is approved holds from then on, so only the API key can approve it. */
  readonly lasting: boolean
  /** What a person is asked to fill in; whoever approves it answers that. */
  readonly form: ApprovalForm | undefined
  /** What they filled in, defaults included. */
  readonly content: FormContent | undefined
  /** Why it was rejected, in the words of whoever did; the agent reads them. */
  readonly reason: string | undefined
}
/** A form as it is requested: a flat JSON Schema of primitives, such as the elicitation of MCP has. */
export interface ApprovalFormInput {
  readonly schema: Readonly<Record<string, unknown>>
  readonly title?: string | undefined
}
export interface ApprovalForm extends ApprovalFormInput {
  /** The fields in the order of the schema, ready to be shown. */
  readonly fields: readonly FormField[]
}
export interface FormField {
  readonly name: string
  readonly kind: 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'choices'
  readonly title: string
  readonly description: string
  readonly required: boolean
  readonly options?: readonly { readonly value: string; readonly title: string }[]
  readonly format?: 'email' | 'uri' | 'date' | 'date-time'
  /** The least value of a number, characters of a text, or choices. */
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: FormContent[string]
}
export type FormContent = Readonly<Record<string, string | number | boolean | readonly string[]>>
export type Scope = 'once' | 'session'
export interface Standing {
  readonly key: string
  /** For a person: which calls these are. */
  readonly covers: string
}

/** A standing approval: calls of one tool with one key pass in one session until it ends or the approval is revoked. */
export interface Grant {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly sessionId: string
  readonly tool: string
  readonly covers: string
  /** The request it was given with. */
  readonly approvalId: string
  readonly grantedAt: string
  readonly grantedBy: string
  readonly uses: number
  readonly lastUsedAt: string | undefined
  readonly revokedAt: string | undefined
  readonly revokedBy: string | undefined
}

/** A request for an approval. */
export interface ApprovalInput {
  /** A UUID that is the same whenever the same request is made: the second one is the first. */
  readonly id?: string
  /** Empty when no agent acts, such as in a step of a workflow. */
  readonly agentId: string
  readonly agentName: string
  readonly turnId?: string
  readonly sessionId?: string
  readonly callId?: string
  readonly tool: string
  readonly action: string
  readonly description: string
  readonly summary: string
  readonly payload: unknown
  readonly risk: RiskLevel
  readonly timeoutSecs?: number | undefined
  readonly intent?: string | undefined
  /** What an approval for the session would cover; left out where it can be approved once only. */
  readonly standing?: Standing | undefined
  /**
   * What the person is asked to fill in. One person answers it, and it permits nothing: the answer is the content. A
   * rejection declines it; nobody has chosen when it expires.
   */
  readonly form?: ApprovalFormInput | undefined
  /** What is approved holds from then on, and not for one call: only the API key can approve it. A tool whose effect is so has it. */
  readonly lasting?: boolean | undefined
}

/** A person who answers somewhere else than over the API. */
export interface Person {
  /** For people to read, and for records. */
  readonly name: string
  /** The same for the same person, whatever they call themselves, such as `telegram:4711`. */
  readonly person: string
  /** They answer in the very chat that the request came from. */
  readonly inOwnChat: boolean
}
/** A chat that was asked because nobody had answered. */
export interface Escalation {
  /** Also the id of the result that was delivered there. */
  readonly id: string
  readonly approvalId: string
  readonly channel: string
  readonly to: string
}

export interface Approvals {
  /**
   * Asks a person. Durable before it settles. Throws `rate_limit` when too many requests of this agent wait,
   * `payload_too_large`, and `invalid_request` for a form that cannot be shown.
   */
  request(input: ApprovalInput): Promise<Approval>
  /** Pending ones first, oldest first; then those decided last. Of one agent, or of all. */
  list(agentId?: string): Promise<readonly Approval[]>
  find(id: string): Promise<Approval | undefined>
  /**
   * Whether a person is asked before an agent calls a tool, by its policy and whatever the arguments are. What the
   * arguments carry can be a reason to ask too.
   */
  asks(agent: Agent, tool: Pick<ToolDescription, 'name' | 'risk'>): boolean
  /**
   * Durable before it settles. It stays pending when a second person has to approve it too. An approval by somebody with
   * a revocable credential counts as long as the credential is accepted. Throws `approval_not_found`, `conflict` when it
   * was decided before or has expired, and `forbidden` for the same person twice, for what is lasting without the API
   * key, and for the scope `session` where it can be approved once only. `content` is what the person filled in: `invalid_request`
   * says by field what is wrong with it, and the request stays pending then.
   */
  approve(
    id: string,
    by: Principal | Person | string,
    scope?: Scope,
    content?: Readonly<Record<string, unknown>>,
  ): Promise<Approval>
  /** As `approve`; one person is enough. */
  reject(id: string, by: Principal | Person | string, reason?: string): Promise<Approval>
  /** Settles with the answer, at the latest when it expires. Rejects with the reason of the signal. */
  decision(id: string, signal: AbortSignal): Promise<Approval>
  /** Nobody needs the answer any more: a pending request expires, for this reason. */
  withdrawRequest(id: string, reason: string): Promise<void>
  /**
   * Another chat is asked about a pending request with this message, by whoever calls: it can be answered there then.
   * Durable before it settles; the same message again changes nothing.
   */
  noteAsked(id: string, message: { readonly id: string; readonly channel: string; readonly to: string }): Promise<void>
  /** The chats that were asked about pending requests. */
  escalations(): Promise<readonly Escalation[]>
}
export const Approvals = defineService<Approvals>()('approvals')

/** A call waits for a person to decide. The approval is on disk. */
export const ApprovalRequested = notify<{ readonly approval: Approval }>('approvals:requested')
/** Nobody had answered, so another chat is asked too. */
export const ApprovalEscalated = notify<{
  readonly approval: Approval
  readonly channel: string
  readonly to: string
}>('approvals:escalated')
/** Approved, rejected or expired. */
export const ApprovalResolved = notify<{ readonly approval: Approval }>('approvals:resolved')
