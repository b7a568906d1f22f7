import type { Agent, SpawnAuthor, SpawnSource } from './contract.ts'
import { inherited } from './child-manifest.ts'
import { parentKey, rootKey, rootOf } from './family.ts'
import type { FamilyLimits } from './family.ts'
import { editManifest } from './manifest.ts'
import type { LoadedAgent } from './registry.ts'
import type { AgentService } from './service.ts'
import type { AgentStore } from './store.ts'

const depthKey = 'spawn_depth'

export interface SpawnDeps {
  readonly agents: AgentService
  readonly store: AgentStore
  readonly limits: FamilyLimits
  /** Refuses, and writes down why. */
  deny(parent: LoadedAgent, why: string): Promise<never>
}

interface NewChild extends SpawnSource, Partial<Pick<SpawnAuthor, 'onBehalf' | 'labels'>> {
  /** The first agent of the family. */
  readonly root: string
  readonly manifestToml: string
}

/**
 * Makes an agent below another one, with no right that its parent has not. Fails
 * with `isNotHeld` when another daemon made one of the family at the same moment.
 */
export async function spawnChild(
  { agents, store, limits, deny }: SpawnDeps,
  parent: LoadedAgent,
  { root, manifestToml, onBehalf = [], labels = [], ...source }: NewChild,
): Promise<Agent> {
  if (!parent.manifest.capabilities.agent_spawn)
    await deny(parent, 'capabilities.agent_spawn is not granted to this agent')
  const { max_depth: deepest, max_descendants: max } = limits
  const depth = depthOf(parent) + 1
  if (depth > deepest)
    await deny(
      parent,
      `the new agent would be ${depth} generations deep, at most ${deepest} are allowed (plugins.agents.max_depth)`,
    )
  const sharing = store.shared ? await store.sharing() : undefined
  const conditions = sharing ? [sharing.unlessMentioned(root, await sharing.mentions(root))] : []
  const live = (await agents.list()).filter((agent) => agent.id !== root && rootOf(agent) === root).length
  if (live >= max)
    await deny(
      parent,
      `there are ${live} agents of this family already, at most ${max} are allowed (plugins.agents.max_descendants)`,
    )
  const { toml, right } = inherited(parent.manifest, manifestToml)
  if (right !== undefined) await deny(parent, `the new agent would have a right that this one has not: ${right}`)
  const placed = editManifest(toml, {
    [`metadata.${parentKey}`]: parent.id,
    [`metadata.${rootKey}`]: root,
    [`metadata.${depthKey}`]: depth,
  })
  const by = { agentId: parent.id, onBehalf: [...new Set([...onBehalf, parent.id])], labels }
  return agents.spawn(placed, { ...source, permission: parent.permission, conditions, by })
}

const depthOf = (agent: Agent): number => {
  const depth = agent.manifest.metadata[depthKey]
  return typeof depth === 'number' ? depth : 0
}
