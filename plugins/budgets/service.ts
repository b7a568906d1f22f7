import { randomUUID } from 'node:crypto'
import { costNano } from 'svc/providers'
import type { Price, Rates } from 'svc/providers'
import type { RowsInMemory, TellChange } from 'svc/internal'
import { omitUndefined, Refusal, SerialQueue } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { ModelCallAttempt } from '../chat/contract.ts'
import type { SpendLimits, Spending, Spent } from '../usage/contract.ts'
import type { BudgetConfig } from './config.ts'
import type { Budgets, Resources } from './contract.ts'
import { AgentLineage, parentOf, spentTogether } from './lineage.ts'
import type { AncestorLink, Payer } from './lineage.ts'
import { limitsAnything, limitsMoney, limitsOfAgent, limitsOfAll, linesOf, unset } from './limits.ts'
import type { Line, SetLimits } from './limits.ts'
import type { BudgetNotifier } from './notifier.ts'
import type { BudgetStore } from './store.ts'

export interface BudgetServiceDeps {
  readonly config: BudgetConfig
  readonly store: BudgetStore
  readonly agents: Pick<Agents, 'find' | 'list'>
  readonly spending: Spending
  readonly audit: Audit
  readonly notifier: BudgetNotifier
  readonly now: () => number
  /** Other daemons may set limits too. */
  readonly shared: boolean
  /** Hears of limits and families that another daemon changed. */
  readonly follow: (rows: RowsInMemory) => TellChange
  readonly refused: () => void
}
type BudgetedAgent = {
  readonly id: string
  readonly manifest: { readonly resources: Resources; readonly metadata: Readonly<Record<string, unknown>> }
}
interface BudgetState {
  readonly set: Map<string, SetLimits>
  readonly lineage: AgentLineage
}
/** What all agents share and one of them has, and how far it is used. */
export interface Account {
  readonly limits: SpendLimits
  readonly spent: Spent
  /** With what its descendants spent: what counts for the limits. */
  readonly together: Spent
  readonly lines: readonly Line[]
  readonly threshold: number
}

/**
 * How often a claim is repeated when other calls are faster between check and claim. After that the caller has to
 * retry.
 */
const MAX_TRIES = 3
const ALL = ''

/**
 * Knows the limits, sets aside what a call may cost before it is made, and refuses the call that might pass a limit.
 */
export class BudgetService implements Budgets {
  readonly #deps: BudgetServiceDeps
  #state: BudgetState | undefined
  #reading: Promise<BudgetState> | undefined
  readonly #changes = new SerialQueue()
  readonly #tell: TellChange
  constructor(deps: BudgetServiceDeps) {
    this.#deps = deps
    this.#tell = deps.follow(() => this.#readAgain())
  }

  /** What is in memory, or being read, may be from before a change. Alone on a database it changes with the rows. */
  #readAgain(): void {
    if (this.#deps.shared) this.#reading = undefined
  }

  limits(agent: BudgetedAgent): boolean {
    // What another daemon set may be heard a moment later: the gate decides.
    if (this.#deps.shared) return true
    if (!this.#state) {
      // Read with the first call, so that the start does not wait; until then every call passes the gate and gets a
      // failure there.
      this.#read().catch(() => undefined)
      return true
    }
    const { set } = this.#state
    return (
      limitsAnything(this.#ofAll(set)) || limitsAnything(this.#ofAgent(set, agent)) || parentOf(agent) !== undefined
    )
  }

  /** The gate before a call of a model. Throws `rate_limit` when a limit has no room for it. */
  async admit({ agent, model, maxTokens, onRelease }: ModelCallAttempt): Promise<void> {
    const { spending, notifier, config, now } = this.#deps
    let { set, lineage } = await this.#read()
    if (this.#isUnknownChild(agent, lineage)) ({ set, lineage } = await this.#readNow())
    const all = this.#ofAll(set)
    const own = this.#ofAgent(set, agent)
    let payers = await this.#payers(agent, lineage)
    if (!limitsAnything(all) && !limitsAnything(own) && payers.length === 0) return
    const nano = costNano(highestPrice(model.price), { input: maxTokens.input, output: maxTokens.output })
    if (nano === null && [all, own, ...payers.map(({ limits }) => limits)].some(limitsMoney)) {
      if (config.unknown_price === 'refuse') throw (await import('./refusal.ts')).unpriced(agent, model)
      notifier.unpriced(agent, model)
    }
    const claim = {
      id: randomUUID(),
      agentId: agent.id,
      nano: nano ?? 0,
      tokens: maxTokens.input + maxTokens.output,
      expiresAt: new Date(now() + config.reservation_secs * 1000).toISOString(),
    }
    for (let tries = 0; ; tries++) {
      const shared = payers.map(({ members: agentIds, limits }) => ({ agentIds, limits }))
      if (await spending.claim(claim, { all, agent: own, shared })) {
        if (await this.#areComplete(payers, limitsAnything(own) ? agent.id : undefined)) break
        // An agent of this family was made meanwhile: with it there may be no room.
        await this.#deps.store.write([spending.release(claim.id)])
        ;({ set, lineage } = await this.#readNow())
        payers = await this.#payers(agent, lineage)
      } else {
        const refusal = (await this.#refusalOfPayers(payers, claim)) ?? (await this.#refusal(agent, all, own, claim))
        if (refusal) throw refusal
      }
      if (tries === MAX_TRIES)
        throw new Refusal('rate_limit', 'The budget is being used up by other calls', { retryAfterSecs: 1 })
    }
    onRelease(() => {
      notifier.scheduleCheck(agent)
      return [spending.release(claim.id)]
    })
  }

  /** What is in memory may be from before another daemon made this agent. */
  #isUnknownChild(agent: Agent, lineage: AgentLineage): boolean {
    const parent = parentOf(agent)
    return this.#deps.shared && parent !== undefined && !lineage.ancestors(agent.id).includes(parent)
  }
  /**
   * Whether the families of a claim that was set aside had all their members. Asked afterwards: whoever joins a family
   * later sees the claim.
   */
  async #areComplete(payers: readonly Payer[], self: string | undefined): Promise<boolean> {
    const { shared, store } = this.#deps
    const ids = [...payers.map(({ agent }) => agent.id), ...(self === undefined ? [] : [self])]
    if (ids.length === 0) return true
    const { lineage } = await this.#read()
    const links = shared
      ? await store.descendantsOf(ids)
      : ids.flatMap((ancestorId) => lineage.descendants(ancestorId).map((agentId) => ({ ancestorId, agentId })))
    return links.every(({ ancestorId, agentId }) =>
      payers.some(({ agent, members }) => agent.id === ancestorId && members.includes(agentId)),
    )
  }
  async #refusalOfPayers(payers: readonly Payer[], claim: CallCost): Promise<Refusal | undefined> {
    for (const payer of payers) {
      const lines = linesOf(payer.limits, await spentTogether(this.#deps.spending, payer.members))
      const full = lines.find((line) => passes(line, claim))
      if (full) return this.#refuse(payer.agent, full, claim)
    }
    return undefined
  }

  /** A child's first call may come before the lineage is read again. */
  async agentSpawned(agent: Agent): Promise<void> {
    if (parentOf(agent) === undefined) return
    const { lineage } = await this.#read()
    const fresh = lineage.addAgents([agent])
    if (fresh.length > 0) await this.#addAncestors(fresh)
  }
  async #addAncestors(links: readonly AncestorLink[]): Promise<void> {
    const { store } = this.#deps
    await store.write([...links.map((link) => store.addAncestor(link)), ...this.#tell(ALL)])
    this.#readAgain()
  }

  async accountOfAll(): Promise<Account> {
    const { set } = await this.#read()
    return this.#account(this.#ofAll(set), ALL)
  }
  async accountOf(agent: BudgetedAgent): Promise<Account> {
    const { set } = await this.#read()
    return this.#account(this.#ofAgent(set, agent), agent.id)
  }
  async limitsOf(agent: BudgetedAgent): Promise<SpendLimits> {
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
    // One after the other: a change keeps what it does not name, also what the one before has just set.
    return this.#changes.run(() => this.#set(agentId, change, details))
  }
  async #set(
    agentId: string | undefined,
    change: { readonly [K in keyof SetLimits]?: SetLimits[K] | undefined },
    details: string,
  ): Promise<void> {
    const { store, audit } = this.#deps
    const { set } = await this.#read()
    const scope = agentId ?? ALL
    const next: SetLimits = {
      ...(set.get(scope) ?? unset),
      ...omitUndefined(change),
    }
    await store.write([
      store.set(scope, next, change),
      audit.entry({
        event: 'budget_changed',
        ...omitUndefined({ agentId }),
        details,
        change: { before: { ...set.get(scope) }, after: { ...next } },
      }),
      ...this.#tell(scope),
    ])
    set.set(scope, next)
    this.#readAgain()
  }
  async forget(agentId: string): Promise<void> {
    const { set } = await this.#read()
    // What another daemon set may not be known here.
    if (set.delete(agentId) || this.#deps.shared) await this.#deps.store.remove(agentId, this.#tell(agentId))
  }
  /** Drops removed agents that spent nothing in a current period: an agent may spawn others for years. */
  async forgetGone(signal: AbortSignal): Promise<void> {
    const { store, agents, spending } = this.#deps
    const { lineage } = await this.#read()
    const descendantIds = lineage.descendantIds()
    const present = new Set((await agents.list()).map(({ id }) => id))
    for (const id of descendantIds) {
      if (signal.aborted) return
      if (present.has(id) || Object.values(await spending.spent(id)).some((spent) => spent > 0)) continue
      await store.write([
        ...lineage.ancestors(id).map((ancestorId) => store.removeAncestor({ ancestorId, agentId: id })),
        ...this.#tell(ALL),
      ])
      lineage.forget(id)
    }
  }

  async #account(limits: SpendLimits, scope: string): Promise<Account> {
    const { spending, config } = this.#deps
    const { set, lineage } = await this.#read()
    const spent = await spending.spent(scope === ALL ? undefined : scope)
    const descendants = scope === ALL ? [] : lineage.descendants(scope)
    const together = descendants.length === 0 ? spent : await spentTogether(spending, [scope, ...descendants])
    return {
      limits,
      spent,
      together,
      lines: linesOf(limits, together),
      threshold: set.get(ALL)?.alertThreshold ?? config.alert_threshold,
    }
  }

  async #refusal(agent: Agent, all: SpendLimits, own: SpendLimits, claim: CallCost): Promise<Refusal | undefined> {
    const { spending } = this.#deps
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
  async #refuse(payer: Agent | undefined, full: Line, { nano, tokens }: CallCost): Promise<Refusal> {
    this.#deps.refused()
    await this.#deps.notifier.exceeded(payer, full)
    const { refusal } = await import('./refusal.ts')
    return refusal(payer, full, full.unit === 'usd' ? nano : tokens, this.#deps.now())
  }

  /**
   * The agents whose limits apply to a call: the caller's ancestors, and the caller itself when it has descendants.
   * Only those with a limit.
   */
  async #payers(agent: Agent, lineage: AgentLineage): Promise<readonly Payer[]> {
    const { set } = await this.#read()
    const payers: Payer[] = []
    for (const id of [agent.id, ...lineage.ancestors(agent.id)]) {
      const members = [id, ...lineage.descendants(id)]
      if (members.length === 1) continue
      const payer = id === agent.id ? agent : await this.#deps.agents.find(id)
      const limits = payer && this.#ofAgent(set, payer)
      if (payer && limits && limitsAnything(limits)) payers.push({ agent: payer, limits, members })
    }
    return payers
  }
  /** The accounts a call of this agent counts against, its own among them. */
  async accounts(agent: Agent): Promise<readonly (readonly [agent: Agent | undefined, account: Account])[]> {
    const { lineage } = await this.#read()
    const others = (await Promise.all(lineage.ancestors(agent.id).map((id) => this.#deps.agents.find(id)))).filter(
      (one) => one !== undefined,
    )
    return [
      [undefined, await this.accountOfAll()],
      ...(await Promise.all([agent, ...others].map(async (one) => [one, await this.accountOf(one)] as const))),
    ]
  }
  #ofAll(set: ReadonlyMap<string, SetLimits>): SpendLimits {
    return limitsOfAll(set.get(ALL), this.#deps.config)
  }
  #ofAgent(set: ReadonlyMap<string, SetLimits>, { id, manifest }: BudgetedAgent): SpendLimits {
    return limitsOfAgent(set.get(id), manifest.resources, this.#defaultTokens(set))
  }
  #defaultTokens(set: ReadonlyMap<string, SetLimits>): number {
    return set.get(ALL)?.defaultHourTokens ?? this.#deps.config.default_max_llm_tokens_per_hour
  }

  #readNow(): Promise<BudgetState> {
    this.#readAgain()
    return this.#read()
  }
  #read(): Promise<BudgetState> {
    if (this.#reading) return this.#reading
    const reading = this.#load().then(
      (state) => (this.#state = state),
      (error: unknown) => {
        if (this.#reading === reading) this.#reading = undefined
        throw error
      },
    )
    return (this.#reading = reading)
  }
  async #load(): Promise<BudgetState> {
    const { store, agents } = this.#deps
    const [limits, links, all] = await Promise.all([store.limits(), store.ancestors(), agents.list()])
    const lineage = new AgentLineage(links)
    // A crash may have come between the spawn of an agent and its link.
    const fresh = lineage.addAgents(all)
    if (fresh.length > 0) await this.#addAncestors(fresh)
    return { set: new Map(limits), lineage }
  }
}

type CallCost = { readonly nano: number; readonly tokens: number }
function passes({ unit, limit, spent, held }: Line, { nano, tokens }: CallCost): boolean {
  return spent + held + (unit === 'usd' ? nano : tokens) > limit
}
/** Writing to a prompt cache may cost more than other input, and how much will be written is unknown beforehand. */
function highestPrice(price: Price | undefined): Price | undefined {
  const withHighestInput = <R extends Rates>(rates: R): R => ({
    ...rates,
    input: Math.max(rates.input, rates.cacheWrite ?? 0),
  })
  return price && { ...withHighestInput(price), ...(price.long && { long: withHighestInput(price.long) }) }
}
