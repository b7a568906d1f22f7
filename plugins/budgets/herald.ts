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

export interface HeraldParts {
  readonly store: BudgetStore
  readonly audit: Audit
  readonly hooks: Hooks
  readonly log: Pick<Logger, 'warn'>
  readonly now: () => number
  /** The accounts a call of this agent is on. */
  readonly accounts: (agent: Agent) => Promise<readonly (readonly [agent: Agent | undefined, account: Account])[]>
  /** Runs what must end before the plugin goes; nobody waits for it. */
  readonly background: (work: () => Promise<void>) => void
}
/** After a call, so that its record is there and calls that end together are looked at once. */
const SOON_MS = 50
const MOST_KNOWN = 10_000
const WORDS = { hour: 'hourly', day: 'daily', month: 'monthly' } as const

/** Tells once for each limit and period that it is nearly, or wholly, used up: in the log, in the audit log and by hooks. */
export class Herald {
  readonly #parts: HeraldParts
  readonly #known = new Set<string>()
  readonly #looking = new Map<string, Agent>()
  #timer: NodeJS.Timeout | undefined
  constructor(parts: HeraldParts) {
    this.#parts = parts
  }

  /** Looks soon at the accounts of an agent that used something. */
  look(agent: Agent): void {
    this.#looking.set(agent.id, agent)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const agents = [...this.#looking.values()]
      this.#looking.clear()
      this.#parts.background(async () => {
        for (const each of agents) await this.#see(each)
      })
    }, SOON_MS).unref()
  }
  close(): void {
    clearTimeout(this.#timer)
  }

  exceeded(agent: Agent | undefined, line: Line): Promise<void> {
    return this.#tell('exceeded', agent, line)
  }

  unpriced(agent: Agent, { provider, model }: { readonly provider: string; readonly model: string }): void {
    this.#parts.background(async () => {
      const day = new Date(this.#parts.now()).toISOString().slice(0, 10)
      const text = `what ${model} by ${provider} costs is not known, so the budget of agent "${agent.name}" does not count it: set [providers.${provider}.prices."${model}"]`
      if (!(await this.#first(agent.id, `unpriced ${provider}/${model} ${day}`))) return
      this.#parts.log.warn(text)
      await this.#parts.audit.write({ event: 'budget_warning', agentId: agent.id, details: text })
      await this.#parts.hooks.emit(BudgetUnpriced, { agentId: agent.id, provider, model })
    })
  }

  async #see(agent: Agent): Promise<void> {
    for (const [whose, { lines, threshold }] of await this.#parts.accounts(agent)) {
      if (threshold <= 0) continue
      for (const line of lines) if (line.spent >= line.limit * threshold) await this.#tell('warning', whose, line)
    }
  }

  async #tell(kind: 'warning' | 'exceeded', agent: Agent | undefined, line: Line): Promise<void> {
    const { hooks, audit, log, now } = this.#parts
    const { period, unit, limit, spent } = line
    const { startsAt, resetsAt } = periodOf(period, now())
    if (!(await this.#first(agent?.id ?? '', `${kind} ${period} ${unit} ${startsAt} ${limit}`))) return
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
    const text =
      `${kind === 'warning' ? 'much of the' : 'a call was refused: the'} ${WORDS[period]} ${unit === 'usd' ? 'budget' : 'token limit'} of ${agent ? `agent "${agent.name}"` : 'all agents'} ` +
      `is used${kind === 'warning' ? '' : ' up'}: ${notice.spent} of ${notice.limit} ${unit === 'usd' ? 'USD' : 'tokens'}, until ${resetsAt}`
    log.warn(text)
    await audit.write({
      event: kind === 'warning' ? 'budget_warning' : 'budget_exceeded',
      ...(agent ? { agentId: agent.id } : {}),
      details: text,
    })
    await hooks.emit(kind === 'warning' ? BudgetWarning : BudgetExceeded, notice)
  }

  async #first(scope: string, notice: string): Promise<boolean> {
    const key = `${scope} ${notice}`
    if (this.#known.has(key)) return false
    if (this.#known.size >= MOST_KNOWN) this.#known.clear()
    this.#known.add(key)
    return this.#parts.store.tell(scope, notice, new Date(this.#parts.now()).toISOString())
  }
}
