import type { Agent } from '../agents/contract.ts'
import type { SpendLimits, Spending, Spent } from '../usage/contract.ts'

/** That one agent came of another, at any distance. */
export interface Descent {
  readonly ancestorId: string
  readonly agentId: string
}

/** Who made an agent; `undefined` when nobody did. Part of its manifest (security facts 1.12). */
export function parentOf({
  manifest,
}: {
  readonly manifest: { readonly metadata: Readonly<Record<string, unknown>> }
}): string | undefined {
  const parent = manifest.metadata['parent_agent_id']
  return typeof parent === 'string' && parent !== '' ? parent : undefined
}

/** What agents made spends with them: their limits hold for all that came of them together, also for those that are gone. */
export class Kin {
  readonly #descendants = new Map<string, Set<string>>()
  readonly #ancestors = new Map<string, Set<string>>()

  constructor(descents: readonly Descent[]) {
    for (const descent of descents) this.add(descent)
  }

  /** Whether it was new. */
  add({ ancestorId, agentId }: Descent): boolean {
    const of = (map: Map<string, Set<string>>, key: string): Set<string> => {
      let set = map.get(key)
      if (!set) map.set(key, (set = new Set()))
      return set
    }
    if (this.#descendants.get(ancestorId)?.has(agentId)) return false
    of(this.#descendants, ancestorId).add(agentId)
    of(this.#ancestors, agentId).add(ancestorId)
    return true
  }
  descendants(id: string): readonly string[] {
    return [...(this.#descendants.get(id) ?? [])]
  }
  ancestors(id: string): readonly string[] {
    return [...(this.#ancestors.get(id) ?? [])]
  }
  /** Who came of somebody. */
  offspring(): readonly string[] {
    return [...this.#ancestors.keys()]
  }
  /** It came of nobody from now on. What came of it still does. */
  forget(id: string): void {
    for (const ancestorId of this.ancestors(id)) {
      const descendants = this.#descendants.get(ancestorId)
      descendants?.delete(id)
      if (descendants?.size === 0) this.#descendants.delete(ancestorId)
    }
    this.#ancestors.delete(id)
  }

  /** What is not known yet of these agents. A parent is known before its children: its own ancestors are theirs. */
  learn(agents: readonly Agent[]): readonly Descent[] {
    const parents = new Map(
      agents.flatMap((agent) => {
        const parent = parentOf(agent)
        return parent === undefined ? [] : [[agent.id, parent] as const]
      }),
    )
    const fresh: Descent[] = []
    for (const [agentId] of parents) {
      const seen = new Set<string>()
      for (let at = parents.get(agentId); at !== undefined && !seen.has(at); at = parents.get(at)) {
        seen.add(at)
        for (const ancestorId of [at, ...this.ancestors(at)]) {
          const descent = { ancestorId, agentId }
          if (ancestorId !== agentId && this.add(descent)) fresh.push(descent)
        }
      }
    }
    return fresh
  }
}

/** What an agent and all that came of it spent. */
export async function spentTogether(spending: Spending, ids: readonly string[]): Promise<Spent> {
  let sum: Spent = {
    hourNano: 0,
    dayNano: 0,
    monthNano: 0,
    hourTokens: 0,
    heldNano: 0,
    heldTokens: 0,
    unpricedToday: 0,
  }
  for (const id of ids) {
    const own = await spending.spent(id)
    sum = {
      hourNano: sum.hourNano + own.hourNano,
      dayNano: sum.dayNano + own.dayNano,
      monthNano: sum.monthNano + own.monthNano,
      hourTokens: sum.hourTokens + own.hourTokens,
      heldNano: sum.heldNano + own.heldNano,
      heldTokens: sum.heldTokens + own.heldTokens,
      unpricedToday: sum.unpricedToday + own.unpricedToday,
    }
  }
  return sum
}

/** An agent whose limits a call has to keep beside those of the agent that makes it, or together with those it made. */
export interface Payer {
  readonly agent: Agent
  readonly limits: SpendLimits
  readonly members: readonly string[]
}
