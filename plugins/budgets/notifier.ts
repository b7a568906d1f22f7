import { omitUndefined } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import { toUsd } from 'svc/providers'
import type { Hooks } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import { BudgetExceeded, BudgetUnpriced, BudgetWarning } from './contract.ts'
import type { BudgetNotice } from './contract.ts'
import { periodOf } from './limits.ts'
import type { Line } from './limits.ts'
import type { Account } from './service.ts'
import type { BudgetStore } from './store.ts'

export interface BudgetNotifierDeps {
  readonly store: BudgetStore
  readonly audit: Audit
  readonly hooks: Hooks
  readonly log: Pick<Logger, 'warn'>
  readonly now: () => number
  /** The accounts a call of this agent is on. */
  readonly accounts: (agent: Agent) => Promise<readonly (readonly [agent: Agent | undefined, account: Account])[]>
  /** Runs work that must end before the plugin unloads; no caller waits for it. */
  readonly background: (work: () => Promise<void>) => void
}
/** Waits for the record of the call, and checks calls that end together once. */
const NOTIFY_DELAY_MS = 50
const MAX_KNOWN = 10_000
const WORDS = { hour: 'hourly', day: 'daily', month: 'monthly' } as const

/**
 * Notifies once for each limit and period when it is nearly or wholly used up: in the log, in the audit log and by
 * hooks.
 */
export class BudgetNotifier {
  readonly #deps: BudgetNotifierDeps
  readonly #known = new Set<string>()
  readonly #pending = new Map<string, Agent>()
  #timer: NodeJS.Timeout | undefined
  constructor(deps: BudgetNotifierDeps) {
    this.#deps = deps
  }

  /** Checks the accounts of an agent that used something, a moment later. */
  scheduleCheck(agent: Agent): void {
    this.#pending.set(agent.id, agent)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const agents = [...this.#pending.values()]
      this.#pending.clear()
      this.#deps.background(async () => {
        for (const each of agents) await this.#checkAccounts(each)
      })
    }, NOTIFY_DELAY_MS).unref()
  }
  close(): void {
    clearTimeout(this.#timer)
  }

  exceeded(agent: Agent | undefined, line: Line): Promise<void> {
    return this.#notify('exceeded', agent, line)
  }

  unpriced(agent: Agent, { provider, model }: { readonly provider: string; readonly model: string }): void {
    this.#deps.background(async () => {
      const day = new Date(this.#deps.now()).toISOString().slice(0, 10)
      const text =
        `the price of ${model} by ${provider} is unknown, so the budget of agent "${agent.name}" does not count it: ` +
        `set [providers.${provider}.prices."${model}"]`
      if (!(await this.#claimNotice(agent.id, `unpriced ${provider}/${model} ${day}`))) return
      this.#deps.log.warn(text)
      await this.#deps.audit.write({ event: 'budget_warning', agentId: agent.id, details: text })
      await this.#deps.hooks.emit(BudgetUnpriced, { agentId: agent.id, provider, model })
    })
  }

  async #checkAccounts(agent: Agent): Promise<void> {
    for (const [payer, { lines, threshold }] of await this.#deps.accounts(agent)) {
      if (threshold <= 0) continue
      for (const line of lines) if (line.spent >= line.limit * threshold) await this.#notify('warning', payer, line)
    }
  }

  async #notify(kind: 'warning' | 'exceeded', agent: Agent | undefined, line: Line): Promise<void> {
    const { hooks, audit, log, now } = this.#deps
    const { period, unit, limit, spent } = line
    const { startsAt, resetsAt } = periodOf(period, now())
    if (!(await this.#claimNotice(agent?.id ?? '', `${kind} ${period} ${unit} ${startsAt} ${limit}`))) return
    const show = (value: number): number => (unit === 'usd' ? toUsd(value) : value)
    const notice: BudgetNotice = {
      agentId: agent?.id,
      period,
      unit,
      limit: show(limit),
      spent: show(spent),
      part: spent / limit,
      resetsAt,
    }
    const what = `${WORDS[period]} ${unit === 'usd' ? 'budget' : 'token limit'}`
    const payer = agent ? `agent "${agent.name}"` : 'all agents'
    const text =
      `${kind === 'warning' ? 'much of the' : 'a call was refused: the'} ${what} of ${payer} ` +
      `is used${kind === 'warning' ? '' : ' up'}: ${notice.spent} of ${notice.limit} ` +
      `${unit === 'usd' ? 'USD' : 'tokens'}, until ${resetsAt}`
    log.warn(text)
    await audit.write({
      event: kind === 'warning' ? 'budget_warning' : 'budget_exceeded',
      ...omitUndefined({ agentId: agent?.id }),
      details: text,
    })
    await hooks.emit(kind === 'warning' ? BudgetWarning : BudgetExceeded, notice)
  }

  async #claimNotice(scope: string, notice: string): Promise<boolean> {
    const key = `${scope} ${notice}`
    if (this.#known.has(key)) return false
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.add(key)
    return this.#deps.store.claimNotice(scope, notice, new Date(this.#deps.now()).toISOString())
  }
}
