import { v7 } from 'uuid'
import { KeptRows } from 'svc/internal'
import type { RowsInMemory, TellChange } from 'svc/internal'
import { omitUndefined, Refusal, SerialQueue } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { InboundMessage } from 'svc/channels'
import type { Audit } from '../../audit/contract.ts'
import type { Account } from '../accounts/account.ts'
import type { MatchRule } from './match-rule.ts'
import type { Binding, RoutingStore } from './store.ts'

/** What a message is compared by. */
export interface Place {
  readonly channel: string
  readonly account_id: string
  readonly peer_id: string
  readonly channel_id: string
  readonly thread_id: string | undefined
  readonly guild_id: string | undefined
  readonly roles: readonly string[]
}
export function placeOf(account: Pick<Account, 'channel' | 'id'>, { chat, threadId, sender }: InboundMessage): Place {
  return {
    channel: account.channel,
    account_id: account.id,
    peer_id: sender.id,
    channel_id: chat.id,
    thread_id: threadId,
    guild_id: chat.guildId,
    roles: sender.roles ?? [],
  }
}

const SCORES = { peer_id: 8, channel_id: 8, thread_id: 8, guild_id: 4, account_id: 2, channel: 1 } as const
const ROLES_SCORE = 2
/** How specific a rule is; `undefined` when it does not match. */
export function scoreOf(rule: MatchRule, place: Place): number | undefined {
  let score = 0
  for (const [key, points] of Object.entries(SCORES) as [keyof typeof SCORES, number][]) {
    if (rule[key] === undefined) continue
    if (rule[key] !== place[key]) return undefined
    score += points
  }
  if (rule.roles !== undefined && rule.roles.length > 0) {
    if (!rule.roles.some((role) => place.roles.includes(role))) return undefined
    score += ROLES_SCORE
  }
  return score
}

export interface BindingsDeps {
  readonly store: RoutingStore
  readonly audit: Pick<Audit, 'entry'>
  readonly maxBindings: number
  readonly now: () => string
  /** Hears of bindings that another daemon added or removed. */
  readonly follow: (rows: RowsInMemory) => TellChange
}

/** Which agent answers whom. Kept in memory; rows are the truth. */
export class Bindings {
  readonly #deps: BindingsDeps
  readonly #changes = new SerialQueue()
  readonly #all: KeptRows<readonly Binding[]>
  readonly #tell: TellChange
  constructor(deps: BindingsDeps) {
    this.#deps = deps
    this.#all = new KeptRows(() => deps.store.bindings())
    this.#tell = deps.follow(() => this.#all.changed())
  }

  /** Oldest first. */
  list(): Promise<readonly Binding[]> {
    return this.#all.get()
  }

  /** The agents of the rules that match, the most specific rule first; of equal ones the newest. */
  async match(place: Place): Promise<readonly string[]> {
    const scored = (await this.list()).flatMap(({ agent, match_rule: rule }, index) => {
      const score = scoreOf(rule, place)
      return score === undefined ? [] : [{ agent, score, index }]
    })
    return scored.sort((a, b) => b.score - a.score || b.index - a.index).map(({ agent }) => agent)
  }

  /** Throws `conflict` when there are too many. */
  add(agent: string, rule: MatchRule, id: string = v7()): Promise<Binding> {
    return this.#changes.run(async () => {
      const { store, maxBindings, now } = this.#deps
      const list = await this.list()
      const known = list.find((binding) => binding.id === id)
      if (known) return known
      if (list.length >= maxBindings)
        throw new Refusal(
          'conflict',
          `There are ${maxBindings} bindings already, the maximum that plugins.channels.max_bindings allows`,
        )
      const binding: Binding = { id, agent, match_rule: omitUndefined(rule) }
      await this.#commit(
        store.insertBinding({ ...binding, created_at: now() }),
        `a binding to agent "${agent}" for ${describe(binding.match_rule)} is added`,
      )
      return binding
    })
  }
  /** Removes the binding at a position of the list. Throws `binding_not_found`. */
  remove(index: number): Promise<void> {
    return this.#changes.run(async () => {
      const binding = (await this.list())[index]
      if (!binding) throw new Refusal('binding_not_found', `No binding ${index}: GET /api/bindings lists them from 0`)
      await this.#commit(
        this.#deps.store.removeBinding(binding.id),
        `the binding to agent "${binding.agent}" for ${describe(binding.match_rule)} is removed`,
      )
    })
  }
  async #commit(statement: Statement, details: string): Promise<void> {
    const { store, audit } = this.#deps
    await store.commit([statement, audit.entry({ event: 'channel_changed', details }), ...this.#tell('')])
    this.#all.changed()
  }
}

function describe(rule: MatchRule): string {
  return Object.keys(rule).length === 0 ? 'everybody' : JSON.stringify(rule)
}
