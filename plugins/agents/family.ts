import { enforced, isNotHeld } from 'svc/internal'
import { KeyedQueue, Refusal } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Agent, Family, SpawnAuthor, SpawnSource } from './contract.ts'
import type { LoadedAgent } from './registry.ts'
import type { AgentService } from './service.ts'
import type { AgentStore } from './store.ts'

/** The origin of an agent. It is part of the manifest, so it is stored with the agent. */
export const parentKey = 'parent_agent_id'
export const rootKey = 'root_agent_id'

/** Generations of agents made by agents, and how many of one family may be alive at the same time. */
export interface FamilyLimits {
  readonly max_depth: number
  readonly max_descendants: number
}

export class FamilyService implements Family {
  readonly #agents: AgentService
  readonly #audit: Audit
  readonly #limits: FamilyLimits
  /** Spawns of one family run one after the other, so that two of them cannot both pass the limit. */
  readonly #queue = new KeyedQueue()
  /**
   * Agents that made others here. Most never do, and then their changes need no search among all agents. Where other
   * daemons make agents too, the rows are asked.
   */
  readonly #parents = new Set<string>()
  readonly #store: AgentStore
  constructor(agents: AgentService, audit: Audit, limits: FamilyLimits, store: AgentStore) {
    this.#agents = agents
    this.#store = store
    this.#audit = audit
    this.#limits = limits
  }

  /** Finds the agents that have children. Called once, before the first request. */
  async recover(): Promise<void> {
    for (const id of await this.#store.idsWithKey(parentKey)) {
      const agent = await this.#agents.find(id)
      const parent = agent && this.parentOf(agent)
      if (parent !== undefined) this.#parents.add(parent)
    }
  }

  async spawn(
    parentId: string,
    manifestToml: string,
    options?: SpawnSource & Partial<Pick<SpawnAuthor, 'onBehalf' | 'labels'>>,
  ): Promise<Agent> {
    const parent = await this.#agents.require(parentId)
    const root = rootOf(parent)
    const deps = {
      agents: this.#agents,
      store: this.#store,
      limits: this.#limits,
      deny: (agent: LoadedAgent, why: string) => this.#deny(agent, why),
    }
    return this.#queue.run(root, async () => {
      const { spawnChild } = await import('./spawn-child.ts')
      this.#parents.add(parent.id)
      // Each time another daemon was faster there is one place less in the family: this ends.
      for (;;)
        try {
          return await spawnChild(deps, await this.#agents.require(parentId), { root, manifestToml, ...options })
        } catch (error) {
          if (!(error instanceof Refusal) || !isNotHeld(error.cause)) throw error
        }
    })
  }

  parentOf({ manifest }: Agent): string | undefined {
    return text(manifest.metadata[parentKey])
  }
  async isDescendant(ancestorId: string, id: string): Promise<boolean> {
    const ancestor = await this.#agents.require(ancestorId)
    let at = await this.#agents.find(id)
    // Manifests may name each other in a circle.
    for (const visited = new Set<string>(); at && !visited.has(at.id);) {
      visited.add(at.id)
      const parent = this.parentOf(at)
      if (parent === ancestor.id) return true
      at = parent === undefined ? undefined : await this.#agents.find(parent)
    }
    return false
  }

  async kill(ancestorId: string, id: string): Promise<Agent> {
    const ancestor = await this.#agents.require(ancestorId)
    const agent = await this.#agents.require(id)
    if (!(await this.isDescendant(ancestor.id, agent.id)))
      await this.#deny(ancestor, `agent "${agent.name}" was not created by this one`)
    return (await this.#agents.kill(agent.id)) ?? agent
  }

  /** After a change of the parent: stops its children that now have more rights than it. */
  async recheck(parent: Agent): Promise<void> {
    if (!this.#store.shared && !this.#parents.has(parent.id)) return
    const { exceeds } = await import('./inherit.ts')
    for (const child of await this.#agents.list()) {
      if (this.parentOf(child) !== parent.id) continue
      if (permissions.indexOf(child.permission) > permissions.indexOf(parent.permission))
        await this.#agents.setPermission(child.id, parent.permission)
      if (child.state === 'Stopped') continue
      const right = exceeds(parent.manifest, child.manifest)
      if (right === undefined) continue
      await this.#audit.write({
        event: 'capability_check',
        agentId: child.id,
        details: `stopped: it has a right that its parent "${parent.name}" has no more: ${right}`,
      })
      await this.#agents.command(child.id, 'stop')
    }
  }

  async #deny(agent: LoadedAgent, why: string): Promise<never> {
    enforced('capability_inheritance_validation')
    await this.#audit.write({ event: 'capability_check', agentId: agent.id, details: `denied: ${why}` })
    throw new Refusal('forbidden', `Refused: ${why}.`)
  }
}

/** From the least to the most. */
const permissions: readonly Agent['permission'][] = ['observe', 'assist', 'full']
const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
export const rootOf = (agent: Agent): string => text(agent.manifest.metadata[rootKey]) ?? agent.id
