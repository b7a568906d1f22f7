import type { TurnView } from '../../chat/contract.ts'
import type { AskedStore } from '../store.ts'

const HOUR_MS = 3_600_000
const OPEN: ReadonlySet<TurnView['state']> = new Set<TurnView['state']>(['queued', 'running', 'waiting'])

export interface TokenBudgetDeps {
  readonly store: Pick<AskedStore, 'of' | 'add' | 'settle'>
  /** What a turn used so far. */
  readonly find: (turnId: string) => Promise<Pick<TurnView, 'state' | 'usage'> | undefined>
  /** Tokens of a node in an hour. */
  readonly max: number
  /** Wall clock in milliseconds: the rows outlive this process, and other daemons read them. */
  readonly now: () => number
}

/**
 * Tokens that the messages of each node used in the last hour, at any daemon on the database. They are those of its
 * turns, so nothing is lost when a daemon dies during one.
 */
export class TokenBudget {
  readonly #deps: TokenBudgetDeps
  constructor(deps: TokenBudgetDeps) {
    this.#deps = deps
  }

  /** Whether the node may begin another turn. What one costs is known only at its end. */
  async allows(nodeId: string): Promise<boolean> {
    const { store, max, now } = this.#deps
    let used = 0
    for (const { turn_id: id, tokens } of await store.of(nodeId, now() - HOUR_MS))
      used += tokens ?? (await this.settle(id))
    return used < max
  }
  /** Before the turn begins. */
  async add(turnId: string, nodeId: string): Promise<void> {
    const { store, now } = this.#deps
    await store.add(turnId, nodeId, now(), now() - HOUR_MS)
  }
  /** What the turn used so far, which is kept once it has ended. */
  async settle(turnId: string): Promise<number> {
    const turn = await this.#deps.find(turnId)
    if (!turn) return 0
    const tokens = (turn.usage?.input ?? 0) + (turn.usage?.output ?? 0)
    if (!OPEN.has(turn.state)) await this.#deps.store.settle(turnId, tokens)
    return tokens
  }
}
