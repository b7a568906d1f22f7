import type { Agent } from '../agents/contract.ts'
import type { SpendLimits, Spending, Spent } from '../usage/contract.ts'

/** One agent is an ancestor of another, at any distance. */
export interface AncestorLink {
  readonly ancestorId: string
  readonly agentId: string
}

/** The agent that spawned this one, by its manifest; `undefined` for one that no agent spawned. */
export function parentOf({
  manifest,
}: {
  readonly manifest: { readonly metadata: Readonly<Record<string, unknown>> }
}): string | undefined {
  const parent = manifest.metadata['parent_agent_id']
  return typeof parent === 'string' && parent !== '' ? parent : undefined
}

/**
 * Which agents spawned which. The limits of an agent apply to it and all its descendants together, even removed ones.
 */
export class AgentLineage {
  readonly #descendants = new Map<string, Set<string>>()
  readonly #ancestors = new Map<string, Set<string>>()

  constructor(links: readonly AncestorLink[]) {
    for (const link of links) this.add(link)
  }

  /** Whether it was new. */
  add({ ancestorId, agentId }: AncestorLink): boolean {
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
  /** All agents that have an ancestor. */
  descendantIds(): readonly string[] {
    return [...this.#ancestors.keys()]
  }
  /** Removes an agent from its ancestors. Its own descendants stay. */
  forget(id: string): void {
    for (const ancestorId of this.ancestors(id)) {
      const descendants = this.#descendants.get(ancestorId)
      descendants?.delete(id)
      if (descendants?.size === 0) this.#descendants.delete(ancestorId)
    }
    this.#ancestors.delete(id)
  }

  /**
   * Adds the ancestors these agents name in their manifests, and returns the new links. An agent inherits the
   * ancestors of its parent.
   */
  addAgents(agents: readonly Agent[]): readonly AncestorLink[] {
    const parents = new Map(
      agents.filter(mayHaveParent).flatMap((agent) => {
        const parent = parentOf(agent)
        return parent === undefined ? [] : [[agent.id, parent] as const]
      }),
    )
    const fresh: AncestorLink[] = []
    for (const [agentId] of parents) {
      const visited = new Set<string>()
      for (let at = parents.get(agentId); at !== undefined && !visited.has(at); at = parents.get(at)) {
        visited.add(at)
        fresh.push(...this.#inherit(agentId, at))
      }
    }
    return fresh
  }
  /** Links an agent to an ancestor and to the ancestors of that one. */
  #inherit(agentId: string, from: string): readonly AncestorLink[] {
    return [from, ...this.ancestors(from)]
      .map((ancestorId) => ({ ancestorId, agentId }))
      .filter((link) => link.ancestorId !== agentId && this.add(link))
  }
}

/** What these agents spent together. */
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

/** An agent whose limits a call must keep: an ancestor of the caller, or the caller together with its descendants. */
export interface Payer {
  readonly agent: Agent
  readonly limits: SpendLimits
  readonly members: readonly string[]
}

/** Without parsing the manifest. A key may be written with escapes. */
const mayHaveParent = ({ manifestToml }: Agent): boolean => /parent_agent_id|\\/.test(manifestToml)
