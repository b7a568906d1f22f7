import { randomUUID } from 'node:crypto'
import { costNano, toUsd } from 'svc/providers'
import type { Price, Rates } from 'svc/providers'
import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { ModelCallAttempt } from '../chat/contract.ts'
import type { SpendLimits, Spending, Spent } from '../usage/contract.ts'
import type { BudgetConfig } from './config.ts'
import type { Budgets, Resources } from './contract.ts'
import { Kin, parentOf, spentTogether } from './kin.ts'
import type { Payer } from './kin.ts'
import { limitsAnything, limitsMoney, limitsOfAgent, limitsOfAll, linesOf, periodOf, unset } from './limits.ts'
import type { Line, SetLimits } from './limits.ts'
import type { Herald } from './herald.ts'
import type { BudgetStore } from './store.ts'

export interface DeskParts {
  readonly config: BudgetConfig
  readonly store: BudgetStore
  readonly agents: Pick<Agents, 'find' | 'list'>
  readonly spending: Spending
  readonly audit: Audit
  readonly herald: Herald
  readonly now: () => number
  /** Other processes may set limits too. */
  readonly shared: boolean
  readonly refused: () => void
}
type Of = {
  readonly id: string
  readonly manifest: { readonly resources: Resources; readonly metadata: Readonly<Record<string, unknown>> }
}
interface Known {
  readonly set: Map<string, SetLimits>
  readonly kin: Kin
}
/** What all agents share and one of them has, and how far it is used. */
export interface Account {
  readonly limits: SpendLimits
  readonly spent: Spent
  /** With what came of the agent: what counts for the limits. */ readonly together: Spent
  readonly lines: readonly Line[]
  readonly threshold: number
}

/** Between looking and taking another call may be faster; who loses so often is told to come back. */
const TRIES = 3
const ALL = ''
/** What another process has set holds here after so long. */
const REREAD_MS = 5000

/** Knows the limits, sets aside what a call may cost before it is made, and refuses the call that might pass a limit. */
export class BudgetDesk implements Budgets {
  readonly #parts: DeskParts
  #known: Known | undefined
  #reading: Promise<Known> | undefined
  /** One call of a family after the other, where they share a limit. */
  readonly #turns = new Map<string, Promise<unknown>>()
  #readAt = 0
  #setting: Promise<void> = Promise.resolve()
  constructor(parts: DeskParts) {
    this.#parts = parts
  }

  limits(agent: Of): boolean {
    // The gate reads again now and then.
    if (this.#parts.shared) return true
    if (!this.#known) {
      // Read with the first call there is, so that a start is not held up; until then every call asks, and hears of a failure there.
      this.#read().catch(() => undefined)
      return true
    }
    const { set } = this.#known
    return (
      limitsAnything(this.#ofAll(set)) || limitsAnything(this.#ofAgent(set, agent)) || parentOf(agent) !== undefined
    )
  }

  /** The gate before a call of a model. Throws `rate_limit` when a limit has no room for it. */
  async admit({ agent, model, maxTokens: most, onRelease: held }: ModelCallAttempt): Promise<void> {
    const { spending, herald, config, now } = this.#parts
    const { set, kin } = await this.#read()
    const [all, own] = [this.#ofAll(set), this.#ofAgent(set, agent)]
    const payers = await this.#payers(agent, kin)
    if (!limitsAnything(all) && !limitsAnything(own) && payers.length === 0) return
    const nano = costNano(dearest(model.price), { input: most.input, output: most.output })
    if (nano === null && [all, own, ...payers.map(({ limits }) => limits)].some(limitsMoney)) {
      if (config.unknown_price === 'refuse') throw unpriced(agent, model)
      herald.unpriced(agent, model)
    }
    const claim = {
      id: randomUUID(),
      agentId: agent.id,
      nano: nano ?? 0,
      tokens: most.input + most.output,
      expiresAt: new Date(now() + config.reservation_secs * 1000).toISOString(),
    }
    const take = async (): Promise<void> => {
      for (const payer of payers) {
        const full = linesOf(payer.limits, await spentTogether(spending, payer.members)).find((line) =>
          passes(line, claim),
        )
        if (full) throw await this.#refuse(payer.agent, full, claim)
      }
      for (let tries = 0; ; tries++) {
        if (await spending.claim(claim, { all, agent: own })) return
        const refusal = await this.#refusal(agent, all, own, claim)
        if (refusal) throw refusal
        if (tries === TRIES)
          throw new Refusal('rate_limit', 'The budget is being used up by other calls', { retryAfterSecs: 1 })
      }
    }
    // What a family shares is looked at and taken in two steps, so nobody of it may come between.
    await (payers.length === 0 ? take() : this.#alone(rootOf(agent), take))
    held(() => {
      herald.look(agent)
      return [spending.release(claim.id)]
    })
  }

  /** A child's first call may come before anybody is told of it otherwise. */
  async born(agent: Agent): Promise<void> {
    if (parentOf(agent) === undefined) return
    const { kin } = await this.#read()
    const fresh = kin.learn([agent])
    if (fresh.length > 0) await this.#parts.store.write(fresh.map((descent) => this.#parts.store.addKin(descent)))
  }

  async accountOfAll(): Promise<Account> {
    const { set } = await this.#read()
    return this.#account(this.#ofAll(set), ALL)
  }
  async accountOf(agent: Of): Promise<Account> {
    const { set } = await this.#read()
    return this.#account(this.#ofAgent(set, agent), agent.id)
  }
  async limitsOf(agent: Of): Promise<SpendLimits> {
    return this.#ofAgent((await this.#read()).set, agent)
  }
  async defaultHourTokens(): Promise<number> {
    return this.#defaultTokens((await this.#read()).set)
  }

  /** Sets what is not `undefined`; on disk together with its entry in the audit log. */
  set(
    agentId: string | undefined,
    change: { readonly [K in keyof SetLimits]?: SetLimits[K] | undefined },
    details: string,
  ): Promise<void> {
    // One after the other: each leaves as it is what it does not name, also what another one just set.
    const next = this.#setting.then(() => this.#set(agentId, change, details))
    this.#setting = next.catch(() => {
      /* told to who asked */
    })
    return next
  }
  async #set(
    agentId: string | undefined,
    change: { readonly [K in keyof SetLimits]?: SetLimits[K] | undefined },
    details: string,
  ): Promise<void> {
    const { store, audit } = this.#parts
    const { set } = await this.#read()
    const scope = agentId ?? ALL
    const next: SetLimits = {
      ...(set.get(scope) ?? unset),
      ...Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)),
    }
    await store.write([
      store.set(scope, next),
      audit.entry({
        event: 'budget_changed',
        ...(agentId === undefined ? {} : { agentId }),
        details,
        change: { before: { ...set.get(scope) }, after: { ...next } },
      }),
    ])
    set.set(scope, next)
  }
  async forget(agentId: string): Promise<void> {
    const { set } = await this.#read()
    if (set.delete(agentId)) await this.#parts.store.remove(agentId)
  }
  /** Who is gone and spent nothing in any period that is not over counts for no limit: an agent may make others for years. */
  async forgetGone(signal: AbortSignal): Promise<void> {
    const { store, agents, spending } = this.#parts
    const { kin } = await this.#read()
    const offspring = kin.offspring()
    const there = new Set((await agents.list()).map(({ id }) => id))
    for (const id of offspring) {
      if (signal.aborted) return
      if (there.has(id) || Object.values(await spending.spent(id)).some((spent) => spent > 0)) continue
      await store.write(kin.ancestors(id).map((ancestorId) => store.removeKin({ ancestorId, agentId: id })))
      kin.forget(id)
    }
  }

  async #account(limits: SpendLimits, scope: string): Promise<Account> {
    const { spending, config } = this.#parts
    const { set, kin } = await this.#read()
    const spent = await spending.spent(scope === ALL ? undefined : scope)
    const descendants = scope === ALL ? [] : kin.descendants(scope)
    const together = descendants.length === 0 ? spent : await spentTogether(spending, [scope, ...descendants])
    return {
      limits,
      spent,
      together,
      lines: linesOf(limits, together),
      threshold: set.get(ALL)?.alertThreshold ?? config.alert_threshold,
    }
  }

  async #refusal(agent: Agent, all: SpendLimits, own: SpendLimits, claim: Needs): Promise<Refusal | undefined> {
    const { spending } = this.#parts
    for (const [limits, scope] of [
      [own, agent.id],
      [all, ALL],
    ] as const) {
      if (!limitsAnything(limits)) continue
      const lines = linesOf(limits, await spending.spent(scope === ALL ? undefined : scope))
      const full = lines.find((line) => passes(line, claim))
      if (full) return this.#refuse(scope === ALL ? undefined : agent, full, claim)
    }
    return undefined
  }
  async #refuse(whose: Agent | undefined, full: Line, { nano, tokens }: Needs): Promise<Refusal> {
    this.#parts.refused()
    await this.#parts.herald.exceeded(whose, full)
    return refusal(whose, full, full.unit === 'usd' ? nano : tokens, this.#parts.now())
  }

  /** The agents that pay for a call together with others: those it came of, and itself when it made any. Only those with a limit. */
  async #payers(agent: Agent, kin: Kin): Promise<readonly Payer[]> {
    const { set } = await this.#read()
    const payers: Payer[] = []
    for (const id of [agent.id, ...kin.ancestors(agent.id)]) {
      const members = [id, ...kin.descendants(id)]
      if (members.length === 1) continue
      const payer = id === agent.id ? agent : await this.#parts.agents.find(id)
      const limits = payer && this.#ofAgent(set, payer)
      if (payer && limits && limitsAnything(limits)) payers.push({ agent: payer, limits, members })
    }
    return payers
  }
  /** The agents whose limits a call of this one is on, itself among them. */
  async accounts(agent: Agent): Promise<readonly (readonly [agent: Agent | undefined, account: Account])[]> {
    const { kin } = await this.#read()
    const others = (await Promise.all(kin.ancestors(agent.id).map((id) => this.#parts.agents.find(id)))).filter(
      (one) => one !== undefined,
    )
    return [
      [undefined, await this.accountOfAll()],
      ...(await Promise.all([agent, ...others].map(async (one) => [one, await this.accountOf(one)] as const))),
    ]
  }
  async #alone(root: string, work: () => Promise<void>): Promise<void> {
    const before = this.#turns.get(root)
    // Whether the one before was refused is for its own caller to hear.
    const mine = (before ?? Promise.resolve()).then(work, work)
    this.#turns.set(root, mine)
    try {
      await mine
    } finally {
      if (this.#turns.get(root) === mine) this.#turns.delete(root)
    }
  }

  #ofAll(set: ReadonlyMap<string, SetLimits>): SpendLimits {
    return limitsOfAll(set.get(ALL), this.#parts.config)
  }
  #ofAgent(set: ReadonlyMap<string, SetLimits>, { id, manifest }: Of): SpendLimits {
    return limitsOfAgent(set.get(id), manifest.resources, this.#defaultTokens(set))
  }
  #defaultTokens(set: ReadonlyMap<string, SetLimits>): number {
    return set.get(ALL)?.defaultHourTokens ?? this.#parts.config.default_max_llm_tokens_per_hour
  }

  #read(): Promise<Known> {
    const { shared, now } = this.#parts
    if (shared && this.#known && now() - this.#readAt > REREAD_MS) this.#reading = undefined
    if (!this.#reading) this.#readAt = now()
    return (this.#reading ??= this.#load().then(
      (known) => (this.#known = known),
      (error: unknown) => {
        this.#reading = undefined
        throw error
      },
    ))
  }
  async #load(): Promise<Known> {
    const { store, agents } = this.#parts
    const [limits, descents, all] = await Promise.all([store.limits(), store.kin(), agents.list()])
    const kin = new Kin(descents)
    // Nobody was told of those that were made in the moment of a crash.
    const fresh = kin.learn(all)
    if (fresh.length > 0) await store.write(fresh.map((descent) => store.addKin(descent)))
    return { set: new Map(limits), kin }
  }
}

type Needs = { readonly nano: number; readonly tokens: number }
function passes({ unit, limit, spent, held }: Line, { nano, tokens }: Needs): boolean {
  return spent + held + (unit === 'usd' ? nano : tokens) > limit
}
function rootOf({ id, manifest }: Agent): string {
  const root = manifest.metadata['root_agent_id']
  return typeof root === 'string' && root !== '' ? root : id
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
  const rest =
    spent >= limit ? '' : `; this call may take ${amount(needs)}${held > 0 ? ` and running ones ${amount(held)}` : ''}`
  return new Refusal(
    'rate_limit',
    `The ${WORDS[period]} ${unit === 'usd' ? 'budget' : 'token limit'} of ${agent ? `agent "${agent.name}"` : 'all agents'} is used up: ${amount(spent)} of ${amount(limit)}${rest}. It begins anew at ${resetsAt}; PUT ${path} raises it.`,
    {
      // What only running calls hold may be free again soon.
      retryAfterSecs: spent + needs <= limit ? 5 : Math.max(1, Math.ceil((Date.parse(resetsAt) - at) / 1000)),
      details: {
        budget: {
          agent_id: agent?.id ?? null,
          period,
          unit,
          limit: unit === 'usd' ? toUsd(limit) : limit,
          spent: unit === 'usd' ? toUsd(spent) : spent,
          resets_at: resetsAt,
        },
      },
    },
  )
}
export function dollars(nano: number): string {
  const exact = toUsd(nano).toFixed(6)
  // Cents at least, and no more than it takes.
  return `$${exact.replace(/0{1,4}$/, '')}`
}
function unpriced(agent: Agent, { provider, model }: { readonly provider: string; readonly model: string }): Refusal {
  return new Refusal(
    'conflict',
    `What ${model} by ${provider} costs is not known, and the money of agent "${agent.name}" is limited: set [providers.${provider}.prices."${model}"] input and output, ` +
      'choose another model, or set [budget] unknown_price = "allow".',
  )
}
