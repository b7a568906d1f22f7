import { randomUUID } from 'node:crypto'
import { costNano, toUsd } from 'svc/providers'
import type { Price, Rates } from 'svc/providers'
import { Refusal } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { ModelCallAttempt } from '../chat/contract.ts'
import type { SpendLimits, Spending, Spent } from '../usage/contract.ts'
import type { BudgetConfig } from './config.ts'
import type { Budgets, Resources } from './contract.ts'
import { limitsAnything, limitsMoney, limitsOfAgent, limitsOfAll, linesOf, periodOf, unset } from './limits.ts'
import type { Line, SetLimits } from './limits.ts'
import type { Herald } from './herald.ts'
import type { BudgetStore } from './store.ts'

export interface DeskParts {
  readonly config: BudgetConfig
  readonly store: BudgetStore
  readonly spending: Spending
  readonly audit: Audit
  readonly herald: Herald
  readonly now: () => number
  /** Other processes may set limits too. */
  readonly shared: boolean
  readonly refused: () => void
}
type Of = { readonly id: string; readonly manifest: { readonly resources: Resources } }
/** What all agents share and one of them has, and how far it is used. */
export interface Account { readonly limits: SpendLimits; readonly spent: Spent; readonly lines: readonly Line[]; readonly threshold: number }

/** Between looking and taking another call may be faster; who loses so often is told to come back. */
const TRIES = 3
const ALL = ''
/** What another process has set holds here after so long. */
const REREAD_MS = 5000

/** Knows the limits, sets aside what a call may cost before it is made, and refuses the call that might pass a limit. */
export class BudgetDesk implements Budgets {
  readonly #parts: DeskParts
  #set: Map<string, SetLimits> | undefined
  #reading: Promise<Map<string, SetLimits>> | undefined
  #readAt = 0
  constructor(parts: DeskParts) { this.#parts = parts }

  limits(agent: Of): boolean {
    // The gate reads again now and then.
    if (this.#parts.shared) return true
    if (!this.#set) {
      // Read with the first call there is, so that a start is not held up; until then every call asks.
      this.#read().catch(() => undefined)
      return true
    }
    return limitsAnything(this.#ofAll(this.#set)) || limitsAnything(this.#ofAgent(this.#set, agent))
  }

  /** The gate before a call of a model. Throws `rate_limit` when a limit has no room for it. */
  async admit({ agent, model, most, held }: ModelCallAttempt): Promise<void> {
    const { spending, herald, config, now } = this.#parts
    const set = await this.#read()
    const [all, own] = [this.#ofAll(set), this.#ofAgent(set, agent)]
    if (!limitsAnything(all) && !limitsAnything(own)) return
    const nano = costNano(dearest(model.price), { input: most.input, output: most.output })
    if (nano === null && (limitsMoney(all) || limitsMoney(own))) {
      if (config.unknown_price === 'refuse') throw unpriced(agent, model)
      herald.unpriced(agent, model)
    }
    const claim = { id: randomUUID(), agentId: agent.id, nano: nano ?? 0, tokens: most.input + most.output, expiresAt: new Date(now() + config.reservation_secs * 1000).toISOString() }
    for (let tries = 0; tries < TRIES; tries++) {
      if (await spending.claim(claim, { all, agent: own })) {
        held(() => {
          herald.look(agent)
          return [spending.release(claim.id)]
        })
        return
      }
      const refusal = await this.#refusal(agent, all, own, claim)
      if (refusal) throw refusal
    }
    throw new Refusal('rate_limit', 'The budget is being used up by other calls', { retryAfterSecs: 1 })
  }

  async accountOfAll(): Promise<Account> {
    const set = await this.#read()
    return this.#account(this.#ofAll(set), ALL)
  }
  async accountOf(agent: Of): Promise<Account> {
    const set = await this.#read()
    return this.#account(this.#ofAgent(set, agent), agent.id)
  }
  async limitsOf(agent: Of): Promise<SpendLimits> { return this.#ofAgent(await this.#read(), agent) }
  async defaultHourTokens(): Promise<number> { return this.#defaultTokens(await this.#read()) }

  /** Sets what is not `undefined`; on disk together with its entry in the audit log. */
  async set(agentId: string | undefined, change: { readonly [K in keyof SetLimits]?: SetLimits[K] | undefined }, details: string): Promise<void> {
    const { store, audit } = this.#parts
    const set = await this.#read()
    const scope = agentId ?? ALL
    const next: SetLimits = { ...set.get(scope) ?? unset, ...Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) }
    await store.write([store.set(scope, next), audit.entry({ event: 'budget_changed', ...(agentId === undefined ? {} : { agentId }), details })])
    set.set(scope, next)
  }
  async forget(agentId: string): Promise<void> {
    const set = await this.#read()
    if (set.delete(agentId)) await this.#parts.store.remove(agentId)
  }

  async #account(limits: SpendLimits, scope: string): Promise<Account> {
    const spent = await this.#parts.spending.spent(scope === ALL ? undefined : scope)
    return { limits, spent, lines: linesOf(limits, spent), threshold: (await this.#read()).get(ALL)?.alertThreshold ?? this.#parts.config.alert_threshold }
  }

  async #refusal(agent: Agent, all: SpendLimits, own: SpendLimits, claim: { readonly nano: number; readonly tokens: number }): Promise<Refusal | undefined> {
    const { spending, herald, now } = this.#parts
    for (const [limits, scope] of [[own, agent.id], [all, ALL]] as const) {
      if (!limitsAnything(limits)) continue
      const lines = linesOf(limits, await spending.spent(scope === ALL ? undefined : scope))
      const full = lines.find(({ unit, limit, spent, held }) => spent + held + (unit === 'usd' ? claim.nano : claim.tokens) > limit)
      if (!full) continue
      this.#parts.refused()
      await herald.exceeded(scope === ALL ? undefined : agent, full)
      return refusal(scope === ALL ? undefined : agent, full, full.unit === 'usd' ? claim.nano : claim.tokens, now())
    }
    return undefined
  }

  #ofAll(set: ReadonlyMap<string, SetLimits>): SpendLimits { return limitsOfAll(set.get(ALL), this.#parts.config) }
  #ofAgent(set: ReadonlyMap<string, SetLimits>, { id, manifest }: Of): SpendLimits { return limitsOfAgent(set.get(id), manifest.resources, this.#defaultTokens(set)) }
  #defaultTokens(set: ReadonlyMap<string, SetLimits>): number { return set.get(ALL)?.defaultHourTokens ?? this.#parts.config.default_max_llm_tokens_per_hour }

  #read(): Promise<Map<string, SetLimits>> {
    const { shared, now } = this.#parts
    if (shared && this.#set && now() - this.#readAt > REREAD_MS) this.#reading = undefined
    if (!this.#reading) this.#readAt = now()
    return (this.#reading ??= this.#parts.store.limits().then((found) => (this.#set = new Map(found)), (error: unknown) => { this.#reading = undefined; throw error }))
  }
}

/** What is written to a prompt cache may cost more than other input, and nobody knows beforehand what will be. */
function dearest(price: Price | undefined): Price | undefined {
  const dear = <R extends Rates>(rates: R): R => ({ ...rates, input: Math.max(rates.input, rates.cacheWrite ?? 0) })
  return price && { ...dear(price), ...(price.long && { long: dear(price.long) }) }
}

const WORDS = { hour: 'hourly', day: 'daily', month: 'monthly' } as const
function refusal(agent: Agent | undefined, line: Line, needs: number, at: number): Refusal {
  const { period, unit, limit, spent, held } = line
  const amount = (value: number): string => (unit === 'usd' ? dollars(value) : `${value} tokens`)
  const { resetsAt } = periodOf(period, at)
  const path = agent ? `/api/budget/agents/${agent.id}` : '/api/budget'
  const rest = spent >= limit ? '' : `; this call may take ${amount(needs)}${held > 0 ? ` and running ones ${amount(held)}` : ''}`
  return new Refusal('rate_limit',
    `The ${WORDS[period]} ${unit === 'usd' ? 'budget' : 'token limit'} of ${agent ? `agent "${agent.name}"` : 'all agents'} is used up: ${amount(spent)} of ${amount(limit)}${rest}. It begins anew at ${resetsAt}; PUT ${path} raises it.`,
    {
      // What only running calls hold may be free again soon.
      retryAfterSecs: spent + needs <= limit ? 5 : Math.max(1, Math.ceil((Date.parse(resetsAt) - at) / 1000)),
      details: { budget: { agent_id: agent?.id ?? null, period, unit, limit: unit === 'usd' ? toUsd(limit) : limit, spent: unit === 'usd' ? toUsd(spent) : spent, resets_at: resetsAt } },
    })
}
export function dollars(nano: number): string {
  const exact = toUsd(nano).toFixed(6)
  // Cents at least, and no more than it takes.
  return `$${exact.replace(/0{1,4}$/, '')}`
}
function unpriced(agent: Agent, { provider, model }: { readonly provider: string; readonly model: string }): Refusal {
  return new Refusal('conflict', `What ${model} by ${provider} costs is not known, and the money of agent "${agent.name}" is limited: set [providers.${provider}.prices."${model}"] input and output, `
    + 'choose another model, or set [budget] unknown_price = "allow".')
}
