import { stableId, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { omitUndefined } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { ResultDelivery } from '../../result-delivery/contract.ts'
import type { EscalationRule } from '../config.ts'
import type { Approval } from '../contract.ts'
import { matches } from '../matching.ts'
import type { ApprovalStore } from '../store.ts'

export interface EscalatorDeps {
  readonly rules: readonly EscalationRule[]
  readonly store: Pick<ApprovalStore, 'commit' | 'escalate' | 'find' | 'isEscalated'>
  readonly audit: Pick<Audit, 'entry'>
  readonly clock: Clock
  readonly delivery: () => Pick<ResultDelivery, 'deliver'> | undefined
  /** Called after it is on disk; must not throw. */
  readonly escalated: (approval: Approval, rule: EscalationRule) => void
  /** Called when a chat could not be asked; it is tried again. */
  readonly failed: (error: unknown) => void
}
const RETRY_MS = 60_000

/**
 * Asks further chats when nobody answers. The table decides whether a chat was asked: the row, the audit entry and the
 * job of the queue that brings the question are written together, so that a restart asks nobody twice and forgets
 * nobody.
 */
export class Escalator {
  readonly #deps: EscalatorDeps
  /** By request: what ends its timers. */
  readonly #timers = new Map<string, Map<string, () => void>>()
  constructor(deps: EscalatorDeps) {
    this.#deps = deps
  }

  /** Begins to wait for a pending request; also for one of an earlier process. */
  start(approval: Approval): void {
    for (const rule of this.#deps.rules)
      if (matches(rule, approval))
        this.#arm(approval, rule, Date.parse(approval.requestedAt) + rule.after_secs * 1000 - this.#deps.clock.now())
  }
  /** It was answered. */
  stop(approvalId: string): void {
    for (const cancel of this.#timers.get(approvalId)?.values() ?? []) cancel()
    this.#timers.delete(approvalId)
  }
  close(): void {
    for (const approvalId of this.#timers.keys()) this.stop(approvalId)
  }

  #arm(approval: Approval, rule: EscalationRule, inMs: number): void {
    const { clock, failed } = this.#deps
    const id = escalationId(approval.id, rule)
    const timers = this.#timers.get(approval.id) ?? new Map<string, () => void>()
    this.#timers.set(approval.id, timers)
    const cancel = clock.after(Math.max(1, inMs), () => {
      this.#escalate(id, approval, rule).catch((error: unknown) => {
        failed(error)
        if (timers.has(id)) this.#arm(approval, rule, RETRY_MS)
      })
    })
    timers.set(id, cancel)
  }

  async #escalate(id: string, approval: Approval, rule: EscalationRule): Promise<void> {
    const { store, audit, clock } = this.#deps
    const delivery = this.#deps.delivery()
    if (!delivery) throw new Error('the plugin "result-delivery" is not loaded, so nobody else can be asked')
    if (await this.#isOver(id, approval)) return
    const { channel, to, account, thread } = rule
    const target = { kind: 'channel' as const, channel, to, ...omitUndefined({ account, thread }) }
    const entry = audit.entry({
      event: 'capability_check',
      agentId: approval.agentId,
      details:
        `approval ${approval.id} escalated to ${channel} chat ${to}, as nobody answered within ${rule.after_secs} ` +
        `seconds: ${approval.summary}`,
    })
    const result = { id, agentId: '', event: 'approval.escalated', text: question(approval) }
    try {
      await store.commit(
        store.escalate(id, approval.id, rule, toIso(clock.now())),
        entry,
        ...delivery.deliver(target, result),
      )
    } catch (error) {
      // Answered at the same moment, or asked by another daemon.
      if (await this.#isOver(id, approval)) return
      throw error
    }
    this.#timers.get(approval.id)?.delete(id)
    this.#deps.escalated(approval, rule)
  }
  async #isOver(id: string, approval: Approval): Promise<boolean> {
    const { store, clock } = this.#deps
    const row = await store.find(approval.id)
    if (row?.state === 'pending' && row.expires_at > toIso(clock.now())) return store.isEscalated(id)
    return true
  }
}

/** The same for one rule, wherever it stands in the file: a rule that was changed is another one. */
function escalationId(approvalId: string, rule: EscalationRule): string {
  const { channel, to, account = '', thread = '', after_secs: secs } = rule
  return stableId('approval-escalation', approvalId, channel, to, account, thread, String(secs))
}

function question({ id, agentName, intent, summary, risk, description, expiresAt, needed }: Approval): string {
  return [
    `**${agentName}** wants to ${intent} (${risk} risk), and nobody has answered:`,
    summary,
    ...(description === '' ? [] : [description]),
    ...(needed === 2 ? ['Two different people have to approve it.'] : []),
    `An operator of this bot decides before ${expiresAt}: /approve ${id} or /reject ${id}`,
  ].join('\n\n')
}
